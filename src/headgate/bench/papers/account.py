"""Computes latency, idle-waiting and queue length from the instants of arrivals, answers and running.

Simulated and live runs use it alike. A tuple waits from its arrival until its answer is out. Time is spent
*idle-waiting* while at least one tuple waits and nothing runs (paper 004: the union is blocked because its other input
is empty).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Account:
    """Latency, idle-waiting and queue length of one run."""

    mean_latency: float
    """From arrival to answer, over the answered tuples, in the unit of the instants; NaN if there is none."""

    answered: int
    unanswered: int
    idle_share: float
    """The share of the time between `since` and `until` that was spent idle-waiting."""

    peak: int
    """The largest number of tuples that waited at once."""


def account(
    arrived: Sequence[float], answered: Sequence[float], running: Sequence[Span], since: float, until: float
) -> Account:
    """The account of the tuples that came between `since` and `until`.

    `answered` is infinite for a tuple without an answer. Idle-waiting and the peak also count tuples that came before
    and still wait.
    """
    came, out = np.asarray(arrived, float), np.minimum(np.asarray(answered, float), inf)
    meant = (came >= since) & (came <= until)
    known = meant & np.isfinite(out)
    latency = float((out[known] - came[known]).mean()) if known.any() else float("nan")
    instants, queue = waiting(came, out)
    peak = int(queue[(instants >= since) & (instants <= until)].max(initial=0))
    idle = idle_waiting(instants, queue, running, since, until) / (until - since)
    return Account(latency, int(known.sum()), int(meant.sum() - known.sum()), idle, peak)


def waiting(came: NDArray[np.float64], out: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The instants at which the number of waiting tuples changes, and that number from each of them on."""
    events = np.concatenate([came, out[np.isfinite(out)]])
    steps = np.concatenate([np.ones(len(came), np.int64), -np.ones(len(events) - len(came), np.int64)])
    instants, where = np.unique(events, return_inverse=True)
    return instants, np.cumsum(np.bincount(where, steps, len(instants))).astype(np.int64)


def idle_waiting(
    instants: NDArray[np.float64], queue: NDArray[np.int64], running: Sequence[Span], since: float, until: float
) -> float:
    """How long something waited while nothing ran, between `since` and `until`; spans of running do not overlap."""
    borders = [instant for span in running for instant in span]
    cuts = np.unique(np.clip(np.concatenate([instants, np.asarray(borders, float), [since, until]]), since, until))
    begins, lengths = cuts[:-1], np.diff(cuts)
    if not len(begins):
        return 0.0
    place = np.searchsorted(instants, begins, side="right") - 1
    waits = np.where(place >= 0, queue[np.maximum(place, 0)], 0) > 0 if len(queue) else np.zeros(len(begins), bool)
    starts = np.asarray([start for start, _ in running], float)
    ends = np.asarray([end for _, end in running], float)
    turn = np.searchsorted(starts, begins, side="right") - 1
    runs = (turn >= 0) & (begins < ends[np.maximum(turn, 0)]) if len(starts) else np.zeros(len(begins), bool)
    return float(lengths[waits & ~runs].sum())
