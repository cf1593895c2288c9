"""Sinks: where the results of a query go, epoch after epoch, and what a result looks like.

A sink is handed the Parquet files of an epoch's results and the instant up to which they are complete. Files have the columns
`_time`, for a relation `_change` (+ or -), and those of the row. Within an epoch, order is by `_time`; epochs come in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.log.log import Log


@dataclass(frozen=True, slots=True)
class Result:
    """A tuple of a stream ("+"), or a row that came into a relation ("+") or left it ("-"), and when."""

    at: Any
    sign: str
    row: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.at} {self.sign} {', '.join(f'{key}={value}' for key, value in self.row.items())}"


class Sink(Protocol):
    log: Log

    def deliver(self, files: list[Path], complete: Any) -> None:
        """Take the files of one epoch; everything up to `complete` is now out."""


def in_order(files: Iterable[Path]) -> Iterator[Result]:
    """The results in files, ordered by time; deletions before insertions."""
    tables = [pq.read_table(file) for file in files]
    if not tables:
        return
    table = pa.concat_tables(tables, promote_options="default")
    changes = "_change" in table.column_names
    order = [("_time", "ascending"), *([("_change", "descending")] if changes else [])]
    for row in table.sort_by(order).to_pylist():
        at = row.pop("_time")
        yield Result(at, row.pop("_change") if changes else "+", row)
