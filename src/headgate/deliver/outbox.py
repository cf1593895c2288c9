"""The outbox of a query: results between the epoch that made them and the sink that takes them.

An epoch's results are committed in one line of the journal with the query's progress, so they are here exactly when the
query has got so far. They are delivered in order. Each delivery is tried again until the sink has taken it, and stays
on disk until then. Results without a sink of their own stay for good, for `query.results()`.

The thread of a `Courier` calls the sink; the thread that runs epochs does everything else. What both threads touch
changes in the journal's turn.

Slow flush: an epoch with more results than may go out at once (`flush_rows`) is split into pieces before it comes in.

- A piece is a delivery like any other, with a number of its own. A sink gives the guarantee for it that it gives for
  all deliveries, and a crash between two pieces is a crash between two deliveries.
- One piece goes out in a turn of the loop. The instant up to which everything is out stays before the first result
  that is still here.
- If another large epoch comes before the last one is out, the rest of the old one goes at once, piece by piece. A sink
  that can keep up is never more than one epoch behind.

Early answers (`EMIT EARLY`) are deliveries too. A sink that holds what the relation is (upserts, current) gets the
changes that lead from one early answer to the next. Before anything settled goes out, the early answer is taken back.
A file in the query's folder has the early answer that the sink holds, so that it is taken back after a crash as well.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from headgate.deliver import flush
from headgate.deliver.bags import correction
from headgate.deliver.reflects import Label, label
from headgate.deliver.sinks.memory import MemorySink
from headgate.deliver.sinks.sink import Delivery, Sink
from headgate.deliver.sinks.writer import identity
from headgate.errors import UserError
from headgate.heartbeat.clock import Clock
from headgate.log.checksum import synced, writing
from headgate.log.chunk import Chunk, count, span
from headgate.log.journal import Journal
from headgate.log.log import Log
from headgate.spark.back_off import BackOff
from headgate.spark.failures import reason_of
from headgate.spark.staging import write_arrow
from headgate.ticks import Tick, TimeDomain


class Outbox:
    """The results of one query that its sink has not taken yet."""

    def __init__(
        self,
        query: str,
        domain: TimeDomain,
        sink: Sink,
        directory: Path,
        journal: Journal,
        flush_rows: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.query = query
        self.owner = f'query "{query}"'
        """Whose results they are, for messages."""
        self.domain = domain
        self.sink = sink
        self.directory = directory
        self.journal = journal
        self.flush_rows = flush_rows
        """Says how many results may go out at once; None: all."""
        folder = directory.name
        self.log = Log(directory / "results", journal, f"log queries/{folder}/results")
        self.subject = f"outbox {folder}"
        self.kept = isinstance(sink, MemorySink)
        """Whether results stay here for good."""
        self.most_kept: int | None = None
        """Of so many results that stay here the files stay, and older files go; None: all stay."""
        self.number = 0
        """The number of the last delivery: an epoch with results, or whose end the sink wants to know, or a piece."""
        self.labels: list[tuple[int, Tick, Mapping[str, int]]] = []
        """Of results that stay here: how many there were at the end of an epoch, up to when they were complete, and
        from how many tuples of each stream they come. Only labels that some results have are kept."""
        self.shown: str | None = None
        """The file with the early answer that the sink holds beyond what is settled, once it has what waits; None if it
        holds none."""
        self.waiting: deque[Delivery] = deque()
        """What the sink has not taken, in order."""
        self.back_off = BackOff()
        """When a sink that has failed is tried again."""
        self.trouble: Exception | None = None
        self.on_failure: Callable[[Exception], None] = lambda error: None
        """Called with each error of the sink. It returns at once."""
        """Why the sink has not taken the first delivery that waits."""
        self.taken_us: int | None = None
        """When the sink took the last delivery."""
        self.held = False
        """Whether nothing more is to be delivered, because the query ends."""
        self.calling = threading.Lock()
        """Held while the sink is called."""
        self._compared = False
        """Whether the sink was asked, since the start of the engine, which deliveries it has."""
        self._last_taken = 0
        """The last delivery that the sink took in this run; on a full disk the journal may not know of it yet."""
        journal.introduce(self.subject, self.apply)

    @cached_property
    def edition(self) -> str:
        """The identity of its results. It stays over restarts; those of another outbox have another one."""
        return identity(self.directory)

    # what the journal knows of it

    def apply(self, what: dict[str, Any]) -> None:
        """Take what the journal says of it."""
        self.number = what.get("number", self.number)
        self.shown = what.get("shown", self.shown)
        for number, after, until, files, rows, *left in what.get("waiting", ()):
            paths = tuple(self.log.directory / file for file in files)
            self.waiting.append(Delivery(self.query, number, after, until, self._moment(until), paths, rows, *left))
        self.labels += [(rows, until, tuples) for rows, until, tuples in what.get("labels", ())]
        while self.waiting and self.waiting[0].number <= what.get("delivered", 0):
            self.waiting.popleft()

    def state(self) -> dict[str, Any]:
        """Return the fact that `apply` takes."""
        fact = {"number": self.number, "waiting": list(map(_listed, self.waiting))}
        fact |= {"shown": self.shown} if self.shown is not None else {}
        return fact | ({"labels": list(map(list, self.labels))} if self.labels else {})

    def label_of(self, chunk: Chunk) -> Label:
        """Return the label of results that stay here; of a file that was merged, that of the last of its epochs."""
        place = bisect_left(self.labels, chunk.arrived, key=lambda one: one[0])
        if place == len(self.labels):
            return {}  # an earlier version knew none
        _, until, tuples = self.labels[place]
        return label(tuples, self._moment(until))

    def _forget_labels(self) -> None:
        """Forget the labels that no results have any more, now that files were merged."""
        places = {bisect_left(self.labels, chunk.arrived, key=lambda one: one[0]) for chunk in self.log.chunks}
        self.labels = [one for place, one in enumerate(self.labels) if place in places]

    # in

    def continue_numbers(self) -> None:
        """Begin numbers behind those that the sink has: a new query may go on where another has put its results."""
        self.number = self.sink.delivered() or 0
        self._compared = True

    def split(self, files: list[Path], session: SparkSession, in_order: bool = False) -> list[list[Path]]:
        """Return the files of an epoch's results as they are to go out: all at once, or in pieces of one file each.

        Results that stay here are put in order, because their places in the log are their positions (`pages`).
        `in_order` says that they are already.
        """
        if self.kept:
            return [files] if in_order else [flush.in_order(session, files, self.directory / ".pieces")]
        most = self.flush_rows()
        if most is None or sum(map(count, files)) <= most:
            return [files]
        return [[piece] for piece in flush.split(session, files, most, self.directory / ".pieces")]

    def put(
        self, pieces: Sequence[Sequence[Path]], after: Tick, until: Tick, tuples: Mapping[str, int] | None = None
    ) -> list[Chunk]:
        """Take the files of the results of (after, until], in pieces; return the chunks that they are now.

        It is part of the commit of an epoch. `tuples` has the numbers of the label: from how many tuples of each stream
        the results come, with all before them.
        """
        tuples = tuples or {}
        with self.journal.together():
            chunks = self.log.adopt_all(file for files in pieces for file in files)
            back = self._without_early(after) if self.shown is not None else []
            deliveries = back
            if not self.kept and (chunks or self.sink.wants_empty):
                split = [[chunk] for chunk in chunks] if len(pieces) > 1 else [chunks]
                deliveries = [*back, *self._deliveries(split, after, until, tuples, behind=len(back))]
            if deliveries:
                shown = {"shown": None} if self.shown is not None else {}
                self.journal.record(self.subject, {**_waiting(deliveries), **shown})
            elif self.kept and chunks and tuples:
                rows = self.log.rows + sum(chunk.rows for chunk in chunks)
                self.journal.record(self.subject, {"labels": [[rows, until, tuples]]})
        return chunks

    def show_early(self, table: pa.Table | None, reached: Tick, upto: Tick, tuples: Mapping[str, int]) -> None:
        """Let a sink that can take back hold the changes of an early answer, in place of those it holds now.

        What is settled goes up to `reached`, the early answer up to `upto`.
        """
        path = self.directory / f"early-{self.number + 1}.parquet" if table is not None else None
        before = self._shown()
        changes = self._correction(table, before, upto)
        if changes is None:
            return
        if path is not None:
            with writing(self.directory):
                pq.write_table(table, path)
                if self.journal.durable:
                    synced(path)
                    synced(self.directory)
        with self.journal.together():
            deliveries = self._deliveries([self._adopted(changes)], reached, reached, tuples)
            shown = path.name if path is not None else None
            self.journal.record(self.subject, {**_waiting(deliveries), "shown": shown})
        self._sweep_early()

    def take_back_early(self, reached: Tick) -> None:
        """Let the sink hold what is settled and nothing else, because the query ends."""
        if self.shown is not None:
            self.show_early(None, reached, reached + 1, {})

    def put_partial(self, table: pa.Table | None, reached: Tick, tuples: Mapping[str, int]) -> None:
        """Let a sink that cannot take back have what is new in an early answer, marked as partial."""
        if table is None:
            return
        with self.journal.together():
            (made,) = self._deliveries([self._adopted(table)], reached, reached, tuples)
            self.journal.record(self.subject, _waiting([replace(made, partial=True)]))

    def _without_early(self, reached: Tick) -> list[Delivery]:
        """Return the delivery after which the sink holds what is settled and nothing else."""
        changes = self._correction(None, self._shown(), reached + 1)
        return self._deliveries([self._adopted(changes)], reached, reached, {}) if changes is not None else []

    def _shown(self) -> pa.Table | None:
        return pq.read_table(self.directory / self.shown) if self.shown is not None else None

    def _correction(self, now: pa.Table | None, before: pa.Table | None, at: Tick) -> pa.Table | None:
        """Return the changes that lead from one early answer to another, at one instant."""
        known = now if now is not None else before
        if known is None:
            return None
        return correction(now, before, pa.scalar(self.domain.moment(at), known.schema.field("_time").type))

    def _adopted(self, table: pa.Table) -> list[Chunk]:
        """Return the chunks of results that do not come from files."""
        written = write_arrow({".": table}, self.directory / ".early")
        return self.log.adopt_all(sorted(written.glob("*.parquet")))

    def _sweep_early(self) -> None:
        """Delete the files of early answers that the sink does not hold any more."""
        for path in self.directory.glob("early-*.parquet"):
            if path.name != self.shown:
                path.unlink(missing_ok=True)

    def _deliveries(
        self, pieces: Sequence[Sequence[Chunk]], after: Tick, until: Tick, tuples: Mapping[str, int], behind: int = 0
    ) -> list[Delivery]:
        """Return a delivery for each piece, behind so many others. Each ends before the first result of the next."""
        ends = [*(max(after, min(until, _first_timestamp(chunks) - 1)) for chunks in pieces[1:]), until]
        deliveries = []
        for position, (chunks, end) in enumerate(zip(pieces, ends, strict=True)):
            files, rows = tuple(chunk.path for chunk in chunks), sum(chunk.rows for chunk in chunks)
            number, left = self.number + behind + 1 + position, len(pieces) - 1 - position
            deliveries.append(Delivery(self.query, number, after, end, self._moment(end), files, rows, left, tuples))
            after = end
        return deliveries

    def _moment(self, tick: Tick) -> Any:
        return self.domain.moment(tick) if tick >= self.domain.origin else None

    # out

    def deliver(self, clock: Clock, tell: Callable[[str], None], pieces: int | None = None) -> None:
        """Hand over what waits, in order, as far as the sink takes it. When it fails, it is tried again later.

        With `pieces`, no more than so many pieces of a large epoch go, and nothing behind them.
        """
        while self.waiting and not self.held and self.back_off.ready(clock.now_us()):
            piece = self._pauses()
            if piece and pieces == 0:
                return
            try:
                if not self._compared:
                    self._compare()
                    continue
                if self.waiting[0].number > self._last_taken:
                    self._check(self.waiting[0])
                    with self.calling:
                        self.sink.deliver(self.waiting[0])
            except Exception as error:  # whatever a sink's client raises
                self._failed(error, clock.now_us(), tell)
            else:
                if self.trouble is not None:
                    tell(f"the sink of {self.owner} takes results again")
                self.back_off.succeeded()
                self.trouble = None
                self.taken_us = clock.now_us()
                self._last_taken = max(self._last_taken, self.waiting[0].number)
                self._delivered(self.waiting[0].number)
                if piece and pieces is not None:
                    pieces -= 1
                    if not pieces:
                        return

    def hand_over(self) -> None:
        """Hand over what waits without a note in the journal, whose turn another thread has. After a crash the sink is
        asked what it has.
        """
        if not self._compared:
            with self.calling:
                self._last_taken = max(self._last_taken, self._arrived() or 0)
        for delivery in list(self.waiting):
            with self.calling:
                if delivery.number > self._last_taken:
                    self._check(delivery)
                    self.sink.deliver(delivery)
                    self._last_taken = delivery.number

    def _check(self, delivery: Delivery) -> None:
        """Raise an error if the results are not what was written."""
        for chunk in self.log.chunks:
            if chunk.path in delivery.files:
                chunk.check()

    def _pauses(self) -> bool:
        """Say whether to pause behind the first delivery that waits.

        It is a piece, more pieces of its epoch follow, and no other large epoch waits behind them.
        """
        with self.journal.turn:  # epochs go on putting more behind it
            left = self.waiting[0].left
            return left > 0 and not any(later.left for later in islice(self.waiting, left + 1, None))

    def can_deliver(self, now_us: int) -> bool:
        """Say whether something waits that the sink may take now."""
        return bool(self.waiting) and self.back_off.ready(now_us)

    def finish(self, clock: Clock, tell: Callable[[str], None]) -> None:
        """Hand over the rest at the end of the engine, unless the sink has failed or was not reached in this run."""
        if self._compared and self.trouble is None:
            with suppress(UserError):
                self.deliver(clock, tell)

    def delivered(self, reached: Tick) -> Tick:
        """Return the instant up to which the sink has everything, for a query that is complete up to `reached`."""
        with self.journal.turn:
            return self.waiting[0].after if self.waiting else reached

    def _failed(self, error: Exception, now_us: int, tell: Callable[[str], None]) -> None:
        if self.trouble is None or reason_of(self.trouble) != reason_of(error):
            if isinstance(error, UserError) and error.code == "torn-file":
                tell(f"results of {self.owner} are not delivered until they are put back\n{error.render()}")
            else:
                why = reason_of(error)
                tell(f"the sink of {self.owner} takes no results, which wait and are tried again: {why}")
        self.trouble = error
        self.back_off.failed(now_us)
        self.on_failure(error)

    def _compare(self) -> None:
        """After a restart, ask the sink which deliveries it has: they need not be delivered again."""
        arrived = self._arrived()
        self._compared = True
        if arrived:
            self._delivered(arrived)

    def _arrived(self) -> int | None:
        """The number of the last delivery that the sink has; None if it cannot know."""
        arrived = self.sink.delivered()
        if arrived is not None and arrived > self.number:
            raise UserError(
                "sink-ahead",
                f"the sink of {self.owner} has results that this directory knows nothing of",
                detail=f"It has taken delivery {arrived}, and the last one made here is {self.number}.",
                hint="Give each directory a sink of its own, or DROP the query and create it anew.",
            )
        return arrived

    def _delivered(self, number: int) -> None:
        with self.journal.together():
            done = {path for delivery in self.waiting if delivery.number <= number for path in delivery.files}
            self.journal.record(self.subject, {"delivered": number})
            self.journal.record(*self.log.dropping([chunk for chunk in self.log.chunks if chunk.path in done]))
        for path in done:
            path.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Merge small files of results that stay here, and delete early answers that are taken back. Other results are
        handed over as they are.
        """
        self._sweep_early()
        if self.kept:
            if self.most_kept is not None:
                last = self.log.rows - self.most_kept
                self.log.forget(lambda chunk: chunk.arrived > last)
            self.log.compact()
            self._forget_labels()

    def close(self) -> None:
        """Let go of the sink."""
        self.sink.close()


def _waiting(deliveries: Sequence[Delivery]) -> dict[str, Any]:
    """The fact that deliveries wait for the sink."""
    return {"number": deliveries[-1].number, "waiting": list(map(_listed, deliveries))}


def _listed(delivery: Delivery) -> list[Any]:
    files = [path.name for path in delivery.files]
    known = [delivery.number, delivery.after, delivery.until, files, delivery.rows, delivery.left]
    more = [dict(delivery.tuples), *([True] if delivery.partial else [])]
    return [*known, *more] if delivery.tuples or delivery.partial else known


def _first_timestamp(chunks: Sequence[Chunk]) -> Tick:
    """Return the least timestamp of results."""
    spans = [span(pq.read_metadata(chunk.path), "_time") for chunk in chunks]
    return min(low for low, _ in filter(None, spans))
