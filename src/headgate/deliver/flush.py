"""Slow flush: the results of an epoch that are too many to go out at once, cut into pieces.

What comes in are the files of an epoch's results, in any order; what goes out is a file a piece, each with no more rows
than it may have, one behind the other in order of time. A piece may end in the middle of an instant. The cut is a Spark
job of its own over those files, for the epochs that need it: a sort within the epoch's own statement would make Spark
compute that twice, the first time to find out where to cut."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.deliver.sinks import shape
from headgate.spark.staging import write_parquet

WRITTEN = re.compile(r"part-(\d+)-.*-c(\d+)\b.*")
"""How Spark names what it writes: by the task, and by how many files the task had written before."""


def pieces(session: SparkSession, files: Sequence[Path], most_rows: int, staging: Path) -> list[Path]:
    """The rows of the files, in order; the files themselves go.

    Rows of one instant are told apart by where they stand, so that a close of a single instant is sorted by more than
    one task."""
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
