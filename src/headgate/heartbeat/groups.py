"""Kinds of sources, which have the same bounds, and groups of sources, which share one heartbeat (section 5.2).

A group is complete as far as the least of its members is, so a source that could be trusted sooner waits for the
slowest of its group. Which partition into m groups adds the least delay is solved here for sources that differ in one
number, how far behind they may be: the best groups are then runs of the sorted numbers, and the best runs are found by
dynamic programming.

The paper puts the bounds of a group's members together to keep fewer of them. Here bounds are kept between kinds,
however many sources there are, so a group changes no bound: without a reader that sees only some groups, grouping has
no effect at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from headgate.catalog.declarations import Counter, Declarations, Party, Sensors
from headgate.catalog.skew import Bounds, SkewBound, strongest, weaker
from headgate.heartbeat.arrivals import Ticks
from headgate.ticks import Tick

KINDS = 16
"""Sources of a stream whose environments differ are told apart in so many steps."""

DISTINCT = 512
"""More different numbers than this are first rounded up to this many."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Sources of a stream that are told apart from its others, and by which bounds."""

    parties: tuple[Party, ...]
    """Whose declarations count: of several, the weakest."""

    sensor: Sensors | None = None
    counter: Counter | None = None
    group: int | None = None
    """Only in what earlier versions saved: the group whose sources had one place together."""

    apart: bool = False
    """True if only their environment tells them apart from the others of the stream, so that they have no name in CQL
    together.
    """

    @property
    def party(self) -> Party | None:
        """The party that a declaration about this kind would name; None if there is none."""
        return self.parties[0] if not self.apart else None

    @property
    def alone(self) -> bool:
        """True if there is only one source of the kind."""
        return len(self.parties) == 1 and self.parties[0].source is not None

    def __str__(self) -> str:
        if self.apart and self.sensor is not None:
            return f"{self.parties[0]} with deviation {self.sensor.deviation}"
        if self.apart and self.counter is not None:
            return f"{self.parties[0]} with processing {self.counter.least_us} to {self.counter.most_us} us"
        return str(self.parties[0])

    def latency_us(self, declarations: Declarations) -> int:
        """The longest latency that is declared for any of these sources."""
        return max(declarations.latency_us(party) for party in self.parties)

    def own(self, declarations: Declarations) -> Bounds:
        """What a tuple says about later ones of its source."""
        return reduce(weaker, (self._with_environment(declarations.own(party)) for party in self.parties))

    def after(self, other: Kind, declarations: Declarations) -> Bounds:
        """What a tuple of another source says about one of these."""
        return reduce(
            weaker, (self._between(declarations, one, mine, other) for one in other.parties for mine in self.parties)
        )

    def _between(self, declarations: Declarations, first: Party, second: Party, other: Kind) -> Bounds:
        found = list(declarations.between(first, second))
        if self.sensor is not None and other.sensor is not None:
            found += self.sensor.after(other.sensor)
        if self.counter is not None and other.counter is not None:
            found += self.counter.after(other.counter)
        return strongest(found)

    def _with_environment(self, bounds: Bounds) -> Bounds:
        found = list(bounds)
        found += self.sensor.own() if self.sensor is not None else ()
        found += self.counter.own() if self.counter is not None else ()
        return strongest(found)


def arriving(bounds: Bounds, latency_us: int) -> Bounds:
    """A promise made at emission holds for what arrives once nothing that was sent before can be under way any more."""
    return tuple(bound if bound.tuples else SkewBound(bound.within, bound.after_us + latency_us) for bound in bounds)


def kinds(declarations: Declarations, stream: str, sources: Iterable[str]) -> dict[str, Kind]:
    """The kind of each source of a stream of which something is said in particular."""
    single = {*declarations.singled_out(stream)}
    environments = (party for known in (declarations.sensors, declarations.counters) for party in known)
    particular = single | {party.source for party in environments if party.stream == stream}
    chosen = [source for source in sources if source in particular]
    return _fewer({source: _of_one(declarations, Party(stream, source), source in single) for source in chosen})


def at_large(declarations: Declarations, stream: str) -> Kind:
    """The sources of a stream of which nothing is said in particular."""
    party = Party(stream)
    return Kind((party,), declarations.sensor(party), declarations.counter(party))


def _of_one(declarations: Declarations, party: Party, single: bool) -> Kind:
    sensor, counter = declarations.sensor(party), declarations.counter(party)
    if single:
        return Kind((party,), sensor, counter)
    plain = at_large(declarations, party.stream)
    return Kind(plain.parties, sensor, counter, apart=(sensor, counter) != (plain.sensor, plain.counter))


