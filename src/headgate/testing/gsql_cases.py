"""Cases in GSQL, as cases of the CQL that they amount to.

    {"id": "count", "protocols": {"TCP": {"time": "uint (increasing)", "len": "uint"}},
     "input": {"TCP": [{"time": 10, "len": 100}]},
     "queries": {"q": "select tb, count(*) from TCP group by time/60 as tb"}, "query": "q", "expected": [[0, 1]]}

A row that has no value of its protocol's time has come at instant 0, which is then the time of all. The expected rows
have no instants: their order and when they are put out do not count, nor does the value of that time. Values may be
written as texts. A parameter of PARAM keeps its first value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from math import prod
from typing import Any, cast

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query, View
from headgate.cql.definitions import define
from headgate.gsql.parser import joined_name, parse
from headgate.gsql.syntax import Query as GsqlQuery
from headgate.gsql.translate import InCql, translated
from headgate.plan.nodes import Final, Node, Window
from headgate.plan.parameters import written_out
from headgate.plan.rewrites.columns import parents_first
from headgate.plan.settled import settled
from headgate.sql import Column, Sql
from headgate.testing.cases import Case, NamedQuery, Row

ARRIVED = 0
"""The instant of rows that have no time of their own."""

FARTHEST = 1_000
"""How many instants of queries that wait ever longer are looked at, about."""


def from_json(given: dict[str, Any]) -> Case:
    """A case from its JSON object."""
    catalog = Catalog()
    catalog.set("dialect", "gsql")
    for name, fields in given["protocols"].items():
        define(f"PROTOCOL {name} {{ {' '.join(_field(*field) for field in fields.items())} }}", catalog)
    texts = {name: text.strip().rstrip("; \n") for name, text in given["queries"].items()}
    trees = {name: _parsed(text) for name, text in texts.items()}
    read = [table for tree in trees.values() for table in tree.body.tables]
    streams: dict[str, str] = {}
    spelled = {name.lower(): name for name in given["protocols"]}
    for table in read:
        if table.name.lower() in spelled:
            protocol = spelled[table.name.lower()]
            parts = [protocol] if table.interface is None else [table.interface, protocol]
            streams.setdefault(joined_name(parts), protocol)
            if joined_name(parts).lower() not in catalog.streams:
                define(f"CREATE STREAM {'.'.join(parts)}", catalog)
    defined: dict[str, NamedQuery] = {}
    plans: dict[str, Node] = {}
    for name in _in_order(trees):
        made = _in_cql(_named(name, texts[name], trees[name]), catalog)
        (query,) = define(_named(name, texts[name], trees[name]), catalog)
        assert isinstance(query, Query | View)
        values = {one.full_name: one.changes for one in catalog.parameters.values()}
        defined[name] = NamedQuery(query.name, written_out(cast(Sql, made), values))
        plans[name] = query.plan
    rows = {stream: list(_rows(given["input"].get(name, ()), catalog, stream)) for stream, name in streams.items()}
    last = max((ts for entries in rows.values() for ts, _, _ in entries), default=0)
    answer, plan = defined.pop(given["query"]), plans[given["query"]]
    expected = given.get("expected")
    timed = {name for stream in streams for name in _missing(given["input"].get(streams[stream], ()), catalog, stream)}
    return Case(
        id=given["id"],
        query=answer.query,
        streams={stream: _schema(catalog.streams[stream.lower()].columns) for stream in streams},
        relations={},
        views=tuple(defined.values()),
        input=rows,
        horizon=_horizon(plan, last, texts.values()),
        result="stream",
        expected=None if expected is None else tuple((0, "+", _typed(row, plan.columns, timed)) for row in expected),
        timestamps={
            stream: timestamp
            for stream in streams
            if (timestamp := catalog.streams[stream.lower()].timestamp) is not None
        },
        orders={
            stream: {one.name: one.order for one in catalog.streams[stream.lower()].columns if one.order is not None}
            for stream in streams
        },
        timeless=True,
    )


def _field(name: str, kind: str) -> str:
    """A field of a protocol: `uint (increasing)` of the case is `uint time (increasing)` in GSQL."""
    word, opening, properties = kind.partition("(")
    return f"{word.strip()} {name} {opening}{properties};"


def _parsed(text: str) -> GsqlQuery:
    tree = parse(text, 0, len(text))
    if not isinstance(tree, GsqlQuery):
        raise ValueError("a query is expected")
    return tree


def _called(name: str, tree: GsqlQuery) -> str:
    return tree.defined.get("query_name", name)


def _named(name: str, text: str, tree: GsqlQuery) -> str:
    """The query's text with a name, which is its own if it has one."""
    return text if "query_name" in tree.defined else f"DEFINE {{ query_name '{name}'; }} {text}"


