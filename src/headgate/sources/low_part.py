"""The low part of the queries over a stream: what is done to tuples where they come in, before they are in the log.

It is a prefilter and a projection for all queries together. A tuple that none of them needs is counted, and heard by
the heartbeats, and not kept. Of the others, columns that no query reads are null in the log. What is needed follows
from the plans (`plan/needs`); rows in memory are handled here, rows in Spark by SQL (`judging`). Dead letters stay
whole.

If all queries aggregate (`plan/weights`), one tuple stands for all those that no query tells apart: a partial
aggregate, with their number, and with sums and extremes where queries ask for them. It is made of so many tuples at a
time, in a table that has no more groups than that, and is put out when these are through. So a group may come several
times; queries add that up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headgate.catalog.entries import Relation, Stream
from headgate.plan.needs import Need
from headgate.plan.prefilter import holds
from headgate.plan.weights import MAX, SUM, WEIGHT, is_partial
from headgate.sources.verdict import TUPLE, UNNEEDED, Verdicts
from headgate.sql import Sql, literal, name

TABLE_ROWS = 2**16
"""How many tuples are put together at a time."""

WORTHWHILE = 0.9
"""Tuples are put together if no more than this part of all tuples is left."""


class Reduced(Exception):
    """A batch was judged by a low part that no longer does: it has to be judged as a whole."""


def needed(low: Need | None, tuples: pa.Table) -> NDArray[np.bool_]:
    """For each tuple, whether any query may need it."""
    if low is None or low.conditions is None or not tuples.num_rows:
        return np.ones(tuples.num_rows, bool)
    found = reduce(pc.or_, (holds(one, tuples) for one in sorted(low.conditions)))
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)


def without_unneeded(low: Need | None, rows: pa.Table, found: Verdicts) -> Verdicts:
    """The verdicts on rows, where tuples that no query needs have a verdict of their own."""
    if low is None or low.conditions is None:
        return found
    return np.where((found == TUPLE) & ~needed(low, rows), UNNEEDED, found)


def narrowed(low: Need | None, tuples: pa.Table, own: Sequence[str]) -> pa.Table:
    """The tuples with nulls in those of their own columns that no query reads."""
    for column in own if low is not None else ():
        if column.lower() not in low.columns:  # type: ignore[union-attr]
            place = tuples.schema.get_field_index(column)
            field = tuples.schema.field(place)
            tuples = tuples.set_column(place, field, pa.nulls(tuples.num_rows, field.type))
    return tuples


def partial_aggregates(low: Need | None, stream: Stream | Relation, tuples: pa.Table) -> pa.Table:
    """The tuples, with one in place of all those that queries do not tell apart, if there are many of them."""
    if low is None or low.told is None or not tuples.num_rows or "_upto" in tuples.column_names:
        return tuples
    read = [column for column in stream.row_columns() if column.lower() in low.columns]
    keys = [column for column in read if column.lower() in low.told.columns]
    if any(_is_inexact(tuples.schema.field(column).type) for column in keys):
        return tuples
    time = stream.timestamp if stream.timestamp not in keys else None
    values = [column for column in read if column not in keys and column != time]
    pieces = [tuples.slice(start, TABLE_ROWS) for start in range(0, tuples.num_rows, TABLE_ROWS)]
    if any(
        not _is_small(piece[column]) for piece in pieces for column in values if SUM + column.lower() in low.columns
    ):
        return tuples
    found = pa.concat_tables([_aggregated(piece, low, keys, values, time) for piece in pieces])
    if found.num_rows > WORTHWHILE * tuples.num_rows:
        return tuples
    columns = [
        found[field.name].cast(field.type) if field.name in found.column_names else pa.nulls(found.num_rows, field.type)
        for field in tuples.schema
    ]
    kept = pa.table(columns, schema=tuples.schema)
    for field in partial_fields(low, tuples.schema):
        kept = kept.append_column(field, found[field.name].cast(field.type))
    return kept


def partial_fields(low: Need, schema: pa.Schema) -> list[pa.Field]:
    """The columns that tuples have beside their own if they stand for several."""
    own = {field.name.lower(): field for field in schema}
    named = sorted(name for name in low.columns if is_partial(name) and name != WEIGHT)
    kinds = [pa.int64() if name.startswith(SUM) else own[name.removeprefix(MAX)].type for name in named]
    return [pa.field(WEIGHT, pa.int64()), *(pa.field(name, kind) for name, kind in zip(named, kinds, strict=True))]


def with_partials(tuples: pa.Table, partial: Sequence[pa.Field]) -> pa.Table:
    """The tuples with these columns, which are null if they stand for themselves."""
    for field in partial:
        if field.name not in tuples.column_names:
            tuples = tuples.append_column(field, pa.nulls(tuples.num_rows, field.type))
    return tuples


def _aggregated(piece: pa.Table, low: Need, keys: list[str], values: list[str], time: str | None) -> pa.Table:
    """One row for all tuples of a piece that queries do not tell apart. Of a column that has partial aggregates it has
    the least value, and null stands apart.
    """
    assert low.told is not None
    instants = piece["_t"].to_numpy()
    buckets = {
        f"_bucket_{number}": pa.array((instants - offset) // width)
        for number, (offset, width) in enumerate(sorted(low.told.grains))
    }
    absent = {f"_null_{column}": piece[column].is_null() for column in values if piece[column].null_count}
    for column, array in (buckets | absent).items():
        piece = piece.append_column(column, array)
    aggregates: list[tuple[str | list[str], str, str]] = [
        ("_s", "min", "_s"),
        ("_t", "max", "_t"),
        ([], "count_all", WEIGHT),
    ]
    aggregates += [(time, "max", time)] if time is not None and time in piece.column_names else []
    aggregates += [(column, "min", column) for column in values]
    for column in (*keys, *values):
        for mark, how in ((SUM, "sum"), (MAX, "max")):
            name = f"{mark}{column.lower()}"
            aggregates += [(column, how, name)] if name in low.columns else []
    grouped = piece.group_by([*keys, *buckets, *absent], use_threads=False).aggregate(
        [(column, how) for column, how, _ in aggregates]
    )
    made = [how if column == [] else f"{column}_{how}" for column, how, _ in aggregates]
    own = {key: grouped[key] for key in keys}
    return pa.table(own | {name: grouped[place] for (_, _, name), place in zip(aggregates, made, strict=True)})


def _is_small(values: pa.ChunkedArray) -> bool:
    """True if all values are such that the sum of a piece fits, and sums of sums fit where those of the values do."""
    if values.type != pa.int64():
        return True
    ends = pc.min_max(values).as_py()
    return ends["min"] is None or max(-ends["min"], ends["max"]) < 2**31


def _is_inexact(kind: pa.DataType) -> bool:
    """True if equal values of a type may not be the same, or cannot be compared."""
    return pa.types.is_floating(kind) or pa.types.is_nested(kind)


def column_sql(low: Need | None, stream: Stream, column: str) -> Sql:
    """A column of a judged row in SQL: null where no query needs it. Who sent an unneeded tuple is needed for time."""
    own = name(column)
    if low is None:
        return own
    if column.lower() not in low.columns:
        return f"IF(_verdict IN ({literal(TUPLE)}, {literal(UNNEEDED)}), NULL, {own}) AS {own}"
    if column == stream.source or low.conditions is None:
        return own
    return f"IF(_verdict = {literal(UNNEEDED)}, NULL, {own}) AS {own}"
