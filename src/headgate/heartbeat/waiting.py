"""Who is waited for: up to when one stream is complete, and which of its sources keeps it from being further.

A stream is complete up to an instant if no tuple stamped up to there can still arrive from any source that is waited
for. Sources that speak are waited for, and so are sources that a declaration names and that may still speak for the
first time. Silent sources are not, unless others say how far they are (see `silence`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.heartbeat.arrival_order import ArrivalOrder
from headgate.heartbeat.arrivals import NEVER, Ticks
from headgate.heartbeat.bindings import Bindings
from headgate.heartbeat.clocks import Clocks
from headgate.heartbeat.instants import later
from headgate.heartbeat.silence import Silence
from headgate.heartbeat.source_table import Members
from headgate.heartbeat.stream_clock import StreamClock
from headgate.scope import Scope
from headgate.ticks import UNLIMITED, Tick


@dataclass(frozen=True, slots=True)
class Standing:
    """Up to when a stream is complete, and because of which of its sources not further."""

    complete: Tick | None
    """None: that is unknown."""

    silent: bool = False
    """True if no source speaks."""

    spoken_for: bool = False
    """If the stream is silent: True if others that speak are declared to say how far it is."""

    cohort: int | None = None
    """The cohort of the source that is complete least far; None: there is no such source."""

    member: int | None = None
    """The place of that source in its cohort."""

    heard_us: int | None = None
    """When that source was last heard of, None if never; without any source, since when one is waited for."""

    speaking: int = 0
    """How many sources speak."""

    of: Scope | None = None
    """The sources that were looked at: those of the groups that the reader waits for; None: all of the stream."""


@dataclass(frozen=True, slots=True)
class _Part:
    """How one cohort of a stream stands."""

    cohort: int
    complete: Tick = UNLIMITED
    member: int | None = None
    """Of the sources that are waited for, the one that is complete least far; None if none is waited for."""

    speaking: int = 0
    """How many sources speak."""

    awaited: bool = False
    """True if any source speaks, or is named and may still speak for the first time."""

    spoken: Tick = UNLIMITED
    """Up to when all sources are complete that ever spoke, silent or not."""

    forgotten: Tick = UNLIMITED
    """Up to when the forgotten sources are complete, if others that speak are declared to say so."""


class Waiting:
    """Finds how streams stand by what their sources sent and promised, and by what the clock has said so far."""

    def __init__(self, clocks: Clocks, bindings: Bindings, silence: Silence, order: ArrivalOrder) -> None:
        self.clocks = clocks
        self.bindings = bindings
        self.silence = silence
        self.order = order

    def standing(
        self,
        stream: str,
        now_us: int,
        among: Collection[str] = (),
        answer: Tick | None = None,
        silent_us: int | None = None,
        scope: Scope | None = None,
    ) -> Standing:
        """How a stream stands that is read together with others (`among`) by a reader that sees the scope.

        `answer` is what the clock would say if it were asked. `silent_us` is the instant at which silence is judged;
        None: now. Groups of which the reader sees no source do not count.
        """
        clock = self.clocks[stream]
        enabled = later(clock.enabled, answer)
        if not clock.external:
            spoken = None if clock.largest is None else clock.largest - 1
            return Standing(later(spoken, enabled) if clock.stamped_by_engine else self.order.last)
        if clock.paused:
            return Standing(clock.frozen, heard_us=clock.since_us)
        silent_us = now_us if silent_us is None else silent_us
        if not clock.many and len(clock.table.cohorts) == 1:
            found = self._by_one(clock, now_us, among, silent_us)
        else:
            found = self._by_groups(clock, now_us, among, silent_us, clock.waited_for(scope))
        return found if enabled is None else replace(found, complete=later(found.complete, enabled))

    def _by_one(self, clock: StreamClock, now_us: int, among: Collection[str], silent_us: int) -> Standing:
        """How a stream without SOURCE BY stands. `_by_sources` would do, but arrays of one element are slow."""
        (number,) = clock.table.cohorts.values()
        senders = self.bindings.senders_among(clock.name, among)
        complete = int(self.clocks.generator.promised(number, now_us, senders)[0])
        heard_us = int(self.clocks.cohort(number).heard_us[0])
        known = complete if complete > NEVER // 2 else None
        if not self.silence.is_overdue(heard_us, silent_us):
            return Standing(known, False, False, number, 0, heard_us, 1)
        if not self.silence.is_spoken_for(number, silent_us):
            return Standing(known, silent=True)
        return Standing(known, True, True, number, 0, heard_us)

    def _by_groups(
        self, clock: StreamClock, now_us: int, among: Collection[str], silent_us: int, scope: Scope | None
    ) -> Standing:
        """How the groups in the scope stand.

        A group that is silent follows the stream, as a silent source does; it stays as far as its own sources said.
        """
        found = self._by_sources(clock, now_us, among, silent_us, scope)
        if scope is None or not found.silent or found.spoken_for:
            return found
        whole = self._by_sources(clock, now_us, among, silent_us, None)
        return replace(whole, complete=later(found.complete, whole.complete))

    def _by_sources(
        self, clock: StreamClock, now_us: int, among: Collection[str], silent_us: int, scope: Scope | None
    ) -> Standing:
        """How the sources in the scope stand."""
        table = clock.table
        senders = self.bindings.senders_among(clock.name, among)
        chosen = table.members(scope, self.clocks.generator)
        if clock.many and not any(self.silence.heard(number, chosen).any() for number in table.cohorts.values()):
            return self._unheard(clock, now_us, among, silent_us, scope)
        parts = [self._part(clock, number, now_us, silent_us, senders, chosen) for number in table.cohorts.values()]
        speaking = sum(part.speaking for part in parts)
        holding = [part for part in parts if part.member is not None]
        forgotten = UNLIMITED if table.knows_all(scope) else min((part.forgotten for part in parts), default=UNLIMITED)
        if forgotten < min((part.complete for part in holding), default=UNLIMITED):
            silent = not any(part.awaited for part in parts)
            known = forgotten if forgotten > NEVER // 2 else None
            return Standing(known, silent, silent, speaking=speaking, of=scope)
        if not holding:
            spoken = min((part.spoken for part in parts), default=NEVER)
            return Standing(spoken if spoken > NEVER // 2 else None, silent=True, of=scope)
        least = min(holding, key=lambda part: part.complete)
        assert least.member is not None
        heard_us = int(self.clocks.cohort(least.cohort).heard_us[least.member])
        settled = not self.silence.is_settling(clock, now_us, scope)
        known = least.complete if least.complete > NEVER // 2 and settled else None
        silent = not any(part.awaited for part in parts)
        last_us = heard_us if heard_us > NEVER else None
        return Standing(known, silent, silent, least.cohort, least.member, last_us, speaking, scope)

    def _unheard(
        self, clock: StreamClock, now_us: int, among: Collection[str], silent_us: int, scope: Scope | None
    ) -> Standing:
        """How sources stand of which none has ever spoken."""
        if scope is not None and scope.others:  # the rest follows the stream while nothing ever came from it
            return self._by_sources(clock, now_us, among, silent_us, None)
        complete, spoken_for = self.silence.complete_unheard(clock, now_us, silent_us, scope)
        named_us = [us for source, us in clock.table.named_us.items() if scope is None or source in scope]
        timeout_us = self.clocks.timeout_us
        silent = timeout_us is not None and silent_us - max([clock.since_us, *named_us]) >= timeout_us
        return Standing(complete, silent, spoken_for, heard_us=clock.since_us, of=scope)

    def _part(
        self,
        clock: StreamClock,
        number: int,
        now_us: int,
        silent_us: int,
        senders: set[int] | None,
        chosen: Members | None,
    ) -> _Part:
        """How one cohort, or the chosen sources of it, stand."""
        promised, counting, holding = self._waited_for(clock, number, now_us, silent_us, senders, chosen)
        heard = self.silence.heard(number, chosen)
        spoken, forgotten = int(promised[heard].min(initial=UNLIMITED)), UNLIMITED
        if self.clocks.cohort(number).forgotten and self.silence.is_spoken_for(number, silent_us):
            forgotten = self.clocks.generator.by_anybody(number, now_us)
        if not holding.any():
            return _Part(number, spoken=spoken, forgotten=forgotten)
        member = int(np.argmin(promised if holding.all() else np.where(holding, promised, UNLIMITED + 1)))
        speaking = int((counting & heard).sum())
        return _Part(number, int(promised[member]), member, speaking, bool(counting.any()), spoken, forgotten)

    def _waited_for(
        self,
        clock: StreamClock,
        number: int,
        now_us: int,
        silent_us: int,
        senders: set[int] | None,
        chosen: Members | None,
    ) -> tuple[Ticks, NDArray[np.bool_], NDArray[np.bool_]]:
        """For each source of a cohort: up to when it is complete; whether it speaks, or may still speak for the first
        time; and whether it is waited for. Sources that are not chosen do neither.
        """
        cohort, timeout_us = self.clocks.cohort(number), self.clocks.timeout_us
        promised = self.clocks.generator.promised(number, now_us, senders)
        last_us = cohort.heard_us[: cohort.size]
        if clock.table.named_us:
            last_us = np.where(last_us > NEVER, last_us, cohort.waited_for_us(clock.since_us))
        counting = last_us > (NEVER if timeout_us is None else silent_us - timeout_us)
        alone = timeout_us is None or counting.all() or not self.silence.is_spoken_for(number, silent_us)
        holding = counting if alone else last_us > NEVER
        if chosen is None:
            return promised, counting, holding
        return promised, counting & chosen[number], holding & chosen[number]

    def sources_behind(
        self, clock: StreamClock, goal: Tick, among: Collection[str], now_us: int, scope: Scope | None = None
    ) -> list[Any]:
        """The sources of a stream, or of the scope, that are waited for and not complete up to an instant."""
        table = clock.table
        chosen = table.members(scope, self.clocks.generator)
        if not any(self.silence.heard(number, chosen).any() for number in table.cohorts.values()):
            named = [source for source in table.named_us if scope is None or source in scope]
            return named or ([None] if scope is None else sorted(scope.sources)[:1])
        senders, places = self.bindings.senders_among(clock.name, among), table.places[: len(table.sources)]
        wanted = np.zeros(len(places), bool)
        for number in table.cohorts.values():
            promised, _, holding = self._waited_for(clock, number, now_us, now_us, senders, chosen)
            mine = np.flatnonzero(places[:, 0] == number)
            wanted[mine] = (holding & (promised < goal))[places[mine, 1]]
        return list(compress(table.sources, wanted.tolist()))
