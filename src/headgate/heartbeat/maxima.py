"""What takes effect later: maxima as they were a while ago, and values that wait for their delay.

Both are the paper's array of future heartbeats, kept no longer than the longest delay and no finer than the unit of the clock.
Instants are rounded up to that unit, so a coarser one only makes heartbeats later, never wrong.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from headgate.heartbeat.arrivals import NEVER, Ticks

Number = TypeVar("Number", np.int64, np.float64)


class Top(NamedTuple):
    """The largest timestamp, the source it is from, and the largest of all other sources."""

    largest: int
    source: int
    next_largest: int

    def others_of(self, sources: NDArray[np.intp]) -> Ticks:
        """For each of these sources the largest timestamp of any but itself."""
        return np.where(sources == self.source, self.next_largest, self.largest)

    def with_more(self, other: Top) -> Top:
        if other.source == self.source:
            return Top(max(self.largest, other.largest), self.source, max(self.next_largest, other.next_largest))
        above, below = (other, self) if other.largest > self.largest else (self, other)
        return Top(above.largest, above.source, max(above.next_largest, below.largest))


NOTHING = Top(NEVER, -1, NEVER)


def top(sources: NDArray[np.intp], ticks: Ticks) -> Top:
    """Of timestamps by source, each source once."""
    if not len(ticks):
        return NOTHING
    first = int(np.argmax(ticks))
    others = max(int(ticks[:first].max(initial=NEVER)), int(ticks[first + 1 :].max(initial=NEVER)))
    return Top(int(ticks[first]), int(sources[first]), others)


class Maxima:
    """The top of a set of sources now and at every instant back to the horizon."""

    def __init__(self, unit_us: int) -> None:
        self.unit_us = unit_us
        self.horizon_us = 0
        self.latest = NOTHING
        self._instants: list[int] = []
        self._tops: list[Top] = []

    def add(self, more: Top, now_us: int) -> None:
        self.latest = self.latest.with_more(more)
        instant = up(now_us, self.unit_us)
        if self._instants and self._instants[-1] >= instant:  # later: the unit was coarser, or sources of another cohort came
            self._tops[-1] = self.latest
        else:
            self._instants.append(instant)
            self._tops.append(self.latest)
        outdated = bisect_right(self._instants, now_us - self.horizon_us) - 1
        if outdated > len(self._instants) // 2:
            del self._instants[:outdated], self._tops[:outdated]

    def ago(self, delay_us: int, now_us: int) -> Top:
        """The top as it was that long ago."""
        if not delay_us:
            return self.latest
        return self.before(now_us - delay_us + 1)

    def before(self, instant_us: int) -> Top:
        """The top as it was just before an instant."""
        position = bisect_left(self._instants, instant_us) - 1
        return self._tops[position] if position >= 0 else NOTHING

    def next_change(self, delay_us: int, now_us: int) -> int | None:
        """When what was seen since then will be as old as the delay: the next instant at which `ago` changes."""
        position = bisect_right(self._instants, now_us - delay_us)
        return self._instants[position] + delay_us if position < len(self._instants) else None

    def __len__(self) -> int:
        return len(self._instants)


class Delayed:
    """Per source the largest of its values that have waited for the delay."""

    def __init__(self, delay_us: int, unit_us: int, size: int) -> None:
        self.delay_us = delay_us
        self.unit_us = unit_us
        self.effective = np.full(size, NEVER)
        self._waiting: deque[tuple[int, NDArray[np.intp], Ticks]] = deque()

    def resize(self, size: int) -> None:
        self.effective = grown(self.effective, size, NEVER)

    def add(self, sources: NDArray[np.intp], values: Ticks, now_us: int) -> None:
        if not self.delay_us:
            np.maximum.at(self.effective, sources, values)
            return
        self.at(now_us - 1)  # else more and more would wait while nobody asks
        due = up(now_us + self.delay_us, self.unit_us)
        if self._waiting and self._waiting[-1][0] == due:
            _, others, more = self._waiting.pop()
            sources, values = _merged(np.concatenate([others, sources]), np.concatenate([more, values]), len(self.effective))
        self._waiting.append((due, sources, values))

    def at(self, now_us: int) -> Ticks:
        while self._waiting and self._waiting[0][0] <= now_us:
            _, sources, values = self._waiting.popleft()
            np.maximum.at(self.effective, sources, values)
        return self.effective

    def next_change(self) -> int | None:
        return self._waiting[0][0] if self._waiting else None

    def __len__(self) -> int:
        return sum(len(sources) for _, sources, _ in self._waiting)


def _merged(sources: NDArray[np.intp], values: Ticks, size: int) -> tuple[NDArray[np.intp], Ticks]:
    """Each source once, where it has become worth it."""
    if len(sources) <= size:
        return sources, values
    largest = np.full(size, NEVER)
    np.maximum.at(largest, sources, values)
    known = np.flatnonzero(largest > NEVER)
    return known, largest[known]


def up(instant_us: int, unit_us: int) -> int:
    return -(-instant_us // unit_us) * unit_us


def grown(array: NDArray[Number], size: int, value: int) -> NDArray[Number]:
    """The array with room for as many sources, at least twice as much as before if it has to grow."""
    if size <= len(array):
        return array
    result = np.full((max(size, 2 * len(array)), *array.shape[1:]), value, array.dtype)
    result[: len(array)] = array
    return result
