"""Which bounds are in force between which sources: the declared ones and the learnt ones, handed to the generator.

Declarations say what sources promise, estimators what they were seen to keep to. Both are kept between cohorts (sources
with the same bounds), never between single sources.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

from headgate.catalog.declarations import Party, levels
from headgate.catalog.skew import Bounds, SkewBound, strongest
from headgate.heartbeat.clocks import Clocks
from headgate.heartbeat.estimate import Estimator, following
from headgate.heartbeat.groups import arriving
from headgate.heartbeat.stream_clock import StreamClock


class Bindings:
    """The bounds in force, and the estimators that learn the undeclared ones."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.estimators: dict[int, Estimator] = {}
        """By cohort."""

    def apply_declarations(self, now_us: int | None = None) -> None:
        """Take over what was declared since the last time. Sources that were named since then are waited for from
        `now_us` on; None: since their stream was defined.
        """
        clocks = self.clocks
        for clock in clocks:
            table = clock.table
            latencies = {kind: clocks.cohort(number).latency_us for kind, number in table.cohorts.items()}
            moved = clock.find_kinds(clocks.declarations, clocks.is_estimated(clock.name))
            if moved or any(us != kind.latency_us(clocks.declarations) for kind, us in latencies.items()):
                self._move(clock)
            clocks.expect_named(clock, clock.since_us if now_us is None else now_us)
        for number, estimator in list(self.estimators.items()):
            stream = clocks.owner(number).name
            how = clocks.estimation(stream)
            if not clocks.is_estimated(stream):
                del self.estimators[number]
            elif estimator.how != how:
                self.estimators[number] = following(how, [estimator], [None])
        known = clocks.generator.cohorts
        for estimator in self.estimators.values():
            estimator.forget([sender for sender in estimator.senders if sender not in (None, *known)])
        self.bind_all()

    def _move(self, clock: StreamClock) -> None:
        """Give the sources of a stream places by their present kinds; what was learnt of them goes with them."""
        before = list(clock.table.cohorts.values())
        learnt = [self.estimators.pop(number) for number in before if number in self.estimators]
        clock.table.move(self.clocks.generator, self.clocks.declarations)
        for number in clock.table.cohorts.values() if learnt else ():
            self.estimators[number] = following(self.clocks.estimation(clock.name), learnt, (None, *before))

    def remove(self, clock: StreamClock) -> None:
        """Forget the cohorts of a stream that is gone, and what was learnt of them."""
        for number in clock.table.cohorts.values():
            self.clocks.generator.remove(number)
            self.estimators.pop(number, None)

    def bind_all(self) -> None:
        """Hand all bounds in force to the generator, and let it forget what none of them needs."""
        generator = self.clocks.generator
        longest_us = max((estimator.delays_us[-1] for estimator in self.estimators.values()), default=0)
        for cohort in generator.cohorts.values():
            cohort.maxima.horizon_us = longest_us
        senders = _Senders(self.clocks)
        bound: dict[Hashable, int] = {}
        """The first cohort of each kind of receiver: the others get the same bounds."""
        for clock in self.clocks:
            for number in clock.table.cohorts.values():
                generator.towards[number], generator.guessed[number] = {}, {}
                if number in self.estimators:
                    self.bind(clock, number, generator.cohorts)
                    continue
                first = bound.setdefault(senders.receiver(clock, number), number)
                self.bind(clock, number, senders.to(clock, number) if first == number else ())
                if first != number:
                    generator.towards[number] = dict(generator.towards[first])
        for number, cohort in generator.cohorts.items():
            estimator = self.estimators.get(number)
            cohort.prune(generator.towards[number], estimator.delays_us if estimator is not None else ())

    def bind(self, clock: StreamClock, number: int, senders: Iterable[int]) -> None:
        """Hand the generator the bounds in force of one cohort: with itself, and from these senders to it."""
        self.clocks.cohort(number).own = self.own(clock, number)
        for first in senders:
            self.clocks.generator.bind(first, number, *self._between(first, clock, number))

    def own(self, clock: StreamClock, number: int) -> Bounds:
        """The bounds in force of a source with itself, as they hold for arrivals."""
        latency_us, stream = self.clocks.cohort(number).latency_us, clock.name
        declared = arriving(clock.table.kind_of[number].own(self.clocks.declarations), latency_us)
        if not self.clocks.is_declared(stream) and not self.clocks.is_estimated(stream):
            declared = (SkewBound(1, after_us=latency_us),)
        return strongest((*declared, *self.learnt(number, None)))

    def between(self, first: int, clock: StreamClock, number: int) -> Bounds:
        """The bounds in force from the sources of a cohort to those of another."""
        declared, learnt = self._between(first, clock, number)
        return strongest((*declared, *learnt))

    def _between(self, first: int, clock: StreamClock, number: int) -> tuple[Bounds, Bounds]:
        """The declared and the learnt bounds from the sources of a cohort to those of another."""
        if not self.is_comparable(first, clock, number):
            return (), ()
        sender = self.clocks.owner(first).table.kind_of[first]
        declared = clock.table.kind_of[number].after(sender, self.clocks.declarations)
        return arriving(declared, self.clocks.cohort(number).latency_us), self.learnt(number, first)

    def is_comparable(self, first: int, clock: StreamClock, number: int) -> bool:
        """True if tuples of the first cohort can say something about sources of the other: they have the same kind of
        time, and there are different sources.
        """
        if first == number:
            return clock.many
        return self.clocks.owner(first).domain is clock.domain

    def learnt(self, number: int, sender: int | None) -> Bounds:
        """The learnt bounds from a sender to a cohort; sender None: of each source with itself."""
        estimator = self.estimators.get(number)
        return estimator.bounds(sender) if estimator is not None else ()

    def estimator(self, clock: StreamClock, number: int) -> Estimator:
        """The estimator of a cohort, made when it is first asked for."""
        if number not in self.estimators:
            self.estimators[number] = Estimator(self.clocks.estimation(clock.name))
        return self.estimators[number]

    def between_streams(self, first: str, second: str) -> bool:
        """True if any tuple of the first stream says anything about the second."""
        senders = {*self.clocks[first].table.cohorts.values()}
        declared = any(pair[0].stream == first and pair[1].stream == second for pair in self.clocks.declarations.skews)
        generator = self.clocks.generator
        bound = (
            generator.towards[number].keys() | generator.guessed[number].keys()
            for number in self.clocks[second].table.cohorts.values()
        )
        return declared or any(senders & known for known in bound)

    def senders_among(self, stream: str, among: Collection[str]) -> set[int] | None:
        """The cohorts whose tuples count for a stream that is read together with others; None: all cohorts count.

        What was learnt about a stream from another counts only if both are read together: a query that reads the
        stream alone gains nothing by running ahead of what the stream has sent.
        """
        if not self.clocks.is_estimated(stream):
            return None
        return {number for name in (stream, *among) for number in self.clocks[name].table.cohorts.values()}


