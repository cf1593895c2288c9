"""Instants that may be unknown, and instants in words."""

from __future__ import annotations

from headgate.ticks import UNLIMITED, Tick, TimeDomain


def later(first: Tick | None, second: Tick | None) -> Tick | None:
    """The later of two instants, of which either may be unknown; None if both are."""
    return max((instant for instant in (first, second) if instant is not None), default=None)


def in_words(tick: Tick | None, domain: TimeDomain) -> str:
    """An instant as the user knows it."""
    if tick is None:
        return "no instant yet"
    if tick >= UNLIMITED:
        return "the end"
    try:
        return str(domain.moment(tick))
    except OverflowError:
        return "before the year 1" if tick < 0 else "after the year 9999"
