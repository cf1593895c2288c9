"""What the engine knows by name: streams, views, queries and settings.

Names are case-insensitive and kept as they were first written. The catalog only remembers; the binder gives it meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from headgate.errors import Place, UserError, nearest, quoted
from headgate.heartbeat.declared import Declarations
from headgate.permissions import EVERYTHING, Permissions

if TYPE_CHECKING:
    from headgate.heartbeat.scope import Scopes
    from headgate.plan.nodes import Node

Tick: TypeAlias = int
"""An instant of application time: microseconds since 1970 for TIMESTAMP time, units for integer time."""

Stamped: TypeAlias = Literal["external", "internal", "latent"]
"""Who stamps a tuple: its source, the engine on entry, or nobody, so that the order of arrival is all there is."""

Late: TypeAlias = Literal["keep", "drop", "fail"]
"""What becomes of a late tuple: kept with the dead letters, dropped and counted, or the batch is refused."""

Order: TypeAlias = Literal["increasing", "decreasing"]

UNLIMITED: Tick = 2**62
"""As a limit on timestamps in the future: there is none."""

MICROSECONDS_PER_UNIT = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}


def micros_per(unit: str) -> Fraction:
    """How many microseconds a unit of time has: of nanoseconds, a part of one."""
    return Fraction(1, 1_000) if unit == "NANOSECOND" else Fraction(MICROSECONDS_PER_UNIT[unit])


class TimeDomain(Enum):
    """The kind of instants a stream is stamped with, and the first of them."""

    INTEGER = "integer"
    TIMESTAMP = "timestamp"
    ARRIVAL = "arrival"
    """No time at all but the order in which tuples came, counted over all streams that have none."""

    def __str__(self) -> str:
        words = {"integer": "integer time", "timestamp": "TIMESTAMP time", "arrival": "no time but the order of arrival"}
        return words[self.value]

    @property
    def origin(self) -> Tick:
        """The first instant there is: 0, or 0001-01-01, the first timestamp Spark has."""
        return -62_135_596_800_000_000 if self is TimeDomain.TIMESTAMP else 0

    def moment(self, tick: Tick) -> Any:
        """A tick as the user knows it."""
        return tick if self is not TimeDomain.TIMESTAMP else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=tick)


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    order: Order | None = field(default=None, compare=False)
    """Of a base stream's column: its values never fall, or never rise, from one timestamp to a later one."""


@dataclass(frozen=True, slots=True)
class Connector:
    """Where rows come from or go to: a format and its options, as Spark names them."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    payload: Connector | None = None
    """What a column `value` holds, and the options to decode it: VALUE AS."""


def in_line(text: str, most: int = 100) -> str:
    """A text as one line, cut short: for `repr`."""
    plain = " ".join(text.split())
    return plain if len(plain) <= most else plain[: most - 3] + "..."


@dataclass(frozen=True, slots=True, repr=False)
class Stream:
    """A base stream: its columns, how it is stamped, which sources it holds, and what becomes of tuples that cannot be used."""

    name: str
    columns: tuple[Column, ...]
    domain: TimeDomain
    timestamp: str | None = None
    connector: Connector | None = None
    stamped: Stamped = "external"
    source: str | None = None
    """The column that names the source of a tuple: each has its own clock."""

    heartbeat: str | None = None
    """A column in which the source sends heartbeats of its own: a BOOLEAN marks rows that are nothing else, an instant stands
    beside the tuple."""

    late: Late = "keep"
    ahead: Tick | None = None
    """How far in the future a timestamp may lie; None: the default of its domain."""

    def __repr__(self) -> str:
        return in_line(f"Stream({self.name}: {', '.join(f'{column.name} {column.type}' for column in self.columns)})")

    def row_columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True, repr=False)
class Relation:
    """A base relation: fixed (no domain), or changing at instants that its rows carry.

    A changing relation takes rows put in and taken out; `change` names the column that says which.
    """

    name: str
    columns: tuple[Column, ...]
    domain: TimeDomain | None
    timestamp: str | None = None
    change: str | None = None
    growing: bool = False
    connector: Connector | None = None
    key: tuple[str, ...] = ()
    """Columns by which a row put in replaces the one that was there."""

    def __repr__(self) -> str:
        return in_line(f"Relation({self.name}: {', '.join(f'{column.name} {column.type}' for column in self.columns)})")

    def row_columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True, repr=False)
class View:
    name: str
    plan: Node

    def __repr__(self) -> str:
        return f"View({self.name})"


@dataclass(frozen=True, slots=True, repr=False)
class Query:
    """A continuous query: the user's text, the text with all defaults written out, its plans and where its answers go."""

    name: str
    text: str
    resolved: str
    bound: Node
    """What the text says."""

    plan: Node
    """The same rewritten: this one is run."""

    rules: tuple[str, ...] = ()
    """The rules that led from the one to the other."""

    connector: Connector | None = None
    heartbeats: Literal["query", "operator", "memory-aware"] = "query"
    """Where its plan is cut, and how far the parts run ahead of one another."""

    ordering: Literal["needed", "always"] = "needed"
    from_beginning: bool = False
    """It sees all that its streams still keep; otherwise what comes from when it is registered."""

    by_groups: tuple[Scopes, ...] = ()
    """It runs as one part for each group of sources: what each of them sees of its streams. Nothing: it runs as a whole."""

    def __repr__(self) -> str:
        return in_line(f"Query({self.name}: {self.text})")


