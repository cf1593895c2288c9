"""The entries of a catalog: streams, relations, views, queries, groups and functions, each as the user defined it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal, TypeAlias

from headgate.catalog.protocols import Gsql
from headgate.errors import Place, UserError
from headgate.masking import masked
from headgate.plan.left_out import LeftOut
from headgate.plan.nodes import Node
from headgate.scope import Scopes
from headgate.settings import Level, Method, TokenPeriod
from headgate.sql import Column, Sql, signature
from headgate.table import paragraphs, words
from headgate.ticks import Tick, TimeDomain

Stamped: TypeAlias = Literal["external", "internal", "latent"]
"""Who stamps a tuple: its source, the engine on entry, or nobody, so that the order of arrival is all there is."""

Late: TypeAlias = Literal["keep", "drop", "fail"]
"""What becomes of a late tuple: kept with the dead letters, dropped and counted, or the batch is refused."""


@dataclass(frozen=True, slots=True)
class Connector:
    """Where rows come from or go to: a format and its options, as Spark names them."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    payload: Connector | None = None
    """The format of the column `value` and the options to decode it, after VALUE AS."""


def in_line(text: str, most: int = 100) -> str:
    """A text as one line, cut short, for `repr`."""
    plain = " ".join(text.split())
    return plain if len(plain) <= most else plain[: most - 3] + "..."


@dataclass(frozen=True, slots=True, repr=False)
class Stream:
    """A base stream: its columns, how it is stamped, which sources it holds, and what becomes of tuples that cannot be
    used.
    """

    name: str
    columns: tuple[Column, ...]
    domain: TimeDomain
    timestamp: str | None = None
    connector: Connector | None = None
    stamped: Stamped = "external"
    source: str | None = None
    """The column that names the source of a tuple: each has its own clock."""

    heartbeat: str | None = None
    """A column in which the source sends heartbeats of its own: a BOOLEAN marks rows that are nothing else, an instant
    stands beside the tuple."""

    late: Late = "keep"
    ahead: Tick | None = None
    """How far in the future a timestamp may lie; None: the default of its domain."""

    protocol: str | None = None
    """The protocol of GSQL whose tuples it has, in lower case."""

    def __repr__(self) -> str:
        return in_line(f"Stream({self.name}: {signature(self.columns)})")

    def _repr_html_(self) -> str:
        used = {self.timestamp: "its timestamp", self.source: "names its source", self.heartbeat: "its heartbeat"}
        return _columns("stream", self, used, f"stamped: {self.stamped}")

    def row_columns(self) -> tuple[str, ...]:
        """The names of its columns."""
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
        return in_line(f"Relation({self.name}: {signature(self.columns)})")

    def _repr_html_(self) -> str:
        used = dict.fromkeys(self.key, "its key") | {
            self.timestamp: "its timestamp",
            self.change: "put in or taken out",
        }
        return _columns("relation", self, used, "fixed" if self.domain is None else "changes with time")

    def row_columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True, repr=False)
class View:
    """A named query that others read: the plan of its text."""

    name: str
    plan: Node
    gsql: Gsql | None = None
    """Its GSQL text and types, if it was written in GSQL."""

    reads: frozenset[str] = frozenset()
    """The queries in GSQL that it reads by their names, in lower case."""

    def __repr__(self) -> str:
        return f"View({self.name})"


@dataclass(frozen=True, slots=True)
class Family:
    """What makes a query a family: the relation whose distinct rows are its members, each a query of its own."""

    relation: str
    columns: tuple[str, ...]
    """The columns of the relation that a member is made of."""

    shown: tuple[str, ...]
    """The columns of the answer, in the same order, that say to which member a row belongs."""

    text: str
    """The plain query that the family amounts to."""

    flowing: bool = False
    """Whether each tuple is answered by itself, so that tuples need not wait for one another."""


@dataclass(frozen=True, slots=True)
class Early:
    """That a query gives answers before its input is complete."""

    every_us: int = 0
    """The least pause between two of them, in microseconds on the engine's clock."""

    level: Level = "input-prefix"
    """What an early answer has to be."""

    method: Method = "draining"
    """How it gets to be that."""

    marked: bool = False
    """Whether answers that are not yet consistent go out as well, marked."""

    tokens: TokenPeriod = field(default_factory=TokenPeriod)
    """How far apart tokens are, where those are the method."""

    @property
    def in_stages(self) -> bool:
        """Whether the plan is cut into stages, each of which answers early at its own pace."""
        return self.level == "none" or self.method != "fused"


