"""Parquet files that are taken into the log as they are: by a hard link, and without a Spark job.

A file can be taken as it is if all its rows are tuples and it says what the log would say. It has the declared columns
and no others, by their names and with their types. The stream has no CHECK, and one source, which stamps its tuples and
sends no heartbeats. No timestamp is missing, late or too far in the future. No NaN is passed over by its footer (see
`log/statistics`). Every other file is judged row by row, and what is good of it is written to the log (see `judging`).

The link is made first, and all that is known of the file is read from the link: a file that is replaced meanwhile is
another one. Its checksum is computed before its columns are read, so what is changed after that is found when it is
used. All columns are decoded once, so a file that is damaged is found now and set aside, and is no failure of a query
later. Where no link can be made, as on another file system, the operating system copies the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.catalog.entries import Stream
from headgate.errors import UserError
from headgate.log.checksum import writing
from headgate.log.chunk import PLACE_DIGITS, Chunk, sized, span
from headgate.log.links import link
from headgate.log.log import MERGE_AT, SMALL_ROWS
from headgate.log.statistics import Statistics, hides_nan, merged, of_rows
from headgate.sources.inlet import Inlet
from headgate.sources.reading import COPY, LOCAL
from headgate.sources.verdict import Limits, broken
from headgate.ticks import Tick, TimeDomain

HARMLESS = {"path", "pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter", "mergeschema", COPY}
"""Options of Spark's reader that do not change what the rows of a file are."""

PLAIN = re.compile(
    r"BOOLEAN|TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|STRING|BINARY|DATE|TIMESTAMP|TIMESTAMP_NTZ|DECIMAL\(\d+, ?\d+\)"
)
"""The declared types that are in a Parquet file as they are in the log."""

CODECS = {"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"}
ENCODINGS = {
    "PLAIN",
    "RLE",
    "BIT_PACKED",
    "PLAIN_DICTIONARY",
    "RLE_DICTIONARY",
    "DELTA_BINARY_PACKED",
    "DELTA_LENGTH_BYTE_ARRAY",
    "DELTA_BYTE_ARRAY",
}
"""What Spark can decompress and decode, whatever else it was built with."""

READERS = 2
"""How many files are read at once. Each is decoded by all cores that Arrow has, but not all work on it is Arrow's."""

BUFFER_BYTES = 2**20
"""How much of a column is read at a time: a row group may be as large as the file."""

OLD_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
"""How Spark marks files whose dates and timestamps it shifts when it reads them."""


class AsTheyAre:
    """Finds the files of a source that can be taken as they are, and links them into a folder beside the log."""

    def __init__(self, inlet: Inlet, format: str, options: Mapping[str, str]) -> None:
        said = {key.lower(): value.lower() for key, value in options.items()}
        copied = said.get(COPY, "false")
        if format == "parquet" and copied not in ("true", "false"):
            raise UserError(
                "bad-option",
                f"'{COPY}' = '{copied}' of stream \"{inlet.stream.name}\" is neither 'true' nor 'false'",
                hint=f"'{COPY}' = 'true' never takes files as they are.",
            )
        self.inlet = inlet
        self.wanted = format == "parquet" and said.keys() <= HARMLESS and copied == "false"

    def staged(self, places: Mapping[str, int], folder: Path) -> dict[str, Chunk]:
        """Link the files that can be taken as they are, whatever their timestamps; the chunks by the names of files.

        `places` has the order of arrival of the first row of each file. Many small files are better put together by
        one job.
        """
        stream = self.inlet.stream
        if not self.wanted or not isinstance(stream, Stream) or not self._alike(stream):
            return {}
        found = {file: footer for file in places if (footer := self.footer(local(file))) is not None}
        small = [file for file, footer in found.items() if footer.num_rows < SMALL_ROWS]
        left = small if len(small) >= MERGE_AT else []
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        wanted = [file for file in found if file not in left]
        with ThreadPoolExecutor(READERS) as readers:  # decoding and checksums leave Python to other threads
            chunks = readers.map(lambda file: self._staged(file, folder, places[file]), wanted)
            return {file: chunk for file, chunk in zip(wanted, chunks, strict=True) if chunk is not None}

    def _alike(self, stream: Stream) -> bool:
        """True if the log of the stream says nothing of a row that a file could not say."""
        types = {column.name: column.type.upper() for column in stream.columns}
        instants = ("TIMESTAMP",) if stream.domain is TimeDomain.TIMESTAMP else ("INT", "BIGINT")
        return (
            stream.stamped == "external"
            and stream.source is None
            and stream.heartbeat is None
            and not broken(stream)
            and all(PLAIN.fullmatch(type) for type in types.values())
            and stream.timestamp is not None
            and types.get(stream.timestamp) in instants
        )

    def footer(self, path: Path | None) -> pq.FileMetaData | None:
        """What a file says of itself, if it has rows of the stream's columns; None if not, or if it cannot be read."""
        if path is None:
            return None
        try:
            footer = pq.read_metadata(path)
            there = footer.schema.to_arrow_schema()
        except (OSError, pa.ArrowException):
            return None
        own = self.inlet.stream.row_columns()
        declared = {field.name: field.type for field in self.inlet.rows.schema if field.name in own}
        same = len(there) == len(declared) and {field.name: field.type for field in there} == declared
        return footer if footer.num_rows and same and _for_spark(footer) else None

    def _staged(self, file: str, folder: Path, place: int) -> Chunk | None:
        """Link a file, compute its checksum, and read it; None if it turns out that it cannot be taken as it is."""
        path, source = folder / f"{place:0{PLACE_DIGITS}d}.parquet", local(file)
        timestamp = self.inlet.stream.timestamp
        assert source is not None
        assert timestamp is not None
        try:
            link(source, path)
            footer = self.footer(path)
            if footer is None:
                return None
            chunk = _looked_through(sized(Chunk(path, footer.num_rows, 0, 0, timestamp=timestamp)), timestamp)
        except (OSError, pa.ArrowException):
            return None
        if chunk is None or span(footer, timestamp) not in ((chunk.low, chunk.high), None):
            return None  # Spark would pass over row groups by what the footer says
        return chunk


