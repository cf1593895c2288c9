"""Small files that are read without a Spark job: lines of JSON, CSV with a header, and Parquet.

A job takes longer than all the work on a few small files. So these are read by PyArrow, if the rows are then the ones
that Spark's reader would give, to the last bit. That is so for plain rows of plain types, and nearly all rows are
plain. It is looked for everything that the two read differently: escapes, control characters, keys that are spelled
otherwise or stand twice, numbers that do not fit, instants that are written in another way than ISO's. If any of it is
in one of the files, all of them are read by Spark, which also says what is wrong with them (see `reading`). So answers,
dead letters and errors are the same, and a test compares both ways on such input.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from headgate.catalog.entries import Connector, Relation, Stream
from headgate.heartbeat.arrivals import NEVER
from headgate.plan.needs import Need
from headgate.sources.as_they_are import AsTheyAre, local
from headgate.sources.inlet import Inlet
from headgate.sources.judged_batch import SPELLED_ALIKE
from headgate.sources.letters import letters
from headgate.sources.low_part import narrowed, without_unneeded
from headgate.sources.plain_json import PACKED
from headgate.sources.verdict import (
    CHECK_FAILED,
    TUPLE,
    UNNEEDED,
    UNTIMELY,
    Limits,
    promises,
    sends_heartbeats,
    verdicts,
)

MOST_BYTES = 2**20
"""Files that are larger together are read by a job."""

MOST_FILES = 64

WHOLE_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
PLAIN_TYPES = {*WHOLE_NUMBERS, "BOOLEAN", "DOUBLE", "STRING", "TIMESTAMP", "DATE"}

HARMLESS = {"path", "pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter"}
"""Options of Spark's readers that do not change what the rows of a file are."""

ODD_BYTES = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f\\]|\d{300}|-0(?![.\d]*[1-9])")
"""What Spark and PyArrow may read differently: escapes, control characters, endless numbers, a zero below zero."""

INSTANT = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|\+00:00)?$"
DAY = r"^\d{4}-\d{2}-\d{2}$"
WHOLE = r"^-?\d{1,19}$"
REAL = r"^-?\d{1,300}(\.\d{1,300})?([eE][-+]?\d{1,2})?$"
TRUTH = r"^(true|false)$"
"""How values in text are written that both read alike."""


class Unusual(Exception):
    """A file has something in it that Spark has to read."""


class SmallFiles:
    """Reads small files of one stream, as a table with the columns of its log."""

    def __init__(self, inlet: Inlet, connector: Connector, as_they_are: AsTheyAre) -> None:
        self.inlet = inlet
        self.format = connector.format
        self.as_they_are = as_they_are
        said = {key.lower(): value.lower() for key, value in connector.options.items()}
        header = said.pop("header", None)
        plain = {"json": header is None, "csv": header == "true", "parquet": as_they_are.wanted}
        self.wanted = plain.get(self.format, False) and connector.payload is None and said.keys() <= HARMLESS
        """Whether files of this format and with these options can be read here at all."""

    def rows(self, places: Mapping[str, int]) -> list[pa.Table] | None:
        """The rows of each file, given the order of arrival of its first row; None if Spark has to read them."""
        stream = self.inlet.stream
        if not self.wanted or not isinstance(stream, Stream) or not self._plain(stream):
            return None
        paths = {file: path for file in places if (path := local(file)) is not None and path.suffix not in PACKED}
        if not 0 < len(paths) <= MOST_FILES or len(paths) < len(places):
            return None
        try:
            if sum(path.stat().st_size for path in paths.values()) > MOST_BYTES:
                return None
            return [self._stamped(self._read(path), places[file]) for file, path in paths.items()]
        except (OSError, pa.ArrowException, UnicodeDecodeError, Unusual):
            return None

    def _plain(self, stream: Stream) -> bool:
        """True if rows are stamped by their source, and have columns of plain types only."""
        types = {column.name: column.type.upper() for column in stream.columns}
        spelled = stream.source is None or types[stream.source] in SPELLED_ALIKE
        plain = stream.stamped == "external" and stream.timestamp is not None and PLAIN_TYPES.issuperset(types.values())
        return plain and spelled and len({name.lower() for name in types}) == len(types)

    def _read(self, path: Path) -> pa.Table:
        """The rows of a file, with the declared columns."""
        match self.format:
            case "json":
                return self._json(path.read_bytes())
            case "csv":
                return self._csv(path.read_bytes())
            case _:
                if self.as_they_are.footer(path) is None:
                    raise Unusual
                return pq.read_table(path, partitioning=None)

    def _stamped(self, rows: pa.Table, place: int) -> pa.Table:
        """Rows with their timestamps in ticks and their order of arrival, as the log has them."""
        schema, timestamp = self.inlet.rows.schema, self.inlet.stream.timestamp
        assert timestamp is not None
        if rows[timestamp].null_count:
            raise Unusual  # a dead letter, with the row as text
        known = {name: rows[name] for name in rows.column_names}
        known["_t"] = rows[timestamp].cast(pa.int64())
        known["_s"] = pa.array(np.arange(place, place + rows.num_rows, dtype=np.int64))
        return pa.table([known[field.name].cast(field.type) for field in schema], schema=schema)

    # lines of JSON

    def _json(self, content: bytes) -> pa.Table:
        lines = [line for raw in _text(content).split("\n") if (line := raw.strip(" "))]
        if any(line[0] != "{" or line[-1] != "}" for line in lines):
            raise Unusual
        types = self._types()
        if not lines:
            return pa.schema(types.items()).empty_table()
        asked = pa.schema([(name, pa.string() if _is_written(type) else type) for name, type in types.items()])
        options = pa_json.ParseOptions(explicit_schema=asked, unexpected_field_behavior="ignore")
        rows = pa_json.read_json(pa.BufferReader(content), parse_options=options)
        if rows.num_rows != len(lines):
            raise Unusual
        for name in types:
            _check_key(name, content, rows.num_rows, rows[name].null_count)
        return pa.table([_from_text(rows[name], type) for name, type in types.items()], names=list(types))

    # CSV with a header

    def _csv(self, content: bytes) -> pa.Table:
        content = content.removesuffix(b"\n")
        header, *lines = _text(content).split("\n")
        names, types = header.split(","), self._types()
        spelled = {name.lower(): name for name in names}
        commas = len(names) - 1
        odd = '"' in header or " " in header or "" in spelled or len(spelled) < len(names)
        if odd or not lines or any(line.count(",") != commas for line in lines) or b'"' in content:
            raise Unusual
        if not spelled.keys() >= {name.lower() for name in types} or re.search(rb"(^|,) *(,|$)", content, re.MULTILINE):
            raise Unusual  # a column is missing, or a value
        rows = pa_csv.read_csv(
            pa.BufferReader(content),
            parse_options=pa_csv.ParseOptions(quote_char=False, double_quote=False),
            convert_options=pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )
        if rows.num_rows != len(lines):
            raise Unusual
        columns = [_from_text(rows[spelled[name.lower()]], type) for name, type in types.items()]
        return pa.table(columns, names=list(types))

    def _types(self) -> dict[str, pa.DataType]:
        """The declared columns with their types."""
        own = set(self.inlet.stream.row_columns())
        return {field.name: field.type for field in self.inlet.rows.schema if field.name in own}


