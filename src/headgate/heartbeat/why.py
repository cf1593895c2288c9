"""Why a query has come no further: which source holds it back, since when, by which bound, and what would release it.

A query is released when the first tuple that is known to wait is answered. What would release it is not guessed:
waiting is tried on the heartbeats as they will be, everything else on a copy of the time manager. What does not help
there is not said."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from headgate.catalog.declarations import Party
from headgate.catalog.skew import Bound, Bounds
from headgate.heartbeat.arrivals import NEVER, of_rows
from headgate.heartbeat.enabling import last_beat_us
from headgate.heartbeat.in_force import span, when
from headgate.heartbeat.manager import Heartbeats, Standing, base
from headgate.heartbeat.timeline import Timeline
from headgate.scope import EVERYTHING, Scope, Scopes
from headgate.ticks import UNLIMITED, Tick, TimeDomain

UNREAD_US = 1_000_000
"""A source that lags by more than this is told of."""

FOREVER_US = 10**17
"""What has not taken effect after so long never does: three thousand years."""

LISTED = 3
"""So many sources that hold a query back together are named."""


@dataclass(frozen=True, slots=True)
class Input:
    """One stream that a query reads."""

    stream: str
    complete: str
    state: str
    """speaking, silent, finished, paused, ..., and of how many sources."""

    waiting: int
    """How many tuples it has sent that the query has not seen; those of other sources included, where it does not see
    all.
    """

    of: str = ""
    """The groups for which the query waits, where these are not all sources."""


@dataclass(frozen=True, slots=True, repr=False)
class Why:
    query: str
    complete: str
    """Up to when its answers are."""

    held_by: str
    """The stream, and the source of it where it has many; nothing if nothing waits."""

    since_s: float | None
    cause: str
    releases: tuple[str, ...]
    inputs: tuple[Input, ...]
    groups: Mapping[str, str] = field(default_factory=dict)
    """Of a query that runs by groups of sources: up to when the answers of each are complete."""

    def __str__(self) -> str:
        lines = [f'query "{self.query}" is complete up to {self.complete}']
        if self.held_by:
            since = "" if self.since_s is None else f", last heard of {self.since_s:.1f} s ago"
            lines += [f"held back by {self.held_by}{since}", f"  because {self.cause}"]
            lines += [
                f"  {'released by' if number == 0 else 'or by      '} {one}" for number, one in enumerate(self.releases)
            ]
        else:
            lines.append("nothing holds it back")
        width = max((len(one.stream) for one in self.inputs), default=0)
        for one in self.inputs:
            waits = f", {'up to ' if one.of else ''}{one.waiting} tuples wait" if one.waiting else ""
            lines.append(f"  {one.stream:<{width}}  complete up to {one.complete}, {one.state}{waits}")
        lines += [f"  group {group}: complete up to {upto}" for group, upto in self.groups.items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        held = f"held back by {self.held_by}" if self.held_by else "not held back"
        return f"Why({self.query}: complete up to {self.complete}, {held})"

    def _repr_html_(self) -> str:
        return f"<pre>{self}</pre>"


def why(
    heartbeats: Heartbeats,
    query: str,
    streams: Iterable[str],
    reached: Tick | None,
    waiting: Mapping[str, int],
    now_us: int,
    scopes: Scopes | None = None,
) -> Why:
    """The reason in full. `reached` is how far the query is, `waiting` how many tuples of each stream lie beyond that.

    `scopes` are the sources that the query, or the part of it that is least far, can see.
    """
    scopes = scopes or {}
    names = list(dict.fromkeys(map(base, streams)))
    lines = [heartbeats.timelines[name] for name in names]
    domain = next((line.stream.domain for line in lines if line.stream.domain is not None), TimeDomain.INTEGER)
    standings = {
        line.name: heartbeats.standing(line.name, now_us, names, scope=scopes.get(line.name)) for line in lines
    }
    inputs = tuple(
        _input(heartbeats, line, standings[line.name], waiting.get(line.name, 0), domain, scopes.get(line.name))
        for line in lines
    )
    complete = instant(reached, domain)
    held = _held(heartbeats, names, now_us, scopes) if any(waiting.values()) else None
    holder = held.holder() if held is not None else None
    if held is None or holder is None:
        return Why(query, complete, "", None, "", (), inputs)
    standing = standings[holder.name]
    since_s = None if standing.heard_us is None else (now_us - standing.heard_us) / 1e6
    cause = _cause(heartbeats, holder, standing, names, domain, now_us)
    found = tuple(release.text for release in releases(held))
    return Why(query, complete, _called(holder, standing) + _group(holder, standing), since_s, cause, found, inputs)


@dataclass(frozen=True, slots=True)
class Held:
    """A query that waits for the heartbeat of some streams to reach an instant."""

    heartbeats: Heartbeats
    names: Sequence[str]
    goal: Tick
    now_us: int
    standings: Mapping[str, Standing]
    scopes: Scopes
    """The sources that it can see."""

    @property
    def lines(self) -> list[Timeline]:
        return [self.heartbeats.timelines[name] for name in self.names]

    @property
    def domain(self) -> TimeDomain:
        return next((line.stream.domain for line in self.lines if line.stream.domain is not None), TimeDomain.INTEGER)

    def behind(self) -> list[str]:
        """The streams that are not complete up to there: of those that count, or of all by what was given out, if those
        are fewer."""
        counting = [
            name for name in self.heartbeats.counting(self.standings) if self._short(self.standings[name].complete)
        ]
        given = {name: self.heartbeats.limit(name, self.scopes.get(name)) for name in self.standings}
        every = [name for name, one in self.standings.items() if self._short(one.complete) and self._short(given[name])]
        return counting if len(counting) <= len(every) else every

    def holder(self) -> Timeline | None:
        """The stream that is complete least far."""
        known = {name: NEVER if (found := self.standings[name].complete) is None else found for name in self.behind()}
        return self.heartbeats.timelines[min(known, key=lambda name: known[name])] if known else None

    def _short(self, complete: Tick | None) -> bool:
        return complete is None or complete < self.goal

    def released(
        self,
        at_us: int,
        silent_us: int | None = None,
        answers: Mapping[str, Tick] | None = None,
        by: Heartbeats | None = None,
    ) -> bool:
        """Whether it is at an instant, if nothing comes until then; `by` is a copy in which something was tried."""
        heartbeats = self.heartbeats if by is None else by
        reached = heartbeats.foretold(
            self.names, at_us, at_us if silent_us is None else silent_us, answers, self.scopes
        )
        return reached is not None and reached >= self.goal

    def first(self, released: Callable[[int], bool]) -> int | None:
        """The first instant from now on at which it is released; from then on it stays so."""
        if released(self.now_us):
            return self.now_us
        before_us, after_us = self.now_us, self.now_us + FOREVER_US
        if not released(after_us):
            return None
        while after_us - before_us > 1:
            middle_us = (before_us + after_us) // 2
            before_us, after_us = (before_us, middle_us) if released(middle_us) else (middle_us, after_us)
        return after_us

    def answers(self, at_us: int) -> dict[str, Tick]:
        """What the clock will have been asked by then, if all that is there has been read."""
        found = {}
        for name in self.names:
            enabling = self.heartbeats.declarations.enabling(name)
            asked_us = last_beat_us(at_us, enabling.every_us) if enabling.how == "every" else at_us
            answer = self.heartbeats.answer(name, asked_us) if enabling.how != "none" else None
            if answer is not None:
                found[name] = answer
        return found


@dataclass(frozen=True, slots=True)
class Release:
    """What would release a query: an instant, if nothing comes until then; tuples; or a statement."""

    text: str
    at_us: int | None = None
    tuples: tuple[tuple[str, Any, Tick | None], ...] = ()
    """Of which stream and source, stamped when; None: whenever."""

    statement: str = ""


def _held(heartbeats: Heartbeats, names: Sequence[str], now_us: int, scopes: Scopes) -> Held | None:
    """What the query waits for; None if it waits for nothing but its turn."""
    reached = heartbeats.foretold(names, now_us, now_us, scopes=scopes)
    largest: list[int] = []
    for line in (heartbeats.timelines[name] for name in names):
        seen = line.members(scopes.get(line.name), heartbeats.generator)
        largest += [line.largest] if line.largest is not None and seen is None else []
        for number in line.cohorts.values():
            cohort = heartbeats.generator.cohorts[number]
            sent = cohort.largest[: cohort.size] if seen is None else cohort.largest[: cohort.size][seen[number]]
            sent = sent[sent > (NEVER if reached is None else reached)]
            largest += [int(sent.min())] if len(sent) else []
    beyond = [tick for tick in largest if reached is None or tick > reached]
    if largest and not beyond:
        return None
    goal = min(beyond) if beyond else NEVER // 2 + 1 if reached is None else reached + 1
    return Held(heartbeats, names, goal, now_us, heartbeats.standings(names, now_us, now_us, {}, scopes), scopes)


def _called(line: Timeline, standing: Standing) -> str:
    if not line.many or standing.cohort is None or standing.member is None:
        return line.name
    kind = line.kind(standing.cohort)
    source = line.source(standing.cohort, standing.member)
    if source is None:
        return str(kind)
    among = f"one of {standing.speaking} that speak" if standing.heard_us is not None else "which has not spoken yet"
    return f"{line.name} SOURCE '{source}' ({among})"


def _group(line: Timeline, standing: Standing) -> str:
    """The group of the source that holds a query back."""
    if standing.cohort is None or standing.member is None:
        return "" if standing.of is None or standing.of == EVERYTHING else f", of {standing.of}"
    source = line.source(standing.cohort, standing.member)
    if line.groups is None or source is None:
        return ""
    return f", of group {next(group for group in line.groups.scopes() if source in group)}"


def _input(
    heartbeats: Heartbeats, line: Timeline, standing: Standing, waiting: int, domain: TimeDomain, scope: Scope | None
) -> Input:
    if line.finished:
        state = "finished" if line.stream.domain is not None else "fixed"
    elif line.paused:
        state = "paused"
    elif not line.external:
        state = "stamped by the engine"
    elif not line.tuples:
        state = "silent, nothing ever came" if standing.silent else "nothing came yet"
    else:
        state = "silent" if standing.silent else "speaking"
        if line.many:
            forgotten = f", {line.forgotten} forgotten" if line.forgotten else ""
            state += f" ({standing.speaking} of {len(line.sources)} sources{forgotten})"
    if not line.finished and _by_clock(heartbeats, line):
        state += f", heartbeat from the clock {when(heartbeats.declarations.enabling(line.name))}"
    if line.late_given_up:
        state += f", {line.late_given_up} tuples late because the TIMEOUT had given up their source"
    known = [tick for tick in (standing.complete, line.limit(scope)) if tick is not None]
    complete = "the end" if line.finished else instant(max(known, default=None), domain)
    waited_for = line.waited_for(scope)
    of = "" if waited_for is None or waited_for == EVERYTHING else str(waited_for)
    return Input(line.name, complete, f"{state}, waited for {of}" if of else state, waiting, of)


def _by_clock(heartbeats: Heartbeats, line: Timeline) -> bool:
    """Whether the clock says how far the stream is, unless HEARTBEAT NONE forbids it."""
    stamped = not line.external and line.stream.domain is TimeDomain.TIMESTAMP
    return stamped or heartbeats.declarations.by_clock(line.name)


def _cause(
    heartbeats: Heartbeats, line: Timeline, standing: Standing, names: Collection[str], domain: TimeDomain, now_us: int
) -> str:
    if line.paused:
        return "it is paused: what it sends meanwhile is not read, and must not be late"
    if by_clock := _cause_by_clock(heartbeats, line, standing, domain, now_us):
        return by_clock
    if standing.silent:
        others = [name for name in names if name != line.name and not heartbeats.timelines[name].finished]
        if any(not heartbeats.silent(name, now_us) for name in others):
            return "it is silent, and what others' tuples are declared to say of it goes no further"
        return "all streams are silent"
    if not line.external:
        return "the engine stamps it, and has not gone on since"
    if line.forgotten and standing.cohort is None and standing.complete is not None:
        return (
            "a source of it that has long been silent may still send, and what others are declared to say of it "
            "goes no further"
        )
    if standing.cohort is None or standing.member is None:
        if standing.complete is None:
            return "nothing ever came from it, and no SKEW to it is declared that another stream's tuples could use"
        return "nothing ever came from it, and other streams' tuples say no more of it"
    if standing.heard_us is None and standing.complete is None:
        return "it was named and has not spoken yet, and no SKEW to it is declared that others' tuples could use"
    said = int(heartbeats.generator.cohorts[standing.cohort].punctuations.at(now_us)[standing.member])
    if said > NEVER and said == standing.complete:
        return f"it said itself that nothing up to {instant(said, domain)} will still come, and nothing beyond"
    if not line.tuples and standing.complete is None:
        return "nothing ever came from it, and no SKEW to it is declared that another stream's tuples could use"
    if heartbeats.settling(line, now_us, standing.of):
        return "it has just begun: sources of it that were not heard of yet may be behind those that were"
    senders = heartbeats.heeded(line.name, names)
    if _away(heartbeats, standing.cohort, standing.member, standing.complete, senders, now_us):
        return (
            "it has been silent for longer than usual: it may be behind, and what was learnt about it from others' "
            "tuples "
            "does not count meanwhile"
        )
    found = _strongest(heartbeats, standing.cohort, standing.member, senders, now_us)
    if found is None:
        if heartbeats.declarations.about(line.name):
            return f"no bound says anything about it: neither DISORDER OF {line.name} nor a SKEW TO it is declared"
        return "too little came from it yet"
    sender, bound, origin = found
    stamped = instant((standing.complete or 0) + bound.within, domain)
    who = "its" if sender is None else f"{sender}'s"
    return (
        f"{who} last tuple that counts is stamped {stamped}, and {_still(bound, sender, domain)} "
        f"({origin}{_delay(bound)})"
    )


def _cause_by_clock(heartbeats: Heartbeats, line: Timeline, standing: Standing, domain: TimeDomain, now_us: int) -> str:
    """Why the clock has not said more of a stream; nothing if more was known without it."""
    if not _by_clock(heartbeats, line):
        return ""
    enabling = heartbeats.declarations.enabling(line.name)
    stamped = "" if line.external else "the engine stamps it, and "
    if enabling.how == "none":
        more = "a later tuple of it says" if not line.external else "its tuples and others' say"
        return f"{stamped}with HEARTBEAT NONE the clock says nothing of it: only {more} how far it is"
    if not line.external:
        asked = (
            f"was last asked at {instant(line.enabled, domain)}"
            if line.enabled is not None
            else "has not been asked yet"
        )
        return f"{stamped}its heartbeat comes from the clock {when(enabling)}, which {asked}"
    answer = heartbeats.answer(line.name, now_us, line.read_us)
    if answer is None or (standing.complete is not None and standing.complete > answer):
        return ""
    far = []
    if enabling.within is not None:
        far.append(f"within {span(enabling.within, domain).lower()} of its largest timestamp and the time since")
    if line.name in heartbeats.declarations.calendar:
        far.append("behind the date by what SKEW FROM CLOCK says")
    lag = ", and it is not known yet whether everything that it was sent has been read" if line.read_us is None else ""
    if line.read_us is not None and now_us - line.read_us > UNREAD_US:
        lag = f", and what it was sent in the last {(now_us - line.read_us) / 1e6:.1f} s is not known to be read"
    return f"its heartbeat comes from the clock {when(enabling)}, {' or '.join(far)}{lag}"


def _still(bound: Bound, sender: str | None, domain: TimeDomain) -> str:
    """What a bound leaves possible."""
    if bound.within > 1:
        far = f"up to {span(bound.within - 1, domain).lower()} behind"
        return f"tuples {far} it may still come" if sender is None else f"it may be {far}"
    return "tuples of that instant may still come" if bound.within else "nothing up to there can still come"


def _delay(bound: Bound) -> str:
    if not bound.delay:
        return ""
    return (
        f" after {bound.tuples} tuples"
        if bound.tuples
        else f" after {span(bound.after_us, TimeDomain.TIMESTAMP).lower()}"
    )


def _strongest(
    heartbeats: Heartbeats, cohort: int, member: int, senders: Collection[int] | None, now_us: int
) -> tuple[str | None, Bound, str] | None:
    """The bound from which the source's heartbeat follows, from whom, and whether it was declared or estimated."""
    generator = heartbeats.generator
    candidates: list[tuple[int, str | None, Bound, str]] = []
    learnt = heartbeats.learnt(cohort, None)
    for bound in generator.cohorts[cohort].own:
        value = int(generator.by_itself(cohort, bound, now_us)[member])
        candidates.append((value, None, bound, "estimated" if bound in learnt else "declared"))
    for first, bounds in generator.towards[cohort].items():
        for bound in bounds if senders is None or first in senders else ():
            value = int(generator.by_others(first, cohort, bound, now_us)[member])
            candidates.append((value, heartbeats.owner(first).name, bound, "declared"))
    for first, bounds in generator.guessed[cohort].items():
        for bound in bounds if senders is None or first in senders else ():
            value = int(generator.by_others(first, cohort, bound, now_us)[member])
            if value <= int(generator.cohorts[cohort].relied_on()[member]):
                candidates.append((value, heartbeats.owner(first).name, bound, "estimated"))
    best = max(candidates, key=lambda one: one[0], default=None)
    return None if best is None or best[0] < NEVER // 2 else best[1:]


