"""What arrived on a stream at an instant of the engine's clock, in numbers: how many tuples of each source, stamped
when.

Rows pushed from Python also come one by one, in their order; a batch that Spark took in comes as its summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ticks: TypeAlias = NDArray[np.int64]

NEVER = -(2**62)
"""Before every instant: nothing has been seen, nothing is promised."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A batch of one stream in numbers."""

    sources: Sequence[Any]
    """The sources that spoke, each once; a stream without SOURCE BY has the one source None."""

    counts: Ticks
    smallest: Ticks
    largest: Ticks
    """For each of them: how many tuples, and the range of their timestamps."""

    behind: Ticks
    """For each of them: how far a tuple of this batch was behind one that came before it in the batch, at the most."""

    rows: tuple[NDArray[np.intp], Ticks] | None = None
    """Of every tuple, in order: the position of its source above, and its timestamp. None if only the summary is
    known.
    """

    sample: tuple[Ticks, Ticks] | None = None
    """Timestamps and how many tuples each stands for; where `rows` is not known and a distribution is wanted."""

    @property
    def total(self) -> int:
        """How many tuples there are."""
        return int(self.counts.sum())

    def of_members(self, members: NDArray[np.intp], chosen: NDArray[np.bool_]) -> tuple[NDArray[np.intp], Arrivals]:
        """Only the chosen sources, each under the number of its member, and those of the same member together."""
        if chosen.all() and np.bincount(members, minlength=1).max() <= 1:
            return members, self
        places, inverse = np.unique(members[chosen], return_inverse=True)
        if self.rows is not None:
            mine = chosen[self.rows[0]]
            new = np.full(len(chosen), -1)
            new[chosen] = inverse
            return places, of_rows(places.tolist(), new[self.rows[0][mine]], self.rows[1][mine])
        counts, behind = np.zeros(len(places), np.int64), np.zeros(len(places), np.int64)
        largest, smallest = np.full(len(places), NEVER), np.full(len(places), -NEVER)
        np.add.at(counts, inverse, self.counts[chosen])
        np.maximum.at(largest, inverse, self.largest[chosen])
        np.minimum.at(smallest, inverse, self.smallest[chosen])
        np.maximum.at(behind, inverse, self.behind[chosen])
        return places, Arrivals(places.tolist(), counts, smallest, largest, behind, None, self.sample)

    def weighted(self) -> tuple[Ticks, Ticks]:
        """Timestamps with their number: of every tuple if they are known, otherwise of the sample or the earliest."""
        if self.rows is not None:
            return self.rows[1], np.ones(len(self.rows[1]), np.int64)
        return self.sample if self.sample is not None else (self.smallest, self.counts)


def of_rows(sources: Sequence[Any], positions: NDArray[np.intp], ticks: Ticks) -> Arrivals:
    """From the tuples themselves: `positions` says for each which of the sources it is from."""
    size = len(sources)
    if size == 1 and len(ticks):  # often a single tuple: no need to sort
        behind = (np.maximum.accumulate(ticks) - ticks).max() if len(ticks) > 1 else 0
        counts, behinds = np.array([len(ticks)], np.int64), np.array([behind], np.int64)
        least, most = (ticks, ticks) if len(ticks) == 1 else (np.array([ticks.min()]), np.array([ticks.max()]))
        return Arrivals(sources, counts, least, most, behinds, (positions, ticks))
    counts = np.bincount(positions, minlength=size).astype(np.int64)
    largest, smallest = np.full(size, NEVER), np.full(size, -NEVER)
    np.maximum.at(largest, positions, ticks)
    np.minimum.at(smallest, positions, ticks)
    return Arrivals(sources, counts, smallest, largest, _behind(positions, ticks, size), (positions, ticks))


def of_one(ticks: Ticks, source: Any = None) -> Arrivals:
    """Tuples of a single source."""
    return of_rows([source], np.zeros(len(ticks), np.intp), ticks)


def _behind(positions: NDArray[np.intp], ticks: Ticks, size: int) -> Ticks:
    """Per source, the largest distance of a tuple behind the largest one before it."""
    order = np.argsort(positions, kind="stable")
    sorted_ticks, owners = ticks[order], positions[order]
    first = np.ones(len(order), bool)
    first[1:] = owners[1:] != owners[:-1]
    before = _running_largest(sorted_ticks, np.cumsum(first) - 1)
    distances = np.zeros(len(order), np.int64)
    distances[1:] = before[:-1] - sorted_ticks[1:]
    distances[first] = 0
    behind = np.zeros(size, np.int64)
    np.maximum.at(behind, owners, distances)
    return behind


def _running_largest(ticks: Ticks, runs: NDArray[np.intp]) -> Ticks:
    """The largest value so far in each run. Ranks instead of values, so that adding the run's number cannot
    overflow.
    """
    ranks = np.empty(len(ticks), np.int64)
    by_value = np.argsort(ticks, kind="stable")
    ranks[by_value] = np.arange(len(ticks))
    lifted = np.maximum.accumulate(ranks + runs * np.int64(len(ticks)))
    return ticks[by_value[lifted - runs * np.int64(len(ticks))]]
