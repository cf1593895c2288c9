"""Estimation of bounds from what arrives, for all senders and delays of one cohort at once (Figure 4).

    δest[i, t] = max(τmax of i, t ago  -  τ  +  1, 0)        for a tuple stamped τ that arrives now

If δest exceeds the estimate δ, δ becomes δest. If it did not for a whole window, δ moves towards the largest δest of the window:
δ := α δ + (1 - α) δwin. The skew is taken as it arrives, so latencies are part of it. Two things are added to the paper's
algorithm. A bound from another source counts only once a number of tuples have kept to it: at first nothing is known, and
between clocks that run apart no estimate ever holds. And a source's own bound at once is at least 1: to repeat a
timestamp is no disorder.

With a confidence, δ is instead the smallest number that this part of the tuples kept to, from a histogram of δest whose old half
fades with every window. A quantile of the past is no confidence if the skew grows: between different sources it counts only
while those that came after it was known keep to it as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from headgate.heartbeat.arrivals import NEVER, Arrivals, Ticks
from headgate.heartbeat.bounds import Bound, Bounds, strongest
from headgate.heartbeat.declared import Estimation
from headgate.heartbeat.generator import Generator

STEADY = 100
STEADY_BATCHES = 10
"""So many tuples, in so many batches, must have kept to an estimate before anybody relies on it."""

RARE = 1_000
"""Surprises that are further apart than so many tuples are no reason to wait for longer before an estimate is lowered."""

TOLERANCE = 3
"""A confident bound between different sources is not relied on if it is exceeded so many times as often as it says."""

FEW = 10
"""A window of time in which fewer tuples came says nothing: a stream that is slower would forget its disorder in between."""

STEPS = 8
"""For how many delays up to the horizon a bound is estimated, besides none."""

FINEST, COARSEST = 16, 64
"""The adaptive window lies between a sixteenth and 64 times of what was asked for."""


class Estimator:
    def __init__(self, how: Estimation) -> None:
        self.how = how
        step = how.horizon_us / STEPS
        self.delays_us = sorted({0, *(int(step * number) for number in range(1, STEPS + 1))})
        self.senders: dict[Hashable, int] = {}
        """Which row belongs to which sender; None is the source itself."""
        shape = (0, len(self.delays_us))
        self.estimate = np.zeros(shape, np.int64)
        self.in_window = np.zeros(shape, np.int64)
        self.tuples = np.zeros(shape, np.int64)
        self.since_us = np.zeros(shape, np.int64)
        self.steady = np.zeros(shape, np.int64)
        self.batches = np.zeros(shape, np.int64)
        """How many tuples, and in how many batches, have kept to the estimate since it was last exceeded."""
        self.width = np.ones(shape)
        self.falls = np.zeros(shape, np.int64)
        self.histogram = np.zeros((*shape, len(EDGES) if how.confidence is not None else 0))
        self.exceeding = np.zeros(shape)
        """How many of the tuples in the histogram exceeded what it said when they came."""

    def row(self, sender: Hashable, now_us: int) -> int:
        if sender not in self.senders:
            self.senders[sender] = len(self.senders)
            for name in ("estimate", "in_window", "tuples", "steady", "batches", "falls", "histogram", "exceeding"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros((1, *array.shape[1:]), array.dtype)]))
            self.width = np.concatenate([self.width, np.ones((1, len(self.delays_us)))])
            self.since_us = np.concatenate([self.since_us, np.full((1, len(self.delays_us)), now_us)])
        return self.senders[sender]

    def observe(self, rows: Sequence[int], worst: Ticks, tuples: int, now_us: int) -> None:
        """So many tuples arrived, for which δest was at most `worst` (a row a sender, a column a delay; NEVER: unknown)."""
        chosen = np.asarray(rows, np.intp)
        seen = worst > NEVER
        worst = np.maximum(worst, 0)
        estimate, in_window = self.estimate[chosen], self.in_window[chosen]
        exceeded = seen & (worst > estimate)
        kept = seen & ~exceeded
        self._adapt(chosen, exceeded)
        self.steady[chosen] = np.where(exceeded, 0, self.steady[chosen] + np.where(kept, tuples, 0))
        self.batches[chosen] = np.where(exceeded, 0, self.batches[chosen] + kept)
        self.tuples[chosen] = np.where(exceeded, 0, self.tuples[chosen] + np.where(kept, tuples, 0))
        self.since_us[chosen] = np.where(exceeded, now_us, self.since_us[chosen])
        self.estimate[chosen] = np.where(exceeded, worst, estimate)
        self.in_window[chosen] = np.where(exceeded, 0, np.where(kept, np.maximum(in_window, worst), in_window))
        self._lower(chosen, kept & self._window_full(chosen, now_us), now_us)

    def see(self, generator: Generator, number: int, members: NDArray[np.intp], arrivals: Arrivals, senders: Sequence[int],
            now_us: int) -> bool:  # fmt: skip
        """Tuples of the cohort `number` arrived, of which the generator does not know yet; whether other bounds are in force."""
        before = {sender: self.bounds(sender) for sender in (None, *senders)}
        cohort = generator.cohorts[number]
        rows = [self.row(sender, now_us) for sender in (None, *senders)]
        worst = np.full((len(rows), len(self.delays_us)), NEVER)
        smallest = int(arrivals.smallest.min())
        weighted = arrivals.weighted() if self.how.confidence is not None else None
        for column, delay_us in enumerate(self.delays_us):
            known = cohort.delayed(delay_us, now_us).at(now_us) if delay_us else cohort.largest
            worst[0, column] = _skew(known[members], arrivals.smallest)
            if not delay_us and arrivals.behind.any():
                worst[0, column] = max(worst[0, column], int(arrivals.behind.max()) + 1)
            if weighted is not None and worst[0, column] > NEVER:
                mine = known[members][arrivals.rows[0]] if arrivals.rows is not None else known[members].max()
                self.count(rows[0], column, mine - weighted[0] + 1, weighted[1])
            for position, first in enumerate(senders, 1):
                maxima = generator.cohorts[first].maxima
                maxima.horizon_us = max(maxima.horizon_us, delay_us)
                seen = maxima.ago(delay_us, now_us)
                if first == number:
                    worst[position, column] = _skew(seen.others_of(members), arrivals.smallest)
                elif seen.largest > NEVER:
                    worst[position, column] = seen.largest - smallest + 1
                if weighted is not None and seen.largest > NEVER:
                    self.count(rows[position], column, seen.largest - weighted[0] + 1, weighted[1])
        self.observe(rows, worst, arrivals.total, now_us)
        return any(self.bounds(sender) != bounds for sender, bounds in before.items())

    def _window_full(self, chosen: NDArray[np.intp], now_us: int) -> NDArray[np.bool_]:
        if self.how.window_tuples is not None:
            return self.tuples[chosen] > self.how.window_tuples * self.width[chosen]
        if self.how.window_us is not None:
            long = now_us - self.since_us[chosen] > self.how.window_us * self.width[chosen]
            return long & (self.tuples[chosen] > FEW * self.width[chosen])
        return np.zeros_like(chosen, bool)[:, np.newaxis]

    def _lower(self, chosen: NDArray[np.intp], full: NDArray[np.bool_], now_us: int) -> None:
        estimate, in_window = self.estimate[chosen], self.in_window[chosen]
        lowered = in_window + np.ceil(self.how.weight * (estimate - in_window)).astype(np.int64)
        self.estimate[chosen] = np.where(full, lowered, estimate)
        self.falls[chosen] += full & (lowered < estimate)
        self.in_window[chosen] = np.where(full, 0, in_window)
        self.tuples[chosen] = np.where(full, 0, self.tuples[chosen])
        self.since_us[chosen] = np.where(full, now_us, self.since_us[chosen])
        if self.how.adaptive:
            long_fall = self.falls[chosen] >= 4
            self.width[chosen] = np.where(long_fall, np.maximum(self.width[chosen] / 2, 1 / FINEST), self.width[chosen])
            self.falls[chosen] = np.where(long_fall, 1, self.falls[chosen])
        if self.how.confidence is not None and self.how.window_tuples is None:
            counted = self.histogram[chosen]
            fading = full & (counted.sum(axis=-1) > 2 * self._needed())
            self.histogram[chosen] = np.where(fading[..., np.newaxis], counted / 2, counted)
            self.exceeding[chosen] = np.where(fading, self.exceeding[chosen] / 2, self.exceeding[chosen])

    def _adapt(self, chosen: NDArray[np.intp], exceeded: NDArray[np.bool_]) -> None:
        """If estimates that were lowered are exceeded often, they are lowered too soon: wait for longer the next time."""
        if self.how.adaptive:
            hasty = exceeded & (self.falls[chosen] > 0) & (self.steady[chosen] < RARE)
            self.width[chosen] = np.where(hasty, np.minimum(self.width[chosen] * 2, COARSEST), self.width[chosen])
        self.falls[chosen] = np.where(exceeded, 0, self.falls[chosen])

    def count(self, row: int, column: int, skews: Ticks, tuples: Ticks) -> None:
        """The distribution: δest of so many tuples each."""
        histogram = self.histogram[row, column]
        said = self._confident(row, column)
        if said is not None:
            self.exceeding[row, column] += tuples[skews > said].sum()
        np.add.at(histogram, buckets(np.maximum(skews, 0)), tuples)
        window = self.how.window_tuples
        if window is not None and histogram.sum() > 2 * max(window, self._needed()):
            histogram /= 2
            self.exceeding[row, column] /= 2

    def _needed(self) -> float:
        """How many tuples must have been seen before a confidence means anything."""
        return STEADY if self.how.confidence is None else max(STEADY, 1 / (1 - self.how.confidence))

    def bounds(self, sender: Hashable) -> Bounds:
        """The bounds in force from a sender."""
        row = self.senders.get(sender)
        if row is None:
            return ()
        found = []
        for column, delay_us in enumerate(self.delays_us):
            at_once = sender is None and not delay_us
            within = self._confident(row, column)
            if sender is not None and within is not None and not self._holds(row, column):
                continue
            if within is None and (at_once or self.is_steady(row, column)):
                within = int(self.estimate[row, column])
            if within is not None:
                found.append(Bound(max(within, 1) if at_once else within, after_us=delay_us))
        return strongest(found)

    def is_steady(self, row: int, column: int) -> bool:
        return bool(self.steady[row, column] >= STEADY and self.batches[row, column] >= STEADY_BATCHES)

    def _holds(self, row: int, column: int) -> bool:
        """Whether what the histogram said was exceeded about as rarely as it should be."""
        assert self.how.confidence is not None
        usual = (1 - self.how.confidence) * self.histogram[row, column].sum()
        return bool(self.exceeding[row, column] <= TOLERANCE * usual)

    def _confident(self, row: int, column: int) -> int | None:
        """What the histogram says; None without a confidence, or while it says nothing."""
        if self.how.confidence is None:
            return None
        histogram = self.histogram[row, column]
        total = histogram.sum()
        if total < self._needed() * 0.9:
            return None
        enough = np.searchsorted(np.cumsum(histogram), self.how.confidence * total)
        return int(EDGES[min(int(enough), len(EDGES) - 1)])


def following(how: Estimation, before: Sequence[Estimator], senders: Sequence[Hashable]) -> Estimator:
    """For sources that are told apart or watched in another way than before: how far behind themselves they are said to be is
    what was said of any of these senders, because to begin with nothing would let go of too much."""
    fresh = Estimator(how)
    own = fresh.row(None, 0)
    for estimator in before:
        rows = [estimator.senders[sender] for sender in senders if sender in estimator.senders]
        if rows:
            as_long = np.searchsorted(estimator.delays_us, fresh.delays_us, side="right") - 1
            fresh.estimate[own] = np.maximum(fresh.estimate[own], estimator.estimate[rows][:, as_long].max(axis=0))
            fresh.since_us[own] = np.maximum(fresh.since_us[own], estimator.since_us[rows].max())
    return fresh


def _skew(seen: Ticks, smallest: Ticks) -> int:
    """δest at the worst; NEVER if nothing was seen before."""
    known = seen > NEVER
    return int((seen[known] - smallest[known]).max()) + 1 if known.any() else NEVER


# A histogram with sixteen steps an octave: exact below 16, six percent wide above.

_OCTAVES = 58
EDGES = np.concatenate([
    np.arange(16),
    *(((np.arange(17, 33, dtype=np.int64)) << octave) - 1 for octave in range(_OCTAVES)),
])  # fmt: skip
"""The largest value of each bucket."""


def buckets(values: Ticks) -> NDArray[np.intp]:
    """The bucket of each value, none of which is negative."""
    return np.searchsorted(EDGES, np.minimum(values, EDGES[-1]))
