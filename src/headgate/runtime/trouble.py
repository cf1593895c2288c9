"""Trouble that passes: what an engine that runs for months waits out instead of ending."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headgate.errors import UserError

PASSING = ("source-failed", "no-such-file", "disk-failed")


class Trouble:
    def __init__(self) -> None:
        self.code: str | None = None
        self.well = False
        """Whether things have worked before: what never did is a mistake and not a trouble."""

    @contextmanager
    def waited_out(self, tell: Callable[[str], None]) -> Iterator[None]:
        """Let an error that may pass be told once, and not raised, if things have worked before."""
        try:
            yield
        except UserError as error:
            if error.code not in PASSING or not self.well:
                raise
            if self.code != error.code:
                tell(f"{error.message}, and it is tried again. {error.detail}".rstrip())
            self.code = error.code
        else:
            self.well, self.code = True, None
