"""A log: an append-only sequence of chunks, read by ranges of time.

Tuples beyond the heartbeat wait in it, windows are ranges of it, and results are written to one. Which chunks it has is
a matter of the journal: files that belong to a log but not to its list of chunks are left-overs and never read. Chunks
are numbered in the order in which they came, or named after the batch they are. The name of a file of a source that was
taken as it is also has the order of arrival of its first row:

    streams/bids/000000000017.parquet
    streams/bids/000000000018-00000105553116266496.parquet
    streams/asks/batch-000000000003-00000.parquet
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate.errors import UserError
from headgate.log import statistics
from headgate.log.checksum import synced, torn, writing
from headgate.log.chunk import PLACE_DIGITS, Chunk, count, described, merge, sized, together, write
from headgate.log.journal import Fact, Journal
from headgate.log.statistics import Statistics
from headgate.log.tail import TAIL
from headgate.ticks import Tick

SMALL_ROWS = 100_000
"""Chunks smaller than this are merged, so that a scan opens few files."""

MERGE_AT = 16
"""How many small chunks in a row are merged into one."""


IN_MEMORY_BYTES = 2**20
"""Chunks that are no larger than this together are merged in memory, and one that is written is kept there."""

LISTED = 7
"""How many things the journal has of a chunk behind its name and its rows, if it has all of them."""


class Chunks:
    """Chunks that are read by ranges of time: those of a log, or some of them."""

    def __init__(self, chunks: Iterable[Chunk] = ()) -> None:
        self.chunks = list(chunks)
        self.rows = max((chunk.arrived for chunk in self.chunks), default=0)
        """How many tuples have come, from the beginning on."""
        self.forgotten: Tick | None = None
        """The largest timestamp that was in the log and is not any more."""
        self.reached: Tick | None = None
        """The largest timestamp of tuples that have come and were never kept."""

    def newest(self) -> Tick | None:
        """The largest timestamp that has come and is not forgotten; None if there is none."""
        known = [*(chunk.high for chunk in self.chunks), *([] if self.reached is None else [self.reached])]
        return max(known, default=None)

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
        return [
            chunk for chunk in self.chunks if (low is None or chunk.high > low) and (high is None or chunk.low <= high)
        ]

    def up_to(self, count: int) -> Chunks:
        """Those that had come when so many tuples had."""
        found = Chunks(chunk for chunk in self.chunks if chunk.arrived <= count)
        found.rows, found.forgotten = min(self.rows, count), self.forgotten
        found.reached = self.reached if count >= self.rows else None
        return found


class Log(Chunks):
    def __init__(self, directory: Path, journal: Journal | None = None, subject: str = "log") -> None:
        super().__init__()
        self.directory = directory
        self.journal = journal or Journal()
        self.subject = subject
        self.damaged: set[Path] = set()
        """Chunks that were found to be damaged when they were to be merged: they are left as they are."""

        with writing(directory):
            directory.mkdir(parents=True, exist_ok=True)
        self._next = max(map(_number, directory.glob("*.parquet")), default=0)
        self.journal.introduce(subject, self.apply)

    # what the journal knows of it

    def apply(self, change: dict[str, Any]) -> None:
        """Chunks that come, in place of those that go if they are the same rows merged."""
        added = [_read(self.directory, listed) for listed in change.get("add", ())]
        gone = set(change.get("drop", ()))
        if "merged" in change:
            position = next(place for place, chunk in enumerate(self.chunks) if chunk.path.name in gone)
            last = max(chunk.arrived for chunk in self.chunks if chunk.path.name in gone)
            added = [replace(chunk, arrived=last) for chunk in added]
            kept = [chunk for chunk in self.chunks if chunk.path.name not in gone]
            self.chunks = [*kept[:position], *added, *kept[position:]]
        elif gone:
            self.chunks = [chunk for chunk in self.chunks if chunk.path.name not in gone]
        else:
            rows = self.rows
            for chunk in added:
                rows += chunk.rows
                self.chunks.append(replace(chunk, arrived=chunk.arrived or rows))
            self.rows = rows  # counted when they are listed: whoever looks meanwhile finds what is counted
        self.rows = change.get("rows", self.rows) + change.get("passed", 0)
        self.forgotten = change.get("forgotten", self.forgotten)
        self.reached = change.get("reached", self.reached)
        self._next = max(self._next, *(_number(chunk.path) for chunk in added), 0)

    def state(self) -> dict[str, Any]:
        return {
            "add": list(map(_listed, self.chunks)),
            "rows": self.rows,
            "forgotten": self.forgotten,
            "reached": self.reached,
        }

    def check(self) -> None:
        """Raise an error that names the first chunk that is missing or cut short; damage is found when one is read."""
        for chunk in self.chunks:
            if problem := chunk.problem():
                raise torn(chunk.path, problem)

    def sweep(self) -> None:
        """Delete what was written and never came to count."""
        known = {chunk.path for chunk in self.chunks}
        for file in self.directory.iterdir():
            if file.is_file() and file not in known:
                file.unlink()

    # writing

    def append(self, table: pa.Table) -> Chunk | None:
        with writing(self.directory):
            chunk = write(table, self._path())
        if chunk is not None:
            self._take([chunk])
            if chunk.size <= IN_MEMORY_BYTES:
                TAIL.keep(chunk, table)
        return chunk

    def pass_over(self, count: int, upto: Tick) -> None:
        """Take note of tuples that have come, stamped up to an instant, and are not kept; before those of their batch
        that are. Readers learn from it what they learn from tuples but for their values.
        """
        if count:
            reached = upto if self.reached is None else max(upto, self.reached)
            self.journal.record(self.subject, {"passed": count, "reached": reached})

    def adopt(self, files: Iterable[Path], name: str | None = None) -> list[Chunk]:
        """Take over files that a Spark job has written elsewhere on the same disk."""
        return self._adopt(files, _known, name)

    def adopt_as_they_are(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        """Take over files of a source, which lie elsewhere on the same disk under names that end with the order of
        arrival of their first rows.
        """
        taken = []
        for chunk in chunks:
            path = self._path(f"-{chunk.first:0{PLACE_DIGITS}d}")
            with writing(self.directory):
                chunk.path.rename(path)
            taken.append(replace(chunk, path=path))
        if taken:
            self._take(taken)
        return taken

    def adopt_all(self, files: Iterable[Path]) -> list[Chunk]:
        """Take over files whose timestamps do not matter; such a log is only ever read whole."""
        return self._adopt(files, lambda path: sized(Chunk(path, rows, 0, 0)) if (rows := count(path)) else None)

    def _adopt(
        self, files: Iterable[Path], known: Callable[[Path], Chunk | None], name: str | None = None
    ) -> list[Chunk]:
        taken = []
        for number, file in enumerate(files):
            path = self._path() if name is None else self.directory / f"{name}-{number:05d}.parquet"
            with writing(self.directory):
                file.rename(path)
            chunk = known(path)
            if chunk is None:
                path.unlink()
            else:
                taken.append(chunk)
        if taken:
            self._take(taken)
        return taken

    def _take(self, chunks: list[Chunk]) -> None:
        if self.journal.durable:
            try:
                with writing(self.directory):
                    for chunk in chunks:
                        synced(chunk.path)
                    synced(self.directory)
            except UserError:
                _delete(chunks)
                raise
        self.journal.record(self.subject, {"add": list(map(_listed, chunks))}, undo=lambda: _delete(chunks))

    # tidying

    def forget(self, needed: Callable[[Chunk], bool]) -> None:
        """Delete the chunks that nobody needs any more."""
        with self.journal.turn:  # nobody who needs them may come meanwhile
            gone = [chunk for chunk in self.chunks if not needed(chunk)]
            if gone:
                self.journal.record(*self.dropping(gone))
        _delete(gone)

    def dropping(self, chunks: list[Chunk]) -> Fact:
        """The fact that chunks are no longer part of it; their files can be deleted once it is recorded."""
        largest = max((chunk.high for chunk in chunks), default=self.forgotten)
        forgotten = largest if self.forgotten is None or largest is None else max(self.forgotten, largest)
        return self.subject, {"drop": [chunk.path.name for chunk in chunks], "forgotten": forgotten}

    def compact(self, apart: Collection[int] = ()) -> None:
        """Merge runs of small chunks; those up to each of these arrivals not with those behind it."""
        run: list[Chunk] = []
        for chunk in [*self.chunks, None]:
            if chunk is not None and chunk.rows < SMALL_ROWS and chunk.path not in self.damaged:
                run.append(chunk)
                if chunk.arrived not in apart:
                    continue
            self._merge_run(run)
            run = []

    def _merge_run(self, run: list[Chunk]) -> None:
        """A chunk that is larger than all behind it waits until they have grown: rows are written again few times
        over.
        """
        rows = sum(chunk.rows for chunk in run)
        while len(run) >= MERGE_AT and 2 * run[0].rows > rows:
            rows -= run[0].rows
            run = run[1:]
        if len(run) >= MERGE_AT:
            self._merge(run)

    def _merge(self, run: list[Chunk]) -> None:
        for chunk in run:
            try:
                chunk.check()
            except UserError:
                self.damaged.add(chunk.path)
                raise
        path = self._path()
        with writing(self.directory):
            merged = self._merged(run, path)
        if self.journal.durable:
            with writing(self.directory):
                synced(path)
                synced(self.directory)
        gone = [chunk.path.name for chunk in run]
        what = {"add": [_listed(merged)], "drop": gone, "merged": True}
        self.journal.record(self.subject, what, undo=lambda: _delete([merged]))
        _delete(run)

    def _merged(self, run: list[Chunk], path: Path) -> Chunk:
        """One chunk from several: from memory if their rows are all there, or else from their files.

        Results have no `_t`. They are in memory if somebody reads them page by page, and are merged from their files.
        """
        known = TAIL.known(run) if sum(chunk.size for chunk in run) <= IN_MEMORY_BYTES else None
        stamped = known is not None and all("_t" in table.column_names for table in known)
        if known is not None and stamped and (chunk := write(table := together(known), path)) is not None:
            TAIL.keep(chunk, table)
            return chunk
        merge(run, path)
        low, high = min(chunk.low for chunk in run), max(chunk.high for chunk in run)
        numbers = statistics.merged(chunk.statistics for chunk in run)
        return sized(Chunk(path, sum(chunk.rows for chunk in run), low, high, statistics=numbers))

    def _path(self, more: str = "") -> Path:
        with self.journal.turn:
            self._next += 1
            return self.directory / f"{self._next:012d}{more}.parquet"


def _listed(chunk: Chunk) -> list[Any]:
    """As the journal has it. How many rows had come with it is known when it is applied, and 0 before."""
    known = [chunk.path.name, chunk.rows, chunk.low, chunk.high, chunk.size, chunk.arrived, chunk.checksum]
    numbers = [] if chunk.statistics is None else [chunk.statistics.written()]
    return known if chunk.timestamp is None and not numbers else [*known, chunk.timestamp, *numbers]


def _read(directory: Path, listed: list[Any]) -> Chunk:
    """What `_listed` wrote. Earlier versions wrote less."""
    name, rows, *known = listed
    numbers = known.pop() if len(known) == LISTED else None
    chunk = Chunk(directory / name, rows, *known)
    return chunk if numbers is None else replace(chunk, statistics=Statistics.read(rows, numbers))


def _number(file: Path) -> int:
    """The number of a chunk among those of its log; 0 if it is named after a batch."""
    number = file.stem.partition("-")[0]
    return int(number) if number.isdigit() else 0


def _known(path: Path) -> Chunk | None:
    """The chunk in a file that was written elsewhere. The rows of a small one are looked at and stay in memory."""
    chunk = described(path)
    if chunk is None or chunk.size > IN_MEMORY_BYTES:
        return chunk
    rows = TAIL.table(chunk)
    return replace(chunk, statistics=statistics.of_rows(rows))


def _delete(chunks: list[Chunk]) -> None:
    TAIL.drop(chunks)
    for chunk in chunks:
        chunk.path.unlink(missing_ok=True)
