"""Carries out statements: streams, relations and queries come, change and go.

A statement is first carried out on the catalog (`compile`), then here on what runs, and last remembered in the journal.
A failure on the way takes all of it back. `recovery` carries the remembered statements out again after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, assert_never

from pyspark.util import PythonEvalType

from headgate.catalog import sinks
from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Function, Group, Query, Relation, Stream, View, errors_name
from headgate.catalog.protocols import InterfaceSet, Protocol
from headgate.compile import compile_statements
from headgate.cql import shapes
from headgate.cql.definitions import (
    Altered,
    BoundsAsked,
    ConstraintsAsked,
    Definition,
    Dropped,
    Explanation,
    Listing,
    ParameterSet,
    PlanAsked,
    ProfileAsked,
    Setting,
    SnapshotAsked,
    WhyAsked,
)
from headgate.cql.languages import Language
from headgate.deliver.courier import DROP_SECONDS
from headgate.deliver.outbox import Outbox
from headgate.deliver.sinks.memory import MemorySink
from headgate.deliver.sinks.sink_for import group_sink_for, sink_after_restart, sink_for
from headgate.engine import inspection
from headgate.engine.core import Core
from headgate.engine.facts import AggregateRegistered
from headgate.engine.found import FoundFamilies
from headgate.engine.low_level import LowLevel
from headgate.engine.parameters import set_parameter
from headgate.engine.sharing import Sharing
from headgate.engine.snapshot import Snapshot, taken
from headgate.engine.statements import Statements
from headgate.engine.system import SystemStreams
from headgate.errors import UserError
from headgate.heartbeat.clocks import base
from headgate.heartbeat.why import Why
from headgate.log.checksum import writing
from headgate.log.folders import fresh_folder
from headgate.permissions import Permissions, permissions
from headgate.plan.nodes import Constraint, domain, sources
from headgate.plan.scopes import scopes
from headgate.schedule.group import RunningGroup
from headgate.schedule.query import RunningQuery
from headgate.spark.session import over_connect
from headgate.sql import backquoted
from headgate.ticks import Tick

ANSWERS = (
    BoundsAsked,
    ConstraintsAsked,
    PlanAsked,
    ProfileAsked,
    WhyAsked,
    SnapshotAsked,
    Explanation,
    Listing,
    ParameterSet,
)
"""Statements that leave everything as it is, and one that the journal remembers by a fact of its own."""

Answer: TypeAlias = Why | Snapshot
"""What the engine answers a question with, if not with a listing."""

TAKE_BACK_SECONDS = 5.0
"""How long a query that is dropped or altered waits for its sink to take its early answer back."""

KEPT_ERRORS = 100_000
"""So many rows that a query has left out are kept, and not many more."""

AGGREGATING = (PythonEvalType.SQL_GROUPED_AGG_PANDAS_UDF, PythonEvalType.SQL_GROUPED_AGG_ARROW_UDF)


class Registry:
    """Carries out definitions on what runs, and remembers the statements that made them."""

    def __init__(self, core: Core, default_sink: Literal["memory", "console"]) -> None:
        self.core = core
        self.default_sink = default_sink
        self.statements = Statements()
        self.found = FoundFamilies(core, self)
        self.sharing = Sharing(core)
        self.low_level = LowLevel(core)
        self.system = SystemStreams(core)
        self.folders_left = False
        """True if something was dropped or replaced whose folder is still to be deleted."""

    # statements

    def execute(
        self,
        cql: str,
        origin: str = "",
        allow: Iterable[str] | str | Permissions | None = None,
        answers: list[Definition | Answer] | None = None,
    ) -> list[Definition | Answer]:
        """Carry out the statements of a text one by one; each is durable before the next.

        The list of `answers`, if one is given, has those of the statements before the one that fails.
        """
        answers = [] if answers is None else answers
        catalog, journal = self.core.catalog, self.core.journal
        with journal.turn, self._allowing(allow):
            before, script = self._declared(), shapes.Script(cql)
            for said, definition, _, known, language in compile_statements(
                cql, catalog, origin, self.statements.recalled
            ):
                if known:
                    answers.append(definition)
                    continue
                self.found.alike = script.alike(said)
                self._take_back_early(definition)
                with journal.together():
                    answers.append(self.carry_out(definition))
                    if not isinstance(definition, ANSWERS):
                        self.low_level.refresh()
                    now = self._declared()
                    changes = now != before if isinstance(definition, Setting) else not isinstance(definition, ANSWERS)
                    before = now
                    if changes:
                        self._remember(said, definition, language)
                    self._keep_errors(definition)
                self.folders_left |= isinstance(definition, Dropped | Altered)
        return answers

    def _keep_errors(self, definition: Definition) -> None:
        """What a query leaves out is kept by another query, which comes, changes and goes with it."""
        catalog = self.core.catalog
        allowed, catalog.permissions = catalog.permissions, None  # it follows from what was allowed
        try:
            for said, following, *_ in compile_statements(_errors_statement(definition, catalog), catalog):
                self.carry_out(following)
                self._remember(said, following, "cql")
                self.folders_left |= isinstance(following, Dropped | Altered)
        finally:
            catalog.permissions = allowed

    def _take_back_early(self, definition: Definition) -> None:
        """Before a query ends, let its sink hold what is settled and nothing else.

        It is durable by itself before the statement is: the sink must not have a delivery of which the journal knows
        nothing.
        """
        match definition:
            case Dropped("query", str() as name) | Altered(before=Query(name=name)):
                query = self.core.loop.queries.get(name)
            case _:
                return
        if query is None or query.outbox.shown is None:
            return
        query.outbox.take_back_early(query.reached)
        if not query.courier.hand_over(TAKE_BACK_SECONDS):
            self.core.loop.tell(f"the sink of {query.outbox.owner} is not reached: it may hold its last early answer")

    @contextmanager
    def _allowing(self, allow: Iterable[str] | str | Permissions | None) -> Iterator[None]:
        self.core.catalog.permissions = self.core.permissions if allow is None else permissions(allow)
        try:
            yield
        finally:
            self.core.catalog.permissions = self.core.permissions
            self.folders_left |= self.system.close_unread()

    def _declared(self) -> tuple[Any, ...]:
        """All settings and declarations, to see whether a statement changes any."""
        catalog = self.core.catalog
        return catalog.settings, deepcopy(catalog.declarations), tuple(catalog.streams.values()), catalog.pending

    def carry_out(self, definition: Definition) -> Definition | Answer:
        """Make what runs follow the catalog, or answer a question; returns the definition or the answer."""
        match definition:
            case BoundsAsked():
                return inspection.bounds(self.core)
            case ConstraintsAsked():
                return inspection.constraints(self.core)
            case PlanAsked():
                return inspection.plan(self.core)
            case ProfileAsked(query):
                return inspection.shown_profile(self.core, query)
            case WhyAsked(query):
                return self.core.query(query).why()
            case SnapshotAsked():
                return taken(self.core, definition)
            case ParameterSet():
                return set_parameter(self.core, definition)
            case Stream() | Relation():
                self._add_stream(definition)
            case Query():
                self.add_query(definition)
            case Group():
                self.add_group(definition)
            case Dropped():
                self._drop(definition)
            case Altered(Query() as query, Query() as before):
                self._replace_query(query, before)
            case Altered(Stream() as stream):
                self.core.inputs.reshape(stream)
            case Setting():
                self._apply_settings()
            case (
                Altered() | View() | Function() | Constraint() | Protocol() | InterfaceSet() | Explanation() | Listing()
            ):
                pass  # only the catalog knows them
            case _:
                assert_never(definition)
        return definition

    def _remember(self, said: str, definition: Definition, language: Language) -> None:
        """Make a statement durable, together with where a query that it defines begins."""
        core = self.core
        entry = definition.now if isinstance(definition, Altered) else definition
        folder = None
        if isinstance(entry, Query):
            running = core.query(entry.name)
            folder = None if running.shares_outbox else running.outbox.directory.name
        elif isinstance(entry, Stream | Relation):
            folder = core.inputs.inlets[entry.name].folder
        elif isinstance(entry, Group) and entry.connector is not None:
            group = core.group(entry.name)
            folder = group.outbox.directory.name
            core.journal.record(group.outbox.subject, {"number": group.outbox.number})
        statement = self.statements.of(said, definition, core.clock.now_us(), folder, language)
        core.record(
            statement,
            then=lambda: self.statements.add(statement, definition),
            undo=lambda: self._take_back(definition),
        )
        if isinstance(entry, Query):
            for subject, where in running.beginning():
                core.journal.record(subject, where)

    def _take_back(self, definition: Definition) -> None:
        """Undo a definition that could not be made durable. Where that is impossible, the engine must be restarted."""
        match definition:
            case Stream() | Relation() | Query() | Group():
                self._forget(definition)
            case _:
                self.core.journal.give_up()

    def _forget(self, definition: Stream | Relation | Query | Group) -> None:
        """Remove something from the catalog and from what runs: its name is free again."""
        kind = type(definition).__name__.lower()
        del self.core.catalog.of_kind(kind)[definition.name.lower()]
        self._drop(Dropped(kind, definition.name))

    def _apply_settings(self) -> None:
        """Let settings, policies and bounds of the catalog count from now on."""
        core, now_us = self.core, self.core.clock.now_us()
        for stream in core.catalog.streams.values():
            core.heartbeats.define(stream, now_us)
            core.inputs.inlets[stream.name].stream = stream
        core.heartbeats.apply_declarations(now_us, core.catalog.settings)

    def _drop(self, dropped: Dropped) -> None:
        """Stop what was dropped. Its files go later, when no epoch runs any more that may read them."""
        match dropped.kind:
            case "query" if dropped.name:
                gone = self.core.members.pop(dropped.name, None) or self.core.loop.queries.pop(dropped.name)
                gone.close(DROP_SECONDS)
                self.core.loop.profiler.forget(gone.own, gone.name)
                self.core.loop.scheduler.forget(gone.name)
                self.found.left(gone)
                self.sharing.let_go()
            case "group" if dropped.name in self.core.loop.groups:
                self.core.loop.groups.pop(dropped.name).close(DROP_SECONDS)
            case "stream" | "relation" if dropped.name:
                self.core.inputs.drop(dropped.name)
                self.core.asking.forget(dropped.name)

    def register_function(self, name: str, function: Any, returns: str | None = None) -> None:
        """Register a Python function with Spark and the catalog; one that is not deterministic is refused."""
        if not getattr(function, "deterministic", True):
            raise UserError(
                "not-deterministic",
                f'function "{name}" gives another value each time it is called',
                detail="An answer must follow from the tuples, and from nothing else.",
                hint="Compute its value from its arguments.",
            )
        register, catalog = self.core.spark.udf.register, self.core.catalog
        registered = register(name, function) if returns is None else register(name, function, returns)
        catalog.outside.add(name.lower())
        if getattr(registered, "evalType", None) in AGGREGATING:
            self.core.record(AggregateRegistered(name.lower()), then=lambda: catalog.aggregates.add(name.lower()))

    # streams and relations

    def _add_stream(self, stream: Stream | Relation) -> None:
        """Set up a stream or relation and connect its source; if that fails, its name is free again."""
        try:
            self.core.inputs.add(stream)
            self.core.inputs.connect(stream)
        except Exception:
            self._forget(stream)
            raise

    # queries

    def add_query(self, query: Query, folder: str | None = None) -> None:
        """Let a query run; `folder` has its files if it ran before a restart. If that fails, its name is free again.

        One of many that differ in constants runs as a member of a family.
        """
        core = self.core
        if not core.clock.standing:
            self.system.open_for(query)
        try:
            if query.skips and over_connect(core.spark):
                raise UserError(
                    "no-skip",
                    f'query "{query.name}" cannot skip errors over Spark Connect',
                    detail="What tries an expression is reached in Spark's own process only.",
                    hint="Leave ON ERROR SKIP out, and write TRY_CAST, TRY_ADD and the like.",
                )
            if not core.clock.standing and self.found.took(query):
                return
            query = self.found.alone(query)
        except Exception:
            core.catalog.queries.pop(query.name.lower(), None)
            raise
        if core.catalog.owner_of_errors(query.name) is not None:
            query = replace(query, sharing=False)  # it comes in one line of the journal with the other
        relations = {relation.name for relation in core.catalog.relations.values()}
        read = {source.name for source in sources(query.plan)}
        whole = frozenset(relations & read)
        start = self.start(query, sorted(read - whole))
        directory = core.directory / "queries" / (folder or fresh_folder(core.directory / "queries", query.name))
        try:
            with writing(directory):
                directory.mkdir(parents=True, exist_ok=True)
            self.refuse_partial(whole)
            fragments = self.sharing.fragments(query, directory, start, whole)
            outbox = self.outbox(query, directory)
        except Exception:
            del core.catalog.queries[query.name.lower()]
            raise
        core.loop.queries[query.name] = RunningQuery(
            query, fragments, outbox, core.catalog, self.reason, core.wake.set, core.loop.having
        )

    def reason(self, running: RunningQuery) -> Why:
        """Why a query has come no further."""
        return inspection.why(self.core, running)

    def outbox(self, query: Query, directory: Path) -> Outbox:
        """Where the query's results wait for its sink."""
        core = self.core
        make_sink = sink_after_restart if core.clock.standing else sink_for
        default = "memory" if core.catalog.groups_of(query.name) else self.default_sink
        sink = make_sink(query, core.spark, directory, default)
        flush_rows = lambda: sinks.flush_rows(query.connector, core.catalog.settings.flush_rows)  # noqa: E731
        outbox = Outbox(query.name, domain(query.plan), sink, directory, core.journal, flush_rows)
        outbox.on_failure = lambda error: self.system.failed("sink", query.name, error)
        if core.catalog.owner_of_errors(query.name) is not None:
            outbox.most_kept = KEPT_ERRORS
        if not core.clock.standing:
            outbox.continue_numbers()
        return outbox

    # groups

    def add_group(self, group: Group, folder: str | None = None) -> None:
        """Let the results of queries go out together; `folder` has its files if it was there before a restart."""
        core, folders = self.core, self.core.directory / "queries"
        try:
            queries = [core.query(name) for name in group.queries]
            for query in queries:
                _refuse_printed(query)
            if group.connector is not None:
                directory = folders / (folder or fresh_folder(folders, group.name))
                with writing(directory):
                    directory.mkdir(parents=True, exist_ok=True)
                running = RunningGroup(
                    group,
                    lambda: [core.query(name) for name in group.queries],
                    directory,
                    core.journal,
                    lambda: group_sink_for(group, core.spark, directory),
                    core.wake.set,
                )
                running.outbox.on_failure = lambda error: self.system.failed("sink", group.name, error)
                if not core.clock.standing:
                    running.outbox.continue_numbers()
                core.loop.groups[group.name] = running
        except Exception:
            del core.catalog.groups[group.name.lower()]
            self.folders_left = True
            raise
        for query in queries:
            if not query.outbox.kept:
                query.outbox.sink, query.outbox.kept = MemorySink(), True
        core.wake.set()

    def _replace_query(self, query: Query, before: Query) -> None:
        """End the old query where it is and let the new one begin there; if that fails, the old one goes on."""
        queries = self.core.members if before.name in self.core.members else self.core.loop.queries
        old = queries.pop(before.name)
        old.courier.hold(DROP_SECONDS)  # both may write to the same place
        try:
            self.add_query(query)
        except Exception:
            old.courier.go_on()
            if old.early_answers is not None:
                old.early_answers.give_again()  # the sink does not hold it any more
            self.core.catalog.queries[before.name.lower()] = before
            queries[before.name] = old
            raise
        old.close(DROP_SECONDS)
        self.found.left(old)
        self.sharing.let_go()

    def refuse_partial(self, relations: Iterable[str]) -> None:
        """Refuse a new query over a relation that has lost rows which no other query needed any more."""
        for relation in relations:
            if self.core.inputs.logs[relation].forgotten is not None and not self.core.clock.standing:
                raise UserError(
                    "relation-forgotten",
                    f'the first rows of relation "{relation}" are not kept any more',
                    detail="No query needed them when newer ones had come.",
                    hint="Register queries over a relation together, or put its rows in once more, into another.",
                )

    def start(self, query: Query, streams: Iterable[str]) -> Tick | None:
        """The instant behind which a new query sees its streams; None if it sees them from their beginning.

        It is the last heartbeat that the streams have given; with FROM BEGINNING, the last instant whose tuples are
        not kept any more. Tuples of which the low level has kept less than the query needs lie before it, too.
        """
        logs, seen = self.core.inputs.logs, scopes(query.plan)
        known = [logs[stream].forgotten for stream in streams]
        if not query.from_beginning:
            known += [self.core.heartbeats.stream(base(stream)).promised(seen.get(stream)) for stream in streams]
        known += self.low_level.complete_after(query, streams)
        return max((instant for instant in known if instant is not None), default=None)


def _errors_statement(definition: Definition, catalog: Catalog) -> str:
    """The statement that follows from one, so that what a query leaves out is kept; empty if none does."""
    match definition:
        case Query() | Altered(now=Query()):
            query = definition.now if isinstance(definition, Altered) else definition
            assert isinstance(query, Query)
            name, keeps = errors_name(query.name), bool(query.left_out)
            beginning = " FROM BEGINNING" if query.from_beginning else ""
        case Dropped("query", dropped):
            name, keeps, beginning = errors_name(dropped), False, ""
        case _:
            return ""
    there = name.lower() in catalog.queries
    if not keeps:
        return f"DROP QUERY {backquoted(name)}" if there else ""
    asked = f"SELECT * FROM ERRORS({backquoted(query.name)})"
    return f"{'ALTER' if there else 'CREATE'} QUERY {backquoted(name)}{beginning} AS {asked}"


def _refuse_printed(query: RunningQuery) -> None:
    """Refuse a query for a group if some of its results were printed, and are gone."""
    if not query.outbox.kept and query.outbox.number:
        raise UserError(
            "results-elsewhere",
            f'results of query "{query.name}" were printed, and are not kept',
            hint="Create the group together with its queries, before they run.",
        )
