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
that is unknown."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from headgate.catalog.skew import Bounds, SkewBound
from headgate.heartbeat.arrivals import NEVER, Arrivals, Ticks
from headgate.heartbeat.maxima import Delayed, Maxima, grown, top
from headgate.ticks import Tick

Members = NDArray[np.intp]


REMEMBERED = 1_024
"""After so many tuples of each source, a pause counts as about a third of what it was."""

STEADY, USUAL = 64, 8
"""Over how many tuples the mean distance of a source's timestamps is taken, and how many must have come before it
counts.
"""


class Cohort:
    """Sources with the same bounds: what each has sent, and what follows from it for itself."""

    forgotten = False
    """Whether sources were forgotten of which others may be declared to say how far they are."""

    def __init__(self, unit_us: int, latency_us: int = 0) -> None:
        self.unit_us = unit_us
        self.latency_us = latency_us
        self.own: Bounds = ()
        """What a source says about itself; delays in time include the latency, where there is one."""
        self.size = 0
        self.largest = np.empty(0, np.int64)
        self.heard_us = np.empty(0, np.int64)
        self.awaited_us = np.empty(0, np.int64)
        """Since when a source is waited for although it has never spoken; NEVER: it is not."""
        self.steps = np.zeros((0, 2))
        """Of each source, how far its timestamps go on from one tuple to the next: the mean, and of how many."""
        self.pauses = np.zeros(2)
        """Of all sources, the longest and the next longest of the recent steps, as so many times the mean of their
        source.
        """
        self.maxima = Maxima(unit_us)
        self.punctuations = Delayed(latency_us, unit_us, 0)
        self._delayed: dict[int, Delayed] = {}
        self._counted: dict[Hashable, Counted] = {}

    def resize(self, size: int) -> None:
        if size <= self.size:
            return
        self.size = size
        self.largest = grown(self.largest, size, NEVER)
        self.heard_us = grown(self.heard_us, size, NEVER)
        self.awaited_us = grown(self.awaited_us, len(self.largest), NEVER)
        self.steps = grown(self.steps, size, 0)
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

    def stepped(self, members: Members, arrivals: Arrivals) -> None:
        """How far on tuples are that are about to be taken. Of several at once, the first step and the mean are
        known.
        """
        known = (self.largest[members] > NEVER) & (arrivals.counts > 0)
        step = np.where(known, arrivals.largest - self.largest[members], 0).clip(0) / np.maximum(arrivals.counts, 1)
        mean, seen = self.steps[members].T
        pause = np.maximum(np.where(known, arrivals.smallest - self.largest[members], 0), step)
        times = np.where((seen >= USUAL) & (mean > 0), pause / np.maximum(mean, 1e-9), 0)
        faded = self.pauses * np.exp(-arrivals.total / (REMEMBERED * max(self.size, 1)))
        self.pauses = -np.sort(-np.concatenate([faded, times]))[:2]
        weight = np.where(known, arrivals.counts / np.clip(seen + arrivals.counts, 1, STEADY), 0).clip(0, 1)
        self.steps[members] = np.stack(
            [mean + weight * (step - mean), seen + np.where(known, arrivals.counts, 0)], axis=1
        )

    def relied_on(self) -> Ticks:
        """Up to where others' tuples may say how far each source is by what was learnt: a pause beyond its largest
        timestamp.

        That is the next longest of all, at the pace of the source: the longest may have been an outage.
        """
        return self.largest[: self.size] + np.ceil(self.pauses[1] * self.steps[: self.size, 0]).astype(np.int64)

    def complete(self) -> None:
        """It was saved before steps and pauses were known."""
        if not hasattr(self, "steps"):
            self.steps, self.pauses = np.zeros((len(self.largest), 2)), np.zeros(2)

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
        self.steps[members] = other.steps[theirs]
        self.pauses = np.maximum(self.pauses, other.pauses)
        self.maxima.add(top(members, self.largest[members]), int(self.heard_us[members].max()))

    def waited_for_us(self, since_us: int) -> Ticks:
        """Since when each source is waited for that has not spoken, if its stream is since then; NEVER: it is not."""
        awaited_us = self.awaited_us[: self.size]
        return np.where(awaited_us > NEVER, np.maximum(awaited_us, since_us), NEVER)

    def prune(self, towards: Mapping[int, Bounds], delays_us: Iterable[int]) -> None:
        """Forget what no bound to its sources waits for any more, and nobody who estimates."""
        needed_us = {self.latency_us, *delays_us, *(bound.after_us for bound in self.own)}
        self._delayed = {us: delayed for us, delayed in self._delayed.items() if us in needed_us}
        counted: set[Hashable] = {(None, bound.tuples) for bound in self.own}
        counted |= {(first, bound.tuples) for first, bounds in towards.items() for bound in bounds}
        self._counted = {key: one for key, one in self._counted.items() if key in counted}

    def keep(self, kept: Members) -> Members:
        """Forget all sources but these; the new number of each, -1 for those that are forgotten."""
        numbers = np.full(self.size, -1)
        numbers[kept] = np.arange(len(kept))
        self.size = len(kept)
        self.largest, self.heard_us, self.awaited_us = self.largest[kept], self.heard_us[kept], self.awaited_us[kept]
        self.steps = self.steps[kept]
        for delayed in (self.punctuations, *self._delayed.values()):
            delayed.keep(kept, numbers)
        for counted in self._counted.values():
            counted.keep(kept, numbers)
        self.maxima.renumber(numbers)
        return numbers

    def settle(self, now_us: int) -> None:
        """The instant has come: what has waited for it waits no longer."""
        for delayed in (self.punctuations, *self._delayed.values(), *self.promised_by_count()):
            delayed.settle(now_us)

    def kept(self) -> int:
        """How many numbers wait for their delay."""
        return len(self.maxima) + sum(map(len, self._delayed.values()))


