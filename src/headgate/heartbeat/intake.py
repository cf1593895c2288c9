"""What arrives: tuples and heartbeats that sources send are noted in the clock of their stream and in the generator.

Late tuples count too: they say how far their sources have come, and which bounds really hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.heartbeat.arrivals import NEVER, Arrivals
from headgate.heartbeat.bindings import Bindings
from headgate.heartbeat.clocks import Clocks
from headgate.heartbeat.guard import least_rate
from headgate.heartbeat.stream_clock import FEW_SOURCES, StreamClock
from headgate.ticks import UNLIMITED, Tick

FORGOTTEN_AFTER = 10
"""A source that is silent for so many times the timeout is forgotten, when there are many."""


class Intake:
    """Notes what arrives on streams."""

    def __init__(self, clocks: Clocks, bindings: Bindings) -> None:
        self.clocks = clocks
        self.bindings = bindings

    def arrived(self, stream: str, arrivals: Arrivals, now_us: int) -> None:
        """Take tuples, late ones included."""
        if not arrivals.total:
            return
        clock = self.clocks[stream]
        clock.tuples += arrivals.total
        clock.first_us = now_us if clock.first_us is None else clock.first_us
        if clock.external and not clock.finished:
            self._take(clock, arrivals, now_us)
        largest = int(arrivals.largest.max())
        if clock.largest is None or largest > clock.largest:
            clock.largest, clock.came_us = largest, now_us
        if clock.external:
            clock.pace.arrived(arrivals, now_us, least_rate(clock))
        if clock.tuples >= clock.regroup_at:
            clock.regroup_at = 4 * clock.tuples
            clock.form_groups(self.clocks.declarations, self.clocks.is_estimated(stream))

    def _take(self, clock: StreamClock, arrivals: Arrivals, now_us: int) -> None:
        """Take tuples that their sources have stamped: hand them to the estimators, then to the generator."""
        generator = self.clocks.generator
        numbers = self._numbers(clock, arrivals.sources)
        if clock.many:
            clock.note_lag(numbers, arrivals)
        places, estimated = clock.table.places[numbers], self.clocks.is_estimated(clock.name)
        self._note_return(clock, arrivals, places, now_us)
        together = np.flatnonzero(np.bincount(places[:, 0])).tolist() if len(places) > 1 else places[:, 0].tolist()
        for number in together:
            every = places[:, 1], arrivals
            members, part = every if len(together) == 1 else arrivals.of_members(places[:, 1], places[:, 0] == number)
            if estimated:
                estimator, cohort = self.bindings.estimator(clock, number), generator.cohorts[number]
                senders = [first for first in generator.cohorts if self.bindings.is_comparable(first, clock, number)]
                cohort.resize(int(members.max()) + 1)
                if estimator.see(generator, number, members, part, senders, now_us):
                    self.bindings.bind(clock, number, senders)
                cohort.stepped(members, part)
            generator.arrived(number, members, part, now_us)
        if len(clock.table.sources) >= clock.forget_at:
            self._forget(clock, now_us)

    def _numbers(self, clock: StreamClock, sources: Sequence[Any]) -> NDArray[np.intp]:
        """The numbers of sources. If one is of a kind that was not there before, all bounds are bound anew."""
        cohorts = len(clock.table.cohorts)
        numbers = self.clocks.numbers(clock, sources)
        if len(clock.table.cohorts) != cohorts:
            self.bindings.bind_all()
        return numbers

    def _note_return(self, clock: StreamClock, arrivals: Arrivals, places: NDArray[np.int64], now_us: int) -> None:
        """Note which sources came back after the timeout had given them up, and are late because of that."""
        common, apart = clock.promises.limits()
        timeout_us = self.clocks.timeout_us
        if timeout_us is None or (common is None and not apart):
            return
        usual = NEVER if common is None else common
        limits = np.array([apart.get(source, usual) for source in arrivals.sources] if apart else [usual] * len(places))
        for number in np.flatnonzero(np.bincount(places[:, 0])).tolist():
            mine = np.flatnonzero(places[:, 0] == number)
            cohort = self.clocks.cohort(number)
            cohort.resize(int(places[mine, 1].max()) + 1)
            heard_us = cohort.heard_us[places[mine, 1]]
            late = arrivals.smallest[mine] <= limits[mine]
            back = mine[late & (heard_us > NEVER) & (heard_us <= now_us - timeout_us)]
            clock.gave_up |= {arrivals.sources[position]: int(limits[position]) for position in back.tolist()}

    def late(self, stream: str, sources: Sequence[Any], counts: NDArray[Any]) -> None:
        """Count late tuples by source."""
        clock = self.clocks[stream]
        numbers = self._numbers(clock, sources)
        clock.table.late[numbers] += counts
        for source, (number, member), count in zip(
            sources, clock.table.places[numbers].tolist(), counts.tolist(), strict=True
        ):
            if source in clock.gave_up:
                clock.late_given_up += count
                if self.clocks.cohort(number).largest[member] > clock.gave_up[source]:
                    del clock.gave_up[source]  # it has caught up

    def punctuated(self, stream: str, heartbeats: Mapping[Any, Tick], now_us: int) -> None:
        """Take heartbeats (watermarks) that sources sent themselves: each sends nothing stamped up to there any
        more.
        """
        clock, generator = self.clocks[stream], self.clocks.generator
        table = clock.table
        numbers = self._numbers(clock, list(heartbeats))
        upto = np.fromiter(heartbeats.values(), np.int64)
        table.punctuated[numbers] = np.maximum(table.punctuated[numbers], upto)
        places = table.places[numbers]
        for number in np.unique(places[:, 0]).tolist():
            meant = np.unique(places[places[:, 0] == number, 1])
            members, upto = table.punctuated_in(number)
            changed = np.isin(members, meant)
            generator.punctuated(number, members[changed], upto[changed], now_us)
            generator.cohorts[number].heard_us[meant] = now_us
        if len(table.sources) >= clock.forget_at:
            self._forget(clock, now_us)

    def _forget(self, clock: StreamClock, now_us: int) -> None:
        """Forget sources that can no longer matter: those that have finished, and those that were silent for long.

        If others are declared to say how far a silent source is, it is forgotten once they have said as much as it had
        said itself. From then on one figure stands for all forgotten sources. Sources that a declaration names stay. So
        do sources that GROUPS OF names: a group of which all sources have finished is not one that nobody heard of.
        """
        generator, timeout_us, table = self.clocks.generator, self.clocks.timeout_us, clock.table
        spoken_us = NEVER if timeout_us is None else now_us - FORGOTTEN_AFTER * timeout_us
        gone: dict[int, NDArray[np.intp]] = {}
        grouping = self.clocks.declarations.groupings.get(clock.name)
        staying = {*table.kinds}.union(*(grouping.sets if grouping is not None else ())) & table.sources.keys()
        named = table.places[[table.sources[source] for source in staying]]
        for number in table.kind_of:
            cohort = generator.cohorts[number]
            heard_us = cohort.heard_us[: cohort.size]
            finished = (cohort.punctuations.at(now_us)[: cohort.size] >= UNLIMITED) & (heard_us < now_us)
            silent = (heard_us > NEVER) & (heard_us <= spoken_us) & ~finished
            for mask in (finished, silent):
                mask[named[named[:, 0] == number, 1]] = False
            if silent.any() and generator.towards[number]:
                silent &= generator.promised(number, now_us) <= generator.by_anybody(number, now_us)
                cohort.forgotten = cohort.forgotten or bool(silent.any())
            gone[number] = np.flatnonzero(finished | silent)
        table.forget({number: members for number, members in gone.items() if len(members)}, generator)
        clock.forget_at = max(FEW_SOURCES, 2 * len(table.sources))
        clock.form_groups(self.clocks.declarations, self.clocks.is_estimated(clock.name))