@dataclass(frozen=True, slots=True, repr=False)
class Function:
    """A scalar function in SQL: the text of its body over its parameters."""

    name: str
    parameters: tuple[str, ...]
    body: str

    def __repr__(self) -> str:
        return in_line(f"Function({self.name}({', '.join(self.parameters)}): {self.body})")


@dataclass(frozen=True, slots=True)
class Settings:
    """What `SET name = value` can change. Each name and value is listed in `CHOICES`."""

    dialect: Literal["cql", "stream", "oracle"] = "cql"
    range: Literal["closed", "half-open"] = "closed"
    empty_aggregate: Literal["row", "no-row"] = "row"
    unit_seconds: Fraction = Fraction(1)
    timeout_us: int | None = None
    state: Literal["any", "bounded"] = "any"
    estimation: Literal["on", "off"] = "on"
    """Whether bounds are estimated where nothing is declared."""
    clock_unit_us: int = 1_000
    """How finely delays on the engine's clock are told apart."""
    heartbeats: Literal["query", "operator", "memory-aware"] = "query"
    """Where the plans of queries that are registered from now on are cut."""
    ordering: Literal["needed", "always"] = "needed"
    """Whether tuples of a query that needs no order are answered as they come."""
    epoch_rows: int = 1_000_000
    """About how many tuples an epoch takes at once."""
    flush_rows: int | None = None
    """How many results go to a sink at once; None: all of an epoch."""
    failed_after_us: int | None = None
    """How long an epoch may take, or a stream stand still while others go on, before it counts as failed; None: for ever."""


CHOICES = {
    "dialect": ("cql", "stream", "oracle"),
    "range": ("closed", "half-open"),
    "empty_aggregate": ("row", "no-row"),
    "state": ("any", "bounded"),
    "estimation": ("on", "off"),
    "heartbeats": ("query", "operator", "memory-aware"),
    "ordering": ("needed", "always"),
}


READINGS = {
    "cql": {"range": "closed", "empty_aggregate": "row"},
    "stream": {"range": "half-open", "empty_aggregate": "no-row"},
    "oracle": {"range": "half-open", "empty_aggregate": "row"},
}
"""What the dialects mean where they differ. In Stanford's prototype, `A UNION B` on bare names is a union of bags besides."""


