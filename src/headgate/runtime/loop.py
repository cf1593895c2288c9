"""The driver-side loop: heartbeats, then for each query whose input is complete further than before, one epoch.

It reads like the description of the system; all the work is done elsewhere. One thread at a time runs epochs. It takes the turn
of the journal only to give heartbeats and to commit, so rows go on arriving while Spark computes: they lie behind the
heartbeats that were given, and so behind the epoch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from headgate.catalog import Settings, Tick
from headgate.heartbeat.clock import Clock
from headgate.heartbeat.manager import LATE, Heartbeats
from headgate.log.chunk import Chunk
from headgate.log.journal import Journal
from headgate.log.log import Log
from headgate.runtime.asking import Asking
from headgate.runtime.cut import cut
from headgate.runtime.query import RunningQuery


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one run of a query did."""

    query: str
    after: Tick
    until: Tick


class Loop:
    def __init__(
        self, clock: Clock, heartbeats: Heartbeats, asking: Asking, logs: Mapping[str, Log], journal: Journal,
        settings: Callable[[], Settings],
    ) -> None:  # fmt: skip
        self.clock = clock
        self.heartbeats = heartbeats
        self.asking = asking
        self.logs = logs
        self.journal = journal
        self.settings = settings
        self.queries: dict[str, RunningQuery] = {}
        self.tell: Callable[[str], None] = lambda text: None
        self.stopping = False
        self.running = threading.Lock()
        """Held while an epoch runs."""

    def step(self) -> list[Epoch]:
        """Take every query as far as its inputs are complete, or as far as one epoch goes."""
        self.deliver()  # what a crash or a sink that was down left waiting goes before anything new
        with self.journal.turn:
            now_us = self.clock.now_us()
            self.heartbeats.set_date(self.clock.date_us(), now_us)
            self.asking.beat(now_us)
            for query in self.queries.values():
                due = None if query.executor.fragment.failed else query.due()
                if due is not None:
                    self.ask(query.streams(), now_us, due)
            complete = {
                name: until
                for name, query in self.queries.items()
                if (until := self.heartbeats.heartbeat(query.streams(), now_us)) is not None
            }
        return self.take(complete)

    def ask(self, streams: Iterable[str], now_us: int, due: Tick | None = None) -> bool:
        """Ask for enabling timestamps of streams that are read together; whether any of them moved.

        With `due`, the instant that waits to be complete: only if their answers make it so, since otherwise they are of no use.
        """
        return self.asking.ask(streams, now_us, due)

    def take(self, heartbeats: Mapping[str, Tick]) -> list[Epoch]:
        """One epoch for each query whose heartbeat is further than the query is; then what waits is delivered."""
        epochs: list[Epoch] = []
        try:
            self.run_epochs(heartbeats, epochs)
        finally:
            self.deliver()  # whatever one query has met with
        return epochs

    def run_epochs(self, heartbeats: Mapping[str, Tick], epochs: list[Epoch]) -> None:
        for name, complete in heartbeats.items():
            query = self.queries.get(name)
            if query is None:  # dropped by another thread
                continue
            after = query.reached
            until = self.next_end(query, complete)
            with self.journal.turn:
                for stream in query.streams():
                    self.heartbeats.give(stream, until)
            if until > after and not query.executor.fragment.failed:
                with self.running:
                    query.take(until)
                epochs.append(Epoch(name, after, until))

    def deliver(self) -> None:
        """Hand over what waits for the sinks."""
        for query in list(self.queries.values()):
            query.outbox.deliver(self.clock, self.tell)

    def take_all(self, heartbeats: Mapping[str, Tick]) -> list[Epoch]:
        """Every query up to its heartbeat, in as many epochs as it needs."""
        epochs: list[Epoch] = []
        while not self.stopping and (more := self.take(heartbeats)):
            epochs += more
            self.tidy()
        return epochs

    def next_end(self, query: RunningQuery, complete: Tick) -> Tick:
        """Where the next epoch of a query ends: at the heartbeat, or where there are enough rows before it."""
        after, start = query.reached, query.executor.fragment.start
        after = after if start is None else max(after, min(start, complete))  # nothing of before is read
        waiting = [chunk for stream in query.streams() for chunk in self.logs[stream].overlapping(after, complete)]
        return cut(waiting, after, complete, self.settings().epoch_rows)

    def tidy(self) -> None:
        """Move synopses that lag far behind, drop what no query will read again, merge small files."""
        with self.running:
            for query in list(self.queries.values()):
                query.tidy()
            for name, log in list(self.logs.items()):
                if not name.startswith(LATE):  # dead letters stay, read or not
                    log.forget(lambda chunk, name=name: self.needed(name, chunk))  # type: ignore[misc]
                log.compact()

    def needed(self, stream: str, chunk: Chunk) -> bool:
        """Whether any query may still read the chunk. A stream without readers keeps everything for those to come."""
        readers = [query.executor.fragment for query in list(self.queries.values()) if stream in query.streams()]
        if not readers:
            return True
        for fragment in readers:
            for source in fragment.program.inputs:
                low = source.low.at(fragment.since, fragment.since)
                if source.stream == stream and (low is None or chunk.high > low):
                    return True
        return False
