"""Replays history in the order in which it came, so that lateness, bounds and timeouts can be tried on what is in
files.

The files of a stream are taken in the order of their names, their rows in the order of the file, in rounds: so many
rows of the longest stream a round, and of the others in proportion, so that all streams begin and end together. After
each round queries go as far as the bounds in force say. The engine's clock goes by the rows: when a round is taken, it
shows the middle one of the round's timestamps, so delays and timeouts last as long as they would have lasted then. No
source can say as of when it has been read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.errors import UserError
from headgate.heartbeat.arrivals import NEVER, Ticks
from headgate.heartbeat.clock import Clock
from headgate.sources.files import FileSource
from headgate.sources.inputs import Inputs
from headgate.sources.judging import stamped_rows
from headgate.sources.tables import TableSource
from headgate.sources.verdict import ticks_of
from headgate.spark.staging import write_parquet
from headgate.ticks import TimeDomain


class ReplayClock:
    """A clock that goes by the timestamps of the replayed rows. It knows no date before the first of them."""

    def __init__(self) -> None:
        self._date_us: int | None = None
        self._began_us = 0

    def now_us(self) -> int:
        """Microseconds since the first instant that it showed."""
        return 0 if self._date_us is None else self._date_us - self._began_us

    def date_us(self) -> int | None:
        """The date that it shows; None before the first."""
        return self._date_us

    def show(self, date_us: int | None) -> None:
        """Move the clock to a date. It never goes back."""
        if date_us is None:
            return
        if self._date_us is None:
            self._began_us = date_us
        self._date_us = date_us if self._date_us is None else max(date_us, self._date_us)


class History:
    """All that the files of a stream hold, in order of arrival."""

    def __init__(self, source: FileSource, folder: Path) -> None:
        self.inlet = source.inlet
        rows = stamped_rows(source.unread(), self.inlet).sort("_s")
        files = sorted(write_parquet(rows, folder).glob("*.parquet"))
        self.parts = [pq.ParquetFile(file) for file in files]
        self.rows = sum(part.metadata.num_rows for part in self.parts)

    def pieces(self, rounds: int) -> Iterator[pa.Table | None]:
        """The rows in so many pieces of about one size; None for a piece without rows."""
        batches = (pa.Table.from_batches([batch]) for part in self.parts for batch in part.iter_batches())
        waiting: pa.Table | None = None
        for number in range(rounds):
            wanted = self.rows * (number + 1) // rounds - self.rows * number // rounds
            while wanted and (waiting is None or waiting.num_rows < wanted):
                waiting = next(batches) if waiting is None else pa.concat_tables([waiting, next(batches)])
            yield waiting.slice(0, wanted) if wanted and waiting is not None else None
            waiting = waiting.slice(wanted) if waiting is not None else None

    def take(self, piece: pa.Table, clock: Clock) -> None:
        """Judge the rows by the limits in force now, and take them."""
        malformed = pc.or_(pc.is_valid(piece["_raw"]), pc.is_null(piece["_n"]))
        bad = piece.filter(malformed).select(["_s", "_raw", "_row"]).to_pylist()
        self.inlet.take_table(
            piece.filter(pc.invert(malformed)), [(row["_s"], row["_raw"] or row["_row"] or "") for row in bad], clock
        )


def date_us(pieces: Sequence[tuple[History, pa.Table]], unit_us: float) -> int | None:
    """The date that the clock shows when these rows come: the middle one of their timestamps.

    `unit_us` is the length of a tick of integer time.
    """
    found: dict[TimeDomain | None, list[Ticks]] = {}
    for history, piece in pieces:
        if history.inlet.stamped == "external":
            ticks = ticks_of(piece.column("_t").combine_chunks())
            found.setdefault(history.inlet.stream.domain, []).append(ticks[ticks > NEVER])
    instants, integers = (
        np.concatenate([[], *found.get(domain, [])]) for domain in (TimeDomain.TIMESTAMP, TimeDomain.INTEGER)
    )
    if instants.size:
        return int(np.median(instants))
    return round(float(np.median(integers)) * unit_us) if integers.size else None


def histories(inputs: Inputs, folder: Path, clock: Clock) -> list[History]:
    """The history of every stream that is read from files. Relations that never change are read whole at once."""
    found = []
    for number, source in enumerate(inputs.sources):
        if source.inlet.stream.domain is None or isinstance(source, TableSource):
            source.drain(clock)
        elif isinstance(source, FileSource):
            found.append(History(source, folder / str(number)))
        else:
            raise UserError(
                "no-replay",
                f'stream "{source.inlet.stream.name}" cannot be replayed in the order of arrival',
                detail="Only the files of a folder can, if no option of Spark's own stream of files is given.",
            )
    return found
