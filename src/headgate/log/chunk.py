"""Chunks: Parquet files with the range of timestamps they hold.

A chunk is an immutable file. What is known of it without opening it is its number of rows, the least and the largest of
its timestamps, its size, its checksum, and the ranges of its numbers (`statistics`); the rest stays on disk. The whole
file is compared with its checksum each time it is read: `content` and `table` do so for Python, and `check` before
Spark reads it.

A chunk that headgate wrote has the columns `_t` (timestamp in ticks) and `_s` (order of arrival). A file of a source
that was taken as it is has neither; they are computed when it is read. `_t` is its column of timestamps, and `_s`
counts its rows on from the number at the end of its name:

    streams/bids/000000000017-00000105553116266496.parquet
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.errors import Broken
from headgate.log import checksum as checksums
from headgate.log import statistics
from headgate.log.checksum import DAMAGED, torn
from headgate.log.statistics import Statistics, Values
from headgate.ticks import Tick

GROUP_ROWS = 100_000
"""About how many rows a row group of a merged file has."""

MAGIC = b"PAR1"
"""How a Parquet file ends."""

PLACE_DIGITS = 20
"""How many digits the order of arrival has at the end of a name."""

STAMPS = ("_t", "_s")

OF_A_SOURCE = "It was taken from its source as it was, by a link: files of a source must not be changed in place"


@dataclass(frozen=True, slots=True)
class Chunk:
    path: Path
    rows: int
    low: Tick
    high: Tick
    size: int = 0
    """Of its file, in bytes."""

    arrived: int = 0
    """How many rows of its log had come when it had: who reads in order of arrival remembers that, and not a time."""

    checksum: int | None = None
    """Of its file; None if it was written before there were any."""

    timestamp: str | None = None
    """The column with its timestamps, if its file is one of a source, taken as it is; None if it has `_t` and `_s`."""

    statistics: Statistics | None = field(default=None, compare=False)
    """Null counts and ranges of its numbers; None if unknown, as of chunks of earlier versions."""

    @property
    def first(self) -> int:
        """The order of arrival of the first row in a file that was taken as it is."""
        return int(self.path.stem[-PLACE_DIGITS:])

    def check(self) -> None:
        """Read the whole file; raise an error that names it if it is not what was written."""
        problem = self.problem()
        if problem is None and self.checksum is not None and checksums.of_file(self.path) != self.checksum:
            problem = self._said(DAMAGED)
        if problem is not None:
            raise torn(self.path, problem)

    def content(self) -> bytes:
        """The contents of the file; an error if they are not what was written."""
        if self.checksum is None:
            self.check()
            return self.path.read_bytes()
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            raise torn(self.path, "it is missing") from None
        if crc32(content) != self.checksum:
            raise torn(self.path, self.problem() or self._said(DAMAGED))
        return content

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Its rows."""
        file = pq.ParquetFile(pa.BufferReader(self.content()))
        if self.timestamp is None or columns is None:
            return self._stamped(file.read(columns), 0)
        own = dict.fromkeys(self.timestamp if column in STAMPS else column for column in columns)
        return self._stamped(file.read(list(own)), 0).select(columns)

    def parts(self) -> Iterator[pa.Table]:
        """Its rows, one row group after the other."""
        file, before = pq.ParquetFile(pa.BufferReader(self.content())), 0
        for group in range(file.num_row_groups):
            rows = self._stamped(file.read_row_group(group), before)
            before += rows.num_rows
            yield rows

    def schema(self) -> pa.Schema:
        """Its columns."""
        if self.timestamp is None:
            return pq.read_schema(self.path)
        own = pq.read_metadata(self.path).schema.to_arrow_schema()
        fields = [pa.field(column.name, column.type) for column in own]
        return pa.schema([*fields, *(pa.field(stamp, pa.int64()) for stamp in STAMPS)])

    def _stamped(self, rows: pa.Table, before: int) -> pa.Table:
        """Some of its rows with `_t` and `_s`, given how many rows of its file stand before them."""
        if self.timestamp is None:
            return rows
        first = self.first + before
        places = pa.array(np.arange(first, first + rows.num_rows, dtype=np.int64))
        return rows.append_column("_t", rows[self.timestamp].cast(pa.int64())).append_column("_s", places)

    def _said(self, problem: str) -> str:
        return problem if self.timestamp is None else f"{problem}. {OF_A_SOURCE}"

    def problem(self) -> str | None:
        """Why it cannot be read, as far as a glance at its file tells."""
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(-min(size, len(MAGIC)), os.SEEK_END)
                whole = size == self.size and file.read() == MAGIC
        except FileNotFoundError:
            return "it is missing"
        if whole:
            return None
        torn_off = f"it is torn: {size} bytes of {self.size} are there"
        return self._said(torn_off if size != self.size else "it is damaged")

    def rows_after(self, low: Tick) -> int:
        """How many of its rows have timestamps behind `low`, by reading them."""
        return int(pc.sum(pc.greater(self.table(["_t"])["_t"], low)).as_py())

    def first_after(self, low: Tick) -> Tick:
        """The least of its timestamps behind `low`, of which there is one; by reading them, unless all are."""
        if self.low > low:
            return self.low
        stamps = self.table(["_t"])["_t"]
        return int(pc.min(pc.filter(stamps, pc.greater(stamps, low))).as_py())


