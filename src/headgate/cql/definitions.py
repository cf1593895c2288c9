"""From statements to definitions: what CREATE, SET, DISORDER and TIMEOUT say, checked, for the catalog to remember."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from sqlglot import exp

from headgate.catalog import (
    MICROSECONDS_PER_UNIT,
    Catalog,
    Column,
    Connector,
    Function,
    Query,
    Relation,
    Stream,
    TimeDomain,
    View,
)
from headgate.cql import dialect, syntax
from headgate.cql.binder import bind
from headgate.errors import NotYet, Place, UserError, nearest, quoted
from headgate.plan.expressions import INTEGRAL

SOURCES = ("json", "csv", "parquet", "orc", "text", "memory")
SINKS = ("memory", "console", "parquet")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting was changed; the catalog has it already."""

    name: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """EXPLAIN: a query that is bound but not registered."""

    query: Query


Definition: TypeAlias = Stream | Relation | View | Query | Function | Setting | Explanation


def define(text: str, catalog: Catalog, origin: str = "") -> list[Definition]:
    """Carry out a script on the catalog, statement by statement; a bare query is registered as q1, q2, ..."""
    return [_define(tree, text, catalog, origin) for tree in dialect.parse(text, origin)]


def _define(tree: exp.Expression, text: str, catalog: Catalog, origin: str) -> Definition:
    place = _Places(text, origin)
    match tree:
        case syntax.CreateStream():
            stream = _stream(tree, catalog, place)
            catalog.add(stream, place(tree.this))
            return stream
        case syntax.CreateRelation():
            relation = _relation(tree, place)
            catalog.add(relation, place(tree.this))
            return relation
        case syntax.CreateView():
            columns = [column.name for column in tree.args.get("columns") or ()]
            view = View(tree.name, bind(tree.args["query"], text, catalog, origin, columns).plan)
            catalog.add(view, place(tree.this))
            return view
        case syntax.CreateQuery():
            return _query(
                tree.name, tree.args["query"], text, catalog, origin, _connector(tree, SINKS, "sink", place), place(tree.this)
            )
        case syntax.CreateFunction():
            parameters = tuple(parameter.name for parameter in tree.args["parameters"])
            function = Function(tree.name, parameters, tree.args["body"].sql("spark"))
            catalog.add_function(function)
            return function
        case syntax.SetOption():
            catalog.set(tree.name, tree.args["value"], place(tree.this))
            return Setting(tree.name)
        case syntax.Disorder():
            named = catalog.stream(tree.name, place(tree.this))
            ticks = catalog.ticks(tree.args["amount"], tree.args.get("unit"), named.domain, place(tree.this))
            catalog.streams[named.name.lower()] = replace(named, disorder_ticks=ticks)
            return Setting("disorder")
        case syntax.Timeout():
            unit = tree.args.get("unit") or "SECOND"
            if unit == "TICK":
                raise UserError("bad-setting", "TIMEOUT is measured on the engine's clock, not in ticks", place=place(tree))
            micros = float(tree.args["amount"]) * MICROSECONDS_PER_UNIT[unit]
            catalog.settings = replace(catalog.settings, timeout_us=int(micros))
            return Setting("timeout")
        case syntax.Explain():
            bound = bind(tree.this, text, catalog, origin)
            return Explanation(Query("query", _span(tree.this, text), bound.resolved, bound.plan))
        case exp.Command():
            raise NotYet(str(tree.this), place=place(tree))
        case _:
            number = 1
            while f"q{number}" in catalog.queries:
                number += 1
            return _query(f"q{number}", tree, text, catalog, origin, None, None)


class _Places:
    """Where a name or a statement stands in the script."""

    def __init__(self, text: str, origin: str) -> None:
        self.text = text
        self.origin = origin

    def __call__(self, tree: exp.Expression) -> Place | None:
        if "start" not in tree.meta:
            return None
        end = tree.meta["end"] + (1 if isinstance(tree, exp.Identifier) else 0)
        return Place(self.text, tree.meta["start"], end, self.origin)


def _span(tree: exp.Expression, text: str) -> str:
    return text[tree.meta.get("start", 0) : tree.meta.get("end", len(text))]


def _query(
    name: str, tree: exp.Expression, text: str, catalog: Catalog, origin: str, connector: Connector | None, place: Place | None
) -> Query:
    bound = bind(tree, text, catalog, origin)
    query = Query(name, _span(tree, text), bound.resolved, bound.plan, connector)
    catalog.add(query, place)
    return query


