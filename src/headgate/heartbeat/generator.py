"""Heartbeat generation: from what arrived and when, and from the bounds, up to when each source is complete.

    a tuple stamped τ arrives from i at c  ⇒  from c + delay on, j is complete up to τ - within, for each bound from i to j

where the delay of a bound that sources promise at emission includes the latency of j, because a tuple that j sent in time may
still be under way. Sources with the same bounds form a cohort: bounds are kept between cohorts, numbers per source, and nothing
per pair of sources.

In: arrivals with the instant of the engine's clock, in its order; all arrivals of an instant come before the heartbeats at it.
Out: for every source the largest timestamp τ such that nothing stamped up to τ can still arrive; NEVER while that is unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable

import numpy as np
from numpy.typing import NDArray

from headgate.heartbeat.arrivals import NEVER, Arrivals, Ticks
from headgate.heartbeat.bounds import Bound, Bounds
from headgate.heartbeat.maxima import Delayed, Maxima, grown, top

Members = NDArray[np.intp]


class Cohort:
    """Sources with the same bounds: what each has sent, and what follows from it for itself."""

    def __init__(self, unit_us: int, latency_us: int = 0) -> None:
        self.unit_us = unit_us
        self.latency_us = latency_us
        self.own: Bounds = ()
        """What a source says about itself; delays in time include the latency, where there is one."""
        self.size = 0
        self.largest = np.empty(0, np.int64)
        self.heard_us = np.empty(0, np.int64)
        self.maxima = Maxima(unit_us)
        self.punctuations = Delayed(latency_us, unit_us, 0)
        self._delayed: dict[int, Delayed] = {}
        self._counted: dict[Hashable, Counted] = {}

    def resize(self, size: int) -> None:
        self.size = max(size, self.size)
        self.largest = grown(self.largest, size, NEVER)
        self.heard_us = grown(self.heard_us, size, NEVER)
        for delayed in (self.punctuations, *self._delayed.values()):
            delayed.resize(len(self.largest))
        for counted in self._counted.values():
            counted.resize(len(self.largest))

    def set_unit(self, unit_us: int) -> None:
        self.unit_us = self.maxima.unit_us = self.punctuations.unit_us = unit_us
        for delayed in (*self._delayed.values(), *self.promised_by_count()):
            delayed.unit_us = unit_us

    def delayed(self, delay_us: int, now_us: int) -> Delayed:
        """Its sources' largest timestamps as they were that long ago; asked for the first time, from now on."""
        if delay_us not in self._delayed:
            fresh = self._delayed[delay_us] = Delayed(delay_us, self.unit_us, len(self.largest))
            known = np.flatnonzero(self.largest > NEVER)
            fresh.add(known, self.largest[known], now_us)
        return self._delayed[delay_us]

    def counted(self, sender: Hashable, tuples: int) -> Counted:
        """What `sender` had sent before the last so many tuples of each source; None stands for the source itself."""
        key = (sender, tuples)
        if key not in self._counted:
            self._counted[key] = Counted(tuples, self.latency_us, self.unit_us, len(self.largest))
        return self._counted[key]

    def promised_by_count(self) -> list[Delayed]:
        """What bounds with a delay in tuples promised; it waits for the latency."""
        return [counted.promised for counted in self._counted.values()]

    def sent_before(self, now_us: int) -> Ticks:
        """The largest timestamps of the tuples that were surely sent before any that arrives now."""
        return self.delayed(self.latency_us, now_us).at(now_us - 1) if self.latency_us else self.largest

    def take(self, members: Members, largest: Ticks, now_us: int) -> None:
        self.largest[members] = np.maximum(self.largest[members], largest)
        self.heard_us[members] = now_us
        for delayed in self._delayed.values():
            delayed.add(members, largest, now_us)
        self.maxima.add(top(members, largest), now_us)

    def inherit(self, members: Members, other: Cohort, theirs: Members) -> None:
        """Take over sources of another cohort, each to a place of its own, with what it sent last."""
        self.largest[members] = other.largest[theirs]
        self.heard_us[members] = other.heard_us[theirs]
        self.maxima.add(top(members, self.largest[members]), int(self.heard_us[members].max()))

    def kept(self) -> int:
        """How many numbers wait for their delay."""
        return len(self.maxima) + sum(map(len, self._delayed.values()))


