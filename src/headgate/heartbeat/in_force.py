"""The bounds in force, for people to read: between whom, since what, and the line of CQL that would declare them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headgate.catalog.declarations import Enabling, Party
from headgate.catalog.skew import Bound, Bounds
from headgate.heartbeat.estimate import STEADY, STEADY_BATCHES
from headgate.heartbeat.groups import Kind
from headgate.heartbeat.manager import Heartbeats
from headgate.heartbeat.timeline import Timeline
from headgate.sql import literal, name
from headgate.ticks import MICROSECONDS_PER_UNIT, Tick, TimeDomain

CLOCK = "the clock"
HEADINGS = ("from", "to", "bounds", "because", "declared by")


@dataclass(frozen=True, slots=True)
class InForce:
    sender: Kind
    receiver: Kind
    bounds: Bounds
    because: str
    domain: TimeDomain
    others: bool = False
    """Whether they are about different sources, which may be of one kind."""

    @property
    def cql(self) -> str:
        """The line that would declare them; nothing if they are about sources that have no name together."""
        sender, receiver = self.sender.party, self.receiver.party
        if not self.bounds or sender is None or receiver is None:
            return ""
        if self.others:
            return f"SKEW FROM {named(sender)} TO {named(receiver)} {pairs(self.bounds, self.domain)};"
        return f"DISORDER OF {named(sender)} {disorder(self.bounds, self.domain)};"

    def row(self) -> tuple[str, ...]:
        bounds = ", ".join(written(bound, self.domain).lower() for bound in self.bounds) or "none"
        if not self.others and len(self.bounds) == 1 and self.bounds[0].within and not self.bounds[0].delay:
            behind = disorder(self.bounds, self.domain).lower()
            bounds = "in order" if behind == "0" else f"up to {behind} behind"
        receiver = f"others of {self.receiver}" if self.others and self.sender == self.receiver else str(self.receiver)
        return str(self.sender), receiver, bounds, self.because, self.cql


def in_force(heartbeats: Heartbeats) -> Iterator[InForce]:
    """What is known of every pair, pairs of which nothing is known left out."""
    lines = [line for line in heartbeats.timelines.values() if line.stream.domain is not None and line.external]
    for line in lines:
        for kind in line.all_kinds():
            yield from _own(heartbeats, line, kind)
            for other in lines:
                if other.stream.domain is line.stream.domain:
                    for sender in other.all_kinds():
                        yield from _between(heartbeats, other, sender, line, kind)


def latencies(heartbeats: Heartbeats) -> Iterator[tuple[str, ...]]:
    for party, us in heartbeats.declarations.latencies_us.items():
        yield "", str(party), f"latency up to {span(us, TimeDomain.TIMESTAMP).lower()}", "declared", _latency(party, us)


def clocks(heartbeats: Heartbeats) -> Iterator[tuple[str, ...]]:
    """Of which streams the clock says how far they are, and when."""
    for line in heartbeats.timelines.values():
        domain, enabling = line.stream.domain, heartbeats.declarations.enabling(line.name)
        because = "declared" if {line.name, None} & heartbeats.declarations.enablings.keys() else "default"
        if domain is TimeDomain.TIMESTAMP and not line.external:
            yield CLOCK, line.name, when(enabling), because, beating(line.name, enabling, domain)
        elif domain is not None and enabling.within is not None:
            bounds = (
                f"{when(enabling)}, within {span(enabling.within, domain).lower()} of its largest timestamp and "
                "the time since"
            )
            yield CLOCK, line.name, bounds, because, beating(line.name, enabling, domain)
        if domain is not None and (known := heartbeats.declarations.calendar.get(line.name)):
            bounds = f"{when(enabling)}, {', '.join(written(bound, domain).lower() for bound in known)}"
            yield CLOCK, line.name, bounds, "declared", f"SKEW FROM CLOCK TO {name(line.name)} {pairs(known, domain)};"


def when(enabling: Enabling) -> str:
    """When the clock says how far a stream is."""
    return f"every {span(enabling.every_us, TimeDomain.TIMESTAMP).lower()}" if enabling.how == "every" else enabling.how


def beating(stream: str, enabling: Enabling, domain: TimeDomain) -> str:
    """The line of CQL that says so."""
    within = "" if enabling.within is None else f" WITHIN {span(enabling.within, domain)}"
    return f"HEARTBEAT OF {name(stream)} {when(enabling).upper()}{within};"


def _latency(party: Party, us: int) -> str:
    return f"LATENCY OF {named(party)} {span(us, TimeDomain.TIMESTAMP)};"


def _own(heartbeats: Heartbeats, line: Timeline, kind: Kind) -> Iterator[InForce]:
    domain = _domain(line)
    declared = kind.own(heartbeats.declarations)
    if declared:
        yield InForce(kind, kind, declared, _declared(kind), domain)
    number = line.cohorts.get(kind)
    if heartbeats.estimated(line.name):
        learnt = heartbeats.learnt(number, None) if number is not None else ()
        yield InForce(kind, kind, learnt, _estimated(heartbeats, line, number, None), domain)
    elif not declared and not heartbeats.declarations.about(line.name):
        yield InForce(kind, kind, (Bound(1),), "default", domain)
    elif not declared:
        yield InForce(kind, kind, (), "nothing declared", domain)


def _between(heartbeats: Heartbeats, other: Timeline, sender: Kind, line: Timeline, kind: Kind) -> Iterator[InForce]:
    if sender == kind and (not line.many or kind.alone):
        return
    declared = kind.after(sender, heartbeats.declarations)
    if declared:
        yield InForce(sender, kind, declared, _declared(kind), _domain(line), True)
    first, number = other.cohorts.get(sender), line.cohorts.get(kind)
    if first is not None and number is not None and heartbeats.estimated(line.name):
        learnt = heartbeats.learnt(number, first)
        yield InForce(sender, kind, learnt, _estimated(heartbeats, line, number, first), _domain(line), True)


def _declared(kind: Kind) -> str:
    if kind.sensor is not None:
        return f"declared, environment sensors with deviation {kind.sensor.deviation}"
    return "declared, environment global_counter" if kind.counter is not None else "declared"


def _estimated(heartbeats: Heartbeats, line: Timeline, number: int | None, sender: int | None) -> str:
    estimator = heartbeats.estimators.get(number) if number is not None else None
    if estimator is None or sender not in estimator.senders:
        return "estimated, nothing seen yet"
    row = estimator.senders[sender]
    steady = int(estimator.steady[row].max())
    late = f", {int(line.late.sum())} of {line.tuples} tuples late"
    if estimator.how.confidence is not None:
        return f"estimated with confidence {estimator.how.confidence:g}{late}"
    if sender is not None and not any(estimator.is_steady(row, column) for column in range(len(estimator.delays_us))):
        return f"estimated, kept by {steady} tuples so far: counts from {STEADY} in {STEADY_BATCHES} batches on"
    return f"estimated, kept by the last {steady} tuples{late}"


def _domain(line: Timeline) -> TimeDomain:
    return line.stream.domain or TimeDomain.INTEGER


def named(party: Party) -> str:
    """A stream or source as CQL names it."""
    return name(party.stream) if party.source is None else f"{name(party.stream)} SOURCE {literal(party.source)}"


def disorder(bounds: Bounds, domain: TimeDomain) -> str:
    """Bounds of a source with itself in CQL: one without a delay is how far a tuple may be behind."""
    if len(bounds) == 1 and not bounds[0].delay and bounds[0].within:
        return span(bounds[0].within - 1, domain)
    return pairs(bounds, domain)


def pairs(bounds: Iterable[Bound], domain: TimeDomain) -> str:
    """A set of bounds in CQL."""
    return ", ".join(f"({written(bound, domain)})" for bound in bounds)


def written(bound: Bound, domain: TimeDomain) -> str:
    """A bound in CQL."""
    within = f"WITHIN {span(bound.within, domain)}"
    if bound.tuples:
        return f"AFTER {bound.tuples} TUPLES {within}"
    return f"AFTER {span(bound.after_us, TimeDomain.TIMESTAMP)} {within}" if bound.after_us else within


def span(ticks: Tick, domain: TimeDomain) -> str:
    """A length of time in CQL, in the largest unit in which it is whole."""
    if domain is not TimeDomain.TIMESTAMP or not ticks:
        return str(ticks)
    unit, size = next((u, n) for u, n in reversed(MICROSECONDS_PER_UNIT.items()) if ticks % n == 0 and u != "WEEK")
    return f"{ticks // size} {unit}{'' if ticks == size else 'S'}"


def all_rows(heartbeats: Heartbeats) -> tuple[tuple[str, ...], ...]:
    """What SHOW BOUNDS answers under its headings."""
    grouped = [
        ("", line.name, str(line.partition), "grouped", f"GROUPS OF {name(line.name)} {asked};")
        for line in heartbeats.timelines.values()
        if line.partition is not None and (asked := heartbeats.declarations.groupings[line.name].count)
    ]
    known = [one.row() for one in in_force(heartbeats)]
    return (*known, *clocks(heartbeats), *latencies(heartbeats), *grouped)
