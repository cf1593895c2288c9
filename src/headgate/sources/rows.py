"""Rows pushed from Python, as the table that a log keeps.

In come mappings or sequences of values, with a timestamp beside them where the stream has no column for it. Out comes
one table with the log's columns, and the rows that have a value of a wrong type as text, each with its place in the
order of arrival. Streams that are stamped on entry get their timestamps later: here they have none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from headgate.catalog.entries import Relation, Stream
from headgate.errors import UserError, quoted
from headgate.sources.letters import Unread
from headgate.texts import bad_text
from headgate.ticks import Tick, TimeDomain

Signed: TypeAlias = tuple[Any, Mapping[str, Any], int]
"""The timestamp and the values of a row, and whether it is put in (1) or, of a relation, taken out (-1)."""

ROWS_AT_ONCE = 10_000
"""So many rows are Python objects at a time."""

WRONG_TYPE = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, TypeError, OverflowError)

PUT_IN = ("+", "1", "i", "+i", "insert", "u", "+u", "update", "upsert", "c", "r")
TAKEN_OUT = ("-", "-1", "d", "-d", "delete", "-u")
SIGNS = dict.fromkeys(PUT_IN, 1) | dict.fromkeys(TAKEN_OUT, -1)
"""How the change column of a relation may say that a row is put in or taken out."""


@dataclass(frozen=True, slots=True)
class Read:
    """Rows as a table, and those that are none, numbered from 0 on."""

    table: pa.Table
    unread: Unread

    @property
    def count(self) -> int:
        """How many rows there are, with those that are none."""
        return self.table.num_rows + len(self.unread)

    def numbered(self, first: int) -> tuple[pa.Table, Unread]:
        """The rows with places in the order of arrival from `first` on."""
        place = self.table.schema.get_field_index("_s")
        shifted = pc.add(self.table["_s"], pa.scalar(first, pa.int64()))
        return self.table.set_column(place, self.table.schema.field(place), shifted), [
            (first + at, text) for at, text in self.unread
        ]


class Rows:
    """Turns rows from Python into tables for the log of one stream or relation."""

    def __init__(self, stream: Stream | Relation, schema: pa.Schema) -> None:
        self.stream = stream
        self.schema = schema
        self.columns = stream.row_columns()
        self._spelled = {column.lower(): column for column in self.columns}

    def table(self, rows: Iterable[Any] | Read, first: int) -> tuple[pa.Table, Unread]:
        """The rows as a table, and those that could not be converted. The first row is number `first` in the order of
        arrival.
        """
        if isinstance(rows, Read):
            return rows.numbered(first)
        tables, unread, place, left = [self.schema.empty_table()], list[tuple[int, str]](), first, iter(rows)
        while signed := [self._signed(row) for row in islice(left, ROWS_AT_ONCE)]:
            try:
                tables.append(self._converted(signed, place))
            except WRONG_TYPE:
                table, bad = self._one_by_one(signed, place)
                tables.append(table)
                unread += bad
            place += len(signed)
        return pa.concat_tables(tables), unread

    def read(self, rows: Iterable[Any]) -> Read:
        """The rows as they are known before their place in the order of arrival is: to be pushed as soon as it is."""
        return Read(*self.table(rows, 0))

    def _one_by_one(self, signed: list[Signed], first: int) -> tuple[pa.Table, Unread]:
        tables, unread = [self.schema.empty_table()], []
        for place, row in enumerate(signed, first):
            try:
                tables.append(self._converted([row], place))
            except UnicodeEncodeError as error:
                raise bad_text(error.object, f'a value of a row of "{self.stream.name}"') from None
            except WRONG_TYPE:
                unread.append((place, json.dumps([row[0], dict(row[1])], default=str)))
        return pa.concat_tables(tables), unread

    def _signed(self, row: Any) -> Signed:
        if isinstance(self.stream, Stream):
            return (*self._stamped(row), 1)
        if self.stream.timestamp is None and isinstance(row, Sequence) and len(row) == 3:
            return (*self._stamped(row[:2]), sign(row[2]))
        timestamp, values = self._stamped(row)
        return timestamp, values, sign(values.get(self.stream.change)) if self.stream.change else 1

    def _stamped(self, row: Any) -> tuple[Any, Mapping[str, Any]]:
        """The timestamp and the values of a row."""
        if isinstance(self.stream, Stream) and self.stream.stamped != "external":
            return None, self._named(row)
        if self.stream.timestamp is None:
            if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != 2:
                raise UserError(
                    "bad-row",
                    f'stream "{self.stream.name}" has no timestamp column: push pairs of timestamp and row',
                    detail=f"Got {row!r}.",
                    hint='push("s", [(1, {"a": 7})])',
                )
            return row[0], self._named(row[1])
        values = self._named(row)
        return values.get(self.stream.timestamp), values

    def _named(self, row: Any) -> Mapping[str, Any]:
        columns, spelled = self.columns, self._spelled
        if isinstance(row, Mapping):
            unknown = [key for key in row if str(key).lower() not in spelled]
            if unknown:
                raise UserError(
                    "bad-row",
                    f'stream "{self.stream.name}" has no column {quoted(map(str, unknown))}',
                    detail=f"Columns are {quoted(columns)}.",
                )
            return {spelled[str(key).lower()]: value for key, value in row.items()}
        if isinstance(row, Sequence) and not isinstance(row, str) and len(row) == len(columns):
            return dict(zip(columns, row, strict=True))
        raise UserError(
            "bad-row",
            f'a row of stream "{self.stream.name}" must be a mapping or have {len(columns)} values',
            detail=f"Got {row!r}.",
        )

    def _converted(self, signed: list[Signed], first: int) -> pa.Table:
        instants = pa.array([self._tick(timestamp) for timestamp, _, _ in signed], pa.int64())
        given = not isinstance(self.stream, Stream) or self.stream.stamped == "external"
        own = self.stream.timestamp if given and self.stream.domain is TimeDomain.TIMESTAMP else None
        arrays = []
        for field in self.schema:
            if field.name == "_t":
                arrays.append(instants)
            elif field.name == own and pa.types.is_timestamp(field.type) and field.type.unit == "us":
                arrays.append(instants.cast(field.type))
            elif field.name == "_s":
                arrays.append(pa.array(range(first, first + len(signed)), pa.int64()))
            elif field.name == "_n":
                arrays.append(pa.array([sign for _, _, sign in signed], pa.int64()))
            else:
                arrays.append(_array([values.get(field.name) for _, values, _ in signed], field.type))
        return pa.table(arrays, schema=self.schema)

    def _tick(self, timestamp: Any) -> Tick | None:
        if timestamp is None:
            return None
        if self.stream.domain is not TimeDomain.TIMESTAMP:
            if isinstance(timestamp, bool) or not isinstance(timestamp, int):
                raise TypeError(f"{timestamp!r} is not an integer timestamp")
            return timestamp
        return ticks(timestamp)


def sign(change: Any) -> int:
    """1 for a change that puts a row in, -1 for one that takes it out; an error for any other word."""
    found = SIGNS.get(str(change).lower())
    if found is None:
        raise UserError(
            "bad-row", f"{change!r} says neither that a row is put in nor that it is taken out", hint="Use + and -."
        )
    return found


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
