"""Fair turns: of those who wait, each client has its turn before any has a second one.

However much one client sends, another waits for one of its texts at the most. Room is shared in the same way: where
there is none left, it is taken from the client that has most of it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False, slots=True)
class Job:
    """A text of a client, and what becomes of it."""

    client: str
    cql: str
    done: asyncio.Future[Any]
    begun: bool = False
    given_up: bool = False
    _change: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> bool:
        """Begin to carry it out; False if nobody waits for it any more."""
        with self._change:
            self.begun = not self.given_up
            return self.begun

    def give_up(self) -> bool:
        """Wait for it no longer; False if it was begun."""
        with self._change:
            self.given_up = not self.begun
            return self.given_up


class Turns:
    """The jobs that wait, by client."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.waiting: dict[str, deque[Job]] = {}
        """The client whose turn it is stands first."""

    def __len__(self) -> int:
        return sum(map(len, self.waiting.values()))

    def add(self, job: Job) -> Job | None:
        """Let a job wait. Returns the one for which there is no room then, which may be the same."""
        self.waiting.setdefault(job.client, deque()).append(job)
        if len(self) <= self.most:
            return None
        most = max(map(len, self.waiting.values()))
        greedy = job.client if len(self.waiting[job.client]) == most else self._first_with(most)
        last = self.waiting[greedy][-1]
        self.remove(last)
        return last

    def _first_with(self, many: int) -> str:
        return next(client for client, jobs in self.waiting.items() if len(jobs) == many)

    def take(self) -> Job | None:
        """The next job, which waits no longer; None if none waits."""
        if not self.waiting:
            return None
        client = next(iter(self.waiting))
        jobs = self.waiting.pop(client)
        job = jobs.popleft()
        if jobs:
            self.waiting[client] = jobs  # behind all others
        return job

    def remove(self, job: Job) -> None:
        """Let a job wait no longer, if it does."""
        jobs = self.waiting.get(job.client)
        if jobs is None or job not in jobs:
            return
        jobs.remove(job)
        if not jobs:
            del self.waiting[job.client]
