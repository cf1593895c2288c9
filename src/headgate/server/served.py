"""What the HTTP endpoint asks of an engine: nothing else of it is reached from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from headgate.catalog.catalog import Catalog
from headgate.heartbeat.clock import Clock
from headgate.ticks import Tick


class ServedQuery(Protocol):
    """A running query, as far as /status shows it."""

    @property
    def name(self) -> str: ...

    @property
    def complete(self) -> Any:
        """The instant up to which the results are complete; None while there is none."""

    @property
    def count(self) -> int:
        """How many results there are so far."""

    @property
    def epochs(self) -> int:
        """How many epochs have run."""


class Served(Protocol):
    """An engine, as far as the endpoint uses it. Every method can be called from any thread."""

    @property
    def catalog(self) -> Catalog: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def turn(self) -> AbstractContextManager[bool]:
        """The lock to hold while several calls must see one state of the engine."""

    def wake(self) -> None:
        """Let an engine that waits for input look at once."""

    def punctuate(self, stream: str, to: Tick, source: Any = None) -> None:
        """Take a source's own promise that nothing stamped up to `to` will still come."""

    def heartbeat(self, stream: str) -> Any:
        """The instant up to which the stream is complete; None while it is unknown."""

    def silent(self, stream: str) -> bool:
        """True if nothing came from the stream for the timeout."""

    def counts(self, stream: str) -> dict[str, int]:
        """How many tuples went to the log, and how many to the dead letters, by reason."""

    def queries(self) -> Sequence[ServedQuery]: ...

    def troubles(self) -> Mapping[str, Mapping[str, str]]:
        """What has failed and is tried again or stands still: streams, queries and sinks by name."""
