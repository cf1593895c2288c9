"""How far a log has been read in order of arrival.

A fragment that handles each tuple by itself need not wait until an instant is complete: it reads tuples as they come.
Two numbers say how far it is. The first `arrived` tuples of the log are read if they are stamped up to `upto`; those
of them that are stamped later still wait.

    arrived:        1  2  3  4  5  6  7  8        a position of (6, 10)
    timestamp:      8 12  9 10 14  7 11  3        read: 8 9 10 7   skipped so far: 12 14   new: 11 3
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from headgate.log.chunk import Chunk
from headgate.log.log import Chunks
from headgate.ticks import Tick


class Position(NamedTuple):
    """The first `arrived` tuples of a log have been read, as far as they are stamped up to `upto`."""

    arrived: int
    upto: Tick


@dataclass(frozen=True, slots=True)
class Unread:
    """The tuples of a log that a reader at a position has not read yet."""

    log: Chunks
    position: Position

    def skipped(self, upto: Tick) -> list[Chunk]:
        """Return chunks that were read in part, and that hold more tuples stamped up to `upto`."""
        position = self.position
        known = [chunk for chunk in self.log.chunks if chunk.arrived <= position.arrived]
        parted = [c for c in known if position.upto < c.high and c.low <= upto and position.upto < upto]
        return [chunk for chunk in parted if chunk.first_after(position.upto) <= upto]

    def new(self) -> list[Chunk]:
        """Return chunks that have arrived since."""
        return [chunk for chunk in self.log.chunks if chunk.arrived > self.position.arrived]

    def up_to(self, upto: Tick) -> list[Chunk]:
        """Return all chunks with unread tuples stamped up to `upto`."""
        return [*self.skipped(upto), *(chunk for chunk in self.new() if chunk.low <= upto)]

    def any(self, upto: Tick) -> bool:
        """Say whether there are unread tuples stamped up to `upto`."""
        return any(chunk.low <= upto for chunk in self.new()) or bool(self.skipped(upto))


def first_rows(chunks: list[Chunk], most: int) -> list[Chunk]:
    """Return the first chunks that together hold no more than `most` rows, but at least one chunk."""
    rows = list(accumulate(chunk.rows for chunk in chunks))
    return [chunk for chunk, total in zip(chunks, rows, strict=True) if total <= most] or chunks[:1]
