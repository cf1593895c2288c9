"""Trouble that passes: what an engine that runs for months waits out instead of ending."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headgate.errors import UserError
from headgate.spark.failures import concerns_all


class Trouble:
    """Of the sources, or of the queries. What goes on unchanged from one turn to the next is told once."""

    def __init__(self) -> None:
        self.told: dict[str, UserError] = {}

    @contextmanager
    def waited_out(self, tell: Callable[[str], None], goes_on: Callable[[UserError], str]) -> Iterator[None]:
        """Let errors be told and not raised; `goes_on` says how things go on in spite of one, and nothing if they do
        not.
        """
        try:
            yield
        except UserError as error:
            ways = [goes_on(one) for one in error.each()]
            if not all(ways):
                raise
            found = {f"{one.render()}\n{how}": one for one, how in zip(error.each(), ways, strict=True)}
            for text in found:
                if text not in self.told:
                    tell(text)
            self.told = found
        else:
            for past in self.told.values():
                if concerns_all(past):
                    tell(f"it goes on; this is over: {past.message}")
            self.told = {}
