"""Clocks: the only place where the time of day is read. Everything else is handed an instant of the engine's clock."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_us(self) -> int:
        """Microseconds on a clock that does not go back."""

    def date_us(self) -> int | None:
        """Microseconds since 1970 by the calendar, which can be put back; None if the clock knows no date."""


class SystemClock:
    def now_us(self) -> int:
        return time.monotonic_ns() // 1_000

    def date_us(self) -> int:
        return time.time_ns() // 1_000


class EngineClock:
    """The clock of an engine that can be stopped and started again: it stands still meanwhile, and never goes back."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._ahead_us = 0
        self._recorded_us: int | None = None

    def now_us(self) -> int:
        return self.clock.now_us() + self._ahead_us if self._recorded_us is None else self._recorded_us

    def date_us(self) -> int | None:
        return self.clock.date_us()

    @property
    def standing(self) -> bool:
        """Whether it shows recorded instants, because what happened is being done once more."""
        return self._recorded_us is not None

    def stand_at(self, instant_us: int) -> None:
        """It shows what it showed when something was recorded, until it goes on."""
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
        return self._now_us

    def date_us(self) -> int | None:
        return self._date_us

    def move_by(self, microseconds: int) -> None:
        assert microseconds >= 0, "a clock does not go back"
        self._now_us += microseconds
        if self._date_us is not None:
            self._date_us += microseconds
