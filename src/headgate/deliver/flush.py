"""Slow flush: splits the results of an epoch into pieces when they are too many to go out at once.

The input is the files of an epoch's results, in any order. The output is one file a piece, in order of time, each with
no more rows than a piece may have. A piece may end in the middle of an instant. Splitting is a Spark job of its own
over those files, for the epochs that need it: a sort within the epoch's own statement would make Spark compute that
statement twice, the first time to find out where to split.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.deliver.sinks import shape
from headgate.spark.staging import write_parquet

WRITTEN = re.compile(r"part-(\d+)-.*-c(\d+)\b.*")
"""How Spark names the files it writes: by the task, and by how many files the task had written before."""


def split(session: SparkSession, files: Sequence[Path], most_rows: int, staging: Path) -> list[Path]:
    """Write the rows of the files in order of time, delete the files, and return the pieces.

    Rows of one instant are ordered by their place in the files, so that several tasks can sort even a single instant.
    """
    frame = shape.rows_of(session, files)
    placed = frame.selectExpr("*", "MONOTONICALLY_INCREASING_ID() AS _row")
    ordered = placed.orderBy(*shape.by_time(frame), "_row").drop("_row")
    folder = write_parquet(ordered, staging, most_rows=most_rows)
    for file in files:
        file.unlink()
    return sorted(folder.glob("*.parquet"), key=_place)


def _place(file: Path) -> tuple[int, int]:
    found = WRITTEN.fullmatch(file.name)
    assert found is not None, f"Spark names its files otherwise: {file.name}"
    return int(found[1]), int(found[2])
