"""Splits GSQL into tokens, and a script into statements: `;` inside braces belongs to the statement around it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.errors import Place, UserError

Kind: TypeAlias = Literal["name", "string", "number", "mark", "end"]

TOKEN = re.compile(
    r"""
    (?P<blank>\s+|--[^\n]*|//[^\n]*|/\*.*?\*/)
  | (?P<string>'(?:''|[^'])*')
  | (?P<quoted>"[^"\n]*"|`[^`\n]*`)
  | (?P<number>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+[lL]?)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<mark><<|>>|<>|<=|>=|!=|[-+*/%&|~!$#@=<>(){}\[\],;.:])
    """,
    re.VERBOSE | re.DOTALL,
)

SPLIT = re.compile(
    r"""
    (?P<blank>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<quoted>[rR]?'(?:\\.|''|[^'\\])*'|[rR]?"(?:\\.|[^"\\])*"|`[^`]*`)
  | (?P<other>[^\s;{}'"`/-]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)


LONGEST_NUMBER = 30
"""So many letters may a number have."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token with its place in the text."""

    kind: Kind
    text: str
    """A name without its quotes, a string without them and with each quote in it once, anything else as written."""

    start: int
    end: int

    @property
    def upper(self) -> str:
        """The word in upper case; nothing for a string."""
        return "" if self.kind == "string" else self.text.upper()


def tokens(text: str, start: int, end: int, origin: str = "") -> list[Token]:
    """The tokens of a statement, with one of kind `end` behind the last."""
    found: list[Token] = []
    position = start
    while position < end:
        match = TOKEN.match(text, position, end)
        if match is None:
            raise _strange(text, position, origin)
        position = match.end()
        written = match.group()
        match match.lastgroup:
            case "string":
                found.append(Token("string", written[1:-1].replace("''", "'"), match.start(), position))
            case "quoted":
                found.append(Token("name", written[1:-1], match.start(), position))
            case "number":
                if len(written) > LONGEST_NUMBER:
                    place = Place(text, match.start(), position, origin)
                    raise UserError("too-large", f"a number may have {LONGEST_NUMBER} digits", place=place)
                found.append(Token("number", written.rstrip("lL"), match.start(), position))
            case "name":
                found.append(Token("name", written, match.start(), position))
            case "mark":
                found.append(Token("mark", written, match.start(), position))
    last = found[-1].end if found else end
    return [*found, Token("end", "", last, last)]


def first_words(text: str, start: int, end: int, count: int) -> list[str]:
    """The first words and marks of a statement in upper case, as far as it has any."""
    found: list[str] = []
    position = start
    while position < end and len(found) < count:
        match = TOKEN.match(text, position, end)
        if match is None:
            break
        position = match.end()
        if match.lastgroup != "blank":
            found.append(match.group().upper())
    return found


def _strange(text: str, position: int, origin: str) -> UserError:
    place = Place(text, position, position + 1, origin)
    if text[position] in "'\"`" or text.startswith("/*", position):
        return UserError("syntax", "a quote or comment is not closed", place=place)
    return UserError("syntax", f'unexpected "{text[position]}"', place=place)


def spans(text: str) -> Iterator[tuple[int, int]]:
    """The statements of a script that may hold GSQL and CQL, by their first and last positions, without the `;`.

    A PROTOCOL ends with its brace and needs no `;`.
    """
    depth, first, last = 0, None, 0
    for found in SPLIT.finditer(text):
        written = found.group()
        if found.lastgroup == "blank":
            continue
        depth += (written == "{") - (written == "}")
        if written == ";" and depth <= 0:
            if first is not None:
                yield first, last
            depth, first = 0, None
            continue
        first = found.start() if first is None else first
        last = found.end()
        if written == "}" and depth == 0 and text[first : first + len("PROTOCOL")].upper() == "PROTOCOL":
            yield first, last
            first = None
    if first is not None:
        yield first, last
