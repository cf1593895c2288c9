"""Where an epoch ends: no more than a number of rows at once, so that a backlog is worked off in bounded pieces.

Answers do not depend on where epochs end. How many rows lie before an instant is estimated from the ranges of time of
the chunks alone, as if the rows of each chunk were spread evenly over its range.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.log.chunk import Chunk
from headgate.ticks import Tick


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
