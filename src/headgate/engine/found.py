"""Finds queries that differ in constants only, and lets them run as one program: a family (`schedule.family`).

The first queries of a shape (`cql.shapes`) run alone. With the fourth, a family is made; with the first, if the script
has four that are alike. Those before it become members too if they have not begun: no state has to be moved. So a
script that registers a thousand queries of one shape makes one plan, and a thousand rows.

A query joins a family only if it then answers what it would answer alone:

- before the family's first epoch, if it sees its streams from the same instant on;
- later, if all windows are [NOW] and it reads nothing but streams: then no tuple of before matters to it. A family that
  takes tuples as they arrive must not have taken any yet that the query would see.

Otherwise it runs alone, and is one of the first of the next family.

Queries whose windows differ in length too are one family, which lists the lengths when it is made: those in the script,
and those of the queries before it that become members. A query with another length does not join it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.pandas.types import to_arrow_schema

from headgate.catalog.entries import Query, Relation
from headgate.compile import compile_query
from headgate.cql.definitions import found_family, with_own_plan
from headgate.cql.shapes import Alike, Lengths, Shape, may_be_listed, takes_later, with_lengths
from headgate.deliver.outbox import Outbox
from headgate.deliver.sinks.memory import MemorySink
from headgate.engine.core import Core
from headgate.engine.facts import MemberJoined, MemberLeft
from headgate.errors import UserError
from headgate.execute.build import build_fragments
from headgate.execute.fragment import Fragment
from headgate.log.checksum import writing
from headgate.log.folders import fresh_folder
from headgate.log.log import Log
from headgate.plan.nodes import MEMBERS, domain, sources
from headgate.schedule.family import FamilyQuery, MemberRows, SplitOutbox
from headgate.schedule.query import RunningQuery
from headgate.spark.failures import check_alive
from headgate.spark.session import columns_of
from headgate.sql import Column, checked_type, ddl
from headgate.ticks import Tick

if TYPE_CHECKING:
    from headgate.engine.registry import Registry

LEAST = 4
"""So many queries of one shape are a family. Fewer cost less as branches of one statement than as a join."""


class FoundFamilies:
    """The families of an engine that were found."""

    def __init__(self, core: Core, registry: Registry) -> None:
        self.core = core
        self.registry = registry
        self.families: dict[tuple[Any, ...], list[FamilyQuery]] = {}
        """By shape; by the wide one if they list lengths."""
        self._alone: dict[tuple[Any, ...], list[str]] = {}
        """By wide shape: the queries that run alone and have been seen since the last family was made."""
        self._refused: set[tuple[Any, ...]] = set()
        """The shapes whose queries have to run alone, and wide shapes with lengths that cannot be one program."""
        self.alike = Alike()
        """Which statements of the script under way are like the one that is carried out."""

    def took(self, query: Query) -> bool:
        """Let a new query be a member of a family, if it can."""
        shape = query.shape
        if shape is None or shape.key in self._refused:
            return False
        self._put_back_on_error()
        start = self._start(query)
        listing = (one for one in self.families.get(shape.wide, ()) if shape.windows in one.lengths)
        known = [*self.families.get(shape.key, ()), *listing]
        family = next((one for one in known if one.takes(start, query.from_beginning)), None) or self._made(
            query, start
        )
        if family is None:
            return False
        self._join(family, self._member(query, family), start)
        return True

    def _put_back_on_error(self) -> None:
        """Let everything be as it is now again, if the statement under way fails."""
        core, before = self.core, (dict(self.core.members), dict(self.core.loop.queries))
        known = {shape: list(families) for shape, families in self.families.items()}
        alone = {shape: list(names) for shape, names in self._alone.items()}

        def put_back() -> None:
            made = [one for name, one in core.loop.queries.items() if name not in before[1]]
            core.members, core.loop.queries = before
            self.families, self._alone = known, alone
            for one in made:
                one.close()

        self.registry.undo.callback(put_back)

    def alone(self, query: Query) -> Query:
        """The query as it runs alone: with the plans of its own text. It may be the first of a family to come."""
        if query.shape is None:
            return query
        own = with_own_plan(query)
        self.core.catalog.queries[query.name.lower()] = own
        if query.shape.key not in self._refused:
            names = self._alone.setdefault(query.shape.wide, [])
            names.append(query.name)
            self.registry.undo.callback(names.remove, query.name)
        return own

    def left(self, query: RunningQuery) -> None:
        """Take note that a query is dropped or altered: it leaves when that is durable."""
        if query.membership is None:
            return
        family, number = query.membership.family, query.membership.number
        start = self._start(query.definition)
        at = max(family.reached, family.reached if start is None else start) + 1
        fact = MemberLeft(family.outbox.directory.name, number)
        self.core.record(fact, then=lambda: self._leave(family, number, at))

    def _leave(self, family: FamilyQuery, number: int, at: Tick) -> None:
        """Let a member go. The last one takes the family with it."""
        family.leave(number, at)
        if not family.members:
            self.families[family.shape].remove(family)
            self.core.loop.queries.pop(family.name).close()

    def facts(self) -> Iterator[MemberJoined]:
        """The members of all families, for a checkpoint."""
        for query in self.core.members.values():
            if (known := query.membership) is not None:
                folder = known.family.outbox.directory.name
                yield MemberJoined(query.name, folder, known.number, known.start, known.family.lengths)

    def go_on(self, queries: Mapping[str, tuple[Query, str | None]], joined: Sequence[MemberJoined]) -> FamilyQuery:
        """Set up a family that was there before a restart, with its members."""
        first = joined[0]
        self._put_back_on_error()
        query = queries[first.query][0]
        family = self._family(query, f"family of {query.name}", first.start, first.family, lengths=first.lengths)
        if family is None:
            raise UserError(
                "other-version",
                f'query "{query.name}" ran in a family, which this version of headgate does not make',
                hint="Open the directory with the version that wrote it.",
            )
        for one in joined:
            query, folder = queries[one.query]
            member = self._member(query, family, folder)
            family.put(member, one.number, one.start)
            self.core.members[query.name] = member
        family.rows.recalled(family.reached)
        return family

    # making and joining

    def _start(self, query: Query) -> Tick | None:
        """The instant behind which a query that is registered now sees its streams."""
        relations = {relation.name for relation in self.core.catalog.relations.values()}
        return self.registry.start(query, sorted({source.name for source in sources(query.plan)} - relations))

    def _made(self, query: Query, start: Tick | None) -> FamilyQuery | None:
        """A new family that takes a query, with those before it of its shape that have not begun; None if there are too
        few of them, or none can be made. One that lists several lengths of windows goes first.
        """
        lengths = self._lengths(query, start)
        family = self._made_with(query, start, lengths) if lengths else None
        return family or self._made_with(query, start, ())

    def _before(self, shape: Shape) -> list[RunningQuery]:
        """The queries that run alone and are like one, but for constants and lengths of windows."""
        known = (
            self.core.loop.queries.get(name)
            for name in self._alone.get(shape.wide, ())
            if not self.core.catalog.groups_of(name)  # it keeps its results by itself
        )
        return [one for one in known if one and one.definition.shape and one.definition.shape.wide == shape.wide]

    def _lengths(self, query: Query, start: Tick | None) -> Lengths:
        """The lengths that a family of a query would list; none if they are all the same, or too many."""
        if not query.shape.windows or query.plan.flowing:
            return ()
        found = {query.shape.windows, *self.alike.lengths()}
        for one in self._before(query.shape):
            more = found | {one.definition.shape.windows}
            if _is_fresh(one, start) and may_be_listed(more):
                found = more
        return tuple(sorted(found)) if len(found) > 1 and may_be_listed(found) else ()

    def _made_with(self, query: Query, start: Tick | None, lengths: Lengths) -> FamilyQuery | None:
        """A new family that lists these lengths of windows, or is of one shape if there are none."""
        shape = query.shape
        refused = (shape.wide, lengths) if lengths else shape.key
        if refused in self._refused:
            return None
        alone = [
            one
            for one in self._before(shape)
            if one.definition.shape.key == shape.key or one.definition.shape.windows in lengths
        ]
        fresh = [one for one in alone if _is_fresh(one, start)]
        later = query.plan.flowing or (takes_later(query.plan) and not query.plan.opens)
        alike = self.alike.similar if lengths else self.alike.same
        if len(alone if later else fresh) + 1 < LEAST and alike < LEAST:
            return None
        name = f"family of {(fresh[0] if fresh else query).name}"
        family = self._family(query, name, start, None, alone[0] if alone else None, lengths)
        if family is None:
            self._refused.add(refused)
            return None
        seen = {one.name for one in alone}
        self._alone[shape.wide] = [one.name for one in self._before(shape) if one.name not in seen]
        for one in fresh:
            self.core.loop.queries.pop(one.name)
            for fragment in one.own:
                self.registry.afterwards(fragment.close)
            self.registry.undo.callback(one.run_alone, one.fragments, one.traces, one.outbox, one.courier)
            self._join(family, one, start)
        self.registry.afterwards(self.registry.sharing.let_go)
        self.registry.folders_left |= bool(fresh)
        return family

    def _family(
        self,
        query: Query,
        name: str,
        start: Tick | None,
        folder: str | None,
        alone: RunningQuery | None = None,
        lengths: Lengths = (),
    ) -> FamilyQuery | None:
        """Build the family of a query; None if it cannot be one program.

        `folder` has its files if it ran before a restart. `alone` is a query of its shape that runs alone, if there is
        one: it says of which types the answers are. Otherwise the plans say it.
        """
        core = self.core
        if lengths:
            query = replace(query, shape=with_lengths(query.shape, lengths))
        taken, more = {*core.loop.queries, *core.catalog.queries}, 1
        while (named := name if more == 1 else f"{name} ({more})") in taken or named.lower() in taken:
            more += 1
        definition = found_family(query, named)
        if definition is None or not (alone or folder or _same_columns(definition, query)):
            return None
        directory = core.directory / "queries" / (folder or fresh_folder(core.directory / "queries", named))
        with writing(directory):
            directory.mkdir(parents=True, exist_ok=True)
        folder = directory.name
        log = Log(directory / "members", core.journal, f"log queries/{folder}/members")
        kinds = zip(definition.family.columns, ("BIGINT", *query.shape.types), strict=True)  # type: ignore[union-attr]
        columns = tuple(Column(name, checked_type(kind)) for name, kind in kinds)
        relation = Relation(MEMBERS, columns, domain(query.plan))
        schema = columns_of(core.spark, ddl(core.catalog.logs_of(relation)[MEMBERS]))
        relations = {relation.name for relation in core.catalog.relations.values()}
        whole = frozenset({source.name for source in sources(definition.plan)} & relations)
        try:
            self.registry.refuse_partial(whole)
            fragments = build_fragments(
                definition,
                compile_query(definition, core.catalog),
                core.workspaces,
                ChainMap({MEMBERS: log}, core.inputs.logs),
                ChainMap({MEMBERS: schema}, core.inputs.schemas),
                directory,
                core.journal,
                start=start,
                whole=whole | {MEMBERS},
            )
        except Exception as error:
            check_alive(core.spark, error)
            return None
        if alone is not None and not _same_answers(fragments[-1], alone.answer, len(definition.family.shown)):  # type: ignore[union-attr]
            return None
        outbox = self._outbox(query, definition, directory)
        family = FamilyQuery(
            definition, fragments, outbox, core.catalog, self.registry.reason, core.wake.set, core.loop.having
        )
        rows = MemberRows(log, to_arrow_schema(schema, timezone="UTC"), f"members {folder}")
        later = takes_later(definition.plan) and not query.plan.opens
        family.begin(rows, fragments[-1].progress.start, later, query.shape)
        core.loop.queries[family.name] = family
        self.families.setdefault(query.shape.key, []).append(family)
        if not core.clock.standing:
            for subject, where in family.beginning():
                core.journal.record(subject, where)
        return family

    def _outbox(self, query: Query, definition: Query, directory: Path) -> Outbox:
        """Where the family's results are kept, or given to the members, if these have sinks."""
        kept = query.connector is None and self.registry.default_sink == "memory"
        made = Outbox if kept else SplitOutbox
        return made(definition.name, domain(definition.plan), MemorySink(), directory, self.core.journal)

    def _member(self, query: Query, family: FamilyQuery, folder: str | None = None) -> RunningQuery:
        """A query that is to be a member of a family, with its own sink if it has one."""
        core, outbox = self.core, family.outbox
        if isinstance(outbox, SplitOutbox):
            folders = core.directory / "queries"
            directory = folders / (folder or fresh_folder(folders, query.name))
            with writing(directory):
                directory.mkdir(parents=True, exist_ok=True)
            outbox = self.registry.outbox(query, directory)
        return RunningQuery(
            query, family.fragments, outbox, core.catalog, self.registry.reason, core.wake.set, core.loop.having
        )

    def _join(self, family: FamilyQuery, member: RunningQuery, start: Tick | None) -> None:
        """Let a query be a member from now on, and let the journal know."""
        number = family.number + 1
        self.registry.undo.callback(family.take_out, number)
        family.put(member, number, start)
        self.core.members[member.name] = member
        folder = family.outbox.directory.name
        self.core.record(MemberJoined(member.name, folder, number, start, family.lengths), then=lambda: None)


def _is_fresh(query: RunningQuery, start: Tick | None) -> bool:
    """Whether a query that runs alone can become a member of a family: no state has to be moved."""
    return not query.begun and all(_is_untouched(part, start) for part in query.fragments)


def _is_untouched(fragment: Fragment, start: Tick | None) -> bool:
    """Whether a fragment has done nothing so far, and sees its streams behind an instant."""
    return not fragment.epochs and not fragment.inputs.looked_at and fragment.progress.start == start


def _same_columns(family: Query, query: Query) -> bool:
    """Whether the answers of a family have the columns of those of one of its queries, but for the member."""
    assert family.family is not None
    own = family.plan.columns[len(family.family.shown) :]
    return [(one.name, one.type) for one in own] == [(one.name, one.type) for one in query.plan.columns]


def _same_answers(family: Fragment, alone: Fragment, members: int) -> bool:
    """Whether the answers of a family are of the same types as those of a query alone, but for the member."""
    types = [(one.name, one.dataType) for one in family.result_schema]
    expected = [(one.name, one.dataType) for one in alone.result_schema]
    about = len([name for name, _ in expected if name in ("_time", "_change")])
    return [*types[:about], *types[about + members :]] == expected
