"""What the routes of one server share: the engine, the limits, and the threads that do the work.

Work that waits for a disk or a lock is done in threads, so that it holds up no other request. Rows have threads of
their own: those who look at things cannot keep them out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from headgate.server.limits import Limits
from headgate.server.metrics import Metrics
from headgate.server.pushing import Desk
from headgate.server.receiving import Bodies
from headgate.server.served import Served
from headgate.server.status import Status
from headgate.sources.inputs import Inputs

T = TypeVar("T")

PUSH_THREADS = 16
"""Pushes that wait at the same time are made durable together, so threads that only wait are of use."""

LOOK_THREADS = 2
READ_THREADS = 2
"""What these do is short: they read the bodies of statements."""


class Office:
    """The parts of one server."""

    def __init__(self, engine: Served, inputs: Inputs, limits: Limits) -> None:
        self.engine = engine
        self.inputs = inputs
        self.limits = limits
        self.desk = Desk(engine, inputs)
        self.bodies = Bodies(limits)
        self.status = Status(engine, limits.status_seconds)
        self.metrics = Metrics(self.status)
        self.on_stop: list[Callable[[], None]] = []
        self._pushing = ThreadPoolExecutor(PUSH_THREADS, thread_name_prefix="headgate-push")
        self._reading = ThreadPoolExecutor(READ_THREADS, thread_name_prefix="headgate-read")
        self._looking = ThreadPoolExecutor(LOOK_THREADS, thread_name_prefix="headgate-look")

    async def work(self, work: Callable[..., T], *arguments: Any) -> T:
        """Take rows, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pushing, work, *arguments)

    async def read(self, work: Callable[..., T], *arguments: Any) -> T:
        """Read a body, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._reading, work, *arguments)

    async def look(self, work: Callable[..., T], *arguments: Any) -> T:
        """Look at something, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._looking, work, *arguments)

    def begin_to_stop(self) -> None:
        """Take no more requests, and let those end that would go on for ever."""
        self.desk.stopping = True
        for one in self.on_stop:
            one()

    def close(self) -> None:
        """Let go of the threads when the last request has been answered."""
        self._pushing.shutdown()
        self._reading.shutdown(cancel_futures=True)
        self._looking.shutdown(cancel_futures=True)