class Counted:
    """For bounds with a delay in tuples: per source, what was known when the last but `tuples` of its tuples arrived.

    If a bound from i to j waits for n tuples of j, then after any n tuples of j everything that i had sent before the
    first of them counts. So a ring of n snapshots a source; the oldest is the promise, once those n can have overtaken
    nothing any more."""

    def __init__(self, tuples: int, latency_us: int, unit_us: int, size: int) -> None:
        self.tuples = tuples
        self.snapshots = np.full((size, tuples), NEVER)
        self.promised = Delayed(latency_us, unit_us, size)

    def resize(self, size: int) -> None:
        self.snapshots = grown(self.snapshots, size, NEVER)
        self.promised.resize(size)

    def keep(self, kept: Members, numbers: Members) -> None:
        self.snapshots = self.snapshots[kept]
        self.promised.keep(kept, numbers)

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
        self.guessed: dict[int, dict[int, Bounds]] = {}
        """Learnt bounds by target cohort and sender. A silent source is not held to them."""
        self._next = 0

    def add(self, latency_us: int = 0) -> int:
        """A new cohort without sources; its number."""
        self._next += 1
        self.cohorts[self._next] = Cohort(self.unit_us, latency_us)
        self.towards[self._next] = {}
        self.guessed[self._next] = {}
        return self._next

    def set_unit(self, unit_us: int) -> None:
        """How finely delays are told apart from now on."""
        self.unit_us = unit_us
        for cohort in self.cohorts.values():
            cohort.set_unit(unit_us)

    def remove(self, number: int) -> None:
        del self.cohorts[number]
        del self.towards[number]
        del self.guessed[number]
        for senders in (*self.towards.values(), *self.guessed.values()):
            senders.pop(number, None)

    def bind(self, first: int, second: int, bounds: Bounds, guessed: Bounds = ()) -> None:
        """Bounds between different sources, declared and learnt ones; delays in time include the latency, where there
        is one.
        """
        for known, those in ((self.towards, bounds), (self.guessed, guessed)):
            known[second].pop(first, None)
            if those:
                known[second][first] = those
        maxima, latency_us = self.cohorts[first].maxima, self.cohorts[second].latency_us
        waits = (latency_us + 1 if bound.tuples else bound.after_us for bound in (*bounds, *guessed))
        maxima.horizon_us = max([maxima.horizon_us, *waits])

    def complete(self) -> None:
        """It was saved before learnt bounds were kept apart from declared ones."""
        if not hasattr(self, "guessed"):
            self.guessed = {number: {} for number in self.cohorts}

    @property
    def between(self) -> dict[tuple[int, int], Bounds]:
        """The declared bounds by pair of cohorts: (sender, target)."""
        return {
            (first, second): bounds for second, senders in self.towards.items() for first, bounds in senders.items()
        }

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
        """The instant has come: what has waited for it waits no longer."""
        for cohort in self.cohorts.values():
            cohort.settle(now_us)

    def punctuated(self, number: int, members: Members, upto: Ticks, now_us: int) -> None:
        """These sources say themselves that they will send nothing stamped up to there any more, each for itself."""
        cohort = self.cohorts[number]
        cohort.resize(int(members.max(initial=-1)) + 1)
        cohort.punctuations.add(members, upto, now_us)

    def promised(self, number: int, now_us: int, senders: Collection[int] | None = None) -> Ticks:
        """Up to when each source of the cohort is complete, by what it sent and what these others did; None: all
        others.
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
        """What the sources of a cohort say about each of another by one bound that was learnt, as far as it is relied
        on.
        """
        return np.minimum(self.by_others(first, number, bound, now_us), self.cohorts[number].relied_on())

    def by_itself(self, number: int, bound: SkewBound, now_us: int) -> Ticks:
        """What each source says about itself by one bound."""
        cohort = self.cohorts[number]
        if bound.tuples:
            seen = cohort.counted(None, bound.tuples).promised.at(now_us)
        else:
            seen = cohort.delayed(bound.after_us, now_us).at(now_us) if bound.after_us else cohort.largest
        return seen[: cohort.size] - bound.within

    def by_others(self, first: int, number: int, bound: SkewBound, now_us: int) -> Ticks:
        """What the sources of a cohort say by one bound about each source of another: the largest timestamp of any but
        itself.
        """
        cohort = self.cohorts[number]
        if bound.tuples:
            return cohort.counted(first, bound.tuples).promised.at(now_us)[: cohort.size] - bound.within
        found = self.cohorts[first].maxima.ago(bound.after_us, now_us)
        if first == number:
            return found.others_of(np.arange(cohort.size)) - bound.within
        return np.full(cohort.size, found.largest - bound.within)

    def by_anybody(self, number: int, now_us: int) -> Tick:
        """What others say about a source of the cohort that was forgotten; NEVER if nobody says anything."""
        found = [NEVER]
        for first, bounds in self.towards[number].items():
            for bound in bounds:
                if not bound.tuples:
                    seen = self.cohorts[first].maxima.ago(bound.after_us, now_us)
                    found.append((seen.of_nobody() if first == number else seen.largest) - bound.within)
        return max(found)
