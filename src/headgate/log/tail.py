"""The tail of the logs in memory: the rows of chunks that were written or that small epochs have read lately, as Arrow.

A small epoch needs the same few chunks again and again. They are decoded once and kept here; rows that are few enough
are kept when they are written, and never decoded. The files stay the truth: a chunk that is not here is read from its
file, and who reads one that is here compares the file all the same.

What is kept is bounded by bytes, over all logs of the process; what was not read for longest goes first. A chunk is
known by its path and its checksum, so another file under the same name is never taken for it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from headgate.log.chunk import Chunk

MOST_BYTES = 64 * 2**20
"""Enough for the windows of a dozen queries whose epochs are small: 50,000 rows of 100 bytes are 5 MB."""

Key: TypeAlias = tuple[Path, int | None]


class Tail:
    """Rows of chunks in memory, up to so many bytes."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self.bytes = 0
        self._tables: OrderedDict[Key, pa.Table] = OrderedDict()
        """Those read last come last."""
        self._turn = threading.Lock()

    def table(self, chunk: Chunk) -> pa.Table:
        """The rows of a chunk: from memory, or else from its file; an error if that is not what was written."""
        if chunk.checksum is None:  # of an early version: nothing tells one file from another
            return chunk.table()
        key = _key(chunk)
        with self._turn:
            if key in self._tables:
                self._tables.move_to_end(key)
                return self._tables[key]
        table = chunk.table()
        self.keep(chunk, table)
        return table

    def known(self, chunks: Sequence[Chunk]) -> list[pa.Table] | None:
        """The rows of several chunks, if all of them are in memory."""
        with self._turn:
            found = [self._tables.get(_key(chunk)) for chunk in chunks]
        tables = [table for table in found if table is not None]
        return tables if len(tables) == len(chunks) else None

    def keep(self, chunk: Chunk, table: pa.Table) -> None:
        """Keep the rows of a chunk, and let go of others if they are too many together."""
        key = _key(chunk)
        with self._turn:
            if key not in self._tables:
                self._tables[key] = table
                self.bytes += table.nbytes
            while self.bytes > self.most_bytes:
                self.bytes -= self._tables.popitem(last=False)[1].nbytes

    def drop(self, chunks: Iterable[Chunk]) -> None:
        """Let go of chunks whose files are deleted."""
        with self._turn:
            for chunk in chunks:
                table = self._tables.pop(_key(chunk), None)
                self.bytes -= 0 if table is None else table.nbytes


def _key(chunk: Chunk) -> Key:
    return chunk.path, chunk.checksum


TAIL = Tail()
"""Of all logs in this process."""