def described(path: Path) -> Chunk | None:
    """The chunk in a Parquet file, from its footer alone; None if it holds no rows."""
    footer = pq.read_metadata(path)
    if not footer.num_rows:
        return None
    range_of_time = span(footer, "_t")
    if range_of_time is None:
        raise Broken(f"a chunk without timestamps: {path}")
    return sized(Chunk(path, footer.num_rows, *range_of_time, statistics=statistics.of_file(footer)))


def sized(chunk: Chunk) -> Chunk:
    """A chunk whose file has just been written, with its size and checksum."""
    return replace(chunk, size=chunk.path.stat().st_size, checksum=checksums.of_file(chunk.path))


def span(footer: pq.FileMetaData, column: str) -> tuple[int, int] | None:
    """The least and the largest value of a column of numbers or instants in a Parquet file; None if it has none.

    Footers count the leaves of nested columns one by one, so the column is found by its path and not by its place.
    """
    leaf = [footer.schema.column(position).path for position in range(footer.num_columns)].index(column)
    groups = [footer.row_group(group).column(leaf).statistics for group in range(footer.num_row_groups)]
    known = [group for group in groups if group is not None and group.has_min_max]
    return (min(group.min_raw for group in known), max(group.max_raw for group in known)) if known else None


def count(path: Path) -> int:
    return pq.read_metadata(path).num_rows


def write(table: pa.Table, path: Path) -> Chunk | None:
    """Write a chunk so that it is either there whole or not at all."""
    if not table.num_rows:
        return None
    ends = pc.min_max(table["_t"]).as_py()
    if ends["min"] is None:
        raise Broken(f"a chunk without timestamps: {path}")
    written = pa.BufferOutputStream()
    pq.write_table(table, written, write_statistics=statistics.told(table.schema))
    content = written.getvalue()
    staged = path.with_name(f".{path.name}.staged")
    try:
        staged.write_bytes(content)
        staged.rename(path)
    except OSError:
        staged.unlink(missing_ok=True)  # it takes room that may be what is missing
        raise
    known, size, checksum = statistics.of_rows(table), content.size, crc32(content)
    return Chunk(path, table.num_rows, ends["min"], ends["max"], size, checksum=checksum, statistics=known)


def values(chunks: Iterable[Chunk], column: str) -> Values | None:
    """What holds for a column of numbers in all of several chunks; None if nothing is known of it."""
    known = statistics.merged(chunk.statistics for chunk in chunks)
    return None if known is None else known.values(column)


def merge(chunks: Sequence[Chunk], path: Path) -> None:
    """One file from several, with row groups of a good size; little more than one is in memory at a time.

    A column that only some of them have, because the stream got it later, is null in the others.
    """
    schema = _of_all(chunk.schema() for chunk in chunks)
    staged = path.with_name(f".{path.name}.staged")
    try:
        with pq.ParquetWriter(staged, schema, write_statistics=statistics.told(schema)) as writer:
            waiting: list[pa.Table] = []
            for chunk in chunks:
                for rows in chunk.parts():
                    waiting.append(_with_all(rows, schema))
                    if sum(table.num_rows for table in waiting) >= GROUP_ROWS:
                        writer.write_table(pa.concat_tables(waiting))
                        waiting = []
            if waiting:
                writer.write_table(pa.concat_tables(waiting))
        staged.rename(path)
    except OSError:
        staged.unlink(missing_ok=True)
        raise


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of several chunks as one table."""
    schema = _of_all(table.schema for table in tables)
    return pa.concat_tables([_with_all(table, schema) for table in tables]).combine_chunks()


def _of_all(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """The columns that any of several chunks has."""
    return pa.schema({column.name: column for schema in schemas for column in schema}.values())


def _with_all(table: pa.Table, schema: pa.Schema) -> pa.Table:
    for column in schema:
        if column.name not in table.column_names:
            table = table.append_column(column, pa.nulls(table.num_rows, column.type))
    return table.select(schema.names).cast(schema)
