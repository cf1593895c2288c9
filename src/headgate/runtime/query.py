"""A query as its user sees it while it runs: results, how far they are complete, and why not further."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from headgate.catalog import Catalog, Query, Tick, TimeDomain
from headgate.delta.program import Kept
from headgate.errors import UserError
from headgate.heartbeat.manager import progress
from headgate.heartbeat.why import Why
from headgate.log.journal import Fact
from headgate.plan.bounds import Growing
from headgate.plan.ends import Span, ends
from headgate.plan.explain import explained
from headgate.runtime.executor import Executor
from headgate.runtime.outbox import Outbox
from headgate.runtime.session import let_go
from headgate.sinks.sink import Result, in_order


class RunningQuery:
    """A registered query: its results so far, and how far they are complete."""

    def __init__(
        self, definition: Query, executor: Executor, outbox: Outbox, catalog: Catalog, reason: Callable[[RunningQuery], Why]
    ) -> None:
        self.definition = definition
        self.executor = executor
        self.outbox = outbox
        self._catalog = catalog
        self._reason = reason
        self._listeners: list[Callable[[Sequence[Result]], None]] = []

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
        """The instant up to which the results are complete; None before the first epoch."""
        fragment = self.executor.fragment
        return fragment.program.domain.moment(fragment.after) if fragment.epochs else None

    @property
    def reached(self) -> Tick:
        """The same in ticks; before the first epoch, the instant before all."""
        return self.executor.fragment.after

    def streams(self) -> list[str]:
        """The streams and relations it reads."""
        return sorted(self.executor.fragment.program.streams())

    @cached_property
    def _ends(self) -> list[tuple[str, Span]]:
        return [(stream, span) for stream, spans in ends(self.definition.plan).items() for span in spans]

    def due(self) -> Tick | None:
        """The first instant at which it may have something to say by what has come: of a tuple that waits, or because time
        goes on; None if there is none.
        """
        return min((instant for stream, span in self._ends for instant in self._due(stream, span)), default=None)

    def _due(self, stream: str, span: Span) -> Iterator[Tick]:
        """By the tuples of each chunk of the log that may still matter, and by those it no longer has."""
        log, fragment = self.executor.logs[stream], self.executor.fragment
        low = self.reached - span.most
        if fragment.start is not None and stream not in fragment.whole:
            low = max(low, fragment.start)  # what was there before is not seen
        for chunk in log.overlapping(low, None):
            yield span.first(chunk.first_after(low), self.reached)
        if log.forgotten is not None and log.forgotten > low:
            yield span.first(low + 1, self.reached)

    def why(self) -> Why:
        """Why it has come no further: which source holds it back, since when, by which bound, and what would release it."""
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
        return list(in_order(chunk.path for chunk in self.outbox.log.chunks))

    def on_change(self, listener: Callable[[Sequence[Result]], None]) -> None:
        """Call `listener` with the results of each epoch that has any."""
        self._listeners.append(listener)

    def state(self) -> tuple[Kept, ...]:
        """What the query keeps between epochs, each part with what limits it or why it grows."""
        return self.executor.fragment.program.state()

    def growing(self) -> tuple[Growing, ...]:
        """Why its state grows for as long as it runs; nothing if it does not."""
        return self.executor.fragment.program.growing()

    def explain(self) -> str:
        return explained(self.definition, self.executor.fragment.program, self.progress())

    def progress(self) -> str:
        """Whether the bounds that were declared keep it going when all sources pause, or a timeout must."""
        return progress(self._catalog, self.streams())

    # running

    def take(self, until: Tick) -> None:
        """One epoch. Its results and how far the query has come are committed in one."""
        after = self.reached
        files = self.executor.run(until)
        with self.outbox.journal.together():
            kept = self.outbox.put(files, after, until)
            self.executor.reached(until)
        results = list(in_order(kept)) if self._listeners else []
        for listener in self._listeners if results else ():
            listener(results)

    def tidy(self) -> None:
        """Move synopses that lag far behind, and merge small files of results."""
        if self.executor.fragment.due() and not self.executor.fragment.failed:
            self.executor.move()
        self.outbox.tidy()

    def close(self) -> None:
        """Let go of its sink and of its session."""
        self.outbox.close()
        let_go(self.executor.session)

    def facts(self) -> list[Fact]:
        """How far it has come, for a checkpoint."""
        return [(part.subject, part.state()) for part in (self.outbox.log, self.outbox, self.executor)]

    def check_files(self) -> None:
        """Raise an error that names the first of its files that is missing or torn; delete what never came to count."""
        self.outbox.log.check()
        self.executor.check_files()
        self.outbox.log.sweep()
        self.executor.sweep()
