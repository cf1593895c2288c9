"""A query at one moment, as a notebook shows it: how far it is complete, what holds it back, and some of its rows.

Rows are read from the log of results in bounded steps, and few of them are kept:

    Lately     the last results, the newest first
    Current    the rows that a relation has now; if there are too many to keep, its last changes
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

import pyarrow as pa

from headgate.deliver.bags import net, sorted_rows
from headgate.deliver.sinks.sink import Result, results
from headgate.errors import UserError
from headgate.heartbeat.why import Why
from headgate.table import Table, counted, paragraphs, printable, words

PAGE_ROWS = 20_000
"""How many results are read in one look, at the most."""

MOST_ROWS = 10_000
"""How many rows of a relation are kept to show some of them."""

GLANCE_ROWS = 10
"""How many rows are shown of a query that is looked at once."""


class EarlyRows(Protocol):
    """An early answer, as far as it is shown."""

    @property
    def upto(self) -> Any: ...

    @property
    def results(self) -> list[Result]: ...

    @property
    def consistent(self) -> bool: ...


class Shown(Protocol):
    """A running query, as far as it is shown."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str:
        """Whether it gives a "stream" or a "relation"."""

    @property
    def text(self) -> str:
        """Its text in one line."""

    @property
    def columns(self) -> list[str]: ...

    @property
    def epochs(self) -> int: ...

    @property
    def trouble(self) -> UserError | None: ...

    @property
    def elsewhere(self) -> str | None:
        """Where its results go, if they are not kept."""

    @property
    def shares_outbox(self) -> bool:
        """Whether its results lie among those of others."""

    @property
    def last_position(self) -> int: ...

    @property
    def answers_early(self) -> bool: ...

    def early(self) -> EarlyRows | None: ...

    def page(self, after: int, most: int) -> tuple[list[pa.Table], int]:
        """Return results behind a position, at most so many, and the position of the last one looked at."""

    def why(self) -> Why: ...


@dataclass(frozen=True, slots=True)
class Picture:
    """What is shown of a query."""

    title: str
    lines: tuple[str, ...]
    """How far it is, what holds it back, and what has failed."""

    inputs: Table
    rows: Table | None = None
    early: Table | None = None

    def __str__(self) -> str:
        tables = (self.inputs, self.rows, self.early)
        return "\n\n".join(["\n".join([self.title, *self.lines]), *(str(one) for one in tables if one is not None)])

    def _repr_html_(self) -> str:
        tables = (self.inputs, self.rows, self.early)
        return paragraphs([self.title, *self.lines]) + "".join(one._repr_html_() for one in tables if one is not None)


class Lately:
    """The last results of a query. Those that nobody would see are not read."""

    def __init__(self, query: Shown, most: int) -> None:
        self.query = query
        self.most = most
        self.after = max(0, query.last_position - (PAGE_ROWS if query.shares_outbox else most))
        self.kept: deque[Result] = deque(maxlen=most)
        self.fresh: list[Result] = []
        """What the last look has found, as far as it is kept."""
        self.passed = 0
        """How many more there were."""

    @property
    def behind(self) -> int:
        """How many results have yet to be looked at."""
        return max(0, self.query.last_position - self.after)

    def read(self) -> None:
        """Look at what has come since the last time."""
        before = self.after
        if not self.query.shares_outbox:
            self.after = max(self.after, self.query.last_position - self.most)
        skipped = self.after - before
        tables, self.after = self.query.page(self.after, PAGE_ROWS)
        found = sum(table.num_rows for table in tables)
        self.fresh = list(_last(tables, self.most))
        self.passed = skipped + found - len(self.fresh)
        self.kept.extend(self.fresh)

    def table(self) -> Table:
        """Return them, the newest first."""
        changes = self.query.kind == "relation"
        about = ("_time", "_change") if changes else ("_time",)
        rows = [
            (one.at, *([one.sign] if changes else []), *map(one.row.get, self.query.columns))
            for one in reversed(self.kept)
        ]
        what = "changes" if changes else "results"
        return words(
            (*about, *self.query.columns), rows, f"the last {what}, the newest first" if rows else f"no {what}"
        )


