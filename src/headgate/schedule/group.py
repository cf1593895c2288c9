"""A group of queries: what they put out goes to its sink together, up to one instant that all of them have reached.

The results of the queries are kept, as those of queries without a sink are. When all queries have come further, the
journal notes a delivery: from the instant up to which the last one went, up to the new one. What it holds follows from
these two instants and from the results that are kept, so after a crash the same delivery is made again. Its number is
what tells the sink whether it has it.

A sink that is slow gets fewer and larger deliveries: the next one is noted when the last one is out.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import StructType

from headgate.catalog.entries import Group
from headgate.catalog.sinks import SINKS
from headgate.deliver.courier import CLOSE_SECONDS, Courier
from headgate.deliver.outbox import Outbox
from headgate.deliver.reflects import most
from headgate.deliver.sinks.sink import Delivery, GroupSink, overlaps, within
from headgate.errors import UserError
from headgate.heartbeat.clock import Clock
from headgate.log.chunk import Chunk
from headgate.log.journal import Fact, Journal
from headgate.log.links import link
from headgate.schedule.common import common_instant
from headgate.schedule.family import by_member
from headgate.schedule.query import RunningQuery

SPARK_COLUMNS = b"org.apache.spark.sql.parquet.row.metadata"
"""Under this name Spark notes in a Parquet file of which types the columns are."""


class RunningGroup:
    """A group as its user sees it while its queries run: how far they are together, and how far the sink is."""

    def __init__(
        self,
        definition: Group,
        queries: Callable[[], Sequence[RunningQuery]],
        directory: Path,
        journal: Journal,
        open_sink: Callable[[], GroupSink],
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.definition = definition
        self._queries = queries
        self.journal = journal
        self.domain = self.queries[0].domain
        self.sink = GatheredSink(self, directory / ".parts", open_sink)
        self.outbox = Outbox(definition.name, self.domain, self.sink, directory, journal)
        self.outbox.owner = f'group "{definition.name}"'
        self.courier = Courier(self.outbox, wake)
        self.until = self.domain.origin - 1
        """The instant up to which deliveries were noted."""
        self.subject = f"group {directory.name}"
        journal.introduce(self.subject, self.apply)

    def __repr__(self) -> str:
        return f"RunningGroup({self.name}: complete up to {self.complete}, delivered up to {self.delivered})"

    @property
    def name(self) -> str:
        """The name it was registered under."""
        return self.definition.name

    @property
    def queries(self) -> Sequence[RunningQuery]:
        """Its queries."""
        return self._queries()

    @property
    def complete(self) -> Any:
        """The latest instant at which all of its queries are complete; None while there is none."""
        instant = common_instant(self.queries)
        return None if instant is None else self.domain.moment(instant)

    @property
    def delivered(self) -> Any:
        """The instant up to which the sink has everything, of all queries; None before the first."""
        upto = self.outbox.delivered(self.until)
        return self.domain.moment(upto) if upto >= self.domain.origin else None

    @property
    def guarantee(self) -> str:
        """How often each result gets to where the group puts them."""
        return self.sink.guarantee

    @property
    def undelivered(self) -> bool:
        """Whether its sink has yet to take something."""
        with self.journal.turn:
            instant = common_instant(self.queries)
            return bool(self.outbox.waiting) or (instant is not None and instant > self.until)

    # out

    def deliver(self, clock: Clock, tell: Callable[[str], None], wait_s: float) -> None:
        """Note what is new, and hand it over in the thread of the sink."""
        self._note()
        self.courier.deliver(clock, tell, None, wait_s)

    def finish(self, clock: Clock, tell: Callable[[str], None], wait_s: float) -> None:
        """Hand over the rest at the end of the engine."""
        with suppress(UserError):  # what cannot be noted now is delivered by the next engine
            self.courier.wait(wait_s)
            self._note()
        self.courier.finish(clock, tell, wait_s)

    def _note(self) -> None:
        """Note a delivery, if all queries have come further and the sink has taken the last one.

        How far the queries are becomes durable with it: some of them may have come so far without an epoch.
        """
        with self.journal.together():
            queries = self.queries
            instant = common_instant(queries)
            if self.outbox.waiting or instant is None or instant <= self.until:
                return
            for fragment in dict.fromkeys(one for query in queries for one in query.answers):
                progress = fragment.progress
                fact = {"after": progress.after, "tuples": dict(progress.tuples)}
                self.journal.record(
                    fragment.subject, fact if fragment.program.synopses else {**fact, "since": progress.since}
                )
            self.outbox.put([], self.until, instant, most(query.tuples() for query in queries))
            self.journal.record(self.subject, {"until": instant})

    def close(self, wait_s: float = CLOSE_SECONDS) -> None:
        """Let go of its sink."""
        self.courier.close(wait_s)

    # what the journal knows of it

    def apply(self, fact: dict[str, Any]) -> None:
        """Take what the journal says of it."""
        self.until = fact.get("until", self.until)

    def facts(self) -> list[Fact]:
        """Return how far it has come, for a checkpoint."""
        return [
            (self.outbox.log.subject, self.outbox.log.state()),
            (self.outbox.subject, self.outbox.state()),
            (self.subject, {"until": self.until}),
        ]


class GatheredSink:
    """The sink of a group, as its outbox knows it. It gathers what a delivery holds from the results of the queries."""

    wants_empty = True

    def __init__(self, group: RunningGroup, folder: Path, open_sink: Callable[[], GroupSink]) -> None:
        self.group = group
        self.folder = folder
        """Where the results of a delivery are while it is made."""
        self.open_sink = open_sink
        assert group.definition.connector is not None
        self.guarantee = SINKS[group.definition.connector.format].guarantee
        self._sink: GroupSink | None = None

    def opened(self) -> GroupSink:
        """The sink itself. After a restart it may be out of reach, and is opened when there is something to deliver."""
        if self._sink is None:
            self._sink = self.open_sink()
        return self._sink

    def deliver(self, delivery: Delivery) -> None:
        """Gather the results of all queries, and hand them over."""
        sink = self.opened()
        try:
            sink.deliver_all(delivery, self._gathered(delivery))
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def delivered(self) -> int | None:
        """The number of the last delivery that the sink has."""
        return self.opened().delivered()

    def close(self) -> None:
        """Close the sink if it was opened."""
        if self._sink is not None:
            self._sink.close()

    def _gathered(self, delivery: Delivery) -> dict[str, Delivery]:
        """The part of each query, with its results of (after, until] in one file."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        queries = self.group.queries
        parts = {query.name: replace(delivery, query=query.name, tuples=_tuples(query, delivery)) for query in queries}
        kept = self._linked(queries, delivery)
        with ExitStack() as files:
            writers: dict[str, pq.ParquetWriter] = {}
            for query, rows in _results(kept, delivery):
                part, path = parts[query.name], self.folder / f"part-{len(writers):05d}.parquet"
                if query.name not in writers:
                    schema = rows.schema.with_metadata({SPARK_COLUMNS: _columns(query).json()})
                    writers[query.name] = files.enter_context(pq.ParquetWriter(path, schema))
                    part = replace(part, files=(path,))
                writers[query.name].write_table(rows.cast(writers[query.name].schema))
                parts[query.name] = replace(part, rows=part.rows + rows.num_rows)
        return parts

    def _linked(self, queries: Sequence[RunningQuery], delivery: Delivery) -> list[Kept]:
        """The chunks that may hold results of a delivery, under other names: the engine may merge them meanwhile.

        Queries that are members of one family have theirs in the same chunks.
        """
        with self.group.journal.turn:
            outboxes = dict.fromkeys(query.outbox for query in queries)
            found = [
                ([query for query in queries if query.outbox is outbox], chunk)
                for outbox in outboxes
                for chunk in outbox.log.chunks
                if overlaps(chunk, delivery.after, delivery.until)
            ]
            linked = [replace(chunk, path=self.folder / f"{place:05d}.kept") for place, (_, chunk) in enumerate(found)]
            for (_, chunk), copy in zip(found, linked, strict=True):
                link(chunk.path, copy.path)
        return [(readers, chunk, copy) for (readers, chunk), copy in zip(found, linked, strict=True)]


