"""Sinks: where the results of a query go, delivery after delivery, and what a result looks like.

The results of each epoch are first kept in the engine's directory, together with the query's progress; from there they
are delivered, in order of their number, and again after a crash if it is not known that they arrived. Files of a
delivery are Parquet with the columns `_time`, for a relation `_change` (+ or -), and those of the row. Order within a
delivery is by `_time`, deletions before insertions; in the files themselves rows may stand in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from headgate.catalog.entries import Connector
from headgate.deliver.reflects import Label, label
from headgate.log.chunk import Chunk, span
from headgate.sql import result_order
from headgate.ticks import Tick


@dataclass(frozen=True, slots=True)
class Result:
    """A tuple of a stream ("+"), or a row that came into a relation ("+") or left it ("-"), and when."""

    at: Any
    sign: str
    row: dict[str, Any]
    reflects: Label | None = field(default=None, compare=False)
    """The label of its epoch, where that is asked for: the input that the answers up to there reflect."""
    partial: bool = False
    """Whether it belongs to an early answer, and may still be withdrawn."""

    def __str__(self) -> str:
        mark, row = "~ " if self.partial else "", ", ".join(f"{key}={value}" for key, value in self.row.items())
        return f"{mark}{self.at} {self.sign} {row}"


@dataclass(frozen=True, slots=True)
class Delivery:
    """The results of one epoch of a query, or a piece of them if the epoch has very many."""

    query: str
    number: int
    """1, 2, 3, ... for each query without gaps; never used again for other contents."""

    after: Tick
    until: Tick
    """With this delivery everything up to there is out. Results have timestamps in (after, until]; a piece that ends in
    the middle of an instant also has some of the instant behind `until`. Of a query that runs by groups of sources,
    `until` is how far the least far group is, and results of the others may lie behind it."""

    complete: Any
    """`until` as the user knows it; None if it is before the first instant there is."""

    files: tuple[Path, ...]
    """Parquet; none if the epoch had no results. They stay until the delivery has succeeded."""

    rows: int
    left: int = 0
    """How many pieces of the same epoch come behind it."""

    tuples: Mapping[str, int] = field(default_factory=dict, hash=False)
    """By stream and relation: from how many tuples the results up to here come; empty if it is not known."""

    partial: bool = False
    """Whether it is an early answer: results behind `until`, which the sink cannot take back."""

    @property
    def reflects(self) -> Label:
        """The input that everything up to `complete` reflects, by stream and relation; empty if it is not known."""
        return label(self.tuples, self.complete)


class Sink(Protocol):
    """Takes the results of one query, delivery after delivery.

    Deliveries come in the order of their numbers, one call at a time. A call that raises is repeated with the same
    delivery.
    """

    guarantee: str
    """How often a result arrives: "exactly once" or "at least once", and on which condition."""

    wants_empty: bool
    """True if epochs without results are delivered too, so that "complete up to" advances where the results are."""

    def deliver(self, delivery: Delivery) -> None:
        """Put one delivery out; when this returns, it is out.

        After a crash it is called again for a delivery that may be out already.
        """

    def delivered(self) -> int | None:
        """The number of the last delivery that arrived, as the sink itself knows it: 0 if none did, None if it cannot
        know.
        """

    def close(self) -> None:
        """Release connections. Deliveries from which `deliver` has returned are not lost by that."""


class GroupSink(Protocol):
    """Takes the results of several queries, all or nothing in each delivery."""

    guarantee: str

    def deliver_all(self, delivery: Delivery, parts: Mapping[str, Delivery]) -> None:
        """Put the part of each query out; when this returns, all of them are out. `delivery` has what they have in
        common.

        After a crash it is called again for a delivery that may be out already.
        """

    def delivered(self) -> int | None:
        """The number of the last delivery that arrived, as the sink itself knows it: 0 if none did."""

    def close(self) -> None:
        """Release connections."""


class GroupSinkClass(Protocol):
    """A class of sinks for groups. It opens one with the group's name, its INTO, that of each query, Spark's session
    and the group's own folder.
    """

    def __call__(
        self,
        group: str,
        connector: Connector,
        members: Mapping[str, Connector],
        session: SparkSession,
        directory: Path,
        /,
    ) -> GroupSink:
        """Open the sink, or raise an error that says why that cannot be done."""


class SinkClass(Protocol):
    """A class of sinks. It opens a sink with the query's name, INTO, Spark's session and the query's own folder."""

    guarantee: str
    wants_empty: bool

    def __call__(self, query: str, connector: Connector, session: SparkSession, directory: Path, /) -> Sink:
        """Open the sink, or raise an error that says why that cannot be done."""


def in_order(tables: Sequence[pa.Table], labels: Sequence[Label] = ()) -> Iterator[Result]:
    """The rows of several tables of results, ordered by time, deletions before insertions; with the label of each
    table, if labels are given.
    """
    if labels:
        tables = [
            table.append_column("_label", pa.repeat(pa.scalar(number), table.num_rows))
            for number, table in enumerate(tables)
        ]
    if tables:
        table = pa.concat_tables(tables, promote_options="default")
        yield from results(table.sort_by(result_order(table.column_names)), labels)


def results(table: pa.Table, labels: Sequence[Label] = ()) -> Iterator[Result]:
    """The rows of a table of results, one by one; with labels, `_label` is the place of its own among them."""
    changes = "_change" in table.column_names
    for row in table.to_pylist():
        at, sign = row.pop("_time"), row.pop("_change") if changes else "+"
        reflects = labels[row.pop("_label")] if labels else None
        yield Result(at, sign, row, reflects)


def ticks_of(table: pa.Table) -> pa.ChunkedArray:
    """The instants of results, in ticks."""
    times = table.column("_time")
    if pa.types.is_timestamp(times.type):
        times = times.cast(pa.timestamp("us", times.type.tz))
    return times.cast(pa.int64())


def overlaps(chunk: Chunk, after: Tick | None, until: Tick) -> bool:
    """Whether a chunk may hold results of (after, until], by what its file says of its timestamps."""
    known = span(pq.read_metadata(chunk.path), "_time")
    return known is None or ((after is None or known[1] > after) and known[0] <= until)


def within(tables: Iterable[pa.Table], after: Tick | None, until: Tick) -> Iterator[pa.Table]:
    """The results of (after, until]; without `after`, all up to `until`."""
    for table in tables:
        times = ticks_of(table)
        wanted = pc.less_equal(times, until)
        if after is not None:
            wanted = pc.and_(wanted, pc.greater(times, after))
        found = table.filter(wanted)
        if found.num_rows:
            yield found
