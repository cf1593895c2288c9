r"""Parses the commands of the shell, which begin with a backslash and are not CQL.

A line comes in, a command goes out, or an error with its place. A command may be abbreviated as long as no other begins
that way: `\q` is `\quit`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from headgate.errors import Place, UserError, unknown
from headgate.sql import unquoted

COMMANDS = {
    "help": ("", "this list"),
    "show": ("", "streams, relations, views and queries, with their columns and how far they are"),
    "explain": ("QUERY", "a running query with its defaults, its plan and the SQL of an epoch"),
    "push": ("STREAM [INSTANT] ROW", "give a stream a row in JSON; - before the row takes it out of a relation"),
    "advance": ("INSTANT", "nothing at or before the instant will still come: take every query there"),
    "pause": ("", "hold results back"),
    "resume": ("", "show results again, and those held back"),
    "quit": ("", "leave; also Ctrl-D"),
}
"""Every command with its arguments and its help text."""

BACKQUOTED = r"`(?:``|[^`])*`"
PUSH = re.compile(
    rf"(?P<stream>{BACKQUOTED}|[^\s{{\[]+)\s*(?:(?P<instant>[+-]?\d+)\s+)?(?:(?P<sign>[+-])\s*)?(?P<row>[{{\[].*)"
)


@dataclass(frozen=True, slots=True)
class Explain:
    r"""`\explain query`: show a running query's plan."""

    query: str


@dataclass(frozen=True, slots=True)
class Push:
    r"""`\push stream instant row`: give a stream or relation one row."""

    stream: str
    instant: int | None
    sign: str
    row: Any


@dataclass(frozen=True, slots=True)
class Advance:
    r"""`\advance instant`: declare the input complete up to an instant."""

    to: int | datetime


Plain: TypeAlias = Literal["help", "show", "pause", "resume", "quit"]
Command: TypeAlias = Plain | Explain | Push | Advance


def parsed_command(line: str, place: Place) -> Command:
    """Parses a line that begins with a backslash; `place` is where the line stands."""
    word = re.split(r"\s", line, maxsplit=1)[0]
    given = line[len(word) :].strip()
    match command_named(word[1:]):
        case "explain" if given:
            return Explain(given)
        case "push" if given:
            return parsed_push(line, given, place)
        case "advance" if given:
            return Advance(parsed_instant(line, given, place))
        case ("help" | "show" | "pause" | "resume" | "quit") as plain if not given:
            return plain
        case None:
            raise unknown("command", word, (f"\\{name}" for name in COMMANDS), place_within(place, line, word))
        case name:
            takes = COMMANDS[name][0]
            raise UserError(
                "bad-command", f"\\{name} takes {takes or 'nothing'}", place=place, hint=f"\\{name} {takes}".strip()
            )


def command_named(word: str) -> str | None:
    """The command with this name, or the only one that begins with it; None if there is no such command."""
    starting = [name for name in COMMANDS if word and name.startswith(word.lower())]
    return word.lower() if word.lower() in COMMANDS else starting[0] if len(starting) == 1 else None


def parsed_push(line: str, given: str, place: Place) -> Push:
    r"""Parses what stands behind `\push`: a stream, an instant if it needs one, a sign and a row in JSON."""
    found = PUSH.fullmatch(given)
    if found is None:
        raise UserError(
            "bad-command",
            r"\push takes a stream, an instant if it has no timestamp column, and a row",
            place=place,
            hint=r'\push bids 1 {"item": "vase", "price": 20}',
        )
    name = found["stream"]
    try:
        row = json.loads(found["row"])
    except ValueError as error:
        raise UserError(
            "bad-row", "the row is not JSON", place=place_within(place, line, found["row"]), detail=f"{error}."
        ) from None
    plain = unquoted(name)
    return Push(plain, int(found["instant"]) if found["instant"] else None, found["sign"] or "+", row)


def parsed_instant(line: str, given: str, place: Place) -> int | datetime:
    """Parses an instant: an integer or a timestamp."""
    if re.fullmatch(r"[+-]?\d+", given):
        return int(given)
    try:
        return datetime.fromisoformat(given.strip("'\""))
    except ValueError:
        raise UserError(
            "bad-instant",
            f'"{given}" is not an instant',
            place=place_within(place, line, given),
            hint="Write a number, or a timestamp as 2026-01-31 12:00:00.",
        ) from None


def place_within(place: Place, line: str, part: str) -> Place:
    """The place of a part of the line."""
    start = place.start + line.index(part)
    return Place(place.text, start, start + len(part), place.origin)


def summary() -> str:
    """The help text: all commands with their arguments."""
    lines = ["CQL statements end with ; and may take several lines. Queries run until you leave; Tab completes.", ""]
    lines += [f"  \\{f'{name} {takes}':<28} {does}" for name, (takes, does) in COMMANDS.items()]
    return "\n".join(lines)
