"""How an engine goes on after a restart, however the one before it ended.

    resume             read the journal: apply every fact, then connect sources and queries, check and tidy their files;
                       what cannot be read, set up or found whole is put into quarantine (`quarantine`)
    checkpoint_facts   the shortest list of facts that leads to where the engine is now
    sweep              delete the folders of what is not known any more

While facts are applied, the engine's clock stands at the instants at which they became facts. Statements are carried
out again, but queries and sources are set up only at the end, and only those that are left.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import groupby
from typing import Any, assert_never

from headgate.catalog.catalog import Catalog
from headgate.catalog.declarations import Sensors
from headgate.catalog.entries import Group, Query, Relation, Stream, late_name
from headgate.compile import compile_script
from headgate.cql import constraints
from headgate.cql.definitions import Altered, Definition, Dropped
from headgate.engine.core import Core
from headgate.engine.facts import (
    SUBJECT,
    AggregateRegistered,
    EngineFact,
    Finished,
    HeartbeatsSaved,
    MemberJoined,
    MemberLeft,
    ParameterChanged,
    Paused,
    Punctuated,
    Resumed,
    SensorsDeclared,
    Statement,
    SystemClosed,
    SystemOpened,
    read_fact,
)
from headgate.engine.parameters import apply_parameter, parameter_facts
from headgate.engine.registry import Registry
from headgate.engine.sharing import FOLDER
from headgate.engine.statements import words_again
from headgate.engine.stream_statements import apply_sensors, apply_time_fact
from headgate.errors import UserError
from headgate.log.journal import Fact
from headgate.plan.nodes import sources
from headgate.spark.failures import check_alive, concerns_all

KINDS = ("stream", "relation", "view", "query", "group", "function", "constraint")


def resume(registry: Registry) -> bool:
    """Go on where the engine before this one was; False if there was none. If that fails, the directory is given back.

    What the journal holds was allowed when it was said, so permissions count only from here on.
    """
    try:
        resumed = _resume(registry)
    except BaseException:
        registry.core.lock.release()
        raise
    registry.core.catalog.permissions = registry.core.permissions
    return resumed


def _resume(registry: Registry) -> bool:
    core, reading = registry.core, _Reading(registry)
    core.journal.subjects[SUBJECT] = reading.apply
    if not core.journal.read():
        return False
    reading.check_inputs()
    for inlet in core.inputs.inlets.values():
        core.inputs.reconnect(inlet.stream)
    reading.set_up()
    registry.quarantine.keep_waiting(core.journal.waiting)
    registry.low_level.refresh()
    core.journal.waiting = {}
    core.clock.go_on()
    core.heartbeats.enabling.set_date(core.clock.date_us(), core.clock.now_us())
    _promise_again(core)
    core.heartbeats.listen_again(core.clock.now_us())
    sweep(registry)
    return True


def _promise_again(core: Core) -> None:
    """Streams are complete as far as queries have answered: what comes below that is late, as before the restart."""
    for query in core.programs():
        for fragment in query.fragments:
            for stream in fragment.part.streams if fragment.begun else ():
                core.heartbeats.promise(stream, fragment.after, fragment.part.scopes.get(stream), again=True)


class _Reading:
    """Applies the facts of the journal in their order."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.core = registry.core
        self.queries: dict[str, tuple[Query, str | None]] = {}
        """The queries that are registered and not dropped so far, each with the folder of its files."""
        self.groups: dict[str, tuple[Group, str | None]] = {}
        """The groups that are registered and not dropped so far, each with the folder of its files."""
        self.of_streams: dict[str, list[dict[str, Any]]] = {}
        """The facts about each stream besides its statements."""
        self.joined: dict[tuple[str, int], MemberJoined] = {}
        """The members of families that were found, by the folder of the family and their numbers."""

    def apply(self, what: dict[str, Any]) -> None:
        """Apply a fact; what cannot be applied is put into quarantine."""
        quarantine = self.registry.quarantine
        try:
            fact = read_fact(what)
        except UserError as error:
            quarantine.keep(what, None, error)
            return
        if isinstance(fact, Statement):
            with self._or_quarantine(lambda error: self._hold(fact, error)):
                self.core.clock.stand_at(fact.now)
                self.carry_out_again(fact)
        elif (held := quarantine.about(fact)) is not None:
            quarantine.keep(what, held)
        else:
            if (stream := getattr(fact, "stream", None)) is not None:
                self.of_streams.setdefault(stream, []).append(what)
            with self._or_quarantine(lambda error: quarantine.keep(what, None, error)):
                self._apply(fact)

    @contextmanager
    def _or_quarantine(self, put: Callable[[Exception], None]) -> Iterator[None]:
        """What fails in here leaves nothing behind, and goes into quarantine. What concerns all is raised."""
        try:
            with self.registry.undone_on_error():
                yield
            self.registry.follow()
        except Exception as error:
            check_alive(self.core.spark, error)
            if isinstance(error, UserError) and concerns_all(error):
                raise
            put(error)
        self.registry.quarantine.let_go(dropped=True)

    def _hold(self, statement: Statement, error: Exception) -> None:
        """Put a statement into quarantine, and what it had defined before."""
        kind, name = self.registry.quarantine.put(statement, error)
        self._take_out(kind, name, error)

    def _take_out(self, kind: str, name: str, error: Exception) -> None:
        """Take something out of the catalog and of what runs: it is in quarantine, and so is what depends on it."""
        catalog, quarantine = self.core.catalog, self.registry.quarantine
        known = catalog.of_kind(kind).pop(name, None) if kind in KINDS else None
        if known is None:
            return
        quarantine.take((kind, name), error)
        if kind == "query":
            catalog.forget_parameters(known.name)
            self.queries.pop(known.name, None)
        elif kind == "group":
            self.groups.pop(known.name, None)
        elif kind in ("stream", "relation"):
            facts = self.core.inputs.facts_of(known.name)
            quarantine.keep_subjects((kind, name), facts)
            for subject, _ in facts:  # what comes behind it waits, and is kept too
                self.core.journal.subjects.pop(subject)
            for what in self.of_streams.pop(known.name, ()):
                quarantine.keep(what, (kind, name))
            for other, depending in dependents(known.name, catalog):
                self._take_out(other, depending, catalog.quarantine[kind, name].error())
            catalog.declarations.forget(known.name)
            self.core.inputs.drop(known.name)

    def check_inputs(self) -> None:
        """Put streams and relations into quarantine of which a file is missing or cut short."""
        for inlet in list(self.core.inputs.inlets.values()):
            kind = "relation" if isinstance(inlet.stream, Relation) else "stream"
            with self._or_quarantine(lambda error: self._take_out(kind, inlet.stream.name.lower(), error)):  # noqa: B023
                self.core.inputs.check_files(inlet)

    def set_up(self) -> None:
        """Let the queries and groups run that are left, each with its files whole."""
        registry, core = self.registry, self.core
        for joined in list(self.joined.values()):
            if joined.query not in self.queries:
                self.joined.pop((joined.family, joined.number))
                registry.quarantine.keep_member(joined)
        for family, members in groupby(sorted(self.joined.values(), key=_by_family), lambda one: one.family):
            self._set_up_family(family, list(members))
        in_families = {one.query for one in self.joined.values()}
        for query, folder in [one for name, one in self.queries.items() if name not in in_families]:
            with self._or_quarantine(lambda error: self._take_out("query", query.name.lower(), error)):  # noqa: B023
                registry.add_query(query, folder)
                core.loop.queries[query.name].check_files()
                registry.sharing.check_files(core.loop.queries[query.name])
        for group, folder in list(self.groups.values()):
            with self._or_quarantine(lambda error: self._take_out("group", group.name.lower(), error)):  # noqa: B023
                registry.add_group(group, folder)

    def _set_up_family(self, folder: str, members: list[MemberJoined]) -> None:
        """Let the members of a family run; if one cannot, none does."""

        def put(error: Exception) -> None:
            for one in members:
                self._take_out("query", one.query.lower(), error)
                self.joined.pop((one.family, one.number))
                self.registry.quarantine.keep_member(one)

        with self._or_quarantine(put):
            family = self.registry.found.go_on(self.queries, members)
            family.check_files()

    def _apply(self, fact: EngineFact) -> None:
        match fact:
            case Statement():
                self.carry_out_again(fact)
            case MemberJoined(family=family, number=number):
                self.joined[family, number] = fact
            case MemberLeft(family, number):
                self.joined.pop((family, number), None)
            case SensorsDeclared():
                apply_sensors(self.core, fact)
            case AggregateRegistered(function):
                self.core.catalog.aggregates.add(function)
            case SystemOpened():
                self.core.clock.stand_at(fact.now)
                self.registry.system.apply_opened(fact)
            case SystemClosed():
                self.registry.system.apply_closed(fact)
            case ParameterChanged():
                apply_parameter(self.core, fact)
            case HeartbeatsSaved(state, now_us):
                self.core.clock.stand_at(now_us)
                self.core.heartbeats.restore(state, self.core.catalog)
            case Paused() | Resumed() | Finished() | Punctuated():
                self.core.clock.stand_at(fact.now)
                apply_time_fact(self.core, fact)
            case _:
                assert_never(fact)

    def carry_out_again(self, statement: Statement) -> None:
        """Carry out a statement on the catalog."""
        cql = words_again(statement, self.core.catalog)
        for definition in compile_script(cql, self.core.catalog, language=statement.language):
            self.define_again(definition, statement)
            self.registry.statements.recall(statement, definition)

    def define_again(self, definition: Definition, statement: Statement) -> None:
        """Do what the registry does, but leave queries and the sources of streams for the end."""
        match definition:
            case Stream() | Relation():
                self.core.inputs.add(definition, statement.folder)
            case Query() as query:
                self.define_query_again(query, statement)
            case Altered(Query() as query):
                self.define_query_again(query, statement)
            case Dropped("query", name):
                self.queries.pop(name, None)
            case Group() as group:
                self.groups[group.name] = group, statement.folder
            case Dropped("group", name):
                self.groups.pop(name, None)
            case _:
                self.registry.carry_out(definition)

    def define_query_again(self, query: Query, statement: Statement) -> None:
        if len(query.by_groups) != statement.groups:  # a version that knew no groups ran it as a whole
            query = self.core.catalog.queries[query.name.lower()] = replace(query, by_groups=())
        self.queries[query.name] = query, statement.folder


