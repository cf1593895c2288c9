"""Cases in GSQL, as cases of the CQL that they amount to.

    {"id": "count", "protocols": {"TCP": {"time": "uint (increasing)", "len": "uint"}},
     "input": {"TCP": [{"time": 10, "len": 100}]},
     "queries": {"q": "select tb, count(*) from TCP group by time/60 as tb"}, "query": "q", "expected": [[0, 1]]}

A row that has no value of its protocol's time has come at instant 0, which is then the time of all. The expected rows
have no instants: their order and when they are put out do not count, nor does the value of that time. Values may be
written as texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query
from headgate.cql.definitions import define
from headgate.gsql.parser import joined_name, parse
from headgate.gsql.syntax import Query as GsqlQuery
from headgate.sql import Column
from headgate.testing.cases import Case, NamedQuery, Row

ARRIVED = 0
"""The instant of rows that have no time of their own."""


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
    for table in read:
        if table.name in given["protocols"]:
            parts = [table.name] if table.interface is None else [table.interface, table.name]
            streams.setdefault(joined_name(parts), table.name)
            if joined_name(parts).lower() not in catalog.streams:
                define(f"CREATE STREAM {'.'.join(parts)}", catalog)
    defined: dict[str, Query] = {}
    for name in _in_order(trees):
        (query,) = define(_named(name, texts[name], trees[name]), catalog)
        assert isinstance(query, Query)
        defined[name] = query
    rows = {stream: list(_rows(given["input"].get(name, ()), catalog, stream)) for stream, name in streams.items()}
    last = max((ts for entries in rows.values() for ts, _, _ in entries), default=0)
    answer = defined.pop(given["query"])
    expected = given.get("expected")
    timed = {name for stream in streams for name in _missing(given["input"].get(streams[stream], ()), catalog, stream)}
    return Case(
        id=given["id"],
        query=answer.text,
        streams={stream: _schema(catalog.streams[stream.lower()].columns) for stream in streams},
        relations={},
        views=tuple(NamedQuery(query.name, query.text) for query in defined.values()),
        input=rows,
        horizon=_horizon(last, texts.values()),
        result="stream",
        expected=None if expected is None else tuple((0, "+", _typed(row, answer, timed)) for row in expected),
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
        case _:
            return value


def _typed(row: list[Any], query: Query, timed: set[str]) -> Row:
    """An expected row in the types of the query's columns, with the instant of arrival for a time that is ignored."""
    return tuple(
        ARRIVED if column.name.lower() in timed else _value(value, column.type)
        for value, column in zip(row, query.bound.columns, strict=True)
    )


def _horizon(last: int, texts: Iterable[str]) -> int:
    """An instant at which all groups and joins are final, as the numbers in the queries let one expect."""
    text = re.sub(r"'[^']*'", "", " ".join(texts))
    numbers = [int(found) for found in re.findall(r"\b\d{1,5}\b", text)]
    times = [int(found) for pair in re.findall(r"\*\s*(\d{1,3})\b|\b(\d{1,3})\s*\*", text) for found in pair if found]
    return (last + 1) * max([1, *times]) + 2 * max([1, *numbers]) + 2
