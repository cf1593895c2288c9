"""The first instant behind what has been put out at which a plan may have something to say, by the tuples that have
come.

Before it, no epoch is worth running and no heartbeat worth asking for. Chunks know the range of their timestamps, so
that in most cases no file is opened."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from headgate.log.log import Log
from headgate.plan.spans import Span, Spans
from headgate.ticks import UNLIMITED, Tick

SELDOM = 4
"""Of what ends nobody knows when: it is looked again after so great a part of the time that has passed."""

LOOKS = 1_000
"""Of tuples that a log no longer has, only synopses know when something ends: so often is that looked for while one may
live.
"""


def due(
    spans: Spans, logs: Mapping[str, Log], reached: Tick, start: Tick | None = None, whole: Collection[str] = ()
) -> Tick | None:
    """None if there is no such instant. Tuples up to `start` are not seen, except those of the relations that are read
    whole.
    """
    found = [
        instant
        for stream, several in spans.items()
        for span in several
        for instant in _of_one(span, logs[stream], reached, None if stream in whole else start)
    ]
    return min(found, default=None)


def _of_one(span: Span, log: Log, reached: Tick, start: Tick | None) -> Iterator[Tick]:
    low = reached - span.most if start is None else max(reached - span.most, start)
    if span.once:
        last = max(
            (*(chunk.high for chunk in log.chunks), log.forgotten if log.forgotten is not None else low), default=low
        )
        if last + span.least <= reached:  # the longer nothing comes, the more seldom it is looked
            yield from (reached + 1 + (reached - last) // SELDOM,) if last > low else ()
            return
    for chunk in log.overlapping(low, None):
        yield span.first(chunk.first_after(low), reached)
    if log.forgotten is not None and log.forgotten > low:
        seldom = span if span.most >= UNLIMITED else replace(span, grid=max(span.grid, span.most // LOOKS))
        yield seldom.first(low + 1, reached)