class Counted:
    """For bounds with a delay in tuples: per source, what was known when the last but `tuples` of its tuples arrived.

    If a bound from i to j waits for n tuples of j, then after any n tuples of j everything that i had sent before the first of
    them counts. So a ring of n snapshots a source; the oldest is the promise, once those n can have overtaken nothing any more.
    """

    def __init__(self, tuples: int, latency_us: int, unit_us: int, size: int) -> None:
        self.tuples = tuples
        self.snapshots = np.full((size, tuples), NEVER)
        self.promised = Delayed(latency_us, unit_us, size)

    def resize(self, size: int) -> None:
        self.snapshots = grown(self.snapshots, size, NEVER)
        self.promised.resize(size)

    def take(self, members: Members, counts: Ticks, known: Ticks, now_us: int) -> None:
        """So many tuples of each source came together; `known` is what the sender had sent before."""
        steps = np.minimum(counts, self.tuples)
        for step in np.unique(steps):
            chosen = steps == step
            self._shift(members[chosen], known[chosen], int(step))
        self._promise(members, now_us)

    def take_rows(self, members: Members, arrivals: Arrivals, largest: Ticks, now_us: int) -> None:
        """The source's own tuples one by one: `largest` is what each source had sent before the first of them."""
        assert arrivals.rows is not None
        positions, ticks = arrivals.rows
        order = np.argsort(positions, kind="stable")
        owners, stamps = positions[order], ticks[order]
        ends = np.cumsum(arrivals.counts)
        from_end = ends[owners] - 1 - np.arange(len(owners))
        so_far = largest.copy()
        early = from_end >= self.tuples
        np.maximum.at(so_far, owners[early], stamps[early])
        for position in range(min(self.tuples, int(arrivals.counts.max(initial=0))) - 1, -1, -1):
            chosen = from_end == position
            those = owners[chosen]
            self._shift(members[those], so_far[those], 1)
            so_far[those] = np.maximum(so_far[those], stamps[chosen])
        self._promise(members, now_us)

    def _shift(self, members: Members, known: Ticks, steps: int) -> None:
        if steps < self.tuples:
            self.snapshots[members, :-steps] = self.snapshots[members, steps:]
        self.snapshots[members, -steps:] = known[:, np.newaxis]

    def _promise(self, members: Members, now_us: int) -> None:
        self.promised.add(members, self.snapshots[members, 0], now_us)


