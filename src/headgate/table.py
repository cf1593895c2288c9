"""Small tables for people: words in columns, as text for terminals and as HTML for notebooks.

Words come from data. In HTML all of them are escaped; in text no character of theirs can move the cursor. A word is cut
where it gets too long.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

MOST_LETTERS = 200
"""How long a word of data may get in a table."""

CELL = "text-align:left"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of words under their headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    below: str = ""
    """What is said of it, such as how many rows more there are."""

    def __str__(self) -> str:
        """The words in columns."""
        lines = [self.headings, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = (zip(line, widths, strict=True) for line in lines)
        shown = ["  ".join(f"{word:<{width}}" for word, width in line).rstrip() for line in padded]
        return "\n".join([*shown, *([self.below] if self.below else [])])

    def _repr_html_(self) -> str:
        head = "".join(f'<th style="{CELL}">{escape(word)}</th>' for word in self.headings)
        cells = ("".join(f'<td style="{CELL}">{escape(word)}</td>' for word in row) for row in self.rows)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        below = f"<div>{escape(self.below)}</div>" if self.below else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def word(value: Any) -> str:
    """Return a value of the data as a word in a table: one line, no longer than it may get."""
    text = "null" if value is None else str(value)
    return printable(text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…")


def printable(text: str) -> str:
    """Return a text without characters that would move the cursor or change a terminal; they become question marks."""
    return "".join("?" if unicodedata.category(one).startswith("C") else one for one in text)


def words(headings: Sequence[str], rows: Iterable[Sequence[Any]], below: str = "") -> Table:
    """Return a table of values of the data."""
    return Table(tuple(map(word, headings)), tuple(tuple(map(word, row)) for row in rows), below)


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with what is counted: 1 row, 2 rows, 2 queries."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def paragraphs(lines: Iterable[str]) -> str:
    """Return lines as HTML, the first of them in bold."""
    first, *others = map(escape, lines)
    return f"<div><b>{first}</b></div>" + "".join(f"<div>{line}</div>" for line in others)
