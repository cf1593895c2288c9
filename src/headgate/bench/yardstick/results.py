"""Reads the results of an engine as columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Columns: TypeAlias = dict[str, np.ndarray]
INSTANT = "t"
CQL_INSTANT = "_time"


def read_results(folder: Path, names: Sequence[str]) -> Columns:
    """The columns of these names of all Parquet files in a folder; instants are milliseconds."""
    table = pq.read_table(folder)
    if not table.column_names:  # an engine without results may write no file
        return {name: np.empty(0, np.int64) for name in names}
    if CQL_INSTANT in table.column_names:
        table = table.rename_columns([INSTANT if name == CQL_INSTANT else name for name in table.column_names])
    return {name: _numbers(table[name]) for name in names}


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    if pa.types.is_timestamp(column.type):
        column = pc.cast(pc.cast(column, pa.timestamp("ms", column.type.tz)), pa.int64())
    return np.asarray(column.to_numpy())
