"""Chunks: Parquet files with the range of timestamps they hold.

A chunk is one or more immutable files. What is known of it without opening it is its number of rows and the least and the
largest of its timestamps; the rest stays on disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.catalog import Tick


@dataclass(frozen=True, slots=True)
class Chunk:
    path: Path
    rows: int
    low: Tick
    high: Tick


def described(path: Path, time_column: str = "_t") -> Chunk | None:
    """The chunk in a Parquet file, from its footer alone; None if it holds no rows."""
    metadata = pq.read_metadata(path)
    if not metadata.num_rows:
        return None
    position = metadata.schema.to_arrow_schema().get_field_index(time_column)
    lows, highs = [], []
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(position).statistics
        lows.append(statistics.min_raw)
        highs.append(statistics.max_raw)
    return Chunk(path, metadata.num_rows, min(lows), max(highs))


def write(table: pa.Table, path: Path) -> Chunk | None:
    """Write a chunk so that it is either there whole or not at all."""
    if not table.num_rows:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".{path.name}.staged")
    pq.write_table(table, staged)
    staged.rename(path)
    return described(path)


def merge(chunks: Iterable[Chunk], path: Path) -> Chunk:
    """One file from several, row group by row group: no more than one row group is in memory at a time."""
    sources = [pq.ParquetFile(chunk.path) for chunk in chunks]
    staged = path.with_name(f".{path.name}.staged")
    with pq.ParquetWriter(staged, sources[0].schema_arrow) as writer:
        for source in sources:
            for group in range(source.num_row_groups):
                writer.write_table(source.read_row_group(group).cast(sources[0].schema_arrow))
    staged.rename(path)
    merged = described(path)
    assert merged is not None
    return merged
