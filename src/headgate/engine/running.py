"""How everything advances: one turn, a run until stopped, a run over all input, a replay.

run        poll and step, each in a thread, and wait for something to arrive, until stopped; what passes is waited out
run_once   take all that the sources have, then answer up to the end of the input
replay     take files in the order of arrival, with a step after each round, then as run_once
step       take every query as far as its inputs are complete, then tidy
advance    take every query to an instant that the program declares complete
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from time import monotonic

from headgate.catalog.entries import Relation, Stream
from headgate.deliver.outbox import Outbox
from headgate.engine import inspection, recovery
from headgate.engine.registry import Registry
from headgate.errors import UserError, report
from headgate.heartbeat.clocks import base
from headgate.observe import status
from headgate.observe.trouble import Trouble
from headgate.observe.watch import watching
from headgate.plan.settled import settled
from headgate.schedule.loop import HAND_SECONDS, Epoch
from headgate.sources.inlet import ticks
from headgate.sources.replay import ReplayClock, date_us, histories
from headgate.spark.failures import concerns_all, raise_all, sentence
from headgate.spark.session import use_pool
from headgate.ticks import Tick, TimeDomain

POLL_SECONDS = 0.5
"""How often sources that do not ring are looked at."""
GLANCE_SECONDS = 0.02
"""How often it is looked whether a folder on this machine has changed. That takes a few microseconds."""
WAIT_SECONDS = 0.05
PATIENCE_US = 30_000_000
"""How long the end of a run over all input waits for a sink that takes nothing."""
POOL = "ingest"
"""The pool of Spark's scheduler in which sources are read, if it has pools: long epochs then do not hold them up."""
TIDY_US = 1_000_000
"""How often a run tidies that has epochs in every turn."""
STATUS_US = 1_000_000
"""How often a running engine writes its status into its directory."""


