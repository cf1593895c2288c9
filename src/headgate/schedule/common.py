"""One instant for several queries: the latest at which all of them are complete, and what each has put out up to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headgate.schedule.query import RunningQuery
from headgate.ticks import Tick


def common_instant(queries: Sequence[RunningQuery]) -> Tick | None:
    """The latest instant at which all queries are complete; None if there is none yet.

    A query that sees its streams only from behind an instant on has no rows before it that would mean anything.
    """
    instant = min(query.reached for query in queries)
    return instant if all(query.begun and starts(query) <= instant for query in queries) else None


def starts(query: RunningQuery) -> Tick:
    """The first instant at which a query has an answer."""
    return max(query.domain.origin, *(one.progress.start or query.domain.origin for one in query.answers))


def ticks_of(table: pa.Table) -> pa.ChunkedArray:
    """The instants of results, in ticks."""
    times = table.column("_time")
    if pa.types.is_timestamp(times.type):
        times = times.cast(pa.timestamp("us", times.type.tz))
    return times.cast(pa.int64())


def within(tables: Iterable[pa.Table], after: Tick | None, until: Tick) -> Iterator[pa.Table]:
    """The results of (after, until]; without `after`, all up to `until`."""
    for table in tables:
        times = ticks_of(table)
        wanted = pc.less_equal(times, until)
        if after is not None:
            wanted = pc.and_(wanted, pc.greater(times, after))
        found = table.filter(wanted)
        if found.num_rows:
            yield found
