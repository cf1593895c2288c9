"""Enabling timestamps: up to when a stream is complete as the clock alone says it, although no tuple came.

    stamped by the engine                   the clock itself
    stamped by its source, WITHIN d         t + s - d, where t is its largest timestamp and s the time since that came
    SKEW FROM CLOCK TO it (WITHIN d)        the date less d

What the clock says of a source it says of what has been sent. A tuple that was sent and has not been read yet must not
become late by that. So the last two count from the instant as of which everything that was there had been read, and not
from now.
"""

from __future__ import annotations

from fractions import Fraction

from headgate.catalog.skew import Bounds
from headgate.heartbeat.clocks import Clocks, base
from headgate.heartbeat.instants import later
from headgate.heartbeat.waiting import Waiting
from headgate.ticks import Tick


def since_largest(largest: Tick, came_us: int, read_us: int, within: Tick, tick_us: Fraction) -> Tick:
    """t + s - d. A largest timestamp that came after everything was read counts as having come just then."""
    return largest + int(max(read_us - came_us, 0) // tick_us) - within


def by_date(date_us: int, bounds: Bounds, latency_us: int) -> Tick:
    """The furthest that bounds from the clock to a source say, when the clock shows this date."""
    return date_us - latency_us - min(bound.after_us + bound.within for bound in bounds)


def last_beat_us(now_us: int, every_us: int) -> int:
    """The last multiple of a period, at which a heartbeat that comes every period was due."""
    return now_us - now_us % every_us


class EnablingTimestamps:
    """What the clock says of streams, and what it has already been asked."""

    def __init__(self, clocks: Clocks, waiting: Waiting) -> None:
        self.clocks = clocks
        self.waiting = waiting
        self.date_offset_us = 0
        """Added to the engine's clock, it gives the timestamps of tuples that the engine stamps. It never shrinks."""
        self.calendar_us: int | None = None
        """Added to the engine's clock, it gives the date as last shown, which can go back; None: the date is
        unknown.
        """

    def set_date(self, date_us: int | None, now_us: int) -> None:
        """Note the date. It may have run ahead of the engine's clock, which stands still while the computer sleeps."""
        if date_us is not None:
            self.calendar_us = date_us - now_us
            self.date_offset_us = max(self.date_offset_us, self.calendar_us)

    def stamp(self, now_us: int) -> Tick:
        """The timestamp of a tuple that the engine itself stamps now."""
        return now_us + self.date_offset_us

    def answer(self, stream: str, now_us: int, read_us: int | None = None) -> Tick | None:
        """Up to when a stream is complete, as the clock says it; None if the clock says nothing of it.

        `read_us` is the instant as of which everything that was there has been read; None: now.
        """
        clock, declarations = self.clocks[stream], self.clocks.declarations
        if clock.finished or clock.paused:
            return None
        if not clock.external:
            return self.stamp(now_us) if clock.stamped_by_engine else None
        read_us = now_us if read_us is None else min(read_us, now_us)
        enabling, bounds = declarations.enabling(stream), declarations.calendar.get(stream)
        found = []
        if enabling.within is not None and clock.largest is not None:
            came_us = clock.since_us if clock.came_us is None else clock.came_us
            found.append(since_largest(clock.largest, came_us, read_us, enabling.within, enabling.tick_us))
        if bounds and self.calendar_us is not None:
            latency_us = max((kind.latency_us(declarations) for kind in clock.table.all_kinds()), default=0)
            found.append(by_date(read_us + self.calendar_us, bounds, latency_us))
        return max(found, default=None)

    def ask(self, stream: str, now_us: int, read_us: int | None = None, told: Tick | None = None) -> bool:
        """Let the clock say how far a stream is, if that is on demand; True if its heartbeat moved.

        `told` is what a function of the user's says: up to when the stream is complete.
        """
        name = base(stream)
        if not self.is_on_demand(name):
            return False
        return self._enable(name, now_us, later(self.answer(name, now_us, read_us), told), read_us)

    def is_beat_due(self, stream: str, now_us: int) -> bool:
        """True if a stream has HEARTBEAT EVERY, and its last heartbeat has not been given yet."""
        enabling, beat_us = self.clocks.declarations.enabling(stream), self.clocks[stream].beat_us
        return enabling.how == "every" and (beat_us is None or last_beat_us(now_us, enabling.every_us) > beat_us)

    def beat(self, stream: str, now_us: int, read_us: int | None = None, told: Tick | None = None) -> bool:
        """Give the heartbeat that is due by HEARTBEAT EVERY, as the clock would have said it then; True if the
        heartbeat of the stream moved.
        """
        if not self.is_beat_due(stream, now_us):
            return False
        at_us = last_beat_us(now_us, self.clocks.declarations.enabling(stream).every_us)
        self.clocks[stream].beat_us = at_us
        return self._enable(stream, now_us, later(self.answer(stream, at_us, read_us), told), read_us)

    def _enable(self, stream: str, now_us: int, upto: Tick | None, read_us: int | None) -> bool:
        clock, before = self.clocks[stream], self.waiting.standing(stream, now_us).complete
        clock.read_us = now_us if read_us is None else read_us
        clock.enabled = later(clock.enabled, upto)
        return upto is not None and (before is None or upto > before) and not clock.paused

    def note_read(self, stream: str, read_us: int | None) -> None:
        """Note as of when everything that was there has been read; None: that is not known."""
        self.clocks[stream].read_us = read_us

    def periods_us(self) -> dict[str, int]:
        """The streams that have HEARTBEAT EVERY, each with its period."""
        found = {clock.name: self.clocks.declarations.enabling(clock.name) for clock in self.clocks}
        return {name: enabling.every_us for name, enabling in found.items() if enabling.how == "every"}

    def is_on_demand(self, stream: str) -> bool:
        """True if the clock is asked how far the stream is when something waits for that."""
        return self.clocks.declarations.enabling(stream).how == "on demand"

    def length_us(self, stream: str, ticks: Tick) -> int:
        """How long so many ticks of the stream's time take on the engine's clock."""
        return int(ticks * self.clocks.declarations.enabling(stream).tick_us)

    def can_answer(self, stream: str) -> bool:
        """True if the clock is able to say how far the stream is, unless HEARTBEAT NONE forbids it."""
        return self.clocks[stream].stamped_by_engine or self.clocks.declarations.by_clock(stream)

    def follows_clock(self, stream: str) -> bool:
        """True if the clock says how far a stream is that its source stamps."""
        declarations = self.clocks.declarations
        return declarations.by_clock(stream) and declarations.enabling(stream).how != "none"

    def would_answer(self, stream: str) -> bool:
        """True if the clock would say how far a stream is that its source stamps, if it were asked now."""
        declarations = self.clocks.declarations
        by_date = stream in declarations.calendar and self.calendar_us is not None
        by_tuples = declarations.enabling(stream).within is not None and self.clocks[stream].largest is not None
        return self.follows_clock(stream) and (by_date or by_tuples)

    def is_forbidden(self, stream: str) -> bool:
        """True if the engine stamps the stream and HEARTBEAT NONE forbids the clock to say how far it is."""
        return self.clocks[stream].stamped_by_engine and self.clocks.declarations.enabling(stream).how == "none"
