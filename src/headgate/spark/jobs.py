"""How long the Spark jobs of an epoch take, so that planning can be told from work.

with JOBS.timed():              around whatever makes Spark run a job
    rows = frame.toArrow()
spent_us = JOBS.taken_us()      what this thread has spent so since it last asked
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Jobs(threading.local):
    """The time that jobs have taken, for each thread by itself."""

    def __init__(self) -> None:
        self._spent_ns = 0
        self._within = False

    @contextmanager
    def timed(self) -> Iterator[None]:
        """In here a job runs. What is timed within counts once."""
        if self._within:
            yield
            return
        self._within, began_ns = True, time.monotonic_ns()
        try:
            yield
        finally:
            self._within = False
            self._spent_ns += time.monotonic_ns() - began_ns

    def taken_us(self) -> int:
        """What jobs of this thread have taken since this was last asked, in microseconds."""
        spent_ns, self._spent_ns = self._spent_ns, 0
        return spent_ns // 1_000


JOBS = Jobs()
