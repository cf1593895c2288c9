"""Capture files to files for the log, in one step: the tasks that decode packets also judge them and write them.

    judged/5f0c.../_verdict=tuple/part-00000-8e2a....parquet      while the job runs
    judged/sealed/_verdict=tuple/part-00000-8e2a....parquet       when it has ended

Rows of packets come from Python, as columns. To hand them to the JVM, to judge them by SQL and to write them there
would cost several times as much as to decode them. So a task of the job takes pieces of capture files, decodes them
(`packets`), gives each row its verdict by the rules for rows in memory (`verdict`), does the low part of the queries
(`low_part`), and writes Parquet by verdict. What it hands back to Spark are the names of its files. Files that no
successful attempt named are deleted, so each row is there once.

What is unusual goes through Spark SQL, like rows of any other format (`reading`, `judging`): streams that are stamped
on entry, columns that need a cast which only Spark has, timestamps that are null or before the origin.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from headgate.catalog.entries import Connector, Stream
from headgate.errors import UserError
from headgate.log import statistics
from headgate.log.checksum import writing
from headgate.packets.columns import RAW, batch
from headgate.packets.fields import FIELDS
from headgate.packets.records import Piece, Records, check, records
from headgate.packets.sources import local, shared_out
from headgate.plan.needs import Need
from headgate.sources.inlet import Inlet
from headgate.sources.judged_batch import HEARD, SPELLED_ALIKE
from headgate.sources.letters import malformed
from headgate.sources.low_part import partial_aggregates, partial_fields, with_partials
from headgate.sources.packets import check_dns
from headgate.sources.small_files import judged_rows
from headgate.sources.verdict import MALFORMED, TUPLE, Limits
from headgate.spark.session import elsewhere
from headgate.spark.staging import check_all_there, spark_writing

CASTS = {("INT", "BIGINT"), ("TIMESTAMP", "BIGINT")}
"""Types of fields, and other types that a stream may declare for them here. A TIMESTAMP becomes whole seconds."""

PIECE_SHIFT, PLACE_SHIFT = 20, 28
"""A place in the order of arrival has 28 bits for the row in its piece. The piece is numbered by the MiB at which it
begins.
"""

ROWS_WRITTEN = 2**17
"""So many rows, or a few more, are written at a time."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a task is to do, beside the pieces it reads."""

    stream: Stream
    schema: pa.Schema
    """The columns of the log."""

    dead: pa.Schema
    """The columns of dead letters."""

    limits: Limits
    low: Need | None
    folder: Path


class Unusual(Exception):
    """Some rows have to be judged by Spark SQL."""


