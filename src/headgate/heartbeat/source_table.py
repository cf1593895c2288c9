"""The sources of one stream: the number of each, its place in the generator, and counts by source.

Sources that have the same bounds are of one kind, and the generator keeps the sources of a kind together in a cohort.
A source has a number (its position in the arrays of this table) and a place (its cohort, and its position there).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.catalog.declarations import Declarations
from headgate.heartbeat.arrivals import NEVER, Ticks
from headgate.heartbeat.generator import Generator
from headgate.heartbeat.groups import Kind, at_large, kinds
from headgate.heartbeat.maxima import grown
from headgate.scope import Scope
from headgate.ticks import UNLIMITED

Members = Mapping[int, NDArray[np.bool_]]
"""By cohort: which of its places are meant."""


@dataclass(slots=True)
class SourceTable:
    """The sources of a stream that were heard of or named. A stream without SOURCE BY has the one source None."""

    at_large: Kind
    """The kind of the sources that nothing tells apart from the others."""

    sources: dict[Any, int] = field(default_factory=dict)
    """The number of each source."""

    places: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """By number: the cohort of the source, and its place there."""

    named_us: dict[Any, int] = field(default_factory=dict)
    """The sources that a declaration names, and since when. Each is waited for from then on."""

    late: Ticks = field(default_factory=lambda: np.zeros(0, np.int64))
    """By number: how many tuples were late."""

    behind: Ticks = field(default_factory=lambda: np.zeros(0, np.int64))
    """By number: how far the source was behind the others, at the most."""

    punctuated: Ticks = field(default_factory=lambda: np.zeros(0, np.int64))
    """By number: the last heartbeat (watermark) that the source sent itself."""

    cohorts: dict[Kind, int] = field(default_factory=dict)
    """The cohort of each kind."""

    kind_of: dict[int, Kind] = field(default_factory=dict)
    """The kind of each cohort."""

    kinds: dict[Any, Kind] = field(default_factory=dict)
    """The kinds of the sources that are not at large."""

    forgotten: int = 0
    """How many sources were forgotten."""

    forgotten_late: int = 0
    """How many late tuples the forgotten sources had sent."""

    def numbers(self, sources: Sequence[Any], generator: Generator, declarations: Declarations) -> NDArray[np.intp]:
        """The numbers of sources. A source that was never heard of gets the next free number, and a place."""
        known = self.sources
        found = list(map(known.get, sources))
        if None in found:
            fresh = [source for source, number in zip(sources, found, strict=True) if number is None]
            self.places = grown(self.places, len(known) + len(fresh), -1)
            self.late = grown(self.late, len(self.places), 0)
            self.behind = grown(self.behind, len(self.places), 0)
            self.punctuated = grown(self.punctuated, len(self.places), NEVER)
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
        """Forget the sources at these places of each cohort. A source that comes back later is a new one."""
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
        self.behind, self.punctuated = self.behind[:count][kept], self.punctuated[:count][kept]

    def all_kinds(self, scope: Scope | None = None) -> list[Kind]:
        """The kinds of all sources, or of those in the scope."""
        if scope is None or scope.others:
            return list(dict.fromkeys((self.at_large, *self.kinds.values())))
        return list(dict.fromkeys(self.kinds.get(source, self.at_large) for source in scope.sources))

    def source_at(self, cohort: int, member: int) -> Any:
        """The source at a place."""
        found = np.flatnonzero((self.places[: len(self.sources)] == (cohort, member)).all(axis=1))
        return list(self.sources)[int(found[0])] if len(found) else None

    def late_by_source(self) -> dict[Any, int]:
        """How many tuples were late, by source; None stands for all forgotten sources together."""
        found = {source: int(self.late[number]) for source, number in self.sources.items() if self.late[number]}
        return found | ({None: self.forgotten_late} if self.forgotten_late else {})

    def knows_all(self, scope: Scope | None) -> bool:
        """True if the scope lists its sources and all of them are known, so that no unknown one can come up."""
        return scope is not None and not scope.others and scope.sources <= self.sources.keys()

    def members(self, scope: Scope | None, generator: Generator) -> Members | None:
        """The places of the sources in the scope, by cohort; None: all places."""
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

    def punctuated_in(self, cohort: int) -> tuple[NDArray[np.intp], Ticks]:
        """The places of a cohort whose sources sent heartbeats, and the last heartbeat of each place.

        In state that earlier versions saved, several sources share a place: the least of their heartbeats counts.
        """
        numbers = np.flatnonzero(self.places[: len(self.sources), 0] == cohort)
        members, owners = np.unique(self.places[numbers, 1], return_inverse=True)
        upto = np.full(len(members), UNLIMITED)
        np.minimum.at(upto, owners, self.punctuated[numbers])
        return members[upto > NEVER], upto[upto > NEVER]

    def find_kinds(self, declarations: Declarations, stream: str, many: bool) -> bool:
        """Find the kinds of the sources by what is declared now; True if any source is of another kind than before."""
        before = [self.kinds.get(source, self.at_large) for source in self.sources]
        self.at_large = at_large(declarations, stream)
        named = [party.source for party in (*declarations.sensors, *declarations.counters) if party.stream == stream]
        sources = {*self.sources, *declarations.singled_out(stream), *named} - {None}
        self.kinds = kinds(declarations, stream, sources) if many else {}
        return before != [self.kinds.get(source, self.at_large) for source in self.sources]

    def move(self, generator: Generator, declarations: Declarations) -> None:
        """Give every source a place in the cohort of its present kind.

        What a source sent last moves with it; what waits for a delay begins to wait again. If sources shared a place,
        as in state that earlier versions saved, nobody knows what each of them sent last, so nothing moves with them.
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
            members, upto = self.punctuated_in(new)
            if len(members):
                generator.punctuated(new, members, upto, int(generator.cohorts[new].heard_us[members].max()))
