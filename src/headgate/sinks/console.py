"""Prints results as they come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from headgate.log.log import Log
from headgate.sinks.sink import in_order

SHOWN = 50
"""How many results of one epoch are printed; the rest is counted."""


class ConsoleSink:
    def __init__(self, query: str, directory: Path, console: Console | None = None) -> None:
        self.query = query
        self.log = Log(directory)
        self.console = console or Console(soft_wrap=True, highlight=False)

    def deliver(self, files: list[Path], complete: Any) -> None:
        before = len(self.log.chunks)
        self.log.adopt_all(files)
        results = list(in_order(chunk.path for chunk in self.log.chunks[before:]))
        for result in results[:SHOWN]:
            self.console.print(f"{self.query} {result}", markup=False)
        if len(results) > SHOWN:
            self.console.print(f"{self.query} ... and {len(results) - SHOWN} more", markup=False)
        if results:
            self.console.print(f"{self.query} complete up to {complete}", markup=False)
        self.log.compact()
