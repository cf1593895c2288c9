"""The low part of the queries over a stream: what is done to tuples where they come in, before they are in the log.

It is a prefilter and a projection for all queries together. A tuple that none of them needs is counted, and heard by
the heartbeats, and not kept. Of the others, columns that no query reads are null in the log. What is needed follows
from the plans (`plan/needs`); rows in memory are handled here, rows in Spark by SQL (`judging`). Dead letters stay
whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headgate.catalog.entries import Stream
from headgate.plan.needs import Need
from headgate.plan.prefilter import holds
from headgate.sources.verdict import TUPLE, UNNEEDED
from headgate.sql import name


class Reduced(Exception):
    """A batch was judged by a low part that no longer does: it has to be judged as a whole."""


def needed(low: Need | None, tuples: pa.Table) -> NDArray[np.bool_]:
    """For each tuple, whether any query may need it."""
    if low is None or low.conditions is None or not tuples.num_rows:
        return np.ones(tuples.num_rows, bool)
    found = reduce(pc.or_, (holds(one, tuples) for one in sorted(low.conditions)))
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)


def narrowed(low: Need | None, tuples: pa.Table, own: Sequence[str]) -> pa.Table:
    """The tuples with nulls in those of their own columns that no query reads."""
    for column in own if low is not None else ():
        if column.lower() not in low.columns:  # type: ignore[union-attr]
            place = tuples.schema.get_field_index(column)
            field = tuples.schema.field(place)
            tuples = tuples.set_column(place, field, pa.nulls(tuples.num_rows, field.type))
    return tuples


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