def _away(
    heartbeats: Heartbeats,
    number: int,
    member: int,
    complete: Tick | None,
    senders: Collection[int] | None,
    now_us: int,
) -> bool:
    """Whether what was learnt from others would let a source go further, if it had not been silent for so long."""
    generator = heartbeats.generator
    heard = [
        (first, bounds) for first, bounds in generator.guessed[number].items() if senders is None or first in senders
    ]
    said = [
        int(generator.by_others(first, number, bound, now_us)[member]) for first, bounds in heard for bound in bounds
    ]
    return complete is not None and max(said, default=NEVER) > complete


def releases(held: Held) -> list[Release]:
    """All that is known to help."""
    holder = held.holder()
    if holder is None:
        return []
    if holder.paused:
        return _read_again(held, holder)
    return [*_by_waiting(held, holder), *_by_tuples(held), *_by_statements(held, holder)]


def _read_again(held: Held, holder: Timeline) -> list[Release]:
    trial = held.heartbeats.fork()
    trial.resume(holder.name, held.now_us)
    if held.released(held.now_us, by=trial):
        return [Release("reading it again")]
    then = replace(
        held, heartbeats=trial, standings=trial.standings(held.names, held.now_us, held.now_us, {}, held.scopes)
    )
    return [replace(one, text=f"reading it again, and then {one.text}") for one in releases(then)]


