"""What can be asked about the time of one stream."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from headgate.catalog.entries import Stream
from headgate.heartbeat.arrivals import NEVER
from headgate.heartbeat.model import TimeModel
from headgate.scope import Scope
from headgate.ticks import Tick


@dataclass(frozen=True, slots=True)
class SourceView:
    """One source of a stream, or several that are summed up."""

    source: Any
    """Its name; None: the stream has one source only, or these are several."""

    sources: int
    """How many these are."""

    largest: Tick | None
    """The largest timestamp that came from it."""

    late: int


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

    def by_source(self, most: int) -> list[SourceView]:
        """How far sources have come, those that are furthest behind first; beyond `most`, one row for the rest."""
        table, generator = self._clock.table, self._model.clocks.generator
        found = []
        for source, number in table.sources.items():
            cohort, member = table.places[number].tolist()
            largest = int(generator.cohorts[cohort].largest[member])
            found.append(SourceView(source, 1, None if largest == NEVER else largest, int(table.late[number])))
        found.sort(key=lambda one: NEVER if one.largest is None else one.largest)
        if len(found) <= most and not table.forgotten:
            return found
        rest = found[most - 1 :]
        furthest = max((one.largest for one in rest if one.largest is not None), default=None)
        late = sum(one.late for one in rest) + table.forgotten_late
        return [*found[: most - 1], SourceView(None, len(rest) + table.forgotten, furthest, late)]
