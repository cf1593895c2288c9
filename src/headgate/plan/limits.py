"""What limits a query's state, as values: `Limited` by something, or `Growing` because of something.

The nodes say what limits their rows (see `nodes.operator`); these functions put the answers of several nodes together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from headgate.ticks import MICROSECONDS_PER_UNIT, Tick, TimeDomain


@dataclass(frozen=True, slots=True)
class Limited:
    """State that stays within what `by` says, however long the query runs."""

    by: str

    def __str__(self) -> str:
        return self.by


@dataclass(frozen=True, slots=True)
class Growing:
    """State that may grow for as long as the query runs."""

    operator: str
    """As it would stand in the query."""

    reason: str

    def __str__(self) -> str:
        return f"grows without limit: {self.reason}"


StateBound: TypeAlias = Limited | Growing


def prefixed(text: str, below: StateBound) -> StateBound:
    """The bound with a text before it. A growing one stays as it is: it grows for its own reason."""
    return below if isinstance(below, Growing) else Limited(f"{text} {below.by}")


def unless_growing(text: str, below: StateBound) -> StateBound:
    """Limited by what the text says, if the input does not grow by itself."""
    return below if isinstance(below, Growing) else Limited(text)


def all_of(one: StateBound, other: StateBound) -> StateBound:
    """The bound of two relations together."""
    return one if one == other else _joined(one, other, "{}, and {}")


def pairs_of(one: StateBound, other: StateBound) -> StateBound:
    """The bound of the pairs of two relations."""
    return _joined(one, other, "pairs of {} and {}")


def _joined(one: StateBound, other: StateBound, text: str) -> StateBound:
    if isinstance(one, Growing):
        return one
    if isinstance(other, Growing):
        return other
    return Limited(text.format(one.by, other.by))


def because(operator: str, what: str, cause: StateBound) -> StateBound:
    """If the cause grows, so does the operator: its text comes first, then the cause."""
    return cause if isinstance(cause, Limited) else Growing(operator, f"{what}: {cause.reason}")


def lasting(ticks: Tick, time: TimeDomain) -> str:
    """A length of time in the largest unit that fits.

    A closed window over TIMESTAMP time is one microsecond longer than its RANGE says; that microsecond is not shown.
    """
    if time is TimeDomain.ARRIVAL:
        return "arrival" if ticks == 1 else f"{ticks} arrivals"
    if time is TimeDomain.INTEGER:
        return "unit of time" if ticks == 1 else f"{ticks} units of time"
    ticks -= ticks % 1_000 == 1
    if not ticks:
        return "instant"
    unit, size = max(
        ((unit, size) for unit, size in MICROSECONDS_PER_UNIT.items() if ticks % size == 0), key=lambda entry: entry[1]
    )
    return unit.lower() if ticks == size else f"{ticks // size} {unit.lower()}s"
