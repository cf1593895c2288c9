"""The time manager: up to when streams are complete, so that a query can answer for good. Other packages use this.

A heartbeat is a watermark: the instant up to which no tuple can still arrive. The manager is told what arrives and what
is declared, and finds from that how far a query may go. It remembers which heartbeats it promised to readers, because
a tuple that arrives at or before a promise is late.

Numbers in, numbers out: no clock is read here. Every method that depends on the time is given `now_us`, an instant of
the engine's clock. The work is done by the parts of the `model`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from headgate.catalog.catalog import Catalog
from headgate.catalog.declarations import Declarations
from headgate.catalog.entries import Relation, Stream
from headgate.heartbeat import in_force, saved
from headgate.heartbeat.admission import Admission
from headgate.heartbeat.arrival_order import ArrivalOrder
from headgate.heartbeat.arrivals import Arrivals, Ticks
from headgate.heartbeat.clocks import base
from headgate.heartbeat.enabling import EnablingTimestamps
from headgate.heartbeat.guard import FutureGuard
from headgate.heartbeat.model import TimeModel
from headgate.heartbeat.stream_time import StreamTime
from headgate.heartbeat.why import Why, explain
from headgate.scope import Scope, Scopes
from headgate.settings import Settings
from headgate.ticks import Tick


class Heartbeats:
    """The time manager of an engine."""

    def __init__(self, declarations: Declarations | None = None) -> None:
        self.model = TimeModel(declarations or Declarations())
        """The state. No other package reaches into it."""

    @property
    def enabling(self) -> EnablingTimestamps:
        """What the engine's clock says of streams from which nothing comes."""
        return self.model.enabling

    @property
    def order(self) -> ArrivalOrder:
        """The instants of streams in arrival order."""
        return self.model.order

    # streams and declarations

    def define(self, stream: Stream | Relation, now_us: int) -> None:
        """Begin to manage the time of a stream; of one that is known, take over the new definition."""
        if stream.name in self.model.clocks.by_name:
            self.model.clocks[stream.name].stream = stream
        else:
            self.model.add(stream, now_us)

    def remove(self, stream: str) -> None:
        """Forget a stream, and what it said about others."""
        self.model.remove(stream)

    def apply_declarations(self, now_us: int | None = None, settings: Settings | None = None) -> None:
        """Take over what was declared, and the settings where they are given. Sources that were named since the last
        time are waited for from `now_us` on.
        """
        if settings is not None:
            self.model.clocks.timeout_us = settings.timeout_us
            self.model.clocks.estimating = settings.estimation == "on"
            self.model.clocks.generator.set_unit(settings.clock_unit_us)
        self.model.bindings.apply_declarations(now_us)

    # what happens

    def arrived(
        self,
        stream: str,
        arrivals: Arrivals,
        now_us: int,
        late: Ticks | None = None,
        heartbeats: Mapping[Any, Tick] | None = None,
    ) -> None:
        """Take a batch: tuples, late ones included but none from the far future; how many of them were late, for each
        source of the arrivals; and heartbeats that sources sent themselves.
        """
        intake = self.model.intake
        intake.arrived(stream, arrivals, now_us)
        if late is not None and late.any():
            tardy = np.flatnonzero(late)
            intake.late(stream, [arrivals.sources[position] for position in tardy.tolist()], late[tardy])
        if heartbeats:
            intake.punctuated(stream, heartbeats, now_us)

    def punctuated(self, stream: str, source: Any, upto: Tick, now_us: int) -> None:
        """Take a heartbeat that a source gave itself: it sends nothing stamped up to there any more. Source None: all
        sources of the stream.
        """
        self.model.punctuated(stream, source, upto, now_us)

    def finish(self, stream: str, source: Any = None, now_us: int = 0) -> None:
        """Note that nothing will come any more from the stream, or from one source of it."""
        self.model.finish(stream, source, now_us)

    def pause(self, stream: str, now_us: int) -> None:
        """Note that the stream is not read for a while: what it sends meanwhile must not be late afterwards."""
        self.model.pause(stream, now_us)

    def resume(self, stream: str, now_us: int) -> None:
        """Note that the stream is read again, what was held back included: its silence counts from now."""
        self.model.resume(stream, now_us)

    def listen_again(self, now_us: int) -> None:
        """Note that the engine was away: no stream was silent because of that, so silence counts from now."""
        for clock in self.model.clocks:
            if clock.external and not clock.paused:
                self.model.resume(clock.name, now_us)

    # how far streams are

    def complete(
        self,
        streams: Iterable[str],
        now_us: int,
        answers: Mapping[str, Tick] | None = None,
        scopes: Scopes | None = None,
    ) -> Tick | None:
        """The heartbeat of streams that are read together: the instant up to which all of them are complete; None
        while that is unknown.

        `answers` are what the clock would say of some of them, if it were asked; `scopes` are the sources that the
        reader can see.
        """
        return self.model.completeness.complete(streams, now_us, answers, scopes)

    def promise(self, stream: str, heartbeat: Tick, scope: Scope | None = None, again: bool = False) -> None:
        """Remember that a reader of the stream, or of some sources of it, was told that it is complete up to here:
        what arrives at or before that is late.

        `again` if that was before a restart, when the sources may have been in other groups.
        """
        self.model.clocks[base(stream)].promise(heartbeat, scope, again)

    def admission(self, stream: str) -> Admission:
        """Which timestamps of a stream are late, and what else an inlet needs to judge a batch."""
        clock = self.model.clocks[stream]
        closed, by_source = clock.promises.limits()
        estimation = self.model.clocks.estimation(stream)
        return Admission(
            closed,
            by_source,
            clock.first_open(),
            clock.largest,
            unheard=clock.promises.whole is None and clock.largest is None,
            settled=FutureGuard(clock, None, 0).is_settled(),
            wants_sample=estimation.confidence is not None and self.model.clocks.is_estimated(stream),
        )

    def future_limit(self, stream: str, date_us: int | None, now_us: int, tops: Ticks | None = None) -> Tick | None:
        """Timestamps beyond this lie too far in the future; None: there is no limit.

        `tops` are the largest timestamps of a batch in falling order: several together confirm each other. They are
        given once a batch at the most, because a timestamp that was doubted is believed the next time.
        """
        guard = FutureGuard(self.model.clocks[stream], date_us, now_us)
        return guard.limit() if tops is None else guard.limit_for(tops)

    def stream(self, name: str) -> StreamTime:
        """What can be asked about the time of one stream."""
        return StreamTime(self.model, name)

    # for people

    def explain(
        self,
        query: str,
        streams: Iterable[str],
        reached: Tick | None,
        waiting: Mapping[str, int],
        now_us: int,
        scopes: Scopes | None = None,
    ) -> Why:
        """Why a query has come no further. `reached` is how far it is, `waiting` how many tuples of each stream lie
        beyond that, `scopes` the sources that the query, or the part of it that is least far, can see.
        """
        return explain(self.model, query, streams, reached, waiting, now_us, scopes)

    def bounds_in_force(self) -> tuple[tuple[str, ...], ...]:
        """The rows of SHOW BOUNDS, under the headings of `in_force.HEADINGS`."""
        return in_force.all_rows(self.model)

    # restarts

    def save(self) -> dict[str, Any]:
        """The state as JSON."""
        return saved.save(self.model)

    def restore(self, state: dict[str, Any], catalog: Catalog) -> None:
        """Take over a saved state. The catalog must have the streams that it had then."""
        saved.restore(self.model, state, catalog)