def _by_waiting(held: Held, holder: Timeline) -> list[Release]:
    """What comes by itself first; and the clock, if that may be sooner: it is not sure, because it goes by what has
    been read.
    """
    heartbeats, now_us = held.heartbeats, held.now_us
    promise_us = held.first(lambda us: held.released(us, silent_us=now_us))
    alone_us = held.first(held.released)
    clock_us = held.first(lambda us: held.released(us, answers=held.answers(us)))
    found = []
    if clock_us is not None and (alone_us is None or clock_us < alone_us):
        enabling = heartbeats.declarations.enabling(holder.name)
        read = ", if all that is there has been read by then" if holder.external else ""
        if clock_us == now_us:
            text = "the next step" + read
        elif enabling.how == "every" and clock_us == last_beat_us(now_us, enabling.every_us) + enabling.every_us:
            text = f"its next heartbeat, in {_seconds(clock_us - now_us)}{read}"
        else:
            text = f"the clock, in {_seconds(clock_us - now_us)}{read}"
        found.append(Release(text, clock_us))
    if alone_us is not None and alone_us == promise_us:
        found.append(Release(f"a promise that takes effect in {_seconds(alone_us - now_us)}", alone_us))
    elif alone_us is not None:
        found.append(Release(f"the timeout, in {_seconds(alone_us - now_us)} if nothing comes", alone_us))
    return found