class Catalog:
    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}
        self.relations: dict[str, Relation] = {}
        self.views: dict[str, View] = {}
        self.queries: dict[str, Query] = {}
        self.functions: dict[str, Function] = {}
        self.aggregates: set[str] = set()
        """Names of functions from outside that are aggregates: without it they would pass for scalar ones."""
        self.outside: set[str] = set()
        """Names of functions in Python that were registered with the engine."""
        self.closed = False
        """Whether no other function than Spark's own and those known here can be called; otherwise Spark decides."""
        self.permissions: Permissions | None = EVERYTHING
        """What texts may use; None: statements of before a restart, which were allowed when they were said."""
        self.settings = Settings()
        self.declarations = Declarations()
        """What was declared about clocks and delays, of streams and relations by their names as first written."""
        self.pending: tuple[Any, str] | None = None
        """A query without a name yet, with the text it stands in: `vquery` of the prototype's scripts."""

    def of_kind(self, kind: str) -> dict[str, Any]:
        """Everything known of a kind: stream, relation, view, query or function."""
        tables: dict[str, dict[str, Any]] = {
            "stream": self.streams, "relation": self.relations, "view": self.views, "query": self.queries,
            "function": self.functions,
        }  # fmt: skip
        return tables[kind]

    def listed_settings(self) -> list[tuple[str, str, str]]:
        """Each setting with its value and the values it can have."""
        chosen = [(key, str(getattr(self.settings, key)), ", ".join(values)) for key, values in CHOICES.items()]
        clock_unit = f"{self.settings.clock_unit_us / 1_000_000:g} seconds"
        unit = f"{self.settings.unit_seconds} seconds"
        rest = [
            ("time_unit", unit),
            ("clock_unit", clock_unit),
            ("timeout", _seconds(self.settings.timeout_us)),
            ("epoch_rows", str(self.settings.epoch_rows)),
            ("flush_rows", str(self.settings.flush_rows or "none")),
            ("failed_after", _seconds(self.settings.failed_after_us)),
        ]
        return [*chosen, *((key, value, "") for key, value in rest)]

    def names(self) -> list[str]:
        named: list[Stream | Relation | View] = [*self.streams.values(), *self.relations.values(), *self.views.values()]
        return [thing.name for thing in named]

    def add(self, thing: Stream | Relation | View | Query, place: Place | None = None) -> None:
        key = thing.name.lower()
        if any(key in known for known in (self.streams, self.relations, self.views, self.queries)):
            raise UserError("name-taken", f'name "{thing.name}" is taken', place=place)
        match thing:
            case Stream():
                self.streams[key] = thing
            case Relation():
                self.relations[key] = thing
            case View():
                self.views[key] = thing
            case Query():
                self.queries[key] = thing

    def add_function(self, function: Function) -> None:
        self.functions[function.name.lower()] = function

    def has_source(self, name: str) -> bool:
        return any(name.lower() in known for known in (self.streams, self.relations, self.views))

    def source(self, name: str, place: Place | None = None) -> Stream | Relation | View:
        """The stream, relation or view of that name."""
        key = name.lower()
        found = self.streams.get(key) or self.relations.get(key) or self.views.get(key)
        if found is not None:
            return found
        detail = f"There are {quoted(self.names())}." if self.names() else "No stream or view is defined."
        raise UserError(
            "no-such-stream", f'stream "{name}" does not exist', place=place, detail=detail, hint=nearest(name, self.names())
        )

    def stream(self, name: str, place: Place | None = None) -> Stream:
        if name.lower() in self.streams:
            return self.streams[name.lower()]
        raise unknown("stream", name, (stream.name for stream in self.streams.values()), place)

    def only_stream(self, name: str, what: str, place: Place | None = None) -> Stream:
        """The stream of that name, for `what` only streams have: a relation or view of that name is not taken for one."""
        for kind, known in (("relation", self.relations), ("view", self.views)):
            if name.lower() in known:
                hint = "Name a stream that it reads." if kind == "view" else ""
                raise UserError("wrong-kind", f'"{name}" is a {kind}, and {what} needs a stream', place=place, hint=hint)
        return self.stream(name, place)

    def late_of(self, stream: Stream) -> Stream:
        """The dead letters of a stream as a stream: its columns, why each was not taken and by how much it was too late."""
        stamp = "TIMESTAMP" if stream.domain is TimeDomain.TIMESTAMP else "BIGINT"
        about = (("_reason", "STRING"), ("_behind", "BIGINT"), ("_timestamp", stamp), ("_raw", "STRING"))
        own = (replace(column, order=None) for column in stream.columns)  # they are here because they came out of order
        columns = (*own, *(Column(name, kind) for name, kind in about))
        return Stream(late_name(stream.name), columns, stream.domain, source=stream.source)

    def query(self, name: str, place: Place | None = None) -> Query:
        if name.lower() in self.queries:
            return self.queries[name.lower()]
        raise unknown("query", name, (query.name for query in self.queries.values()), place)

    def set(self, name: str, value: str, place: Place | None = None) -> None:
        key = name.lower()
        if key == "time_unit":
            self.settings = replace(self.settings, unit_seconds=_unit_us(value, place) / 1_000_000)
            return
        if key == "clock_unit":
            micros = _unit_us(value, place)
            if micros.denominator != 1:
                raise UserError("bad-setting", f'"{value}" is not a whole number of microseconds', place=place)
            self.settings = replace(self.settings, clock_unit_us=int(micros))
            return
        if key == "epoch_rows":
            self.settings = replace(self.settings, epoch_rows=_count(value, "tuples", "SET epoch_rows = 1000000", place))
            return
        if key == "flush_rows":
            most = None if value.lower() == "none" else _count(value, "results", "SET flush_rows = 100000, or 'none'", place)
            self.settings = replace(self.settings, flush_rows=most)
            return
        if key == "failed_after":
            length = None if value.lower() == "none" else max(int(_unit_us(value, place)), 1)
            self.settings = replace(self.settings, failed_after_us=length)
            return
        if key not in CHOICES:
            known = (*CHOICES, "time_unit", "clock_unit", "epoch_rows", "flush_rows", "failed_after")
            raise unknown("setting", name, known, place)
        if value.lower() not in CHOICES[key]:
            detail = f"Values are {quoted(CHOICES[key])}."
            raise UserError(
                "bad-setting", f'setting "{name}" has no value "{value}"', place=place, detail=detail,
                hint=nearest(value, CHOICES[key]),
            )  # fmt: skip
        chosen = {key: value.lower(), **(READINGS[value.lower()] if key == "dialect" else {})}
        self.settings = replace(self.settings, **chosen)  # type: ignore[arg-type]

    def exact_ticks(self, amount: str, unit: str | None, domain: TimeDomain, place: Place | None = None) -> Fraction:
        """A length of time in ticks and parts of them. Without a unit: ticks of integer time, seconds of TIMESTAMP time."""
        length = Fraction(amount)
        if unit == "TICK" or (unit is None and domain is not TimeDomain.TIMESTAMP):
            return length
        if domain is TimeDomain.ARRIVAL:
            raise UserError(
                "order-has-no-unit", f"the order of arrival has no {unit}S",
                place=place, hint=f"Write ROWS {amount}, or {amount} TICKS, which counts arrivals.",
            )  # fmt: skip
        micros = length * micros_per(unit or "SECOND")
        return micros if domain is TimeDomain.TIMESTAMP else micros / 1_000_000 / self.settings.unit_seconds

    def ticks(self, amount: str, unit: str | None, domain: TimeDomain, place: Place | None = None) -> Tick:
        """A length of time in ticks, of which it must be a whole number."""
        ticks, written = self.exact_ticks(amount, unit, domain, place), f"{amount} {unit + 'S' if unit else ''}".strip()
        if ticks >= UNLIMITED:
            raise UserError(
                "too-large", f"{written} is longer than time itself", place=place,
                detail=f"The longest is {UNLIMITED - 1} {'microseconds' if domain is TimeDomain.TIMESTAMP else 'units of time'}.",
                hint="Write UNBOUNDED if nothing is to end it.",
            )  # fmt: skip
        if ticks.denominator != 1:
            raise self._not_whole(ticks, written, unit, domain, place)
        return int(ticks)

    def _not_whole(self, ticks: Fraction, written: str, unit: str | None, domain: TimeDomain, place: Place | None) -> UserError:
        message = f"{written} is not a whole number of time units"
        if domain is TimeDomain.TIMESTAMP:
            hint = f"Write {round(ticks)} MICROSECONDS." if ticks > 1 else "Write 1 MICROSECOND, or [NOW]."
            return UserError("not-whole-ticks", message, place=place, detail="Time is counted in microseconds.", hint=hint)
        if unit in (None, "TICK"):
            detail = "Integer time has no instants between two units."
            return UserError(
                "not-whole-ticks", message, place=place, detail=detail, hint=f"Write {int(ticks)} or {int(ticks) + 1}."
            )
        return UserError(
            "not-whole-ticks", message, place=place, detail=f"One unit of time is {self.settings.unit_seconds} s.",
            hint=f"SET time_unit = '1 {unit.lower() if unit is not None else 'second'}'; or write a number without a unit.",
        )  # fmt: skip


