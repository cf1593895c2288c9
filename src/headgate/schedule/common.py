"""One instant for several queries: the latest at which all of them are complete."""

from __future__ import annotations

from collections.abc import Sequence

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