def _by_tuples(held: Held) -> list[Release]:
    """Tuples of those that hold it back together, and from which timestamp on."""
    sources = [source for name in held.behind() for source in _holding(held, held.heartbeats.timelines[name])]
    if not sources:
        return []
    engines_own = [name for name, _ in sources if not held.heartbeats.timelines[name].external]
    if engines_own:
        none = held.heartbeats.declarations.enabling(engines_own[0]).how == "none"
        alone = len(sources) == 1 and none and held.released(held.now_us, by=_tried(held, sources, held.goal + 1))
        later = Release(f"a later tuple of {engines_own[0]}", tuples=((engines_own[0], None, held.goal + 1),))
        return [later] if alone else []
    alone_us = held.first(held.released)
    withins = {1, *(bound.within for bounds in _bounds(held, {name for name, _ in sources}) for bound in bounds)}
    stamps = [None, *sorted({held.goal + within for within in withins})]
    for stamp in stamps:
        if stamp is None and any(held.heartbeats.estimated(name) for name, _ in sources):
            continue
        effect_us = _effect(held, sources, stamp)
        if effect_us is not None and (alone_us is None or effect_us < alone_us):
            stamp = None if stamp is None else _smallest(held, sources, stamp, effect_us)
            return [_said(held, sources, stamp, effect_us)]
    return []


