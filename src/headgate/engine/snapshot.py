"""A snapshot: the rows of several queries at the latest instant at which all of them are complete; or, early, at the
newest instant of which all of them have an early answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headgate.cql.definitions import Listing, SnapshotAsked
from headgate.deliver.bags import net, sorted_rows
from headgate.deliver.reflects import Label, label, most, prefixes
from headgate.deliver.sinks.sink import within
from headgate.engine.core import Core
from headgate.errors import UserError, quoted
from headgate.log.chunk import Chunk
from headgate.schedule.common import common_instant, starts
from headgate.schedule.query import RunningQuery
from headgate.table import counted, paragraphs, words
from headgate.ticks import Tick

SHOWN = 50
"""How many rows of a query are printed; the rest is counted."""


class Snapshot(Mapping[str, list[dict[str, Any]]]):
    """The rows of each query by its name, all at the instant `at`. Equal rows stand as often as they are there."""

    def __init__(
        self, at: Any, tables: Mapping[str, pa.Table], reflects: Label | None = None, partial: bool = False
    ) -> None:
        self.at = at
        """The instant, as the user knows it: what `complete` was of the query that was least far."""
        self.reflects: Label = {} if reflects is None else reflects
        """The input that the rows reflect, by stream and relation, cut at the instant; empty if it is not known."""
        self.partial = partial
        """Whether the rows are those of early answers, and may still change."""
        self._tables = dict(tables)

    @property
    def _head(self) -> str:
        return f"at {self.at}" + (f", early: from {prefixes(self.reflects)}" if self.partial else "")

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
        return f"Snapshot({'early, ' if self.partial else ''}at {self.at}: {counts})"

    def __str__(self) -> str:
        """The instant, and below it the rows of each query in columns."""
        parts = [self._head]
        for name, table in self._tables.items():
            count = counted(table.num_rows, "row")
            rows = tuple(tuple(map(str, row.values())) for row in table.slice(0, SHOWN).to_pylist())
            listed = f"\n{Listing(tuple(table.column_names), rows)}" if rows else ""
            more = f"\n... and {table.num_rows - SHOWN} more" if table.num_rows > SHOWN else ""
            parts.append(f"{name}: {count}{listed}{more}")
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        parts = [paragraphs([self._head])]
        for name, table in self._tables.items():
            rows = [list(row.values()) for row in table.slice(0, SHOWN).to_pylist()]
            more = f"... and {table.num_rows - SHOWN} more" if table.num_rows > SHOWN else ""
            count = counted(table.num_rows, "row")
            parts += [paragraphs([f"{name}: {count}"]), words(table.column_names, rows, more)._repr_html_()]
        return "".join(parts)


def taken(core: Core, asked: SnapshotAsked) -> Snapshot:
    """The snapshot that was asked for.

    What it shows is settled while nothing is committed. The results are read when the engine goes on; if it has merged
    some of their files by then, everything is looked at once more.
    """
    while True:
        look = _look(core, asked)
        try:
            tables = {one.query.name: one.rows() for one in look.pictures}
        except (UserError, OSError):
            if all(one.has_its_files() for one in look.pictures):
                raise
            continue
        return Snapshot(look.at, tables, look.reflects, asked.early)


@dataclass(frozen=True, slots=True)
class _Picture:
    """The results of one query that a snapshot reads."""

    query: RunningQuery
    settled: Tick
    """Up to here, by its results."""

    chunks: list[Chunk]
    early: list[pa.Table]
    """The changes of its early answer behind that."""

    def rows(self) -> pa.Table:
        """The rows that changes have led to, in the order of their columns; without any, a table of no rows."""
        rows = net(self.early, self.query.rows_at(self.settled, self.chunks))
        return pa.table({name: [] for name in self.query.columns}) if rows is None else sorted_rows(rows)

    def has_its_files(self) -> bool:
        """Whether its results still lie in the files in which they lay."""
        return set(self.chunks) <= set(self.query.outbox.log.chunks)


@dataclass(frozen=True, slots=True)
class _Look:
    """What a snapshot shows, of one moment."""

    at: Any
    reflects: Label
    pictures: list[_Picture]


def _look(core: Core, asked: SnapshotAsked) -> _Look:
    with core.journal.turn:
        queries = [core.query(name) for name in asked.queries]
        for query in queries:
            _refuse_printed(query, asked)
        answers = {query: _early(query, asked) for query in queries} if asked.early else {}
        instant = min(one.upto for one in answers.values()) if answers else common_instant(queries)
        if instant is None or any(starts(query) > instant for query in queries):
            raise _nothing_common(queries, asked)
        tuples = _one_input(answers, asked) if answers else most(query.tuples() for query in queries)
        known = bool(answers) or all(query.tuples() for query in queries)
        at = queries[0].domain.moment(instant)
        pictures = []
        for query in queries:
            settled = min(instant, query.reached)
            early = [answers[query].table] if answers and answers[query].table is not None else []
            chunks = list(query.outbox.log.chunks)
            pictures.append(_Picture(query, settled, chunks, [*within(early, settled, instant)]))
        return _Look(at, label(tuples, at) if known else {}, pictures)


@dataclass(frozen=True, slots=True)
class _Early:
    """The early answer of a query that holds now."""

    upto: Tick
    tuples: Mapping[str, int]
    table: pa.Table | None


def _early(query: RunningQuery, asked: SnapshotAsked) -> _Early:
    """What a query answers early, or the error that says why nothing can be shown of it."""
    place, known = asked.place(query.name), query.early_answers
    if known is None:
        raise UserError(
            "no-early-answers",
            f'query "{query.name}" gives no early answers',
            place=place,
            hint=f"Write EMIT EARLY behind it, or leave EARLY out: SNAPSHOT {query.name}.",
        )
    answer = known.now()
    if answer is None or answer.upto is None:
        raise UserError(
            "nothing-complete",
            f'there is no early answer yet of "{query.name}"',
            place=place,
            hint="One comes when something has come on its streams.",
        )
    if not answer.tuples:
        raise UserError(
            "not-one-input",
            f'the early answer of "{query.name}" is not known to be consistent',
            place=place,
            detail="It may have part of an update, so nothing can be shown together with it.",
            hint="SET consistency = 'input-prefix' before the query is created.",
        )
    return _Early(known.upto(), answer.tuples, answer.table)


def _one_input(answers: Mapping[RunningQuery, _Early], asked: SnapshotAsked) -> dict[str, int]:
    """How many tuples of each stream early answers reflect; an error if they do not reflect the same."""
    seen: dict[str, tuple[RunningQuery, int]] = {}
    for query, answer in answers.items():
        for stream, count in answer.tuples.items():
            other, before = seen.setdefault(stream, (query, count))
            if before != count:
                raise UserError(
                    "not-one-input",
                    f'the early answer of "{other.name}" reflects {before} tuples of {stream}, that of "{query.name}" '
                    f"{count}",
                    place=asked.place(query.name),
                    hint="Give both the same EVERY, and a method that gives all answers in one turn ('draining').",
                )
    return {stream: count for stream, (_, count) in seen.items()}


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
