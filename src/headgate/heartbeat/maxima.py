"""What takes effect later: maxima as they were a while ago, and values that wait for their delay.

Both are the paper's array of future heartbeats, kept no longer than the longest delay and no finer than the unit of the
clock. Instants are rounded up to that unit, so a coarser one only makes heartbeats later, never wrong.
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

    def of_nobody(self) -> int:
        """The largest timestamp of any other source, for a source that was forgotten: the largest of all may be its
        own.
        """
        return self.next_largest if self.source < 0 else self.largest

    def renumbered(self, numbers: NDArray[np.intp]) -> Top:
        """With the new number of its source; -1 if that was forgotten."""
        return self._replace(source=int(numbers[self.source]) if self.source >= 0 else -1)

    def with_more(self, other: Top) -> Top:
        """The top of all sources of both."""
        if other.source == self.source:
            return Top(max(self.largest, other.largest), self.source, max(self.next_largest, other.next_largest))
        above, below = (other, self) if other.largest > self.largest else (self, other)
        return Top(above.largest, above.source, max(above.next_largest, below.largest))


NOTHING = Top(NEVER, -1, NEVER)


def top(sources: NDArray[np.intp], ticks: Ticks) -> Top:
    """Of timestamps by source, each source once."""
    if len(ticks) < 2:
        return Top(int(ticks[0]), int(sources[0]), NEVER) if len(ticks) else NOTHING
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
        """Take the top of timestamps that came now."""
        self.latest = self.latest.with_more(more)
        instant = up(now_us, self.unit_us)
        if self._instants and self._instants[-1] >= instant:  # the unit was coarser, or sources moved here
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

    def renumber(self, numbers: NDArray[np.intp]) -> None:
        """Give sources other numbers from now on."""
        self.latest = self.latest.renumbered(numbers)
        self._tops = [one.renumbered(numbers) for one in self._tops]

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
        """Make room for so many sources."""
        self.effective = grown(self.effective, size, NEVER)

    def add(self, sources: NDArray[np.intp], values: Ticks, now_us: int) -> None:
        """Take values of these sources, which count once they have waited for the delay."""
        if not self.delay_us:
            np.maximum.at(self.effective, sources, values)
            return
        self.settle(now_us - 1)  # else more and more would wait while nobody asks
        due = up(now_us + self.delay_us, self.unit_us)
        if self._waiting and self._waiting[-1][0] == due:
            _, others, more = self._waiting.pop()
            sources, values = _merged(
                np.concatenate([others, sources]), np.concatenate([more, values]), len(self.effective)
            )
        self._waiting.append((due, sources, values))

    def at(self, now_us: int) -> Ticks:
        """The values as they are at an instant; it may lie ahead, because nothing is changed by asking."""
        if not self._waiting or self._waiting[0][0] > now_us:
            return self.effective
        result = self.effective.copy()
        for due_us, sources, values in self._waiting:
            if due_us > now_us:
                break
            np.maximum.at(result, sources, values)
        return result

    def settle(self, now_us: int) -> None:
        """Let values take effect that have waited until now."""
        while self._waiting and self._waiting[0][0] <= now_us:
            _, sources, values = self._waiting.popleft()
            np.maximum.at(self.effective, sources, values)

    def keep(self, kept: NDArray[np.intp], numbers: NDArray[np.intp]) -> None:
        """Forget all sources but these; the others get these numbers."""
        self.effective = self.effective[kept]
        waiting = [(due, numbers[sources], values) for due, sources, values in self._waiting]
        self._waiting = deque((due, sources[sources >= 0], values[sources >= 0]) for due, sources, values in waiting)

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
    """An instant rounded up to the unit."""
    return -(-instant_us // unit_us) * unit_us


def grown(array: NDArray[Number], size: int, value: int) -> NDArray[Number]:
    """The array with room for as many sources, at least twice as much as before if it has to grow."""
    if size <= len(array):
        return array
    result = np.full((max(size, 2 * len(array)), *array.shape[1:]), value, array.dtype)
    result[: len(array)] = array
    return result
