"""Sources: where the rows of a stream come from. What one has taken, and where it goes on, is remembered with the
rows.
"""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import SparkSession

from headgate.errors import UserError
from headgate.heartbeat.clock import Clock
from headgate.sources.inlet import Inlet


class Source(Protocol):
    inlet: Inlet
    session: SparkSession
    notes: list[UserError]
    """What went wrong and holds up nothing, and was not told yet."""

    @property
    def starting(self) -> bool:
        """Whether it has not looked for rows yet: its stream is not silent, only not listened to."""

    def reshape(self) -> None:
        """The stream has other columns now."""

    def poll(self, clock: Clock) -> int:
        """Take what is new; how many tuples went to the log since the last time."""

    def drain(self, clock: Clock) -> int:
        """Take all that is there now, before returning."""

    def progress(self, clock: Clock) -> int | None:
        """The instant of the engine's clock as of which everything that was there to be read is in the log, and all
        that is in the log was there by about then; None if that is not known.

        If it says a later one than is true, tuples become late that were only unread.
        """

    def stop(self) -> None:
        """Let go of threads and connections. What was not taken yet is taken the next time."""
