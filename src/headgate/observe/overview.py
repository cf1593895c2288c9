"""How an engine is at one moment, as a model that consoles draw, metrics are made of and programs read as JSON.

The parts name each other, so that the model is a graph. A stream or relation has a log of its own name. A fragment
reads logs and writes one, or gives the answer of a query. A query has fragments, some of which other queries have too,
and a sink. Instants are those of application time: numbers, or text in ISO 8601.

    {"streams": {"bids": {"heartbeat": 17, ...}},
     "logs": {"bids": {"rows": 1204, "read_by": ["totals"], ...}},
     "fragments": {"totals": {"reads": {"bids": {"waiting": 3}}, "queries": ["totals"], ...}},
     "queries": {"totals": {"fragments": ["totals"], "complete": 17, "why": {"held_by": "bids", ...}, ...}}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from headgate.heartbeat.why import Why
from headgate.table import Table, words


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream or relation: what has come, and how far it is complete."""

    kind: str
    columns: Mapping[str, str]
    """Their types by name."""

    connector: str | None
    """What it is read from; None if rows are pushed."""

    taken: int
    """How many tuples went to its log since it was created."""

    dead: Mapping[str, int]
    """How many did not, by reason."""

    heartbeat: Any
    """The instant up to which it is complete (its watermark); None while that is unknown."""

    silent: bool
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class LogView:
    """A log: the queue between what writes it and the fragments that read it."""

    rows: int
    """How many have come since it was created; only those that are still needed are kept."""

    kept_rows: int
    kept_bytes: int
    chunks: int
    read_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlanView:
    """An operator of a plan, and those it reads."""

    operator: str
    inputs: tuple[PlanView, ...] = ()


@dataclass(frozen=True, slots=True)
class FragmentView:
    """A part of a plan that runs by itself, for one query or for several."""

    queries: tuple[str, ...]
    shared: bool
    plan: PlanView
    reads: Mapping[str, int]
    """By log: how many rows have come and are not answered yet."""

    writes: str | None
    """The log that other fragments read; None if it gives the answer of a query."""

    keeps: Mapping[str, str]
    """Its synopses (state), and what limits each."""

    complete: Any
    epochs: int
    rows_in: int
    rows_out: int
    """Both since the engine was started."""

    failed: bool


@dataclass(frozen=True, slots=True)
class SinkView:
    """Where the results of a query go."""

    kind: str
    guarantee: str
    delivered: Any
    """The instant up to which it has everything."""

    waiting_deliveries: int
    waiting_rows: int
    trouble: str | None


@dataclass(frozen=True, slots=True)
class QueryView:
    """A query: its answers so far, and what holds it back."""

    text: str
    kind: str
    columns: tuple[str, ...]
    fragments: tuple[str, ...]
    complete: Any
    results: int | None
    """How many there are; None if they lie among those of other queries that run as one program with it."""

    epochs: int
    why: Why
    reflects: str
    sink: SinkView
    age_seconds: float | None
    """How old the last answers were, from when their tuples began to be read, on the average."""

    trouble: str | None
    skipped: int | None = None
    """How many rows it has left out because they could not be evaluated; None if it stops at such rows."""


@dataclass(frozen=True, slots=True)
class GroupSinkView:
    """Where the results of a group go."""

    kind: str
    guarantee: str
    delivered: Any
    """The instant up to which it has everything, of all queries."""

    waits: bool
    """Whether it has yet to take a delivery. The next one is made when it has."""

    trouble: str | None


@dataclass(frozen=True, slots=True)
class GroupView:
    """Queries whose results go out together."""

    queries: tuple[str, ...]
    complete: Any
    """The latest instant at which all of them are complete; None while there is none."""

    sink: GroupSinkView | None
    """None if the group only names them."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything that an engine runs, at one moment."""

    now_us: int
    """On the engine's clock."""

    running: bool
    settings: Mapping[str, str]
    streams: Mapping[str, StreamView]
    relations: Mapping[str, StreamView]
    logs: Mapping[str, LogView]
    fragments: Mapping[str, FragmentView]
    queries: Mapping[str, QueryView]
    groups: Mapping[str, GroupView] = field(default_factory=dict)
    troubles: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What has failed and is tried again or stands still: streams, queries and sinks by name."""

    def counters(self) -> dict[str, int]:
        """Return all that only grows, by a name that says what it is."""
        return {
            **{f"streams/{name}/taken": one.taken for name, one in (*self.streams.items(), *self.relations.items())},
            **{f"logs/{name}/rows": one.rows for name, one in self.logs.items()},
            **{f"fragments/{name}/rows_in": one.rows_in for name, one in self.fragments.items()},
            **{f"fragments/{name}/rows_out": one.rows_out for name, one in self.fragments.items()},
            **{f"queries/{name}/results": one.results for name, one in self.queries.items() if one.results is not None},
        }

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        said = plain(asdict(self))
        for name, query in self.queries.items():
            said["queries"][name]["why"]["text"] = str(query.why)
        return said


SHOWN = 50
"""How many streams and queries are listed for people; the others are counted."""


def shown(overview: Overview) -> list[Table]:
    """Return what people see first of an engine: its streams and relations, and its queries."""
    inputs = [
        (name, one.kind, one.taken, one.heartbeat if one.heartbeat is not None else "-", _state(one))
        for name, one in (*overview.streams.items(), *overview.relations.items())
    ]
    queries = [
        (
            name,
            one.kind,
            "-" if one.results is None else one.results,
            one.why.complete,
            "failed" if one.trouble else f"held back by {one.why.held_by}" if one.why.held_by else "ok",
        )
        for name, one in overview.queries.items()
    ]
    return [
        words(("stream", "kind", "tuples", "complete up to", "state"), inputs[:SHOWN], _more(inputs)),
        words(("query", "kind", "results", "complete up to", "state"), queries[:SHOWN], _more(queries)),
    ]


def _state(one: StreamView) -> str:
    return "failed" if one.trouble else "silent" if one.silent else "speaking" if one.taken else "nothing came yet"


def _more(rows: list[Any]) -> str:
    return f"... and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""


def plain(value: Any) -> Any:
    """Return a value with instants as text and tuples as lists, all the way down."""
    match value:
        case datetime():
            return value.isoformat()
        case Mapping():
            return {str(key): plain(one) for key, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
        case _:
            return value
