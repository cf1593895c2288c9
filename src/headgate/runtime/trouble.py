"""Trouble that passes: what an engine that runs for months waits out instead of ending."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headgate.errors import UserError

PASSING = ("source-failed", "no-such-file", "no-such-column", "disk-failed")
OF_ONE = ("query-failed", "epoch-hung", "torn-file")


class Trouble:
    def __init__(self) -> None:
        self.told: str | None = None
        self.well = False
        """Whether things have worked before: what never did is a mistake and not a trouble."""

    @contextmanager
    def waited_out(self, tell: Callable[[str], None], goes_on: Callable[[], str] = lambda: "") -> Iterator[None]:
        """Let an error be told and not raised, if it may pass and things have worked before, or if it is of one query alone.

        `goes_on` says how things go on after one of a query; nothing if they do not.
        """
        try:
            yield
        except UserError as error:
            if error.code in OF_ONE and (how := goes_on()):
                tell(f"{error.render()}\n{how}")
                return
            if error.code not in PASSING or not self.well:
                raise
            if self.told != error.message:
                tell(f"{error.message}, and it is tried again. {error.detail}".rstrip())
            self.told = error.message
        else:
            if self.told is not None:
                tell(f"it goes on; this is over: {self.told}")
            self.well, self.told = True, None
