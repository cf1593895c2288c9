"""Back-off: when to try again after a failure. It neither sleeps nor reads a clock."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_US = 100_000
MOST_US = 30_000_000


@dataclass(slots=True)
class BackOff:
    """Waits 0.1 s after the first failure and twice as long after each further one, at most 30 s, without end."""

    failures: int = 0
    next_us: int = 0

    def ready(self, now_us: int) -> bool:
        """True if it is time to try again, or nothing has failed."""
        return not self.failures or now_us >= self.next_us

    def failed(self, now_us: int) -> None:
        """Note a failure; the next attempt is due after a pause."""
        self.next_us = now_us + pause_us(self.failures)
        self.failures += 1

    def succeeded(self) -> None:
        """Forget the failures."""
        self.failures = 0


def pause_us(failures: int) -> int:
    """How long to wait after one more failure, if `failures` in a row came before it."""
    return min(MOST_US, FIRST_US << min(failures, 16))
