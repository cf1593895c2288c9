"""Splits what was typed into entries: CQL statements, which end with `;`, and commands, which begin with a backslash.

CREATE STREAM bids (item STRING, price INT);     -- a statement; it may take several lines
\\push bids 1 {"item": "vase", "price": 20}       -- a command; it ends with its line
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from headgate.editing.words import words


@dataclass(frozen=True, slots=True)
class Entry:
    """A statement or a command as it was typed, with its line and the script it comes from."""

    text: str
    line: int = 0
    """How many lines are before it in its script."""

    origin: str = ""

    @property
    def is_command(self) -> bool:
        """Whether it is a command of the shell, not CQL."""
        return self.text.startswith("\\")

    def in_place(self) -> str:
        """The text, with as many empty lines before it as in the script, so that errors name the right line."""
        return "\n" * self.line + self.text


def split(text: str) -> tuple[list[Entry], str]:
    """Splits a text into its complete entries and the unfinished rest, which is empty if only blanks remain."""
    entries: list[Entry] = []
    first: int | None = None
    position = depth = 0
    while (word := next(words(text, position), None)) is not None:
        position = word.start + len(word.text)
        if first is None and word.text == "\\":  # quotes mean nothing in a command: its end is the end of its line
            end = text.find("\n", position)
            position = len(text) if end < 0 else end
            entries.append(Entry(text[word.start : position].rstrip("; \t\r"), text.count("\n", 0, word.start)))
        elif word.text == ";" and depth <= 0:
            if first is not None:
                entries.append(Entry(text[first:position], text.count("\n", 0, first)))
            first, depth = None, 0
        elif not word.blank:
            first = word.start if first is None else first
            depth += (word.text == "{") - (word.text == "}")  # a section of GSQL has a ; behind each line
    return entries, "" if first is None else text[first:]


def read(lines: Iterable[str], origin: str = "") -> Iterator[Entry]:
    """Reads the entries of a script, each as soon as its last line is there; the last one needs no `;`."""
    pending, before = "", 0
    for line in lines:
        pending += line
        entries, rest = split(pending)
        for entry in entries:
            yield replace(entry, line=before + entry.line, origin=origin)
        before += pending.count("\n") - rest.count("\n")
        pending = rest
    if pending:
        yield Entry(pending, before, origin)
