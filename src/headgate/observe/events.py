"""Events for a system stream: what happened, summed up by what it is about, in a bounded number of rows an interval.

An event that is about the same as one that still waits is added to its count. Rows are given out as soon as there are
any, but no more than `MOST_ROWS` in an interval: what comes then waits for the next one and is summed up meanwhile. If
more things than that have events, those beyond are summed up in one row whose other columns are null. Nothing is lost.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

MOST_ROWS = 1_000
"""So many rows has a system stream of events in one interval at the most."""


class Events:
    """The events that wait to become rows. Any thread may add some."""

    def __init__(self, count: str) -> None:
        self.count = count
        """The column that says how many events a row sums up."""
        self._waiting: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._interval: int | None = None
        self._rows = 0
        """How many rows were given out in that interval."""
        self._turn = threading.Lock()

    def add(self, key: tuple[Any, ...], values: Mapping[str, Any], count: int = 1) -> None:
        """Take note of events about the same thing. The values of the last one stand in the row."""
        with self._turn:
            if key not in self._waiting and len(self._waiting) >= MOST_ROWS - 1:
                key, values = (), {}
            before = self._waiting.get(key, {}).get(self.count, 0)
            self._waiting[key] = {**values, self.count: before + count}

    def taken(self, interval: int) -> list[dict[str, Any]]:
        """Return the rows that may be given out in this interval, and let them go."""
        with self._turn:
            if interval != self._interval:
                self._interval, self._rows = interval, 0
            if self._rows + len(self._waiting) > MOST_ROWS:
                return []
            rows = list(self._waiting.values())
            self._rows += len(rows)
            self._waiting = {}
            return rows

    def put_back(self, rows: list[dict[str, Any]]) -> None:
        """Keep rows that could not be written, to be given out in the next interval."""
        for row in rows:
            values = {name: value for name, value in row.items() if name != self.count}
            self.add(tuple(values.values()), values, row[self.count])
