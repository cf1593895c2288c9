"""Clocks: the only place where the time of day is read. Everything else is handed an instant of the engine's clock."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_us(self) -> int:
        """Microseconds on a clock that does not go back."""


class SystemClock:
    def now_us(self) -> int:
        return time.monotonic_ns() // 1_000


class ManualClock:
    """A clock that tests move by hand."""

    def __init__(self, start_us: int = 0) -> None:
        self._now_us = start_us

    def now_us(self) -> int:
        return self._now_us

    def move_by(self, microseconds: int) -> None:
        assert microseconds >= 0, "a clock does not go back"
        self._now_us += microseconds
