"""The time manager: streams by name, what was declared or learnt about their sources, and how far each query may go.

It puts the parts together: `declared` says what was promised, `estimate` what was seen instead, `groups` which sources are alike,
`generator` what follows. It adds what is not a matter of bounds: silence and the timeout, finished and paused streams, time that
the engine itself gives out, and which heartbeats were given, because what arrives at or before one is late.

Numbers in, numbers out: every method that needs the time of the engine's clock is handed it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.catalog import UNLIMITED, Catalog, Relation, Stream, Tick, TimeDomain
from headgate.heartbeat.arrivals import NEVER, Arrivals
from headgate.heartbeat.bounds import Bound, Bounds, strongest, without_progress
from headgate.heartbeat.declared import Declarations, Estimation
from headgate.heartbeat.enabling import by_date, last_beat_us, since_largest
from headgate.heartbeat.estimate import Estimator, following
from headgate.heartbeat.generator import Generator
from headgate.heartbeat.groups import Kind, arriving
from headgate.heartbeat.scope import Scope, Scopes
from headgate.heartbeat.timeline import Members, Timeline

LATE = "late("
"""`late(s)`: the dead letters of s. They are stamped with the first open instant of s, so they are complete where s is."""

AHEAD_US = 86_400_000_000
AHEAD_UNITS = 2**31
"""How far in the future a timestamp may lie unless told otherwise: a day, or units of integer time."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a stream is complete, and because of which of its sources not further."""

    complete: Tick | None
    silent: bool = False
    cohort: int | None = None
    member: int | None = None
    heard_us: int | None = None
    """When that source was last heard of, None if never; without any source, since when one is waited for."""

    speaking: int = 0
    """How many sources count; the others are silent."""


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
        """The same to get the date, as it was last shown: unlike timestamps it can be put back. None if there is none."""
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
            self._expect(timeline)
            self._never_spoke(timeline, now_us)

    def remove(self, stream: str) -> None:
        timeline = self.timelines.pop(stream, None)
        for number in timeline.cohorts.values() if timeline is not None else ():
            self.generator.remove(number)
            self.estimators.pop(number, None)
        self.heed()  # what it said about others is gone with it

    def heed(self) -> None:
        """Take over what has been declared since the last time."""
        for timeline in self.timelines.values():
            latencies = {kind: self.generator.cohorts[number].latency_us for kind, number in timeline.cohorts.items()}
            moved = timeline.tell_apart(self.declarations, self.estimated(timeline.name))
            if moved or any(us != kind.latency_us(self.declarations) for kind, us in latencies.items()):
                before = list(timeline.cohorts.values())
                learnt = [self.estimators.pop(number) for number in before if number in self.estimators]
                timeline.move(self.generator, self.declarations)
                for number in timeline.cohorts.values() if learnt else ():
                    self.estimators[number] = following(self._how(timeline.name), learnt, (None, *before))
            self._expect(timeline)
        for number, estimator in list(self.estimators.items()):
            how = self._how(self.owner(number).name)
            if not self.estimated(self.owner(number).name):
                del self.estimators[number]
            elif estimator.how != how:
                self.estimators[number] = following(how, [estimator], [None])
        self._bind()

    def _expect(self, timeline: Timeline) -> None:
        """Sources that are known by name are there before they speak: others' tuples may say how far they are."""
        if timeline.external and not timeline.finished:
            self._numbers(timeline, list(timeline.kinds) if timeline.many else [None])

    def _bind(self) -> None:
        """Hand all bounds in force to the generator."""
        for timeline in self.timelines.values():
            for number in timeline.cohorts.values():
                self._bind_one(timeline, number, self.generator.cohorts)

    def _bind_one(self, timeline: Timeline, number: int, senders: Iterable[int]) -> None:
        self.generator.cohorts[number].own = self.own(timeline, number)
        for first in senders:
            self.generator.bind(first, number, self.between(first, timeline, number))

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
        other = self.owner(first)
        if not self._comparable(first, timeline, number):
            return ()
        said = timeline.kind(number).after(other.kind(first), self.declarations)
        declared = arriving(said, self.generator.cohorts[number].latency_us)
        return strongest((*declared, *self.learnt(number, first)))

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
        return declared or any(senders & self.generator.towards[number].keys() for number in lines[1].cohorts.values())

    # arrivals

    def arrived(self, stream: str, arrivals: Arrivals, now_us: int) -> None:
        """Tuples came, late ones included: they too say how far their sources have come, and which bounds hold."""
        if not arrivals.total:
            return
        timeline = self.timelines[stream]
        timeline.tuples += arrivals.total
        if timeline.external and not timeline.finished:
            self._take(timeline, arrivals, now_us)
        largest = int(arrivals.largest.max())
        if timeline.largest is None or largest > timeline.largest:
            timeline.largest, timeline.came_us = largest, now_us
        if timeline.tuples >= timeline.regroup_at:
            timeline.regroup_at = 4 * timeline.tuples
            timeline.put_together(self.declarations, self.estimated(stream))

    def _take(self, timeline: Timeline, arrivals: Arrivals, now_us: int) -> None:
        numbers = self._numbers(timeline, arrivals.sources, arrivals)
        places = timeline.places[numbers]
        for number in np.flatnonzero(np.bincount(places[:, 0])).tolist():  # far faster than `unique`
            members, part = arrivals.of_members(places[:, 1], places[:, 0] == number)
            if self.estimated(timeline.name):
                if number not in self.estimators:
                    self.estimators[number] = Estimator(self._how(timeline.name))
                estimator = self.estimators[number]
                senders = [first for first in self.generator.cohorts if self._comparable(first, timeline, number)]
                self.generator.cohorts[number].resize(int(members.max()) + 1)
                if estimator.see(self.generator, number, members, part, senders, now_us):
                    self._bind_one(timeline, number, senders)
            self.generator.arrived(number, members, part, now_us)

    def _numbers(self, timeline: Timeline, sources: Sequence[Any], arrivals: Arrivals | None = None) -> NDArray[np.intp]:
        before = {*timeline.cohorts.values()}
        numbers = timeline.numbers(sources, self.generator, self.declarations)
        for cohort in {*timeline.cohorts.values()} - before:
            self._bind_one(timeline, cohort, self.generator.cohorts)
            for other in self.generator.cohorts:
                self.generator.bind(cohort, other, self.between(cohort, self.owner(other), other))
        if arrivals is not None and timeline.many:
            timeline.note_lag(numbers, arrivals)
        return numbers

    def late(self, stream: str, sources: Sequence[Any], counts: NDArray[Any]) -> None:
        """So many tuples of each source were late."""
        timeline = self.timelines[stream]
        numbers = self._numbers(timeline, sources)
        timeline.late[numbers] += counts

    def punctuated(self, stream: str, source: Any, upto: Tick, now_us: int) -> None:
        """A heartbeat that a source sent itself; None: for the whole stream."""
        everybody = source is None and self.timelines[stream].many
        self.punctuated_by(stream, dict.fromkeys(self.timelines[stream].sources if everybody else [source], upto), now_us)

    def punctuated_by(self, stream: str, promises: Mapping[Any, Tick], now_us: int) -> None:
        """The same of many sources at once."""
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
        """An enabling timestamp, on demand; whether the heartbeat of the stream moved. Where it is not on demand, it does not.

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
        self, stream: str, now_us: int, among: Collection[str] = (), answer: Tick | None = None, scope: Scope | None = None
    ) -> Standing:
        """How far a stream is complete by what its sources sent and promised, and by what the clock was asked.

        Silent sources do not count. `answer` is what the clock would say, if it were asked. For a reader that sees only the
        sources in `scope` other groups do not count.
        """
        timeline = self.timelines[stream]
        enabled = _larger(timeline.enabled, answer)
        if not timeline.external:
            spoken = None if timeline.largest is None else timeline.largest - 1
            return Standing(_larger(spoken, enabled) if timeline.stream.domain is TimeDomain.TIMESTAMP else self._arrivals)
        if timeline.paused:
            return Standing(timeline.frozen, heard_us=timeline.since_us)
        found = self._by_groups(timeline, now_us, among, timeline.waited_for(scope))
        return found if enabled is None else replace(found, complete=_larger(found.complete, enabled))

    def _by_groups(self, timeline: Timeline, now_us: int, among: Collection[str], scope: Scope | None) -> Standing:
        """The same without the clock, of groups of sources.

        Groups that are silent follow the stream, as a silent source does. So does the rest while nothing ever came from it.
        """
        chosen = timeline.members(scope, self.generator)
        found = self._by_sources(timeline, now_us, among, chosen)
        if scope is None or chosen is None:
            return found
        unknown = scope.others and not any(self._heard(number, chosen).any() for number in chosen)
        return self._by_sources(timeline, now_us, among, None) if found.silent or unknown else found

    def _by_sources(self, timeline: Timeline, now_us: int, among: Collection[str], chosen: Members | None) -> Standing:
        """The same of the chosen sources.

        What was learnt about a stream from another counts only `among` those that are read together: who reads it alone gains
        nothing by running ahead of what it has sent.
        """
        senders = self.heeded(timeline.name, among)
        if timeline.many and not any(self._heard(number, chosen).any() for number in timeline.cohorts.values()):
            silent = self.timeout_us is not None and now_us - timeline.since_us >= self.timeout_us
            return Standing(self._said_of_unheard(timeline, now_us), silent, heard_us=timeline.since_us)
        cohorts = timeline.cohorts.values()
        least = [found for number in cohorts if (found := self._least(number, now_us, senders, chosen)) is not None]
        if not least:
            return Standing(self._promised(timeline, now_us, senders, chosen), silent=True)
        speaking = sum(speaking for *_, speaking in least)
        expected = [found for number in cohorts if (found := self._expected(number, now_us, senders, chosen)) is not None]
        complete, number, member, _ = min([*least, *expected])
        heard_us = int(self.generator.cohorts[number].heard_us[member])
        known = complete if complete > NEVER // 2 else None
        return Standing(known, False, number, member, heard_us if heard_us > NEVER else None, speaking)

    def heeded(self, stream: str, among: Collection[str]) -> set[int] | None:
        """The cohorts whose tuples count for the stream; None: all."""
        if not self.estimated(stream):
            return None
        return {number for name in (stream, *among) for number in self.timelines[name].cohorts.values()}

    def _said_of_unheard(self, timeline: Timeline, now_us: int) -> Tick | None:
        """What other streams' tuples say about the sources of a stream of which none has spoken yet, by what is declared."""
        found = []
        for kind in timeline.all_kinds():
            said = [NEVER]
            for number, cohort in self.generator.cohorts.items():
                other = self.owner(number)
                comparable = other.stream.domain is timeline.stream.domain
                bounds = arriving(kind.after(other.kind(number), self.declarations), kind.latency_us(self.declarations))
                for bound in bounds if comparable else ():
                    if not bound.tuples:
                        cohort.maxima.horizon_us = max(cohort.maxima.horizon_us, bound.after_us)
                        said.append(cohort.maxima.ago(bound.after_us, now_us).largest - bound.within)
            found.append(max(said))
        return min(found) if min(found) > NEVER // 2 else None

    def _least(
        self, number: int, now_us: int, senders: set[int] | None, chosen: Members | None
    ) -> tuple[Tick, int, int, int] | None:
        """The source of a cohort that is complete least far, among those that speak: how far, where, and how many speak."""
        cohort = self.generator.cohorts[number]
        promised = self.generator.promised(number, now_us, senders)
        heard_us = cohort.heard_us[: cohort.size]
        speaking = heard_us > (NEVER if self.timeout_us is None else now_us - self.timeout_us)
        speaking &= chosen[number] if chosen is not None else True
        if not speaking.any():
            return None
        member = int(np.argmin(np.where(speaking, promised, UNLIMITED)))
        return int(promised[member]), number, member, int(speaking.sum())

    def _heard(self, number: int, chosen: Members | None = None) -> NDArray[np.bool_]:
        """Which sources of a cohort, or of those chosen, have ever spoken."""
        cohort = self.generator.cohorts[number]
        heard: NDArray[np.bool_] = cohort.heard_us[: cohort.size] > NEVER
        return heard if chosen is None else heard & chosen[number]

    def _expected(
        self, number: int, now_us: int, senders: set[int] | None, chosen: Members | None
    ) -> tuple[Tick, int, int, int] | None:
        """The same among the sources that have not spoken yet, if others say how far they are: no more can be asked of them."""
        promised = self.generator.promised(number, now_us, senders)
        expected = ~self._heard(number) & (promised > NEVER // 2)
        expected &= chosen[number] if chosen is not None else True
        if not expected.any():
            return None
        member = int(np.argmin(np.where(expected, promised, UNLIMITED)))
        return int(promised[member]), number, member, 0

    def _promised(self, timeline: Timeline, now_us: int, senders: set[int] | None, chosen: Members | None) -> Tick | None:
        """What all sources that have ever spoken promised, silent or not."""
        cohorts = timeline.cohorts.values()
        each = [self.generator.promised(number, now_us, senders)[self._heard(number, chosen)] for number in cohorts]
        least = int(np.concatenate(each).min(initial=UNLIMITED)) if each else NEVER
        return least if least > NEVER // 2 else None

    def silent(self, stream: str, now_us: int) -> bool:
        """Whether nothing came from any source of the stream for the timeout."""
        return self.standing(stream, now_us).silent

    def heartbeat(
        self, streams: Iterable[str], now_us: int, answers: Mapping[str, Tick] | None = None, scopes: Scopes | None = None
    ) -> Tick | None:
        """The instant up to which all of these streams are complete; None while that is unknown.

        Silent streams follow the slowest that is not; if one of those, or the clock, is declared to say how far they are, no
        further than that. If all are silent or finished, everything that came is complete. `answers` are what the clock would say
        of some of them, if it were asked; `scopes` are the sources that the reader can see.
        """
        answers, scopes = answers or {}, scopes or {}
        if self.asked_us is None:
            self.asked_us = now_us
            for timeline in self.timelines.values():
                self._never_spoke(timeline, now_us)
        inputs = {name: self.timelines[name] for name in map(base, streams)}
        going_on = [name for name, line in inputs.items() if not line.finished]
        standings = {name: self.standing(name, now_us, inputs, answers.get(name), scopes.get(name)) for name in going_on}
        standings = {name: standing for name, standing in standings.items() if standing.complete != UNLIMITED}
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

    def counting(self, standings: Mapping[str, Standing]) -> list[str]:
        """Which of the streams that are read together hold the others back: not the silent ones, unless they are spoken for."""
        going_on = {name for name, standing in standings.items() if not standing.silent}
        return [name for name in standings if name in going_on or self._spoken_for(name, going_on, standings[name])]

    def _spoken_for(self, stream: str, others: Iterable[str], standing: Standing) -> bool:
        """Whether others that speak, or the clock, were declared to say how far a silent stream is: that is true, and silence
        only a guess."""
        if self.clock_speaks_of(stream):
            return True
        told = standing.complete is not None and not self.estimated(stream)
        return told and any(self.between_streams(other, stream) for other in others)

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
        """What arrives with a timestamp up to here is late: in general, and of sources for which that is another instant."""
        return self.timelines[stream].limits()

    def first_open(self, stream: str) -> Tick:
        """The first instant at which something can still happen on the stream."""
        timeline = self.timelines[stream]
        if timeline.given is not None:
            return timeline.given + 1
        origin = (timeline.stream.domain or TimeDomain.INTEGER).origin
        return origin if timeline.largest is None else timeline.largest

    def ahead_of(self, stream: str, date_us: int | None) -> Tick | None:
        """Timestamps beyond this are taken for mistakes. Without a calendar, time is measured from what the stream has sent."""
        timeline = self.timelines[stream]
        wanted = timeline.stream.ahead if isinstance(timeline.stream, Stream) else None
        if not timeline.external or timeline.finished or wanted == UNLIMITED:
            return None
        if timeline.stream.domain is TimeDomain.TIMESTAMP:
            if date_us is None and wanted is None:
                return None
            known = [instant for instant in (date_us, timeline.largest) if instant is not None]
            return max(known) + (AHEAD_US if wanted is None else wanted) if known else None
        return None if timeline.largest is None else timeline.largest + (AHEAD_UNITS if wanted is None else wanted)

    def references(self, stream: str) -> Tick | None:
        """The largest timestamp that came on the stream, late ones included."""
        return self.timelines[stream].largest

    def wants_sample(self, stream: str) -> bool:
        """Whether the distribution of timestamps in a batch is of use."""
        return self.estimated(stream) and self._how(stream).confidence is not None

    def without_progress(self, streams: Iterable[str]) -> str | None:
        """Between whom a bound is missing, so that tuples can wait for ever once all pause; None if none is (Theorem 3.3).

        Only what was declared counts: an estimate is no promise.
        """
        inputs = [self.timelines[name] for name in dict.fromkeys(map(base, streams))]
        found = [(line, kind) for line in inputs if line.external and not line.finished for kind in line.all_kinds()]
        waited_for = [(line, kind) for line, kind in found if not self.follows_clock(line.name)]
        entries: dict[tuple[Kind, Kind | None], Bounds] = {(kind, None): kind.own(self.declarations) for _, kind in waited_for}
        for _, sender in found:
            for line, kind in waited_for:
                if kind != sender or (line.many and not kind.alone):
                    entries[kind, sender] = kind.after(sender, self.declarations)
        pair = without_progress(entries)
        if pair is None:
            return None
        kind, other = pair
        if other is None:
            return f"{kind} with itself"
        return f"{other} to {kind}" if other != kind else f"one source of {kind} to another"


def progress(catalog: Catalog, streams: Iterable[str]) -> str:
    """Whether a query over these streams needs a timeout, by what is declared, in words."""
    heartbeats = Heartbeats(catalog.declarations)
    known: list[Stream | Relation] = [*catalog.streams.values(), *catalog.relations.values()]
    for stream in known:
        heartbeats.add(stream, now_us=0)
    read = list(map(base, streams))
    missing = heartbeats.without_progress(read)
    if missing is None:
        clock = ", or the clock does" if any(map(heartbeats.follows_clock, read)) else ""
        return f"needs no timeout: every source's tuples say in the end how far each source is{clock}"
    timeout_us = catalog.settings.timeout_us
    length = f"{timeout_us / 1e6:g} s" if timeout_us is not None else "none is set"
    return f"needs a timeout ({length}) once all sources pause: no bound within 0 is declared from {missing}"


def base(stream: str) -> str:
    """The stream whose heartbeats count for this one: of `late(s)`, s."""
    return stream[len(LATE) : -1] if stream.startswith(LATE) else stream


def _larger(first: Tick | None, second: Tick | None) -> Tick | None:
    return max((instant for instant in (first, second) if instant is not None), default=None)
