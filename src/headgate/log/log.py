"""A log: an append-only sequence of chunks, read by ranges of time.

Tuples beyond the heartbeat wait in it, windows are ranges of it, and results are written to one. Files that belong to a log but
not to its list of chunks are left-overs and never read. Chunks are numbered in the order in which they came:

    streams/bids/000000000017.parquet
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from headgate.catalog import Tick
from headgate.log.chunk import Chunk, count, described, merge, write

SMALL_ROWS = 100_000
"""Chunks smaller than this are merged, so that a scan opens few files."""

MERGE_AT = 16
"""How many small chunks in a row are merged into one."""


class Log:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.chunks: list[Chunk] = []
        self.rows = 0
        self.forgotten: Tick | None = None
        """The largest timestamp that was in the log and is not any more."""

        directory.mkdir(parents=True, exist_ok=True)
        self._next = max((int(file.stem) for file in directory.glob("*.parquet") if file.stem.isdigit()), default=0)

    def append(self, table: pa.Table) -> Chunk | None:
        return self._take(write(table, self._path()))

    def adopt(self, files: list[Path]) -> list[Chunk]:
        """Take over files that a Spark job has written elsewhere."""
        taken = []
        for file in files:
            path = self._path()
            file.rename(path)
            chunk = self._take(described(path))
            if chunk is None:
                path.unlink()
            else:
                taken.append(chunk)
        return taken

    def adopt_all(self, files: list[Path]) -> None:
        """Take over files whose timestamps do not matter; such a log is only ever read whole."""
        for file in files:
            rows = count(file)
            if rows:
                path = self._path()
                file.rename(path)
                self._take(Chunk(path, rows, 0, 0))
            else:
                file.unlink()

    def files(self, low: Tick | None, high: Tick | None) -> list[Path]:
        """The files that may hold timestamps in (low, high]."""
        return [chunk.path for chunk in self.overlapping(low, high)]

    def rows_within(self, low: Tick | None, high: Tick | None) -> int:
        """An upper bound for the number of tuples with timestamps in (low, high]."""
        return sum(chunk.rows for chunk in self.overlapping(low, high))

    def rows_after(self, low: Tick) -> int:
        """How many tuples have timestamps behind `low`: counted in the chunks that it cuts, known of the others."""
        return sum(chunk.rows if chunk.low > low else chunk.rows_after(low) for chunk in self.overlapping(low, None))

    def overlapping(self, low: Tick | None, high: Tick | None) -> list[Chunk]:
        return [chunk for chunk in self.chunks if (low is None or chunk.high > low) and (high is None or chunk.low <= high)]

    def forget(self, needed: Callable[[Chunk], bool]) -> None:
        """Delete the chunks that nobody needs any more."""
        for chunk in [chunk for chunk in self.chunks if not needed(chunk)]:
            self.chunks.remove(chunk)
            chunk.path.unlink()
            self.forgotten = chunk.high if self.forgotten is None else max(self.forgotten, chunk.high)

    def compact(self) -> None:
        """Merge runs of small chunks, oldest first."""
        run: list[Chunk] = []
        for chunk in [*self.chunks, None]:
            if chunk is not None and chunk.rows < SMALL_ROWS:
                run.append(chunk)
                if len(run) < MERGE_AT:
                    continue
            if len(run) >= MERGE_AT:
                self._merge(run)
            run = []

    def _merge(self, run: list[Chunk]) -> None:
        position = self.chunks.index(run[0])
        path = self._path()
        merge(run, path)
        merged = Chunk(path, sum(chunk.rows for chunk in run), min(chunk.low for chunk in run), max(chunk.high for chunk in run))
        self.chunks[position : position + len(run)] = [merged]
        for chunk in run:
            chunk.path.unlink()

    def _take(self, chunk: Chunk | None) -> Chunk | None:
        if chunk is not None:
            self.chunks.append(chunk)
            self.rows += chunk.rows
        return chunk

    def _path(self) -> Path:
        self._next += 1
        return self.directory / f"{self._next:012d}.parquet"
