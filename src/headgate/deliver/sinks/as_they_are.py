"""Results that reach a folder as they are: their files are linked there, and no Spark job writes them again.

An epoch writes its results as Parquet, with the columns that a Parquet sink is to hold. So a file whose rows are in
order of time can be handed over itself. The outbox deletes only its own name for it once the delivery is out. What is
in order is found by reading the timestamps, so it does not matter who wrote the file, or whether it was sorted on
purpose. Everything else is put in order by a job (see `shape`).
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from headgate.deliver.sinks.sink import Delivery
from headgate.log.links import link
from headgate.ticks import Tick

FILE_ROWS = 10_000
"""Files with fewer rows than this on average are better put together."""

Place: TypeAlias = tuple[Tick, bool]
"""Where a row stands in the order of results: its instant, and whether it comes (a deletion does not)."""


def linked(delivery: Delivery, folder: Path, ordered: bool) -> list[Path] | None:
    """Link the files of a delivery into a new folder, in the order of their first rows.

    None if the rows in one of them are not in order of time, or the files are many and small. With `ordered`, also if
    they do not follow one another in time.
    """
    if len(delivery.files) > 1 and delivery.rows < FILE_ROWS * len(delivery.files):
        return None
    ends = dict[Path, tuple[Place, Place]]()
    for file in delivery.files:
        found = _ends(file)
        if found is None:
            return None
        ends[file] = found
    files = sorted(ends, key=ends.__getitem__)
    if ordered and not _follow([ends[file] for file in files]):
        return None
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = [folder / f"part-{part:05d}.parquet" for part in range(len(files))]
    for file, path in zip(files, paths, strict=True):
        link(file, path)
    return paths


def _follow(ends: Sequence[tuple[Place, Place]]) -> bool:
    return all(last <= first for (_, last), (first, _) in pairwise(ends))


def _ends(path: Path) -> tuple[Place, Place] | None:
    """Where the first and the last row of a file stand in the order of results; None if those between are not in it."""
    with pq.ParquetFile(path) as file:
        columns = [column for column in ("_time", "_change") if column in file.schema_arrow.names]
        first: Place | None = None
        last: Place | None = None
        for rows in file.iter_batches(columns=columns):
            times = rows.column("_time").cast(pa.int64()).to_numpy()
            comes = _comes(rows)
            begins, ends = (int(times[0]), bool(comes[0])), (int(times[-1]), bool(comes[-1]))
            if (last is not None and begins < last) or not _in_order(times, comes):
                return None
            first, last = first or begins, ends
    return None if first is None or last is None else (first, last)


def _comes(rows: pa.RecordBatch) -> NDArray[np.bool_]:
    if "_change" not in rows.schema.names:
        return np.ones(rows.num_rows, np.bool_)
    return pc.equal(rows.column("_change"), "+").to_numpy(zero_copy_only=False)


def _in_order(times: NDArray[np.int64], comes: NDArray[np.bool_]) -> bool:
    later, same = times[1:] > times[:-1], times[1:] == times[:-1]
    return bool(np.all(later | (same & (comes[1:] >= comes[:-1]))))
