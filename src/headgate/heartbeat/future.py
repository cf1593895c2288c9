"""The guard against the far future: up to where timestamps are believed, by what a stream has done before.

One timestamp an hour ahead would complete the hour before it, and all that comes from then on would be late. So a
timestamp that jumps further ahead than usual is set aside as a dead letter, unless other tuples confirm that time has
really gone on.

    limit = largest timestamp  +  pace * time since it came  +  reach

The pace is that of the stream so far, against the engine's clock: history that is read from files goes faster than the
clock, and after a pause of hours a live stream goes on hours later. The reach is many times what its timestamps have
usually jumped ahead beyond that. What lies beyond the limit is believed nevertheless

- in a batch, if several tuples lie there together: history, or a part of it, is never refused;
- from one batch to the next, if it is the second among few tuples: a source whose clock was set loses one tuple.

Numbers in, numbers out. Every rule errs on the side of believing: while little is known nothing is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np

from headgate.heartbeat.arrivals import Arrivals, Ticks

KNOWN = 100
"""So many tuples must have come before anything counts as unusual."""

SLACK = 30
"""So many times as far as usual is too far."""

TOGETHER = 3
"""So many tuples of a batch, close to each other, are believed."""

AGAIN = 10
"""A second tuple beyond the limit is believed if no more than so many of each source came between it and the first."""

REMEMBERED = 10_000
"""After so many tuples, a jump counts as about a third of what it was."""

TOPS = 1_000
"""How many of the largest timestamps of a batch are looked at."""


@dataclass(slots=True)
class Pace:
    """How the timestamps of a stream go on."""

    tuples: int = 0
    """Since the engine was started."""

    first: int = 0
    first_us: int = 0
    largest: int = 0
    came_us: int = 0
    """The first timestamp, and the largest, and when they came."""

    jump: float = 0.0
    next_jump: float = 0.0
    """The largest that the timestamps jumped ahead of their pace lately, and the next largest: the largest may be an
    accident.
    """

    doubted: bool = False
    """True if a tuple was set aside not long ago."""

    since: int = 0
    """How many tuples have come since then."""

    def rate(self) -> float:
        """Ticks a microsecond on the engine's clock, so far."""
        passed_us = self.came_us - self.first_us
        return (self.largest - self.first) / passed_us if passed_us > 0 else 0.0

    def expected(self, now_us: int, least_rate: float) -> float:
        """How far the largest timestamp goes on until now if it keeps its pace, and a bit."""
        return 1.1 * max(self.rate(), least_rate) * max(now_us - self.came_us, 0)

    def reach(self, least: int) -> int:
        """How far ahead of what is expected a timestamp may lie without being doubted."""
        return max(int(SLACK * self.next_jump), least, 1)

    def limit(self, now_us: int, least: int, least_rate: float) -> int | None:
        """Timestamps beyond this are doubted; None while too little is known."""
        if self.tuples < KNOWN:
            return None
        return self.largest + int(self.expected(now_us, least_rate)) + self.reach(least)

    def arrived(self, arrivals: Arrivals, now_us: int, least_rate: float) -> None:
        """Take tuples that were believed."""
        largest, count = int(arrivals.largest.max()), arrivals.total
        if not self.tuples:
            self.first, self.first_us, self.largest, self.came_us = (
                int(arrivals.smallest.min()),
                now_us,
                largest,
                now_us,
            )
        fades = exp(-count / REMEMBERED)
        jump = 0.0
        if largest > self.largest:
            jump = max(_jump(self.largest, arrivals) - self.expected(now_us, least_rate), 0.0)
            self.largest, self.came_us = largest, now_us
        before = self.jump * fades
        self.jump, self.next_jump = max(before, jump), max(self.next_jump * fades, min(before, jump))
        self.tuples += count
        self.since += count

    def doubt(self, sources: int) -> bool:
        """Note that a batch has tuples beyond the limit; True if they are believed, as others came not long ago."""
        again = self.doubted and self.since <= AGAIN * max(sources, 1)
        self.doubted, self.since = not again, 0
        return again

    def resumed(self) -> None:
        """Note that the stream was not read, nobody knows for how long: learn anew what is usual."""
        self.tuples = 0


def together(tops: Ticks, reach: int) -> int | None:
    """The largest timestamp that several tuples confirm, of the largest of a batch in falling order; None if there is
    none.

    Those belong together that lie no further apart than the reach, or many times what is usual among them.
    """
    if len(tops) < TOGETHER:
        return None
    gaps = tops[:-1] - tops[1:]
    usual = int(np.sort(gaps)[(len(gaps) - 1) // 2])
    starts = np.concatenate([[0], np.flatnonzero(gaps > max(reach, SLACK * usual)) + 1])
    sizes = np.diff(starts, append=len(tops))
    confirmed = np.flatnonzero(sizes >= TOGETHER)
    return int(tops[starts[confirmed[0]]]) if len(confirmed) else None


def largest_of(values: Ticks) -> Ticks:
    """The largest of many, in falling order."""
    if len(values) > TOPS:
        values = np.partition(values, len(values) - TOPS)[-TOPS:]
    return np.sort(values)[::-1]


def _jump(largest: int, arrivals: Arrivals) -> float:
    """The largest distance from one timestamp to the next that is larger; of a batch that was summed up, the mean."""
    if arrivals.rows is None:
        return (int(arrivals.largest.max()) - largest) / arrivals.total
    ahead = np.sort(arrivals.rows[1][arrivals.rows[1] > largest])
    return float(np.diff(ahead, prepend=largest).max())
