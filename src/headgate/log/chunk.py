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


def described(path: Path) -> Chunk | None:
    """The chunk in a Parquet file, from its footer alone; None if it holds no rows."""
    metadata = pq.read_metadata(path)
    if not metadata.num_rows:
        return None
    position = metadata.schema.to_arrow_schema().get_field_index("_t")
    lows, highs = [], []
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(position).statistics
        lows.append(statistics.min_raw)
        highs.append(statistics.max_raw)
    return Chunk(path, metadata.num_rows, min(lows), max(highs))


def count(path: Path) -> int:
    return pq.read_metadata(path).num_rows


def write(table: pa.Table, path: Path) -> Chunk | None:
    """Write a chunk so that it is either there whole or not at all."""
    if not table.num_rows:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".{path.name}.staged")
    pq.write_table(table, staged)
    staged.rename(path)
    return described(path)


def merge(chunks: Iterable[Chunk], path: Path) -> None:
    """One file from several, row group by row group: no more than one row group is in memory at a time.

    Files of one log agree in the columns that matter; what only some of them have is left behind.
    """
    sources = [pq.ParquetFile(chunk.path) for chunk in chunks]
    first = sources[0].schema_arrow
    shared = [name for name in first.names if all(name in source.schema_arrow.names for source in sources)]
    schema = pa.schema([first.field(name) for name in shared])
    staged = path.with_name(f".{path.name}.staged")
    with pq.ParquetWriter(staged, schema) as writer:
        for source in sources:
            for group in range(source.num_row_groups):
                writer.write_table(source.read_row_group(group, columns=shared).select(shared).cast(schema))
            source.close()
    staged.rename(path)