class Generator:
    def __init__(self, unit_us: int = 1_000) -> None:
        self.unit_us = unit_us
        self.cohorts: dict[int, Cohort] = {}
        self.towards: dict[int, dict[int, Bounds]] = {}
        """Per cohort the bounds to any source of it from any source of another, or from any other of the same."""
        self._next = 0

    def add(self, latency_us: int = 0) -> int:
        """A new cohort without sources; its number."""
        self._next += 1
        self.cohorts[self._next] = Cohort(self.unit_us, latency_us)
        self.towards[self._next] = {}
        return self._next

    def set_unit(self, unit_us: int) -> None:
        """How finely delays are told apart from now on."""
        self.unit_us = unit_us
        for cohort in self.cohorts.values():
            cohort.set_unit(unit_us)

    def remove(self, number: int) -> None:
        del self.cohorts[number]
        del self.towards[number]
        for senders in self.towards.values():
            senders.pop(number, None)

    def bind(self, first: int, second: int, bounds: Bounds) -> None:
        """Bounds between different sources; delays in time include the latency, where there is one."""
        self.towards[second].pop(first, None)
        if bounds:
            self.towards[second][first] = bounds
        maxima, latency_us = self.cohorts[first].maxima, self.cohorts[second].latency_us
        maxima.horizon_us = max([maxima.horizon_us, *(latency_us + 1 if bound.tuples else bound.after_us for bound in bounds)])

    @property
    def between(self) -> dict[tuple[int, int], Bounds]:
        """The same by pairs."""
        return {(first, second): bounds for second, senders in self.towards.items() for first, bounds in senders.items()}

    def arrived(self, number: int, members: Members, arrivals: Arrivals, now_us: int) -> None:
        """Tuples came; `members` are the sources in the order in which `arrivals` has them, each once."""
        cohort = self.cohorts[number]
        cohort.resize(int(members.max(initial=-1)) + 1)
        for bound in cohort.own:
            if bound.after_us:
                cohort.delayed(bound.after_us, now_us)  # it waits from now on, whenever it is asked for
            if bound.tuples and arrivals.rows is not None and not cohort.latency_us:
                cohort.counted(None, bound.tuples).take_rows(members, arrivals, cohort.largest[members], now_us)
            elif bound.tuples:
                cohort.counted(None, bound.tuples).take(members, arrivals.counts, cohort.sent_before(now_us)[members], now_us)
        for first, bounds in self.towards[number].items():
            for bound in bounds:
                if bound.tuples:
                    seen = self.cohorts[first].maxima.before(now_us - cohort.latency_us)
                    known = seen.others_of(members) if first == number else np.full(len(members), seen.largest)
                    cohort.counted(first, bound.tuples).take(members, arrivals.counts, known, now_us)
        cohort.take(members, arrivals.largest, now_us)

    def punctuated(self, number: int, members: Members, upto: Ticks, now_us: int) -> None:
        """These sources say themselves that they will send nothing stamped up to there any more, each for itself."""
        cohort = self.cohorts[number]
        cohort.resize(int(members.max(initial=-1)) + 1)
        cohort.punctuations.add(members, upto, now_us)

    def promised(self, number: int, now_us: int, senders: Collection[int] | None = None) -> Ticks:
        """Up to when each source of the cohort is complete, by what it sent and what these others did; None: all others."""
        cohort = self.cohorts[number]
        result = cohort.punctuations.at(now_us)[: cohort.size].copy()
        for bound in cohort.own:
            np.maximum(result, self.by_itself(number, bound, now_us), out=result)
        for first, bounds in self.towards[number].items():
            for bound in bounds if senders is None or first in senders else ():
                np.maximum(result, self.by_others(first, number, bound, now_us), out=result)
        return result

    def by_itself(self, number: int, bound: Bound, now_us: int) -> Ticks:
        """What each source says about itself by one bound."""
        cohort = self.cohorts[number]
        if bound.tuples:
            seen = cohort.counted(None, bound.tuples).promised.at(now_us)
        else:
            seen = cohort.delayed(bound.after_us, now_us).at(now_us) if bound.after_us else cohort.largest
        return seen[: cohort.size] - bound.within

    def by_others(self, first: int, number: int, bound: Bound, now_us: int) -> Ticks:
        """What the sources of a cohort say by one bound about each source of another: the largest timestamp of any but itself."""
        cohort = self.cohorts[number]
        if bound.tuples:
            return cohort.counted(first, bound.tuples).promised.at(now_us)[: cohort.size] - bound.within
        found = self.cohorts[first].maxima.ago(bound.after_us, now_us)
        if first == number:
            return found.others_of(np.arange(cohort.size)) - bound.within
        return np.full(cohort.size, found.largest - bound.within)

    def next_change(self, number: int, now_us: int) -> int | None:
        """When a promise about the cohort that waits for its delay takes effect, if one does."""
        cohort = self.cohorts[number]
        waiting = [cohort.delayed(bound.after_us, now_us).next_change() for bound in cohort.own if bound.after_us]
        waiting += [delayed.next_change() for delayed in (cohort.punctuations, *cohort.promised_by_count())]
        for first, bounds in self.towards[number].items():
            waiting += [self.cohorts[first].maxima.next_change(bound.after_us, now_us) for bound in bounds if bound.after_us]
        return min((instant for instant in waiting if instant is not None), default=None)
