"""The body of a request as rows to push: JSON, one JSON value a line, or CSV.

    application/json        [{"k": "a", "v": 7}, ["b", 8]]
    application/x-ndjson    {"k": "a", "v": 7}
                            {"k": "b", "v": 8}
    text/csv                k,v
                            a,7
                            b,8

A row is an object or a list of all values. Of a stream without a timestamp column it has the timestamp in `_time`, of
such a relation also `+` or `-` in `_change`: as results are written; a list [timestamp, row] will do too. What has no
notation of its own in JSON is text: dates and timestamps in ISO 8601, decimals where digits matter, binary in base 64.
In CSV nothing is null.

A body that cannot be read is refused as a whole, with the place. A value that its column cannot take is another matter:
that is for the inlet to judge, so it goes on as it came.
"""

from __future__ import annotations

import base64
import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import Any

import pyarrow as pa

from headgate.catalog.entries import Relation, Stream
from headgate.errors import UserError, quoted
from headgate.server.limits import ROW_LETTERS
from headgate.server.reading_json import Values

SHOWN = 60
"""How many letters of a body an error quotes."""

LINES_AT_ONCE = 10_000
BLANKS = re.compile(r"[ \t\n\r]*")


class BadBody(UserError):
    """A body that is not what its content type says, with the line, the column and what stands there."""

    def __init__(self, message: str, line: int, column: int = 1, near: str = "", detail: str = "") -> None:
        super().__init__("bad-body", message, detail=detail, hint="Nothing of the body was taken.")
        self.where = {"line": line, "column": column, "near": near[:SHOWN]}


def rows(body: bytearray | bytes, kind: str, stream: Stream | Relation, schema: pa.Schema) -> Iterator[Any]:
    """The rows in a body of a content type, for `Engine.push`, one by one: all at once would take many times its size.

    What cannot be read is found on the way, so nothing may be taken before the last row.
    """
    if kind not in READERS:
        raise UserError(
            "bad-content-type",
            f'rows cannot be read from a body of type "{kind}"',
            detail=f"Types are {quoted(READERS)}.",
            hint="Set the header Content-Type.",
        )
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise BadBody("the body is not UTF-8", line, error.start - body.rfind(b"\n", 0, error.start)) from None
    columns = [name for name in schema.names if name in stream.row_columns()]
    kinds = {name.lower(): schema.field(name).type for name in columns}
    found = READERS[kind](text, kinds)
    if stream.timestamp is None and not (isinstance(stream, Stream) and stream.stamped != "external"):
        return (_beside(row, kinds, number, stream) for number, row in enumerate(found, 1))
    return (_typed(row, kinds) for row in found)


# notations


def _json(text: str, kinds: dict[str, pa.DataType]) -> Iterator[Any]:
    place = _next(text, 0)
    if text[place : place + 1] != "[":
        _parsed(text[:ROW_LETTERS], 1)
        raise BadBody(
            "the body is not a list of rows", 1, near=text[:SHOWN], detail="One row alone stands in brackets too."
        )
    place = _next(text, place + 1)
    more, values = text[place : place + 1] != "]", Values(text)
    while more:
        row, place = _decoded(values, place)
        yield row
        place = _next(text, place)
        more = text[place : place + 1] == ","
        if not more and text[place : place + 1] != "]":
            raise _no_json(json.JSONDecodeError("Expecting ',' delimiter", text, place), text, 1)
        place = _next(text, place + 1) if more else place
    end = _next(text, place + 1)
    if end != len(text):
        raise _no_json(json.JSONDecodeError("Extra data", text, end), text, 1)


def _lines(text: str, kinds: dict[str, pa.DataType]) -> Iterator[Any]:
    return (_parsed(line, number) for number, line in enumerate(_cut(text), 1) if line.strip())


def _cut(text: str) -> Iterator[str]:
    """The lines of a text, with their ends, one at a time."""
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin) + 1 or len(text)
        if end - begin > ROW_LETTERS:
            line = text.count("\n", 0, begin) + 1
            raise BadBody(f"the line has more than {ROW_LETTERS} letters", line, near=text[begin : begin + SHOWN])
        yield text[begin:end]
        begin = end


def _next(text: str, place: int) -> int:
    """Behind the blanks."""
    found = BLANKS.match(text, place)
    assert found is not None
    return found.end()


def _decoded(values: Values, place: int, line: int = 1) -> tuple[Any, int]:
    """The value that begins at a place, and where it ends."""
    try:
        return values.at(place)
    except json.JSONDecodeError as error:
        raise _no_json(error, values.text, line) from None
    except (ValueError, RecursionError) as error:
        near = values.text[place : place + SHOWN]
        line += values.text.count("\n", 0, place)
        raise BadBody("the body is not JSON that can be read", line, near=near, detail=str(error)[:SHOWN]) from None


