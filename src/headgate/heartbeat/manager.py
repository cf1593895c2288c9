"""The time manager: streams by name, what was declared or learnt about their sources, and how far each query may go.

It puts the parts together: `declared` says what was promised, `estimate` what was seen instead, `groups` which sources
are alike, `generator` what follows. It adds what is not a matter of bounds: silence and the timeout, finished and
paused streams, time that the engine itself gives out, and which heartbeats were given, because what arrives at or
before one is late.

Numbers in, numbers out: every method that needs the time of the engine's clock is handed it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.catalog.catalog import Catalog
from headgate.catalog.declarations import Declarations, Estimation, Party, levels
from headgate.catalog.entries import Relation, Stream
from headgate.catalog.skew import Bound, Bounds, strongest, without_progress
from headgate.heartbeat.arrivals import NEVER, Arrivals, Ticks
from headgate.heartbeat.enabling import by_date, last_beat_us, since_largest
from headgate.heartbeat.estimate import Estimator, following
from headgate.heartbeat.future import KNOWN, SLACK, together
from headgate.heartbeat.generator import Generator
from headgate.heartbeat.groups import Kind, arriving
from headgate.heartbeat.timeline import FEW_SOURCES, Members, Timeline
from headgate.scope import Scope, Scopes
from headgate.ticks import UNLIMITED, Tick, TimeDomain

LATE = "late("
"""`late(s)`: the dead letters of s. They are stamped with the first open instant of s, so they are complete where s
is.
"""

AHEAD_US = 86_400_000_000
AHEAD_UNITS = 2**31
"""How far in the future a timestamp may lie unless told otherwise: a day beyond the date; units of integer time, at
first.
"""

SETTLED = 5
SETTLED_US = 5_000_000
"""All sources of a stream have been heard of if so many tuples a source brought no new one, or after so long."""

NEAR_US = 60_000_000
NEAR_UNITS = 1_000
"""What lies no further ahead of what is expected is never doubted: a minute, or units of integer time."""

FORGOTTEN_AFTER = 10
"""A source that is silent for so many times the timeout is forgotten, when there are many."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a stream is complete, and because of which of its sources not further."""

    complete: Tick | None
    silent: bool = False
    told: bool = False
    """If it is silent: whether others that speak were declared to say how far it is."""

    cohort: int | None = None
    member: int | None = None
    heard_us: int | None = None
    """When that source was last heard of, None if never; without any source, since when one is waited for."""

    speaking: int = 0
    """How many sources count; the others are silent."""

    of: Scope | None = None
    """Whose sources these are: those of the groups that the reader waits for; None: all of the stream."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What one cohort of a stream says of it."""

    cohort: int
    complete: Tick = UNLIMITED
    member: int | None = None
    """Of the sources that count, the one that is complete least far; None if none counts."""

    speaking: int = 0
    """How many sources speak."""

    awaited: bool = False
    """Whether any speaks, or is named and may still speak for the first time."""

    spoken: Tick = UNLIMITED
    """How far all sources are complete that ever spoke, silent or not."""

    forgotten: Tick = UNLIMITED
    """How far those are complete that were forgotten, if others that speak are declared to say so."""


