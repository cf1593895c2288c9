"""A query as its user sees it while it runs: results, how far they are complete, and why not further."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query
from headgate.deliver.courier import CLOSE_SECONDS, Courier
from headgate.deliver.outbox import Outbox
from headgate.deliver.sinks.sink import Result, in_order
from headgate.delta.program import Kept
from headgate.errors import UserError
from headgate.execute.executor import RESTARTS, Executor, needed
from headgate.explain import explained
from headgate.heartbeat.manager import base, progress
from headgate.heartbeat.why import Why
from headgate.log.chunk import Chunk
from headgate.log.journal import Fact
from headgate.log.log import Log
from headgate.observe.trace import Traces
from headgate.plan.fragments import labels
from headgate.plan.limits import Growing
from headgate.plan.scopes import scopes
from headgate.scope import Scopes
from headgate.spark.failures import called
from headgate.spark.session import let_go
from headgate.ticks import Tick, TimeDomain


class RunningQuery:
    """A registered query: its results so far, and how far they are complete."""

    def __init__(
        self,
        definition: Query,
        executors: Sequence[Executor],
        outbox: Outbox,
        catalog: Catalog,
        reason: Callable[[RunningQuery], Why],
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.definition = definition
        self.executors = executors
        """Of its fragments, each behind those it reads; the last gives the answer. By groups: of each group's
        answer.
        """
        self.outbox = outbox
        self.courier = Courier(outbox, wake)
        streams = sorted(set(map(base, self.executor.fragment.part.streams)))
        stops = dict.fromkeys(executor.fragment.stop for executor in executors)
        self.traces = Traces(streams, stops, self.domain)
        self._catalog = catalog
        self._reason = reason
        self._listeners: list[Callable[[Sequence[Result]], None]] = []
        self.trouble: UserError | None = None
        """Why it stands still, if it does."""
        self.complaints: list[UserError] = []
        """Errors of listeners that were not told yet."""

    def __repr__(self) -> str:
        return f"RunningQuery({self.name}: {self.count} results, complete up to {self.complete})"

    @property
    def executor(self) -> Executor:
        """Of the fragment that gives the answer; by groups, of one of them."""
        return self.executors[-1]

    @property
    def answers(self) -> Sequence[Executor]:
        """Of the fragments that give answers: one, or one for each group of sources."""
        return self.executors if self.definition.by_groups else self.executors[-1:]

    def leading_to(self, answer: Executor) -> Sequence[Executor]:
        """Of the fragments from which an answer comes, that one included."""
        return [answer] if self.definition.by_groups else self.executors

    @property
    def scopes(self) -> Scopes:
        """The sources that it can see of streams with many, where it does not see all."""
        return self.executor.fragment.part.scopes if not self.definition.by_groups else scopes(self.definition.plan)

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def kind(self) -> str:
        """ "stream" or "relation"."""
        return self.executor.fragment.program.kind

    @property
    def domain(self) -> TimeDomain:
        return self.executor.fragment.program.domain

    @property
    def complete(self) -> Any:
        """The instant up to which the results are complete; None while there is none."""
        return self.domain.moment(self.reached) if self.begun else None

    @property
    def complete_by_group(self) -> dict[str, Any]:
        """The last complete instant of each group of sources, for a query that runs by groups."""
        answers = [executor.fragment for executor in self.answers if executor.fragment.group]
        return {one.group: self.domain.moment(one.after) if one.begun else None for one in answers}

    @property
    def begun(self) -> bool:
        """Whether it is complete up to any instant."""
        return all(executor.fragment.begun for executor in self.answers)

    @property
    def delivered(self) -> Any:
        """The instant up to which its sink has everything, behind `complete` while results wait; None before the
        first.
        """
        upto = self.outbox.delivered(self.reached)
        return self.domain.moment(upto) if upto >= self.domain.origin else None

    @property
    def reached(self) -> Tick:
        """The last complete instant in ticks; `origin - 1` before the first epoch. By groups: that of the group least
        far.
        """
        return min(executor.fragment.after for executor in self.answers)

    def reached_by(self, executor: Executor) -> Tick:
        """The instant that a fragment has reached; the fragments of groups count as one."""
        return self.reached if executor in self.answers else executor.fragment.after

    def streams(self) -> list[str]:
        """The streams and relations it reads."""
        return sorted({stream for executor in self.executors for stream in executor.fragment.program.streams()})

    def reading(self, log: str) -> list[Executor]:
        """Of the fragments that read a log."""
        return [executor for executor in self.executors if log in executor.wide.logs()]

    def waiting(self, stream: str) -> int:
        """How many tuples of a stream have come and are not answered."""
        executor = self.executor
        if executor.fragment.ahead == "everything":
            return sum(chunk.rows for chunk in executor.arriving(stream))
        taken = executor.taken(stream).upto if executor.fragment.ahead == "an instant" else self.reached
        return executor.logs[stream].rows_after(max(self.reached, taken))

    def readers(self, part: str) -> list[str]:
        """The parts that read this one."""
        parts = [executor.fragment.part for executor in self.executors]
        return [above.name for above in parts if any(below.name == part for below in above.parts)]

    def labels(self) -> dict[str, frozenset[str]]:
        """The streams whose heartbeats each part waits for, by what was measured of them; the answer's first."""
        parts = [executor.fragment for executor in self.executors]
        measured = {one.part.name: known for one in parts if (known := one.selectivity()) is not None}
        return labels(self.executor.fragment.part, self.definition.heartbeats, measured)

    @property
    def failed(self) -> bool:
        return any(executor.fragment.failed for executor in self.executors)

    @property
    def given_up(self) -> bool:
        """Whether a fragment has failed so often that it is not restarted any more."""
        return any(executor.fragment.failed and executor.back_off.failures > RESTARTS for executor in self.executors)

    def why(self) -> Why:
        """Why it has come no further: which source holds it back, since when, by which bound, and what would release
        it.
        """
        return self._reason(self)

    @property
    def epochs(self) -> int:
        return self.executor.fragment.epochs

    @property
    def count(self) -> int:
        """How many results were put out so far."""
        return self.outbox.log.rows

    @property
    def guarantee(self) -> str:
        """How often each result gets to where the query puts them: exactly once, or at least once."""
        return self.outbox.sink.guarantee

    def results(self) -> list[Result]:
        """Everything put out so far, in order of time, if it was not delivered elsewhere."""
        connector = self.definition.connector
        if not self.outbox.kept and connector is not None:
            raise UserError("results-elsewhere", f'the results of query "{self.name}" go to {connector.format}')
        return list(in_order([chunk.table() for chunk in self.outbox.log.chunks]))

    def on_change(self, listener: Callable[[Sequence[Result]], None]) -> None:
        """Call `listener` with the results of each epoch that has any."""
        self._listeners.append(listener)

    def state(self) -> tuple[Kept, ...]:
        """What the query keeps between epochs, each part with what limits it or why it grows."""
        return tuple(dict.fromkeys(kept for executor in self.executors for kept in executor.fragment.program.state()))

    def growing(self) -> tuple[Growing, ...]:
        """Why its state grows for as long as it runs; nothing if it does not."""
        return tuple(
            dict.fromkeys(found for executor in self.executors for found in executor.fragment.program.growing())
        )

    def explain(self) -> str:
        parts = [(one.fragment.part, one.fragment.program) for one in self.leading_to(self.executor)]
        return explained(self.definition, parts, self.progress(), self.labels(), self._catalog.declarations.groups())

    def progress(self) -> str:
        """Whether the bounds that were declared keep it going when all sources pause, or a timeout must."""
        return progress(self._catalog, self.streams())

    # running

    def take(self, executor: Executor, until: Tick) -> int:
        """One epoch of a fragment; how many rows it has put out."""
        return self._commit(executor, executor.run(until), until, executor.reached)

    def take_arrived(self, executor: Executor, upto: Tick, until: Tick, most: int) -> tuple[int, Tick]:
        """Take what has arrived, stamped up to there, which completes everything up to `until` if it is all there is.

        How many rows were put out, and how far they are complete then.
        """
        if executor.fragment.ahead == "an instant":
            upto = executor.bounded(upto, most)
        files, everything = executor.run_arrived(upto, most)
        until = min(until, upto) if everything else executor.fragment.after
        return self._commit(executor, files, until, executor.reached_arrived), until

    def _commit(self, executor: Executor, files: list[Path], until: Tick, reached: Callable[[Tick], None]) -> int:
        """What a fragment puts out goes to whoever reads it, or out, and is committed in one with how far it has
        come.
        """
        after, output = executor.fragment.after, executor.output
        try:
            pieces = self.outbox.pieces(files, executor.session) if output is None else []
        except Exception as error:
            raise executor.failed(error, after, until) from error
        others = [one.fragment.after for one in self.answers if one is not executor]
        before = (output or self.outbox.log).rows
        kept: list[Chunk] = []
        with self.outbox.journal.together():
            if output is None:
                kept = self.outbox.put(pieces, min([after, *others]), min([until, *others]))
            else:
                output.adopt(files)
            reached(until)
        rows = (output or self.outbox.log).rows - before
        executor.fragment.rows_out += rows
        self._tell(kept)
        return rows

    def _tell(self, kept: list[Chunk]) -> None:
        """The results are kept: what a listener makes of them cannot fail the query."""
        results = list(in_order([chunk.table() for chunk in kept])) if self._listeners else []
        for listener in self._listeners if results else ():
            try:
                called(
                    listener,
                    results,
                    code="listener-failed",
                    message=f'a function that listens to query "{self.name}" has failed',
                    hint="The results are kept, and the query goes on.",
                )
            except UserError as error:
                self.complaints.append(error)

    def tells_empty(self, executor: Executor) -> bool:
        """Whether an epoch without results is of use: the sink wants to know up to when there are none."""
        return executor in self.answers and not self.outbox.kept and self.outbox.sink.wants_empty

    def tidy(self) -> None:
        """Drop what other fragments have read, and merge small files of results."""
        for executor in self.executors:
            if executor.output is not None:
                log = executor.fragment.part.name
                readers = self.reading(log)
                executor.output.forget(lambda chunk, log=log, readers=readers: needed(readers, log, chunk))  # type: ignore[misc]
                executor.output.compact()
        self.outbox.tidy()

    def close(self, wait_s: float = CLOSE_SECONDS) -> None:
        """Let go of its sink and of its sessions."""
        self.courier.close(wait_s)
        for executor in self.executors:
            let_go(executor.session)

    def parts(self) -> list[Log | Outbox | Executor]:
        """What the journal knows of it."""
        logs = [executor.output for executor in self.executors if executor.output is not None]
        return [self.outbox.log, self.outbox, *logs, *self.executors]

    def facts(self) -> list[Fact]:
        """How far it has come, for a checkpoint."""
        return [(part.subject, part.state()) for part in self.parts()]

    def check_files(self) -> None:
        """Raise an error that names the first of its files that is missing or cut short; delete what never came to
        count.
        """
        logs = [self.outbox.log, *(executor.output for executor in self.executors if executor.output is not None)]
        for log in logs:
            log.check()
        for executor in self.executors:
            executor.check()
            executor.sweep()
        for log in logs:
            log.sweep()
