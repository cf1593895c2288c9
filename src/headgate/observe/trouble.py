"""Trouble that passes: errors that an engine which runs for months waits out instead of ending."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headgate.errors import UserError
from headgate.spark.failures import concerns_all


class Trouble:
    """The errors of the sources, or of the queries, from turn to turn. One that does not change is reported once."""

    def __init__(self) -> None:
        self.reported: dict[str, UserError] = {}

    @contextmanager
    def waited_out(self, tell: Callable[[str], None], goes_on: Callable[[UserError], str]) -> Iterator[None]:
        """In here, errors are reported by `tell` and not raised.

        `goes_on` says how things go on in spite of an error. If it says nothing, the error is raised.
        """
        try:
            yield
        except UserError as error:
            ways = [goes_on(one) for one in error.each()]
            if not all(ways):
                raise
            found = {f"{one.render()}\n{how}": one for one, how in zip(error.each(), ways, strict=True)}
            for text in found:
                if text not in self.reported:
                    tell(text)
            self.reported = found
        else:
            for past in self.reported.values():
                if concerns_all(past):
                    tell(f"it goes on; this is over: {past.message}")
            self.reported = {}
