"""Skew bounds: what one source's timestamp says about those another source, or the same one, will still send.

A bound (delay, within) from i to j: once i has sent a tuple stamped τ, then after the delay every tuple that j sends is
stamped later than τ - within. The delay is a length of the engine's clock, or a number of tuples that j sends. Between
two sources there is a set of bounds, each of which holds; the empty set promises nothing.

So `within` 0 from a source to itself says that its timestamps only grow, `within` 1 that they may repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from headgate.ticks import Tick


@dataclass(frozen=True, slots=True)
class SkewBound:
    """One promise of a source about another: see the module's header. `headgate.Bound` is this class."""

    within: Tick
    after_us: int = 0
    tuples: int = 0
    """Instead of a time: how many tuples the other source must have sent first."""

    @property
    def delay(self) -> int:
        """The delay in tuples or in microseconds; 0: the bound holds at once."""
        return self.tuples or self.after_us

    def __str__(self) -> str:
        after = (
            f"after {self.tuples} tuples "
            if self.tuples
            else f"after {self.after_us / 1e6:g} s "
            if self.after_us
            else ""
        )
        return f"{after}within {self.within}"


Bound = SkewBound
"""The name under which users of the Python interface know a skew bound."""

Bounds: TypeAlias = tuple[SkewBound, ...]

K = TypeVar("K")


def problem(bounds: Iterable[SkewBound]) -> str | None:
    """Why this is no set of bounds, in a few words; None if it is one."""
    known = list(bounds)
    for bound in known:
        if bound.within < 0 or bound.after_us < 0 or bound.tuples < 0:
            return "a bound cannot be negative"
        if bound.tuples and bound.after_us:
            return "a bound waits for a time or for tuples, not for both"
    for counted in (False, True):
        row = sorted((bound for bound in known if bool(bound.tuples) is counted), key=lambda bound: bound.delay)
        for sooner, later in pairwise(row):
            if later.delay == sooner.delay:
                return "two bounds have the same delay"
            if later.within >= sooner.within:
                return "a bound with a longer delay must promise more: its WITHIN must be smaller"
    return None


def strongest(bounds: Iterable[SkewBound]) -> Bounds:
    """The bounds without those that another one makes superfluous."""
    kept: list[SkewBound] = []
    for bound in sorted(set(bounds), key=lambda bound: (bool(bound.tuples), bound.delay, bound.within)):
        if not any(
            other.within <= bound.within
            for other in kept
            if not other.delay or bool(other.tuples) is bool(bound.tuples)
        ):
            kept.append(bound)
    return tuple(kept)


def weaker(first: Bounds, second: Bounds) -> Bounds:
    """S' ⊔ S'': at every delay the weaker of the two promises, so what holds whichever of the two sets does.

    Time and tuples are two scales: a promise after some time and one after some tuples have nothing in common, except
    that what holds at once holds after any delay.
    """
    found = []
    for counted in (False, True):
        rows = [sorted(_on_scale(bounds, counted), key=lambda bound: bound.delay) for bounds in (first, second)]
        for delay in {bound.delay for row in rows for bound in row}:
            promises = [[bound.within for bound in row if bound.delay <= delay] for row in rows]
            if all(promises):
                within = max(map(min, promises))
                found.append(SkewBound(within, tuples=delay) if counted else SkewBound(within, after_us=delay))
    return strongest(found)


def _on_scale(bounds: Bounds, counted: bool) -> list[SkewBound]:
    return [bound for bound in bounds if not bound.delay or bool(bound.tuples) is counted]


def least(bounds: Bounds) -> Tick | None:
    """The smallest `within` that takes effect once nothing comes any more; None if none does.

    A bound after so many tuples waits for tuples that may never come.
    """
    return min((bound.within for bound in bounds if not bound.tuples), default=None)


def without_progress(entries: Mapping[K, Bounds]) -> K | None:
    """The first pair of sources because of which a timeout is needed; None if it is not (Theorem 3.3).

    If every pair has a bound with `within` 0 that waits for no tuples, the largest timestamp seen becomes everybody's
    heartbeat in the end. If one has not, tuples of its first source can wait for ever once all sources pause.
    """
    return next((pair for pair, bounds in entries.items() if least(bounds) != 0), None)