def _in_cql(text: str, catalog: Catalog) -> str:
    """The select of CQL that a query in GSQL amounts to."""
    made = translated(text, 0, len(text), catalog)
    assert isinstance(made, InCql)
    return made.cql.text.partition(" AS ")[2]


def _in_order(trees: dict[str, GsqlQuery]) -> Iterator[str]:
    """The queries, each behind those that it reads."""
    by_name = {_called(name, tree).lower(): name for name, tree in trees.items()}
    waiting, done = list(trees), set[str]()
    while waiting:
        ready = [
            name
            for name in waiting
            if {by_name[one.name.lower()] for one in trees[name].body.tables if one.name.lower() in by_name} <= done
        ]
        if not ready:
            raise ValueError("queries read one another in a circle")
        yield ready[0]
        done.add(ready[0])
        waiting.remove(ready[0])


def _schema(columns: Iterable[Column]) -> dict[str, str]:
    return {column.name: column.type for column in columns}


def _missing(entries: Iterable[dict[str, Any]], catalog: Catalog, stream: str) -> set[str]:
    """The name of the stream's time, in lower case, if its rows do not have it."""
    timestamp = catalog.streams[stream.lower()].timestamp
    return set() if timestamp is None or all(timestamp in entry for entry in entries) else {timestamp.lower()}


def _rows(entries: Iterable[dict[str, Any]], catalog: Catalog, stream: str) -> Iterator[tuple[int, Row, str]]:
    known = catalog.streams[stream.lower()]
    for place, entry in enumerate(entries):
        stamp = int(entry.get(known.timestamp, ARRIVED)) if known.timestamp is not None else place
        row = tuple(
            stamp if column.name == known.timestamp else _value(entry.get(column.name), column.type)
            for column in known.columns
        )
        yield stamp, row, "+"


def _value(value: Any, kind: str) -> Any:
    """A value of a case as one of its column's type."""
    if not isinstance(value, str):
        return value
    match kind:
        case "BOOLEAN":
            return value.upper() == "TRUE"
        case "INT" | "BIGINT":
            return int(value)
        case "DOUBLE":
            return float(value)
        case "TIMESTAMP":
            return datetime.fromisoformat(value).replace(tzinfo=UTC)
        case _:
            return value


def _typed(row: list[Any], columns: Iterable[Column], timed: set[str]) -> Row:
    """An expected row in the types of the query's columns, with the instant of arrival for a time that is ignored."""
    return tuple(
        ARRIVED if column.name.lower() in timed else _value(value, column.type)
        for value, column in zip(row, columns, strict=True)
    )


def _horizon(plan: Node, last: int, texts: Iterable[str]) -> int:
    """An instant at which all groups and joins are final. Where tuples wait the longer the later they come, the numbers
    in the queries tell how long.
    """
    frames = [node.frame for node in parents_first(plan) if isinstance(node, Window) and isinstance(node.frame, Final)]
    if any(frame.waits_ever_longer for frame in frames):
        numbers = {int(found) for found in re.findall(r"\b\d{1,3}\b", re.sub(r"'[^']*'", "", " ".join(texts)))}
        last = (last + 1 + sum(numbers)) * prod(number for number in numbers if 1 < number < FARTHEST // (last + 1))
    return settled(plan, last, lambda *_: None) + 1
