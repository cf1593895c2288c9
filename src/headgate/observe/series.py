"""Time series in bounded memory: amounts in buckets of time, fine ones of lately and coarser ones behind them.

    1 s    60 buckets   the last minute
    15 s   60 buckets   the last quarter of an hour
    4 min  60 buckets   the last four hours
    whole               everything since the engine was started

Every amount is added to one bucket of each level. No clock is read: the caller gives the microsecond.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from headgate.log.statistics import Values

WIDTHS_US = (1_000_000, 15_000_000, 240_000_000)
"""How long a bucket of each level is."""

BUCKETS = 60
"""How many buckets a level has."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """What happened in a span of time."""

    epochs: int = 0
    rows_in: int = 0
    rows_out: int = 0
    took_us: int = 0
    """How long the work took."""

    columns: tuple[tuple[str, Values], ...] = ()
    """Null counts and ranges of columns of numbers, where all rows say something of them."""

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(
            self.epochs + other.epochs,
            self.rows_in + other.rows_in,
            self.rows_out + other.rows_out,
            self.took_us + other.took_us,
            _columns(self, other),
        )


NOTHING = Amounts()


@dataclass(frozen=True, slots=True)
class Bucket:
    """The amounts of one span of time."""

    began_us: int
    length_us: int
    amounts: Amounts


class Series:
    """The time series of one stream, fragment or operator."""

    def __init__(self) -> None:
        self.whole = NOTHING
        self._levels = tuple(deque[Bucket](maxlen=BUCKETS) for _ in WIDTHS_US)

    def add(self, amounts: Amounts, at_us: int) -> None:
        """Add amounts to the buckets of a moment. A moment before the newest bucket counts to that one."""
        self.whole = self.whole + amounts
        for level, width_us in zip(self._levels, WIDTHS_US, strict=True):
            began_us = at_us - at_us % width_us
            if level and level[-1].began_us >= began_us:
                last = level.pop()
                level.append(Bucket(last.began_us, width_us, last.amounts + amounts))
            else:
                level.append(Bucket(began_us, width_us, amounts))

    def buckets(self, now_us: int, level: int = 0) -> tuple[Bucket, ...]:
        """Return the buckets of a level that are not older than the level reaches back."""
        oldest_us = now_us - BUCKETS * WIDTHS_US[level]
        kept = tuple(self._levels[level])  # a copy: amounts may come meanwhile
        return tuple(bucket for bucket in kept if bucket.began_us + bucket.length_us > oldest_us)

    def recent(self, now_us: int) -> tuple[Amounts, int]:
        """Return the amounts of the last minute and how many microseconds they span; if nothing happened in it, those
        of the finest level in which something did; at last everything, with a span of 0.
        """
        for level in range(len(WIDTHS_US)):
            if found := self.buckets(now_us, level):
                span_us = max(now_us - found[0].began_us, 1)
                return total(bucket.amounts for bucket in found), span_us
        return self.whole, 0


def total(several: Iterable[Amounts]) -> Amounts:
    """Return the sum of amounts."""
    return sum(several, NOTHING)


def _columns(one: Amounts, other: Amounts) -> tuple[tuple[str, Values], ...]:
    """Return what is known of the columns of the rows of both: nothing of a column that only one of them knows."""
    if one == NOTHING or other == NOTHING:
        return one.columns or other.columns
    known = dict(other.columns)
    return tuple((name, values + known[name]) for name, values in one.columns if name in known)
