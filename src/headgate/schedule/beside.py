"""A thread that runs large epochs, one at a time, beside the small ones of other queries.

A query with a backlog has large epochs, each of which takes seconds. While one of them runs here, the loop goes on with
the small epochs of the others; Spark's scheduler shares the cores between them. The epoch counts when the loop has
committed it, which it does in its next turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Beside(Generic[T, R]):
    """Runs one piece of work at a time in a thread of its own, until the result is taken."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake = wake
        """Called when the work is done."""
        self.of: T | None = None
        """What the work is for, from its beginning until its result is taken."""
        self._thread: threading.Thread | None = None
        self._result: R | BaseException | None = None

    @property
    def idle(self) -> bool:
        """Whether other work can begin."""
        return self.of is None

    def begin(self, of: T, work: Callable[[], R]) -> None:
        """Begin a piece of work."""
        assert self.of is None
        self.of, self._result = of, None

        def do() -> None:
            try:
                self._result = work()
            except BaseException as error:
                self._result = error
            self.wake()

        self._thread = threading.Thread(target=do, name="backlog", daemon=True)
        self._thread.start()

    def taken(self, wait: bool = False) -> tuple[T, R | BaseException] | None:
        """Take what the work has given, or the error that it met with; None if it is not done or there is none."""
        if self.of is None or self._thread is None or (self._thread.is_alive() and not wait):
            return None
        self._thread.join()
        of, result = self.of, self._result
        assert result is not None
        self.of = self._thread = self._result = None
        return of, result
