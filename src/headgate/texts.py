"""Texts that can be kept and sent: those without half a character.

Python's texts and JSON's can hold half of a pair of surrogates ("\\ud800"). It stands for no character, so UTF-8 cannot
write it: neither a file nor an answer could have it. It is refused where it would come in (`check`), and where one is
kept already, it is shown as it is written in JSON (`shown`).
"""

from __future__ import annotations

import json
from typing import Any

from headgate.errors import UserError


def well_formed(text: str) -> bool:
    """True if a text consists of whole characters."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check(text: Any, what: str) -> None:
    """Refuse a text with half a character in it; what is no text passes."""
    if isinstance(text, str) and not well_formed(text):
        raise bad_text(text, what)


def bad_text(text: str, what: str) -> UserError:
    """Return the error for a text with half a character in it."""
    place = next(place for place, letter in enumerate(text) if "\ud800" <= letter <= "\udfff")
    return UserError(
        "bad-text",
        f"{what} is not text: its character {place + 1} is {shown(text[place])}, half of a pair of surrogates",
        hint="Send text as UTF-8, and characters beyond U+FFFF in JSON as both halves, such as \\ud83d\\ude00.",
    )


def shown(text: str) -> str:
    """Return a text that UTF-8 can write."""
    return text if well_formed(text) else text.encode("utf-8", "backslashreplace").decode()


def to_json(value: Any) -> bytes:
    """Return a value as JSON on one line, whatever its texts consist of."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