Kept = tuple[list[RunningQuery], Chunk, Chunk]
"""Queries, a chunk that holds results of theirs, and the same chunk under another name."""


def _tuples(query: RunningQuery, delivery: Delivery) -> dict[str, int]:
    """From how many tuples of each of its streams the results of a query come.

    All queries of the group are complete up to the end of the delivery. So what one of them has seen of a stream, and
    another has not, lies behind it, and changes nothing for the other.
    """
    known = {stream: delivery.tuples[stream] for stream in query.streams() if stream in delivery.tuples}
    return known if len(known) == len(query.streams()) else {}


def _results(kept: Sequence[Kept], delivery: Delivery) -> Iterator[tuple[RunningQuery, pa.Table]]:
    """The results of a delivery, query by query and row group by row group."""
    for queries, chunk, copy in kept:
        try:
            for rows in within(copy.parts(), delivery.after, delivery.until):
                yield from _told_apart(queries, rows)
        except UserError:
            chunk.check()  # names the file itself, if it is still there
            raise


def _told_apart(queries: Sequence[RunningQuery], rows: pa.Table) -> Iterator[tuple[RunningQuery, pa.Table]]:
    """Results that lie in one outbox, query by query."""
    first = queries[0]
    if first.membership is None or not first.shares_outbox:
        yield first, rows
        return
    members = by_member([rows], first.membership.family.shown)
    for query in queries:
        if query.membership is not None and (own := members.get(query.membership.number)) is not None:
            yield query, own


def _columns(query: RunningQuery) -> StructType:
    """The columns of the results of a query."""
    names = {"_time", "_change", *query.columns}
    return StructType([column for column in query.answer.result_schema if column.name in names])
