"""The driver-side loop: heartbeats, then for each fragment whose input is complete further than before, one epoch.

It reads like the description of the system; all the work is done elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from headgate.catalog import Tick
from headgate.heartbeat.clock import Clock
from headgate.heartbeat.manager import LATE, Heartbeats
from headgate.log.chunk import Chunk
from headgate.log.log import Log
from headgate.runtime.executor import Executor


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one run of a fragment did."""

    query: str
    after: Tick
    until: Tick


class Loop:
    def __init__(self, clock: Clock, heartbeats: Heartbeats, logs: Mapping[str, Log]) -> None:
        self.clock = clock
        self.heartbeats = heartbeats
        self.logs = logs
        self.executors: dict[str, Executor] = {}
        self.deliver: Callable[[Epoch, list[Path]], None] = lambda epoch, files: None

    def step(self) -> list[Epoch]:
        """Take every fragment as far as its inputs are complete."""
        now_us = self.clock.now_us()
        self.heartbeats.set_date(self.clock.date_us(), now_us)
        return self.take({
            name: until
            for name, executor in self.executors.items()
            if (until := self.heartbeats.heartbeat(executor.fragment.program.streams(), now_us)) is not None
        })  # fmt: skip

    def take(self, heartbeats: Mapping[str, Tick]) -> list[Epoch]:
        """One epoch for each fragment whose heartbeat is further than the fragment is."""
        epochs = []
        for name, until in heartbeats.items():
            executor = self.executors[name]
            for stream in executor.fragment.program.streams():
                self.heartbeats.give(stream, until)
            if until > executor.fragment.after and not executor.fragment.failed:
                epoch = Epoch(name, executor.fragment.after, until)
                self.deliver(epoch, executor.run(until))
                epochs.append(epoch)
        return epochs

    def tidy(self) -> None:
        """Move synopses that lag far behind, drop what no fragment will read again, merge small files."""
        for executor in self.executors.values():
            if executor.fragment.due() and not executor.fragment.failed:
                executor.move()
        for name, log in self.logs.items():
            if not name.startswith(LATE):  # dead letters stay, read or not
                log.forget(lambda chunk, name=name: self.needed(name, chunk))  # type: ignore[misc]
            log.compact()

    def needed(self, stream: str, chunk: Chunk) -> bool:
        """Whether any fragment may still read the chunk. A stream without readers keeps everything for those to come."""
        readers = [executor.fragment for executor in self.executors.values() if stream in executor.fragment.program.streams()]
        if not readers:
            return True
        for fragment in readers:
            for source in fragment.program.inputs:
                low = source.low.at(fragment.since, fragment.since)
                if source.stream == stream and (low is None or chunk.high > low):
                    return True
        return False