def _holding(held: Held, line: Timeline) -> list[tuple[str, Any]]:
    """The sources of a stream that are not complete up to the goal and count."""
    if not line.many:
        return [(line.name, None)]
    found = held.heartbeats.holding(line, held.goal, held.names, held.now_us, held.standings[line.name].of)
    return [(line.name, source) for source in found]


def _bounds(held: Held, names: Collection[str]) -> Iterator[Bounds]:
    """All bounds from sources of these streams, to themselves or to anybody."""
    heartbeats = held.heartbeats
    for line in (heartbeats.timelines[name] for name in names):
        yield from (kind.own(heartbeats.declarations) for kind in line.all_kinds())
        for number in line.cohorts.values():
            yield heartbeats.generator.cohorts[number].own
            yield from (bounds.get(number, ()) for bounds in heartbeats.generator.towards.values())


def _tried(held: Held, sources: Iterable[tuple[str, Any]], stamp: Tick) -> Heartbeats:
    """A copy in which a tuple of each of the sources came just now."""
    trial = held.heartbeats.fork()
    of_stream: dict[str, list[Any]] = {}
    for name, source in sources:
        of_stream.setdefault(name, []).append(source)
    for name, those in of_stream.items():
        trial.arrived(name, of_rows(those, np.arange(len(those)), np.full(len(those), stamp)), held.now_us)
    return trial


