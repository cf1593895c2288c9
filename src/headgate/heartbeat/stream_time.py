"""What can be asked about the time of one stream."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from headgate.catalog.entries import Stream
from headgate.heartbeat.model import TimeModel
from headgate.scope import Scope
from headgate.ticks import Tick


class StreamTime:
    """The time of one stream, to be read only."""

    def __init__(self, model: TimeModel, stream: str) -> None:
        self._model = model
        self._clock = model.clocks[stream]

    @property
    def external(self) -> bool:
        """True if timestamps come with the tuples; False if the engine stamps them."""
        return self._clock.external

    @property
    def is_watched(self) -> bool:
        """True if the stream is expected to go on by itself: its source stamps it, and it is read."""
        return isinstance(self._clock.stream, Stream) and self._clock.external and not self._clock.paused

    @property
    def finished(self) -> bool:
        """True if nothing will come any more."""
        return self._clock.finished

    @property
    def largest(self) -> Tick | None:
        """The largest timestamp that came, late ones included."""
        return self._clock.largest

    @property
    def came_us(self) -> int | None:
        """When the largest timestamp came, on the engine's clock."""
        return self._clock.came_us

    def complete(self, now_us: int, among: Collection[str] = (), scope: Scope | None = None) -> Tick | None:
        """Up to when the stream is complete, read together with others by a reader that sees the scope; None: that is
        unknown.
        """
        return self._model.waiting.standing(self._clock.name, now_us, among, scope=scope).complete

    def is_silent(self, now_us: int) -> bool:
        """True if nothing came from any source of the stream for the timeout."""
        return self._model.waiting.standing(self._clock.name, now_us).silent

    def promised(self, scope: Scope | None = None) -> Tick | None:
        """The last instant up to which the sources in the scope were promised to be complete."""
        return self._clock.promises.limit(scope)

    def late_by_source(self) -> dict[Any, int]:
        """How many tuples were late, by source; None stands for all forgotten sources together."""
        return self._clock.table.late_by_source()