class Captures:
    """Judges and writes the capture files of a stream."""

    def __init__(self, session: SparkSession, inlet: Inlet, connector: Connector) -> None:
        self.session = session
        self.inlet = inlet
        self.wanted = connector.format == "pcap" and connector.payload is None

    def written(self, places: Mapping[str, int], limits: Limits, low: Need | None, staging: Path) -> Path | None:
        """Write the packets of files below `staging`, by verdict. `places` has the place of the first row of each file
        in the order of arrival. Return the folder that holds the files, or None if Spark SQL has to do it.
        """
        stream = self.inlet.stream
        if not self.wanted or not isinstance(stream, Stream) or not places or not _is_plain(stream):
            return None
        check_dns(stream)
        paths = {file: local(unquote(file)) for file in places}
        for path in paths.values():
            check(path)
        first = {str(path): places[file] for file, path in paths.items()}
        parts = [[(piece, first[piece.path]) for piece in part] for part in shared_out(list(paths.values()))]
        shutil.rmtree(staging, ignore_errors=True)
        try:
            with spark_writing(staging.parent):
                unfinished = staging / uuid4().hex
                with writing(staging.parent):
                    unfinished.mkdir(parents=True)
                task = Task(stream, self.inlet.rows.schema, self.inlet.dead_schema, limits, low, unfinished.absolute())
                return self._run(task, parts, staging, unfinished)
        except UserError:
            shutil.rmtree(staging, ignore_errors=True)
            raise

    def _run(
        self, task: Task, parts: Sequence[Sequence[tuple[Piece, int]]], staging: Path, unfinished: Path
    ) -> Path | None:
        def work(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for some in numbers:
                for number in some.column(0).to_pylist():
                    yield write_part(task, number, parts[number])

        count = len(parts)
        found = self.session.range(0, count, 1, count).mapInArrow(work, "file STRING, rows BIGINT").collect()
        if any(row.file is None for row in found):
            return None
        named = {row.file for row in found}
        for file in unfinished.rglob("*.parquet"):
            if str(file.relative_to(unfinished)) not in named:
                file.unlink()
        sealed = staging / "sealed"
        with writing(staging):
            unfinished.rename(sealed)
        if elsewhere(self.session):
            check_all_there(sealed, sum(row.rows for row in found), staging)
        return sealed


def _is_plain(stream: Stream) -> bool:
    """True if rows are stamped by their source, and every column is a field as it is, or by a simple cast."""
    types = {column.name.lower(): column.type.upper() for column in stream.columns}
    fields = len(types) == len(stream.columns) and types.keys() <= FIELDS.keys()
    cast = {(FIELDS[name].type, kind) for name, kind in types.items() if fields and FIELDS[name].type != kind}
    spelled = stream.source is None or types.get(stream.source.lower()) in SPELLED_ALIKE
    stamped = stream.stamped == "external" and stream.timestamp is not None and stream.heartbeat is None
    return fields and cast <= CASTS and spelled and stamped


# in a task


def write_part(task: Task, number: int, pieces: Sequence[tuple[Piece, int]]) -> pa.RecordBatch:
    """Decode, judge and write pieces of capture files; the names of the files that were written, and their rows. One
    row without a name: Spark SQL has to do it.
    """
    rows: dict[str, int] = {}
    name = f"part-{number:05d}-{uuid4().hex}.parquet"
    with ExitStack() as open_files:
        writers: dict[str, pq.ParquetWriter] = {}
        try:
            for found in _judged(task, pieces):
                for verdict, table in found.items():
                    file = f"_verdict={verdict}/{name}"
                    if verdict not in writers:
                        (task.folder / f"_verdict={verdict}").mkdir(exist_ok=True)
                        writers[verdict] = open_files.enter_context(_writer(task, task.folder / file, table.schema))
                    writers[verdict].write_table(table)
                    rows[file] = rows.get(file, 0) + table.num_rows
        except Unusual:
            return pa.record_batch({"file": pa.array([None], pa.string()), "rows": pa.array([0], pa.int64())})
    return pa.record_batch({"file": pa.array(list(rows), pa.string()), "rows": pa.array(rows.values(), pa.int64())})


def _writer(task: Task, file: Path, schema: pa.Schema) -> pq.ParquetWriter:
    differing = {"_s", "_t", task.stream.timestamp}  # nearly every row has a value of its own
    repeated = [field.name for field in schema if field.name not in differing]
    return pq.ParquetWriter(file, schema, use_dictionary=repeated, write_statistics=statistics.told(schema))


def _judged(task: Task, pieces: Sequence[tuple[Piece, int]]) -> Iterator[dict[str, pa.Table]]:
    """The rows of pieces by verdict, many at a time."""
    waiting: list[dict[str, pa.Table]] = []
    for piece, place in pieces:
        at = place | piece.start >> PIECE_SHIFT << PLACE_SHIFT
        for some in records(piece):
            found, taken = _by_verdict(task, some, piece.path, at)
            at += taken
            waiting.append(found)
            if sum(table.num_rows for one in waiting for table in one.values()) >= ROWS_WRITTEN:
                yield _reduced(task, _together(waiting))
                waiting = []
    if waiting:
        yield _reduced(task, _together(waiting))


def _together(some: Sequence[Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
    kinds = dict.fromkeys(kind for one in some for kind in one)
    return {kind: pa.concat_tables([one[kind] for one in some if kind in one]) for kind in kinds}


def _reduced(task: Task, found: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """The rows with one tuple in place of all those that queries do not tell apart, and what the heartbeats hear of
    all of them.
    """
    if task.low is None or task.low.told is None or TUPLE not in found:
        return found
    tuples = found[TUPLE]
    heard = tuples.select([*([task.stream.source] if task.stream.source is not None else []), "_t", "_s"])
    partial = partial_fields(task.low, tuples.schema)
    kept = with_partials(partial_aggregates(task.low, task.stream, tuples), partial)
    return found | {TUPLE: kept, HEARD: heard}


def _by_verdict(task: Task, some: Records, where: str, at: int) -> tuple[dict[str, pa.Table], int]:
    """Some packets by verdict, and how many rows they are; the first is number `at` in the order of arrival."""
    own = [column.name for column in task.stream.columns]
    rows = batch(some, [*(name.lower() for name in own), RAW], where)
    numbers = pa.array(np.arange(at, at + rows.num_rows, dtype=np.int64))
    found: dict[str, pa.Table] = {}
    texts = rows.column(RAW)
    if texts.null_count < len(texts):
        unread = zip(numbers.to_pylist(), texts.to_pylist(), strict=True)
        found[MALFORMED] = malformed(task.dead, [(place, text) for place, text in unread if text], task.limits)
        good = pc.is_null(texts)
        rows, numbers = rows.filter(good), numbers.filter(good)
    known = {name: _as_declared(rows.column(name.lower()), task.schema.field(name).type) for name in own}
    known["_t"], known["_s"] = known[task.stream.timestamp or ""].cast(pa.int64()), numbers
    if known["_t"].null_count:
        raise Unusual
    table = pa.table([known[field.name] for field in task.schema], schema=task.schema)
    judged = judged_rows(table, task.stream, task.dead, task.limits, task.low)
    if judged is None:
        raise Unusual
    return found | {verdict: some for verdict, some in judged.items() if some.num_rows}, len(texts)


def _as_declared(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """A field in the type that a stream declares for it, as Spark would cast it."""
    if pa.types.is_timestamp(values.type) and pa.types.is_integer(kind):
        micros = values.cast(pa.int64()).to_numpy()
        return pa.array(micros // 1_000_000, kind)
    return values.cast(kind)