def by_verdict(
    files: Sequence[pa.Table], inlet: Inlet, limits: Limits, low: Need | None = None
) -> dict[str, list[pa.Table]] | None:
    """The rows as the log or the dead letters keep them, by folders for the verdicts; None if Spark has to judge them.

    What goes to the dead letters as text, and heartbeats that are no tuples, are left to Spark. Files stay apart: one
    that is behind those before it shows how far out of order they come. `low` says what the log has to keep.
    """
    judged: dict[str, list[pa.Table]] = {}
    for rows in files:
        found = judged_rows(rows, inlet.stream, inlet.dead_schema, limits, low)
        if found is None:
            return None
        for kind, some in found.items():
            judged.setdefault(f"_verdict={kind}", []).append(some)
    return judged


def judged_rows(
    rows: pa.Table, stream: Stream | Relation, dead_schema: pa.Schema, limits: Limits, low: Need | None
) -> dict[str, pa.Table] | None:
    """The rows of one file by verdict; None if Spark has to judge them. Needed tuples and others always come in pairs,
    so that their files have the same number.
    """
    found = verdicts(stream, rows, limits)
    kinds = set(np.unique(found).tolist())
    if not kinds <= {TUPLE, CHECK_FAILED, *UNTIMELY}:
        return None
    carried: pa.Array | None = None
    if sends_heartbeats(stream):
        upto = promises(stream, rows)
        carried = pa.array(upto, pa.int64(), mask=upto == NEVER)
    judged = {}
    found = without_unneeded(low, rows, found)
    for kind in sorted({*kinds, *([] if low is None else [TUPLE, UNNEEDED])}):
        mine = found == kind
        some = rows.filter(pa.array(mine))
        if kind in (TUPLE, UNNEEDED):
            some = narrowed(low, some, stream.row_columns())
        else:
            some = letters(stream, dead_schema, some, found[mine], limits)
        judged[kind] = some if carried is None else some.append_column("_upto", carried.filter(mine))
    return judged


def _text(content: bytes) -> str:
    """The text of a file, if it is plain."""
    if ODD_BYTES.search(content) or content.startswith(b"\xef\xbb\xbf"):
        raise Unusual
    return content.decode("utf-8")


def _check_key(name: str, content: bytes, rows: int, nulls: int) -> None:
    """Refuse a file in which a key stands twice in an object, or is spelled in another case than its column."""
    key = re.escape(f'"{name}"'.encode()) + rb" *:"
    exact = len(re.findall(key, content))
    missing = nulls - len(re.findall(key + rb" *null", content)) if nulls else 0
    if exact != rows - missing or (missing and len(re.findall(key.lower(), content.lower())) != exact):
        raise Unusual


def _is_written(type: pa.DataType) -> bool:
    """True if JSON has no value of a type, and text stands for it."""
    return pa.types.is_timestamp(type) or pa.types.is_date(type)


def _from_text(values: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    """Values of a type from how they are written, where they are text."""
    if values.type == type and not pa.types.is_floating(type):
        return values
    if values.type == type:
        if not pc.all(pc.is_finite(values), min_count=0).as_py():
            raise Unusual
        return values
    if pa.types.is_timestamp(type):
        _check(values, INSTANT)
        return (
            pc.replace_substring_regex(values, r"(Z|\+00:00)$", "").cast(pa.timestamp("us")).cast(pa.int64()).cast(type)
        )
    if pa.types.is_date(type):
        return _check(values, DAY).cast(type)
    if pa.types.is_boolean(type):
        return _check(values, TRUTH).cast(type)
    if pa.types.is_integer(type):
        return _check(values, WHOLE).cast(pa.int64()).cast(type)
    return _from_text(_check(values, REAL).cast(type), type)


def _check(values: pa.ChunkedArray, written: str) -> pa.ChunkedArray:
    """The values, if all of them are written like this."""
    if not pc.all(pc.match_substring_regex(values, written), min_count=0).as_py():
        raise Unusual
    return values
