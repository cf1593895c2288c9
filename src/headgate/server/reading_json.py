"""JSON from outside, read so that it holds up nothing else: of a bounded length, not nested deep, and whole characters.

While Python reads one value it does nothing else in any thread, and the value takes up to fifty times the room of its
text. So a body of rows is read row by row, and one row has a bounded length.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from headgate.errors import UserError
from headgate.server.limits import NESTED, PART_LETTERS, ROW_LETTERS, ROW_PARTS
from headgate.texts import bad_text, well_formed

DECODER = json.JSONDecoder(parse_float=Decimal)
HALVES = re.compile(r"\\u[dD][89a-fA-F]")
"""Halves of characters: only those that are written so can stand alone in text that came as UTF-8."""


class TooLarge(ValueError):
    """A value that is longer than one may be, or has more in it."""


class Values:
    """Reads values out of a text, one after the other.

    A value is looked for in a short part of the text, and in longer ones as long as it does not end there.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.halves = HALVES.search(text) is not None
        self._begin = 0
        self._part = ""

    def at(self, place: int) -> tuple[Any, int]:
        """Return the value that begins at a place, and where it ends; errors are those of `json`, or `TooLarge`."""
        size = PART_LETTERS
        while (found := self._read(place, size)) is None:
            if size >= ROW_LETTERS:
                raise TooLarge(f"a value has more than {ROW_LETTERS} letters")
            size = min(4 * size, ROW_LETTERS)
            if sum(self.text.count(bracket, place, place + size) for bracket in "[{") > ROW_PARTS:
                raise TooLarge(f"a value has more than {ROW_PARTS} lists and objects")
        value, end = found
        nested = self.text.find("[", place + 1, end) >= 0 or self.text.find("{", place + 1, end) >= 0
        if nested or self.halves:
            check(value, self.halves)
        return found

    def _read(self, place: int, size: int) -> tuple[Any, int] | None:
        """Return the value that begins at a place and ends within so many letters, or a few more; None if there is
        none.
        """
        if min(place + size, len(self.text)) > self._begin + len(self._part):
            self._begin, self._part = place, self.text[place : place + (2 * size if size == PART_LETTERS else size)]
        part, cut = self._part, self._begin + len(self._part) < len(self.text)
        try:
            value, end = DECODER.raw_decode(part, place - self._begin)
        except json.JSONDecodeError as error:
            if cut and (error.msg.startswith("Unterminated") or error.pos >= len(part) - 16):
                return None
            raise json.JSONDecodeError(error.msg, self.text, self._begin + error.pos) from None
        return None if cut and end == len(part) else (value, self._begin + end)


def check(value: Any, halves: bool) -> None:
    """Raise an error if a value is nested too deep, or if texts in it have half a character; without `halves` in its
    text there are none.
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(NESTED):
        if halves:
            for one in level:
                check_texts(one)
        inner = (one for outer in level for one in (outer.values() if isinstance(outer, dict) else outer))
        level = [one for one in inner if isinstance(one, dict | list)]
        if not level:
            break
    else:
        raise ValueError(f"a value is nested more than {NESTED} deep")
    if isinstance(value, str) and halves:
        check_texts([value])


def check_texts(value: dict[str, Any] | list[Any]) -> None:
    """Raise an error if a key or text has half a character."""
    for text in [*value, *value.values()] if isinstance(value, dict) else value:
        if isinstance(text, str) and not well_formed(text):
            raise bad_text(text, "a key" if isinstance(value, dict) and text in value else "a value")


def members(body: bytes, what: UserError, *, needs: set[str], takes: set[str]) -> dict[str, Any]:
    """Return the members of an object, which has those it needs and no others than it takes; `what` is the error if it
    is anything else.
    """
    try:
        text = body.decode()
        said = json.loads(text)
        check(said, HALVES.search(text) is not None)
    except (ValueError, RecursionError):
        raise what from None
    if not isinstance(said, dict) or not needs <= set(said) <= takes:
        raise what
    return said
