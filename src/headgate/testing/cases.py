"""Cases of continuous queries: one JSON object a line, with streams, input, a query and its expected output.

    {"id": "now", "streams": {"S": {"schema": {"a": "int"}}}, "input": {"S": [[1, {"a": 7}]]}, "horizon": 3,
     "query": "Select * From S [Now]", "result": "relation", "expected": [[1, "+", {"a": 7}], [2, "-", {"a": 7}]]}

A relation may have a "key", a list of columns: then a "+" row replaces the row with the same key and a "-" row removes
it. Further keys: range ("closed" or "half-open"), unit_seconds, empty_aggregate ("no-row"), views, relations, note.
Timestamps are integers and not part of the row. Results are compared instant by instant, as bags, values by position,
floats to 1e-4.

A case with "protocols" is one in GSQL: see `gsql_cases`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from headgate.errors import UserError
from headgate.sql import STRING, Order, Sql, checked_type

Row: TypeAlias = tuple[Any, ...]
Change: TypeAlias = tuple[int, str, Row]
"""An instant, "+" or "-", and the values of a row."""

TYPES = {
    "int": "INT",
    "integer": "INT",
    "float": "DOUBLE",
    "double": "DOUBLE",
    "byte": "STRING",
    "char": "STRING",
    "bigint": "BIGINT",
    "long": "BIGINT",
    "boolean": "BOOLEAN",
    "bool": "BOOLEAN",
    "timestamp": "TIMESTAMP",
    "date": "DATE",
}

FUNCTIONS = {"DolToEuro": ("x", "0.5 * x")}
"""The one function that published query texts use without defining it: dollars to euros, at the rate of the cases."""


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A view of a case."""

    name: str
    query: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A test case: definitions, input, a query, and its expected output up to a horizon."""

    id: str
    query: str
    streams: dict[str, dict[str, str]]
    relations: dict[str, dict[str, str]]
    views: tuple[NamedQuery, ...]
    input: dict[str, list[tuple[int, Row, str]]]
    horizon: int
    range: str = "closed"
    dialect: str = "cql"
    unit_seconds: int = 1
    empty_aggregate: str = "row"
    result: str | None = None
    expected: tuple[Change, ...] | None = None
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Relations in which an inserted row replaces the row with its key, with the columns of the key."""

    timestamps: dict[str, str] = field(default_factory=dict)
    """Streams in which a column holds the timestamp, with the column."""

    orders: dict[str, dict[str, Order]] = field(default_factory=dict)
    """Streams with columns that are declared to increase or decrease, with the columns and their orders."""

    timeless: bool = False
    """Whether it does not count at which instants the expected rows come."""

    def instants(self) -> list[int]:
        """The instants at which tuples arrive, and the horizon."""
        given = {ts for rows in self.input.values() for ts, _, _ in rows if ts <= self.horizon}
        return sorted(given | {self.horizon})


@dataclass(slots=True)
class Difference:
    """The first instant at which the output differs from the expected one."""

    instant: int
    expected: list[tuple[str, Row]] = field(default_factory=list)
    found: list[tuple[str, Row]] = field(default_factory=list)

    def __str__(self) -> str:
        return f"at {self.instant}: expected {_changes_text(self.expected)}, found {_changes_text(self.found)}"


def _changes_text(changes: list[tuple[str, Row]]) -> str:
    return "nothing" if not changes else ", ".join(sign + str(list(row)) for sign, row in changes)


def sql_type(name: str) -> Sql:
    """The Spark SQL type for a type name in a case."""
    lower = name.lower()
    if lower in TYPES:
        return checked_type(TYPES[lower])
    return STRING if lower.startswith(("char", "varchar", "string", "?", "text")) else checked_type(name.upper())


def read(path: Path) -> list[Case]:
    """Reads the cases of a file."""
    if not path.exists():
        raise UserError("no-such-file", f'file "{path}" does not exist')
    from headgate.testing import gsql_cases

    cases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            given = json.loads(line)
            cases.append(gsql_cases.from_json(given) if "protocols" in given else from_json(given))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"key {error} is missing" if isinstance(error, KeyError) else str(error)
            raise UserError("bad-case", f'line {number} of "{path}" is not a case', detail=reason) from None
    return cases


