"""What the engine knows by name: streams, relations, views, queries, groups, functions and settings.

Names are case-insensitive and kept as they were first written. The catalog only remembers; the binder gives texts their
meaning.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias
from urllib.parse import quote

from headgate.catalog.declarations import Declarations
from headgate.catalog.entries import (
    Function,
    Group,
    Quarantined,
    Query,
    Relation,
    Stream,
    View,
    errors_name,
    late_name,
)
from headgate.catalog.protocols import InterfaceSet, ParameterValue, Protocol
from headgate.catalog.system import entries, is_system, only_read, refuse_if_system, unknown_system
from headgate.errors import Place, UserError, nearest, quoted, unknown
from headgate.permissions import EVERYTHING, Permissions
from headgate.plan.nodes import Constraint
from headgate.settings import Settings, changed
from headgate.sql import BIGINT, STRING, Column, Sql
from headgate.ticks import UNLIMITED, Tick, TimeDomain, micros_per

State: TypeAlias = Mapping[str, Any]
"""What a catalog knows at a moment: shallow copies, since entries are frozen."""

NOT_DEFINED = ("system", "permissions", "shapes", "session_functions")
"""What no statement defines: it is always there, says who asks, or is kept to save time."""

LONGEST_NAME = 255
"""So many bytes may a name have where it is the name of a folder: file systems take no more."""


def refuse_long_name(name: str, place: Place | None = None) -> None:
    """Refuse a name that is too long for a folder, in which some letters take several bytes."""
    length = len(quote(name, safe="", errors="replace").replace(".", "%2E"))
    if length > LONGEST_NAME:
        raise UserError(
            "too-large",
            f'the name "{name[:20]}..." is too long',
            place=place,
            detail=f"As the name of a folder it has {length} bytes, and may have {LONGEST_NAME}.",
        )


class Catalog:
    """Everything that was defined, by name. It holds no data and starts nothing."""

    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}
        self.system: dict[str, Stream] = entries()
        """The streams in which the engine speaks of itself. They are always there, and users can only read them."""
        self.relations: dict[str, Relation] = {}
        self.views: dict[str, View] = {}
        self.queries: dict[str, Query] = {}
        self.groups: dict[str, Group] = {}
        self.functions: dict[str, Function] = {}
        self.constraints: dict[str, Constraint] = {}
        self.protocols: dict[str, Protocol] = {}
        """Schemas of GSQL, which streams on interfaces have."""
        self.interface_sets: dict[str, InterfaceSet] = {}
        self.parameters: dict[str, ParameterValue] = {}
        """The parameters of queries, by query and name in lower case: `q.least`."""
        self.aggregates: set[str] = set()
        """Names of functions from outside that are aggregates. All others are taken for scalar functions."""
        self.outside: set[str] = set()
        """Names of functions in Python that were registered with the engine."""
        self.session_functions: Container[str] = frozenset()
        """Functions that the user has registered with the Spark session. Restricted texts may not call them."""
        self.permissions: Permissions | None = EVERYTHING
        """What texts may use; None while statements of before a restart are read, which were allowed at the time."""
        self.settings = Settings()
        self.declarations = Declarations()
        """Declarations about clocks and delays of streams and relations, by their names as first written."""
        self.shapes: dict[Any, Query] = {}
        """By shape and by what was allowed: a query that was bound, whose plans others of the shape can have too."""
        self.quarantine: dict[tuple[str, str], Quarantined] = {}
        """What was defined and cannot be read or run any more, by kind and name in lower case."""
        self.pending: tuple[Any, str] | None = None
        """A query without a name yet, with the text it stands in: `vquery` of the prototype's scripts."""

    def state(self) -> State:
        """All that is defined and declared at this moment."""
        own = {name: value for name, value in vars(self).items() if name not in NOT_DEFINED}
        own["declarations"] = self.declarations.copied()
        return {name: value.copy() if isinstance(value, dict | set) else value for name, value in own.items()}

    def put_back(self, state: State) -> None:
        """Be again what it was at a moment."""
        declarations = self.declarations  # others hold it
        for name, value in state.items():
            setattr(self, name, value.copy() if isinstance(value, dict | set) else value)
        self.declarations = declarations
        declarations.become(state["declarations"])

    @contextmanager
    def undone_on_error(self) -> Iterator[State]:
        """Put everything back as it was if anything is raised in here, whatever it is; gives what was there before."""
        before = self.state()
        try:
            yield before
        except BaseException:
            self.put_back(before)
            raise

    def of_kind(self, kind: str) -> dict[str, Any]:
        """Everything known of a kind (stream, relation, view, query, group, function or constraint), by name."""
        tables: dict[str, dict[str, Any]] = {
            "stream": self.streams,
            "relation": self.relations,
            "view": self.views,
            "query": self.queries,
            "group": self.groups,
            "function": self.functions,
            "constraint": self.constraints,
        }
        return tables[kind]

    def names(self) -> list[str]:
        """The names of all streams, relations and views, as they were first written."""
        named: list[Stream | Relation | View] = [*self.streams.values(), *self.relations.values(), *self.views.values()]
        return [thing.name for thing in named]

    def add(self, thing: Stream | Relation | View | Query | Group, place: Place | None = None) -> None:
        """Remember a stream, relation, view, query or group; an error if its name is taken."""
        key = thing.name.lower()
        refuse_if_system(thing.name, place)
        if self.permissions is not None:  # what was there before a restart stays
            refuse_long_name(thing.name, place)
        if any(key in known for known in (self.streams, self.relations, self.views, self.queries, self.groups)):
            raise UserError("name-taken", f'name "{thing.name}" is taken', place=place)
        own = type(thing).__name__.lower()
        held = self.in_quarantine(thing.name)
        if held is not None and held.kind != own:
            raise UserError("name-taken", f'name "{thing.name}" is taken', place=place, detail=held.error().message)
        self.quarantine.pop((own, key), None)
        match thing:
            case Stream():
                self.streams[key] = thing
            case Relation():
                self.relations[key] = thing
            case View():
                self.views[key] = thing
            case Query():
                self.queries[key] = thing
            case Group():
                self.groups[key] = thing

    def in_quarantine(
        self, name: str, kinds: Iterable[str] = ("stream", "relation", "view", "query", "group")
    ) -> Quarantined | None:
        """What is in quarantine by that name."""
        return next((held for kind in kinds if (held := self.quarantine.get((kind, name.lower())))), None)

    def groups_of(self, query: str) -> list[str]:
        """The groups that a query belongs to."""
        return [group.name for group in self.groups.values() if query.lower() in map(str.lower, group.queries)]

    def add_function(self, function: Function) -> None:
        """Remember a function in SQL; it replaces one of that name."""
        self.quarantine.pop(("function", function.name.lower()), None)
        self.functions[function.name.lower()] = function

    def forget_parameters(self, query: str) -> None:
        """Forget the parameters of a query that is gone."""
        self.parameters = {name: one for name, one in self.parameters.items() if one.query.lower() != query.lower()}

    def has_source(self, name: str) -> bool:
        """True if a stream, relation or view has this name, or a query that was written in GSQL."""
        known = (self.streams, self.relations, self.views, self.system)
        return any(name.lower() in some for some in known) or self._readable(name) is not None

    def is_readable_query(self, name: str) -> bool:
        """True if this is the name of a query that others can read."""
        return self._readable(name) is not None

    def _readable(self, name: str) -> View | None:
        """The query of that name as a view, if it was written in GSQL, in which queries read each other."""
        query = self.queries.get(name.lower())
        return View(query.name, query.bound, query.gsql) if query is not None and query.gsql is not None else None

    def source(self, name: str, place: Place | None = None) -> Stream | Relation | View:
        """The stream, relation or view of that name, or a query written in GSQL; an error if there is none."""
        key = name.lower()
        found = self.streams.get(key) or self.relations.get(key) or self.views.get(key) or self._readable(name)
        found = found or self.system.get(key)
        if found is not None:
            return found
        if is_system(name):
            raise unknown_system(name, place)
        if (held := self.in_quarantine(name)) is not None:
            raise held.error(place)
        names = [*self.names(), *(query.name for query in self.queries.values() if query.gsql is not None)]
        detail = f"There are {quoted(names)}." if names else "No stream or view is defined."
        raise UserError(
            "no-such-stream", f'stream "{name}" does not exist', place=place, detail=detail, hint=nearest(name, names)
        )

    def stream(self, name: str, place: Place | None = None) -> Stream:
        """The stream of that name; an error if there is none."""
        if name.lower() in self.streams:
            return self.streams[name.lower()]
        if name.lower() in self.system:
            raise only_read(self.system[name.lower()].name, place)
        if (held := self.in_quarantine(name)) is not None:
            raise held.error(place)
        raise unknown("stream", name, (stream.name for stream in self.streams.values()), place)

    def only_stream(self, name: str, what: str, place: Place | None = None) -> Stream:
        """The stream of that name, for something that only streams have.

        A relation or view of that name is an error that says so: `what` names what was asked of it.
        """
        for kind, known in (("relation", self.relations), ("view", self.views)):
            if name.lower() in known:
                hint = "Name a stream that it reads." if kind == "view" else ""
                raise UserError(
                    "wrong-kind", f'"{name}" is a {kind}, and {what} needs a stream', place=place, hint=hint
                )
        return self.stream(name, place)

    def late_of(self, stream: Stream) -> Stream:
        """The dead letters of a stream as a stream: its columns, why each row was not taken, and by how much it was
        late.
        """
        stamp = Sql("TIMESTAMP") if stream.domain is TimeDomain.TIMESTAMP else BIGINT
        about = (("_reason", STRING), ("_behind", BIGINT), ("_timestamp", stamp), ("_raw", STRING))
        own = (
            replace(column, order=None, check=None) for column in stream.columns
        )  # some are here because they break it
        columns = (*own, *(Column(name, kind) for name, kind in about))
        return Stream(late_name(stream.name), columns, stream.domain, source=stream.source)

    def logs_of(self, stream: Stream | Relation) -> dict[str, tuple[Column, ...]]:
        """The columns that each log of a stream or relation holds, by the log's name: its own, and its dead letters'.

        Rows have the instant `_t` and the order of arrival `_s` beside their columns, those of a relation also `_n`,
        put in or taken out.
        """
        sign = (Column("_n", BIGINT),) if isinstance(stream, Relation) else ()
        stamps = (Column("_t", BIGINT), Column("_s", BIGINT))
        logs = {stream.name: (*stream.columns, *sign, *stamps)}
        if isinstance(stream, Stream):
            late = self.late_of(stream)
            logs[late.name] = (*late.columns, *stamps)
        return logs

    def query(self, name: str, place: Place | None = None) -> Query:
        """The query of that name; an error if there is none."""
        if name.lower() in self.queries:
            return self.queries[name.lower()]
        if (held := self.in_quarantine(name, ("query",))) is not None:
            raise held.error(place)
        raise unknown("query", name, (query.name for query in self.queries.values()), place)

    def owner_of_errors(self, query: str) -> str | None:
        """The query that leaves out what this one keeps; None if this one is none that the engine has made for that."""
        owners = (one.name for one in self.queries.values() if one.left_out)
        return next((name for name in owners if errors_name(name).lower() == query.lower()), None)

    def set(self, name: str, value: str, place: Place | None = None) -> None:
        """Carry out `SET name = 'value'`."""
        self.settings = changed(self.settings, name, value, place)
        self.quarantine.pop(("setting", name.lower()), None)

    def exact_ticks(self, amount: str, unit: str | None, domain: TimeDomain, place: Place | None = None) -> Fraction:
        """A length of time in ticks, as a fraction.

        Without a unit it counts ticks of integer time, or seconds of TIMESTAMP time.
        """
        length = Fraction(amount)
        if unit == "TICK" or (unit is None and domain is not TimeDomain.TIMESTAMP):
            return length
        if domain is TimeDomain.ARRIVAL:
            raise UserError(
                "order-has-no-unit",
                f"the order of arrival has no {unit}S",
                place=place,
                hint=f"Write ROWS {amount}, or {amount} TICKS, which counts arrivals.",
            )
        micros = length * micros_per(unit or "SECOND")
        return micros if domain is TimeDomain.TIMESTAMP else micros / 1_000_000 / self.settings.unit_seconds

    def ticks(self, amount: str, unit: str | None, domain: TimeDomain, place: Place | None = None) -> Tick:
        """A length of time in ticks; an error if it is no whole number of them."""
        ticks, written = self.exact_ticks(amount, unit, domain, place), f"{amount} {unit + 'S' if unit else ''}".strip()
        if ticks >= UNLIMITED:
            raise UserError(
                "too-large",
                f"{written} is longer than time itself",
                place=place,
                detail=f"The longest is {UNLIMITED - 1} "
                f"{'microseconds' if domain is TimeDomain.TIMESTAMP else 'units of time'}.",
                hint="Write UNBOUNDED if nothing is to end it.",
            )
        if ticks.denominator != 1:
            raise self._not_whole(ticks, written, unit, domain, place)
        return int(ticks)

    def _not_whole(
        self, ticks: Fraction, written: str, unit: str | None, domain: TimeDomain, place: Place | None
    ) -> UserError:
        message = f"{written} is not a whole number of time units"
        if domain is TimeDomain.TIMESTAMP:
            hint = f"Write {round(ticks)} MICROSECONDS." if ticks > 1 else "Write 1 MICROSECOND, or [NOW]."
            return UserError(
                "not-whole-ticks", message, place=place, detail="Time is counted in microseconds.", hint=hint
            )
        if unit in (None, "TICK"):
            detail = "Integer time has no instants between two units."
            return UserError(
                "not-whole-ticks", message, place=place, detail=detail, hint=f"Write {int(ticks)} or {int(ticks) + 1}."
            )
        return UserError(
            "not-whole-ticks",
            message,
            place=place,
            detail=f"One unit of time is {self.settings.unit_seconds} s.",
            hint=f"SET time_unit = '1 {unit.lower() if unit is not None else 'second'}'; or write a number without a "
            "unit.",
        )
