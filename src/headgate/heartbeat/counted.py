"""Bounds with a delay in tuples: what was known of the sender when the last but n tuples of a source arrived."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headgate.heartbeat.arrivals import NEVER, Arrivals, Ticks
from headgate.heartbeat.maxima import Delayed, grown

Members = NDArray[np.intp]
"""Places of sources in their cohort."""


class Counted:
    """For bounds with a delay in tuples: per source, what was known when the last but `tuples` of its tuples arrived.

    If a bound from i to j waits for n tuples of j, then after any n tuples of j everything that i had sent before the
    first of them counts. So a ring of n snapshots a source; the oldest is the promise, once those n can have overtaken
    nothing any more.
    """

    def __init__(self, tuples: int, latency_us: int, unit_us: int, size: int) -> None:
        self.tuples = tuples
        self.snapshots = np.full((size, tuples), NEVER)
        self.promised = Delayed(latency_us, unit_us, size)

    def resize(self, size: int) -> None:
        """Make room for so many sources."""
        self.snapshots = grown(self.snapshots, size, NEVER)
        self.promised.resize(size)

    def keep(self, kept: Members, numbers: Members) -> None:
        """Forget all sources but these; `numbers` are the new places."""
        self.snapshots = self.snapshots[kept]
        self.promised.keep(kept, numbers)

    def take(self, members: Members, counts: Ticks, known: Ticks, now_us: int) -> None:
        """Take tuples of which so many of each source came together; `known` is what the sender had sent before."""
        steps = np.minimum(counts, self.tuples)
        for step in np.unique(steps):
            chosen = steps == step
            self._shift(members[chosen], known[chosen], int(step))
        self._promise(members, now_us)

    def take_rows(self, members: Members, arrivals: Arrivals, largest: Ticks, now_us: int) -> None:
        """Take the sources' own tuples one by one; `largest` is what each source had sent before the first of them."""
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