def from_json(given: dict[str, Any]) -> Case:
    """A case from its JSON object."""
    schemas = {
        kind: {name: thing["schema"] for name, thing in (given.get(kind) or {}).items()}
        for kind in ("streams", "relations")
    }
    rows: dict[str, list[tuple[int, Row, str]]] = {}
    for name, entries in (given.get("input") or {}).items():
        columns = {**schemas["streams"], **schemas["relations"]}[name]
        rows[name] = [
            (entry[0], tuple(entry[1].get(column) for column in columns), entry[2] if len(entry) > 2 else "+")
            for entry in entries
        ]
    expected = given.get("expected")
    last = max((ts for entries in rows.values() for ts, _, _ in entries), default=0)
    return Case(
        id=given["id"],
        query=given["query"],
        streams=schemas["streams"],
        relations=schemas["relations"],
        views=tuple(NamedQuery(v["name"], v["query"], tuple(v.get("columns") or ())) for v in given.get("views") or ()),
        input=rows,
        horizon=given["horizon"] if given.get("horizon") is not None else last,
        range=given.get("range") or "closed",
        dialect=given.get("dialect") or "cql",
        unit_seconds=given.get("unit_seconds") or 1,
        empty_aggregate=given.get("empty_aggregate") or "row",
        result=given.get("result"),
        keys={name: tuple(thing["key"]) for name, thing in (given.get("relations") or {}).items() if thing.get("key")},
        expected=tuple((ts, sign, tuple(row.values())) for ts, sign, row in expected) if expected is not None else None,
    )


def to_json(case: Case) -> dict[str, Any]:
    """The JSON object of a case, which `from_json` reads back; columns of the expected output are numbered."""
    schemas = {**case.streams, **case.relations}
    relations = {name: {"schema": schema} for name, schema in case.relations.items()}
    for name, key in case.keys.items():
        relations[name]["key"] = list(key)  # type: ignore[assignment]
    return {
        "id": case.id,
        "query": case.query,
        "range": case.range,
        "dialect": case.dialect,
        "unit_seconds": case.unit_seconds,
        "empty_aggregate": case.empty_aggregate,
        "horizon": case.horizon,
        "streams": {name: {"schema": schema} for name, schema in case.streams.items()},
        "relations": relations,
        "views": [{"name": view.name, "query": view.query, "columns": list(view.columns)} for view in case.views],
        "input": {
            name: [[ts, dict(zip(schemas[name], row, strict=True)), sign] for ts, row, sign in rows]
            for name, rows in case.input.items()
        },
        "expected": case.expected and [[ts, sign, dict(enumerate(row))] for ts, sign, row in case.expected],
    }


def comparable(value: Any) -> Any:
    """A value in the form in which it is compared: numbers by value, floats rounded to 1e-4, timestamps in UTC."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, datetime):
        return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, list | tuple):
        return tuple(map(comparable, value))
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        if value != value:
            return "NaN"
        if abs(value) == float("inf"):
            return str(value)
        value = float(f"{value:.9g}")
        return int(value) if value.is_integer() else round(value, 4)
    return value


def by_instant(changes: Iterable[Change], horizon: int) -> dict[int, Counter[Row]]:
    """The net changes at each instant as bags: + and - of equal rows cancel out."""
    result: dict[int, Counter[Row]] = {}
    for ts, sign, row in changes:
        if ts <= horizon:
            result.setdefault(ts, Counter())[tuple(comparable(value) for value in row)] += 1 if sign == "+" else -1
    netted = {ts: Counter({row: count for row, count in bag.items() if count}) for ts, bag in result.items()}
    return {ts: bag for ts, bag in netted.items() if bag}


def differs(case: Case, found: Iterable[Change]) -> Difference | None:
    """The first difference between what a case expects and what was found, or None."""
    assert case.expected is not None
    if not case.timeless:
        return difference(case.expected, found, case.horizon)
    at_once = [(0, sign, row) for instant, sign, row in found if instant <= case.horizon]
    return difference(case.expected, at_once, case.horizon)


def difference(expected: Iterable[Change], found: Iterable[Change], horizon: int) -> Difference | None:
    """The first difference between expected and found changes, or None."""
    wanted, given = by_instant(expected, horizon), by_instant(found, horizon)
    for instant in sorted(wanted.keys() | given.keys()):
        here, there = wanted.get(instant, Counter()), given.get(instant, Counter())
        if here != there and not _close(here, there):
            return Difference(instant, list(_listed(here)), list(_listed(there)))
    return None


def _listed(bag: Counter[Row]) -> Iterator[tuple[str, Row]]:
    for row, count in sorted(bag.items(), key=lambda entry: repr(entry[0])):
        for _ in range(abs(count)):
            yield "+" if count > 0 else "-", row


def _close(one: Counter[Row], two: Counter[Row]) -> bool:
    """Whether two bags are equal within the tolerance, because rounding can separate floats that are almost equal."""
    left, right = list(_listed(one)), list(_listed(two))
    if len(left) != len(right):
        return False
    for sign, row in left:
        match = next((entry for entry in right if entry[0] == sign and _alike(entry[1], row)), None)
        if match is None:
            return False
        right.remove(match)
    return True


def _alike(one: Row, two: Row) -> bool:
    return len(one) == len(two) and all(
        a == b
        or (isinstance(a, int | float) and isinstance(b, int | float) and abs(a - b) <= 1e-4 * max(1.0, abs(a), abs(b)))
        for a, b in zip(one, two, strict=True)
    )
