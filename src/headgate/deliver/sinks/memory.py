"""The default sink: results stay where the engine keeps them anyway, to be asked for with `query.results()`."""

from __future__ import annotations

from headgate.deliver.sinks.sink import Delivery


class MemorySink:
    guarantee = "exactly once"
    wants_empty = False

    def deliver(self, delivery: Delivery) -> None:
        pass

    def delivered(self) -> int | None:
        return None

    def close(self) -> None:
        pass
