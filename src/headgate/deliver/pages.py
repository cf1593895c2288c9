"""Results that stay in the engine's directory, read page by page from a position on.

The position of a result is its place in the log of results: the first has position 1. Results are put into the log in
order (`flush.in_order`), and merging files keeps the places of their rows. So a reader that remembers the position of
the last result it has seen can go on behind it at any time, also when the engine was killed and started again.

Nothing here takes the engine's lock. A file may be merged into another and deleted while it is read; then the log has
changed, and the page is read again.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headgate.errors import UserError
from headgate.log.chunk import Chunk
from headgate.log.log import Chunks
from headgate.log.tail import TAIL

SMALL_BYTES = 2**20
"""The rows of chunks up to this size stay in memory for a while: many readers may want them."""


def read_page(log: Chunks, after: int, most: int) -> tuple[list[pa.Table], int]:
    """Return up to `most` rows behind the position `after`, and the position of the last of them."""
    while True:
        chunks = [chunk for chunk in list(log.chunks) if chunk.arrived > after]
        try:
            return _read(chunks, after, most)
        except UserError as error:
            if error.code != "torn-file" or all(chunk in log.chunks for chunk in chunks):
                raise


def _read(chunks: list[Chunk], after: int, most: int) -> tuple[list[pa.Table], int]:
    found, left = list[pa.Table](), most
    for chunk in chunks:
        place = chunk.arrived - chunk.rows
        for rows in _parts(chunk):
            here = rows.slice(max(after - place, 0), left)
            if place + rows.num_rows > after and here.num_rows:
                found.append(here)
                left -= here.num_rows
                after = max(after, place) + here.num_rows
            place += rows.num_rows
            if not left:
                return found, after
    return found, after


def _parts(chunk: Chunk) -> Iterator[pa.Table]:
    if chunk.size <= SMALL_BYTES:
        yield TAIL.table(chunk)
    else:
        yield from chunk.parts()
