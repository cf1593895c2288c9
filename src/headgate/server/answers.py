"""What statements defined or answered, as JSON.

{"kind": "query", "name": "totals", "did": "created"}
{"kind": "listing", "columns": ["name"], "rows": [["totals"]]}
{"kind": "why", "query": "totals", "held_by": "sales", ..., "text": "..."}
{"kind": "snapshot", "at": 17, "partial": false, "tuples": {"sales": 4}, "queries": {"totals": [{"shop": "a"}]}}
{"kind": "explanation", "text": "..."}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Function, Group, Quarantined, Query, Relation, Stream, View
from headgate.catalog.protocols import InterfaceSet
from headgate.catalog.protocols import Protocol as PacketProtocol
from headgate.compile import explanation
from headgate.cql.definitions import Altered, Dropped, Explanation, Listing, ParameterSet, Setting
from headgate.errors import UserError
from headgate.heartbeat.why import Why
from headgate.masking import masked
from headgate.observe.overview import plain
from headgate.plan.nodes import Constraint
from headgate.server.limits import Limits
from headgate.server.values import rows_of


@runtime_checkable
class SnapshotTaken(Protocol):
    """The rows of several queries at one instant."""

    at: Any
    partial: bool
    reflects: Mapping[str, Any]

    def __iter__(self) -> Any: ...

    def table(self, query: str) -> pa.Table: ...


def answer_of(found: Any, catalog: Catalog, limits: Limits) -> dict[str, Any]:
    """Return what a statement defined or answered as JSON has it."""
    match found:
        case (
            Stream()
            | Relation()
            | View()
            | Query()
            | Group()
            | Function()
            | Constraint()
            | PacketProtocol()
            | InterfaceSet()
        ):
            return _defined(found, "created")
        case Altered(now):
            return _defined(now, "altered")
        case Dropped(kind, name):
            return {"kind": kind, "name": name, "did": "dropped"}
        case Quarantined(kind, name, why):
            return {"kind": kind, "name": name, "did": "in quarantine", "why": why, "hint": found.mend}
        case Setting():
            return {"kind": "setting", "did": "set"}
        case ParameterSet():
            since = {"since": found.since}
            return {"kind": "parameter", "query": found.query, "name": found.name, "value": found.value, **since}
        case Listing():
            return {
                "kind": "listing",
                "columns": list(found.columns),
                "rows": [list(map(_shown, row)) for row in found.rows],
            }
        case Why():
            return why_of(found)
        case Explanation():
            return {"kind": "explanation", "text": explanation(found.query, catalog)}
        case SnapshotTaken():
            return _snapshot(found, limits)
        case _:
            return {"kind": type(found).__name__.lower(), "text": str(found)}


def why_of(why: Why) -> dict[str, Any]:
    """Return why a query has come no further, for programs and in words."""
    said: Mapping[str, Any] = plain(asdict(why))
    return {"kind": "why", **said, "text": str(why)}


def _shown(value: Any) -> Any:
    return masked(value) if isinstance(value, str) else value


def _defined(entry: Any, did: str) -> dict[str, Any]:
    kind = {"PacketProtocol": "protocol", "InterfaceSet": "interface set"}.get(type(entry).__name__)
    return {"kind": kind or type(entry).__name__.lower(), "name": getattr(entry, "name", None), "did": did}


def _snapshot(taken: SnapshotTaken, limits: Limits) -> dict[str, Any]:
    tables = {name: taken.table(name) for name in taken}
    if (rows := sum(table.num_rows for table in tables.values())) > limits.most_page_rows:
        raise UserError(
            "result-too-large",
            f"the snapshot has {rows} rows, and an answer may have {limits.most_page_rows}",
            hint="Ask for fewer queries at a time, or follow their results.",
        )
    return {
        "kind": "snapshot",
        "at": plain(taken.at),
        "partial": taken.partial,
        "tuples": {stream: one.tuples for stream, one in taken.reflects.items()},
        "queries": {name: list(rows_of([table])) for name, table in tables.items()},
    }
