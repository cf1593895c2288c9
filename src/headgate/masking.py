"""What nobody is shown: the values of options that are secret, and passwords in addresses.

    INTO jdbc OPTIONS ('url' = 'jdbc:postgresql://ann:***@host/db?password=***', 'password' = '***')

Statements are kept as they were written, because an engine that starts again needs their words. Every text that is
shown goes through `masked`: those of queries, of plans, of errors with their place, of logs and of status files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MASK = "***"

WORDS = (
    "password|passwd|passphrase|pwd|secret|token|credential|authorization|sasl|jaas|cookie"
    "|api[._-]?key|access[._-]?key|private[._-]?key|account[._-]?key|key[._-]?password"
)
SECRET = re.compile(WORDS, re.IGNORECASE)
"""What the name of a secret option has in it."""

HEADER = "header."
PUBLIC_HEADERS = tuple(
    "accept connection content-length content-type host traceparent transfer-encoding user-agent".split()
)

SPARK = rf"(?i){WORDS}|^header\.|^url$"
"""For Spark: the options whose values it shows nowhere."""

TOKEN = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<text>'(?:[^'\\]|\\.|'')*(?:'|\Z|\\\Z)|"(?:[^"\\]|\\.|"")*(?:"|\Z|\\\Z))
    |`[^`]*(?:`|\Z)
    |(?P<word>[\w.$-]+)
    |.""",
    re.DOTALL | re.VERBOSE,
)
USER = re.compile(r"(?<=://)[^\s'\"/?#@]*:[^\s'\"/?#]*(?=@)|(?<=:thin:)[^\s'\"@]+(?=@)")
"""A user and a password in front of a host, in an address."""

PARAMETER = re.compile(rf"([?&;]\s*[\w.-]{{0,40}}(?:{WORDS})[\w.-]{{0,40}}=)([^\s&;'\"]+)", re.IGNORECASE)


class Hidden(NamedTuple):
    """A part of a text that is not shown, and what stands there instead."""

    start: int
    end: int
    instead: str


def is_secret(option: str) -> bool:
    """True if nobody is shown the value of an option of this name."""
    name = option.lower()
    if name.startswith(HEADER):
        return name.removeprefix(HEADER) not in PUBLIC_HEADERS
    return SECRET.search(name) is not None


def masked(text: str) -> str:
    """Return a text as it may be shown."""
    return at(text, 0, 0)[0]


def at(text: str, start: int, end: int) -> tuple[str, int, int]:
    """Return a text as it may be shown, with where a span of it stands then."""
    parts, done, places = [], 0, [start, end]
    for hidden in hidden_parts(text):
        parts += [text[done : hidden.start], hidden.instead]
        done = hidden.end
        grown = len(hidden.instead) - (hidden.end - hidden.start)
        for which, place in enumerate((start, end)):
            if place >= hidden.end:
                places[which] += grown
            elif place > hidden.start:
                places[which] += hidden.start + min(place - hidden.start, len(hidden.instead)) - place
    return "".join([*parts, text[done:]]), places[0], places[1]


def hidden_parts(text: str) -> list[Hidden]:
    """Return what of a text is not shown, in order; parts do not overlap."""
    found = list(_values(text)) if SECRET.search(text) or HEADER in text.lower() else []
    if "://" in text or ":thin:" in text:
        found += [Hidden(*user.span(), _user(user[0])) for user in USER.finditer(text)]
    if SECRET.search(text):
        found += [Hidden(*parameter.span(2), MASK) for parameter in PARAMETER.finditer(text)]
    apart: list[Hidden] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if not apart or one.start >= apart[-1].end:
            apart.append(one)
    return apart


def left(text: str) -> Hidden | None:
    """Return the first secret of a text that is masked already; None if none is.

    A text that was shown and comes back as a statement would have lost its secrets.
    """
    return next((one for one in hidden_parts(text) if text[one.start : one.end] == one.instead), None)


def _values(text: str) -> Iterator[Hidden]:
    """The values of secret options: 'name' = 'value', and where options stand also name = value."""
    before, name, equals = "", None, False
    for token in TOKEN.finditer(text):
        if token["blank"]:
            continue
        word = token[0]
        if equals and name is not None:
            if token["text"]:
                yield Hidden(*token.span(), f"{word[0]}{MASK}{word[0]}")
            elif token["word"] and name[0] in "'\"(,":
                yield Hidden(*token.span(), MASK)
            name, equals = None, False
        elif word == "=" and name is not None:
            equals = True
        elif token["text"]:
            name, equals = word if is_secret(word[1:-1]) else None, False
        elif token["word"]:
            secret = is_secret(word) and before.upper() != "SET"
            name, equals = (before if before in ("(", ",") else " ") + word if secret else None, False
        else:
            name, equals = None, False
        before = word


def _user(said: str) -> str:
    """A user stays, the password does not."""
    return f"{said.partition(':')[0]}:{MASK}" if ":" in said else MASK
