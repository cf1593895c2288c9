"""What a sample of rows says of their columns: mean and deviation of numbers, and how many distinct values there are.

A sample is the first rows of a chunk that lies in memory anyway. It says what values are like; nothing that has to hold
for every row follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

SAMPLED_ROWS = 1_000
"""How many rows a sample has at the most."""

MOST_COLUMNS = 16
"""Of so many columns a sample says something."""

APART_US = 1_000_000
"""A stream is sampled no sooner than this after its last sample."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What the values of a column are like, in some rows."""

    rows: int
    distinct: int
    """How many different values there are, null not counted."""

    mean: float | None = None
    deviation: float | None = None
    """The standard deviation; None for what is not a number, or if all are null."""


def sampled(rows: pa.Table) -> Mapping[str, Sample]:
    """Return what the first rows of a table say of its columns."""
    some = rows.slice(0, SAMPLED_ROWS)
    names = [field.name for field in some.schema if not field.name.startswith("_") and _comparable(field.type)]
    return {name: _of(some.column(name), some.num_rows) for name in names[:MOST_COLUMNS]}


def _comparable(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind))


def _of(values: pa.ChunkedArray, rows: int) -> Sample:
    distinct = pc.count_distinct(values).as_py()
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        return Sample(rows, distinct)
    return Sample(rows, distinct, pc.mean(values).as_py(), pc.stddev(values).as_py())
