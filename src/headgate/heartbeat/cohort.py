"""A cohort: sources with the same bounds, with what each has sent and when it was heard of.

Numbers are kept per source in arrays; a source is its place in them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from headgate.catalog.skew import Bounds
from headgate.heartbeat.arrivals import NEVER, Arrivals, Ticks
from headgate.heartbeat.counted import Counted, Members
from headgate.heartbeat.maxima import Delayed, Maxima, grown, top

REMEMBERED = 1_024
"""After so many tuples of each source, a pause counts as about a third of what it was."""

STEADY = 64
"""The mean distance of a source's timestamps is taken over so many tuples."""

USUAL = 8
"""The mean counts once so many tuples have come."""


class Cohort:
    """Sources with the same bounds: what each has sent, and what follows from it for itself."""

    forgotten = False
    """True if sources were forgotten although others may be declared to say how far they are."""

    def __init__(self, unit_us: int, latency_us: int = 0) -> None:
        self.unit_us = unit_us
        self.latency_us = latency_us
        self.own: Bounds = ()
        """The bounds of each source with itself. Delays in time include the latency."""
        self.size = 0
        """How many sources there are. The arrays may be longer."""
        self.largest = np.empty(0, np.int64)
        """By source: the largest timestamp."""
        self.heard_us = np.empty(0, np.int64)
        """By source: when it was last heard of."""
        self.awaited_us = np.empty(0, np.int64)
        """By source: since when it is waited for although it has never spoken; NEVER: it is not waited for."""
        self.steps = np.zeros((0, 2))
        """By source: how far its timestamps go on from one tuple to the next, on average, and over how many tuples."""
        self.pauses = np.zeros(2)
        """The longest and the next longest of the recent steps of all sources, as multiples of their source's mean."""
        self.maxima = Maxima(unit_us)
        """The largest timestamps of all sources, now and a while ago."""
        self.punctuations = Delayed(latency_us, unit_us, 0)
        """By source: the heartbeats that it sent itself."""
        self._delayed: dict[int, Delayed] = {}
        self._counted: dict[Hashable, Counted] = {}

    def resize(self, size: int) -> None:
        """Make room for so many sources."""
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
        """Set how finely delays are told apart from now on."""
        self.unit_us = self.maxima.unit_us = self.punctuations.unit_us = unit_us
        for delayed in (*self._delayed.values(), *self.promised_by_count()):
            delayed.unit_us = unit_us

    def delayed(self, delay_us: int, now_us: int) -> Delayed:
        """By source: the largest timestamp as it was that long ago. It is kept from the first time it is asked for."""
        if delay_us not in self._delayed:
            fresh = self._delayed[delay_us] = Delayed(delay_us, self.unit_us, len(self.largest))
            known = np.flatnonzero(self.largest > NEVER)
            fresh.add(known, self.largest[known], now_us)
        return self._delayed[delay_us]

    def counted(self, sender: Hashable, tuples: int) -> Counted:
        """By source: what the sender had sent before the last so many tuples of the source; None: the source itself."""
        key = (sender, tuples)
        if key not in self._counted:
            self._counted[key] = Counted(tuples, self.latency_us, self.unit_us, len(self.largest))
        return self._counted[key]

    def promised_by_count(self) -> list[Delayed]:
        """What follows from bounds with a delay in tuples. It waits for the latency."""
        return [counted.promised for counted in self._counted.values()]

    def sent_before(self, now_us: int) -> Ticks:
        """The largest timestamps of the tuples that were surely sent before any that arrives now."""
        return self.delayed(self.latency_us, now_us).at(now_us - 1) if self.latency_us else self.largest

    def stepped(self, members: Members, arrivals: Arrivals) -> None:
        """Note how far the timestamps of tuples go on that are about to be taken. Of several tuples at once, the first
        step and the mean are known.
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
        """By source: the limit up to which learnt bounds from others are relied on, one pause beyond its largest
        timestamp.

        The pause is the next longest of all, at the pace of the source: the longest may have been an outage.
        """
        return self.largest[: self.size] + np.ceil(self.pauses[1] * self.steps[: self.size, 0]).astype(np.int64)

    def complete(self) -> None:
        """Add what is missing in state that was saved before steps and pauses were known."""
        if not hasattr(self, "steps"):
            self.steps, self.pauses = np.zeros((len(self.largest), 2)), np.zeros(2)

    def take(self, members: Members, largest: Ticks, now_us: int) -> None:
        """Note the largest timestamps of tuples that came from these sources."""
        self.largest[members] = np.maximum(self.largest[members], largest)
        self.heard_us[members] = now_us
        for delayed in self._delayed.values():
            delayed.add(members, largest, now_us)
        self.maxima.add(top(members, largest), now_us)

    def inherit(self, members: Members, other: Cohort, theirs: Members) -> None:
        """Take over sources of another cohort with what they sent last, each to a place of its own."""
        self.largest[members] = other.largest[theirs]
        self.heard_us[members] = other.heard_us[theirs]
        self.steps[members] = other.steps[theirs]
        self.pauses = np.maximum(self.pauses, other.pauses)
        self.maxima.add(top(members, self.largest[members]), int(self.heard_us[members].max()))

    def waited_for_us(self, since_us: int) -> Ticks:
        """By source: since when it is waited for if it has not spoken, no earlier than `since_us`; NEVER: it is not."""
        awaited_us = self.awaited_us[: self.size]
        return np.where(awaited_us > NEVER, np.maximum(awaited_us, since_us), NEVER)

    def prune(self, towards: Mapping[int, Bounds], delays_us: Iterable[int]) -> None:
        """Forget delays that neither a bound to its sources nor an estimator needs any more."""
        needed_us = {self.latency_us, *delays_us, *(bound.after_us for bound in self.own)}
        self._delayed = {us: delayed for us, delayed in self._delayed.items() if us in needed_us}
        counted: set[Hashable] = {(None, bound.tuples) for bound in self.own}
        counted |= {(first, bound.tuples) for first, bounds in towards.items() for bound in bounds}
        self._counted = {key: one for key, one in self._counted.items() if key in counted}

    def keep(self, kept: Members) -> Members:
        """Forget all sources but these; returns the new place of each source, -1 if it is forgotten."""
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
        """Let promises take effect that have waited until now."""
        for delayed in (self.punctuations, *self._delayed.values(), *self.promised_by_count()):
            delayed.settle(now_us)

    def kept(self) -> int:
        """How many numbers wait for their delay."""
        return len(self.maxima) + sum(map(len, self._delayed.values()))
