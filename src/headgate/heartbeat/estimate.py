"""Estimation of bounds from what arrives, for all senders and delays of one cohort at once (Figure 4).

    δest[i, t] = max(τmax of i, t ago  -  τ  +  1, 0)        for a tuple stamped τ that arrives now

If δest exceeds the estimate δ, δ becomes δest. If it did not for a whole window, δ moves towards the largest δest of
the window: δ := α δ + (1 - α) δwin. The skew is taken as it arrives, so latencies are part of it. Two things are added
to the paper's algorithm. A bound from another source counts only once a number of tuples have kept to it: at first
nothing is known, and between clocks that run apart no estimate ever holds. And a source's own bound at once is at least
1: to repeat a timestamp is no disorder.

By default, that is with a window of time that adapts, and without a confidence, three more things are:

- A window of time lasts for MANY tuples at least, so that a slow stream remembers as many as a fast one.

- A margin. The largest of n skews is exceeded by the next with a chance of about 1 in n, so a few tuples say too
  little. The largest skews of the window say how fast large ones become rare: the bound in force is what ENOUGH tuples
  would have shown, if skews beyond the largest go on to be rarer as those below it did (an exponential tail; from
  ENOUGH tuples on, no margin).

- Outliers. One skew that is many times as large as the bound raises nothing. It is late, and nobody waits for its like.
  The second within OUTLIERS_APART tuples is believed.

With a confidence, δ is instead the smallest number that this part of the tuples kept to, from a histogram of δest whose
old half fades with every window. A quantile of the past is no confidence if the skew grows: between different sources
it counts only while those that came after it was known keep to it as well.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.catalog.declarations import Estimation
from headgate.catalog.skew import Bounds, SkewBound, strongest
from headgate.heartbeat.arrivals import NEVER, Arrivals, Ticks
from headgate.heartbeat.generator import Generator

STEADY = 30
STEADY_BATCHES = 10
"""So many tuples, in so many batches, must have kept to an estimate before anybody relies on it."""

CONFIDENT = 100
"""So many tuples must have been seen before a confidence means anything."""

RARE = 1_000
"""Surprises that are further apart than so many tuples are no reason to wait for longer before an estimate is
lowered.
"""

TOLERANCE = 3
"""A confident bound between different sources is not relied on if it is exceeded so many times as often as it says."""

FEW, MANY = 10, 2_000
"""A window of time in which fewer tuples came says nothing: a stream that is slower would forget its disorder in
between.
"""

ENOUGH = 10_000
"""So many tuples show the skew that is to be reckoned with."""

DEEP = 8
"""So many of the largest skews tell how fast they become rare."""

HARMONIC = sum(1 / place for place in range(1, DEEP))
"""The mean distance between the first and the last of the DEEP largest, if their tail is exponential with mean 1."""

OUTLIER = 4
OUTLIERS_APART = 1_000
"""A skew so many times as large as the bound is an outlier, if no other was among so many tuples before it."""

STEPS = 8
"""For how many delays up to the horizon a bound is estimated, besides none."""

FINEST, COARSEST = 16, 64
"""The adaptive window lies between a sixteenth and 64 times of what was asked for."""


class Estimator:
    """Learns the bounds to the sources of one cohort. Its arrays have a row a sender and a column a delay."""

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
        self.top = np.zeros((*shape, DEEP), np.int64)
        self.top_fresh = np.zeros((*shape, DEEP), np.int64)
        """The largest skews, in falling order, one of each batch: of this window and the one before, and of this
        one.
        """
        self.seen = np.zeros(shape, np.int64)
        self.seen_fresh = np.zeros(shape, np.int64)
        """Of how many tuples they are the largest."""
        self.since_outlier = np.full(shape, OUTLIERS_APART)
        """How many tuples ago the last outlier was."""
        self.histogram = np.zeros((*shape, len(EDGES) if how.confidence is not None else 0))
        self.exceeding = np.zeros(shape)
        """How many of the tuples in the histogram exceeded what it said when they came."""

    @property
    def careful(self) -> bool:
        """True if the user said nothing of how to estimate: then the estimate is to be safe before all."""
        timed = self.how.window_us is not None and self.how.window_tuples is None
        return timed and self.how.adaptive and self.how.confidence is None

    def row(self, sender: Hashable, now_us: int) -> int:
        """The row of a sender, made when it is first asked for."""
        if sender not in self.senders:
            self.senders[sender] = len(self.senders)
            first = {"width": 1, "since_us": now_us, "since_outlier": OUTLIERS_APART}
            for name, array in self._arrays().items():
                more = np.full((1, *array.shape[1:]), first.get(name, 0), array.dtype)
                setattr(self, name, np.concatenate([array, more]))
        return self.senders[sender]

    def forget(self, senders: Collection[Hashable]) -> None:
        """Forget senders that are gone."""
        if not self.senders.keys() & set(senders):
            return
        kept = {sender: row for sender, row in self.senders.items() if sender not in senders}
        for name, array in self._arrays().items():
            setattr(self, name, array[list(kept.values())])
        self.senders = {sender: row for row, sender in enumerate(kept)}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """All that is kept a sender."""
        return {name: array for name, array in vars(self).items() if isinstance(array, np.ndarray)}

    def complete(self) -> None:
        """Add what is missing in state that was saved before margins and outliers were known."""
        fresh = Estimator(self.how)
        for name, array in fresh._arrays().items():
            if not hasattr(self, name):
                first = OUTLIERS_APART if name == "since_outlier" else 0
                setattr(self, name, np.full((len(self.estimate), *array.shape[1:]), first, array.dtype))

    def observe(self, rows: Sequence[int], worst: Ticks, tuples: int, now_us: int) -> None:
        """Take so many tuples, for which δest was at most `worst`: a row a sender, a column a delay; NEVER: unknown."""
        chosen = np.asarray(rows, np.intp)
        seen = worst > NEVER
        worst = np.maximum(worst, 0)
        estimate, in_window = self.estimate[chosen], self.in_window[chosen]
        surprised = seen & (worst > estimate + self.margin(chosen))
        if self.careful:
            outliers = self._outliers(chosen, surprised, worst, tuples)
            seen, surprised = seen & ~outliers, surprised & ~outliers
            self._remember(chosen, np.where(seen, worst, 0), np.where(seen, tuples, 0))
        exceeded = seen & (worst > estimate)
        kept = seen & ~exceeded
        self._adapt(chosen, surprised)
        self.steady[chosen] = np.where(surprised, 0, self.steady[chosen] + np.where(seen, tuples, 0))
        self.batches[chosen] = np.where(surprised, 0, self.batches[chosen] + seen)
        self.tuples[chosen] = np.where(exceeded, 0, self.tuples[chosen] + np.where(kept, tuples, 0))
        self.since_us[chosen] = np.where(exceeded, now_us, self.since_us[chosen])
        self.estimate[chosen] = np.where(exceeded, worst, estimate)
        self.in_window[chosen] = np.where(exceeded, 0, np.where(kept, np.maximum(in_window, worst), in_window))
        self._lower(chosen, kept & self._window_full(chosen, now_us), now_us)

    def margin(self, chosen: NDArray[np.intp]) -> Ticks:
        """The margin that is added to the estimates."""
        if not self.careful:
            return np.zeros((len(chosen), len(self.delays_us)), np.int64)
        top = np.maximum(self.top[chosen] - 1, 0)  # to repeat a timestamp is no disorder
        octaves = np.log(ENOUGH / np.clip(self.seen[chosen], 1, ENOUGH))
        return np.ceil((top[..., 0] - top[..., -1]) / HARMONIC * octaves).astype(np.int64)

    def _outliers(
        self, chosen: NDArray[np.intp], surprised: NDArray[np.bool_], worst: Ticks, tuples: int
    ) -> NDArray[np.bool_]:
        """Which of the skews that exceeded a bound are outliers, so that they say nothing."""
        usual = np.maximum(self.estimate[chosen] + self.margin(chosen), 1)
        far = surprised & (worst > OUTLIER * usual) & (self.seen[chosen] >= STEADY)
        since = self.since_outlier[chosen]
        self.since_outlier[chosen] = np.where(far, 0, np.minimum(since + tuples, OUTLIERS_APART))
        return far & (since >= OUTLIERS_APART)

    def _remember(self, chosen: NDArray[np.intp], worst: Ticks, tuples: Ticks) -> None:
        """Keep the largest skews."""
        for name, count in (("top", "seen"), ("top_fresh", "seen_fresh")):
            largest, numbers = getattr(self, name), getattr(self, count)
            both = np.concatenate([largest[chosen], worst[..., np.newaxis]], axis=-1)
            largest[chosen] = -np.sort(-both, axis=-1)[..., :DEEP]
            numbers[chosen] += tuples

    def see(
        self,
        generator: Generator,
        number: int,
        members: NDArray[np.intp],
        arrivals: Arrivals,
        senders: Sequence[int],
        now_us: int,
    ) -> bool:
        """Learn from tuples of the cohort `number` that the generator has not taken yet; True if other bounds are in
        force than before.
        """
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
            return long & (self.tuples[chosen] > (MANY if self.careful else FEW) * self.width[chosen])
        return np.zeros_like(chosen, bool)[:, np.newaxis]

    def _lower(self, chosen: NDArray[np.intp], full: NDArray[np.bool_], now_us: int) -> None:
        estimate, in_window = self.estimate[chosen], self.in_window[chosen]
        lowered = in_window + np.ceil(self.how.weight * (estimate - in_window)).astype(np.int64)
        self.estimate[chosen] = np.where(full, lowered, estimate)
        self.falls[chosen] += full & (lowered < estimate)
        self.in_window[chosen] = np.where(full, 0, in_window)
        self.tuples[chosen] = np.where(full, 0, self.tuples[chosen])
        self.since_us[chosen] = np.where(full, now_us, self.since_us[chosen])
        if self.careful and full.any():
            for name in ("top", "seen"):
                now, fresh = getattr(self, name), getattr(self, f"{name}_fresh")
                forgotten = full[..., np.newaxis] if name == "top" else full
                now[chosen] = np.where(forgotten, fresh[chosen], now[chosen])
                fresh[chosen] = np.where(forgotten, 0, fresh[chosen])
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
        """If estimates that were lowered are exceeded often, they are lowered too soon: wait for longer the next
        time.
        """
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
        return CONFIDENT if self.how.confidence is None else max(CONFIDENT, 1 / (1 - self.how.confidence))

    def bounds(self, sender: Hashable) -> Bounds:
        """The bounds in force from a sender."""
        row = self.senders.get(sender)
        if row is None:
            return ()
        found = []
        margin = self.margin(np.array([row]))[0]
        for column, delay_us in enumerate(self.delays_us):
            at_once = sender is None and not delay_us
            within = self._confident(row, column)
            if sender is not None and within is not None and not self._holds(row, column):
                continue
            if within is None and (at_once or self.is_steady(row, column)):
                within = int(self.estimate[row, column] + margin[column])
            if within is not None:
                found.append(SkewBound(max(within, 1) if at_once else within, after_us=delay_us))
        return strongest(found)

    def is_steady(self, row: int, column: int) -> bool:
        """True if enough tuples have kept to the estimate to rely on it."""
        return bool(self.steady[row, column] >= STEADY and self.batches[row, column] >= STEADY_BATCHES)

    def _holds(self, row: int, column: int) -> bool:
        """True if what the histogram said was exceeded about as rarely as it should be."""
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
    """An estimator for sources that are in other cohorts, or estimated in another way, than before.

    It begins with the largest estimates of these senders, because to begin with nothing would promise too much.
    """
    fresh = Estimator(how)
    own = fresh.row(None, 0)
    for estimator in before:
        rows = [estimator.senders[sender] for sender in senders if sender in estimator.senders]
        if rows:
            as_long = np.searchsorted(estimator.delays_us, fresh.delays_us, side="right") - 1
            fresh.estimate[own] = np.maximum(fresh.estimate[own], estimator.estimate[rows][:, as_long].max(axis=0))
            fresh.since_us[own] = np.maximum(fresh.since_us[own], estimator.since_us[rows].max())
            fresh.top[own] = np.maximum(fresh.top[own], estimator.top[rows][:, as_long].max(axis=0))
            fresh.seen[own] = np.maximum(fresh.seen[own], estimator.seen[rows][:, as_long].max(axis=0))
    return fresh


def _skew(seen: Ticks, smallest: Ticks) -> int:
    """δest at the worst; NEVER if nothing was seen before."""
    known = seen > NEVER
    return int((seen[known] - smallest[known]).max()) + 1 if known.any() else NEVER


# A histogram with sixteen steps an octave: exact below 16, six percent wide above.

_OCTAVES = 58
EDGES = np.concatenate(
    [
        np.arange(16),
        *(((np.arange(17, 33, dtype=np.int64)) << octave) - 1 for octave in range(_OCTAVES)),
    ]
)
"""The largest value of each bucket."""


def buckets(values: Ticks) -> NDArray[np.intp]:
    """The bucket of each value, none of which is negative."""
    return np.searchsorted(EDGES, np.minimum(values, EDGES[-1]))
