"""Prints results as they come."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console

from headgate.catalog import sinks
from headgate.deliver.sinks.sink import Delivery, Result, results
from headgate.sql import result_order

SHOWN = 50
"""How many results of one epoch are printed; the rest is counted."""


PRINTING = Lock()
"""Held for a delivery, so that those of several queries stand one after the other."""


class ConsoleSink:
    """Prints the first results of each delivery and counts the rest."""

    guarantee = sinks.SINKS["console"].guarantee
    wants_empty = False

    def __init__(self, *_: object, console: Console | None = None) -> None:
        self.console = console or Console(soft_wrap=True, highlight=False)
        self._unsure = False
        """Whether the early answer that was printed last is not known to be consistent."""

    def deliver(self, delivery: Delivery) -> None:
        """Print the first results, how many more there are, and up to when they are complete."""
        if not delivery.rows:
            return
        with PRINTING:
            for result in results(first(delivery.files, SHOWN)):
                self.console.print(f"{delivery.query} {result}", markup=False)
            if delivery.rows > SHOWN:
                self.console.print(f"{delivery.query} ... and {delivery.rows - SHOWN} more", markup=False)
            if delivery.complete is not None:
                self.console.print(f"{delivery.query} complete up to {delivery.complete}", markup=False)

    def early(
        self, query: str, added: Sequence[Result], withdrawn: Sequence[Result], consistent: bool, reflects: str
    ) -> None:
        """Print what has changed in an early answer: first the results that do not hold any more.

        Those of an answer that is not known to be consistent are marked, and it is said when the answer is, and which
        input it `reflects` then.
        """
        unsure = "" if consistent else "? "
        with PRINTING:
            for mark, some in (("withdrawn ", withdrawn), (unsure, added)):
                for result in some[:SHOWN]:
                    self.console.print(f"{query} {mark}{result}", markup=False)
                if len(some) > SHOWN:
                    self.console.print(f"{query} {mark}~ ... and {len(some) - SHOWN} more", markup=False)
            if consistent and self._unsure:
                self.console.print(f"{query} ~ is consistent{reflects and f': {reflects}'}", markup=False)
            self._unsure = not consistent

    def delivered(self) -> int | None:
        """Unknown: what was printed cannot be read back."""
        return None

    def close(self) -> None:
        """Nothing is held."""


def first(files: Sequence[Path], count: int) -> pa.Table:
    """The first rows in order of time. No more than a batch is in memory at a time, however many rows there are."""
    kept: pa.Table | None = None
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches():
            table = pa.Table.from_batches([batch])
            both = table if kept is None else pa.concat_tables([kept, table], promote_options="default")
            if len(both) > count:
                both = both.take(pc.select_k_unstable(both, count, result_order(both.column_names)))
            kept = both
    assert kept is not None, "only asked of deliveries with rows"
    return kept.sort_by(result_order(kept.column_names))
