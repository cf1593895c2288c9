"""Streams from any streaming source that Spark has: a micro-batch becomes a chunk of the log before Spark commits it.

Each stream has one streaming query, with its checkpoint in the engine's directory. The query's thread hands each
micro-batch to the engine's next poll and waits until it is in the log. Only then does Spark commit its offsets and plan
the next batch. So nothing is read faster than it is written, and no lock is ever waited for inside Spark. After a
crash Spark gives the last batch again under its old number, and a batch whose number the inlet's position has reached
is passed over.

    sources/bids/offsets/17     up to where batch 17 reads: written by Spark before it is read, durable before it counts
    sources/bids/commits/17     batch 17 is in the log
    sources/tcp/capture         packets of a live interface that are not in the log yet (see `packets.spool`)
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate import paths
from headgate.catalog.entries import Connector
from headgate.catalog.readers import STREAMED, reader
from headgate.errors import UserError, nearest
from headgate.heartbeat.clock import Clock, SystemClock
from headgate.log.checksum import DAMAGED, agrees_with_hadoop, synced, torn, writing
from headgate.sources.inlet import Inlet
from headgate.sources.judging import arriving_folder, judged
from headgate.sources.low_part import Reduced
from headgate.sources.packets import interface_rows
from headgate.sources.payload import with_columns
from headgate.sources.reading import FileReader
from headgate.spark import connectors
from headgate.spark.failures import condition, failure, sentence
from headgate.spark.session import over_connect, own_session
from headgate.spark.staging import address
from headgate.spark.statements import selected
from headgate.sql import ALL, Sql

EVERY = "100 milliseconds"
"""How often Spark looks for new rows when there were none."""

WAIT_SECONDS = 0.02
STOP_SECONDS = 30
INTERRUPTED = "py4j.protocol.Py4JJavaError: An error occurred while calling the batch\n: java.lang.InterruptedException"
"""The words by which Spark knows that a batch was stopped and did not fail."""
CAPTURE = "capture"
"""The folder of the checkpoint in which packets of an interface are kept until they are in the log."""

ANY_FILE = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"

PIECE = 2**26
"""Rows of one task of a batch are told apart by their order of arrival up to this many."""


def _tells_failure(record: logging.LogRecord) -> bool:
    """Not that a batch was stopped: py4j would show it with its stack."""
    return record.exc_info is None or INTERRUPTED not in str(record.exc_info[1])


logging.getLogger("py4j.clientserver").addFilter(_tells_failure)


@dataclass(slots=True)
class Handover:
    """Hands a micro-batch from Spark's thread to the engine's. Spark waits until it is taken, or the query ends."""

    there: threading.Event = field(default_factory=threading.Event)
    settled: threading.Event = field(default_factory=threading.Event)
    wake: Callable[[], None] = lambda: None
    ended: bool = False
    rows: DataFrame | None = None
    batch: int = -1

    def offer(self, rows: DataFrame, batch: int) -> None:
        """Called in Spark's thread: offer a batch, and return when it is in the log."""
        if not self.ended:
            self.rows, self.batch = rows, batch
            self.settled.clear()
            self.there.set()
            self.wake()
            self.settled.wait()
        if self.ended:
            with suppress(Py4JError):  # this is Spark's own thread, and here `stop` interrupts it
                jvm: Any = rows.sparkSession.sparkContext._jvm
                jvm.java.lang.Thread.sleep(STOP_SECONDS * 1_000)
            raise InterruptedError(INTERRUPTED)

    def release(self) -> None:
        """Let Spark's thread go on."""
        self.rows = None
        self.there.clear()
        self.settled.set()

    def end(self) -> None:
        """Let Spark's thread go for good: the batch does not count."""
        self.ended = True
        self.release()


