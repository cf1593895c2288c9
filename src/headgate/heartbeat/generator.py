"""Heartbeat generation: from what arrived and when, and from the bounds, up to when each source is complete.

    a tuple stamped τ arrives from i at c  ⇒  from c + delay on, j is complete up to τ - within, for each bound from i
    to j

where the delay of a bound that sources promise at emission includes the latency of j, because a tuple that j sent in
time may still be under way. Sources with the same bounds form a cohort: bounds are kept between cohorts, numbers per
source, and nothing per pair of sources.

A bound that was only learnt between different sources is a guess: it says nothing of a source that is away. So it is
relied on no further than j's timestamps have usually gone on from one tuple to the next; if j is silent for longer, it
may be behind.

In: arrivals with the instant of the engine's clock, in its order; all arrivals of an instant come before the heartbeats
at it. Out: for every source the largest timestamp τ such that nothing stamped up to τ can still arrive; NEVER while
that is unknown.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from headgate.catalog.skew import Bounds, SkewBound
from headgate.heartbeat.arrivals import NEVER, Arrivals, Ticks
from headgate.heartbeat.cohort import Cohort
from headgate.heartbeat.counted import Members
from headgate.ticks import Tick


class Generator:
    """The cohorts of all streams, the bounds between them, and up to when each source is complete."""

    def __init__(self, unit_us: int = 1_000) -> None:
        self.unit_us = unit_us
        self.cohorts: dict[int, Cohort] = {}
        self.towards: dict[int, dict[int, Bounds]] = {}
        """Declared bounds by target cohort and sender: from any source of the one to any other source of the other."""
        self.guessed: dict[int, dict[int, Bounds]] = {}
        """Learnt bounds by target cohort and sender. A silent source is not held to them."""
        self._next = 0

    def add(self, latency_us: int = 0) -> int:
        """Make a cohort without sources, and return its number."""
        self._next += 1
        self.cohorts[self._next] = Cohort(self.unit_us, latency_us)
        self.towards[self._next] = {}
        self.guessed[self._next] = {}
        return self._next

    def set_unit(self, unit_us: int) -> None:
        """Set how finely delays are told apart from now on."""
        self.unit_us = unit_us
        for cohort in self.cohorts.values():
            cohort.set_unit(unit_us)

    def remove(self, number: int) -> None:
        """Forget a cohort, and the bounds from and to it."""
        del self.cohorts[number]
        del self.towards[number]
        del self.guessed[number]
        for senders in (*self.towards.values(), *self.guessed.values()):
            senders.pop(number, None)

    def bind(self, first: int, second: int, bounds: Bounds, guessed: Bounds = ()) -> None:
        """Put declared and learnt bounds from one cohort to another in force. Their delays in time include the latency
        of the second cohort.
        """
        for known, those in ((self.towards, bounds), (self.guessed, guessed)):
            known[second].pop(first, None)
            if those:
                known[second][first] = those
        maxima, latency_us = self.cohorts[first].maxima, self.cohorts[second].latency_us
        waits = (latency_us + 1 if bound.tuples else bound.after_us for bound in (*bounds, *guessed))
        maxima.horizon_us = max([maxima.horizon_us, *waits])

    def complete(self) -> None:
        """Add what is missing in state that was saved before learnt bounds were kept apart from declared ones."""
        if not hasattr(self, "guessed"):
            self.guessed = {number: {} for number in self.cohorts}

    @property
    def between(self) -> dict[tuple[int, int], Bounds]:
        """The declared bounds by pair of cohorts: (sender, target)."""
        return {
            (first, second): bounds for second, senders in self.towards.items() for first, bounds in senders.items()
        }

    def arrived(self, number: int, members: Members, arrivals: Arrivals, now_us: int) -> None:
        """Take tuples of a cohort; `members` are the places of the sources in the order of the arrivals."""
        cohort = self.cohorts[number]
        cohort.resize(int(members.max(initial=-1)) + 1)
        for bound in cohort.own:
            if bound.after_us:
                cohort.delayed(bound.after_us, now_us)  # it waits from now on, whenever it is asked for
            if bound.tuples and arrivals.rows is not None and not cohort.latency_us:
                cohort.counted(None, bound.tuples).take_rows(members, arrivals, cohort.largest[members], now_us)
            elif bound.tuples:
                cohort.counted(None, bound.tuples).take(
                    members, arrivals.counts, cohort.sent_before(now_us)[members], now_us
                )
        for first, bounds in self.towards[number].items():
            for bound in bounds:
                if bound.tuples:
                    seen = self.cohorts[first].maxima.before(now_us - cohort.latency_us)
                    known = seen.others_of(members) if first == number else np.full(len(members), seen.largest)
                    cohort.counted(first, bound.tuples).take(members, arrivals.counts, known, now_us)
        cohort.take(members, arrivals.largest, now_us)

    def settle(self, now_us: int) -> None:
        """Let promises take effect that have waited until now."""
        for cohort in self.cohorts.values():
            cohort.settle(now_us)

    def punctuated(self, number: int, members: Members, upto: Ticks, now_us: int) -> None:
        """Take heartbeats that sources sent themselves: each sends nothing stamped up to there any more."""
        cohort = self.cohorts[number]
        cohort.resize(int(members.max(initial=-1)) + 1)
        cohort.punctuations.add(members, upto, now_us)

    def promised(self, number: int, now_us: int, senders: Collection[int] | None = None) -> Ticks:
        """Up to when each source of the cohort is complete, by what it sent and what the sending cohorts did; None:
        all cohorts count as senders.
        """
        cohort = self.cohorts[number]
        result = cohort.punctuations.at(now_us)[: cohort.size].copy()
        for bound in cohort.own:
            np.maximum(result, self.by_itself(number, bound, now_us), out=result)
        for first, bounds in self.towards[number].items():
            for bound in bounds if senders is None or first in senders else ():
                np.maximum(result, self.by_others(first, number, bound, now_us), out=result)
        for first, bounds in self.guessed[number].items():
            for bound in bounds if senders is None or first in senders else ():
                np.maximum(result, self.by_guess(first, number, bound, now_us), out=result)
        return result

    def by_guess(self, first: int, number: int, bound: SkewBound, now_us: int) -> Ticks:
        """Up to when each source of the second cohort is complete by one learnt bound from the first, as far as the
        bound is relied on.
        """
        return np.minimum(self.by_others(first, number, bound, now_us), self.cohorts[number].relied_on())

    def by_itself(self, number: int, bound: SkewBound, now_us: int) -> Ticks:
        """Up to when each source is complete by one bound with itself."""
        cohort = self.cohorts[number]
        if bound.tuples:
            seen = cohort.counted(None, bound.tuples).promised.at(now_us)
        else:
            seen = cohort.delayed(bound.after_us, now_us).at(now_us) if bound.after_us else cohort.largest
        return seen[: cohort.size] - bound.within

    def by_others(self, first: int, number: int, bound: SkewBound, now_us: int) -> Ticks:
        """Up to when each source of the second cohort is complete by one bound from the first: by the largest timestamp
        of any source but itself.
        """
        cohort = self.cohorts[number]
        if bound.tuples:
            return cohort.counted(first, bound.tuples).promised.at(now_us)[: cohort.size] - bound.within
        found = self.cohorts[first].maxima.ago(bound.after_us, now_us)
        if first == number:
            return found.others_of(np.arange(cohort.size)) - bound.within
        return np.full(cohort.size, found.largest - bound.within)

    def by_anybody(self, number: int, now_us: int) -> Tick:
        """Up to when a forgotten source of the cohort is complete by what others sent; NEVER if that is unknown."""
        found = [NEVER]
        for first, bounds in self.towards[number].items():
            for bound in bounds:
                if not bound.tuples:
                    seen = self.cohorts[first].maxima.ago(bound.after_us, now_us)
                    found.append((seen.of_nobody() if first == number else seen.largest) - bound.within)
        return max(found)