def _effect(held: Held, sources: Sequence[tuple[str, Any]], stamp: Tick | None) -> int | None:
    """When one tuple of each of the sources releases it, all with this timestamp; None if they do not. Without a
    timestamp: with any, so with one that is far behind."""
    far_behind = held.goal - 2**50
    trial = _tried(held, sources, far_behind if stamp is None else stamp)
    return held.first(lambda us: held.released(us, silent_us=held.now_us, by=trial))


def _smallest(held: Held, sources: Sequence[tuple[str, Any]], stamp: Tick, effect_us: int) -> Tick:
    """The smallest timestamp that does as much as soon: where bounds are learnt, the tuple itself can change them."""

    def does(smaller: Tick) -> bool:
        found_us = _effect(held, sources, smaller)
        return found_us is not None and found_us <= effect_us

    step = 1
    while does(stamp - step):
        stamp, step = stamp - step, 2 * step
    while step > 1:
        step //= 2
        stamp = stamp - step if does(stamp - step) else stamp
    return stamp


def _said(held: Held, sources: Sequence[tuple[str, Any]], stamp: Tick | None, effect_us: int) -> Release:
    named = [_source(held.heartbeats.timelines[name], source) for name, source in islice(sources, LISTED)]
    whose = " and ".join(named) if len(sources) <= LISTED else f"{len(sources)} sources, such as {named[0]}"
    what = f"a tuple of {whose}" if len(sources) == 1 else f"a tuple of each of {whose}"
    when = "" if stamp is None else f" stamped {instant(stamp, held.domain)} or later"
    later = "" if effect_us == held.now_us else f", {_seconds(effect_us - held.now_us)} after it came"
    return Release(what + when + later, effect_us, tuple((name, source, stamp) for name, source in sources))


