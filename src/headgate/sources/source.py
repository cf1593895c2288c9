"""Sources: where the rows of a stream come from. What a source has taken, and where it goes on, is recorded with the
rows.
"""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import SparkSession

from headgate.errors import UserError
from headgate.heartbeat.clock import Clock
from headgate.sources.inlet import Inlet


class Source(Protocol):
    """Reads rows into the inlet of one stream or relation."""

    inlet: Inlet
    session: SparkSession
    notes: list[UserError]
    """Problems that hold up nothing and were not reported yet."""

    @property
    def starting(self) -> bool:
        """True while it has not looked for rows yet: its stream is then not silent, only not listened to."""

    def reshape(self) -> None:
        """Use the columns that the stream has now."""

    def poll(self, clock: Clock) -> int:
        """Take what is new; how many tuples went to the log."""

    def drain(self, clock: Clock) -> int:
        """Take all that is there now, before returning; how many tuples went to the log."""

    def progress(self, clock: Clock) -> int | None:
        """The instant of the engine's clock as of which everything that was there to be read is in the log; None if
        unknown.

        What is in the log was there by about then. If it is later than the truth, tuples that were only unread become
        late.
        """

    def stop(self) -> None:
        """Release threads and connections. Rows that were not taken yet are taken the next time."""