class Current:
    """The rows that a relation has now."""

    def __init__(self, query: Shown, most: int) -> None:
        self.query = query
        self.most = most
        self.after = 0
        self.rows: pa.Table | None = None
        self.instead: Lately | None = None
        """The last changes, if there are too many rows to keep."""

    @property
    def behind(self) -> int:
        """How many results have yet to be looked at."""
        return max(0, self.query.last_position - self.after) if self.instead is None else self.instead.behind

    def read(self) -> None:
        """Apply the changes that have come since the last time."""
        if self.instead is not None:
            return self.instead.read()
        tables, self.after = self.query.page(self.after, PAGE_ROWS)
        if any(table.num_rows for table in tables):
            self.rows = net([*([] if self.rows is None else [_put_in(self.rows)]), *tables])
        if self.rows is not None and self.rows.num_rows > MOST_ROWS:
            self.instead, self.rows = Lately(self.query, self.most), None
            self.instead.read()
        return None

    def table(self) -> Table:
        """Return the first of them, in the order of their columns."""
        if self.instead is not None:
            shown = self.instead.table()
            return Table(shown.headings, shown.rows, f"more than {MOST_ROWS} rows: {shown.below}")
        count = 0 if self.rows is None else self.rows.num_rows
        first = [] if self.rows is None else sorted_rows(self.rows).slice(0, self.most).to_pylist()
        more = f"... and {count - self.most} more rows" if count > self.most else "" if count else "no rows"
        return words(self.query.columns, [[row.get(name) for name in self.query.columns] for row in first], more)


def _last(tables: Sequence[pa.Table], most: int) -> Iterable[Result]:
    """Give the last rows of tables of results, in order."""
    if tables:
        together = pa.concat_tables(tables, promote_options="default")
        yield from results(together.slice(max(0, together.num_rows - most)))


def _put_in(rows: pa.Table) -> pa.Table:
    """Return rows as the changes that put them in."""
    return rows.append_column("_change", pa.array(["+"] * rows.num_rows, pa.string()))


def drawn(query: Shown, why: Why, rows: Lately | Current | None, most: int, notes: Iterable[str] = ()) -> Picture:
    """Return the picture of a query, by why it has come no further and by the rows that were read."""
    return Picture(
        f"query {printable(query.name)}: {query.kind}, {_counted(query)}",
        tuple(map(printable, (*_lines(query, why), *_reading(rows), *notes))),
        words(
            ("reads", "complete up to", "state", "waiting"),
            [(one.stream, one.complete, one.state, one.waiting) for one in why.inputs],
        ),
        rows.table() if rows is not None else None,
        _early(query, most) if query.answers_early else None,
    )


def glance(query: Shown, why: Why) -> Picture:
    """Return the picture of a query that is looked at once, with its last results."""
    rows = Lately(query, GLANCE_ROWS) if query.elsewhere is None else None
    if rows is not None:
        rows.read()
    return drawn(query, why, rows, GLANCE_ROWS)


def as_html(query: Shown, picture: Picture) -> str:
    """Return the picture of a query as HTML, with its text."""
    return f"<pre>{escape(query.text)}</pre>{picture._repr_html_()}"


def _counted(query: Shown) -> str:
    epochs = counted(query.epochs, "epoch")
    if query.shares_outbox or query.elsewhere is not None:
        return epochs
    return f"{counted(query.last_position, 'result')} in {epochs}"


def _lines(query: Shown, why: Why) -> list[str]:
    """Return what is said of a query."""
    lines = [f"complete up to {why.complete}"]
    if why.held_by:
        since = "" if why.since_s is None else f", last heard of {why.since_s:.1f} s ago"
        lines += [f"held back by {why.held_by}{since}", f"because {why.cause}"]
        lines += [f"released by {why.releases[0]}"] if why.releases else []
    else:
        lines.append("nothing holds it back")
    lines += [f"the results go to {query.elsewhere}"] if query.elsewhere is not None else []
    lines += query.trouble.render().splitlines() if query.trouble is not None else []
    return lines


def _reading(rows: Lately | Current | None) -> list[str]:
    behind = 0 if rows is None else rows.behind
    return [f"{behind} results have yet to be read"] if behind else []


def _early(query: Shown, most: int) -> Table | None:
    """Return the early answer that holds now."""
    answer = query.early()
    if answer is None or not answer.results:
        return None
    found = answer.results
    shown = [(one.at, one.sign, *map(one.row.get, query.columns)) for one in found[-most:]]
    left = f"; the last {most} of {len(found)}" if len(found) > most else ""
    unsure = "" if answer.consistent else ", and may show part of an update"
    said = f"early, up to {answer.upto}: these changes may still be withdrawn{unsure}{left}"
    return words(("_time", "_change", *query.columns), shown, said)