def fitting(chunks: Mapping[str, Chunk], limits: Limits) -> dict[str, Chunk]:
    """The chunks in which all rows are tuples, by the limits."""
    first = max(limits.origin, limits.closed + 1)
    return {file: chunk for file, chunk in chunks.items() if first <= chunk.low and chunk.high <= limits.ahead}


def instants(chunks: Iterable[Chunk]) -> Iterable[pa.Array]:
    """The timestamps of files that are taken as they are, piece by piece, in ticks."""
    for chunk in chunks:
        for rows in pq.ParquetFile(chunk.path, buffer_size=BUFFER_BYTES).iter_batches(columns=[chunk.timestamp]):
            yield rows.column(0).cast(pa.int64())


def local(file: str) -> Path | None:
    """The path of a file that Spark names; None if it is on no file system of this machine."""
    path = re.sub(LOCAL, "/", unquote(file))
    return Path(path) if path.startswith("/") else None


def _for_spark(footer: pq.FileMetaData) -> bool:
    """True if Spark reads the file, and reads in it what everybody else does."""
    said = footer.metadata or {}
    if any(mark in said for mark in OLD_CALENDAR) or said.get(b"org.apache.spark.version", b"3") < b"3":
        return False
    columns: Sequence[pq.ColumnChunkMetaData] = [
        footer.row_group(group).column(column)
        for group in range(footer.num_row_groups)
        for column in range(footer.num_columns)
    ]
    return all(column.compression in CODECS and ENCODINGS.issuperset(column.encodings) for column in columns)


def _looked_through(chunk: Chunk, timestamp: str) -> Chunk | None:
    """A chunk with its range of time and what is known of its numbers, by reading all of it.

    None if a timestamp is missing, or a NaN is not in the footer. What that says of numbers may be any writer's word.
    """
    lows: list[Tick] = []
    highs: list[Tick] = []
    numbers: list[Statistics | None] = []
    read = 0
    file = pq.ParquetFile(chunk.path, buffer_size=BUFFER_BYTES, page_checksum_verification=True)
    for part in file.iter_batches():
        stamps = part.column(timestamp)
        if stamps.null_count or hides_nan(file.metadata, part):
            return None
        if part.num_rows:
            both = pc.min_max(stamps.cast(pa.int64())).as_py()
            lows.append(both["min"])
            highs.append(both["max"])
            numbers.append(of_rows(part))
            read += part.num_rows
    if read != chunk.rows:
        return None
    return replace(chunk, low=min(lows), high=max(highs), statistics=merged(numbers))
