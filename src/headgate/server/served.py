"""What the server asks of an engine: nothing else of it is reached from here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa

from headgate.catalog.catalog import Catalog
from headgate.heartbeat.clock import Clock
from headgate.heartbeat.why import Why
from headgate.observe.overview import Overview
from headgate.observe.trace import Traces
from headgate.permissions import Permissions
from headgate.schedule.early import EarlyAnswer
from headgate.ticks import Tick


class ServedQuery(Protocol):
    """A running query, as far as the server shows it."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str:
        """Whether it gives a "stream" or a "relation"."""

    @property
    def columns(self) -> list[str]: ...

    @property
    def complete(self) -> Any:
        """The instant up to which the results are complete; None while there is none."""

    @property
    def traces(self) -> Traces: ...

    @property
    def edition(self) -> str:
        """The identity of its results, by which a position is known to be one of theirs."""

    @property
    def last_position(self) -> int:
        """The position of the last result that is there."""

    def page(self, after: int, most: int) -> tuple[list[pa.Table], int]:
        """Return results behind a position, at most so many, and the position of the last one looked at."""

    @property
    def answers_early(self) -> bool:
        """True if it also answers before its input is complete (EMIT EARLY)."""

    def early(self) -> EarlyAnswer | None:
        """Return the early answer that holds now; None before the first one."""

    def why(self) -> Why: ...

    def explain(self) -> str: ...


class Served(Protocol):
    """An engine, as far as the server uses it. Every method can be called from any thread."""

    @property
    def catalog(self) -> Catalog: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def turn(self) -> AbstractContextManager[bool]:
        """The lock to hold while several calls must see one state of the engine."""

    @property
    def running(self) -> bool:
        """True while the engine runs its queries of its own accord."""

    def punctuate(self, stream: str, to: Tick, source: Any = None) -> None:
        """Take a source's own promise that nothing stamped up to `to` will still come."""

    def heartbeat(self, stream: str) -> Any:
        """The instant up to which the stream is complete; None while it is unknown."""

    def execute(
        self, cql: str, origin: str = "", *, allow: Permissions | None = None, answers: list[Any] | None = None
    ) -> Sequence[Any]:
        """Carry out statements; what each of them defined or answered."""

    def query(self, name: str) -> ServedQuery: ...

    def errors(self, query: str, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Rows that a query has left out, the first ones with the error that each raises."""

    def on_commit(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever epochs were committed or early answers given."""

    def overview(self) -> Overview: ...

    def wake(self) -> None:
        """Let an engine that waits for input look at once."""