def _parsed(text: str, line: int) -> Any:
    found, end = _decoded(Values(text), _next(text, 0), line)
    if (place := _next(text, end)) != len(text):
        raise _no_json(json.JSONDecodeError("Extra data", text, place), text, line)
    return found


def _no_json(error: json.JSONDecodeError, text: str, line: int) -> BadBody:
    near = text[error.pos : error.pos + SHOWN].rstrip("\n")
    return BadBody(f"the body is not JSON: {error.msg}", line + error.lineno - 1, error.colno, near)


def _csv(text: str, kinds: dict[str, pa.DataType]) -> Iterator[Any]:
    reader = csv.reader(_cut(text), strict=True)
    try:
        header = next(reader, [])
        if len({name.lower() for name in header}) < len(header) or not header:
            raise BadBody("the first line does not name the columns, each once", 1, near=text.partition("\n")[0])
        nested = [name for name in header if pa.types.is_nested(kinds.get(name.lower(), pa.string()))]
        if nested:
            raise BadBody(f"values of {quoted(nested)} have no notation in CSV", 1, detail="JSON has one.")
        while lines := [_fitting(line, len(header), reader.line_num) for line in islice(reader, LINES_AT_ONCE)]:
            columns = [
                _cast(texts, kinds.get(name.lower(), pa.string()))
                for name, texts in zip(header, zip(*filter(None, lines), strict=True), strict=False)
            ]
            yield from (dict(zip(header, values, strict=True)) for values in zip(*columns, strict=True))
    except csv.Error as error:
        raise BadBody(f"the body is not CSV: {error}", reader.line_num) from None


def _fitting(line: list[str], width: int, number: int) -> list[str]:
    if len(line) not in (0, width):
        detail = f"It has {len(line)}."
        raise BadBody(f"a line does not have {width} values", number, near=",".join(line), detail=detail)
    return line


def _cast(texts: Sequence[str], kind: pa.DataType) -> list[Any]:
    """A column of CSV; values that cannot be read stay text."""
    given = [text or None for text in texts]
    if pa.types.is_timestamp(kind) or pa.types.is_binary(kind):
        return given  # as in JSON
    try:
        return pa.array(given, pa.string()).cast(kind).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return given if len(given) == 1 else [value for text in texts for value in _cast([text], kind)]


READERS: dict[str, Callable[[str, dict[str, pa.DataType]], Iterator[Any]]] = {
    "application/json": _json,
    "application/x-ndjson": _lines,
    "text/csv": _csv,
}


# rows


def _beside(row: Any, kinds: dict[str, pa.DataType], number: int, stream: Stream | Relation) -> tuple[Any, ...]:
    """A row with its timestamp beside it, and its change if it has one."""
    if isinstance(row, dict) and "_time" in row:
        values = {name: given for name, given in row.items() if name not in ("_time", "_change")}
        change = [row["_change"]] if "_change" in row else []
        return _whole(row["_time"]), _typed(values, kinds), *change
    if isinstance(row, list) and len(row) in (2, 3) and isinstance(row[1], dict | list):
        return row[0], _typed(row[1], kinds), *row[2:]
    raise UserError(
        "bad-row",
        f'row {number} of stream "{stream.name}" has no timestamp',
        detail="The stream has no column for it.",
        hint='{"_time": 1, ...}',
    )


def _whole(time: Any) -> Any:
    """In CSV, a timestamp beside the row is text like everything else."""
    return int(time) if isinstance(time, str) and time.lstrip("-").isdecimal() else time


def _typed(row: Any, kinds: dict[str, pa.DataType]) -> Any:
    if isinstance(row, dict):
        return {name: _value(given, kinds.get(name.lower())) for name, given in row.items()}
    if isinstance(row, list) and len(row) == len(kinds):
        return [_value(given, kind) for given, kind in zip(row, kinds.values(), strict=True)]
    return row


def _value(given: Any, kind: pa.DataType | None) -> Any:
    """A value of JSON as its column takes it; as it is if the column cannot take it."""
    if given is None or kind is None:
        return given
    try:
        if pa.types.is_decimal(kind):
            return Decimal(given) if isinstance(given, str) else given
        if isinstance(given, Decimal):
            return float(given)
        if isinstance(given, str):
            if pa.types.is_date(kind):
                return date.fromisoformat(given)
            return base64.b64decode(given, validate=True) if pa.types.is_binary(kind) else given
        if pa.types.is_list(kind) and isinstance(given, list):
            return [_value(one, kind.value_type) for one in given]
        if pa.types.is_map(kind) and isinstance(given, dict):
            return [(_value(key, kind.key_type), _value(one, kind.item_type)) for key, one in given.items()]
        if pa.types.is_struct(kind) and isinstance(given, dict):
            inner = {field.name.lower(): field.type for field in kind}
            return {name: _value(one, inner.get(name.lower())) for name, one in given.items()}
    except (ValueError, InvalidOperation):
        pass
    return given
