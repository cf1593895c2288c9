"""Everything that the time manager knows, put together from its parts. A copy of it can be made to try something out.

clocks         the clock of each stream, and the generator that keeps numbers by source
bindings       the bounds in force: declared and learnt
intake         notes what arrives
silence        who speaks and who is silent
waiting        up to when one stream is complete, and for whom it waits
enabling       what the engine's clock says of streams from which nothing comes
completeness   up to when streams that are read together are complete
order          the instants of streams in arrival order
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import fields
from typing import Any

import numpy as np

from headgate.catalog.declarations import Declarations
from headgate.catalog.entries import Relation, Stream
from headgate.heartbeat.arrival_order import ArrivalOrder
from headgate.heartbeat.bindings import Bindings
from headgate.heartbeat.clocks import Clocks
from headgate.heartbeat.completeness import Completeness
from headgate.heartbeat.enabling import EnablingTimestamps
from headgate.heartbeat.intake import Intake
from headgate.heartbeat.silence import Silence
from headgate.heartbeat.stream_clock import StreamClock
from headgate.heartbeat.waiting import Waiting
from headgate.ticks import UNLIMITED, Tick


class TimeModel:
    """The parts of the time manager, and what concerns several of them."""

    def __init__(self, declarations: Declarations) -> None:
        self.order = ArrivalOrder()
        self.clocks = Clocks(declarations)
        self.bindings = Bindings(self.clocks)
        self.intake = Intake(self.clocks, self.bindings)
        self.silence = Silence(self.clocks)
        self.waiting = Waiting(self.clocks, self.bindings, self.silence, self.order)
        self.enabling = EnablingTimestamps(self.clocks, self.waiting)
        self.completeness = Completeness(self.clocks, self.waiting, self.enabling)

    @property
    def declarations(self) -> Declarations:
        return self.clocks.declarations

    def add(self, stream: Stream | Relation, now_us: int) -> None:
        """Begin to manage the time of a stream."""
        clock = self.clocks.by_name[stream.name] = StreamClock(stream, now_us, finished=stream.domain is None)
        clock.find_kinds(self.declarations, self.clocks.is_estimated(stream.name))
        if clock.external and not clock.finished:
            self.clocks.expect_named(clock, now_us)
            self.bindings.bind_all()
            self.clocks.restart_timeout_of_unheard(clock, now_us)

    def remove(self, stream: str) -> None:
        """Forget a stream, and what it said about others."""
        clock = self.clocks.by_name.pop(stream, None)
        if clock is not None:
            self.bindings.remove(clock)
        self.bindings.apply_declarations()

    def punctuated(self, stream: str, source: Any, upto: Tick, now_us: int) -> None:
        """Take a heartbeat that a source sent itself; source None: for all sources of the stream."""
        clock = self.clocks[stream]
        sources = clock.table.sources if source is None and clock.many else [source]
        self.intake.punctuated(stream, dict.fromkeys(sources, upto), now_us)

    def finish(self, stream: str, source: Any, now_us: int) -> None:
        """Note that nothing will come any more from the stream, or from one source of it."""
        if source is None:
            self.clocks[stream].finished = True
        else:
            self.punctuated(stream, source, UNLIMITED, now_us)

    def pause(self, stream: str, now_us: int) -> None:
        """Note that the stream is not read for a while: what it sends meanwhile must not be late afterwards."""
        clock = self.clocks[stream]
        clock.frozen = self.waiting.standing(stream, now_us).complete
        clock.paused = True

    def resume(self, stream: str, now_us: int) -> None:
        """Note that the stream is read again, what was held back included: its silence counts from now."""
        clock = self.clocks[stream]
        clock.paused, clock.since_us, clock.came_us = False, now_us, now_us
        clock.pace.resumed()
        for number in clock.table.cohorts.values():
            self.clocks.cohort(number).heard_us[np.flatnonzero(self.silence.heard(number))] = now_us

    def restore(self, clocks: Mapping[str, StreamClock]) -> None:
        """Take over the clocks of an earlier run. What follows from the declarations is found anew, by the rules of
        this version.
        """
        self.clocks.by_name = dict(clocks)
        self.clocks.forget_owners()
        if any(kind.group is not None for clock in self.clocks for kind in clock.table.cohorts):
            self.bindings.apply_declarations()  # sources that an earlier version kept at one place get their own
        for clock in self.clocks:
            self.clocks.expect_named(clock, clock.since_us)
        self.bindings.bind_all()

    def fork(self) -> TimeModel:
        """A copy in which anything can be tried."""
        shared: dict[int, Any] = {}
        for clock in self.clocks:
            table = clock.table
            shared |= {id(one): one for one in (clock.stream, table.at_large, clock.groups)}
            of_sources = table.sources, table.kinds, table.cohorts, table.kind_of, table.named_us
            shared |= {id(one): dict(one) for one in (*of_sources, clock.promises.by_scope)}
        known = self.declarations
        shared[id(known)] = Declarations(**{part.name: dict(getattr(known, part.name)) for part in fields(known)})
        return deepcopy(self, shared)
