"""A sink that was out of reach when the engine was started again: it is opened when something is to be delivered.

Results wait in the outbox meanwhile, as they do for a sink that is down. A sink that cannot be opened when its query is
created is a mistake, and refused."""

from __future__ import annotations

from collections.abc import Callable

from headgate.deliver.sinks.sink import Delivery, Sink


class PostponedSink:
    def __init__(self, open_sink: Callable[[], Sink], guarantee: str, wants_empty: bool) -> None:
        self.open_sink = open_sink
        self.guarantee = guarantee
        self.wants_empty = wants_empty
        self._sink: Sink | None = None

    def _opened(self) -> Sink:
        if self._sink is None:
            self._sink = self.open_sink()
        return self._sink

    def deliver(self, delivery: Delivery) -> None:
        self._opened().deliver(delivery)

    def delivered(self) -> int | None:
        return self._opened().delivered()

    def close(self) -> None:
        if self._sink is not None:
            self._sink.close()
