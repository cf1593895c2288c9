"""Values of results in JSON, in the notation in which rows are pushed.

Instants and dates are text in ISO 8601, decimals are text that keeps all digits, binary is base 64, maps are objects.
A DOUBLE that JSON has no number for is text: "NaN", "Infinity", "-Infinity".
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

Written = Callable[[Any], Any]


def rows_of(tables: Iterable[pa.Table]) -> Iterator[dict[str, Any]]:
    """Give the rows of tables of results, each an object as JSON has it; a stream's rows have no `_change`."""
    for table in tables:
        names = table.column_names
        columns = [_column(table.column(place), table.schema.field(place).type) for place in range(len(names))]
        for values in zip(*columns, strict=True):
            yield dict(zip(names, values, strict=True))


def _column(column: pa.ChunkedArray, kind: pa.DataType) -> list[Any]:
    write = _writer(kind)
    values = column.to_pylist()
    return values if write is None else [None if value is None else write(value) for value in values]


def _writer(kind: pa.DataType) -> Written | None:
    """Return how a value of a type that is not null becomes JSON; None if it is JSON already."""
    if pa.types.is_floating(kind):
        return _float
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        return lambda value: value.isoformat()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return lambda value: base64.b64encode(value).decode()
    if pa.types.is_map(kind):
        key, item = _or_same(_writer(kind.key_type)), _or_same(_writer(kind.item_type))
        return lambda pairs: {str(key(name)): item(value) for name, value in pairs}
    if pa.types.is_struct(kind):
        fields = {field.name: _or_same(_writer(field.type)) for field in kind}
        return lambda value: {name: write(value[name]) for name, write in fields.items()}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        one = _or_same(_writer(kind.value_type))
        return lambda values: [one(value) for value in values]
    plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)
    return None if plain or pa.types.is_string(kind) or pa.types.is_large_string(kind) else str


def _or_same(write: Written | None) -> Written:
    return lambda value: value if value is None or write is None else write(value)


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
