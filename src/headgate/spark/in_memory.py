"""Rows that go from Arrow to Spark and back, without files: which columns can, and in which form.

A column goes this way if its values mean the same in Spark, in Arrow and in a Parquet file that Arrow writes. Other
columns, such as intervals and variants, stay with Spark's own reader and writer.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

PLAIN: tuple[type[DataType], ...] = (
    BooleanType,
    ByteType,
    ShortType,
    IntegerType,
    LongType,
    FloatType,
    DoubleType,
    DecimalType,
    StringType,
    BinaryType,
    DateType,
    TimestampType,
    TimestampNTZType,
)


MOST_SCHEMAS = 2_000
"""Of so many schemas it is remembered what they look like; the one that was not asked for longest goes first."""


@dataclass(frozen=True, slots=True)
class _Looks:
    schema: StructType
    arrow: pa.Schema | None
    text: str


_LOOKS: OrderedDict[int, _Looks] = OrderedDict()
"""By the identity of a schema, which lives while it is in here. Schemas are not changed once they are in use."""


def _looks(schema: StructType) -> _Looks:
    """Say what a schema looks like. It is asked in each epoch, and takes longer than the rest of a small one."""
    found = _LOOKS.get(id(schema))
    if found is None:
        found = _LOOKS[id(schema)] = _Looks(schema, _arrow_schema(schema), schema.simpleString())
        while len(_LOOKS) > MOST_SCHEMAS:
            _LOOKS.popitem(last=False)
    return found


def arrow_schema(schema: StructType) -> pa.Schema | None:
    """Spark's columns as those of an Arrow table; None if one of them has no such form."""
    return _looks(schema).arrow


def text_of(schema: StructType) -> str:
    """A schema as a text that tells it from others."""
    return _looks(schema).text


def _arrow_schema(schema: StructType) -> pa.Schema | None:
    if not schema.fields or not _plain(schema) or len({name.lower() for name in schema.names}) < len(schema.names):
        return None
    return to_arrow_schema(schema, timezone="UTC")


def _plain(kind: DataType) -> bool:
    match kind:
        case ArrayType():
            return _plain(kind.elementType)
        case MapType():
            return _plain(kind.keyType) and _plain(kind.valueType)
        case StructType():
            return bool(kind.fields) and all(_plain(field.dataType) for field in kind.fields)
        case _:
            return type(kind) in PLAIN  # a subclass, as of texts with a length, is another type


def fitted(rows: pa.Table, schema: pa.Schema, within: str | None = None) -> pa.Table:
    """Rows of a file with exactly these columns, found by name as Spark finds them; one that the file lacks is null.

    With `within`, the file holds them in a struct of that name.
    """
    rows = rows if within is None else pa.Table.from_struct_array(rows.column(within))
    places = {name.lower(): place for place, name in enumerate(rows.column_names)}
    columns = list[pa.ChunkedArray | pa.Array]()
    for field in schema:
        place = places.get(field.name.lower())
        column = pa.nulls(rows.num_rows, field.type) if place is None else rows.column(place)
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.table(columns, schema=schema)
