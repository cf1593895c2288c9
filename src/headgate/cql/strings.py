"""String literals as Spark reads them: doubled quotes, escapes with a backslash, raw strings.

sqlglot finds where a literal begins and ends; what it says is decoded here, by the rules of Spark's own parser. So a
literal means the same to headgate, to the reference evaluator and to Spark.

    'it''s'   it's        'a\\tb'   a, tab, b        r'a\\tb'   a, backslash, t, b        '\\u00e9'   é
"""

from __future__ import annotations

import re

from sqlglot.tokens import Token, TokenType

_BACKSLASH = r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))"
ESCAPES = {quote: re.compile(f"({quote}{quote})|{_BACKSLASH}", re.DOTALL) for quote in "'\""}
"""Escapes by the quotes around a literal: only the same quote, doubled, stands for itself."""

SINGLE = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": r"\%", "_": r"\_"}
"""Characters that mean something else behind a backslash; LIKE keeps the backslash before % and _."""


def with_strings(tokens: list[Token], text: str) -> list[Token]:
    """Decodes the string literals among tokens: each becomes one token that holds its value."""
    result: list[Token] = []
    for token in tokens:
        token.comments = []  # they would be written into the SQL that Spark gets
        # behind some words sqlglot takes the whole rest of a statement for a string
        quoted = text[token.start : token.start + 1] in ("'", '"', "r", "R")
        if token.token_type not in (TokenType.STRING, TokenType.RAW_STRING) or not quoted:
            result.append(token)
            continue
        start, before = token.start, result[-1] if result else None
        if before is not None and before.token_type == TokenType.STRING and _continues(before, token, text):
            result.pop()
            start = before.start
        merged = Token(
            TokenType.STRING, string_value(text[start : token.end + 1]), token.line, token.col, start, token.end
        )
        result.append(merged)
    return result


def _continues(before: Token, token: Token, text: str) -> bool:
    """Whether a literal goes on with a doubled quote: nothing lies between the two, and both have the same quotes."""
    return before.end + 1 == token.start and text[before.start] == text[token.start]


def string_value(literal: str) -> str:
    """The value of a string literal: without its quotes, with its escapes decoded."""
    if literal[0] in "rR":
        return literal[2:-1]
    decoded = ESCAPES[literal[0]].sub(_escaped_character, literal[1:-1])
    # two halves of a character, each an escape of its own, become one character
    return decoded.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _escaped_character(escape: re.Match[str]) -> str:
    doubled, four, eight, octal, single = escape.groups()
    if doubled:
        return doubled[0]
    if four or eight:
        return chr(int(four or eight, 16))
    return chr(int(octal, 8)) if octal else SINGLE.get(single, single)
