"""The inlet of a stream: sorts what arrives into its log and its dead letters, and tells the heartbeats.

A tuple that is late, has no timestamp or cannot be read goes to the dead letters with the reason; nothing is dropped. The log
holds the stream's columns, `_t` (timestamp in ticks) and `_s` (order of arrival); the dead letters hold the same columns and

    _reason   late | no-timestamp | before-origin | malformed
    _behind   for a late tuple, by how many ticks
    _raw      the text that could not be read
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.catalog import Relation, Stream, Tick, TimeDomain
from headgate.errors import UserError, quoted
from headgate.heartbeat.generator import Heartbeats
from headgate.log.chunk import Chunk
from headgate.log.log import Log

REASONS = ("late", "no-timestamp", "before-origin", "malformed")


class Inlet:
    def __init__(self, stream: Stream | Relation, schema: pa.Schema, directory: Path, heartbeats: Heartbeats) -> None:
        self.stream = stream
        self.schema = schema
        self.heartbeats = heartbeats
        self.log = Log(directory / "streams" / stream.name.lower())
        self.dead = Log(directory / "dead" / stream.name.lower())
        self.counts: Counter[str] = Counter()
        self.arrivals = 0

    # rows pushed from Python

    def push(self, rows: Iterable[Any], now_us: int) -> int:
        """Take rows from memory; returns how many went to the log."""
        stamped = [self._signed(row) for row in rows]
        table, bad = self._table(stamped)
        limit = self.heartbeats.limit(self.stream.name)
        reasons = self._reasons(table.column("_t"), limit)
        good = pc.equal(reasons, "")
        accepted = table.filter(good)
        self.arrivals += len(stamped)
        refused = table.filter(pc.invert(good))
        if refused.num_rows or bad:
            self._bury(refused, reasons.filter(pc.invert(good)), bad, limit)
        return self.taken([chunk] if (chunk := self.log.append(accepted)) else [], now_us)

    def taken(self, chunks: Sequence[Chunk], now_us: int) -> int:
        """Chunks are in the log: the heartbeats learn of them."""
        self.heartbeats.heard(self.stream.name, now_us)
        if chunks:
            self.heartbeats.arrived(self.stream.name, max(chunk.high for chunk in chunks), now_us)
        return sum(chunk.rows for chunk in chunks)

    def _signed(self, row: Any) -> tuple[Any, Mapping[str, Any], int]:
        """A pushed row with its timestamp and whether it is put in (1) or, of a relation, taken out (-1)."""
        if isinstance(self.stream, Stream):
            return (*self._stamped(row), 1)
        if self.stream.timestamp is None and isinstance(row, Sequence) and len(row) == 3:
            return (*self._stamped(row[:2]), _sign(row[2]))
        timestamp, values = self._stamped(row)
        return timestamp, values, _sign(values.get(self.stream.change)) if self.stream.change else 1

    def _stamped(self, row: Any) -> tuple[Any, Mapping[str, Any]]:
        """The timestamp and the values of a pushed row."""
        if self.stream.timestamp is None:
            if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != 2:
                raise UserError(
                    "bad-row", f'stream "{self.stream.name}" has no timestamp column: push pairs of timestamp and row',
                    detail=f"Got {row!r}.", hint='push("s", [(1, {"a": 7})])',
                )  # fmt: skip
            return row[0], self._named(row[1])
        values = self._named(row)
        return values.get(self.stream.timestamp), values

    def _named(self, row: Any) -> Mapping[str, Any]:
        columns = self.stream.row_columns()
        if isinstance(row, Mapping):
            spelled = {column.lower(): column for column in columns}
            unknown = [key for key in row if str(key).lower() not in spelled]
            if unknown:
                raise UserError(
                    "bad-row", f'stream "{self.stream.name}" has no column {quoted(map(str, unknown))}',
                    detail=f"Columns are {quoted(columns)}.",
                )  # fmt: skip
            return {spelled[str(key).lower()]: value for key, value in row.items()}
        if isinstance(row, Sequence) and not isinstance(row, str) and len(row) == len(columns):
            return dict(zip(columns, row, strict=True))
        raise UserError(
            "bad-row",
            f'a row of stream "{self.stream.name}" must be a mapping or have {len(columns)} values',
            detail=f"Got {row!r}.",
        )

    def _table(self, stamped: list[tuple[Any, Mapping[str, Any], int]]) -> tuple[pa.Table, list[str]]:
        """The rows as a table; rows with a value of a wrong type are given back as text."""
        bad: list[str] = []
        try:
            return self._converted(stamped, self.arrivals), bad
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, TypeError, OverflowError):
            tables = []
            for position, entry in enumerate(stamped):
                try:
                    tables.append(self._converted([entry], self.arrivals + position))
                except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, TypeError, OverflowError):
                    bad.append(json.dumps([entry[0], dict(entry[1])], default=str))
            return (pa.concat_tables(tables) if tables else self.schema.empty_table()), bad

    def _converted(self, stamped: list[tuple[Any, Mapping[str, Any], int]], first: int) -> pa.Table:
        arrays = []
        for field in self.schema:
            if field.name == "_t":
                arrays.append(pa.array([self._tick(timestamp) for timestamp, _, _ in stamped], pa.int64()))
            elif field.name == "_s":
                arrays.append(pa.array(range(first, first + len(stamped)), pa.int64()))
            elif field.name == "_n":
                arrays.append(pa.array([sign for _, _, sign in stamped], pa.int64()))
            else:
                arrays.append(_array([values.get(field.name) for _, values, _ in stamped], field.type))
        return pa.table(arrays, schema=self.schema)

    def _tick(self, timestamp: Any) -> Tick | None:
        if timestamp is None:
            return None
        if self.stream.domain is not TimeDomain.TIMESTAMP:
            if isinstance(timestamp, bool) or not isinstance(timestamp, int):
                raise TypeError(f"{timestamp!r} is not an integer timestamp")
            return timestamp
        return ticks(timestamp)

    def _reasons(self, instants: pa.ChunkedArray, limit: Tick | None) -> pa.Array:
        missing = pc.is_null(instants)
        early = pc.fill_null(pc.less(instants, (self.stream.domain or TimeDomain.INTEGER).origin), False)
        late = pc.fill_null(pc.less_equal(instants, limit), False) if limit is not None else pc.less(missing, False)
        reasons = pc.if_else(missing, "no-timestamp", pc.if_else(early, "before-origin", pc.if_else(late, "late", "")))
        return reasons.combine_chunks() if isinstance(reasons, pa.ChunkedArray) else reasons

    def _bury(self, refused: pa.Table, reasons: pa.Array, bad: list[str], limit: Tick | None) -> None:
        behind = pc.if_else(
            pc.equal(reasons, "late"), pc.subtract(limit, refused.column("_t")) if limit is not None else None, None
        )
        table = refused.append_column("_reason", reasons.cast(pa.string()))
        table = table.append_column("_behind", pc.cast(behind, pa.int64()))
        table = table.append_column("_raw", pa.nulls(refused.num_rows, pa.string()))
        if bad:
            empty = [pa.nulls(len(bad), field.type) for field in self.schema]
            malformed = [*empty, pa.array(["malformed"] * len(bad)), pa.nulls(len(bad), pa.int64()), pa.array(bad)]
            table = pa.concat_tables([table, pa.table(malformed, names=table.schema.names).cast(table.schema)])
        self.bury([self._written(table)])

    def _written(self, table: pa.Table) -> Path:
        path = self.dead.directory / ".arriving.parquet"
        pq.write_table(table, path)
        return path

    def bury(self, files: list[Path]) -> None:
        """Take over files of dead letters and count them by reason."""
        for file in files:
            reasons = pq.read_table(file, columns=["_reason"]).column("_reason")
            for entry in pc.value_counts(reasons).to_pylist():
                self.counts[entry["values"]] += entry["counts"]
        self.dead.adopt_all(files)


PUT_IN = ("+", "1", "i", "+i", "insert", "u", "+u", "update", "upsert", "c", "r")
TAKEN_OUT = ("-", "-1", "d", "-d", "delete", "-u")
SIGNS = dict.fromkeys(PUT_IN, 1) | dict.fromkeys(TAKEN_OUT, -1)
"""How the change column of a relation may say that a row is put in or taken out."""


def _sign(change: Any) -> int:
    sign = SIGNS.get(str(change).lower())
    if sign is None:
        raise UserError("bad-row", f"{change!r} says neither that a row is put in nor that it is taken out", hint="Use + and -.")
    return sign


def ticks(timestamp: Any) -> Tick:
    """A point in time as microseconds since 1970; naive times are UTC."""
    if isinstance(timestamp, str):
        timestamp = datetime.fromisoformat(timestamp)
    if not isinstance(timestamp, datetime):
        raise TypeError(f"{timestamp!r} is not a point in time")
    aware = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
    delta = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array([None if value is None else ticks(value) for value in values], pa.int64()).cast(kind)
    if pa.types.is_integer(kind) and any(isinstance(value, bool | float) for value in values):
        raise TypeError("an integer column takes whole numbers")
    if pa.types.is_string(kind) and any(value is not None and not isinstance(value, str) for value in values):
        raise TypeError("a string column takes text")
    return pa.array(values, kind)
