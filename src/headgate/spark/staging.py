"""What Spark jobs write, taken over exactly: of each task the output of one attempt, whole, and nothing of any other.

    streams/bids/.arriving/5f0c.../part-00000-....parquet     while the job writes
    streams/bids/.arriving/sealed/part-00000-....parquet      when it has ended

Executors die, and tasks then run again. Three things keep every row there once:

- Tasks commit by Hadoop's algorithm of version 1: an attempt's files stay aside, one rename makes them the task's,
replacing what
  an earlier attempt left whose executor died before it could report, and only the driver puts together what tasks have
  committed. By version 2 tasks put files into place one by one, and those of an attempt that died half-way stay. It was
  no faster here.
- Each write has a folder of its own that is renamed when the job has ended. An executor that was given up but still
runs finds
  nothing to write into, and what it may create again is nobody's.
- Where tasks run on other machines, the rows in the files are compared with those Spark counted in the attempts that it
took: a
  worker that writes to a disk of its own, because the storage is not shared, would otherwise lose its part in silence.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation
from pyspark.sql.functions import count, lit

from headgate.errors import UserError
from headgate.log import chunk
from headgate.log.checksum import full_or_broken, writing
from headgate.spark.session import elsewhere

OPTIONS = {
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


def staged(frame: DataFrame, staging: Path, *by: str, most_rows: int = 0) -> Path:
    """Write a frame as Parquet, in folders by the values of columns and in files of at most so many rows if wanted; the
    folder below `staging` that holds it. If the disk is full, nothing stays that would take the room that is missing.
    """
    shutil.rmtree(staging, ignore_errors=True)
    try:
        with spark_writing(staging.parent):
            return _written(frame, staging, *by, most_rows=most_rows)
    except UserError:
        shutil.rmtree(staging, ignore_errors=True)
        raise


FULL = {os.strerror(number): number for number in (errno.ENOSPC, errno.EDQUOT)}
"""What the system says when there is no room; Java repeats it."""


@contextmanager
def spark_writing(directory: Path) -> Iterator[None]:
    """A full disk is our error and may pass, whether Python, Spark's driver or one of its tasks meets with it.

    Nothing else is taken for one: if Spark's process is gone, that is an error of the system as well.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError, OSError) as error:
        said = str(error)
        for text, number in FULL.items():
            if text in said:
                raise full_or_broken(OSError(number, text), directory) from None
        raise


def _written(frame: DataFrame, staging: Path, *by: str, most_rows: int) -> Path:
    unfinished, sealed = staging / uuid4().hex, staging / "sealed"
    seen = Observation() if elsewhere(frame.sparkSession) else None
    if seen is not None:
        frame = frame.observe(seen, count(lit(1)).alias("rows"))
    writer = frame.write.options(**OPTIONS, maxRecordsPerFile=most_rows)
    (writer.partitionBy(*by) if by else writer).parquet(address(unfinished))
    with writing(staging):
        unfinished.rename(sealed)
    if seen is not None:
        rows = sum(map(chunk.count, sealed.rglob("*.parquet")))
        if rows != seen.get["rows"]:
            raise UserError(
                "rows-missing",
                f'Spark wrote {seen.get["rows"]} rows below "{staging}", and {rows} of them are there',
                detail="A worker wrote to another disk than the one that is read here.",
                hint="The engine's directory must be on storage that the driver and all workers share under one path.",
            )
    return sealed


def address(path: Path) -> str:
    """A file as Spark is to find it: of the file system, whatever a cluster's default is."""
    return f"file:{path.absolute()}"


def on_files(directory: str | Path) -> Path:
    """The engine's directory. It is locked, renamed in and listed: it must be on a file system, local or mounted."""
    text = str(directory)
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "file" and rest.startswith("/"):
        return Path("/" + rest.lstrip("/"))
    if colon and len(scheme) > 1 and rest.startswith("/"):
        raise UserError(
            "not-a-file-system",
            f'directory "{text}" is not on a file system',
            detail=f'Logs and state are kept on a local disk or a mounted one, and "{scheme}:" is neither.',
            hint="Give a folder that the driver and all workers have mounted under the same path, for example by NFS.",
        )
    return Path(directory).absolute()


NAME_LETTERS = 150
"""Of a long name, the folder has the first letters: file systems take 255 bytes at the most."""


def fresh_folder(parent: Path, name: str) -> str:
    """Where a new stream or query has its files: never where another of that name had them."""
    plain = quote(name.lower(), safe="").replace(".", "%2E")
    folder, number = plain[:NAME_LETTERS], 1
    while (parent / folder).exists():
        number += 1
        folder = f"{plain[:NAME_LETTERS]}.{number}"
    return folder
