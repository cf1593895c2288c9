"""Files to rows: the columns that a stream declares, taken by name from files of any format.

Formats know the names of their columns in different ways:

    csv with a header       by the first line of each file; files with different headers are read apart
    csv without a header    not at all: the columns are those of the stream, in their order
    parquet, orc, avro      by the schema of each file; files with different schemas are read apart
    json                    by the keys of each object, read as text so that a row that does not fit is there as a whole
                            (or by Spark's own reader, where that comes to the same: see `plain_json`)
    xml                     by the tags of each row
    text                    one column, `value`
    pcap                    by the fields that packets have (see `packets`)

Names count without case, as in Spark. What else stands in a file is passed over. A column that a file does not have is
an error, unless the option `mergeSchema` says that it is null there; an object of JSON or a row of XML may leave out
whatever is null. Out come the stream's columns, `_raw` and `_row` as `payload` says, `_file` (as Spark names it) and
`_start` (where in its file the piece begins in which the row stands).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from headgate.catalog.entries import Connector
from headgate.errors import UserError, nearest, quoted
from headgate.sources.inlet import Inlet
from headgate.sources.packets import capture_rows, check_capture_options
from headgate.sources.payload import CORRUPT, ROW, by_name, decoded, is_array, with_columns
from headgate.sources.plain_json import HARMLESS, PACKED, is_plain, unclear_sql
from headgate.spark.statements import filtered, selected
from headgate.sql import ALL, BIGINT, STRING, Column, Sql, cast, ddl, literal, name

PLAIN = "plain"
"""The kind of plain files of JSON."""

COPY = "copy"
"""Our option of Parquet files: they are never taken into the log as they are."""

LOCAL = "^file:/+"
"""Spark writes local files with one slash in one place and with three in another."""

MARK = "\ufeff"
"""The byte order mark with which some programs begin a file."""

OF_CAPTURES = {"_file": Sql("_file"), "_start": Sql("_start")}
KEPT = {"_file": Sql("_metadata.file_path"), "_start": Sql("_metadata.file_block_start")}

RECORDS = f"""EXPLODE(CASE WHEN {is_array(Sql("value"))} THEN
    COALESCE(TRANSFORM(TRY_CAST(TRY_PARSE_JSON(value) AS ARRAY<VARIANT>), one -> TO_JSON(one)), ARRAY(value))
    ELSE ARRAY(value) END) AS _text"""
"""A line of JSON is an object, or an array of objects."""


class FileReader:
    """Reads files of one format, as a stream declares its columns."""

    def __init__(self, session: SparkSession, inlet: Inlet, connector: Connector) -> None:
        self.session = session
        self.inlet = inlet
        self.format = connector.format
        self.payload = connector.payload
        ours = ("path", COPY) if self.format == "parquet" else ("path",)
        self.options = {key: value for key, value in connector.options.items() if key.lower() not in ours}
        self.said = {key.lower(): value for key, value in self.options.items()}
        if self.format == "pcap":
            check_capture_options(connector)
        if self.payload is not None and (self.format != "text" or self.payload.format == "avro"):
            raise UserError(
                "no-source",
                f"the values of {self.format} files cannot be decoded as {self.payload.format}",
                detail="Of files, VALUE AS decodes lines of text, as json or csv.",
                hint=f"FROM {self.payload.format}",
            )

    def listed(self, path: str) -> list[str]:
        """The files below a path, as Spark names them."""
        return [re.sub(LOCAL, "file:/", file) for file in self._reader("text").load(path).inputFiles()]

    def rows(self, paths: list[str], plain: Collection[str] = ()) -> DataFrame:
        """All rows of these files, with the stream's columns. Unclear rows of files in `plain` are marked as such."""
        alike: dict[str, list[str]] = {}
        for path in paths:
            alike.setdefault(PLAIN if path in plain else self._kind(path), []).append(path)
        frames = [self._read(kind, group) for kind, group in alike.items()]
        if not frames:
            ours = ((CORRUPT, STRING), (ROW, STRING), ("_file", STRING), ("_start", BIGINT))
            return self.session.createDataFrame([], ddl([*self.inlet.stream.columns, *(Column(*one) for one in ours)]))
        return reduce(lambda one, other: one.unionAll(other), frames)

    def plain(self, paths: Iterable[str]) -> set[str]:
        """The files among these that look like plain files of JSON."""
        if self.format != "json" or not self.said.keys() <= HARMLESS:
            return set()
        return {path for path in paths if is_plain(Path(re.sub(LOCAL, "/", path)))}

    def _kind(self, path: str) -> str:
        """A text that is equal for files with equal columns, as far as a glance at the file shows it. So Spark is not
        asked about every file.
        """
        local = Path(re.sub(LOCAL, "/", path))
        match self.format:
            case "csv" if self.header and not {"comment", "multiline", "encoding", "charset"} & self.said.keys():
                return _first_line(local) or path
            case "parquet":
                try:
                    return str(pq.read_schema(local).remove_metadata())
                except (OSError, pa.ArrowException):
                    return path
            case "csv" if self.header:
                return path
            case "orc" | "avro":
                return path
            case _:
                return ""

    @property
    def header(self) -> bool:
        """True if the first line of each file names its columns."""
        return self.said.get("header", "").lower() == "true"

    def _read(self, kind: str, paths: list[str]) -> DataFrame:
        patterns = [pattern(path) for path in paths]
        match self.format:
            case "pcap":
                return by_name(capture_rows(self.session, self.inlet, paths), self.inlet, OF_CAPTURES)
            case "json" if kind == PLAIN:
                return self._plain_json(patterns)
            case "json":
                return self._json(patterns)
            case "text":
                rows = self._reader("text").load(patterns)
                return with_columns(rows, self.inlet, self.payload, KEPT)
            case "csv" if not self.header:
                return self._declared(patterns)
            case "xml":
                return self._declared(patterns)
            case "csv":
                return self._csv(patterns, paths[0])
            case _:
                return self._named(self._reader().load(patterns), paths[0])

    def _reader(self, format: str | None = None) -> DataFrameReader:
        return self.session.read.format(format or self.format).options(**self.options)

    def _json(self, patterns: list[str]) -> DataFrame:
        whole = self.said.get("multiline", "").lower() == "true"
        lines = self._reader("text").option("wholetext", whole).load(patterns)
        encoding = self.said.get("encoding", self.said.get("charset", "UTF-8"))
        plain = encoding.upper() in ("UTF-8", "UTF8")
        text = Sql("value") if plain else f"DECODE(CAST(value AS BINARY), {literal(encoding)})"
        kept = [f"{expression} AS {name(column)}" for column, expression in KEPT.items()]
        texts = selected(lines, f"TRIM(LEADING {literal(MARK)} FROM {text}) AS value", *kept)
        records = selected(filtered(texts, Sql("TRIM(value) <> ''")), RECORDS, *map(name, KEPT))
        return decoded(records, self.inlet, "json", self.options, list(KEPT))

    def _plain_json(self, patterns: list[str]) -> DataFrame:
        """Rows as Spark reads them, all columns there; an unclear row is marked in `_raw`."""
        rows = self._permissive(self.inlet.stream.columns, patterns)
        marked = f"{unclear_sql(self.inlet, CORRUPT)} AS {CORRUPT}"
        kept = (
            Sql("INPUT_FILE_NAME() AS _file"),
            Sql("INPUT_FILE_BLOCK_START() AS _start"),
        )  # `_metadata` is copied to each row
        columns = map(name, self.inlet.stream.row_columns())
        return selected(rows, *columns, marked, f"CAST(NULL AS STRING) AS {ROW}", *kept)

    def _declared(self, patterns: list[str]) -> DataFrame:
        """Rows by the columns of the stream; those that do not fit them come as text."""
        return by_name(self._permissive(self.inlet.stream.columns, patterns), self.inlet, KEPT)

    def _csv(self, patterns: list[str], path: str) -> DataFrame:
        found = self._reader().option("inferSchema", "false").load(patterns[0]).columns
        header = [column.removeprefix(MARK).strip() for column in found]
        types = {column.name.lower(): column.type for column in self.inlet.stream.columns}
        columns = [Column(column, types.get(column.lower(), STRING)) for column in header]
        if not header:  # an empty file
            return self._declared(patterns)
        return self._named(self._permissive(columns, patterns), path)

    def _permissive(self, columns: Iterable[Column], patterns: list[str]) -> DataFrame:
        """Read by these columns; a row that does not fit them stands as text in `_raw`."""
        schema = ddl([*columns, Column(CORRUPT, STRING)])
        reader = self._reader().schema(schema).option("mode", "PERMISSIVE")
        return reader.option("columnNameOfCorruptRecord", CORRUPT).load(patterns)

    def _named(self, rows: DataFrame, path: str) -> DataFrame:
        known = [column for column in rows.columns if column != CORRUPT]
        there = {column.lower() for column in known}
        missing = [column.name for column in self.inlet.stream.columns if column.name.lower() not in there]
        if missing and self.said.get("mergeschema", "").lower() != "true":
            raise UserError(
                "no-such-column",
                f'column "{missing[0]}" of stream "{self.inlet.stream.name}" does not exist in file "{path}"',
                detail=f"Its columns are {quoted(known)}. It is not read.",
                hint=nearest(missing[0], known) or "'mergeSchema' = 'true' among the OPTIONS takes it as null.",
            )
        absent = [cast(column, Sql("NULL")) for column in self.inlet.stream.columns if column.name in missing]
        return by_name(selected(rows, ALL, *absent, Sql("_metadata")) if absent else rows, self.inlet, KEPT)


def _first_line(path: Path) -> str:
    """The first line of a local file that is not compressed; nothing if that is not the whole header."""
    if path.suffix in PACKED:
        return ""
    try:
        with path.open("rb") as file:
            line = file.readline(2**16)
    except OSError:
        return ""
    whole = line.endswith(b"\n") and line.count(b'"') % 2 == 0
    return line.decode("latin-1").strip() if whole else ""


def pattern(path: str) -> str:
    """A path as a pattern that matches this file and no other."""
    return re.sub(r"([{}\[\]*?\\])", r"\\\1", path)