def dependents(stream: str, catalog: Catalog) -> list[tuple[str, str]]:
    """The kinds and names of what reads a stream or relation, or names it."""
    under = (stream.lower(), late_name(stream).lower())
    found = [("constraint", name.lower()) for name in constraints.naming(stream, catalog)]
    for kind in ("view", "query"):
        for name, one in catalog.of_kind(kind).items():
            if any(read.name.lower() in under for read in sources(one.plan)):
                found.append((kind, name))
    return found


def _by_family(one: MemberJoined) -> tuple[str, int]:
    return one.family, one.number


def checkpoint_facts(registry: Registry) -> Iterator[Fact]:
    """Give the facts of a checkpoint: those of the engine, then those of inputs, queries, groups and what is shared."""
    for fact in _engine_facts(registry):
        yield SUBJECT, fact.to_json()
    yield from registry.quarantine.facts()
    yield SUBJECT, HeartbeatsSaved(registry.core.heartbeats.save(), registry.core.clock.now_us()).to_json()
    known = set[str]()
    for subject, what in _subject_facts(registry):
        known.add(subject)
        yield subject, what
    yield from registry.quarantine.subject_facts(known)


def _subject_facts(registry: Registry) -> Iterator[Fact]:
    yield from registry.core.inputs.facts()
    for query in registry.core.programs():
        yield from query.facts()
    for group in registry.core.loop.groups.values():
        yield from group.facts()
    yield from registry.sharing.facts()


