"""How much an engine holds back: rows and bytes in logs that no epoch has taken yet, and what queries keep between
epochs.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.engine import Engine


@dataclass(frozen=True, slots=True)
class Held:
    rows: int = 0
    bytes: int = 0
    """As they are on disk: compressed Parquet."""

    def __add__(self, other: Held) -> Held:
        return Held(self.rows + other.rows, self.bytes + other.bytes)

    def larger(self, other: Held) -> Held:
        return Held(max(self.rows, other.rows), max(self.bytes, other.bytes))


def held(engine: Engine, slide: int = 1) -> Held:
    """The tuples that no result tells of yet, what fragments have put out and nobody has taken, and what they keep in
    synopses.

    Results come out at the multiples of `slide`: a stream's tuples behind the last one that was reached still wait. Not
    counted: tuples that are only kept because a window looks back at them, and results that are out."""
    total = Held()
    for query in engine.queries():
        for fragment in query.fragments:
            streams = fragment.program.streams()
            for name in fragment.program.logs():
                taken = fragment.after if slide == 1 or name not in streams else fragment.after // slide * slide - 1
                for chunk in fragment.inputs.logs[name].overlapping(taken, None):
                    rows = chunk.rows if chunk.low > taken else chunk.rows_after(taken)
                    total += Held(rows, round(chunk.size * rows / chunk.rows))
            sizes = [chunk.size for chunks in fragment.synopses.files.values() for chunk in chunks]
            total += Held(fragment.synopses.rows, sum(sizes))
    return total


class Peak:
    """The most that an engine ever held, looked at again and again."""

    def __init__(self, engine: Engine, slide: int = 1) -> None:
        self.engine = engine
        self.slide = slide
        self.most = Held()

    def look(self) -> None:
        self.most = self.most.larger(held(self.engine, self.slide))
