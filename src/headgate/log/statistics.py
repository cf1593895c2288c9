"""What the numbers in a chunk are known to be, without opening it: how many are null, the least and the largest.

Statements are specialised by this: a sum over values that are all there, finite and small needs fewer parts. So what is
said here must hold for every row; where that is not certain, nothing is said.

- A column has a range only if all its values are finite: NaN and the infinities leave it without one.
- The sign of a zero is not told: 0.0 stands for -0.0 as well.
- A column that a chunk does not have, because the stream got it later, is null in all its rows.

Footers of Parquet files are believed as far as their writer can be. That of Spark says NaN where a column has one. That
of Arrow passes over NaN, so what Arrow writes is looked at before (`of_rows`). Spark would also leave out rows with NaN
by such a footer (`v > 5` holds for NaN), so Arrow is told to say nothing of columns that could have one (`told`), and
a file of somebody else that may pass over NaN is not read as it is (`hides_nan`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Number: TypeAlias = int | float

MOST_COLUMNS = 256
"""Of a file with more columns of numbers nothing is kept: it would stand in the journal once for every chunk."""

SPARKS = "parquet-mr "
"""How Spark's writer signs its files."""

UNTOLD = ("_t", "_s")
"""Columns that are left out: of the timestamps more is known anyway, and nobody adds up the order of arrival."""


@dataclass(frozen=True, slots=True)
class Values:
    """What holds for a column in a number of rows."""

    rows: int
    nulls: int
    least: Number | None = None
    largest: Number | None = None
    """None if all rows are null, or nothing is known of those that are not."""

    @property
    def complete(self) -> bool:
        """True if none is null."""
        return self.nulls == 0

    @property
    def exponent(self) -> int | None:
        """A number e such that every value is finite and less than 2^e in size; None if there may be none."""
        if self.least is None or self.largest is None:
            return 0 if self.nulls == self.rows else None
        return max(_exponent(self.least), _exponent(self.largest))

    def __add__(self, other: Values) -> Values:
        """What holds for these rows and others together."""
        rows, nulls = self.rows + other.rows, self.nulls + other.nulls
        told = [one for one in (self, other) if one.nulls < one.rows]
        lows = [one.least for one in told if one.least is not None]
        highs = [one.largest for one in told if one.largest is not None]
        whole = bool(told) and len(lows) == len(highs) == len(told)
        return Values(rows, nulls, min(lows), max(highs)) if whole else Values(rows, nulls)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Null counts and ranges of the columns of numbers in some rows."""

    rows: int
    columns: Mapping[str, Values | None]
    """All columns of numbers that are there; None if nothing is known of one."""

    def values(self, column: str) -> Values | None:
        """The null count and range of a column of numbers; None if unknown."""
        return self.columns.get(column, Values(self.rows, self.rows))

    def written(self) -> dict[str, Any]:
        """As the journal has it: the number of nulls, the least and the largest value of each column."""
        return {
            name: None if values is None else [values.nulls, *_range(values)] for name, values in self.columns.items()
        }

    @staticmethod
    def read(rows: int, written: Mapping[str, Any]) -> Statistics:
        """What `written` wrote of so many rows."""
        return Statistics(
            rows, {name: None if known is None else Values(rows, *known) for name, known in written.items()}
        )


def merged(parts: Iterable[Statistics | None]) -> Statistics | None:
    """What holds for all of several parts; None if of one nothing is known."""
    known = list[Statistics]()
    for part in parts:
        if part is None:
            return None
        known.append(part)
    names = dict.fromkeys(name for part in known for name in part.columns)
    if len(names) > MOST_COLUMNS:
        return None
    rows = sum(part.rows for part in known)
    return Statistics(rows, {name: _together(part.values(name) for part in known) for name in names})


def of_rows(rows: pa.Table | pa.RecordBatch) -> Statistics | None:
    """The statistics of rows in memory, by looking at all of them."""
    names = _numbers(rows.schema)
    return None if names is None else Statistics(rows.num_rows, {name: _seen(rows.column(name)) for name in names})


def told(schema: pa.Schema) -> list[str]:
    """The columns whose ranges Arrow may write into a footer: all but those with floating point in them."""
    return [field.name for field in schema if not (pa.types.is_floating(field.type) or pa.types.is_nested(field.type))]


def hides_nan(footer: pq.FileMetaData, rows: pa.RecordBatch) -> bool:
    """True if some rows of a file have NaN and its footer may not say so."""
    if _signed_by_spark(footer):
        return False
    return any(
        pc.any(pc.is_nan(rows.column(field.name))).as_py() for field in rows.schema if pa.types.is_floating(field.type)
    )


def of_file(footer: pq.FileMetaData) -> Statistics | None:
    """The statistics of a Parquet file that headgate wrote, from its footer."""
    schema = footer.schema.to_arrow_schema()
    names = _numbers(schema)
    if names is None:
        return None
    signed = _signed_by_spark(footer)
    leaves = {footer.schema.column(leaf).path: leaf for leaf in range(footer.num_columns)}
    found: dict[str, Values | None] = {}
    for name in names:
        # the path of a leaf in a nested column has dots, so a name with dots could be that of another column
        believed = "." not in name and (signed or pa.types.is_integer(schema.field(name).type))
        found[name] = _said(footer, leaves[name]) if believed else None
    return Statistics(footer.num_rows, found)


def _signed_by_spark(footer: pq.FileMetaData) -> bool:
    return (footer.created_by or "").startswith(SPARKS)


def _said(footer: pq.FileMetaData, leaf: int) -> Values | None:
    parts = list[Values | None]()
    for group in range(footer.num_row_groups):
        column = footer.row_group(group).column(leaf)
        said = column.statistics
        if said is None or not said.has_null_count:
            return None
        ends = (said.min, said.max) if said.has_min_max else (None, None)
        parts.append(_finite(column.num_values, said.null_count, *ends))
    return _together(parts)


def _seen(column: pa.Array | pa.ChunkedArray) -> Values:
    ends = pc.min_max(column).as_py()
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        ends = {"min": None, "max": None}
    return _finite(len(column), column.null_count, ends["min"], ends["max"])


def _finite(rows: int, nulls: int, least: Number | None, largest: Number | None) -> Values:
    if least is None or largest is None or not (math.isfinite(least) and math.isfinite(largest)):
        return Values(rows, nulls)
    return Values(rows, nulls, least + 0, largest + 0)  # the sum of -0.0 and 0 is 0.0


def _together(parts: Iterable[Values | None]) -> Values | None:
    whole = Values(0, 0)
    for part in parts:
        if part is None:
            return None
        whole += part
    return whole


def _numbers(schema: pa.Schema) -> list[str] | None:
    """The columns of numbers, as far as they are the binary numbers of a processor; None if they are too many."""
    names = [
        field.name
        for field in schema
        if (pa.types.is_signed_integer(field.type) or pa.types.is_floating(field.type)) and field.name not in UNTOLD
    ]
    return names if len(names) <= MOST_COLUMNS and len(set(names)) == len(names) else None


def _range(values: Values) -> list[Number]:
    return [] if values.least is None or values.largest is None else [values.least, values.largest]


def _exponent(value: Number) -> int:
    return value.bit_length() if isinstance(value, int) else math.frexp(value)[1]