def late_name(stream: str) -> str:
    """What the stream of a stream's dead letters is called."""
    return f"late({stream})"


def _unit_us(value: str, place: Place | None) -> Fraction:
    """A setting such as '10 milliseconds', in microseconds."""
    amount, _, unit = value.strip().partition(" ")
    named = unit.strip().upper().removesuffix("S")
    micros = micros_per(named) if named in (*MICROSECONDS_PER_UNIT, "NANOSECOND") else None
    if micros is None or not amount.replace(".", "", 1).isdigit() or not Fraction(amount):
        raise UserError("bad-setting", f'"{value}" is not a length of time', place=place, hint="Write '1 minute'.")
    return Fraction(amount) * micros


def _count(value: str, what: str, hint: str, place: Place | None) -> int:
    if not value.isdigit() or not int(value):
        raise UserError("bad-setting", f'"{value}" is not a number of {what}', place=place, hint=hint)
    return int(value)


def _seconds(length_us: int | None) -> str:
    return "none" if length_us is None else f"{length_us / 1_000_000:g} seconds"


def unknown(kind: str, name: str, known: Iterable[str], place: Place | None = None) -> UserError:
    names = sorted(known)
    detail = f"There are {quoted(names)}." if names else f"No {kind} is defined."
    return UserError(f"no-such-{kind}", f'{kind} "{name}" does not exist', place=place, detail=detail, hint=nearest(name, names))
