"""The driver-side loop: heartbeats, then for each query the fragments whose input is complete further than before.

It reads like the description of the system; all the work is done elsewhere. One thread at a time runs epochs. It takes
the turn of the journal only to give heartbeats and to commit, so rows go on arriving while Spark computes: they lie
behind the heartbeats that were given, and so behind the epoch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

from headgate.errors import UserError
from headgate.execute.executor import Executor, needed, positions
from headgate.heartbeat.clock import Clock
from headgate.heartbeat.clocks import LATE
from headgate.heartbeat.manager import Heartbeats
from headgate.log.chunk import Chunk
from headgate.log.journal import Journal
from headgate.log.log import Log
from headgate.observe.trace import SINK
from headgate.observe.watch import Watch
from headgate.plan.fragments import Part
from headgate.schedule.asking import Asking
from headgate.schedule.query import RunningQuery
from headgate.schedule.selection import depth_first
from headgate.schedule.stage import Turn
from headgate.settings import Settings
from headgate.spark.failures import check_alive, concerns_all, failure, raise_all
from headgate.ticks import UNLIMITED, Tick

HAND_SECONDS = 30.0
"""How long `step` and `advance`, called by hand, wait for a sink that does not come back. While `run` runs, nobody
waits.
"""


@dataclass(slots=True)
class Epoch:
    """What one run of a fragment did."""

    query: str
    after: Tick
    until: Tick
    part: str = "answer"
    rows: int = 0
    """How many it has put out."""


class Loop:
    def __init__(
        self,
        clock: Clock,
        heartbeats: Heartbeats,
        asking: Asking,
        logs: Mapping[str, Log],
        journal: Journal,
        settings: Callable[[], Settings],
    ) -> None:
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
        self.watch = Watch(lambda: self.settings().failed_after_us, lambda finding: self.tell(str(finding)))
        self.patience_s = HAND_SECONDS
        """How long a sink is waited for."""
        self._epochs: list[Epoch] = []

    def step(self) -> list[Epoch]:
        """Take every query as far as its inputs are complete, or as far as one epoch goes."""
        self.deliver(pieces=0)  # what a crash or a sink that was down left waiting goes before anything new
        with self.journal.turn:
            now_us = self.clock.now_us()
            self.heartbeats.enabling.set_date(self.clock.date_us(), now_us)
            self.asking.beat(now_us)
            self.look(now_us)
        epochs = self.take(dict.fromkeys(self.queries))
        self.asking.raise_failed()
        return epochs

    def take(self, heartbeats: Mapping[str, Tick | None]) -> list[Epoch]:
        """One turn for each query, up to its heartbeat if one is given; its results are delivered before the next one's
        turn.

        A query that fails holds up no other, whatever it has met with: the errors come last.
        """
        self._epochs, failures, delivered = [], list[UserError](), set[str]()
        try:
            for name, fixed in heartbeats.items():
                query = self.queries.get(name)
                if query is None:  # dropped by another thread
                    continue
                standing = {executor for executor in query.executors if executor.fragment.failed}
                try:
                    self.restart(query, standing)
                    for answer in query.answers:
                        depth_first(Turn(self, query, answer, fixed).root)
                except Exception as error:
                    if self.queries.get(name) is query:  # otherwise it was dropped meanwhile
                        failures.append(self.failed(query, error, standing))
                else:
                    query.trouble = query.trouble if query.failed else None
                    delivered.add(name)
                    try:
                        self.deliver_of(query, pieces=1)
                    except UserError as error:
                        failures.append(error)
                failures += query.complaints
                query.complaints = []
        finally:
            try:
                self.deliver(pieces=1, but=delivered)  # whatever one query has met with
            except UserError as error:
                failures.append(error)
        raise_all(failures)
        return self._epochs

    def take_all(self, heartbeats: Mapping[str, Tick]) -> list[Epoch]:
        """Every query up to its heartbeat, in as many epochs as it needs. What fails is left out from then on."""
        epochs, failures, left = list[Epoch](), list[UserError](), dict(heartbeats)
        while not self.stopping:
            try:
                self.take(left)
            except UserError as error:
                if concerns_all(error):
                    raise
                failures.append(error)
            left = {
                name: until for name, until in left.items() if name in self.queries and not self.queries[name].failed
            }
            if not self._epochs:
                break
            epochs += self._epochs
            try:
                self.tidy()
            except UserError as error:
                if concerns_all(error):
                    raise
                failures.append(error)
        raise_all(failures)
        return epochs

    def failed(self, query: RunningQuery, error: Exception, before: Collection[Executor] = ()) -> UserError:
        """Whatever of the query has failed now, and not before, is left alone for a while. What concerns all is
        raised.
        """
        check_alive(query.executor.origin, error)
        failed = failure(error, "query-failed", f'query "{query.name}" failed')
        if concerns_all(failed):
            raise failed from error
        if not any(executor.fragment.failed and executor not in before for executor in query.executors):
            query.executor.fragment.failed = True  # it was between two epochs
        for executor in query.executors:
            if executor.fragment.failed and executor not in before:
                executor.back_off.failed(self.clock.now_us())
        query.trouble = failed
        return failed

    def restart(self, query: RunningQuery, standing: set[Executor]) -> None:
        """What has failed begins again from its last commit, after a while; if that fails time and again, it stands
        still.

        Those that are tried again, successfully or not, are taken out of those that stand.
        """
        for executor in query.executors if not query.given_up else ():
            if executor.fragment.failed and executor.back_off.ready(self.clock.now_us()):
                standing.discard(executor)
                executor.restart()
                self.tell(f"{executor.fragment.called} is restarted from where it was")

    def look(self, now_us: int) -> None:
        """Let it be seen whether streams that are read go on; one that is paused, or asked only on demand, is not
        expected to.
        """
        if self.settings().failed_after_us is not None:
            read = {stream for query in self.queries.values() for stream in query.traces.streams}
            times = {name: self.heartbeats.stream(name) for name in sorted(read)}
            watched = {name: time for name, time in times.items() if time.is_watched}
            going_on = {name: time for name, time in watched.items() if not self.asking.known(name)}
            self.watch.looked({name: time.complete(now_us) for name, time in going_on.items()}, now_us)

    # what a turn asks of it

    def targets(self, query: RunningQuery, answer: Executor) -> dict[str, Tick | None]:
        """How far each part may go: as far as the streams of its label are complete, and no less than who reads it."""
        parts = {executor.fragment.part.name: executor.fragment.part for executor in query.leading_to(answer)}
        with self.journal.turn:
            now_us = self.clock.now_us()
            found: dict[str, Tick | None] = {}
            for name, streams in query.labels().items():  # the answer first
                reading = [found[reader] for reader in query.readers(name)]
                scopes = parts[name].scopes if streams == parts[name].streams else answer.fragment.part.scopes
                heartbeat = self.heartbeats.complete(streams, now_us, scopes=scopes)
                found[name] = max((tick for tick in (heartbeat, *reading) if tick is not None), default=None)
        return found

    def ask(self, part: Part, due: Tick | None = None) -> bool:
        """Ask for enabling timestamps of streams that are read together; whether any of them moved.

        With `due`, the instant that waits to be complete: only if their answers make it so, since otherwise they are of
        no use."""
        with self.journal.turn:
            return self.asking.ask(part.streams, self.clock.now_us(), due, part.scopes)

    def give(self, part: Part, until: Tick) -> None:
        with self.journal.turn:
            for stream in part.streams:
                self.heartbeats.promise(stream, until, part.scopes.get(stream))

    def sent(self, query: RunningQuery, heartbeat: Tick | None) -> None:
        """A heartbeat sets out on its way through the query: whatever runs now runs because of it."""
        if heartbeat is None:
            return
        now_us = self.clock.now_us()
        with self.journal.turn:
            times = {name: self.heartbeats.stream(name) for name in query.traces.streams}
            complete = {
                name: UNLIMITED if time.finished else time.complete(now_us, times, query.scopes.get(name))
                for name, time in times.items()
            }
            if len(query.answers) > 1:  # a heartbeat of the whole is one of all groups
                heartbeat = self.heartbeats.complete(times, now_us, scopes=query.scopes)
            heard_us = {name: time.came_us for name, time in times.items()}
        query.traces.looked(complete, heard_us, now_us)
        if heartbeat is None:
            return
        query.traces.sent(heartbeat, now_us)
        for executor in query.executors:  # some have been so far for long
            if (reached := query.reached_by(executor)) >= heartbeat:
                query.traces.seen(executor.fragment.stop, reached, now_us, now_us)

    @contextmanager
    def epoch(self, query: RunningQuery, executor: Executor) -> Iterator[Epoch]:
        """An epoch of a fragment, watched, traced and noted."""
        fragment = executor.fragment
        epoch = Epoch(query.name, fragment.after, fragment.after, fragment.part.name)
        began_us = self.clock.now_us()
        try:
            with self.watch.over(fragment.called, executor.session, self.clock):
                yield epoch
        except Exception as error:
            fragment.failed |= not concerns_all(error)
            raise
        query.traces.seen(fragment.stop, query.reached_by(executor), began_us, self.clock.now_us(), epoch.rows)
        self._epochs.append(epoch)
        if not fragment.due():  # otherwise its state has yet to be moved
            executor.back_off.succeeded()

    # results and files

    def deliver(self, pieces: int | None = None, but: Collection[str] = ()) -> None:
        """Hand over what waits for the sinks, except those of some queries; of a large epoch only so many pieces."""
        failures: list[UserError] = []
        for query in list(self.queries.values()):
            if query.name not in but:
                try:
                    self.deliver_of(query, pieces)
                except UserError as error:
                    failures.append(error)
        raise_all(failures)

    def deliver_of(self, query: RunningQuery, pieces: int | None) -> None:
        """Hand over what waits for one sink, in its own thread. What is raised: what the sink has taken could not be
        noted.
        """
        began_us = self.clock.now_us()
        try:
            query.courier.deliver(self.clock, self.tell, pieces, self.patience_s)
        finally:
            query.traces.seen(SINK, query.outbox.delivered(query.reached), began_us, self.clock.now_us())

    def flushing(self) -> bool:
        """Whether some sink may take more of what waits in the next turn."""
        return any(query.courier.more(self.clock.now_us()) for query in list(self.queries.values()))

    def finish(self, wait_s: float) -> None:
        """Hand over the rest of what is being flushed, and wait no longer than that for all sinks together."""
        end_s = monotonic() + wait_s
        for query in list(self.queries.values()):
            query.courier.finish(self.clock, self.tell, max(0.0, end_s - monotonic()))

    def tidy(self) -> None:
        """Move synopses that lag far behind, drop what no query will read again, merge small files."""
        failures: list[UserError] = []
        with self.running:
            for query in list(self.queries.values()):
                before = {executor for executor in query.executors if executor.fragment.failed}
                try:
                    self.move(query)
                    query.tidy()
                except Exception as error:
                    failures.append(self.failed(query, error, before))
            for name, log in list(self.logs.items()):
                try:
                    if not name.startswith(LATE):  # dead letters stay, read or not
                        log.forget(lambda chunk, name=name: self.needed(name, chunk))  # type: ignore[misc]
                    log.compact(positions(self.reading(name), name))
                except Exception as error:
                    failures.append(failure(error, "log-not-tidied", f'the files of "{name}" could not be merged'))
        raise_all(failures)

    def move(self, query: RunningQuery) -> None:
        """Move synopses of a query that lag far behind."""
        for executor in query.executors:
            if executor.fragment.due() and not executor.fragment.failed:
                try:
                    with self.watch.over(executor.fragment.called, executor.session, self.clock):
                        executor.move()
                except Exception as error:
                    executor.fragment.failed |= not concerns_all(error)
                    raise
                executor.back_off.succeeded()

    def reading(self, log: str) -> list[Executor]:
        return [executor for query in list(self.queries.values()) for executor in query.reading(log)]

    def needed(self, log: str, chunk: Chunk) -> bool:
        """Whether any query may still read the chunk. A stream without readers keeps everything for those to come."""
        readers = self.reading(log)
        return not readers or needed(readers, log, chunk)