def _merged(members: Iterable[Kind]) -> Kind:
    alike = list(dict.fromkeys(members))
    parties = tuple(dict.fromkeys(party for kind in alike for party in kind.parties))
    sensors, counters = [kind.sensor for kind in alike if kind.sensor], [kind.counter for kind in alike if kind.counter]
    return Kind(
        parties,
        Sensors.weakest(sensors) if len(sensors) == len(alike) else None,
        Counter.weakest(counters) if len(counters) == len(alike) else None,
        apart=any(kind.apart for kind in alike),
    )


def _fewer(found: dict[str, Kind]) -> dict[str, Kind]:
    """Sources that differ only in their environment, in at most so many kinds: those that are alike become one."""
    alone = {kind for kind in found.values() if kind.sensor is not None and len(kind.parties) == 1}
    loose = sorted((kind for kind in alone if kind.parties[0].source is None), key=lambda kind: _deviation(kind))
    if len(loose) <= KINDS:
        return found
    labels = partition(np.array([_deviation(kind) for kind in loose]), KINDS).labels.tolist()
    merged = {
        label: _merged((kind for kind, of in zip(loose, labels, strict=True) if of == label)) for label in {*labels}
    }
    replaced = {kind: merged[label] for kind, label in zip(loose, labels, strict=True)}
    return {source: replaced.get(kind, kind) for source, kind in found.items()}


def _deviation(kind: Kind) -> Tick:
    return kind.sensor.deviation if kind.sensor is not None else 0


def behind(declarations: Declarations, party: Party) -> Tick:
    """How far behind a source may be, as one number to compare sources by."""
    sensor = declarations.sensor(party)
    return (sensor.deviation if sensor is not None else 0) + declarations.latency_us(party)


@dataclass(frozen=True, slots=True)
class Partition:
    """Sources in groups by how far behind they may be."""

    labels: NDArray[np.intp]
    """The group of each source."""

    bounds: Ticks
    """Of each group: the largest number of its members."""

    added: Ticks
    """Of each source: how much larger its group's number is than its own."""

    def __str__(self) -> str:
        most, mean = int(self.added.max(initial=0)), self.added.mean()
        return f"{len(self.bounds)} groups: {most} ticks added at most, {mean:.1f} on average"


def partition(behind: Ticks, groups: int) -> Partition:
    """At most so many groups of sources, given how far behind each may be, with the least sum of added delays."""
    values, inverse, weights = _rounded(behind)
    ends = _best_ends(values, weights, min(groups, len(values)))
    of_value = np.searchsorted(ends, np.arange(len(values)))
    labels = of_value[inverse]
    return Partition(labels, values[ends], values[ends][labels] - behind)


def _rounded(behind: Ticks) -> tuple[Ticks, NDArray[np.intp], Ticks]:
    values, inverse, weights = np.unique(behind, return_inverse=True, return_counts=True)
    if len(values) <= DISTINCT:
        return values, inverse, weights
    steps = np.unique(np.linspace(0, len(values) - 1, DISTINCT + 1).astype(np.intp)[1:])
    of_step = np.searchsorted(steps, np.arange(len(values)))
    merged = np.bincount(of_step, weights=weights).astype(np.int64)
    return values[steps], of_step[inverse], merged


def _best_ends(values: Ticks, weights: Ticks, groups: int) -> NDArray[np.intp]:
    """Where the runs end: cost of a run i..j = Σ weight · (its largest value - value)."""
    size = len(values)
    heavy, mass = (
        np.concatenate([[0], np.cumsum(weights)]),
        np.concatenate([[0.0], np.cumsum(weights * values.astype(float))]),
    )
    first, last = np.arange(size)[:, np.newaxis], np.arange(size)[np.newaxis, :]
    cost = np.where(
        first <= last, values[last] * (heavy[last + 1] - heavy[first]) - (mass[last + 1] - mass[first]), np.inf
    )
    best, chosen = cost[0], []
    for _ in range(groups - 1):
        before = np.concatenate([[np.inf], best[:-1]])  # best for everything before `first`
        totals = before[:, np.newaxis] + cost
        chosen.append(np.argmin(totals, axis=0))
        best = np.minimum(best, totals.min(axis=0))
    return _traced(chosen, size)


def _traced(chosen: list[NDArray[np.intp]], size: int) -> NDArray[np.intp]:
    ends, last = [size - 1], size - 1
    for choice in reversed(chosen):
        first = int(choice[last])
        if first == 0:
            break
        last = first - 1
        ends.append(last)
    return np.asarray(ends[::-1], np.intp)