def _relation(tree: syntax.CreateRelation, place: _Places) -> Relation:
    """Fixed if it is read from somewhere without a timestamp; otherwise it changes at the instants its rows carry."""
    columns = _columns(tree, place)
    timestamp, domain = _timestamp(tree, columns, place)
    change = _one_of(tree.args.get("change"), columns, tree.name, place)
    connector = _connector(tree, SOURCES, "source", place)
    fixed = timestamp is None and connector is not None and connector.format != "memory"
    growing = fixed or (timestamp is not None and change is None)
    return Relation(tree.name, columns, None if fixed else domain, timestamp, change, growing, connector)


def _columns(tree: exp.Expression, place: _Places) -> tuple[Column, ...]:
    columns = tuple(Column(column.name, column.args["kind"].sql("spark")) for column in tree.args["columns"])
    for position, column in enumerate(tree.args["columns"]):
        if column.name.startswith("_"):
            raise UserError("bad-name", f'column "{column.name}" begins with an underscore', place=place(column.this),
                            detail="Such names are headgate's own.")  # fmt: skip
        if column.name.lower() in {other.name.lower() for other in columns[:position]}:
            raise UserError("name-taken", f'column "{column.name}" stands twice', place=place(column.this))
    return columns


def _stream(tree: syntax.CreateStream, catalog: Catalog, place: _Places) -> Stream:
    columns = _columns(tree, place)
    timestamp, domain = _timestamp(tree, columns, place)
    if tree.args.get("source_by") is not None:
        raise NotYet("SOURCE BY", place=place(tree.args["source_by"]))
    connector = _connector(tree, SOURCES, "source", place)
    if connector is not None and connector.format != "memory" and timestamp is None:
        raise UserError(
            "no-timestamp-column", f'stream "{tree.name}" is read from files and needs TIMESTAMP BY', place=place(tree.this)
        )
    disorder = 0
    if tree.args.get("disorder") is not None:
        disorder = catalog.ticks(tree.args["disorder"], tree.args.get("disorder_unit"), domain, place(tree.this))
    return Stream(tree.name, columns, domain, timestamp, disorder, connector)


def _timestamp(tree: exp.Expression, columns: tuple[Column, ...], place: _Places) -> tuple[str | None, TimeDomain]:
    named = tree.args.get("timestamp")
    name = _one_of(named, columns, tree.name, place)
    if name is None:
        return None, TimeDomain.INTEGER
    kind = next(column.type for column in columns if column.name == name)
    if kind in INTEGRAL:
        return name, TimeDomain.INTEGER
    if kind in ("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "DATE"):
        return name, TimeDomain.TIMESTAMP
    raise UserError(
        "wrong-type", f'column "{name}" is {kind} and cannot be a timestamp', place=place(named),
        detail="A timestamp is of type TIMESTAMP, DATE or an integer type.",
    )  # fmt: skip


def _one_of(named: exp.Identifier | None, columns: tuple[Column, ...], stream: str, place: _Places) -> str | None:
    if named is None:
        return None
    for column in columns:
        if column.name.lower() == named.name.lower():
            return column.name
    known = [column.name for column in columns]
    raise UserError(
        "no-such-column", f'column "{named.name}" does not exist in stream "{stream}"', place=place(named),
        detail=f'Columns of "{stream}" are {quoted(known)}.', hint=nearest(named.name, known),
    )  # fmt: skip


def _connector(tree: exp.Expression, known: tuple[str, ...], kind: str, place: _Places) -> Connector | None:
    given = tree.args.get("format")
    if given is None:
        return None
    options = {entry.expressions[0].name: entry.expressions[1].name for entry in tree.args.get("options") or ()}
    name = given.name.lower()
    if name not in known:
        if kind == "source" and name in ("kafka", "rate", "socket", "delta", "jdbc"):
            raise NotYet(f"a stream FROM {name}", place=place(given))
        if kind == "sink" and name in ("kafka", "json", "csv", "delta", "jdbc", "webhook"):
            raise NotYet(f"a query INTO {name}", place=place(given))
        raise UserError(
            f"no-such-{kind}", f'{kind} "{given.name}" does not exist', place=place(given),
            detail=f"There are {quoted(known)}.", hint=nearest(given.name, known),
        )  # fmt: skip
    return Connector(name, options)