def _source(line: Timeline, source: Any) -> str:
    return line.name if source is None else f"{line.name} SOURCE '{source}'"


def _by_statements(held: Held, holder: Timeline) -> list[Release]:
    """What could be declared, if it is true."""
    heartbeats, now_us, found = held.heartbeats, held.now_us, []
    if heartbeats.timeout_us is None:
        trial = heartbeats.fork()
        trial.timeout_us = 1
        if held.released(now_us + FOREVER_US, by=trial):
            found.append(Release("a TIMEOUT, which is not set", statement="TIMEOUT"))
    senders = [line for line in held.lines if line.external and not line.finished and (line is not holder or line.many)]
    for sender in senders if holder.external else ():
        pair = Party(sender.name), Party(holder.name)
        if pair in heartbeats.declarations.skews or (
            sender is not holder and heartbeats.between_streams(sender.name, holder.name)
        ):
            continue
        trial = heartbeats.fork()
        trial.declarations.skews[pair] = (Bound(0),)
        trial.heed(now_us)
        if held.released(now_us, by=trial):
            statement = f"SKEW FROM {sender.name} TO {holder.name} (WITHIN ...);"
            found.append(Release(f"a bound, if there is one: {statement}", statement=statement))
    found += _by_the_clock(held, holder)
    return found


def _by_the_clock(held: Held, holder: Timeline) -> list[Release]:
    heartbeats, name = held.heartbeats, holder.name
    enabling = heartbeats.declarations.enabling(name)
    if not held.released(held.now_us, answers=held.answers(held.now_us) | {name: UNLIMITED - 1}):
        return []
    if _by_clock(heartbeats, holder):
        within = " ..." if holder.external else ""
        statement = f"HEARTBEAT OF {name} ON DEMAND{within};"
        known = not holder.external or holder.largest is not None or name in heartbeats.declarations.calendar
        useful = enabling.how == "none" and known
        return [Release(f"the clock: {statement}", statement=statement)] if useful else []
    statement = f"HEARTBEAT OF {name} ON DEMAND WITHIN ...;"
    if holder.largest is None:
        if holder.stream.domain is not TimeDomain.TIMESTAMP or enabling.how == "none":
            return []
        statement = f"SKEW FROM CLOCK TO {name} (WITHIN ...);"
    return [Release(f"the clock, if it says something of it: {statement}", statement=statement)]


def _seconds(us: int) -> str:
    """Rounded up, so that it has happened by then."""
    return f"{-(-us // 100_000) / 10:.1f} s"


def instant(tick: Tick | None, domain: TimeDomain) -> str:
    """A point of time as the user knows it."""
    if tick is None:
        return "no instant yet"
    if tick >= UNLIMITED:
        return "the end"
    try:
        return str(domain.moment(tick))
    except OverflowError:
        return "before the year 1" if tick < 0 else "after the year 9999"
