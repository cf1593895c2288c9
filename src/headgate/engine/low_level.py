"""The low level: what the logs of streams have to keep for the queries that run, and from when on a new one has it all.

With `SET low_level = 'on'` the log of a stream keeps what its queries need, together: some columns of the tuples that
pass the prefilter of any of them (`plan/needs`). What that is changes when queries come and go. A stream that no query
reads keeps everything. The journal remembers it, and up to when tuples came of which less was kept than all: a query
that needs more sees the stream from behind that instant on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias
from weakref import WeakKeyDictionary

from headgate.catalog.entries import Query, Stream
from headgate.cql.definitions import with_own_plan
from headgate.engine.core import Core
from headgate.execute.fragment import Fragment
from headgate.plan.needs import Need, needs, together
from headgate.schedule.query import RunningQuery
from headgate.ticks import Tick

MOST_CONDITIONS = 200
"""With more different conditions than this, all tuples are kept."""

Needs: TypeAlias = dict[str, Need]
"""What is needed of streams, by name."""


class LowLevel:
    """Decides what the logs of streams keep."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self._known: WeakKeyDictionary[Fragment | RunningQuery, Needs] = WeakKeyDictionary()
        """What fragments, and members of families, need. Their plans do not change."""

    def refresh(self) -> None:
        """Let the log of each stream keep what the queries that run need of it."""
        found = self._needed() if self.core.catalog.settings.low_level == "on" else {}
        for name, inlet in self.core.inputs.inlets.items():
            if isinstance(inlet.stream, Stream):
                need = None if name in self.core.loop.held else found.get(name)
                inlet.keep_only(_unless_everything(need, inlet.stream))

    def complete_after(self, query: Query, streams: Iterable[str]) -> list[Tick]:
        """The instants behind which the logs of streams hold all that a new query needs, where they do not from the
        beginning on.
        """
        reduced = [
            name for name in streams if name in self.core.inputs.inlets and self.core.inputs.inlets[name].reduced
        ]
        if not reduced:
            return []
        needed = needs(with_own_plan(query).plan)
        known = (self.core.inputs.inlets[name].reduced_upto(needed[name]) for name in reduced if name in needed)
        return [instant for instant in known if instant is not None]

    def _needed(self) -> Needs:
        """What the queries that run need, together."""
        return _all_of(map(self._of_query, self.core.programs()))

    def _of_query(self, query: RunningQuery) -> Needs:
        """What a query needs. A family that was found needs the tuples that its members do: its own plan compares them
        with constants that stand in a relation.
        """
        own = _all_of(map(self._of_fragment, query.fragments))
        if not query.hidden:
            return own
        members = [one for one in self.core.members.values() if one.membership and one.membership.family is query]
        theirs = _all_of(map(self._of_member, members))
        return {
            stream: Need(need.columns, theirs[stream].conditions) if stream in theirs else need
            for stream, need in own.items()
        }

    def _of_fragment(self, fragment: Fragment) -> Needs:
        if fragment not in self._known:
            self._known[fragment] = needs(fragment.part.plan)
        return self._known[fragment]

    def _of_member(self, member: RunningQuery) -> Needs:
        if member not in self._known:
            self._known[member] = needs(with_own_plan(member.definition).plan)
        return self._known[member]


def _all_of(some: Iterable[Mapping[str, Need]]) -> Needs:
    found: dict[str, list[Need]] = {}
    for one in some:
        for stream, need in one.items():
            found.setdefault(stream, []).append(need)
    return {stream: together(needed) for stream, needed in found.items()}


def _unless_everything(need: Need | None, stream: Stream) -> Need | None:
    """What is needed of a stream, if it is less than everything. Many conditions would cost more than they save."""
    everything = Need(frozenset(column.lower() for column in stream.row_columns()), None)
    if need is not None and need.conditions is not None and len(need.conditions) > MOST_CONDITIONS:
        need = replace(need, conditions=None)
    return None if need is None or need.covers(everything) else need
