"""The status of an engine for all who ask: looked at once in a while, with rates."""

from __future__ import annotations

import threading
import time
from typing import Any

from headgate import __version__
from headgate.observe.overview import Overview, plain
from headgate.observe.rates import Rates
from headgate.server.served import Served


class Status:
    """Remembers the last look at the engine, and shows it to all who ask soon after."""

    def __init__(self, engine: Served, seconds: float) -> None:
        self.engine = engine
        self.seconds = seconds
        self.started = time.time()
        self._rates = Rates()
        self._turn = threading.Lock()
        self._looked_at = float("-inf")
        self._last: tuple[Overview, dict[str, float]] | None = None

    def look(self) -> tuple[Overview, dict[str, float]]:
        """Return how everything is, and the rates of what only grows; many who ask at once make one look."""
        with self._turn:
            if self._last is None or time.monotonic() - self._looked_at >= self.seconds:
                overview = self.engine.overview()
                self._last = overview, self._rates.sample(overview.counters(), overview.now_us)
                self._looked_at = time.monotonic()
            return self._last

    def to_json(self) -> dict[str, Any]:
        """Return the status as JSON has it; a rate stands beside what it is the rate of, in rows a second."""
        overview, rates = self.look()
        said = overview.to_json()
        del said["now_us"]
        said["streams"], said["relations"] = plain(said["streams"]), plain(said["relations"])
        for counter, rate in rates.items():
            part, rest = counter.split("/", 1)
            name, what = rest.rsplit("/", 1)
            place = said["relations"] if part == "streams" and name in said["relations"] else said[part]
            if name in place:
                place[name][f"{what}_rate"] = rate
        return {"version": __version__, "uptime_seconds": round(time.time() - self.started, 3), **said}