class Running:
    """Takes queries forward, by hand or until stopped, and keeps the engine's files small."""

    def __init__(self, registry: Registry, resumed: bool) -> None:
        self.registry = registry
        self.core = registry.core
        self.has_worked = resumed
        """True if the sources were ever looked at, also before a restart: what never worked is a mistake, and not
        waited for.
        """
        self.core.inputs.worked |= resumed
        self._source_trouble, self._query_trouble = Trouble(), Trouble()
        """The troubles of the moment. Each is told once when it begins, and once when it is over."""
        self._stopping = False
        self.going_on = False
        """True while `run` goes on."""
        self.endless = False
        """True if a run also goes on while all queries stand still: rows are taken, and requests answered."""
        self._tidied_us = -TIDY_US
        self.tidy_pause_us = 0
        """When it was last tidied, and how long a busy run goes on before it tidies again."""
        self._status_us = -STATUS_US
        """When the status was last written."""
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        """What has ended the run in the thread."""

    # by hand

    def poll(self) -> int:
        """Take what is new from the sources; returns how many tuples came."""
        return self.core.inputs.take(lambda source: source.poll(self.core.clock))

    def step(self) -> list[Epoch]:
        """Take every query as far as its inputs are complete, then tidy; a full disk is tidied too, to make room.

        While a run has epochs in every turn, it tidies once in a while only: the next answer comes first.
        """
        try:
            self.registry.system.look(self.going_on)
            epochs = self.core.loop.step()
        except UserError as error:
            if error.code == "disk-failed":
                self.tidy()
            raise
        if not epochs or self.core.clock.now_us() - self._tidied_us >= self.tidy_pause_us:
            self.tidy()
        return epochs

    def advance(self, to: Tick | datetime | str) -> list[Epoch]:
        """Take every query whose kind of time `to` belongs to up to there, complete or not."""
        until = to if isinstance(to, int) else ticks(to)
        self.registry.system.look(self.going_on)
        meant = [query for query in self.core.programs() if isinstance(to, int) or query.domain is TimeDomain.TIMESTAMP]
        epochs = self.core.loop.take_all({query.name: until for query in meant})
        self.tidy()
        return epochs

    def tidy(self) -> None:
        """Drop and merge files, write a checkpoint if one is due, delete the folders of what was dropped."""
        self._tidied_us = self.core.clock.now_us()
        self.core.loop.tidy()
        self.core.journal.keep_reserve()
        if self.core.journal.checkpoint_due():
            self.checkpoint()
        with self.core.journal.turn:
            beside = self.core.loop.beside
            if self.registry.folders_left and (beside is None or beside.idle):
                self.registry.folders_left = False
                recovery.sweep(self.registry)

    def checkpoint(self) -> None:
        """Begin a new segment of the journal behind a checkpoint of what holds now."""
        self.core.journal.checkpoint(lambda: recovery.checkpoint_facts(self.registry))

    # over all input

    def run_once(self, close: bool | None) -> None:
        """Take all that the sources have, and answer up to the end of the input."""
        failures: list[UserError] = []
        with _collected(failures):
            self.core.inputs.take(lambda source: source.drain(self.core.clock), patient=False)
        self._end_input(close, failures)

    def replay(self, rows: int, close: bool | None) -> None:
        """Take all files in the order of arrival, so many rows at a time, and answer up to the end of the input."""
        core = self.core
        clock = core.clock.clock
        if not core.temporary or not isinstance(clock, ReplayClock):
            raise UserError(
                "no-replay",
                "a replay in the order of arrival is a trial: not in a directory, and by a clock of its own",
            )
        found = histories(core.inputs, core.directory / "replay", core.clock)
        rounds = max((-(-one.rows // rows) for one in found), default=0)
        unit_us = float(core.catalog.settings.unit_seconds * 1_000_000)
        failures: list[UserError] = []
        for pieces in zip(*(one.pieces(rounds) for one in found), strict=True):
            there = [(one, piece) for one, piece in zip(found, pieces, strict=True) if piece is not None]
            with core.journal.turn:
                clock.show(date_us(there, unit_us))
                for one, piece in there:
                    one.take(piece, core.clock)
            with _collected(failures):
                self.step()
        self._end_input(close, failures)

    def _end_input(self, close: bool | None, failures: list[UserError]) -> None:
        """Take every query to the end of the input, hand the results over, then raise all errors.

        A query over a stream that could not be read is left where it was.
        """
        core = self.core
        self.registry.system.look(self.going_on)
        last = {domain: self._last_timestamp(domain) for domain in TimeDomain}
        read = [
            query for query in core.programs() if core.inputs.troubles.keys().isdisjoint(map(base, query.streams()))
        ]
        ends = {query: end for query in read if (end := last[query.domain]) is not None}
        if core.temporary if close is None else close:
            ends = {query: settled(query.definition.plan, end, query.answer.instant_of) for query, end in ends.items()}
        with _collected(failures):
            core.loop.take_all({query.name: end for query, end in ends.items()})
            if not core.temporary:  # otherwise the state serves nobody, unless more comes
                self.tidy()
        with _collected(failures):
            self._hand_over()
        raise_all([*failures, *core.inputs.fresh_notes()])

    def _hand_over(self) -> None:
        """Wait until the sinks have taken everything; one that does not for a while is an error."""
        core = self.core
        waiting = [one for one in core.outlets() if one.undelivered]
        end_us = core.clock.now_us() + PATIENCE_US
        while waiting and not self._stopping and core.clock.now_us() < end_us:
            core.wake.wait(WAIT_SECONDS)
            core.wake.clear()
            core.loop.deliver()
            waiting = [one for one in waiting if one.undelivered]
        raise_all([_not_taken(one.outbox) for one in waiting if not self._stopping])

    def _last_timestamp(self, domain: TimeDomain) -> Tick | None:
        """The largest timestamp that has come on any stream or relation with that kind of time."""
        catalog = self.core.catalog
        inputs: list[Stream | Relation] = [*catalog.streams.values(), *catalog.relations.values()]
        seen = (self.core.heartbeats.stream(one.name).largest for one in inputs if one.domain is domain)
        return max((largest for largest in seen if largest is not None), default=None)

    # until stopped

    def run(self, until: Callable[[], bool] | None, tell: Callable[[str], None] | None) -> None:
        """Step, turn after turn, until `stop` is called or the condition holds, while a thread reads the sources."""
        loop = self.core.loop
        loop.tell = tell or loop.tell
        loop.patience_s = 0
        self.tidy_pause_us = TIDY_US
        self.going_on = True
        try:
            beside = loop.running_beside(self.core.wake.set)
            with watching(loop.watch, self.core.clock), self._ingesting() as failed, beside:
                while not self._stopping and not failed and not (until is not None and until()):
                    busy = self._turn()
                    if not busy and not self._stopping and not failed:
                        self.core.wake.wait(self._patience_s())
                        self.core.wake.clear()
        finally:
            loop.patience_s = HAND_SECONDS
            self.tidy_pause_us = 0
            self.going_on = False
        self._stopping = loop.stopping = False

    def _turn(self) -> bool:
        """Step once, tell what went wrong; True if there may be more to do at once."""
        loop, epochs = self.core.loop, list[Epoch]()
        with self._query_trouble.waited_out(loop.tell, self._goes_on):
            epochs = self.step()
        self._write_status()
        return bool(epochs or loop.flushing()) or self._planned_ahead()

    def _planned_ahead(self) -> bool:
        """Make a plan that will be needed, if nothing else is to be done; True if one was made."""
        kept = self.core.workspaces.kept
        return kept is not None and not self.core.wake.is_set() and kept.plan_ahead()

    @contextmanager
    def _ingesting(self) -> Iterator[list[BaseException]]:
        """In here, a thread reads the sources. An error that ends it is in the list, and is raised in the end."""
        core, over, failed = self.core, threading.Event(), list[BaseException]()

        def ingest() -> None:
            try:
                use_pool(core.spark, POOL)
                while not over.is_set() and not self._stopping:
                    if not self._look() and not over.is_set() and not self._stopping:
                        self._wait_to_look()
                    core.look.clear()
            except BaseException as error:
                failed.append(error)
                core.wake.set()

        core.loop.horizon.begin_cuts()
        thread = threading.Thread(target=ingest, name="ingest", daemon=True)
        thread.start()
        try:
            yield failed
        finally:
            over.set()
            core.look.set()
            thread.join()
            core.loop.horizon.end_cuts()
        if failed:
            raise failed[0]

    def _wait_to_look(self) -> None:
        """Wait until a source may have something: one rings, a folder has changed, or it is time to look anyway."""
        inputs, end_s = self.core.inputs, monotonic() + self._patience_s()
        while (left_s := end_s - monotonic()) > 0:
            glance_s = GLANCE_SECONDS if inputs.watched() else POLL_SECONDS
            if self.core.look.wait(min(left_s, glance_s)) or inputs.stirred():
                return

    def _look(self) -> int:
        """Read what is new from all sources, tell what went wrong, and let queries go on; how many tuples came."""
        loop, arrived = self.core.loop, 0
        with self._source_trouble.waited_out(loop.tell, self._goes_on_reading):
            arrived = self.poll()
        self.has_worked = True
        for note in self.core.inputs.fresh_notes():
            loop.tell(note.render())
        loop.horizon.cut(loop.queries)
        self.core.wake.set()
        return arrived

    def start(self, tell: Callable[[str], None] | None) -> None:
        """Run in a thread of its own."""
        if self._stopping and self._thread is not None:
            self.end()
        if self.going_on or (self._thread is not None and self._thread.is_alive()):
            raise UserError("already-running", "the engine runs already", hint="engine.stop() ends that run.")
        self._failure = None

        self.endless = True

        def run() -> None:
            try:
                self.run(None, tell)
            except BaseException as error:
                self._failure = error
                self.core.loop.tell(error.render() if isinstance(error, UserError) else report(error))

        self._thread = threading.Thread(target=run, name="engine", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End the run in the thread, and wait until it has ended."""
        if self._thread is not None:
            if self._thread.is_alive():
                self.stop()
            self._thread.join()
            self._thread, self._stopping, self.core.loop.stopping = None, False, False

    def raise_failure(self) -> None:
        """Raise the error that has ended the run in the thread, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def stop(self) -> None:
        """Let a run end after the epoch it is in."""
        self._stopping = self.core.loop.stopping = True
        self.core.wake_all()

    def _patience_s(self) -> float:
        """How long to wait for something to arrive: no longer than until the clock alone lets something go on."""
        known = (self.core.asking.next_us, self.core.loop.next_early_us(), self.registry.system.next_us())
        next_us = min((one for one in known if one is not None), default=None)
        if next_us is None:
            return POLL_SECONDS
        return min(max((next_us - self.core.clock.now_us()) / 1e6, 0), POLL_SECONDS)

    def _goes_on(self, error: UserError) -> str:
        """How things go on when a query, or something that all need, has failed; empty if they do not."""
        if concerns_all(error):
            return "It is tried again." if error.code == "disk-failed" else ""
        queries = self.core.programs()
        failed = [query for query in queries if query.failed]
        if any(not query.given_up for query in failed):
            return "It is restarted from where it was."
        if not failed:
            return "Everything goes on."
        if len(failed) < len(queries):
            return "It stands still, the others go on."
        return "All queries stand still now. Rows are still taken, and kept." if self.endless else ""

    def _goes_on_reading(self, error: UserError) -> str:
        """How things go on when a source cannot be read; empty if they do not."""
        if concerns_all(error):
            return self._goes_on(error) if self.has_worked else ""
        return "It is tried again, and the others go on." if self.core.inputs.worked else ""

    def _write_status(self) -> None:
        """Write the status for `headgate why` into the engine's directory, every second or so."""
        now_us = self.core.clock.now_us()
        if not self.core.temporary and now_us - self._status_us >= STATUS_US:
            self._status_us = now_us
            self.write_status()

    def write_status(self) -> None:
        """Write why each query has come no further, its traces, and what has failed into the engine's directory."""
        with self.core.journal.turn:
            reasons = inspection.reasons(self.core)
        traces = {query.name: query.traces for query in self.core.queries()}
        with suppress(OSError):  # a full disk is told of elsewhere
            status.write(self.core.directory, reasons, traces, inspection.troubles(self.core))


@contextmanager
def _collected(failures: list[UserError]) -> Iterator[None]:
    """Add errors of single queries, sources and sinks to a list instead of raising them."""
    try:
        yield
    except UserError as error:
        if concerns_all(error):
            raise
        failures.append(error)


def _not_taken(outbox: Outbox) -> UserError:
    """The error for a sink that has not taken all results."""
    trouble = outbox.trouble
    return UserError(
        "sink-failed",
        f"the sink of {outbox.owner} has not taken all results",
        detail="It has not answered yet." if trouble is None else sentence(trouble),
        hint="With --directory they are kept, and delivered the next time.",
    )
