"""The clock of one stream: how far its event time has come, what was promised about it, and its sources.

A `StreamClock` is state with small rules on it. What the state means for a reader is decided elsewhere: `waiting` finds
up to when a stream is complete, `guard` which timestamps lie too far in the future.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.catalog.declarations import Declarations, Party
from headgate.catalog.entries import Relation, Stream
from headgate.heartbeat.arrivals import Arrivals
from headgate.heartbeat.future import Pace
from headgate.heartbeat.groups import Kind, Partition, behind, partition
from headgate.heartbeat.promises import Promises
from headgate.heartbeat.source_table import SourceTable
from headgate.scope import Groups, Scope
from headgate.ticks import Tick, TimeDomain

MANY_TUPLES = 1_000
"""Groups of sources are formed by likeness after so many tuples, and anew each time there are four times as many."""

FEW_SOURCES = 1_024
"""Up to so many sources none is forgotten."""


@dataclass(slots=True)
class StreamClock:
    """What the time manager knows of one stream, or of one relation that changes over time."""

    stream: Stream | Relation
    since_us: int
    """When the stream was defined, or was read again after a pause, on the engine's clock."""

    finished: bool = False
    """True if nothing will come any more: the stream holds nobody back, and is not silent."""

    promises: Promises = field(default_factory=Promises)
    """What readers were promised: tuples at or before that are late."""

    groups: Groups | None = None
    """The sources that share a heartbeat; None: each has its own, and every reader waits for all of them."""

    paused: bool = False
    """True while the stream is not read."""

    frozen: Tick | None = None
    """While the stream is not read: up to when it was complete before."""

    enabled: Tick | None = None
    """The last instant up to which the engine's clock, or somebody who was asked, has said that the stream is
    complete.
    """

    beat_us: int | None = None
    """When the engine's clock last said so of its own accord (HEARTBEAT EVERY)."""

    read_us: int | None = None
    """The instant as of which everything that was there is known to have been read; None: that is not known."""

    largest: Tick | None = None
    """The largest timestamp that came, late ones included."""

    came_us: int | None = None
    """When the largest timestamp came."""

    pace: Pace = field(default_factory=Pace)
    """How its timestamps go on, so that unusual ones can be doubted."""

    tuples: int = 0
    """How many tuples have come."""

    first_us: int | None = None
    """When the first tuple came."""

    newest_at: int = 0
    """How many tuples had come when a new source was last heard of."""

    gave_up: dict[Any, Tick] = field(default_factory=dict)
    """Sources that came back after the TIMEOUT, and up to where their tuples are late because of that."""

    late_given_up: int = 0
    """How many tuples were late because of that."""

    table: SourceTable = field(init=False)
    """Its sources."""

    partition: Partition | None = None
    """The groups that were formed by likeness."""

    regroup_at: int = MANY_TUPLES
    """After so many tuples groups are formed anew."""

    forget_at: int = FEW_SOURCES
    """With so many sources it is time to forget those that can no longer matter."""

    def __post_init__(self) -> None:
        self.table = SourceTable(Kind((Party(self.stream.name),)))

    @property
    def name(self) -> str:
        return self.stream.name

    @property
    def domain(self) -> TimeDomain | None:
        """What its timestamps are; None: a relation that never changes."""
        return self.stream.domain

    @property
    def external(self) -> bool:
        """True if timestamps come with the tuples; False if the engine stamps them."""
        return isinstance(self.stream, Relation) or self.stream.stamped == "external"

    @property
    def stamped_by_engine(self) -> bool:
        """True if the engine stamps tuples with the date. (Streams in arrival order have no date.)"""
        return not self.external and self.domain is TimeDomain.TIMESTAMP

    @property
    def many(self) -> bool:
        """True if the stream tells sources apart (SOURCE BY)."""
        return isinstance(self.stream, Stream) and self.stream.source is not None

    def promise(self, heartbeat: Tick, scope: Scope | None, again: bool = False) -> None:
        """Remember what a reader was promised; `again` if that was before a restart.

        Without groups every reader waits for all sources. So what is new to a reader of some of them holds for the
        whole stream.
        """
        known = self.promises.limit(scope)
        waited = self.groups is None and not again and (known is None or heartbeat > known)
        self.promises.add(heartbeat, None if waited else scope)

    def first_open(self) -> Tick:
        """The first instant at which something can still happen on the stream."""
        if self.promises.whole is not None:
            return self.promises.whole + 1
        origin = (self.domain or TimeDomain.INTEGER).origin
        return origin if self.largest is None else self.largest

    def waited_for(self, scope: Scope | None) -> Scope | None:
        """The sources that a reader waits for: all of the groups of which it can see any; None: all of the stream."""
        return None if scope is None or self.groups is None else self.groups.waited_for(scope)

    def find_kinds(self, declarations: Declarations, learnt: bool) -> bool:
        """Find kinds and groups of the sources anew; True if any source is of another kind than before."""
        moved = self.table.find_kinds(declarations, self.name, self.many)
        self.form_groups(declarations, learnt)
        return moved

    def form_groups(self, declarations: Declarations, learnt: bool) -> None:
        """Form the groups that GROUPS OF asks for."""
        grouping = declarations.groupings.get(self.name) if self.many and self.external else None
        self.partition = None
        sets: dict[int, list[str]] = {}
        if grouping is not None and grouping.count is not None:
            for source, group in self._by_likeness(declarations, grouping.count, learnt).items():
                sets.setdefault(group, []).append(source)
        alike = [members for _, members in sorted(sets.items())]
        found = tuple(map(frozenset, alike if grouping is None or not grouping.sets else grouping.sets))
        self.groups = Groups(found) if found else None

    def _by_likeness(self, declarations: Declarations, count: int, learnt: bool) -> dict[Any, int]:
        """Groups by how far behind each source may be by what was declared, or has been by what was seen."""
        known = self.table.sources
        if learnt:
            if self.tuples < MANY_TUPLES:
                return {}
            members, numbers = list(known), self.table.behind[: len(known)]
        else:
            named = (
                party.source
                for party in (*declarations.sensors, *declarations.latencies_us)
                if party.stream == self.name
            )
            members = [source for source in dict.fromkeys((*known, *named)) if source is not None]
            numbers = np.array([behind(declarations, Party(self.name, source)) for source in members], np.int64)
        if not members:
            return {}
        self.partition = partition(numbers, count)
        return dict(zip(members, self.partition.labels.tolist(), strict=True))

    def note_lag(self, numbers: NDArray[np.intp], arrivals: Arrivals) -> None:
        """Note how far these sources are behind the largest timestamp of the stream."""
        if self.largest is not None:
            lag = self.largest - arrivals.smallest
            self.table.behind[numbers] = np.maximum(self.table.behind[numbers], lag)
