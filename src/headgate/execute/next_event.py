"""The next instant at which a plan may have something to say, by the tuples that have come.

Before that instant no epoch is worth running and no heartbeat worth asking for. Chunks know the range of their
timestamps, so in most cases no file is opened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from headgate.log.log import Chunks
from headgate.plan.spans import Span, Spans
from headgate.ticks import UNLIMITED, Tick

SELDOM = 4
"""Where it is unknown when something ends, the next look comes after this fraction of the time that has passed."""

LOOKS = 1_000
"""Tuples that a log no longer holds may live on in synopses, which alone know when they end. This is how many looks
are taken for such an end while a tuple may live."""


def next_event(
    spans: Spans, logs: Mapping[str, Chunks], reached: Tick, start: Tick | None = None, whole: Collection[str] = ()
) -> Tick | None:
    """Return the first instant behind `reached` at which tuples begin or end to count; None if there is none.

    Tuples up to `start` are not seen, except those of the relations in `whole`.
    """
    found = [
        instant
        for stream, several in spans.items()
        for span in several
        for instant in _events(span, logs[stream], reached, None if stream in whole else start)
    ]
    return min(found, default=None)


def _events(span: Span, log: Chunks, reached: Tick, start: Tick | None) -> Iterator[Tick]:
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
