"""Heeding: whether an answer is consistent, by the labels of the events that are still under way.

An answer reflects the first tuples of each stream, as many as its label says. It is the answer to just those tuples if
none of them is still under way to it on another path. An event that is under way stands for the tuples of its active
part; so no active part may begin before the label ends.

    QueueScan  looks through all queues for the events that are under way
    Multiset   is told of each event that comes to a queue or leaves it, and keeps where active parts begin
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Protocol, TypeVar

from headgate.consistency.events import Event, Range
from headgate.consistency.flow import Flow

T = TypeVar("T")


class UnderWay(Protocol):
    """The events in the queues, by the active parts of their labels."""

    def first(self, stream: str) -> int | None:
        """Return behind how many tuples of a stream the first active part begins; None if there is none."""

    def ranges(self, stream: str) -> Iterator[Range]:
        """Give the active parts of events that will change something."""


class QueueScan:
    """Looks through all queues, each time it is asked."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow

    def first(self, stream: str) -> int | None:
        """Return behind how many tuples of a stream the first active part begins; None if there is none."""
        return min((event.active[stream].low for event in self.flow.events() if stream in event.active), default=None)

    def ranges(self, stream: str) -> Iterator[Range]:
        """Give the active parts of events that will change something."""
        return (event.active[stream] for event in self.flow.events() if stream in event.active and event.changed)


class Multiset:
    """Counts the active parts in all queues, by stream; an event that is in two queues counts twice."""

    def __init__(self) -> None:
        self._counted: dict[str, Counter[tuple[Range, bool]]] = {}
        self._lows: dict[str, list[int]] = {}
        """Heaps of where active parts begin; what is gone leaves them when it comes to the top."""
        self._at: dict[str, Counter[int]] = {}
        """How many active parts begin at each place."""

    def entered(self, event: Event) -> None:
        """Count an event that is in one more queue."""
        for stream, active in event.active.items():
            at = self._at.setdefault(stream, Counter())
            if not at[active.low]:
                heappush(self._lows.setdefault(stream, []), active.low)
            at[active.low] += 1
            self._counted.setdefault(stream, Counter())[active, event.changed] += 1

    def left(self, event: Event) -> None:
        """Count an event that is in one queue less."""
        for stream, active in event.active.items():
            _one_less(self._at[stream], active.low)
            _one_less(self._counted[stream], (active, event.changed))

    def first(self, stream: str) -> int | None:
        """Return behind how many tuples of a stream the first active part begins; None if there is none."""
        lows = self._lows.get(stream, [])
        while lows and lows[0] not in self._at[stream]:
            heappop(lows)
        return lows[0] if lows else None

    def ranges(self, stream: str) -> Iterator[Range]:
        """Give the active parts of events that will change something."""
        return (active for active, changed in self._counted.get(stream, ()) if changed)


def input_prefix(reflects: Mapping[str, int], under_way: UnderWay) -> bool:
    """Say whether an answer with this label is the answer to just the tuples that the label counts (Definition 3)."""
    firsts = ((under_way.first(stream), count) for stream, count in reflects.items())
    return all(first is None or first >= count for first, count in firsts)


def update_complete(shown: Mapping[str, Sequence[Range]], under_way: UnderWay) -> bool:
    """Say whether nothing is under way of the tuples that have changed the answer (Definition 1)."""
    pairs = ((one, active) for stream, ranges in shown.items() for one in ranges for active in under_way.ranges(stream))
    return not any(one.meets(active) for one, active in pairs)


def still_shown(shown: Mapping[str, Sequence[Range]], under_way: UnderWay) -> dict[str, list[Range]]:
    """Return the tuples that have changed the answer, without those of which nothing can be under way."""
    firsts = {stream: under_way.first(stream) for stream in shown}
    return {
        stream: [one for one in ranges if one.high > first]
        for stream, ranges in shown.items()
        if (first := firsts[stream]) is not None
    }


def _one_less(counted: Counter[T], key: T) -> None:
    counted[key] -= 1
    if not counted[key]:
        del counted[key]
