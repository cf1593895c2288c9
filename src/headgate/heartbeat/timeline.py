"""What is known of one stream: its sources and where the generator keeps them, what was late, how far it was given
out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.catalog.declarations import Declarations, Party
from headgate.catalog.entries import Relation, Stream
from headgate.heartbeat.arrivals import NEVER, Arrivals, Ticks
from headgate.heartbeat.future import Pace
from headgate.heartbeat.generator import Generator
from headgate.heartbeat.groups import Kind, Partition, at_large, behind, kinds, partition
from headgate.heartbeat.maxima import grown
from headgate.scope import Groups, Scope
from headgate.ticks import UNLIMITED, Tick

Members = Mapping[int, NDArray[np.bool_]]
"""By cohort, for each place in it."""

MANY_TUPLES = 1_000
"""Groups of sources are formed by likeness after so many tuples, and anew each time there are four times as many."""

FEW_SOURCES = 1_024
"""Up to so many sources none is forgotten."""


@dataclass(slots=True)
class Timeline:
    stream: Stream | Relation
    since_us: int
    """When it was defined, or read again after a pause, on the engine's clock."""

    finished: bool = False
    """Nothing will come any more: it holds nobody back, and is not silent."""

    given: Tick | None = None
    """The last heartbeat that a reader of the whole stream was given: what arrives at or before it is late."""

    given_to: dict[Scope, Tick] = field(default_factory=dict)
    """Heartbeats given to readers that see only some sources, by scope: what arrives from these at or before it is
    late.
    """

    groups: Groups | None = None
    """The sources that share a heartbeat; None: each has its own, and every reader waits for all of them."""

    paused: bool = False
    frozen: Tick | None = None
    """While it is not read: how far it was complete before."""

    enabled: Tick | None = None
    """Up to when the clock, or whoever was asked, has said that nothing will still come."""

    beat_us: int | None = None
    """When the clock last spoke of its own accord."""

    read_us: int | None = None
    """As of when everything that was there had been read, as far as was known when the clock was last to be asked."""

    largest: Tick | None = None
    came_us: int | None = None
    """When the largest timestamp came."""

    pace: Pace = field(default_factory=Pace)
    """How its timestamps go on: what is unusual is doubted."""

    tuples: int = 0
    first_us: int | None = None
    newest_at: int = 0
    """When its first tuple came, and how many tuples had come when a source was first heard of the last time."""

    gave_up: dict[Any, Tick] = field(default_factory=dict)
    late_given_up: int = 0
    """Sources that are back after the timeout gave them up, and up to where their tuples are late for that; how many
    were.
    """

    sources: dict[Any, int] = field(default_factory=dict)
    """The number of each source."""

    places: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """Of each source: its cohort and its place there."""

    named_us: dict[Any, int] = field(default_factory=dict)
    """Sources of which something is declared by name, and since when: each is waited for from then on."""

    late: Ticks = field(default_factory=lambda: np.zeros(0, np.int64))
    behind: Ticks = field(default_factory=lambda: np.zeros(0, np.int64))
    """Of each source: how many tuples were late, and how far it was behind the others at the most."""

    said: Ticks = field(default_factory=lambda: np.zeros(0, np.int64))
    """Of each source: up to when it has said itself that nothing will still come."""

    cohorts: dict[Kind, int] = field(default_factory=dict)
    kind_of: dict[int, Kind] = field(default_factory=dict)
    """The cohort of each kind, and the kind of each cohort."""

    kinds: dict[Any, Kind] = field(default_factory=dict)
    """Of the sources that are told apart from the others; those are one kind."""

    at_large: Kind = field(init=False)
    partition: Partition | None = None
    """How sources were put together by likeness."""

    regroup_at: int = MANY_TUPLES
    forget_at: int = FEW_SOURCES
    """With so many sources it is time to forget those that can no longer matter."""

    forgotten: int = 0
    forgotten_late: int = 0
    """How many sources were forgotten, and how many late tuples they had sent."""

    def __post_init__(self) -> None:
        self.at_large = Kind((Party(self.stream.name),))

    @property
    def name(self) -> str:
        return self.stream.name

    @property
    def external(self) -> bool:
        """Whether its timestamps come with it."""
        return isinstance(self.stream, Relation) or self.stream.stamped == "external"

    @property
    def many(self) -> bool:
        """Whether it holds many sources."""
        return isinstance(self.stream, Stream) and self.stream.source is not None

    def numbers(self, sources: Sequence[Any], generator: Generator, declarations: Declarations) -> NDArray[np.intp]:
        """The numbers of sources; one that was never heard of gets the next."""
        known = self.sources
        found = list(map(known.get, sources))
        if None in found:
            fresh = [source for source, number in zip(sources, found, strict=True) if number is None]
            self.places = grown(self.places, len(known) + len(fresh), -1)
            self.late = grown(self.late, len(self.places), 0)
            self.behind = grown(self.behind, len(self.places), 0)
            self.said = grown(self.said, len(self.places), NEVER)
            self.newest_at = self.tuples
            self.places[len(known) : len(known) + len(fresh)] = self._placed(fresh, generator, declarations)
            known |= dict(zip(fresh, range(len(known), len(known) + len(fresh)), strict=True))
            found = [known[source] for source in sources]
        return np.asarray(found, np.intp)

    def _placed(self, sources: Sequence[Any], generator: Generator, declarations: Declarations) -> NDArray[np.int64]:
        """New places for sources, in the cohorts of their kinds."""
        places = np.zeros((len(sources), 2), np.int64)
        of_kind: dict[int, tuple[Kind, list[int]]] = {}  # by identity: there are few kinds, and many sources
        for position, source in enumerate(sources):
            kind = self.kinds.get(source, self.at_large)
            of_kind.setdefault(id(kind), (kind, []))[1].append(position)
        for kind, positions in of_kind.values():
            if kind not in self.cohorts:
                self.cohorts[kind] = generator.add(kind.latency_us(declarations))
                self.kind_of[self.cohorts[kind]] = kind
            cohort = generator.cohorts[self.cohorts[kind]]
            places[positions, 0] = self.cohorts[kind]
            places[positions, 1] = cohort.size + np.arange(len(positions))
            cohort.resize(int(places[positions, 1].max()) + 1)
        return places

    def forget(self, gone: dict[int, NDArray[np.intp]], generator: Generator) -> None:
        """Forget sources, given by cohort as their places there. One that comes back is a new source."""
        count = len(self.sources)
        places, kept = self.places[:count], np.ones(count, bool)
        for number, members in gone.items():
            cohort = generator.cohorts[number]
            left = np.setdiff1d(np.arange(cohort.size), members, assume_unique=True)
            renumbered, mine = cohort.keep(left), np.flatnonzero(places[:, 0] == number)
            kept[mine] = renumbered[places[mine, 1]] >= 0
            places[mine, 1] = renumbered[places[mine, 1]]
        self.forgotten += int((~kept).sum())
        self.forgotten_late += int(self.late[:count][~kept].sum())
        self.sources = {source: number for number, source in enumerate(compress(self.sources, kept.tolist()))}
        self.places, self.late = self.places[:count][kept], self.late[:count][kept]
        self.behind, self.said = self.behind[:count][kept], self.said[:count][kept]

    def all_kinds(self, scope: Scope | None = None) -> list[Kind]:
        """The kinds of its sources, or of those that are named."""
        if scope is None or scope.others:
            return list(dict.fromkeys((self.at_large, *self.kinds.values())))
        return list(dict.fromkeys(self.kinds.get(source, self.at_large) for source in scope.sources))

    def kind(self, cohort: int) -> Kind:
        return self.kind_of[cohort]

    def source(self, cohort: int, member: int) -> Any:
        """The source at a place."""
        found = np.flatnonzero((self.places[: len(self.sources)] == (cohort, member)).all(axis=1))
        return list(self.sources)[int(found[0])] if len(found) else None

    def tell_apart(self, declarations: Declarations, learnt: bool) -> bool:
        """Find the kinds and the groups of the sources anew; whether any source is of another kind than before."""
        before = [self.kinds.get(source, self.at_large) for source in self.sources]
        self.at_large = at_large(declarations, self.name)
        named = [party.source for party in (*declarations.sensors, *declarations.counters) if party.stream == self.name]
        sources = {*self.sources, *declarations.singled_out(self.name), *named} - {None}
        self.kinds = kinds(declarations, self.name, sources) if self.many else {}
        self.put_together(declarations, learnt)
        return before != [self.kinds.get(source, self.at_large) for source in self.sources]

    def put_together(self, declarations: Declarations, learnt: bool) -> None:
        """Form the groups that were asked for."""
        grouping = declarations.groupings.get(self.name) if self.many and self.external else None
        self.partition = None
        sets: dict[int, list[str]] = {}
        if grouping is not None and grouping.count is not None:
            for source, group in self._by_likeness(declarations, grouping.count, learnt).items():
                sets.setdefault(group, []).append(source)
        alike = [members for _, members in sorted(sets.items())]
        found = tuple(map(frozenset, alike if grouping is None or not grouping.sets else grouping.sets))
        self.groups = Groups(found) if found else None

    def waited_for(self, scope: Scope | None) -> Scope | None:
        """The sources for which a reader waits: all of the groups that it can see; None: of the stream."""
        return None if scope is None or self.groups is None else self.groups.waited_for(scope)

    def knows_all(self, scope: Scope | None) -> bool:
        """Whether all of these sources are known: none was forgotten, and none can come up."""
        return scope is not None and not scope.others and scope.sources <= self.sources.keys()

    def members(self, scope: Scope | None, generator: Generator) -> Members | None:
        """Which places of each cohort belong to these sources; None: all."""
        if scope is None:
            return None
        known = np.fromiter((self.sources.get(source, -1) for source in scope.sources), np.intp, len(scope.sources))
        chosen = np.full(len(self.sources), scope.others)
        chosen[known[known >= 0]] = not scope.others
        places = self.places[: len(self.sources)]
        found = {number: np.zeros(generator.cohorts[number].size, bool) for number in self.cohorts.values()}
        for number, mask in found.items():
            here = places[:, 0] == number
            mask[places[here, 1]] = chosen[here]
        return found

    def give(self, heartbeat: Tick, scope: Scope | None, again: bool = False) -> None:
        """Remember what a reader was told. Without groups it has waited for all sources, unless it was so far
        before.
        """
        known = self.limit(scope)
        waited = self.groups is None and not again and (known is None or heartbeat > known)
        if scope is None or waited:
            self.given = heartbeat if self.given is None else max(self.given, heartbeat)
        else:
            self.given_to[scope] = max(heartbeat, self.given_to.get(scope, heartbeat))
        common = NEVER if self.given is None else self.given
        self.given_to = {one: told for one, told in self.given_to.items() if told > common}

    def limit(self, scope: Scope | None = None) -> Tick | None:
        """Up to where all of these sources were said to be complete."""
        told = [told for one, told in self.given_to.items() if scope is not None and scope <= one]
        return max((tick for tick in (self.given, *told) if tick is not None), default=None)

    def limits(self) -> tuple[Tick | None, dict[str, Tick]]:
        """Up to where tuples are late: in general, and of the sources that some readers know to be further or less
        far.
        """
        told = list(self.given_to.items())
        common = max(
            (tick for tick in (self.given, *(tick for one, tick in told if one.others)) if tick is not None),
            default=None,
        )
        named = {source for one, _ in told for source in one.sources}
        known = {source: [tick for one, tick in told if source in one] for source in named}
        own = NEVER if self.given is None else self.given
        return common, {source: max([own, *ticks]) for source, ticks in known.items() if max([own, *ticks]) != common}

    def _by_likeness(self, declarations: Declarations, count: int, learnt: bool) -> dict[Any, int]:
        """Groups by how far behind each source may be by what was declared, or has been by what was seen."""
        if learnt:
            if self.tuples < MANY_TUPLES:
                return {}
            members, numbers = list(self.sources), self.behind[: len(self.sources)]
        else:
            named = (
                party.source
                for party in (*declarations.sensors, *declarations.latencies_us)
                if party.stream == self.name
            )
            members = [source for source in dict.fromkeys((*self.sources, *named)) if source is not None]
            numbers = np.array([behind(declarations, Party(self.name, source)) for source in members], np.int64)
        if not members:
            return {}
        self.partition = partition(numbers, count)
        return dict(zip(members, self.partition.labels.tolist(), strict=True))

    def move(self, generator: Generator, declarations: Declarations) -> None:
        """Give every source a new place. What it sent last goes with it; what waits for a delay begins again.

        Of sources that had one place together, as earlier versions kept groups, nobody knows what each has sent last.
        """
        old = {number: generator.cohorts[number] for number in self.cohorts.values()}
        before = self.places[: len(self.sources)].copy()
        for number in old:
            generator.remove(number)
        self.cohorts, self.kind_of = {}, {}
        after = self.places[: len(self.sources)] = self._placed(list(self.sources), generator, declarations)
        for number, cohort in old.items():
            shared = np.bincount(before[before[:, 0] == number, 1], minlength=len(cohort.largest)) > 1
            cohort.largest[shared] = NEVER
            for new in self.cohorts.values():
                moving = (before[:, 0] == number) & (after[:, 0] == new)
                if moving.any():
                    generator.cohorts[new].inherit(after[moving, 1], cohort, before[moving, 1])
        for new in self.cohorts.values():
            members, upto = self.said_in(new)
            if len(members):
                generator.punctuated(new, members, upto, int(generator.cohorts[new].heard_us[members].max()))

    def said_in(self, cohort: int) -> tuple[NDArray[np.intp], Ticks]:
        """The places of a cohort whose sources have all said up to when nothing will still come, and up to when all
        have.
        """
        numbers = np.flatnonzero(self.places[: len(self.sources), 0] == cohort)
        members, owners = np.unique(self.places[numbers, 1], return_inverse=True)
        upto = np.full(len(members), UNLIMITED)
        np.minimum.at(upto, owners, self.said[numbers])
        return members[upto > NEVER], upto[upto > NEVER]

    def note_lag(self, numbers: NDArray[np.intp], arrivals: Arrivals) -> None:
        if self.largest is not None:
            self.behind[numbers] = np.maximum(self.behind[numbers], self.largest - arrivals.smallest)
