"""When a plan may still have something to say because of a tuple that came, although no other comes.

A tuple takes effect at its timestamp or at the next slide, leaves its windows later, and is repeated by Rstream
meanwhile. As the engine knows from this at which instant something can happen next, it asks for heartbeats, and runs
epochs, only when something can. Conservative: at every instant at which something does happen something may; the
reverse need not hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from headgate.plan.nodes import (
    Aggregate,
    Distinct,
    Dstream,
    Exploded,
    Filter,
    Final,
    Frame,
    Istream,
    Join,
    Needed,
    Node,
    Now,
    Passed,
    Piped,
    Project,
    Range,
    Ranked,
    Rows,
    Rstream,
    Source,
    Stored,
    Unbounded,
    Union,
    Values,
    Weight,
    Window,
    children,
)
from headgate.ticks import UNLIMITED, Tick


@dataclass(frozen=True, slots=True)
class Span:
    """Something may happen so long after a tuple: at the multiples of `grid` between `least` and `most` ticks behind
    it.
    """

    least: Tick = 0
    most: Tick = 0
    grid: Tick = 1
    once: bool = False
    """Only once, but nobody knows when."""

    def then(self, after: Span) -> Span:
        """Something may happen so long after that, in turn."""
        moved = after.least or after.most
        most = UNLIMITED if UNLIMITED in (self.most, after.most) else self.most + after.most
        grid = after.grid if moved or after.grid > 1 else self.grid
        return Span(self.least + after.least, most, grid, self.once or after.once)

    def first(self, stamped: Tick, after: Tick) -> Tick:
        """The first instant behind `after` at which something may happen because of tuples from `stamped` on."""
        return -(-max(stamped + self.least, after + 1) // self.grid) * self.grid


Spans: TypeAlias = Mapping[str, frozenset[Span]]
"""Of each stream and changing relation that a plan reads."""


def ends(node: Node) -> Spans:
    """When something may begin or end."""
    match node:
        case Source(stream):
            return {stream: frozenset([Span()])}
        case Stored(relation, domain=domain):
            return {} if domain is None else {relation: frozenset([Span()])}
        case Window(child, frame):
            return _then(ends(child), _of_frame(frame))
        case Istream(child):
            return _begins(child)
        case Rstream(child, every):
            return {
                stream: frozenset([_repeated(spans, every, _lasts(child))]) for stream, spans in ends(child).items()
            }
        case Join(left, right) | Union(left, right):
            return _either(ends(left), ends(right))
        case (
            Dstream(child)
            | Filter(child)
            | Project(child)
            | Weight(child)
            | Exploded(child)
            | Ranked(child)
            | Aggregate(child)
            | Distinct(child)
            | Needed(child)
            | Piped(child)
        ):
            return ends(child)
        case _:
            assert_never(node)


def _begins(node: Node) -> Spans:
    """When something may begin. Only of some operators' results does a row begin because another ends."""
    match node:
        case Window(child, frame):
            return _then(ends(child), _of_frame(frame)[:1])
        case Join(left, right) | Union(left, right):
            return _either(_begins(left), _begins(right))
        case Filter(child) | Project(child) | Exploded(child) | Distinct(child):
            return _begins(child)
        case _:
            return ends(node)


def _then(first: Spans, later: Iterable[Span]) -> Spans:
    return {stream: frozenset(one.then(two) for one in spans for two in later) for stream, spans in first.items()}


def _either(one: Spans, two: Spans) -> Spans:
    return {stream: one.get(stream, frozenset()) | two.get(stream, frozenset()) for stream in {**one, **two}}


def _of_frame(frame: Frame) -> tuple[Span, ...]:
    """From the tuple to when it begins to count, and to when it stops."""
    match frame:
        case Now() | Passed():
            return Span(), Span(1, 1)
        case Final(delay=delay):
            return (Span(0, UNLIMITED, once=True),) if delay is None else (Span(0, delay), Span(1, delay + 1))
        case Unbounded() | Values():
            return (Span(),)
        case Range(slide=slide) | Rows(slide=slide):
            grid, length = slide or 1, frame.span
            begins = Span(0, grid - 1, grid)
            return (begins,) if length is None else (begins, Span(length, length + grid - 1, grid))
        case _:
            assert_never(frame)


def _repeated(spans: frozenset[Span], every: Tick | None, lasts: bool) -> Span:
    """From when a row first takes effect until it is gone."""
    most = UNLIMITED if lasts else max(span.most for span in spans)
    return Span(min(span.least for span in spans), most, every or 1)


def _lasts(node: Node) -> bool:
    """Whether rows may stay for ever."""
    match node:
        case Stored() | Aggregate(keys=(), row_when_empty=True):
            return True
        case Window(_, Unbounded() | Values() | Rows(span=None)):
            return True
        case Window():
            return False
        case _:
            return any(map(_lasts, children(node)))
