"""Back-off: when a sink, a source or a query that failed is tried again. It neither sleeps nor reads a clock."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_US = 100_000
MOST_US = 30_000_000


@dataclass(slots=True)
class BackOff:
    """0.1 s after the first failure, twice as long after each further one, 30 s at the most; for ever."""

    failures: int = 0
    next_us: int = 0

    def ready(self, now_us: int) -> bool:
        return not self.failures or now_us >= self.next_us

    def failed(self, now_us: int) -> None:
        self.next_us = now_us + pause_us(self.failures)
        self.failures += 1

    def succeeded(self) -> None:
        self.failures = 0


def pause_us(failures: int) -> int:
    """How long to wait after one more failure when there were `failures` in a row before it."""
    return min(MOST_US, FIRST_US << min(failures, 16))
