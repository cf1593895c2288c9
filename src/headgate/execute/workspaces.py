"""The Spark sessions of an engine: for analysing programs, for small statements and for large ones.

A fragment that calls functions of the user has sessions of its own, with those functions as they were when it was
registered.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from headgate.execute.kept import KeptPlans
from headgate.execute.wall import Wall
from headgate.execute.workspace import Workspace
from headgate.spark.session import let_go, over_connect, own_session


class Workspaces:
    """The sessions of an engine, or of a fragment that calls functions of the user."""

    def __init__(self, origin: SparkSession, partitions: int | None = None, frozen: bool = False) -> None:
        self.origin = origin
        self.partitions = partitions
        self.frozen = frozen
        """Whether functions that the user registers from now on do not count."""
        self.known: dict[tuple[object, ...], Any] = {}
        """What Spark has said of programs (`analysis`)."""
        self._open()

    def _open(self) -> None:
        base = own_session(self.origin) if self.frozen else self.origin
        self._base = base if self.frozen else None
        self._wall: Wall | None = None
        self.analysis = Workspace(base, in_one_task=False, partitions=self.partitions)
        self.small = Workspace(base, in_one_task=True)
        self.second = Workspace(base, in_one_task=True)
        """For small statements that run beside others."""
        self.kept = None if self.frozen or over_connect(self.origin) else KeptPlans(self.small)
        """Plans of small statements; None where Spark does not let us keep them."""
        self.large = Workspace(base, in_one_task=False, partitions=self.partitions)

    @property
    def walled(self) -> bool:
        """True if what Spark makes of a program can be looked at. Texts from outside are carried out nowhere else."""
        return not over_connect(self.origin)

    @property
    def wall(self) -> Wall | None:
        """What lets programs in to be analysed; None over Spark Connect, where Spark's plans cannot be looked at."""
        if self._wall is None and self.walled:
            self._wall = Wall(self.analysis.session)
        return self._wall

    def of_their_own(self) -> Workspaces:
        """Return other sessions, with the functions that the user has registered by now."""
        return Workspaces(self.origin, self.partitions, frozen=True)

    def of(self, in_one_task: bool) -> Workspace:
        """Return the one for small statements, or the one for large ones."""
        return self.small if in_one_task else self.large

    def sessions(self) -> list[SparkSession]:
        """Return sessions that know the jobs of epochs by their tags. Over Spark Connect each knows its own only."""
        connected = over_connect(self.origin)
        return [one.session for one in (self.small, self.second, self.large)] if connected else [self.origin]

    def renew(self) -> None:
        """Go on in new sessions, without inputs."""
        with self.analysis.turn, self.small.turn, self.second.turn, self.large.turn:
            self.close()
            self.known.clear()
            self._open()

    def close(self) -> None:
        """Give the sessions back."""
        for one in (self.analysis, self.small, self.second, self.large):
            one.close()
        if self._base is not None:
            let_go(self._base)
