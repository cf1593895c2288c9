"""CQL as it is written for a GSQL statement, with the place in the user's text that each piece comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from headgate.errors import Place
from headgate.gsql.syntax import Span

Piece: TypeAlias = "str | Written"


@dataclass(frozen=True, slots=True)
class Written:
    """A text of CQL, and for parts of it (by their first position and the one behind the last) the places they have
    in the GSQL text.
    """

    text: str
    places: tuple[tuple[int, int, Span], ...] = ()

    def __str__(self) -> str:
        return self.text

    def at(self, span: Span) -> Written:
        """Return this text with one place for all of it."""
        return Written(self.text, ((0, len(self.text), span), *self.places))

    def place(self, start: int, end: int) -> Span | None:
        """The place in the GSQL text of a part of this text: that of the smallest piece around it, or of the pieces
        that it overlaps.
        """
        around = [(last - first, span) for first, last, span in self.places if first <= start and end <= last]
        if around:
            return min(around)[1]
        within = [span for first, last, span in self.places if first < end and start < last]
        return (min(first for first, _ in within), max(last for _, last in within)) if within else None

    def placed(self, place: Place, text: str, whole: Span, origin: str) -> Place:
        """A place in this text as one in the GSQL text; the whole statement if it comes from nowhere in it."""
        start, end = self.place(place.start, place.end) or whole
        return Place(text, start, end, origin)


def written(*pieces: Piece) -> Written:
    """One text of several pieces."""
    text, places = "", []
    for piece in pieces:
        if isinstance(piece, Written):
            places += [(first + len(text), last + len(text), span) for first, last, span in piece.places]
        text += str(piece)
    return Written(text, tuple(places))


def listed(pieces: Iterable[Written], between: str = ", ") -> Written:
    """Pieces with something between them."""
    found: list[Piece] = []
    for piece in pieces:
        found += [between, piece] if found else [piece]
    return written(*found)
