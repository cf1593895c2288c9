"""Instants and lengths of application time (event time), counted in ticks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

Tick: TypeAlias = int
"""An instant of application time: microseconds since 1970 for TIMESTAMP time, units for integer time."""

UNLIMITED: Tick = 2**62
"""As a limit on timestamps in the future: there is none."""

MICROSECONDS_PER_UNIT = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}


def micros_per(unit: str) -> Fraction:
    """How many microseconds a unit of time has: of nanoseconds, a part of one."""
    return Fraction(1, 1_000) if unit == "NANOSECOND" else Fraction(MICROSECONDS_PER_UNIT[unit])


class TimeDomain(Enum):
    """The kind of instants a stream is stamped with, and the first of them."""

    INTEGER = "integer"
    TIMESTAMP = "timestamp"
    ARRIVAL = "arrival"
    """No time at all but the order in which tuples came, counted over all streams that have none."""

    def __str__(self) -> str:
        words = {
            "integer": "integer time",
            "timestamp": "TIMESTAMP time",
            "arrival": "no time but the order of arrival",
        }
        return words[self.value]

    @property
    def origin(self) -> Tick:
        """The first instant there is: 0, or 0001-01-01, the first timestamp Spark has."""
        return -62_135_596_800_000_000 if self is TimeDomain.TIMESTAMP else 0

    def moment(self, tick: Tick) -> Any:
        """A tick as the user knows it."""
        return (
            tick
            if self is not TimeDomain.TIMESTAMP
            else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=tick)
        )
