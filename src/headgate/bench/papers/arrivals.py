"""Arrivals by number and time: Poisson arrivals from a seed, and rows at even intervals. No engine, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any

import numpy as np
from numpy.typing import NDArray

SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Arrival:
    """Rows that arrive on a stream at one instant of the engine's clock."""

    at_us: int
    stream: str
    rows: Sequence[tuple[Any, ...]]


def poisson(rate: float, seconds: float, seed: int) -> NDArray[np.int64]:
    """Poisson arrivals at a mean rate per second, as instants in microseconds, in order."""
    chance = np.random.default_rng(seed)
    count = chance.poisson(rate * seconds)
    return np.sort(chance.uniform(0, seconds * SECOND_US, count)).astype(np.int64)


def in_order(*streams: Iterable[Arrival]) -> Iterator[Arrival]:
    """Merges the arrivals of several streams by time; each stream's are in order already."""
    return merge(*streams, key=lambda arrival: arrival.at_us)
