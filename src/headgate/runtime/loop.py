"""The driver-side loop: heartbeats, then for each query the fragments whose input is complete further than before.

It reads like the description of the system; all the work is done elsewhere. One thread at a time runs epochs. It takes the turn
of the journal only to give heartbeats and to commit, so rows go on arriving while Spark computes: they lie behind the
heartbeats that were given, and so behind the epoch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from headgate.catalog import Settings, Tick
from headgate.errors import UserError
from headgate.heartbeat.clock import Clock
from headgate.heartbeat.manager import LATE, Heartbeats
from headgate.log.journal import Journal
from headgate.log.log import Log
from headgate.runtime.asking import Asking
from headgate.runtime.executor import Executor, needed, positions
from headgate.runtime.query import RunningQuery
from headgate.runtime.selection import depth_first
from headgate.runtime.stage import Turn


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one run of a fragment did."""

    query: str
    after: Tick
    until: Tick
    part: str = "answer"


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
        self._epochs: list[Epoch] = []

    def step(self) -> list[Epoch]:
        """Take every query as far as its inputs are complete, or as far as one epoch goes."""
        self.deliver()  # what a crash or a sink that was down left waiting goes before anything new
        with self.journal.turn:
            now_us = self.clock.now_us()
            self.heartbeats.set_date(self.clock.date_us(), now_us)
            self.asking.beat(now_us)
        return self.take(dict.fromkeys(self.queries))

    def take(self, heartbeats: Mapping[str, Tick | None]) -> list[Epoch]:
        """One turn for each query, up to its heartbeat if one is given; then what waits is delivered.

        A query that fails holds up no other: its error comes last.
        """
        self._epochs, failed = [], None
        try:
            for name, fixed in heartbeats.items():
                query = self.queries.get(name)
                if query is None:  # dropped by another thread
                    continue
                self.restart(query)
                try:
                    depth_first(Turn(self, query, fixed).root)
                except UserError as error:
                    if error.code != "query-failed":
                        raise
                    for executor in query.executors:
                        if executor.fragment.failed:
                            executor.back_off.failed(self.clock.now_us())
                    failed = failed or error
        finally:
            self.deliver()  # whatever one query has met with
        if failed is not None:
            raise failed
        return self._epochs

    def take_all(self, heartbeats: Mapping[str, Tick]) -> list[Epoch]:
        """Every query up to its heartbeat, in as many epochs as it needs."""
        epochs: list[Epoch] = []
        while not self.stopping and (more := self.take(heartbeats)):
            epochs += more
            self.tidy()
        return epochs

    def restart(self, query: RunningQuery) -> None:
        """What has failed begins again from its last commit, after a while; if that fails time and again, it stands still."""
        for executor in query.executors if not query.given_up else ():
            if executor.fragment.failed and executor.back_off.ready(self.clock.now_us()):
                executor.restart()
                self.tell(f"{executor.fragment.called} is restarted from where it was")

    # what a turn asks of it

    def targets(self, query: RunningQuery) -> dict[str, Tick | None]:
        """How far each part may go: as far as the streams of its label are complete, and no less than who reads it."""
        with self.journal.turn:
            now_us = self.clock.now_us()
            found: dict[str, Tick | None] = {}
            for part, streams in query.labels().items():  # the answer first
                reading = [found[reader] for reader in query.readers(part)]
                known = [tick for tick in (self.heartbeats.heartbeat(streams, now_us), *reading) if tick is not None]
                found[part] = max(known, default=None)
        return found

    def ask(self, streams: Iterable[str], due: Tick | None = None) -> bool:
        """Ask for enabling timestamps of streams that are read together; whether any of them moved.

        With `due`, the instant that waits to be complete: only if their answers make it so, since otherwise they are of no use.
        """
        with self.journal.turn:
            return self.asking.ask(streams, self.clock.now_us(), due)

    def give(self, streams: Iterable[str], until: Tick) -> None:
        with self.journal.turn:
            for stream in streams:
                self.heartbeats.give(stream, until)

    def ran(self, executor: Executor, after: Tick, until: Tick) -> None:
        fragment = executor.fragment
        self._epochs.append(Epoch(fragment.name, after, until, fragment.part.name))
        executor.back_off.succeeded()

    # results and files

    def deliver(self) -> None:
        """Hand over what waits for the sinks."""
        for query in list(self.queries.values()):
            query.outbox.deliver(self.clock, self.tell)

    def tidy(self) -> None:
        """Move synopses that lag far behind, drop what no query will read again, merge small files."""
        with self.running:
            for query in list(self.queries.values()):
                query.tidy()
            for name, log in list(self.logs.items()):
                readers = [executor for query in list(self.queries.values()) for executor in query.reading(name)]
                if not name.startswith(LATE) and readers:  # dead letters stay, and so does what nobody reads yet
                    log.forget(lambda chunk, name=name, readers=readers: needed(readers, name, chunk))  # type: ignore[misc]
                log.compact(positions(readers, name))
