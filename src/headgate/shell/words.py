"""The words of a text that is still being typed: what is a keyword, a string, a comment, and what is not closed yet.

The parser's own tokens do not serve here: it refuses a text with an open quote, and loading it would delay the prompt.
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
    kind: str
    """space, comment, string, quoted (a name in backticks), open (a quote or comment that is not closed), number, word,
    mark.
    """

    text: str
    start: int

    @property
    def upper(self) -> str:
        return self.text.upper()

    @property
    def blank(self) -> bool:
        return self.kind in ("space", "comment")

    @property
    def name(self) -> str:
        """The name it spells, as the catalog keeps it."""
        return unquoted(self.text).lower()


def words(text: str, start: int = 0) -> Iterator[Word]:
    """All of the text from `start` on, cut into words; together they are the text again."""
    for found in TOKEN.finditer(text, start):
        yield Word(str(found.lastgroup), found.group(), found.start())
