"""Files that Spark jobs write: the rows of each task once and whole, and nothing of an attempt that did not count.

    streams/bids/.arriving/5f0c.../part-00000-....parquet     while the job writes
    streams/bids/.arriving/sealed/part-00000-....parquet      when it has ended

Executors die, and their tasks run again. Three things keep every row there exactly once:

- Tasks commit by Hadoop's algorithm of version 1. An attempt's files stay aside until one rename makes them the
  task's; it replaces what an earlier attempt left whose executor died before it could report. Only the driver puts
  together what tasks have committed. By version 2 tasks put files into place one by one, and those of an attempt that
  died half-way stay. Version 2 was no faster here.
- Each write has a folder of its own, which is renamed when the job has ended. An executor that was given up but still
  runs finds nothing to write into, and nobody reads what it may create again.
- Where tasks run on other machines, the rows in the files are compared with those that Spark counted in the attempts
  it took. Otherwise a worker that writes to a disk of its own, because the storage is not shared, would lose its part
  in silence.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation
from pyspark.sql.functions import count, lit

from headgate.errors import UserError
from headgate.log import chunk, statistics
from headgate.log.checksum import full_or_broken, writing
from headgate.spark.session import elsewhere

OPTIONS = {
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "parquet.enable.dictionary#_s": "false",  # no two rows have the same place in the order of arrival
}


def write_parquet(frame: DataFrame, staging: Path, *by: str, most_rows: int = 0) -> Path:
    """Write a frame as Parquet below `staging`; the folder that holds its files.

    With `by` the files lie in folders by the values of these columns, with `most_rows` a file has no more rows than
    that. What `staging` held before is deleted, and on a full disk also what was written now.
    """
    shutil.rmtree(staging, ignore_errors=True)
    counted = elsewhere(frame.sparkSession)
    try:
        with spark_writing(staging.parent):
            unfinished, rows = _write(frame, staging, "parquet", {"maxRecordsPerFile": str(most_rows)}, counted, by)
            sealed = staging / "sealed"
            with writing(staging):
                unfinished.rename(sealed)
            if rows is not None:
                check_all_there(sealed, rows, staging)
            return sealed
    except UserError:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def write_arrow(rows: Mapping[str, pa.Table | Sequence[pa.Table]], staging: Path) -> Path:
    """Write rows that are in memory as Parquet below `staging`, one file for each table, by folder; the folder that
    holds these.

    A folder without rows is not made. What `staging` held before is deleted, and on a full disk what was written now.
    """
    sealed = staging / "sealed"
    shutil.rmtree(staging, ignore_errors=True)
    try:
        with writing(staging.parent):
            sealed.mkdir(parents=True)
            for folder, tables in rows.items():
                for number, table in enumerate([tables] if isinstance(tables, pa.Table) else tables):
                    if table.num_rows:
                        (sealed / folder).mkdir(exist_ok=True)
                        file = sealed / folder / f"part-{number:05d}.parquet"
                        pq.write_table(table, file, write_statistics=statistics.told(table.schema))
    except UserError:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return sealed


def write_files(
    frame: DataFrame, staging: Path, file_format: str, options: Mapping[str, str] | None = None
) -> tuple[list[Path], int]:
    """Write a frame below `staging` in any format that Spark writes; its files, in order of its partitions, and how
    many rows they hold. What `staging` held before is deleted.
    """
    shutil.rmtree(staging, ignore_errors=True)
    unfinished, rows = _write(frame, staging, file_format, options or {}, counted=True)
    assert rows is not None
    sealed = unfinished.rename(staging / "sealed")
    if file_format == "parquet" and elsewhere(frame.sparkSession):
        check_all_there(sealed, rows, staging)
    return sorted(file for file in sealed.iterdir() if file.name.startswith("part-")), rows


def _write(
    frame: DataFrame,
    staging: Path,
    file_format: str,
    options: Mapping[str, str],
    counted: bool,
    by: tuple[str, ...] = (),
) -> tuple[Path, int | None]:
    """Write a frame into a folder that nobody else writes to; that folder, and how many rows Spark counted."""
    unfinished = staging / uuid4().hex
    seen = Observation() if counted else None
    if seen is not None:
        frame = frame.observe(seen, count(lit(1)).alias("rows"))
    writer = frame.write.format(file_format).options(**OPTIONS, **options)
    (writer.partitionBy(*by) if by else writer).save(address(unfinished))
    return unfinished, None if seen is None else seen.get["rows"]


def check_all_there(sealed: Path, rows: int, staging: Path) -> None:
    """Raise an error if the files do not hold the rows that Spark counted."""
    there = sum(map(chunk.count, sealed.rglob("*.parquet")))
    if there != rows:
        raise UserError(
            "rows-missing",
            f'Spark wrote {rows} rows below "{staging}", and {there} of them are there',
            detail="A worker wrote to another disk than the one that is read here.",
            hint="The folder must be on storage that the driver and all workers share under one path.",
        )


FULL = {os.strerror(number): number for number in (errno.ENOSPC, errno.EDQUOT)}
"""What the system says when there is no room; Java repeats it."""


@contextmanager
def spark_writing(directory: Path) -> Iterator[None]:
    """Turn a full disk into our error, `disk-failed`, whether Python, Spark's driver or one of its tasks meets with it.

    No other error is taken for a full disk: if Spark's process is gone, that is an error of the system as well.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError, OSError) as error:
        said = str(error)
        for text, number in FULL.items():
            if text in said:
                raise full_or_broken(OSError(number, text), directory) from None
        raise


def address(path: Path) -> str:
    """A local path as Spark must be given it: Spark would look for a bare path on a cluster's default storage."""
    return f"file:{path.absolute()}"
