"""Files of an epoch's results, put in order of time.

Slow flush: the results of an epoch are split into pieces when they are too many to go out at once. The input is the
files of an epoch's results, in any order. The output is one file a piece, in order of time, each with no more rows than
a piece may have. A piece may end in the middle of an instant. Splitting is a Spark job of its own over those files, for
the epochs that need it: a sort within the epoch's own statement would make Spark compute that statement twice, the
first time to find out where to split.

Results that stay in the engine's directory are put in order as well. Their place in the log is then their position: it
is known to those who read them page by page, and stays the same when files are merged and when the engine starts again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from headgate.deliver.sinks import shape
from headgate.log.chunk import count
from headgate.spark.staging import write_arrow, write_parquet
from headgate.spark.statements import selected
from headgate.sql import ALL, Sql, result_order

IN_MEMORY_ROWS = 100_000
"""Up to so many rows are sorted in this process; Spark sorts more."""

WRITTEN = re.compile(r"part-(\d+)-.*-c(\d+)\b.*")
"""How Spark names the files it writes: by the task, and by how many files the task had written before."""


def split(session: SparkSession, files: Sequence[Path], most_rows: int, staging: Path) -> list[Path]:
    """Write the rows of the files in order of time, delete the files, and return the pieces.

    Rows of one instant are ordered by their place in the files, so that several tasks can sort even a single instant.
    """
    frame = shape.rows_of(session, files)
    placed = selected(frame, ALL, Sql("MONOTONICALLY_INCREASING_ID() AS _row"))
    ordered = placed.orderBy(*shape.by_time(frame), "_row").drop("_row")
    folder = write_parquet(ordered, staging, most_rows=most_rows)
    for file in files:
        file.unlink()
    return sorted(folder.glob("*.parquet"), key=_place)


def in_order(session: SparkSession, files: Sequence[Path], staging: Path) -> list[Path]:
    """Return files with the rows of an epoch's results in order of time, in place of files in any order."""
    if sum(map(count, files)) > IN_MEMORY_ROWS:
        return split(session, files, IN_MEMORY_ROWS, staging)
    tables = [table for file in files if (table := pq.read_table(file)).num_rows]
    if not tables:
        return list(files)
    rows = pa.concat_tables(tables)
    ordered = rows.sort_by(result_order(rows.column_names))
    if len(tables) == 1 and ordered.equals(rows):
        return list(files)
    folder = write_arrow({".": ordered.replace_schema_metadata(rows.schema.metadata)}, staging)
    for file in files:
        file.unlink()
    return list(folder.glob("*.parquet"))


def _place(file: Path) -> tuple[int, int]:
    found = WRITTEN.fullmatch(file.name)
    assert found is not None, f"Spark names its files otherwise: {file.name}"
    return int(found[1]), int(found[2])