@dataclass(frozen=True, slots=True, repr=False)
class Query:
    """A continuous query: its text, the text with all defaults written out, its plans, and where its answers go."""

    name: str
    text: str
    resolved: str
    bound: Node
    """The plan as the text says it."""

    plan: Node
    """The rewritten plan, which is run."""

    rules: tuple[str, ...] = ()
    """The rules that rewrote the bound plan into this one."""

    connector: Connector | None = None
    heartbeats: Literal["query", "operator", "memory-aware"] = "query"
    """Where its plan is split into fragments, and how far they run ahead of one another."""

    ordering: Literal["needed", "always"] = "needed"
    from_beginning: bool = False
    """True: it sees all that its streams still keep. False: it sees what comes after it was registered."""

    skips: bool = False
    """Whether rows whose own evaluation fails are left out (ON ERROR SKIP). Otherwise it stops at them."""

    left_out: tuple[LeftOut, ...] = ()
    """What it leaves out; nothing if nothing in it can fail."""

    by_groups: tuple[Scopes, ...] = ()
    """The sources that each of its parts sees, if it runs as one part for each group of sources; empty if it runs as a
    whole.
    """

    sharing: bool = True
    """Whether what its plan has in common with those of other queries may be computed once for all of them."""

    adaptive_joins: bool = True
    """Whether joins of several inputs are put in the order that is best by what was counted."""

    join_caches: bool = True
    """Whether such joins may keep what they have joined in between."""

    family: Family | None = None
    """The members that it has, if it is one query in the place of many."""

    early: Early | None = None
    """Whether it also answers from what has come beyond its heartbeats."""

    gsql: Gsql | None = None
    """Its GSQL text and types, if it was written in GSQL; `text` is then the CQL that it amounts to."""

    reads: frozenset[str] = frozenset()
    """The queries that it reads by their names, in lower case: those in GSQL, and those whose errors it reads."""

    shape: Any = field(default=None, compare=False)
    """What it has in common with queries that differ from it in constants only (`cql.shapes`); None if it cannot be one
    of a family.
    """

    borrowed: bool = False
    """Whether its plans are those of another query of its shape, and so have the constants of that one."""

    def __repr__(self) -> str:
        return in_line(f"Query({self.name}: {masked(self.text)})")

    def _repr_html_(self) -> str:
        return paragraphs([f"query {self.name}"]) + f"<pre>{escape(masked(self.text))}</pre>"


@dataclass(frozen=True, slots=True, repr=False)
class Group:
    """Queries whose results go out together, up to one instant that all of them have reached."""

    name: str
    queries: tuple[str, ...]
    connector: Connector | None = None
    """Where they go, with the options that hold for all of them; None if they only stay together."""

    members: Mapping[str, Connector] = field(default_factory=dict)
    """Where the results of each query go, with its own options; nothing if they go nowhere."""

    def __repr__(self) -> str:
        return in_line(f"Group({self.name}: {', '.join(self.queries)})")


@dataclass(frozen=True, slots=True, repr=False)
class Function:
    """A scalar function in SQL: the text of its body over its parameters."""

    name: str
    parameters: tuple[str, ...]
    body: Sql

    def __repr__(self) -> str:
        return in_line(f"Function({self.name}({', '.join(self.parameters)}): {self.body})")


@dataclass(frozen=True, slots=True, repr=False)
class Quarantined:
    """Something that was defined, and that this engine can neither read nor run: it keeps its name and its files."""

    kind: str
    """A stream, a query or the like; a setting; a statement without a name; or a fact of another version."""

    name: str
    why: str
    words: str
    """The beginning of its statement."""

    @property
    def mend(self) -> str:
        """What can be done about it."""
        again = "start the engine with what it needs"
        match self.kind:
            case "query":
                return f"ALTER QUERY {self.name} AS ..., DROP QUERY {self.name}, or {again}."
            case "stream" | "relation" | "view" | "group" | "function" | "constraint":
                kind = self.kind.upper()
                return f"CREATE {kind} {self.name} anew, DROP {kind} {self.name}, or {again}."
            case "protocol":
                return f"PROTOCOL {self.name} {{ ... }} anew, or {again}."
            case "setting":
                return f"SET {self.name} anew, or {again}."
            case "statement":
                return f"DROP what it speaks of, or {again}."
            case _:
                return "Start the engine with the version that wrote it, or a later one."

    def error(self, place: Place | None = None) -> UserError:
        """The error for whoever uses its name."""
        return UserError(
            "in-quarantine",
            f'{self.kind} "{self.name}" is in quarantine',
            place=place,
            detail=f"{self.why.rstrip('.')}.",
            hint=self.mend,
        )

    def __repr__(self) -> str:
        return in_line(f"Quarantined({self.kind} {self.name}: {self.why})")


def _columns(kind: str, one: Stream | Relation, used: Mapping[str | None, str], said: str) -> str:
    """Return a stream or relation as HTML: a table of its columns, and what each is used for."""
    read = "" if one.connector is None else f", read from {one.connector.format}"
    rows = [(column.name, column.type, used.get(column.name, "")) for column in one.columns]
    return paragraphs([f"{kind} {one.name}"]) + words(("column", "type", ""), rows, said + read)._repr_html_()


def late_name(stream: str) -> str:
    """The name of the stream of a stream's dead letters."""
    return f"late({stream})"


def errors_name(query: str) -> str:
    """The name of the query that keeps what another one leaves out."""
    return f"errors({query})"
