"""Splits a text that is still being typed into words: keywords, strings, comments, and what is not closed yet.

The parser's own tokens are of no use here: it refuses a text with an open quote, and loading it would delay the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from headgate.sql import unquoted

KEYWORDS = frozenset(
    """ALL AND ANY AS ASC AVG BETWEEN BY CASE CAST CHANGE COUNT CREATE CROSS CUBE DESC DISORDER DISTINCT DSTREAM ELSE
    END EXCEPT EXISTS EXPLAIN FALSE FROM FULL FUNCTION GROUP GROUPING HAVING IN INNER INTERSECT INTO IS ISTREAM JOIN
    LEFT LIKE LIMIT MAX MIN NOT NOW NULL OF ON OPTIONS OR ORDER OUTER OVER PARTITION QUERY RANGE RELATION RETURN
    RETURNS RIGHT ROLLUP ROWS RSTREAM SELECT SET SETS SLIDE STREAM SUM THEN TIMEOUT TIMESTAMP TRUE UNBOUNDED UNION
    VIEW WHEN WHERE WITH""".split()
)

TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>--[^\n]*|/\*.*?\*/)
  | (?P<string>[rR](?:'[^']*'|"[^"]*")|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")
  | (?P<quoted>`(?:``|[^`])*`)
  | (?P<open>(?:[rR]?['"]|`|/\*).*)
  | (?P<number>\d+(?:\.\d+)?)
  | (?P<word>\w+)
  | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)


class Word(NamedTuple):
    """One word of the text, with its kind and its position."""

    kind: str
    """space, comment, string, quoted (in backquotes), open (a quote or comment not closed), number, word or mark."""

    text: str
    start: int

    @property
    def upper(self) -> str:
        """The word in upper case."""
        return self.text.upper()

    @property
    def blank(self) -> bool:
        """Whether it is white space or a comment."""
        return self.kind in ("space", "comment")

    @property
    def name(self) -> str:
        """The name in lower case and without backquotes, as the catalog keeps it."""
        return unquoted(self.text).lower()


def words(text: str, start: int = 0) -> Iterator[Word]:
    """Splits the text from `start` on into words, white space included; joined, they are the text again."""
    for found in TOKEN.finditer(text, start):
        yield Word(str(found.lastgroup), found.group(), found.start())