class Heartbeats:
    def __init__(self, declarations: Declarations | None = None) -> None:
        self.declarations = declarations or Declarations()
        self.timelines: dict[str, Timeline] = {}
        self.generator = Generator()
        self.estimators: dict[int, Estimator] = {}
        self.timeout_us: int | None = None
        self.estimating = True
        """Whether bounds are learnt where nothing is declared."""
        self.date_offset_us = 0
        """What to add to the engine's clock to get the time that internal timestamps are in."""
        self.calendar_us: int | None = None
        """Added to the engine's clock, it gives the date as last shown. A date can go back, a timestamp cannot. None:
        unknown.
        """
        self.asked_us: int | None = None
        """When a heartbeat was first asked for: streams that have not spoken by then are waited for from then on."""
        self._arrivals = 0
        """How many tuples of latent time have come."""
        self._owners: dict[int, Timeline] = {}

    # definitions

    def add(self, stream: Stream | Relation, now_us: int) -> None:
        timeline = self.timelines[stream.name] = Timeline(stream, now_us, finished=stream.domain is None)
        timeline.tell_apart(self.declarations, self.estimated(stream.name))
        if timeline.external and not timeline.finished:
            self._expect(timeline, now_us)
            self.bind()
            self._never_spoke(timeline, now_us)

    def remove(self, stream: str) -> None:
        timeline = self.timelines.pop(stream, None)
        for number in timeline.cohorts.values() if timeline is not None else ():
            self.generator.remove(number)
            self.estimators.pop(number, None)
        self.heed()  # what it said about others is gone with it

    def heed(self, now_us: int | None = None) -> None:
        """Take over what has been declared since the last time; sources that were named since then count from now
        on.
        """
        for timeline in self.timelines.values():
            latencies = {kind: self.generator.cohorts[number].latency_us for kind, number in timeline.cohorts.items()}
            moved = timeline.tell_apart(self.declarations, self.estimated(timeline.name))
            if moved or any(us != kind.latency_us(self.declarations) for kind, us in latencies.items()):
                before = list(timeline.cohorts.values())
                learnt = [self.estimators.pop(number) for number in before if number in self.estimators]
                timeline.move(self.generator, self.declarations)
                for number in timeline.cohorts.values() if learnt else ():
                    self.estimators[number] = following(self._how(timeline.name), learnt, (None, *before))
            self._expect(timeline, timeline.since_us if now_us is None else now_us)
        for number, estimator in list(self.estimators.items()):
            how = self._how(self.owner(number).name)
            if not self.estimated(self.owner(number).name):
                del self.estimators[number]
            elif estimator.how != how:
                self.estimators[number] = following(how, [estimator], [None])
        for estimator in self.estimators.values():
            estimator.forget([sender for sender in estimator.senders if sender not in (None, *self.generator.cohorts)])
        self.bind()

    def resumed(self) -> None:
        """The state is that of an earlier run: what follows from the declarations is found anew, by the rules of this
        version.
        """
        for timeline in self.timelines.values():
            self._expect(timeline, timeline.since_us)
        self.bind()

    def _expect(self, timeline: Timeline, now_us: int) -> None:
        """Sources of which something is declared by name are there before they speak, and are waited for from then
        on.
        """
        if not timeline.external or timeline.finished:
            return
        timeline.numbers(list(timeline.kinds) if timeline.many else [None], self.generator, self.declarations)
        named = self.declarations.named(timeline.name) if timeline.many else set()
        timeline.named_us = {source: timeline.named_us.get(source, now_us) for source in named}
        for number in timeline.cohorts.values():
            self.generator.cohorts[number].awaited_us[:] = NEVER
        for source, us in timeline.named_us.items():
            number, member = timeline.places[timeline.sources[source]].tolist()
            awaited_us = self.generator.cohorts[number].awaited_us
            awaited_us[member] = max(int(awaited_us[member]), us)

    def bind(self) -> None:
        """Hand all bounds in force to the generator, and let it forget what none of them needs."""
        longest_us = max((estimator.delays_us[-1] for estimator in self.estimators.values()), default=0)
        for cohort in self.generator.cohorts.values():
            cohort.maxima.horizon_us = longest_us
        senders = _Senders(self)
        for timeline in self.timelines.values():
            for number in timeline.cohorts.values():
                self.generator.towards[number], self.generator.guessed[number] = {}, {}
                self._bind_one(timeline, number, senders.of(timeline, number))
        for number, cohort in self.generator.cohorts.items():
            estimator = self.estimators.get(number)
            cohort.prune(self.generator.towards[number], estimator.delays_us if estimator is not None else ())

    def _bind_one(self, timeline: Timeline, number: int, senders: Iterable[int]) -> None:
        self.generator.cohorts[number].own = self.own(timeline, number)
        for first in senders:
            self.generator.bind(first, number, *self._between(first, timeline, number))

    def estimated(self, stream: str) -> bool:
        """Whether bounds of the stream are learnt from what arrives."""
        return stream in self.declarations.estimations or (self.estimating and not self.declared(stream))

    def declared(self, stream: str) -> bool:
        """Whether it was said from what heartbeats of the stream follow: from bounds, or from those it sends itself."""
        defined = self.timelines[stream].stream
        return self.declarations.about(stream) or (isinstance(defined, Stream) and defined.heartbeat is not None)

    def _how(self, stream: str) -> Estimation:
        return self.declarations.estimations.get(stream, Estimation())

    def own(self, timeline: Timeline, number: int) -> Bounds:
        """The bounds in force of a source with itself, as they hold for arrivals."""
        declared = arriving(timeline.kind(number).own(self.declarations), self.generator.cohorts[number].latency_us)
        if not self.declared(timeline.name) and not self.estimated(timeline.name):
            declared = (Bound(1, after_us=self.generator.cohorts[number].latency_us),)
        return strongest((*declared, *self.learnt(number, None)))

    def between(self, first: int, timeline: Timeline, number: int) -> Bounds:
        """The bounds in force from the sources of a cohort to those of another."""
        declared, learnt = self._between(first, timeline, number)
        return strongest((*declared, *learnt))

    def _between(self, first: int, timeline: Timeline, number: int) -> tuple[Bounds, Bounds]:
        """The bounds in force between two cohorts: the declared ones, and the learnt ones."""
        other = self.owner(first)
        if not self._comparable(first, timeline, number):
            return (), ()
        said = timeline.kind(number).after(other.kind(first), self.declarations)
        return arriving(said, self.generator.cohorts[number].latency_us), self.learnt(number, first)

    def _comparable(self, first: int, timeline: Timeline, number: int) -> bool:
        other = self.owner(first)
        if first == number:
            return timeline.many
        return other.stream.domain is timeline.stream.domain

    def learnt(self, number: int, sender: int | None) -> Bounds:
        estimator = self.estimators.get(number)
        return estimator.bounds(sender) if estimator is not None else ()

    def owner(self, number: int) -> Timeline:
        if number not in self._owners:
            self._owners = {cohort: line for line in self.timelines.values() for cohort in line.cohorts.values()}
        return self._owners[number]

    def forget_owners(self) -> None:
        """The cohorts have been replaced: who owns which is found anew."""
        self._owners = {}

    def between_streams(self, first: str, second: str) -> bool:
        """Whether any tuple of the first stream says anything about the second."""
        lines = self.timelines[first], self.timelines[second]
        senders = {*lines[0].cohorts.values()}
        declared = any(pair[0].stream == first and pair[1].stream == second for pair in self.declarations.skews)
        bound = (
            self.generator.towards[number].keys() | self.generator.guessed[number].keys()
            for number in lines[1].cohorts.values()
        )
        return declared or any(senders & known for known in bound)

    # arrivals

    def arrived(self, stream: str, arrivals: Arrivals, now_us: int) -> None:
        """Tuples came, late ones included: they too say how far their sources have come, and which bounds hold."""
        if not arrivals.total:
            return
        timeline = self.timelines[stream]
        timeline.tuples += arrivals.total
        timeline.first_us = now_us if timeline.first_us is None else timeline.first_us
        if timeline.external and not timeline.finished:
            self._take(timeline, arrivals, now_us)
        largest = int(arrivals.largest.max())
        if timeline.largest is None or largest > timeline.largest:
            timeline.largest, timeline.came_us = largest, now_us
        if timeline.external:
            timeline.pace.arrived(arrivals, now_us, _least_rate(timeline))
        if timeline.tuples >= timeline.regroup_at:
            timeline.regroup_at = 4 * timeline.tuples
            timeline.put_together(self.declarations, self.estimated(stream))

    def _take(self, timeline: Timeline, arrivals: Arrivals, now_us: int) -> None:
        numbers = self._numbers(timeline, arrivals.sources, arrivals)
        places, estimated = timeline.places[numbers], self.estimated(timeline.name)
        self._note_return(timeline, arrivals, places, now_us)
        together = np.flatnonzero(np.bincount(places[:, 0])).tolist() if len(places) > 1 else places[:, 0].tolist()
        for number in together:
            every = places[:, 1], arrivals
            members, part = every if len(together) == 1 else arrivals.of_members(places[:, 1], places[:, 0] == number)
            if estimated:
                if number not in self.estimators:
                    self.estimators[number] = Estimator(self._how(timeline.name))
                estimator = self.estimators[number]
                senders = [first for first in self.generator.cohorts if self._comparable(first, timeline, number)]
                self.generator.cohorts[number].resize(int(members.max()) + 1)
                if estimator.see(self.generator, number, members, part, senders, now_us):
                    self._bind_one(timeline, number, senders)
                self.generator.cohorts[number].stepped(members, part)
            self.generator.arrived(number, members, part, now_us)
        if len(timeline.sources) >= timeline.forget_at:
            self._forget(timeline, now_us)

    def _forget(self, timeline: Timeline, now_us: int) -> None:
        """Forget the sources that can no longer matter: those that have finished, and those that have been silent for
        long.

        Silent ones that others are declared to speak for go once those have said as much as they had said themselves;
        from then on one figure stands for all of them. Sources that were named stay. So do those that GROUPS names: a
        group of which all have finished is not one of which nobody has spoken yet."""
        spoken_us = NEVER if self.timeout_us is None else now_us - FORGOTTEN_AFTER * self.timeout_us
        gone: dict[int, NDArray[np.intp]] = {}
        grouping = self.declarations.groupings.get(timeline.name)
        staying = {*timeline.kinds}.union(*(grouping.sets if grouping is not None else ())) & timeline.sources.keys()
        named = timeline.places[[timeline.sources[source] for source in staying]]
        for number in timeline.kind_of:
            cohort = self.generator.cohorts[number]
            heard_us = cohort.heard_us[: cohort.size]
            finished = (cohort.punctuations.at(now_us)[: cohort.size] >= UNLIMITED) & (heard_us < now_us)
            silent = (heard_us > NEVER) & (heard_us <= spoken_us) & ~finished
            for mask in (finished, silent):
                mask[named[named[:, 0] == number, 1]] = False
            if silent.any() and self.generator.towards[number]:
                silent &= self.generator.promised(number, now_us) <= self.generator.by_anybody(number, now_us)
                cohort.forgotten = cohort.forgotten or bool(silent.any())
            gone[number] = np.flatnonzero(finished | silent)
        timeline.forget({number: members for number, members in gone.items() if len(members)}, self.generator)
        timeline.forget_at = max(FEW_SOURCES, 2 * len(timeline.sources))
        timeline.put_together(self.declarations, self.estimated(timeline.name))

    def _note_return(self, timeline: Timeline, arrivals: Arrivals, places: NDArray[np.int64], now_us: int) -> None:
        """Sources speak again, some after the timeout had given them up, and are late for that."""
        common, apart = timeline.limits()
        if self.timeout_us is None or (common is None and not apart):
            return
        usual = NEVER if common is None else common
        limits = np.array([apart.get(source, usual) for source in arrivals.sources] if apart else [usual] * len(places))
        for number in np.flatnonzero(np.bincount(places[:, 0])).tolist():
            mine = np.flatnonzero(places[:, 0] == number)
            cohort = self.generator.cohorts[number]
            cohort.resize(int(places[mine, 1].max()) + 1)
            heard_us = cohort.heard_us[places[mine, 1]]
            late = arrivals.smallest[mine] <= limits[mine]
            back = mine[late & (heard_us > NEVER) & (heard_us <= now_us - self.timeout_us)]
            timeline.gave_up |= {arrivals.sources[position]: int(limits[position]) for position in back.tolist()}

    def _numbers(
        self, timeline: Timeline, sources: Sequence[Any], arrivals: Arrivals | None = None
    ) -> NDArray[np.intp]:
        before = len(timeline.cohorts)
        numbers = timeline.numbers(sources, self.generator, self.declarations)
        if len(timeline.cohorts) != before:
            self.bind()
        if arrivals is not None and timeline.many:
            timeline.note_lag(numbers, arrivals)
        return numbers

    def late(self, stream: str, sources: Sequence[Any], counts: NDArray[Any]) -> None:
        """So many tuples of each source were late."""
        timeline = self.timelines[stream]
        numbers = self._numbers(timeline, sources)
        timeline.late[numbers] += counts
        for source, (number, member), count in zip(
            sources, timeline.places[numbers].tolist(), counts.tolist(), strict=True
        ):
            if source in timeline.gave_up:
                timeline.late_given_up += count
                if self.generator.cohorts[number].largest[member] > timeline.gave_up[source]:
                    del timeline.gave_up[source]  # it has caught up

    def punctuated(self, stream: str, source: Any, upto: Tick, now_us: int) -> None:
        """A heartbeat that a source sent itself; None: for the whole stream."""
        everybody = source is None and self.timelines[stream].many
        self.punctuated_by(
            stream, dict.fromkeys(self.timelines[stream].sources if everybody else [source], upto), now_us
        )

    def punctuated_by(self, stream: str, promises: Mapping[Any, Tick], now_us: int) -> None:
        """Take heartbeats that many sources sent themselves."""
        timeline = self.timelines[stream]
        numbers = self._numbers(timeline, list(promises))
        timeline.said[numbers] = np.maximum(timeline.said[numbers], np.fromiter(promises.values(), np.int64))
        places = timeline.places[numbers]
        for number in np.unique(places[:, 0]).tolist():
            cohort, meant = self.generator.cohorts[number], np.unique(places[places[:, 0] == number, 1])
            members, upto = timeline.said_in(number)
            changed = np.isin(members, meant)
            self.generator.punctuated(number, members[changed], upto[changed], now_us)
            cohort.heard_us[meant] = now_us
        if len(timeline.sources) >= timeline.forget_at:
            self._forget(timeline, now_us)

    def finish(self, stream: str, source: Any = None, now_us: int = 0) -> None:
        """Nothing will come any more from the stream, or from one source of it."""
        if source is None:
            self.timelines[stream].finished = True
        else:
            self.punctuated(stream, source, UNLIMITED, now_us)

    def pause(self, stream: str, now_us: int) -> None:
        """The stream is not read for a while: what it sends meanwhile must not be late afterwards."""
        timeline = self.timelines[stream]
        timeline.frozen = self.standing(stream, now_us).complete
        timeline.paused = True

    def resume(self, stream: str, now_us: int) -> None:
        """It is read again, and what was held back has been: its silence counts from now."""
        timeline = self.timelines[stream]
        timeline.paused, timeline.since_us, timeline.came_us = False, now_us, now_us
        timeline.pace.resumed()
        for number in timeline.cohorts.values():
            self.generator.cohorts[number].heard_us[np.flatnonzero(self._heard(number))] = now_us

    def next_arrival(self, count: int) -> Tick:
        """Reserve so many instants of arrival order; the first of them."""
        self._arrivals += count
        return self._arrivals - count + 1

    def last_arrival(self) -> Tick:
        return self._arrivals

    def arrivals_reached(self, last: Tick) -> None:
        self._arrivals = max(self._arrivals, last)

    def set_date(self, date_us: int | None, now_us: int) -> None:
        """The calendar may have run ahead of the engine's clock, which stands still while the computer sleeps."""
        if date_us is not None:
            self.calendar_us = date_us - now_us
            self.date_offset_us = max(self.date_offset_us, self.calendar_us)

    def stamp(self, now_us: int) -> Tick:
        """The timestamp of a tuple that the engine itself stamps now."""
        return now_us + self.date_offset_us

    # what the clock says

    def answer(self, stream: str, now_us: int, read_us: int | None = None) -> Tick | None:
        """Up to when nothing will still come on a stream, as the clock says it; None if it says nothing.

        `read_us` is the instant as of which everything that was there has been read; None: now.
        """
        timeline = self.timelines[stream]
        if timeline.finished or timeline.paused:
            return None
        if not timeline.external:
            return self.stamp(now_us) if timeline.stream.domain is TimeDomain.TIMESTAMP else None
        read_us = now_us if read_us is None else min(read_us, now_us)
        enabling, bounds = self.declarations.enabling(stream), self.declarations.calendar.get(stream)
        found = []
        if enabling.within is not None and timeline.largest is not None:
            came_us = timeline.since_us if timeline.came_us is None else timeline.came_us
            found.append(since_largest(timeline.largest, came_us, read_us, enabling.within, enabling.tick_us))
        if bounds and self.calendar_us is not None:
            latency_us = max((kind.latency_us(self.declarations) for kind in timeline.all_kinds()), default=0)
            found.append(by_date(read_us + self.calendar_us, bounds, latency_us))
        return max(found, default=None)

    def ask(self, stream: str, now_us: int, read_us: int | None = None, said: Tick | None = None) -> bool:
        """An enabling timestamp, on demand; whether the heartbeat of the stream moved. Where it is not on demand, it
        does not.

        `said` is what somebody else says who was asked: up to when nothing will still come.
        """
        name = base(stream)
        if self.declarations.enabling(name).how != "on demand":
            return False
        return self._enable(name, now_us, _larger(self.answer(name, now_us, read_us), said), read_us)

    def beats(self, stream: str, now_us: int) -> bool:
        """Whether the clock is to speak of a stream of its own accord, and has not since it should have."""
        enabling, beat_us = self.declarations.enabling(stream), self.timelines[stream].beat_us
        return enabling.how == "every" and (beat_us is None or last_beat_us(now_us, enabling.every_us) > beat_us)

    def beat(self, stream: str, now_us: int, read_us: int | None = None, said: Tick | None = None) -> bool:
        """An enabling timestamp where one comes every so often: as the clock would have said it then."""
        if not self.beats(stream, now_us):
            return False
        at_us = self.timelines[stream].beat_us = last_beat_us(now_us, self.declarations.enabling(stream).every_us)
        return self._enable(stream, now_us, _larger(self.answer(stream, at_us, read_us), said), read_us)

    def _enable(self, stream: str, now_us: int, upto: Tick | None, read_us: int | None) -> bool:
        timeline, before = self.timelines[stream], self.standing(stream, now_us).complete
        timeline.read_us = now_us if read_us is None else read_us
        timeline.enabled = _larger(timeline.enabled, upto)
        return upto is not None and (before is None or upto > before) and not timeline.paused

    def follows_clock(self, stream: str) -> bool:
        """Whether the clock says how far a stream is that its source stamps."""
        return self.declarations.by_clock(stream) and self.declarations.enabling(stream).how != "none"

    # heartbeats

    def standing(
        self,
        stream: str,
        now_us: int,
        among: Collection[str] = (),
        answer: Tick | None = None,
        silent_us: int | None = None,
        scope: Scope | None = None,
    ) -> Standing:
        """How far a stream is complete by what its sources sent and promised, and by what the clock was asked.

        Silent sources do not count, unless others that speak are declared to say how far they are. `answer` is what the
        clock would say, if it were asked. `silent_us` is the instant by which silence is judged, if that is not now.
        For a reader that sees only the sources in `scope` other groups do not count."""
        timeline = self.timelines[stream]
        enabled = _larger(timeline.enabled, answer)
        if not timeline.external:
            spoken = None if timeline.largest is None else timeline.largest - 1
            return Standing(
                _larger(spoken, enabled) if timeline.stream.domain is TimeDomain.TIMESTAMP else self._arrivals
            )
        if timeline.paused:
            return Standing(timeline.frozen, heard_us=timeline.since_us)
        silent_us = now_us if silent_us is None else silent_us
        if not timeline.many and len(timeline.cohorts) == 1:
            found = self._by_one(timeline, now_us, among, silent_us)
        else:
            found = self._by_groups(timeline, now_us, among, silent_us, timeline.waited_for(scope))
        return found if enabled is None else replace(found, complete=_larger(found.complete, enabled))

    def _by_one(self, timeline: Timeline, now_us: int, among: Collection[str], silent_us: int) -> Standing:
        """Like `_by_sources`, for a stream that is a single source: faster, because it needs no arrays of one
        element.
        """
        (number,) = timeline.cohorts.values()
        complete = int(self.generator.promised(number, now_us, self.heeded(timeline.name, among))[0])
        heard_us = int(self.generator.cohorts[number].heard_us[0])
        known = complete if complete > NEVER // 2 else None
        silent = heard_us <= NEVER or (self.timeout_us is not None and heard_us <= silent_us - self.timeout_us)
        if not silent:
            return Standing(known, False, False, number, 0, heard_us, 1)
        if known is None or not self._told(number, silent_us):
            return Standing(known, silent=True)
        return Standing(known, True, True, number, 0, heard_us)

    def _by_groups(
        self, timeline: Timeline, now_us: int, among: Collection[str], silent_us: int, scope: Scope | None
    ) -> Standing:
        """How far the groups in the scope are complete, the clock left out.

        A group that is silent follows the stream, as a silent source does; it stays as far as its own sources said.
        """
        found = self._by_sources(timeline, now_us, among, silent_us, scope)
        if scope is None or not found.silent or found.told:
            return found
        whole = self._by_sources(timeline, now_us, among, silent_us, None)
        return replace(whole, complete=_larger(found.complete, whole.complete))

    def _by_sources(
        self, timeline: Timeline, now_us: int, among: Collection[str], silent_us: int, scope: Scope | None
    ) -> Standing:
        """How far the sources in the scope are complete, the clock left out.

        What was learnt about a stream from another counts only `among` those that are read together: who reads it alone
        gains nothing by running ahead of what it has sent."""
        senders = self.heeded(timeline.name, among)
        chosen = timeline.members(scope, self.generator)
        if timeline.many and not any(self._heard(number, chosen).any() for number in timeline.cohorts.values()):
            if scope is not None and scope.others:  # the rest follows the stream while nothing ever came from it
                return self._by_sources(timeline, now_us, among, silent_us, None)
            complete, told = self._said_of_unheard(timeline, now_us, silent_us, scope)
            named_us = [us for source, us in timeline.named_us.items() if scope is None or source in scope]
            silent = self.timeout_us is not None and silent_us - max([timeline.since_us, *named_us]) >= self.timeout_us
            return Standing(complete, silent, told, heard_us=timeline.since_us, of=scope)
        parts = [
            self._part(timeline, number, now_us, silent_us, senders, chosen) for number in timeline.cohorts.values()
        ]
        speaking = sum(part.speaking for part in parts)
        holding = [part for part in parts if part.member is not None]
        forgotten = (
            UNLIMITED if timeline.knows_all(scope) else min((part.forgotten for part in parts), default=UNLIMITED)
        )
        if forgotten < min((part.complete for part in holding), default=UNLIMITED):
            silent = not any(part.awaited for part in parts)
            return Standing(forgotten, silent, silent, speaking=speaking, of=scope)
        if not holding:
            spoken = min((part.spoken for part in parts), default=NEVER)
            return Standing(spoken if spoken > NEVER // 2 else None, silent=True, of=scope)
        least = min(holding, key=lambda part: part.complete)
        assert least.member is not None
        heard_us = int(self.generator.cohorts[least.cohort].heard_us[least.member])
        known = least.complete if least.complete > NEVER // 2 and not self.settling(timeline, now_us, scope) else None
        silent = not any(part.awaited for part in parts)
        last_us = heard_us if heard_us > NEVER else None
        return Standing(known, silent, silent, least.cohort, least.member, last_us, speaking, scope)

    def settling(self, timeline: Timeline, now_us: int, scope: Scope | None = None) -> bool:
        """Whether sources may be missing of which nobody knows how far behind they are: a stream that holds many, and
        has just begun. It has settled once all that were heard of could have spoken a few times since the last new one,
        or after a while."""
        if not (timeline.many and self.estimated(timeline.name)) or timeline.first_us is None:
            return False
        if timeline.limit(scope) is not None or timeline.knows_all(scope):
            return False
        if (timeline.said[: len(timeline.sources)] > NEVER).any():
            return False  # somebody knows, and says so
        again = timeline.tuples - timeline.newest_at
        return again < SETTLED * len(timeline.sources) and now_us - timeline.first_us < SETTLED_US

    def heeded(self, stream: str, among: Collection[str]) -> set[int] | None:
        """The cohorts whose tuples count for the stream; None: all."""
        if not self.estimated(stream):
            return None
        return {number for name in (stream, *among) for number in self.timelines[name].cohorts.values()}

    def _part(
        self,
        timeline: Timeline,
        number: int,
        now_us: int,
        silent_us: int,
        senders: set[int] | None,
        chosen: Members | None,
    ) -> _Part:
        """What one cohort, or the chosen sources of it, say of their stream."""
        promised, counting, holding = self._waited_for(timeline, number, now_us, silent_us, senders, chosen)
        heard = self._heard(number, chosen)
        spoken, forgotten = int(promised[heard].min(initial=UNLIMITED)), UNLIMITED
        if self.generator.cohorts[number].forgotten and self._told(number, silent_us):
            said = self.generator.by_anybody(number, now_us)
            forgotten = said if said > NEVER // 2 else UNLIMITED
        if not holding.any():
            return _Part(number, spoken=spoken, forgotten=forgotten)
        member = int(np.argmin(promised if holding.all() else np.where(holding, promised, UNLIMITED + 1)))
        speaking = int((counting & heard).sum())
        return _Part(number, int(promised[member]), member, speaking, bool(counting.any()), spoken, forgotten)

    def _waited_for(
        self,
        timeline: Timeline,
        number: int,
        now_us: int,
        silent_us: int,
        senders: set[int] | None,
        chosen: Members | None,
    ) -> tuple[Ticks, NDArray[np.bool_], NDArray[np.bool_]]:
        """Of each source of a cohort: up to when it is complete, whether it speaks or may still speak for the first
        time, and whether it is waited for: a silent one is if others that speak are declared to say how far it is. Only
        chosen ones are."""
        cohort = self.generator.cohorts[number]
        promised = self.generator.promised(number, now_us, senders)
        last_us = cohort.heard_us[: cohort.size]
        if timeline.named_us:
            last_us = np.where(last_us > NEVER, last_us, cohort.waited_for_us(timeline.since_us))
        counting = last_us > (NEVER if self.timeout_us is None else silent_us - self.timeout_us)
        everybody = self.timeout_us is None or counting.all() or not self._told(number, silent_us)
        holding = counting if everybody else counting | ((last_us > NEVER) & (promised > NEVER // 2))
        if chosen is None:
            return promised, counting, holding
        return promised, counting & chosen[number], holding & chosen[number]

    def holding(
        self, timeline: Timeline, goal: Tick, among: Collection[str], now_us: int, scope: Scope | None = None
    ) -> list[Any]:
        """The sources of a stream, or of groups of it, that are waited for and not complete up to an instant."""
        chosen = timeline.members(scope, self.generator)
        if not any(self._heard(number, chosen).any() for number in timeline.cohorts.values()):
            named = [source for source in timeline.named_us if scope is None or source in scope]
            return named or ([None] if scope is None else sorted(scope.sources)[:1])
        senders, places = self.heeded(timeline.name, among), timeline.places[: len(timeline.sources)]
        wanted = np.zeros(len(places), bool)
        for number in timeline.cohorts.values():
            promised, _, holding = self._waited_for(timeline, number, now_us, now_us, senders, chosen)
            mine = np.flatnonzero(places[:, 0] == number)
            wanted[mine] = (holding & (promised < goal))[places[mine, 1]]
        return list(compress(timeline.sources, wanted.tolist()))

    def fork(self) -> Heartbeats:
        """A copy in which anything can be tried."""
        shared: dict[int, Any] = {}
        for line in self.timelines.values():
            shared |= {id(one): one for one in (line.stream, line.at_large, line.groups)}
            known_of = line.sources, line.kinds, line.cohorts, line.kind_of, line.named_us, line.given_to
            shared |= {id(one): dict(one) for one in known_of}
        known = self.declarations
        shared[id(known)] = Declarations(**{part.name: dict(getattr(known, part.name)) for part in fields(known)})
        return deepcopy(self, shared)

    def _told(self, number: int, silent_us: int) -> bool:
        """Whether others that speak were declared to say in time how far the silent sources of a cohort are: that is
        true, and silence only a guess. A bound after so many tuples says nothing of a source that sends none."""
        declared = self.generator.towards[number].items()
        return any(
            any(not bound.tuples for bound in bounds) and self._tells(first, silent_us) for first, bounds in declared
        )

    def _tells(self, number: int, silent_us: int) -> bool:
        """Whether a source of the cohort has spoken, and is not silent."""
        owner, cohort = self.owner(number), self.generator.cohorts[number]
        if owner.finished or cohort.maxima.latest.largest <= NEVER:
            return False
        last_us = int(cohort.heard_us[: cohort.size].max(initial=NEVER))
        return owner.paused or self.timeout_us is None or last_us > silent_us - self.timeout_us

    def _said_of_unheard(
        self, timeline: Timeline, now_us: int, silent_us: int, scope: Scope | None
    ) -> tuple[Tick | None, bool]:
        """What others' tuples say about the sources of a stream, or of named ones, of which none has spoken yet, by
        what is declared; and whether one of those others is not silent."""
        found, told = [], False
        for kind in timeline.all_kinds(scope):
            said = [NEVER]
            for number, cohort in self.generator.cohorts.items():
                other = self.owner(number)
                comparable = other.stream.domain is timeline.stream.domain
                bounds = arriving(kind.after(other.kind(number), self.declarations), kind.latency_us(self.declarations))
                for bound in bounds if comparable else ():
                    if not bound.tuples:
                        cohort.maxima.horizon_us = max(cohort.maxima.horizon_us, bound.after_us)
                        said.append(cohort.maxima.ago(bound.after_us, now_us).largest - bound.within)
                        told |= self._tells(number, silent_us)
            found.append(max(said))
        return (min(found), told) if min(found) > NEVER // 2 else (None, False)

    def _heard(self, number: int, chosen: Members | None = None) -> NDArray[np.bool_]:
        """Which sources of a cohort, or of those chosen, have ever spoken."""
        cohort = self.generator.cohorts[number]
        heard: NDArray[np.bool_] = cohort.heard_us[: cohort.size] > NEVER
        return heard if chosen is None else heard & chosen[number]

    def silent(self, stream: str, now_us: int) -> bool:
        """Whether nothing came from any source of the stream for the timeout."""
        return self.standing(stream, now_us).silent

    def heartbeat(
        self,
        streams: Iterable[str],
        now_us: int,
        answers: Mapping[str, Tick] | None = None,
        scopes: Scopes | None = None,
    ) -> Tick | None:
        """The instant up to which all of these streams are complete; None while that is unknown.

        Silent streams follow the slowest that is not; if one of those, or the clock, is declared to say how far they
        are, no further than that. If all are silent or finished, everything that came is complete. `answers` are what
        the clock would say of some of them, if it were asked; `scopes` are the sources that the reader can see."""
        if self.asked_us is None:
            self.asked_us = now_us
            for timeline in self.timelines.values():
                self._never_spoke(timeline, now_us)
        self.generator.settle(now_us)
        return self.foretold(streams, now_us, now_us, answers, scopes)

    def foretold(
        self,
        streams: Iterable[str],
        at_us: int,
        silent_us: int,
        answers: Mapping[str, Tick] | None = None,
        scopes: Scopes | None = None,
    ) -> Tick | None:
        """The heartbeat as it will be at an instant if nothing comes until then, with silence judged by another.

        Nothing is changed by asking.
        """
        answers, scopes = answers or {}, scopes or {}
        inputs = {name: self.timelines[name] for name in map(base, streams)}
        standings = self.standings(inputs, at_us, silent_us, answers, scopes)
        speaking = [standings[name].complete for name in self.counting(standings)]
        if speaking:
            known = [complete for complete in speaking if complete is not None]
            reached = min(known) if len(known) == len(speaking) else None
        else:
            reached = max((line.largest for line in inputs.values() if line.largest is not None), default=None)
        own = [_larger(standing.complete, inputs[name].limit(scopes.get(name))) for name, standing in standings.items()]
        if own and all(instant is not None for instant in own):
            reached = _larger(reached, min(instant for instant in own if instant is not None))
        return reached

    def standings(
        self, streams: Collection[str], at_us: int, silent_us: int, answers: Mapping[str, Tick], scopes: Scopes
    ) -> dict[str, Standing]:
        """How far each of the streams that go on is complete, where they are read together."""
        going_on = [name for name in streams if not self.timelines[name].finished]
        found = {
            name: self.standing(name, at_us, streams, answers.get(name), silent_us, scopes.get(name))
            for name in going_on
        }
        return {name: standing for name, standing in found.items() if standing.complete != UNLIMITED}

    def counting(self, standings: Mapping[str, Standing]) -> list[str]:
        """Which of the streams that are read together hold the others back: not the silent ones, unless others that
        speak, or the clock, were declared to say how far they are."""
        return [name for name, one in standings.items() if not one.silent or one.told or self.clock_speaks_of(name)]

    def clock_speaks_of(self, stream: str) -> bool:
        """Whether the clock would say how far a stream is that its source stamps, if it were asked now."""
        by_date = stream in self.declarations.calendar and self.calendar_us is not None
        by_tuples = self.declarations.enabling(stream).within is not None and self.timelines[stream].largest is not None
        return self.follows_clock(stream) and (by_date or by_tuples)

    def _never_spoke(self, timeline: Timeline, now_us: int) -> None:
        """The timeout of a stream that has sent nothing begins now."""
        if not timeline.tuples:
            timeline.since_us = now_us
            for number in timeline.cohorts.values() if not timeline.many else ():
                self.generator.cohorts[number].heard_us[:] = now_us

    def give(self, stream: str, heartbeat: Tick, scope: Scope | None = None, again: bool = False) -> None:
        """Remember that a reader of the stream, or of these sources of it, was told that it is complete up to here.

        `again` if that was before a restart, in whatever groups the sources were then.
        """
        self.timelines[base(stream)].give(heartbeat, scope, again)

    def limit(self, stream: str, scope: Scope | None = None) -> Tick | None:
        """Up to where the stream, or all of these sources of it, were said to be complete."""
        return self.timelines[stream].limit(scope)

    def limits(self, stream: str) -> tuple[Tick | None, Mapping[str, Tick]]:
        """What arrives with a timestamp up to here is late: in general, and of sources for which that is another
        instant.
        """
        return self.timelines[stream].limits()

    def first_open(self, stream: str) -> Tick:
        """The first instant at which something can still happen on the stream."""
        timeline = self.timelines[stream]
        if timeline.given is not None:
            return timeline.given + 1
        origin = (timeline.stream.domain or TimeDomain.INTEGER).origin
        return origin if timeline.largest is None else timeline.largest

    def ahead_of(self, stream: str, date_us: int | None, now_us: int) -> Tick | None:
        """Timestamps beyond this are taken for mistakes, if no others confirm them: by FUTURE OF, or by what is
        usual.
        """
        timeline = self.timelines[stream]
        if not timeline.external or timeline.finished:
            return None
        found = [self._at_most(timeline, date_us), self._usual(timeline, now_us)]
        return min((limit for limit in found if limit is not None), default=None)

    def knows_pace(self, stream: str) -> bool:
        """Whether it is known what is usual; if not, a batch is compared with itself."""
        return self._wanted(self.timelines[stream]) is not None or self.timelines[stream].pace.tuples >= KNOWN

    def believed(self, stream: str, tops: Ticks, date_us: int | None, now_us: int) -> Tick | None:
        """The far-future limit for a batch whose largest timestamps are known, in falling order: several together
        count.
        """
        timeline, limit = self.timelines[stream], self.ahead_of(stream, date_us, now_us)
        if not timeline.external or timeline.finished or self._wanted(timeline) is not None:
            return limit
        at_most, usual = self._at_most(timeline, date_us), self._usual(timeline, now_us)
        tops = tops if at_most is None else tops[tops <= at_most]
        reach = timeline.pace.reach(NEAR_US if timeline.stream.domain is TimeDomain.TIMESTAMP else NEAR_UNITS)
        if timeline.pace.tuples < KNOWN and len(tops) >= KNOWN:
            found = together(tops, reach)
            return limit if found is None else found
        beyond = tops[tops > usual] if usual is not None else tops[:0]
        if not len(beyond):
            return limit
        found = together(beyond, reach)
        if found is None and timeline.pace.doubt(len(timeline.sources)):
            found = int(beyond[0])
        return limit if found is None else found

    def _wanted(self, timeline: Timeline) -> Tick | None:
        """What FUTURE OF says."""
        return timeline.stream.ahead if isinstance(timeline.stream, Stream) else None

    def _at_most(self, timeline: Timeline, date_us: int | None) -> Tick | None:
        """Beyond this nothing is believed: what FUTURE OF says, or a day beyond the date."""
        wanted, in_time = self._wanted(timeline), timeline.stream.domain is TimeDomain.TIMESTAMP
        if wanted == UNLIMITED or (wanted is None and (date_us is None or not in_time)):
            return None
        known = [instant for instant in (date_us if in_time else None, timeline.largest) if instant is not None]
        return max(known) + (AHEAD_US if wanted is None else wanted) if known else None

    def _usual(self, timeline: Timeline, now_us: int) -> Tick | None:
        """Beyond this a timestamp is doubted: see `future`."""
        if self._wanted(timeline) is not None:
            return None
        if timeline.stream.domain is TimeDomain.TIMESTAMP:
            return timeline.pace.limit(now_us, NEAR_US, _least_rate(timeline))
        known = timeline.pace.limit(now_us, NEAR_UNITS, _least_rate(timeline))
        if known is not None or timeline.largest is None:
            return known
        return timeline.largest + max(AHEAD_UNITS, int(SLACK * timeline.pace.jump))

    def references(self, stream: str) -> Tick | None:
        """The largest timestamp that came on the stream, late ones included."""
        return self.timelines[stream].largest

    def wants_sample(self, stream: str) -> bool:
        """Whether the distribution of timestamps in a batch is of use."""
        return self.estimated(stream) and self._how(stream).confidence is not None

    def unasked(self, stream: str) -> bool:
        """Whether the engine stamps the stream, and yet the clock may not say how far it is."""
        timeline = self.timelines[stream]
        stamped = not timeline.external and timeline.stream.domain is TimeDomain.TIMESTAMP
        return stamped and self.declarations.enabling(stream).how == "none"

    def without_progress(self, streams: Iterable[str]) -> str | None:
        """Between whom a bound is missing, so that tuples can wait for ever once all pause; None if none is (Theorem
        3.3).

        Only what was declared counts: an estimate is no promise. A stream that the engine stamps says nothing of
        others, and nobody says anything of it but the clock. The clock says nothing by HEARTBEAT ... WITHIN until the
        stream has spoken."""
        inputs = [self.timelines[name] for name in dict.fromkeys(map(base, streams))]
        going_on = [line for line in inputs if not line.finished and line.stream.domain is not TimeDomain.ARRIVAL]
        found = [(line, kind) for line in going_on for kind in line.all_kinds()]
        entries: dict[tuple[Kind, Kind | None], Bounds] = {}
        for line, kind in found:
            if self.unasked(line.name):
                return f"the clock to {kind}, with HEARTBEAT NONE"
            if not line.external:
                continue
            clock = self.follows_clock(line.name)
            if clock and line.name in self.declarations.calendar:
                continue
            if not clock:
                entries[kind, None] = kind.own(self.declarations)
            for other, sender in found:
                if other is line and clock:
                    continue  # once one of its sources has spoken, the clock speaks of all
                if kind != sender or (line.many and not kind.alone):
                    entries[kind, sender] = kind.after(sender, self.declarations) if other.external else ()
        pair = without_progress(entries)
        if pair is None:
            return None
        kind, sender_kind = pair
        if sender_kind is None:
            return f"{kind} with itself"
        return f"{sender_kind} to {kind}" if sender_kind != kind else f"one source of {kind} to another"


@dataclass(frozen=True, slots=True)
class Progress:
    """Whether a query goes on once all of its sources pause, by what is declared."""

    needs_timeout: bool
    """True if nothing but a timeout, or a later tuple, lets it go on."""

    text: str

    def __str__(self) -> str:
        return self.text


def progress(catalog: Catalog, streams: Iterable[str]) -> Progress:
    """Find out whether a query over these streams needs a timeout, by what is declared."""
    heartbeats = Heartbeats(catalog.declarations)
    known: list[Stream | Relation] = [*catalog.streams.values(), *catalog.relations.values()]
    for stream in known:
        heartbeats.add(stream, now_us=0)
    read = list(map(base, streams))
    unasked = [name for name in read if heartbeats.unasked(name)]
    if unasked:
        return Progress(
            True,
            f"waits for ever once all sources pause: with HEARTBEAT NONE only a later tuple of {unasked[0]} says "
            "how far it is",
        )
    missing = heartbeats.without_progress(read)
    if missing is None:
        clock = ", or the clock does" if any(map(heartbeats.follows_clock, read)) else ""
        return Progress(False, f"needs no timeout: every source's tuples say in the end how far each source is{clock}")
    timeout_us = catalog.settings.timeout_us
    length = f"{timeout_us / 1e6:g} s" if timeout_us is not None else "none is set"
    return Progress(
        True, f"needs a timeout ({length}) once all sources pause: no bound within 0 is declared from {missing}"
    )


def _least_rate(timeline: Timeline) -> float:
    """Ticks a microsecond at which a stream may always go on: TIMESTAMP time goes with the clock."""
    return 1.0 if timeline.stream.domain is TimeDomain.TIMESTAMP else 0.0


def base(stream: str) -> str:
    """The stream whose heartbeats count for this one: of `late(s)`, s."""
    return stream[len(LATE) : -1] if stream.startswith(LATE) else stream


def _larger(first: Tick | None, second: Tick | None) -> Tick | None:
    return max((instant for instant in (first, second) if instant is not None), default=None)


class _Senders:
    """Who was declared to say something about whom: found from what was declared, not by trying all pairs."""

    def __init__(self, heartbeats: Heartbeats) -> None:
        self.heartbeats = heartbeats
        self.of_party: dict[Party, list[int]] = {}
        self.sensors: list[int] = []
        self.counters: list[int] = []
        self.to_party: dict[Party, list[Party]] = {}
        for first, second in heartbeats.declarations.skews:
            self.to_party.setdefault(second, []).append(first)
        for line in heartbeats.timelines.values():
            for kind, number in line.cohorts.items():
                for level in dict.fromkeys(level for party in kind.parties for level in levels(party)):
                    self.of_party.setdefault(level, []).append(number)
                self.sensors += [number] if kind.sensor is not None else []
                self.counters += [number] if kind.counter is not None else []

    def of(self, timeline: Timeline, number: int) -> Iterable[int]:
        """The cohorts from which there may be a bound to this one."""
        if number in self.heartbeats.estimators:
            return self.heartbeats.generator.cohorts
        kind = timeline.kind(number)
        parties = dict.fromkeys(level for party in kind.parties for level in levels(party))
        first = dict.fromkeys(first for party in parties for first in self.to_party.get(party, ()))
        found = dict.fromkeys(sender for party in first for sender in self.of_party.get(party, ()))
        found |= dict.fromkeys(self.sensors if kind.sensor is not None else ())
        return found | dict.fromkeys(self.counters if kind.counter is not None else ())
