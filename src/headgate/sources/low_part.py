"""The low part of the queries over a stream: what is done to tuples where they come in, before they are in the log.

It is a prefilter and a projection for all queries together. A tuple that none of them needs is counted, and heard by
the heartbeats, and not kept. Of the others, columns that no query reads are null in the log. What is needed follows
from the plans (`plan/needs`); rows in memory are handled here, rows in Spark by SQL (`judging`). Dead letters stay
whole.

If all queries count (`plan/weights`), tuples of one instant that are equal in all that is read are kept once, with
their number: a partial aggregate. It is made of so many tuples at a time, in a table that has no more groups than that,
and is put out when these have been counted. So a group may come several times; queries add that up.
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
from headgate.plan.weights import WEIGHT
from headgate.sources.verdict import TUPLE, UNNEEDED, Verdicts
from headgate.sql import name

TABLE_ROWS = 2**16
"""How many tuples are counted at a time."""

WORTHWHILE = 0.9
"""Equal tuples are kept once if no more than this part of all tuples is left."""


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


def counted(low: Need | None, stream: Stream | Relation, tuples: pa.Table) -> pa.Table:
    """The tuples, equal ones of one instant once with their number, if queries allow it and there are many of them."""
    if low is None or not low.weighted or not tuples.num_rows or "_upto" in tuples.column_names:
        return tuples
    keys = [column for column in stream.row_columns() if column.lower() in low.columns]
    if any(_is_inexact(tuples.schema.field(column).type) for column in keys):
        return tuples
    pieces = [tuples.slice(start, TABLE_ROWS) for start in range(0, tuples.num_rows, TABLE_ROWS)]
    groups = [
        piece.group_by([*keys, "_t"], use_threads=False).aggregate([("_s", "min"), ([], "count_all")])
        for piece in pieces
    ]
    found = pa.concat_tables(groups)
    if found.num_rows > WORTHWHILE * tuples.num_rows:
        return tuples
    own = {"_s": "_s_min", **{column: column for column in (*keys, "_t")}}
    columns = [
        found[own[field.name]].cast(field.type) if field.name in own else pa.nulls(found.num_rows, field.type)
        for field in tuples.schema
    ]
    return pa.table(columns, schema=tuples.schema).append_column(WEIGHT, found["count_all"].cast(pa.int64()))


def _is_inexact(kind: pa.DataType) -> bool:
    """True if equal values of a type may not be the same, or cannot be compared."""
    return pa.types.is_floating(kind) or pa.types.is_nested(kind)


def column_sql(low: Need | None, stream: Stream, column: str) -> str:
    """A column of a judged row in SQL: null where no query needs it. Who sent an unneeded tuple is needed for time."""
    own = name(column)
    if low is None:
        return own
    if column.lower() not in low.columns:
        return f"IF(_verdict IN ('{TUPLE}', '{UNNEEDED}'), NULL, {own}) AS {own}"
    if column == stream.source or low.conditions is None:
        return own
    return f"IF(_verdict = '{UNNEEDED}', NULL, {own}) AS {own}"
