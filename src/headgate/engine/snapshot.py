"""A snapshot: the rows of several queries at the latest instant at which all of them are complete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from headgate.cql.definitions import Listing, SnapshotAsked
from headgate.deliver.bags import net, sorted_rows
from headgate.deliver.sinks.sink import within
from headgate.engine.core import Core
from headgate.errors import UserError, quoted
from headgate.schedule.common import common_instant, starts
from headgate.schedule.query import RunningQuery
from headgate.table import counted, paragraphs, words

SHOWN = 50
"""How many rows of a query are printed; the rest is counted."""


class Snapshot(Mapping[str, list[dict[str, Any]]]):
    """The rows of each query by its name, all at the instant `at`. Equal rows stand as often as they are there."""

    def __init__(self, at: Any, tables: Mapping[str, pa.Table]) -> None:
        self.at = at
        """The instant, as the user knows it: what `complete` was of the query that was least far."""
        self._tables = dict(tables)

    def __getitem__(self, query: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.table(query).to_pylist()
        return rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def table(self, query: str) -> pa.Table:
        """The rows of a query as Arrow has them."""
        for name, table in self._tables.items():
            if name.lower() == query.lower():
                return table
        raise KeyError(query)

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {table.num_rows} rows" for name, table in self._tables.items())
        return f"Snapshot(at {self.at}: {counts})"

    def __str__(self) -> str:
        """The instant, and below it the rows of each query in columns."""
        parts = [f"at {self.at}"]
        for name, table in self._tables.items():
            count = counted(table.num_rows, "row")
            rows = tuple(tuple(map(str, row.values())) for row in table.slice(0, SHOWN).to_pylist())
            listed = f"\n{Listing(tuple(table.column_names), rows)}" if rows else ""
            more = f"\n... and {table.num_rows - SHOWN} more" if table.num_rows > SHOWN else ""
            parts.append(f"{name}: {count}{listed}{more}")
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        parts = [paragraphs([f"at {self.at}"])]
        for name, table in self._tables.items():
            rows = [list(row.values()) for row in table.slice(0, SHOWN).to_pylist()]
            more = f"... and {table.num_rows - SHOWN} more" if table.num_rows > SHOWN else ""
            count = counted(table.num_rows, "row")
            parts += [paragraphs([f"{name}: {count}"]), words(table.column_names, rows, more)._repr_html_()]
        return "".join(parts)


def taken(core: Core, asked: SnapshotAsked) -> Snapshot:
    """The snapshot that was asked for. Nothing is committed meanwhile, so what is read is all of one moment."""
    with core.journal.turn:
        queries = [core.query(name) for name in asked.queries]
        for query in queries:
            _refuse_printed(query, asked)
        instant = common_instant(queries)
        if instant is None:
            raise _nothing_common(queries, asked)
        changes = {query: [*within(query.result_tables(), None, instant)] for query in queries}
    tables = {query.name: _rows(query, changed) for query, changed in changes.items()}
    return Snapshot(queries[0].domain.moment(instant), tables)


def _rows(query: RunningQuery, changes: list[pa.Table]) -> pa.Table:
    """The rows that changes have led to, in the order of their columns; without any, a table of no rows."""
    rows = net(changes)
    return pa.table({name: [] for name in query.columns}) if rows is None else sorted_rows(rows)


def _refuse_printed(query: RunningQuery, asked: SnapshotAsked) -> None:
    """Refuse a query whose results were printed, and are not kept."""
    if not query.outbox.kept:
        raise UserError(
            "results-elsewhere",
            f'the results of query "{query.name}" are printed and not kept',
            place=asked.place(query.name),
            hint=f"CREATE GROUP name OF {query.name} keeps them; so do `headgate shell` and Engine().",
        )


def _nothing_common(queries: list[RunningQuery], asked: SnapshotAsked) -> UserError:
    """The error if there is no instant yet at which all queries are complete."""
    waiting = [query for query in queries if not query.begun]
    if waiting:
        names = quoted(query.name for query in waiting)
        return UserError(
            "nothing-complete",
            f"nothing is complete yet of {names}",
            place=asked.place(waiting[0].name),
            hint=f"WHY {waiting[0].name} says what it waits for.",
        )
    last, least = max(queries, key=starts), min(queries, key=lambda query: query.reached)
    begins = last.domain.moment(starts(last))
    return UserError(
        "nothing-complete",
        f'query "{last.name}" begins at {begins}, and "{least.name}" is complete up to {least.complete} only',
        place=asked.place(least.name),
        hint=f"WHY {least.name} says what it waits for; FROM BEGINNING lets a query see what was there before.",
    )
