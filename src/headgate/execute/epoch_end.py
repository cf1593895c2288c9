"""How far an epoch goes at once: no further than a number of rows, so that a backlog is worked off in bounded pieces.

By cut-independence any cut gives the same answers. How many rows lie before an instant is estimated from the chunks'
ranges of time alone, as if the rows of each were spread evenly over it."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.log.chunk import Chunk
from headgate.ticks import Tick


def cut(chunks: Sequence[Chunk], after: Tick, until: Tick, most: int) -> Tick:
    """The last instant up to `until` with about `most` rows behind `after` before it; at least one instant is taken."""
    if about(chunks, after, until) <= most:
        return until
    low, high = max(after, min(chunk.low for chunk in chunks) - 1), until
    while low + 1 < high:
        middle = (low + high) // 2
        if about(chunks, after, middle) <= most:
            low = middle
        else:
            high = middle
    return low if about(chunks, after, low) else high


def about(chunks: Sequence[Chunk], after: Tick, until: Tick) -> float:
    """About how many of the rows have timestamps in (after, until]."""
    total = 0.0
    for chunk in chunks:
        inside = min(chunk.high, until) - max(chunk.low - 1, after)
        if inside > 0:
            total += chunk.rows * inside / (chunk.high - chunk.low + 1)
    return total
