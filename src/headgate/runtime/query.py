"""A query as its user sees it while it runs: results, how far they are complete, and why not further."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headgate.catalog import Catalog, Query, Tick, TimeDomain
from headgate.delta.program import Kept
from headgate.heartbeat.manager import progress
from headgate.heartbeat.why import Why
from headgate.log.log import Log
from headgate.plan.bounds import Growing
from headgate.plan.explain import explained
from headgate.runtime.executor import Executor
from headgate.runtime.loop import Epoch
from headgate.sinks.sink import Delivery, Result, Sink, in_order


class RunningQuery:
    """A registered query: its results so far, and how far they are complete."""

    def __init__(
        self, definition: Query, executor: Executor, sink: Sink, log: Log, catalog: Catalog,
        reason: Callable[[RunningQuery], Why],
    ) -> None:  # fmt: skip
        self.definition = definition
        self._catalog = catalog
        self._reason = reason
        self._executor = executor
        self._sink = sink
        self._log = log
        self._listeners: list[Callable[[Sequence[Result]], None]] = []

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def kind(self) -> str:
        """ "stream" or "relation"."""
        return self._executor.fragment.program.kind

    @property
    def domain(self) -> TimeDomain:
        return self._executor.fragment.program.domain

    @property
    def complete(self) -> Any:
        """The instant up to which the results are complete; None before the first epoch."""
        fragment = self._executor.fragment
        return fragment.program.domain.moment(fragment.after) if fragment.epochs else None

    @property
    def reached(self) -> Tick:
        """The same in ticks; before the first epoch, the instant before all."""
        return self._executor.fragment.after

    def streams(self) -> list[str]:
        """The streams and relations it reads."""
        return sorted(self._executor.fragment.program.streams())

    def why(self) -> Why:
        """Why it has come no further: which source holds it back, since when, by which bound, and what would release it."""
        return self._reason(self)

    @property
    def epochs(self) -> int:
        return self._executor.fragment.epochs

    @property
    def count(self) -> int:
        """How many results were put out so far."""
        return self._log.rows

    def results(self) -> list[Result]:
        """Everything put out so far, in order of time."""
        return list(in_order(chunk.path for chunk in self._log.chunks))

    def on_change(self, listener: Callable[[Sequence[Result]], None]) -> None:
        """Call `listener` with the results of each epoch that has any."""
        self._listeners.append(listener)

    def state(self) -> tuple[Kept, ...]:
        """What the query keeps between epochs, each part with what limits it or why it grows."""
        return self._executor.fragment.program.state()

    def growing(self) -> tuple[Growing, ...]:
        """Why its state grows for as long as it runs; nothing if it does not."""
        return self._executor.fragment.program.growing()

    def explain(self) -> str:
        return explained(self.definition, self._executor.fragment.program, self.progress())

    def progress(self) -> str:
        """Whether the bounds that were declared keep it going when all sources pause, or a timeout must."""
        return progress(self._catalog, self.streams())

    def deliver(self, epoch: Epoch, files: list[Path]) -> None:
        results = list(in_order(files)) if self._listeners else []
        before = len(self._log.chunks)
        self._log.adopt_all(files)
        chunks = self._log.chunks[before:]
        paths, rows = tuple(chunk.path for chunk in chunks), sum(chunk.rows for chunk in chunks)
        if rows or self._sink.wants_empty:
            self._sink.deliver(Delivery(self.name, self.epochs, epoch.after, epoch.until, self.complete, paths, rows))
        for listener in self._listeners if results else ():
            listener(results)
        self._log.compact()
