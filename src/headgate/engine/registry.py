"""Carries out statements: streams, relations and queries come, change and go.

A statement is first carried out on the catalog (`compile`). Then what comes is set up here, the statement becomes
durable, and last what goes is let go. A failure before it is durable takes all of it back: the catalog's part by its
own context, and what was set up by `undo`. `recovery` carries the remembered statements out again after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, assert_never

from pyspark.util import PythonEvalType

from headgate.catalog import sinks
from headgate.catalog.catalog import Catalog, State
from headgate.catalog.entries import Function, Group, Quarantined, Query, Relation, Stream, View, errors_name
from headgate.catalog.protocols import InterfaceSet, Protocol
from headgate.compile import compile_statements
from headgate.cql import shapes
from headgate.cql.definitions import (
    Altered,
    BoundsAsked,
    ConstraintsAsked,
    Defined,
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
from headgate.deliver.courier import DROP_SECONDS
from headgate.deliver.outbox import Outbox
from headgate.deliver.sinks.memory import MemorySink
from headgate.deliver.sinks.sink_for import group_sink_for, sink_after_restart, sink_for
from headgate.engine import inspection
from headgate.engine.core import Core
from headgate.engine.facts import AggregateRegistered, Statement
from headgate.engine.found import FoundFamilies
from headgate.engine.low_level import LowLevel
from headgate.engine.parameters import set_parameter
from headgate.engine.quarantine import Quarantine
from headgate.engine.sharing import Sharing
from headgate.engine.snapshot import Snapshot, taken
from headgate.engine.statements import Statements, refuse_unreadable
from headgate.engine.system import SystemStreams
from headgate.errors import UserError
from headgate.heartbeat.clocks import base
from headgate.heartbeat.why import Why
from headgate.log.checksum import needs_no_room, writing
from headgate.log.folders import fresh_folder
from headgate.log.journal import Act
from headgate.permissions import Permissions, permissions
from headgate.plan.nodes import Constraint, domain, sources
from headgate.plan.scopes import scopes
from headgate.schedule.group import RunningGroup
from headgate.schedule.query import RunningQuery
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

REPLACED = ("stream", "relation", "view", "group", "constraint")
"""What must be dropped before it is defined anew; queries and functions take the place of those before them."""

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
        self.quarantine = Quarantine(core, self.statements, self.sharing)
        self.folders_left = False
        """True if something was dropped or replaced whose folder is still to be deleted."""

        self.undo = ExitStack()
        """What takes back the statement under way."""
        self._following: list[Act] = []
        """What follows when the statement under way is durable."""

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
        with self.core.journal.turn, self._allowing(allow):
            script = shapes.Script(cql)
            steps = compile_statements(cql, self.core.catalog, origin, self.statements.recalled)
            while (answer := self._carry_out_next(steps, script)) is not None:
                answers.append(answer)
        return answers

    def _carry_out_next(self, steps: Iterator[Defined], script: shapes.Script) -> Definition | Answer | None:
        """Carry out the next statement: all of it becomes durable, or nothing of it stays. None if there is none."""
        core = self.core
        with self.undone_on_error() as before:
            one = next(steps, None)
            if one is None or one.known:
                return None if one is None else one.definition
            definition = one.definition
            statement = self._to_remember(one, before)
            self.found.alike = script.alike(one.statement)
            with core.journal.from_reserve() if isinstance(definition, Dropped) else nullcontext():
                self._take_back_early(definition)
                with core.journal.together():
                    answer = self.carry_out(definition)
                    if statement is not None:
                        self.low_level.refresh()
                        self._forget_held(before, definition)
                        self._remember(statement, definition)
                        self._keep_errors(definition)
        self.follow()
        released = self.quarantine.let_go(isinstance(definition, Dropped))
        if released or isinstance(definition, Dropped | Altered):
            self.folders_left = True
            with needs_no_room():
                self.low_level.refresh()
        return answer

    def _to_remember(self, one: Defined, before: State) -> Statement | None:
        """The statement to remember, which says the same when it is read again; None if it changes nothing."""
        changes = not isinstance(one.definition, ANSWERS)
        if isinstance(one.definition, Setting):
            changes = self.core.catalog.state() != before
        if not changes:
            return None
        statement = self.statements.of(one.statement, one.definition, self.core.clock.now_us(), one.language)
        refuse_unreadable(statement, one, before, self.core.catalog)
        return statement

    def _forget_held(self, before: State, definition: Definition) -> None:
        """What was in quarantine and is defined anew is dropped first, so that this stays what it is in an engine that
        can read the old one, too.
        """
        for kind, name in before["quarantine"].keys() - self.core.catalog.quarantine.keys():
            if not isinstance(definition, Dropped) and kind in REPLACED:
                cql = f"DROP {kind.upper()} IF EXISTS {backquoted(name)}"
                self.core.record(Statement(cql, (cql,), self.core.clock.now_us()), then=lambda: None)

    @contextmanager
    def undone_on_error(self) -> Iterator[State]:
        """Put the catalog and what runs back as they were if anything is raised in here, whatever it is."""
        self._following = []
        with ExitStack() as self.undo:
            self.undo.callback(setattr, self, "folders_left", True)
            with self.core.catalog.undone_on_error() as before:
                yield before
            self.undo.pop_all()

    def afterwards(self, act: Act) -> None:
        """Do something that cannot be undone when the statement is durable."""
        self._following.append(act)

    def follow(self) -> None:
        """Let what runs follow a statement that has become durable."""
        following, self._following = self._following, []
        try:
            for act in following:
                act()
        except BaseException:
            self.core.journal.give_up()  # what is durable is not so in memory
            raise

    def _keep_errors(self, definition: Definition) -> None:
        """What a query leaves out is kept by another query, which comes, changes and goes with it."""
        catalog = self.core.catalog
        allowed, catalog.permissions = catalog.permissions, None  # it follows from what was allowed
        try:
            for one in compile_statements(_errors_statement(definition, catalog), catalog):
                statement = self.statements.of(one.statement, one.definition, self.core.clock.now_us(), "cql")
                self.carry_out(one.definition)
                self._remember(statement, one.definition)
                self.folders_left |= isinstance(one.definition, Dropped | Altered)
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
        if query.early_answers is not None:
            self.undo.callback(query.early_answers.give_again)  # the sink does not hold it any more
        if not query.courier.hand_over(TAKE_BACK_SECONDS):
            self.core.loop.tell(f"the sink of {query.outbox.owner} is not reached: it may hold its last early answer")

    @contextmanager
    def _allowing(self, allow: Iterable[str] | str | Permissions | None) -> Iterator[None]:
        allowed = self.core.permissions if allow is None else permissions(allow)
        if allowed is not None and allowed.restricted and not self.core.workspaces.walled:
            raise UserError(
                "no-wall",
                "over Spark Connect no statement from outside is carried out",
                detail="What Spark makes of it cannot be looked at there before it is analysed.",
                hint="Run the engine where Spark's driver runs, or carry out the operator's own statements alone.",
            )
        self.core.catalog.permissions = allowed
        try:
            yield
        finally:
            self.core.catalog.permissions = self.core.permissions
            with needs_no_room():
                self.folders_left |= self.system.close_unread()

    def carry_out(self, definition: Definition) -> Definition | Answer:
        """Make what runs follow the catalog, or answer a question; returns the definition or the answer.

        What comes is there at once, and goes again if the statement fails. What goes or changes is left as it is until
        the statement is durable.
        """
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
                self.afterwards(self.core.inputs.reshaping(stream))
            case Setting():
                self.afterwards(self._apply_settings)
            case (
                Altered()
                | Quarantined()
                | View()
                | Function()
                | Constraint()
                | Protocol()
                | InterfaceSet()
                | Explanation()
                | Listing()
            ):
                pass  # only the catalog knows them
            case _:
                assert_never(definition)
        return definition

    def _remember(self, statement: Statement, definition: Definition) -> None:
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
        core.record(
            replace(statement, folder=folder),
            then=partial(self.statements.add, replace(statement, folder=folder), definition),
        )
        if isinstance(entry, Query):
            for subject, where in running.beginning():
                core.journal.record(subject, where)

    def _apply_settings(self) -> None:
        """Let settings, policies and bounds of the catalog count from now on."""
        core, now_us = self.core, self.core.clock.now_us()
        for stream in core.catalog.streams.values():
            core.heartbeats.define(stream, now_us)
            core.inputs.inlets[stream.name].stream = stream
        core.heartbeats.apply_declarations(now_us, core.catalog.settings)

    def _drop(self, dropped: Dropped) -> None:
        """Stop what was dropped, when that is durable. Its files go later, when no epoch runs any more that may read
        them.
        """
        match dropped.kind:
            case _ if (dropped.kind, dropped.name.lower()) in self.quarantine:
                pass  # it does not run
            case "query" if dropped.name:
                gone = self.core.members.get(dropped.name) or self.core.loop.queries[dropped.name]
                self.found.left(gone)
                self.afterwards(partial(self._end_query, gone))
            case "group" if dropped.name in self.core.loop.groups:
                self.afterwards(partial(self._end_group, dropped.name))
            case "stream" | "relation" if dropped.name:
                self.afterwards(partial(self._end_stream, dropped.name))

    def _end_query(self, gone: RunningQuery) -> None:
        """Stop a query that is no longer in the catalog."""
        for queries in (self.core.members, self.core.loop.queries):
            if queries.get(gone.name) is gone:
                del queries[gone.name]
        gone.close(DROP_SECONDS)
        self.core.loop.profiler.forget(gone.own, gone.name)
        self.core.loop.scheduler.forget(gone.name)
        self.sharing.let_go()

    def _end_group(self, name: str) -> None:
        self.core.loop.groups.pop(name).close(DROP_SECONDS)

    def _end_stream(self, name: str) -> None:
        self.core.inputs.drop(name)
        self.core.asking.forget(name)

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
        """Set up a stream or relation and connect its source."""
        self.undo.callback(self._end_stream, stream.name)
        self.core.inputs.add(stream)
        self.core.inputs.connect(stream)

    # queries

    def add_query(self, query: Query, folder: str | None = None) -> None:
        """Let a query run; `folder` has its files if it ran before a restart.

        One of many that differ in constants runs as a member of a family.
        """
        core = self.core
        if not core.clock.standing:
            self.system.open_for(query)
            if query.skips and not core.workspaces.walled:
                raise UserError(
                    "no-skip",
                    f'query "{query.name}" cannot skip errors over Spark Connect',
                    detail="What tries an expression is reached in Spark's own process only.",
                    hint="Leave ON ERROR SKIP out, and write TRY_CAST, TRY_ADD and the like.",
                )
            if self.found.took(query):
                return
        query = self.found.alone(query)
        if core.catalog.owner_of_errors(query.name) is not None:
            query = replace(query, sharing=False)  # it comes in one line of the journal with the other
        relations = {relation.name for relation in core.catalog.relations.values()}
        read = {source.name for source in sources(query.plan)}
        whole = frozenset(relations & read)
        start = self.start(query, sorted(read - whole))
        directory = core.directory / "queries" / (folder or fresh_folder(core.directory / "queries", query.name))
        with writing(directory):
            directory.mkdir(parents=True, exist_ok=True)
        self.refuse_partial(whole)
        self.undo.callback(self.sharing.let_go)
        fragments = self.sharing.fragments(query, directory, start, whole)
        outbox = self.outbox(query, directory)
        running = RunningQuery(query, fragments, outbox, core.catalog, self.reason, core.wake.set, core.loop.having)
        core.loop.queries[query.name] = running
        self.undo.callback(self._end_query, running)

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
            self.undo.callback(self._end_group, group.name)
        self.afterwards(partial(self._keep_results, queries))

    def _keep_results(self, queries: Iterable[RunningQuery]) -> None:
        """Let queries of a group keep their results: nobody prints them any more."""
        for query in queries:
            if not query.outbox.kept:
                query.outbox.sink, query.outbox.kept = MemorySink(), True
        self.core.wake.set()

    def _replace_query(self, query: Query, before: Query) -> None:
        """End the old query where it is and let the new one begin there."""
        is_member = before.name in self.core.members
        old = (self.core.members if is_member else self.core.loop.queries).pop(before.name)

        def run_on() -> None:
            (self.core.members if is_member else self.core.loop.queries)[before.name] = old
            old.courier.go_on()

        self.undo.callback(run_on)
        old.courier.hold(DROP_SECONDS)  # both may write to the same place
        self.add_query(query)
        self.found.left(old)
        self.afterwards(partial(self._end_query, old))

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