class StreamingSource:
    """Reads a stream by one of Spark's streaming queries, batch after batch."""

    def __init__(
        self,
        session: SparkSession,
        inlet: Inlet,
        connector: Connector,
        checkpoint_directory: Path,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        if over_connect(session):
            raise UserError(
                "not-over-connect",
                f'stream "{inlet.stream.name}" cannot be read from {connector.format} over Spark Connect',
                detail="There, micro-batches are worked on inside the server, where the engine is not.",
                hint="Run the engine on a session of its own, or push the rows.",
            )
        self.session = own_session(session)
        self.session.conf.set("spark.sql.streaming.stopTimeout", f"{STOP_SECONDS}s")
        # Spark reports every look at the source, also those that find nothing
        self.session.conf.set("spark.sql.streaming.noDataProgressEventInterval", "0")
        self.inlet = inlet
        self.connector = connector
        self.checkpoint = checkpoint_directory / inlet.folder
        self.files = FileReader(self.session, inlet, connector) if reader(connector.format).way == "files" else None
        """Reads the files that Spark's stream has found: by name, as elsewhere."""
        self.rows = self.read()
        self.notes: list[UserError] = []
        self.wake = wake
        self._query: StreamingQuery | None = None
        self._handover = Handover()

    def read(self) -> DataFrame:
        """A streaming frame with the stream's columns, `_raw` and `_row`; of files only their paths. Nothing is read
        yet, but Spark refuses here what it cannot read.
        """
        given = {option.lower() for option in self.connector.options}
        usual = reader(self.connector.format).defaults
        defaults = {key: value for key, value in usual.items() if key.lower() not in given}
        try:
            if self.connector.format == "interface":
                rows = interface_rows(self.session, self.inlet, self.connector, self.checkpoint / CAPTURE)
                return with_columns(rows, self.inlet, self.connector.payload)
            from_spark = self.session.readStream.options(**defaults, **paths.opened(self.connector.options))
            if self.files is not None:
                return from_spark.format("binaryFile").schema(ANY_FILE).load().select("path")
            return with_columns(from_spark.format(self.connector.format).load(), self.inlet, self.connector.payload)
        except UserError:
            raise
        except Exception as error:
            raise self.refused(error) from None

    def refused(self, error: Exception) -> UserError:
        """The error for what Spark says when it cannot read a stream from this reader."""
        stream, format = self.inlet.stream.name, self.connector.format
        payload = self.connector.payload.format if self.connector.payload is not None else None
        if connectors.is_missing(error):
            wanted = payload if condition(error).startswith("AVRO") and payload else format
            known = connectors.packages(wanted)
            hint = f"Start Spark with the package {known[0]}; `headgate run` does so by itself." if known else ""
            return UserError(
                "no-connector",
                f'stream "{stream}" is read from {wanted}, and this Spark cannot read that',
                detail=sentence(error),
                hint=hint
                or nearest(format, STREAMED)
                or "Start Spark with its package, or register it with spark.dataSource.",
            )
        return UserError("bad-source", f'Spark cannot read stream "{stream}" from {format}', detail=sentence(error))

    # the protocol of sources

    def poll(self, clock: Clock) -> int:
        """Take the micro-batch that waits, if one does. What failed is begun again."""
        if self._query is None:
            self._start(processingTime=EVERY)
        if self._handover.there.is_set():
            return self._take(clock)
        self._raise_if_failed()
        return 0

    def drain(self, clock: Clock) -> int:
        """Take everything that is there now, batch after batch."""
        self.stop()
        query = self._start(availableNow=True)
        taken = 0
        try:
            while query.isActive:
                if self._handover.there.wait(WAIT_SECONDS):
                    taken += self._take(clock)
            self._raise_if_failed()
        finally:
            self.stop()
        return taken

    @property
    def starting(self) -> bool:
        """True while Spark has not looked for rows yet."""
        query = self._query
        return query is None or not (self._handover.batch >= 0 or query.lastProgress)

    def progress(self, clock: Clock) -> int | None:
        """When Spark last began to look for rows, if it found none or the log has all it found."""
        query = self._query
        said = query.lastProgress if query is not None and not self._handover.there.is_set() else None
        if said is None or not caught_up(json.loads(said.json), self.inlet.position.get("batch", -1)):
            return None
        ago_us = SystemClock().date_us() - int(datetime.fromisoformat(said.timestamp).timestamp() * 1_000_000)
        return clock.now_us() - ago_us if ago_us >= 0 else None  # the date was put back

    def reshape(self) -> None:
        """Read the columns that the stream has now, from where it was."""
        self.stop()
        self.rows = self.read()

    def stop(self) -> None:
        """End Spark's query. A batch that waits is not committed, and Spark gives it again."""
        self._handover.end()
        query, self._query = self._query, None
        if query is not None:
            query.stop()

    def _start(self, **trigger: Any) -> StreamingQuery:
        self._check_checkpoint()
        self._handover = Handover(wake=self.wake)
        try:
            writer = self.rows.writeStream.foreachBatch(self._handover.offer).trigger(**trigger)
            self._query = query = writer.option("checkpointLocation", address(self.checkpoint)).start()
        except Exception as error:
            self._query = None
            raise self._failed(error) from error
        if self.inlet.dropped:  # meanwhile, when there was no query to be stopped
            self.stop()
        return query

    def _check_checkpoint(self) -> None:
        """Raise an error if what Spark has committed does not agree with the log: rows would be lost.

        Spark writes checksums of its notes and does not compare all of them, so they are compared here.
        """
        for noted in sorted(self.checkpoint.rglob("*")):
            if noted.parent.name != CAPTURE and noted.is_file() and not agrees_with_hadoop(noted):
                raise torn(noted, DAMAGED)
        reached = self.inlet.position.get("batch", -1)
        planned, committed = _numbers(self.checkpoint / "offsets"), _numbers(self.checkpoint / "commits")
        if max(committed, default=-1) > reached or (reached >= 0 and reached not in planned):
            raise UserError(
                "torn-checkpoint",
                f'the checkpoint of stream "{self.inlet.stream.name}" does not go with its log',
                detail=f'The log has batch {reached}; "{self.checkpoint}" is of another time, and rows would be lost '
                "or doubled.",
                hint="Put the engine's directory back from one copy, as a whole.",
            )

    def _take(self, clock: Clock) -> int:
        """Put the waiting batch into the log. If that fails, it goes on waiting."""
        handover, inlet = self._handover, self.inlet
        rows, batch = handover.rows, handover.batch
        assert rows is not None
        taken = 0
        if batch > inlet.position.get("batch", -1):
            if inlet.journal.durable:
                self._make_durable(batch)
            try:
                order = inlet.position.get("order", 0)
                row = Sql(f"(MONOTONICALLY_INCREASING_ID() & {(1 << 33) - 1}L)")
                place = f"{int(order)}L + SPARK_PARTITION_ID() * {PIECE}L + {row}"
                if self.files is not None:
                    rows = self.files.rows([found.path for found in rows.collect()])
                placed = selected(rows, ALL, f"{place} AS _s")
                try:
                    taken = self._judge_and_take(placed, batch, order, clock)
                except Reduced:
                    taken = self._judge_and_take(placed, batch, order, clock, reduced=False)
            except UserError:  # ours: the disk is full, or the policy refuses the batch
                raise
            except Exception as error:
                if handover.ended:  # the stream was dropped, or got another column: Spark gives the batch again
                    return 0
                self.stop()
                raise self._failed(error) from error
        handover.release()
        return taken

    def _judge_and_take(self, rows: DataFrame, batch: int, order: int, clock: Clock, reduced: bool = True) -> int:
        """Judge the rows of a batch and put them into the log; how many are tuples. `order` is the place of the first
        row. Unless `reduced`, the log keeps all of the tuples.
        """
        inlet = self.inlet
        with arriving_folder(inlet) as folder:
            found = judged(self.session, inlet, lambda _: rows, folder, clock, reduced=reduced)
            last = found.last()
            with inlet.together():
                inlet.position |= {"batch": batch, "order": order if last is None else last + 1}
                return found.take(clock, f"batch-{batch:012d}")

    def _make_durable(self, batch: int) -> None:
        """Make Spark's note of what a batch consists of durable, which Spark itself leaves to the operating system.

        After a power failure it must not be decided anew.
        """
        offsets = self.checkpoint / "offsets"
        with writing(offsets):
            for path in (offsets / str(batch), offsets):
                synced(path)

    def _raise_if_failed(self) -> None:
        query = self._query
        if query is None or query.isActive or self._handover.there.is_set():
            return
        error = query.exception()
        self.stop()
        if error is not None:
            raise self._failed(error)

    def _failed(self, error: Exception) -> UserError:
        message = f'stream "{self.inlet.stream.name}" cannot be read from {self.connector.format}'
        return failure(error, "source-failed", message, hint="It is tried again, from where it was.")


def caught_up(said: Mapping[str, Any], taken: int) -> bool:
    """True if all that was there when Spark looked is in the log, by what Spark reports and the last batch that was
    taken.

    A source may say up to where it could have been read. If it does not, an empty look says it.
    """
    ran = "addBatch" in said["durationMs"]
    if said["batchId"] != (taken if ran else taken + 1):
        return False
    known = [source for source in said["sources"] if source.get("latestOffset") is not None]
    if any(source["latestOffset"] != (source["endOffset"] or source["startOffset"]) for source in known):
        return False
    return not ran or len(known) == len(said["sources"])


def _numbers(folder: Path) -> set[int]:
    return {int(file.name) for file in folder.iterdir() if file.name.isdigit()} if folder.is_dir() else set()
