"""The rows of chunks that Spark has in its memory, ready for plans that are kept.

A chunk is handed to Spark once, whole, and serves every epoch and every query that reads it. What an epoch reads of it
is a piece of these rows: pieces are cut by number if the chunk is in order of time, which is so where tuples come in
order. A piece of another chunk, or of a large one, is cut out in Arrow and handed over by itself. Small chunks that
come together are handed over together.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from headgate.execute.workspace import LOCAL_BYTES, Reading, Slice
from headgate.log.chunk import Chunk
from headgate.log.tail import TAIL
from headgate.spark.in_memory import arrow_schema, fitted, text_of
from headgate.spark.kept_plans import Rows

MOST_ROWS = 200_000
"""So many rows are left with Spark; those that were not read for longest go first."""

WHOLE_ROWS = 5_000
"""Chunks up to this size are handed over whole, even if a piece of them is read."""


@dataclass(frozen=True, slots=True)
class _Handed:
    rows: Rows
    count: int
    times: np.ndarray | None
    """The timestamps, if they are in order."""


class RowsInSpark:
    """Hands the rows of chunks to Spark, and remembers those that it has."""

    def __init__(self, hand: Callable[[pa.Table, StructType], Rows | None]) -> None:
        self._hand = hand
        self._handed: OrderedDict[tuple[object, ...], _Handed] = OrderedDict()
        self._count = 0

    def of(self, reading: Reading) -> Sequence[Rows] | None:
        """Return the rows of a reading in pieces; None if Spark has to read or to judge some of them itself."""
        if reading.table is not None:
            handed = self._hand(reading.table, reading.schema) if reading.table.num_rows else None
            return [] if not reading.table.num_rows else None if handed is None else [handed]
        columns = arrow_schema(reading.schema)
        size = sum(chunk.size for one in reading.slices for chunk in one.chunks)
        if columns is None or size > LOCAL_BYTES or any(one.seen for one in reading.slices):
            return None
        try:
            self._hand_together(reading, columns)
            pieces: list[Rows] = []
            for one in reading.slices:
                for chunk in one.chunks:
                    piece = self._piece(chunk, one, reading, columns)
                    if piece is None:
                        return None
                    pieces += piece
            return pieces
        except pa.ArrowException:
            return None  # a source's file with types that Spark converts and Arrow does not

    def _hand_together(self, reading: Reading, columns: pa.Schema) -> None:
        """Hand small chunks that Spark does not have over in one go: a call for each would cost more than its rows."""
        chunks = (chunk for one in reading.slices for chunk in one.chunks if chunk.rows <= WHOLE_ROWS)
        new = {_key(chunk, reading): chunk for chunk in chunks if chunk.checksum is not None}
        tables = {
            key: fitted(TAIL.table(chunk), columns, reading.within)
            for key, chunk in new.items()
            if key not in self._handed
        }
        if len(tables) < 2:
            return
        handed = self._hand(pa.concat_tables(tables.values()).combine_chunks(), reading.schema)
        if handed is None:
            return
        first = 0
        for key, table in tables.items():
            rows = handed.slice(first, first + table.num_rows)
            self._remember(key, _Handed(rows, table.num_rows, _ascending(table)))
            first += table.num_rows

    def _piece(self, chunk: Chunk, one: Slice, reading: Reading, columns: pa.Schema) -> list[Rows] | None:
        """Return the rows of a chunk that a slice wants, if there are any; None if they cannot be handed over."""
        if chunk.checksum is None:
            return None  # of an early version: nothing tells one file from another
        key = _key(chunk, reading)
        if chunk.rows <= WHOLE_ROWS or one.covers(chunk):
            whole = self._known(key, lambda: fitted(TAIL.table(chunk), columns, reading.within), reading.schema)
            if whole is None or one.covers(chunk):
                return _if_any(whole)
            if whole.times is not None:
                low = 0 if one.low is None else int(np.searchsorted(whole.times, one.low, side="right"))
                high = whole.count if one.high is None else int(np.searchsorted(whole.times, one.high, side="right"))
                return [whole.rows.slice(low, high)] if low < high else []
        within = lambda: one.in_time(fitted(TAIL.table(chunk), columns, reading.within))  # noqa: E731
        return _if_any(self._known((*key, one.low, one.high), within, reading.schema))

    def _known(self, key: tuple[object, ...], table: Callable[[], pa.Table], schema: StructType) -> _Handed | None:
        """Return rows that Spark has, or hand them over; None if they are too many for that."""
        if (known := self._handed.get(key)) is not None:
            self._handed.move_to_end(key)
            return known
        rows = table().combine_chunks()
        handed = self._hand(rows, schema)
        if handed is None:
            return None
        return self._remember(key, _Handed(handed, rows.num_rows, _ascending(rows)))

    def _remember(self, key: tuple[object, ...], handed: _Handed) -> _Handed:
        """Keep what Spark has, and let go of what was not read for longest if it is too much."""
        self._handed[key] = handed
        self._count += handed.count
        while self._count > MOST_ROWS and len(self._handed) > 1:
            self._count -= self._handed.popitem(last=False)[1].count
        return handed


def _key(chunk: Chunk, reading: Reading) -> tuple[object, ...]:
    return chunk.path, chunk.checksum, text_of(reading.schema), reading.within


def _if_any(handed: _Handed | None) -> list[Rows] | None:
    return None if handed is None else [handed.rows] if handed.count else []


def _ascending(rows: pa.Table) -> np.ndarray | None:
    """Return the timestamps of rows that are in order of time; None if these are not."""
    if "_t" not in rows.column_names:
        return None
    times = rows.column("_t").to_numpy()
    return times if times.dtype == np.int64 and bool(np.all(times[1:] >= times[:-1])) else None
