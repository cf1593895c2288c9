"""Prints results as they come."""

from __future__ import annotations

from rich.console import Console

from headgate.sinks.sink import Delivery, in_order

SHOWN = 50
"""How many results of one epoch are printed; the rest is counted."""


class ConsoleSink:
    guarantee = "at least once: what was printed just before a crash is printed again"
    wants_empty = False

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(soft_wrap=True, highlight=False)

    def deliver(self, delivery: Delivery) -> None:
        for position, result in enumerate(in_order(delivery.files)):
            if position == SHOWN:
                break
            self.console.print(f"{delivery.query} {result}", markup=False)
        if delivery.rows > SHOWN:
            self.console.print(f"{delivery.query} ... and {delivery.rows - SHOWN} more", markup=False)
        if delivery.rows:
            self.console.print(f"{delivery.query} complete up to {delivery.complete}", markup=False)

    def delivered(self) -> int | None:
        return None

    def close(self) -> None:
        pass
