"""When a tuple that came can have an effect, although no other tuple comes.

A tuple takes effect at its timestamp or at the next slide, leaves its windows later, and is repeated by Rstream
meanwhile. Every plan node says when (see `nodes.operator`), so the engine asks for heartbeats and runs epochs only when
something can happen. Conservative: wherever something does happen, a span says that it may; the reverse need not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from headgate.ticks import UNLIMITED, Tick


@dataclass(frozen=True, slots=True)
class Span:
    """Something may happen at the multiples of `grid` between `least` and `most` ticks after a tuple."""

    least: Tick = 0
    most: Tick = 0
    grid: Tick = 1
    once: bool = False
    """Only once, but nobody knows when."""

    def then(self, after: Span) -> Span:
        """This span followed by another one that begins where this one ends."""
        moved = after.least or after.most
        most = UNLIMITED if UNLIMITED in (self.most, after.most) else self.most + after.most
        grid = after.grid if moved or after.grid > 1 else self.grid
        return Span(self.least + after.least, most, grid, self.once or after.once)

    def first(self, stamped: Tick, after: Tick) -> Tick:
        """The first instant behind `after` at which something may happen because of tuples from `stamped` on."""
        return -(-max(stamped + self.least, after + 1) // self.grid) * self.grid


Spans: TypeAlias = Mapping[str, frozenset[Span]]
"""Of each stream and changing relation that a plan reads."""


def followed(first: Spans, later: Iterable[Span]) -> Spans:
    """Every span of each stream followed by every later one."""
    after = tuple(later)
    return {stream: frozenset(one.then(two) for one in spans for two in after) for stream, spans in first.items()}


def merged(several: Iterable[Spans]) -> Spans:
    """The spans of several nodes together."""
    found: dict[str, frozenset[Span]] = {}
    for spans in several:
        for stream, own in spans.items():
            found[stream] = found.get(stream, frozenset()) | own
    return found


def repeated(spans: frozenset[Span], every: Tick | None, lasts: bool) -> Span:
    """The span in which Rstream repeats a row: from when it first takes effect until it is gone."""
    most = UNLIMITED if lasts else max(span.most for span in spans)
    return Span(min(span.least for span in spans), most, every or 1)
