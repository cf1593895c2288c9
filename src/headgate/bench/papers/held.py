"""How much an engine holds back: rows and bytes in logs that no epoch has taken yet, and in synopses."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.engine import Engine


@dataclass(frozen=True, slots=True)
class Held:
    """Rows and bytes that are held back."""

    rows: int = 0
    bytes: int = 0
    """Bytes on disk, as compressed Parquet."""

    def __add__(self, other: Held) -> Held:
        return Held(self.rows + other.rows, self.bytes + other.bytes)

    def larger(self, other: Held) -> Held:
        """The larger number of rows and the larger number of bytes of two."""
        return Held(max(self.rows, other.rows), max(self.bytes, other.bytes))


def held(engine: Engine, slide: int = 1) -> Held:
    """What an engine holds back now.

    These are tuples that no result reflects yet, rows between fragments, and synopses. Results come out at the
    multiples of `slide`: tuples behind the last one still wait. Not counted: tuples that are kept only because a window
    looks back at them, and results that are out.
    """
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
    """The most that an engine ever held back, over all looks."""

    def __init__(self, engine: Engine, slide: int = 1) -> None:
        self.engine = engine
        self.slide = slide
        self.most = Held()

    def look(self) -> None:
        """Compares the peak with what is held back now."""
        self.most = self.most.larger(held(self.engine, self.slide))
