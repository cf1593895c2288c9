"""Positions: where a reader of results is. The text names the results that it is a position of.

    5f3a09c1e2b44d0f-57     behind the 57th of these results

A query that was altered, or dropped and created again, has other results. A position of the old ones is refused, and
never taken for one of the new.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headgate.errors import UserError
from headgate.server.served import ServedQuery

LETTERS = 16
WRITTEN = re.compile(r"([0-9a-f]{16})-(\d{1,18})")


@dataclass(frozen=True, slots=True)
class Position:
    """Behind so many results of one edition."""

    edition: str
    count: int

    def __str__(self) -> str:
        return f"{self.edition}-{self.count}"


def edition_of(query: ServedQuery) -> str:
    """Return what names the results of a query in a position."""
    return query.edition[:LETTERS]


def position_in(query: ServedQuery, said: str | None) -> Position:
    """Read where to go on: a position, "end" for behind what is there now, or nothing for the beginning."""
    edition = edition_of(query)
    match said:
        case None | "" | "beginning":
            return Position(edition, 0)
        case "end":
            return Position(edition, query.last_position)
    found = WRITTEN.fullmatch(said)
    if found is None:
        raise UserError(
            "bad-position",
            "this is no position of results",
            hint='after=POSITION of an answer before, "beginning" or "end"',
        )
    if found[1] != edition or int(found[2]) > query.last_position:
        raise changed(query.name)
    return Position(edition, int(found[2]))


def changed(query: str) -> UserError:
    """Return the error for a position of results that are no longer there."""
    return UserError(
        "results-changed",
        f'query "{query}" has other results now',
        detail="It was altered, or dropped and created again, and positions count from the beginning of its results.",
        hint="Begin anew, without a position.",
    )
