"""The bounds in force, for people to read: between whom, why, and the line of CQL that would declare them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.catalog.skew import Bounds, SkewBound
from headgate.heartbeat.bound_text import beating, disorder, latency, named, pairs, span, when, written
from headgate.heartbeat.estimate import STEADY, STEADY_BATCHES
from headgate.heartbeat.groups import Kind
from headgate.heartbeat.model import TimeModel
from headgate.heartbeat.stream_clock import StreamClock
from headgate.sql import name
from headgate.ticks import TimeDomain

CLOCK = "the clock"
HEADINGS = ("from", "to", "bounds", "because", "declared by")


@dataclass(frozen=True, slots=True)
class InForce:
    """The bounds in force from the sources of one kind to those of another, or of each source with itself."""

    sender: Kind
    receiver: Kind
    bounds: Bounds
    because: str
    domain: TimeDomain
    others: bool = False
    """True if they are between different sources, which may be of one kind; False: of each source with itself."""

    @property
    def cql(self) -> str:
        """The line of CQL that would declare them; empty if the sources have no name together."""
        sender, receiver = self.sender.party, self.receiver.party
        if not self.bounds or sender is None or receiver is None:
            return ""
        if self.others:
            return f"SKEW FROM {named(sender)} TO {named(receiver)} {pairs(self.bounds, self.domain)};"
        return f"DISORDER OF {named(sender)} {disorder(self.bounds, self.domain)};"

    def row(self) -> tuple[str, ...]:
        """The row of SHOW BOUNDS."""
        bounds = ", ".join(written(bound, self.domain).lower() for bound in self.bounds) or "none"
        if not self.others and len(self.bounds) == 1 and self.bounds[0].within and not self.bounds[0].delay:
            behind = disorder(self.bounds, self.domain).lower()
            bounds = "in order" if behind == "0" else f"up to {behind} behind"
        receiver = f"others of {self.receiver}" if self.others and self.sender == self.receiver else str(self.receiver)
        return str(self.sender), receiver, bounds, self.because, self.cql


def in_force(model: TimeModel) -> Iterator[InForce]:
    """The bounds in force of all pairs of kinds. Pairs without any are left out."""
    clocks = [clock for clock in model.clocks if clock.domain is not None and clock.external]
    for clock in clocks:
        for kind in clock.table.all_kinds():
            yield from _own(model, clock, kind)
            for other in clocks:
                if other.domain is clock.domain:
                    for sender in other.table.all_kinds():
                        yield from _between(model, other, sender, clock, kind)


def latencies(model: TimeModel) -> Iterator[tuple[str, ...]]:
    """The rows of declared latencies."""
    for party, us in model.declarations.latencies_us.items():
        yield "", str(party), f"latency up to {span(us, TimeDomain.TIMESTAMP).lower()}", "declared", latency(party, us)


def answers_of_clock(model: TimeModel) -> Iterator[tuple[str, ...]]:
    """The rows of streams of which the engine's clock says how far they are, and when."""
    for clock in model.clocks:
        domain, enabling = clock.domain, model.declarations.enabling(clock.name)
        because = "declared" if {clock.name, None} & model.declarations.enablings.keys() else "default"
        if clock.stamped_by_engine and domain is not None:
            yield CLOCK, clock.name, when(enabling), because, beating(clock.name, enabling, domain)
        elif domain is not None and enabling.within is not None:
            bounds = (
                f"{when(enabling)}, within {span(enabling.within, domain).lower()} of its largest timestamp and "
                "the time since"
            )
            yield CLOCK, clock.name, bounds, because, beating(clock.name, enabling, domain)
        if domain is not None and (known := model.declarations.calendar.get(clock.name)):
            bounds = f"{when(enabling)}, {', '.join(written(bound, domain).lower() for bound in known)}"
            statement = f"SKEW FROM CLOCK TO {name(clock.name)} {pairs(known, domain)};"
            yield CLOCK, clock.name, bounds, "declared", statement


def _own(model: TimeModel, clock: StreamClock, kind: Kind) -> Iterator[InForce]:
    domain = _domain(clock)
    declared = kind.own(model.declarations)
    if declared:
        yield InForce(kind, kind, declared, _declared(kind), domain)
    number = clock.table.cohorts.get(kind)
    if model.clocks.is_estimated(clock.name):
        learnt = model.bindings.learnt(number, None) if number is not None else ()
        yield InForce(kind, kind, learnt, _estimated(model, clock, number, None), domain)
    elif not declared and not model.declarations.about(clock.name):
        yield InForce(kind, kind, (SkewBound(1),), "default", domain)
    elif not declared:
        yield InForce(kind, kind, (), "nothing declared", domain)


def _between(model: TimeModel, other: StreamClock, sender: Kind, clock: StreamClock, kind: Kind) -> Iterator[InForce]:
    if sender == kind and (not clock.many or kind.alone):
        return
    declared = kind.after(sender, model.declarations)
    if declared:
        yield InForce(sender, kind, declared, _declared(kind), _domain(clock), True)
    first, number = other.table.cohorts.get(sender), clock.table.cohorts.get(kind)
    if first is not None and number is not None and model.clocks.is_estimated(clock.name):
        learnt = model.bindings.learnt(number, first)
        yield InForce(sender, kind, learnt, _estimated(model, clock, number, first), _domain(clock), True)


def _declared(kind: Kind) -> str:
    if kind.sensor is not None:
        return f"declared, environment sensors with deviation {kind.sensor.deviation}"
    return "declared, environment global_counter" if kind.counter is not None else "declared"


def _estimated(model: TimeModel, clock: StreamClock, number: int | None, sender: int | None) -> str:
    estimator = model.bindings.estimators.get(number) if number is not None else None
    if estimator is None or sender not in estimator.senders:
        return "estimated, nothing seen yet"
    row = estimator.senders[sender]
    steady = int(estimator.steady[row].max())
    late = f", {int(clock.table.late.sum())} of {clock.tuples} tuples late"
    if estimator.how.confidence is not None:
        return f"estimated with confidence {estimator.how.confidence:g}{late}"
    if sender is not None and not any(estimator.is_steady(row, column) for column in range(len(estimator.delays_us))):
        return f"estimated, kept by {steady} tuples so far: counts from {STEADY} in {STEADY_BATCHES} batches on"
    return f"estimated, kept by the last {steady} tuples{late}"


def _domain(clock: StreamClock) -> TimeDomain:
    return clock.domain or TimeDomain.INTEGER


def all_rows(model: TimeModel) -> tuple[tuple[str, ...], ...]:
    """All rows of SHOW BOUNDS."""
    grouped = [
        ("", clock.name, str(clock.partition), "grouped", f"GROUPS OF {name(clock.name)} {asked};")
        for clock in model.clocks
        if clock.partition is not None and (asked := model.declarations.groupings[clock.name].count)
    ]
    known = [one.row() for one in in_force(model)]
    return (*known, *answers_of_clock(model), *latencies(model), *grouped)