class _Senders:
    """Which cohorts may have a declared bound to which. It is found from the declarations, not by trying all pairs."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.of_party: dict[Party, list[int]] = {}
        self.sensors: list[int] = []
        self.counters: list[int] = []
        self.to_party: dict[Party, list[Party]] = {}
        for first, second in clocks.declarations.skews:
            self.to_party.setdefault(second, []).append(first)
        for clock in clocks:
            for kind, number in clock.table.cohorts.items():
                for level in dict.fromkeys(level for party in kind.parties for level in levels(party)):
                    self.of_party.setdefault(level, []).append(number)
                self.sensors += [number] if kind.sensor is not None else []
                self.counters += [number] if kind.counter is not None else []

    def receiver(self, clock: StreamClock, number: int) -> Hashable:
        """A key of what others can be declared to say of a cohort: cohorts with equal keys get equal bounds.

        Sources that no SKEW names as its receiver differ only in what is declared of them alone.
        """
        kind = clock.table.kind_of[number]
        parties = dict.fromkeys(party if party in self.to_party else Party(party.stream) for party in kind.parties)
        return tuple(parties), kind.sensor, kind.counter, self.clocks.cohort(number).latency_us

    def to(self, clock: StreamClock, number: int) -> Iterable[int]:
        """The cohorts from which there may be a declared bound to this one."""
        kind = clock.table.kind_of[number]
        parties = dict.fromkeys(level for party in kind.parties for level in levels(party))
        first = dict.fromkeys(first for party in parties for first in self.to_party.get(party, ()))
        found = dict.fromkeys(sender for party in first for sender in self.of_party.get(party, ()))
        found |= dict.fromkeys(self.sensors if kind.sensor is not None else ())
        return found | dict.fromkeys(self.counters if kind.counter is not None else ())
