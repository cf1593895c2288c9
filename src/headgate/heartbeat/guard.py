"""The guard against the far future, for one stream: the largest timestamp that is believed now.

The limit is what FUTURE OF says. Without that it is a day beyond the date, and what is usual for the stream (see
`future`), whichever is less.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.catalog.entries import Stream
from headgate.heartbeat.arrivals import Ticks
from headgate.heartbeat.future import KNOWN, SLACK, together
from headgate.heartbeat.stream_clock import StreamClock
from headgate.ticks import UNLIMITED, Tick, TimeDomain

AHEAD_US = 86_400_000_000
"""Without FUTURE OF, a timestamp may lie so far beyond the date: a day."""

AHEAD_UNITS = 2**31
"""Without FUTURE OF, a timestamp of integer time may at first lie so far beyond the largest one before it."""

NEAR_US = 60_000_000
"""A timestamp that is no further than this ahead of what is expected is never doubted: a minute."""

NEAR_UNITS = 1_000
"""NEAR_US for integer time."""


@dataclass(frozen=True, slots=True)
class FutureGuard:
    """Which timestamps of a stream are too far in the future, at one instant."""

    clock: StreamClock
    date_us: int | None
    """The date; None: the engine's clock knows none."""

    now_us: int

    def limit(self) -> Tick | None:
        """Timestamps beyond this are taken for mistakes, unless others confirm them; None: there is no limit."""
        if not self.clock.external or self.clock.finished:
            return None
        found = [self._at_most(), self._usual()]
        return min((limit for limit in found if limit is not None), default=None)

    def limit_for(self, tops: Ticks) -> Tick | None:
        """The limit for a batch with these largest timestamps, in falling order: several together confirm each
        other.
        """
        clock, limit = self.clock, self.limit()
        if not clock.external or clock.finished or self._declared() is not None:
            return limit
        at_most, usual = self._at_most(), self._usual()
        tops = tops if at_most is None else tops[tops <= at_most]
        reach = clock.pace.reach(NEAR_US if clock.domain is TimeDomain.TIMESTAMP else NEAR_UNITS)
        if clock.pace.tuples < KNOWN and len(tops) >= KNOWN:
            found = together(tops, reach)
            return limit if found is None else found
        beyond = tops[tops > usual] if usual is not None else tops[:0]
        if not len(beyond):
            return limit
        found = together(beyond, reach)
        if found is None and clock.pace.doubt(len(clock.table.sources)):
            found = int(beyond[0])
        return limit if found is None else found

    def is_settled(self) -> bool:
        """True if the limit is declared, or enough came to know what is usual. If not, a large batch is compared with
        itself.
        """
        return self._declared() is not None or self.clock.pace.tuples >= KNOWN

    def _declared(self) -> Tick | None:
        """What FUTURE OF says; None: nothing."""
        return self.clock.stream.ahead if isinstance(self.clock.stream, Stream) else None

    def _at_most(self) -> Tick | None:
        """Beyond this nothing is believed, whatever confirms it; None: there is no such limit."""
        declared, in_time = self._declared(), self.clock.domain is TimeDomain.TIMESTAMP
        if declared == UNLIMITED or (declared is None and (self.date_us is None or not in_time)):
            return None
        known = [instant for instant in (self.date_us if in_time else None, self.clock.largest) if instant is not None]
        return max(known) + (AHEAD_US if declared is None else declared) if known else None

    def _usual(self) -> Tick | None:
        """Beyond this a timestamp is doubted; None: nothing is doubted."""
        clock = self.clock
        if self._declared() is not None:
            return None
        if clock.domain is TimeDomain.TIMESTAMP:
            return clock.pace.limit(self.now_us, NEAR_US, least_rate(clock))
        known = clock.pace.limit(self.now_us, NEAR_UNITS, least_rate(clock))
        if known is not None or clock.largest is None:
            return known
        return clock.largest + max(AHEAD_UNITS, int(SLACK * clock.pace.jump))


def least_rate(clock: StreamClock) -> float:
    """Ticks a microsecond at which timestamps may always go on: TIMESTAMP time goes with the clock."""
    return 1.0 if clock.domain is TimeDomain.TIMESTAMP else 0.0
