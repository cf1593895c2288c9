"""Where an epoch ends: no more than a number of rows at once, so that a backlog is worked off in bounded pieces.

Answers do not depend on where epochs end. How many rows lie before an instant is estimated from the ranges of time of
the chunks alone, as if the rows of each chunk were spread evenly over its range.

Large epochs cost less for each row than small ones, as long as Spark can sort their rows in memory. So an epoch takes
as many rows as its tasks have memory for. Spark sorts more rows than that on disk: a wrong estimate costs time only.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.log.chunk import Chunk
from headgate.ticks import Tick

ROW_BYTES = 64
"""What Spark keeps of a row beside its values, where it sorts both ends of a row's life: headers, pointers, stamps."""

LEAST_ROWS, MOST_ROWS = 100_000, 20_000_000
"""An epoch takes no fewer rows than this, and no more: a failed epoch is done again."""


UNPACKED = 3
"""About how many bytes a row of texts has in memory for each byte that it has in a file."""


def rows_for_memory(memory: int, columns: int, chunks: Sequence[Chunk] = ()) -> int:
    """Return how many rows the memory of Spark's tasks holds, each with its start and its end.

    A row has so many columns, and is no narrower than the rows in some chunks.
    """
    stored = sum(chunk.size for chunk in chunks) // max(1, sum(chunk.rows for chunk in chunks))
    width = ROW_BYTES + max(8 * columns, UNPACKED * stored)
    return min(max(memory // (2 * width), LEAST_ROWS), MOST_ROWS)


def hashed_rows_for_memory(memory: int, columns: int) -> int:
    """Return how many rows of a side of a join can lie in hash tables, in half of the memory of Spark's tasks.

    Each has its row, with the stamps, and its key, which may be as long as the row.
    """
    return memory // (2 * (ROW_BYTES + 16 * columns))


def epoch_end(chunks: Sequence[Chunk], after: Tick, until: Tick, most: int) -> Tick:
    """Return the last instant up to `until` for which (after, instant] holds about `most` rows, or one instant."""
    if estimated_rows(chunks, after, until) <= most:
        return until
    low, high = max(after, min(chunk.low for chunk in chunks) - 1), until
    while low + 1 < high:
        middle = (low + high) // 2
        if estimated_rows(chunks, after, middle) <= most:
            low = middle
        else:
            high = middle
    return low if estimated_rows(chunks, after, low) else high


def estimated_rows(chunks: Sequence[Chunk], after: Tick, until: Tick) -> float:
    """Estimate how many rows of the chunks have timestamps in (after, until]."""
    total = 0.0
    for chunk in chunks:
        inside = min(chunk.high, until) - max(chunk.low - 1, after)
        if inside > 0:
            total += chunk.rows * inside / (chunk.high - chunk.low + 1)
    return total