def _engine_facts(registry: Registry) -> Iterator[EngineFact]:
    core = registry.core
    for function in sorted(core.catalog.aggregates):
        yield AggregateRegistered(function)
    yield from registry.system.opened.values()
    yield from registry.statements.all
    yield from parameter_facts(core)
    yield from registry.found.facts()
    sensors = [
        (party.stream, party.source, found)
        for party, found in core.catalog.declarations.sensors.items()
        if party.source is not None  # those of a whole stream were declared by a statement
    ]
    for (stream, rate), members in groupby(sorted(sensors, key=_by_rate), lambda one: (one[0], one[2].rate)):
        yield SensorsDeclared(stream, {source: found.deviation for _, source, found in members}, rate)


def _by_rate(one: tuple[str, str, Sensors]) -> tuple[str, bool, Fraction]:
    return one[0], one[2].rate is not None, one[2].rate or Fraction(0)


def sweep(registry: Registry) -> None:
    """Delete the folders of streams, relations, queries and shared fragments that are not known any more."""
    core = registry.core
    own = {one for query in [*core.programs(), *core.members.values()] for one in query.folders()}
    own |= {group.outbox.directory for group in core.loop.groups.values()}
    known = core.inputs.folders() | {"queries": own, FOLDER: registry.sharing.folders()}
    held = registry.quarantine.folders()
    for kind, folders in known.items():
        there = core.directory / kind
        for folder in there.iterdir() if there.exists() else ():
            if folder not in folders and folder not in held:
                shutil.rmtree(folder, ignore_errors=True)
