"""Clocks: the only place where the time of day is read. Everything else is handed an instant of the engine's clock."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A clock that an engine reads."""

    def now_us(self) -> int:
        """Microseconds on a clock that does not go back."""

    def date_us(self) -> int | None:
        """Microseconds since 1970 by the calendar, which can be put back; None if the clock knows no date."""


class SystemClock:
    """The clock of the computer."""

    def now_us(self) -> int:
        """Microseconds of the monotonic clock."""
        return time.monotonic_ns() // 1_000

    def date_us(self) -> int:
        """Microseconds since 1970."""
        return time.time_ns() // 1_000


class EngineClock:
    """The clock of an engine that can be stopped and started again: it stands still meanwhile, and never goes back."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._ahead_us = 0
        self._recorded_us: int | None = None

    def now_us(self) -> int:
        """Microseconds on the engine's clock."""
        return self.clock.now_us() + self._ahead_us if self._recorded_us is None else self._recorded_us

    def date_us(self) -> int | None:
        """Microseconds since 1970 by the clock below; None if it knows no date."""
        return self.clock.date_us()

    @property
    def standing(self) -> bool:
        """True if it shows recorded instants, because the journal is being replayed."""
        return self._recorded_us is not None

    def stand_at(self, instant_us: int) -> None:
        """Show a recorded instant until `go_on`."""
        self._recorded_us = max(instant_us, self._recorded_us or 0)

    def go_on(self) -> None:
        """Go on from where it stands."""
        if self._recorded_us is not None:
            self._ahead_us = self._recorded_us - self.clock.now_us()
            self._recorded_us = None


class ManualClock:
    """A clock that tests move by hand. It knows the date if it was told one to start with."""

    def __init__(self, start_us: int = 0, date_us: int | None = None) -> None:
        self._now_us = start_us
        self._date_us = date_us

    def now_us(self) -> int:
        """Microseconds, as the clock was moved."""
        return self._now_us

    def date_us(self) -> int | None:
        """Microseconds since 1970, moved with the clock; None if it was told no date."""
        return self._date_us

    def move_by(self, microseconds: int) -> None:
        """Move the clock forward."""
        assert microseconds >= 0, "a clock does not go back"
        self._now_us += microseconds
        if self._date_us is not None:
            self._date_us += microseconds
