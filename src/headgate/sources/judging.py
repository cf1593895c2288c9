"""Judging by Spark: one job gives each row its verdict and writes the rows by it, ready for the log and the dead
letters.

In come rows with the stream's columns, `_raw` (their text if they could not be read, else null), `_row` (their text, if
it is at hand) and `_s` (order of arrival), from wherever Spark reads. Out comes a `JudgedBatch`, which does not count
until it is taken. A dead letter that could not be read or has no timestamp has its row as text in `_raw`.

Files that can be taken as they are (see `as_they_are`) need no job if all their rows are tuples, nor do small ones (see
`small_files`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headgate.catalog.entries import Relation, Stream
from headgate.heartbeat.clock import Clock
from headgate.log.chunk import Chunk
from headgate.plan.needs import Need
from headgate.sources import small_files
from headgate.sources.as_they_are import fitting
from headgate.sources.inlet import Inlet
from headgate.sources.judged_batch import Judged, JudgedBatch
from headgate.sources.low_part import column_sql
from headgate.sources.rows import SIGNS
from headgate.sources.verdict import (
    TUPLE,
    UNNEEDED,
    Limits,
    behind_sql,
    instant_sql,
    promise_sql,
    sends_heartbeats,
    verdict_sql,
)
from headgate.spark.staging import write_arrow, write_parquet
from headgate.spark.statements import selected
from headgate.sql import ALL, Sql, literal, name
from headgate.ticks import Tick, TimeDomain

VERDICTS = "9"
"""As many verdicts as there can be: a task has a file open for each that it meets."""

NO_FILES: Mapping[str, Chunk] = {}


@contextmanager
def arriving_folder(inlet: Inlet) -> Iterator[Path]:
    """A folder beside the log for a batch that is under way; it is deleted in the end."""
    folder = inlet.log.directory / ".arriving"
    rmtree(folder, ignore_errors=True)  # what was under way when the engine died
    try:
        yield folder
    finally:
        rmtree(folder, ignore_errors=True)


def judged(
    session: SparkSession,
    inlet: Inlet,
    rows_of: Callable[[Mapping[str, Chunk]], DataFrame | None],
    folder: Path,
    clock: Clock,
    staged: Mapping[str, Chunk] = NO_FILES,
    look_closer: Callable[[Collection[int]], bool] = lambda _: False,
    rows_at_hand: Callable[[Mapping[str, Chunk]], list[pa.Table] | None] = lambda _: None,
    written_by_tasks: Callable[[Limits, Need | None, Path], Path | None] = lambda *_: None,
    reduced: bool = True,
) -> JudgedBatch:
    """Judge rows by the limits in force now, and write them by verdict.

    `staged` has files that can be taken as they are if all their rows are tuples. `rows_of` gives all rows but those of
    the files that are; None if there are no others. `rows_at_hand` gives the same rows if they can be had without a
    job, else None (see `small_files`). `written_by_tasks` judges and writes all rows by tasks of its own (see
    `captures`), or gives None. `look_closer` is told the places of unclear rows (see `plain_json`); if it says
    so, `rows_of` is asked again. Unless `reduced`, tuples that no query needs are kept too.

    The journal's turn is not held meanwhile, so epochs go on beside the job. If heartbeats are given until the batch is
    taken, `JudgedBatch.take` judges anew the tuples that are late by then.
    """
    with inlet.journal.turn:
        shape, limits, low = inlet.rows, inlet.limits(clock), inlet.low if reduced else None
        stamp = int(inlet.stamps(1, clock)[0]) if inlet.stamped != "external" else None

    def by_verdict(limits: Limits) -> JudgedBatch:
        whole = fitting(staged, limits)
        small, written = rows_at_hand(whole), None
        judged = None if small is None else small_files.by_verdict(small, inlet, limits, low)
        if judged is not None:
            written = write_arrow(judged, folder / "judged")
        elif (found := written_by_tasks(limits, low, folder / "judged")) is not None:
            written = found
        elif (rows := rows_of(whole)) is not None:
            session.conf.set("spark.sql.maxConcurrentOutputFileWriters", VERDICTS)  # or all are sorted by their verdict
            written = write_parquet(sorted_out(rows, inlet, limits, stamp, low), folder / "judged", "_verdict")
        batch = JudgedBatch(session, inlet, written, list(whole.values()), Judged(shape, limits, stamp, low), folder)
        return by_verdict(limits) if look_closer(batch.unclear()) else batch

    batch = by_verdict(limits)
    with inlet.journal.turn:
        doubtful = inlet.needs_second_look(batch.counts())
    if doubtful:
        tops = batch.tops(limits)
        with inlet.journal.turn:
            better = inlet.limits_for(limits, tops, clock)
        if ((tops > limits.ahead) != (tops > better.ahead)).any():
            batch = by_verdict(better)
    batch.batch()  # it may read all of the files, so not in the turn
    batch.put_together()
    return batch


def stamped_rows(rows: DataFrame, inlet: Inlet, stamp: Tick | None = None) -> DataFrame:
    """The rows with `_n` (1 put in, -1 taken out), `_t` (when) and `_upto` (the heartbeat they carry).

    `stamp` is the instant of rows that are stamped on entry.
    """
    stream = inlet.stream
    if stream.timestamp is not None and stamp is None:
        instant = instant_sql(stream, stream.timestamp)
    else:
        instant = Sql(f"CAST({stamp or 0} AS BIGINT)")  # of a fixed relation, the instant does not matter
    columns = [name(column) for column in stream.row_columns()]
    sign = Sql("CAST(1 AS BIGINT)")
    if isinstance(stream, Relation) and stream.change is not None:
        known = ", ".join(f"{literal(word)}, {value}L" for word, value in SIGNS.items())
        sign = f"ELEMENT_AT(MAP({known}), LOWER(CAST({name(stream.change)} AS STRING)))"
    upto = f"{promise_sql(stream, instant)} AS _upto"
    return selected(rows, *columns, f"{sign} AS _n", f"{instant} AS _t", upto, Sql("_raw"), Sql("_row"), Sql("_s"))


def sorted_out(rows: DataFrame, inlet: Inlet, limits: Limits, stamp: Tick | None, low: Need | None = None) -> DataFrame:
    """The rows as the log or the dead letters keep them, each with its verdict. `low` says what the log has to keep."""
    stream = inlet.stream
    columns = [name(column) for column in stream.row_columns()]
    verdict = verdict_sql(stream, limits, None if low is None else low.condition)
    judged = selected(stamped_rows(rows, inlet, stamp), ALL, f"{verdict} AS _verdict")
    dead = f"_verdict NOT IN ({literal(TUPLE)}, {literal(UNNEEDED)})"
    instant = Sql("TIMESTAMP_MICROS(_t)") if stream.domain is TimeDomain.TIMESTAMP else Sql("_t")
    whole = f"COALESCE(_raw, _row, TO_JSON(STRUCT({', '.join(columns)})))"
    text = f"CASE WHEN _verdict IN ('malformed', 'no-timestamp') THEN {whole} END"
    own = (
        [column_sql(low, stream, column) for column in stream.row_columns()] if isinstance(stream, Stream) else columns
    )
    return selected(
        judged,
        *own,
        *([Sql("_n")] if isinstance(stream, Relation) else []),
        f"IF({dead}, _verdict, NULL) AS _reason",
        f"{behind_sql(stream, limits)} AS _behind",
        f"IF({dead}, {instant}, NULL) AS _timestamp",
        f"{text} AS _raw",
        f"IF({dead}, {limits.first_open}, _t) AS _t",
        Sql("_s"),
        *([Sql("_upto")] if sends_heartbeats(stream) else []),
        Sql("_verdict"),
    )
