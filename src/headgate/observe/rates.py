"""Rates: how much a second, over the last seconds, of counters that are looked at now and then. No clock is read."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

WINDOW_US = 10_000_000
"""Over how long a rate is the average."""

APART_US = 500_000
"""Samples that come sooner after the last one are not kept."""


class Rates:
    """The last samples of some counters."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, Mapping[str, int]]] = deque()

    def sample(self, counters: Mapping[str, int], now_us: int) -> dict[str, float]:
        """Take note of counters, and return the rates of those that were known before.

        A counter that fell began anew: it has no rate until it is looked at again.
        """
        while len(self._samples) > 1 and self._samples[1][0] <= now_us - WINDOW_US:
            self._samples.popleft()
        found = {}
        if self._samples:
            before_us, before = self._samples[0]
            seconds = (now_us - before_us) / 1e6
            if seconds > 0:
                known = ((name, count - before[name]) for name, count in counters.items() if name in before)
                found = {name: round(more / seconds, 3) for name, more in known if more >= 0}
        if not self._samples or now_us - self._samples[-1][0] >= APART_US:
            self._samples.append((now_us, dict(counters)))
        return found
