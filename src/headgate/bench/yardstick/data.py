"""Makes the streams of the yardstick: random tuples at an even rate, out of order by up to a bound, in several files.

A tuple has a key, a value and a timestamp in milliseconds. Files are in order of arrival.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = "k INT, v DOUBLE, ts BIGINT"
SCHEMA = pa.schema([("k", pa.int32()), ("v", pa.float64()), ("ts", pa.int64())])
PER_MS = 2
"""Tuples in a millisecond of event time: 2,000 in a second."""

BORDER_MS = 1_000
"""All windows with a slide begin and end at multiples of this."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How large and how mixed a stream is."""

    rows: int
    keys: int = 1_000
    disorder_ms: int = 500
    files: int = 20

    @property
    def last_ms(self) -> int:
        """The largest timestamp."""
        return int(_timestamps(np.array([self.rows - 1]))[0])


def tuples(shape: Shape, seed: int) -> pa.Table:
    """The tuples of a stream in order of arrival: each arrives up to the disorder after its timestamp."""
    chance = np.random.default_rng(seed)
    instants = _timestamps(np.arange(shape.rows))
    order = np.argsort(instants + chance.integers(0, shape.disorder_ms + 1, shape.rows), kind="stable")
    keys = chance.integers(0, shape.keys, shape.rows)
    return pa.table([keys.astype(np.int32), chance.random(shape.rows) * 100, instants[order]], schema=SCHEMA)


def _timestamps(numbers: np.ndarray) -> np.ndarray:
    """The timestamps of tuples by number. None is on the border of two windows: engines differ in whose it is."""
    instants = numbers // PER_MS
    return instants + (instants % BORDER_MS == 0)


def pieces(table: pa.Table, files: int) -> list[pa.Table]:
    """The table in about equal pieces, in order of arrival."""
    ends = [table.num_rows * number // files for number in range(files + 1)]
    return [table.slice(first, end - first) for first, end in pairwise(ends)]


def dealt(table: pa.Table, hands: int) -> list[pa.Table]:
    """The table dealt out row by row: each part is in order of arrival, and all go through the same time."""
    return [table.take(np.arange(first, table.num_rows, hands)) for first in range(hands)]


def write_parquet(parts: list[pa.Table], folder: Path) -> None:
    """Writes each part to a Parquet file of its own."""
    folder.mkdir(parents=True)
    for number, part in enumerate(parts):
        pq.write_table(part, folder / f"{number:03d}.parquet")


def write_json(parts: list[pa.Table], folder: Path) -> None:
    """Writes each part to a file of JSON lines, with every digit of its values."""
    folder.mkdir(parents=True)
    for number, part in enumerate(parts):
        columns = (part[name].to_pylist() for name in SCHEMA.names)
        with (folder / f"{number:03d}.json").open("w", encoding="ascii") as file:
            file.writelines(f'{{"k":{k},"v":{v!r},"ts":{ts}}}\n' for k, v, ts in zip(*columns, strict=True))
