"""Why a query has come no further: which source holds it back, since when, by which bound, and what would release it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from headgate.catalog import UNLIMITED, Tick, TimeDomain
from headgate.heartbeat.arrivals import NEVER
from headgate.heartbeat.bounds import Bound
from headgate.heartbeat.enabling import last_beat_us
from headgate.heartbeat.in_force import span, when
from headgate.heartbeat.manager import Heartbeats, Standing, base
from headgate.heartbeat.scope import EVERYTHING, Scope, Scopes
from headgate.heartbeat.timeline import Timeline

UNREAD_US = 1_000_000
"""A source that lags by more than this is told of."""


@dataclass(frozen=True, slots=True)
class Input:
    """One stream that a query reads."""

    stream: str
    complete: str
    state: str
    """speaking, silent, finished, paused, ..., and of how many sources."""

    waiting: int
    """How many tuples it has sent that the query has not seen; those of other sources included, where it does not see all."""

    of: str = ""
    """The groups for which the query waits, where these are not all sources."""


@dataclass(frozen=True, slots=True)
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
            lines += [f"  {'released by' if number == 0 else 'or by      '} {one}" for number, one in enumerate(self.releases)]
        else:
            lines.append("nothing holds it back")
        width = max((len(one.stream) for one in self.inputs), default=0)
        for one in self.inputs:
            waits = f", {'up to ' if one.of else ''}{one.waiting} tuples wait" if one.waiting else ""
            lines.append(f"  {one.stream:<{width}}  complete up to {one.complete}, {one.state}{waits}")
        lines += [f"  group {group}: complete up to {upto}" for group, upto in self.groups.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{self}</pre>"


def why(
    heartbeats: Heartbeats, query: str, streams: Iterable[str], reached: Tick | None, waiting: Mapping[str, int], now_us: int,
    scopes: Scopes | None = None,
) -> Why:  # fmt: skip
    """The reason in full. `reached` is how far the query is, `waiting` how many tuples of each stream lie beyond that.

    `scopes` are the sources that the query, or the part of it that is least far, can see.
    """
    scopes = scopes or {}
    names = list(dict.fromkeys(map(base, streams)))
    lines = [heartbeats.timelines[name] for name in names]
    domain = next((line.stream.domain for line in lines if line.stream.domain is not None), TimeDomain.INTEGER)
    standings = {line.name: heartbeats.standing(line.name, now_us, names, scope=scopes.get(line.name)) for line in lines}
    inputs = tuple(
        _input(heartbeats, line, standings[line.name], waiting.get(line.name, 0), domain, scopes.get(line.name)) for line in lines
    )
    holder = _holder(heartbeats, standings)
    complete = instant(reached, domain)
    if holder is None or not any(waiting.values()):
        return Why(query, complete, "", None, "", (), inputs)
    standing = standings[holder.name]
    since_s = None if standing.heard_us is None else (now_us - standing.heard_us) / 1e6
    cause = _cause(heartbeats, holder, standing, names, domain, now_us)
    releases = _releases(heartbeats, lines, holder, standing, domain, now_us)
    return Why(query, complete, _called(holder, standing) + _group(holder, standing), since_s, cause, releases, inputs)


def _holder(heartbeats: Heartbeats, standings: Mapping[str, Standing]) -> Timeline | None:
    """The stream that is complete least far among those that count."""
    going_on = {name: standing for name, standing in standings.items() if not heartbeats.timelines[name].finished}
    chosen = heartbeats.counting(going_on) or going_on
    least = min(chosen, key=lambda name: NEVER if (c := going_on[name].complete) is None else c, default=None)
    return None if least is None else heartbeats.timelines[least]


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
    source = (
        line.source(standing.cohort, standing.member) if standing.cohort is not None and standing.member is not None else None
    )
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
            state += f" ({standing.speaking} of {len(line.sources)} sources)"
    if not line.finished and _by_clock(heartbeats, line):
        state += f", heartbeat from the clock {when(heartbeats.declarations.enabling(line.name))}"
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
    if standing.cohort is None or standing.member is None:
        if standing.complete is None:
            return "nothing ever came from it, and no SKEW to it is declared that another stream's tuples could use"
        return "nothing ever came from it, and other streams' tuples say no more of it"
    said = int(heartbeats.generator.cohorts[standing.cohort].punctuations.at(now_us)[standing.member])
    if said > NEVER and said == standing.complete:
        return f"it said itself that nothing up to {instant(said, domain)} will still come, and nothing beyond"
    if not line.tuples and standing.complete is None:
        return "nothing ever came from it, and no SKEW to it is declared that another stream's tuples could use"
    found = _strongest(heartbeats, standing.cohort, standing.member, heartbeats.heeded(line.name, names), now_us)
    if found is None:
        if heartbeats.declarations.about(line.name):
            return f"no bound says anything about it: neither DISORDER OF {line.name} nor a SKEW TO it is declared"
        return "too little came from it yet"
    sender, bound, origin = found
    stamped = instant((standing.complete or 0) + bound.within, domain)
    who = "its" if sender is None else f"{sender}'s"
    return f"{who} last tuple that counts is stamped {stamped}, and {_still(bound, sender, domain)} ({origin}{_delay(bound)})"


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
        asked = f"was last asked at {instant(line.enabled, domain)}" if line.enabled is not None else "has not been asked yet"
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
    return f" after {bound.tuples} tuples" if bound.tuples else f" after {span(bound.after_us, TimeDomain.TIMESTAMP).lower()}"


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
        learnt = heartbeats.learnt(cohort, first)
        for bound in bounds if senders is None or first in senders else ():
            value = int(generator.by_others(first, cohort, bound, now_us)[member])
            candidates.append((value, heartbeats.owner(first).name, bound, "estimated" if bound in learnt else "declared"))
    best = max(candidates, key=lambda one: one[0], default=None)
    return None if best is None or best[0] < NEVER // 2 else best[1:]


def _releases(
    heartbeats: Heartbeats, lines: list[Timeline], holder: Timeline, standing: Standing, domain: TimeDomain, now_us: int
) -> tuple[str, ...]:
    if holder.paused:
        return ("reading it again",)
    enabling = heartbeats.declarations.enabling(holder.name)
    if not holder.external and enabling.how == "none":
        return f"a later tuple of {holder.name}", f"the clock: HEARTBEAT OF {holder.name} ON DEMAND;"
    next_us = last_beat_us(now_us, enabling.every_us) + enabling.every_us if enabling.how == "every" else now_us
    beat = f"its next heartbeat, in {(next_us - now_us) / 1e6:.1f} s"
    if not holder.external:
        return (beat if enabling.how == "every" else "the next step",)
    found = []
    if heartbeats.follows_clock(holder.name):
        goal = max((line.largest for line in lines if line.largest is not None), default=None)
        if enabling.how == "every":
            found.append(beat)
        elif goal is not None and (answer := heartbeats.answer(holder.name, now_us, holder.read_us)) is not None:
            wait_s = float((goal - answer) * enabling.tick_us) / 1e6
            found.append(f"the clock, in {max(wait_s, 0):.1f} s, if all that is there has been read by then")
    elif heartbeats.declarations.by_clock(holder.name):
        found.append(f"the clock: HEARTBEAT OF {holder.name} ON DEMAND ...;")
    if not standing.silent:
        own = heartbeats.generator.cohorts[standing.cohort].own if standing.cohort is not None else ()
        smallest = min((bound.within for bound in own if not bound.delay), default=None)
        if smallest is not None and standing.complete is not None:
            goal = max((line.largest for line in lines if line.largest is not None), default=standing.complete)
            source = _called(holder, standing).split(" (")[0]
            found.append(f"a tuple of {source} stamped {instant(goal + smallest, domain)} or later")
        else:
            found.append(f"a tuple of {holder.name}")
    due_us = _due(heartbeats, holder, now_us)
    if due_us is not None:
        found.append(f"a promise that takes effect in {(due_us - now_us) / 1e6:.1f} s")
    if heartbeats.clock_speaks_of(holder.name):
        pass  # no timeout passes what is known
    elif heartbeats.timeout_us is None:
        found.append("a TIMEOUT, which is not set")
    elif standing.heard_us is not None and not standing.silent:
        found.append(f"the timeout, in {max(standing.heard_us + heartbeats.timeout_us - now_us, 0) / 1e6:.1f} s if nothing comes")
    others = [line for line in lines if line is not holder and line.external and not line.finished]
    for other in others:
        if not heartbeats.between_streams(other.name, holder.name):
            found.append(f"a bound, if there is one: SKEW FROM {other.name} TO {holder.name} (WITHIN ...);")
    if not heartbeats.declarations.by_clock(holder.name):
        found.append(f"the clock, if it says something of it: HEARTBEAT OF {holder.name} ON DEMAND WITHIN ...;")
    return tuple(found)


def _due(heartbeats: Heartbeats, line: Timeline, now_us: int) -> int | None:
    waiting = [heartbeats.generator.next_change(number, now_us) for number in line.cohorts.values()]
    return min((us for us in waiting if us is not None), default=None)


def instant(tick: Tick | None, domain: TimeDomain) -> str:
    """A point of time as the user knows it."""
    if tick is None:
        return "no instant yet"
    if tick >= UNLIMITED:
        return "the end"
    return str(domain.moment(tick))
