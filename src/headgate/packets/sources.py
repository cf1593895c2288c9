"""Packets as data sources of Spark: capture files by its batch reader, live interfaces by its streaming reader.

The schema that Spark hands to a reader says which fields are wanted, so only those are decoded. Rows come as Arrow
batches. `_raw` is null for packets that were decoded and says why for all others; `_file` and `_start` tell where in
which file a packet stands.

    spark.dataSource.register(Pcap)
    spark.read.format("pcap").schema("time TIMESTAMP, src_ip STRING").load("captures/monday.pcap")

The workers of Spark import this module, so headgate must be installed where they run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from headgate.packets import ring, spool
from headgate.packets.columns import batch
from headgate.packets.fields import FIELDS
from headgate.packets.records import Piece, Records, pieces, records
from headgate.packets.spool import Capture, Spool, Spot

PIECE_BYTES = 2**25
"""A capture file is cut into pieces of about this size, which are read side by side. Smaller files share a task."""

FILES, SPOOL = "files", "spool"
"""Options of ours: which files, as a list in JSON; in which folder packets of an interface are kept until they are in
the log.
"""

SNAP_LENGTH, SPOOL_BYTES, PROMISCUOUS = "snap_length", "spool_bytes", "promiscuous"
USUAL = {SNAP_LENGTH: "65535", SPOOL_BYTES: str(2**30), PROMISCUOUS: "false"}
BATCH_SEGMENTS = 4
"""A backlog in the spool comes in pieces of so many segments."""

ALL = ", ".join(f"{field.name} {field.type}" for field in FIELDS.values())


@dataclass
class Part(InputPartition):
    """Pieces of capture files that one task reads."""

    pieces: list[Piece]


@dataclass
class Stretch(InputPartition):
    """Part of a segment of a spool."""

    path: Path
    start: int
    end: int


class Pcap(DataSource):
    """Capture files."""

    @classmethod
    def name(cls) -> str:
        """The name after `format`."""
        return "pcap"

    def schema(self) -> str:
        """All fields, if the user names none."""
        return f"{ALL}, _raw STRING"

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the fields in the schema."""
        given = self.options.get(FILES)
        files = json.loads(given) if given is not None else [str(file) for file in _files(self.options.get("path", ""))]
        return PcapReader(files, schema.fieldNames())


class PcapReader(DataSourceReader):
    """Reads capture files, large ones in pieces."""

    def __init__(self, files: list[str], names: list[str]) -> None:
        self.files = files
        self.names = names

    def partitions(self) -> Sequence[InputPartition]:
        """The pieces of the files, small ones together."""
        named = {str(local(file)): file for file in self.files}
        return [
            Part([replace(piece, path=named[piece.path]) for piece in part]) for part in shared_out(map(Path, named))
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        assert isinstance(partition, Part)
        for piece in partition.pieces:
            path = local(piece.path)
            for some in records(Piece(str(path), piece.start, piece.end, piece.first)):
                yield rows(some, self.names, str(path), piece)


def shared_out(files: Iterable[Path]) -> list[list[Piece]]:
    """The pieces of capture files as tasks read them: a large one each, small ones together."""
    parts: list[list[Piece]] = []
    size = 0
    for file in files:
        for piece in pieces(file, PIECE_BYTES):
            size += piece.end - piece.start
            if parts and size <= PIECE_BYTES:
                parts[-1].append(piece)
            else:
                parts.append([piece])
                size = piece.end - piece.start
    return parts


class Interface(DataSource):
    """A live interface."""

    @classmethod
    def name(cls) -> str:
        """The name after `format`."""
        return "interface"

    def schema(self) -> str:
        """All fields, if the user names none."""
        return f"{ALL}, _raw STRING"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """A reader of the fields in the schema."""
        options = {**USUAL, **{key.lower(): value for key, value in self.options.items()}}
        return InterfaceReader(options, schema.fieldNames())


class InterfaceReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Captures an interface into a spool, and reads the spool. Spark's offsets are places in the spool.

    Spark makes several of these: one that is asked for offsets captures, those in tasks only read.
    """

    def __init__(self, options: dict[str, str], names: list[str]) -> None:
        self.interface = options["interface"]
        self.folder = Path(options[SPOOL])
        self.options = options
        self.names = names
        self.capture: Capture | None = None
        self.only_spooled = False
        self.latest = Spot()

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Before everything."""
        return Spot().told()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read what was captured before, and capture nothing."""
        self.only_spooled = True

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Up to where packets are in the spool. All that were there at the call are, unless there is a backlog or it is
        full.
        """
        begin = Spot(**start)
        if self.only_spooled:
            self.latest = max(begin, Spool(self.folder).spot())
        else:
            if self.capture is None:
                self.capture = self._captured(begin)
            settled = self.capture.settle()
            self.latest = found = max(begin, self.capture.spool.spot())
            if not settled:  # there is more, and nobody knows where it will be
                self.latest = Spot(found.segment + 1, 0)
                return found.told()
        if not any(spool.between(self.folder, begin, self.latest)):
            self.latest = begin  # a new segment without a packet
        if self.latest.segment - begin.segment <= BATCH_SEGMENTS:
            return self.latest.told()
        ready = [number for number, _ in spool.segments(self.folder) if number > begin.segment]
        return Spot(ready[min(BATCH_SEGMENTS, len(ready) - 1)], 0).told()

    def _captured(self, after: Spot) -> Capture:
        options = self.options
        live = ring.Ring(self.interface, int(options[SNAP_LENGTH]), options[PROMISCUOUS].lower() == "true")
        found = Capture(Spool(self.folder), live, self.interface, int(options[SPOOL_BYTES]))
        found.start(after)
        return found

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        """What was there when Spark last looked: if a batch ends there, it has everything up to that moment."""
        return self.latest.told()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The parts of segments between two places."""
        return [Stretch(*part) for part in spool.between(self.folder, Spot(**start), Spot(**end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        assert isinstance(partition, Stretch)
        for some in spool.chunks(partition.path, partition.start, partition.end):
            yield rows(some, self.names, f"interface {self.interface}")

    def commit(self, end: dict[str, int]) -> None:
        """Forget what is in the log."""
        Spool(self.folder).forget(Spot(**end))

    def stop(self) -> None:
        """Stop capturing."""
        if self.capture is not None:
            self.capture.stop()
            self.capture = None


def rows(some: Records, names: list[str], where: str, piece: Piece | None = None) -> pa.RecordBatch:
    """Packets as Spark's rows: fields, `_raw`, and of files which one and where."""
    known = [name for name in names if name not in ("_file", "_start")]
    found = batch(some, known, where)
    if piece is None:
        return found
    columns = {name: found.column(name) for name in known}
    if "_file" in names:
        columns["_file"] = pa.repeat(piece.path, found.num_rows)
    if "_start" in names:
        columns["_start"] = pa.array(np.full(found.num_rows, piece.start, np.int64))
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)


def local(file: str) -> Path:
    """The path of a file as Spark names it."""
    return Path(re.sub("^file:/+", "/", file))


def _files(path: str) -> list[Path]:
    found = local(path)
    return sorted(file for file in found.iterdir() if file.is_file()) if found.is_dir() else [found]
