"""The default sink: results stay where the engine keeps them anyway, to be asked for with `query.results()`."""

from __future__ import annotations

from headgate.catalog.sinks import SINKS
from headgate.deliver.sinks.sink import Delivery


class MemorySink:
    """Leaves results in the outbox, from where `query.results()` reads them."""

    guarantee = SINKS["memory"].guarantee
    wants_empty = False

    def __init__(self, *_: object) -> None:
        """Needs nothing of what sinks are opened with."""

    def deliver(self, delivery: Delivery) -> None:
        """Nothing to do: results stay in the outbox."""

    def delivered(self) -> int | None:
        """Unknown: it is never asked."""
        return None

    def close(self) -> None:
        """Nothing is held."""
