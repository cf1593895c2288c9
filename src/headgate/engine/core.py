"""The objects that one engine consists of, made once and shared by the modules of this package.

None of these objects knows the engine, and the core knows none of the modules that work on it.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.catalog.catalog import Catalog
from headgate.deliver.courier import CLOSE_SECONDS
from headgate.engine.facts import SUBJECT, EngineFact
from headgate.errors import UserError, unknown
from headgate.execute.workspaces import Workspaces
from headgate.heartbeat.clock import Clock, EngineClock
from headgate.heartbeat.manager import Heartbeats
from headgate.log.folders import local_directory
from headgate.log.journal import Journal
from headgate.log.lock import Lock
from headgate.permissions import Permissions
from headgate.schedule.asking import Asking
from headgate.schedule.group import RunningGroup
from headgate.schedule.loop import Loop
from headgate.schedule.query import RunningQuery
from headgate.sources.inputs import Inputs
from headgate.spark.session import SessionFunctions, check_zone


class Core:
    """Catalog, clock, journal, time manager, inputs and loop of one engine."""

    def __init__(
        self,
        spark: SparkSession,
        directory: str | Path | None,
        clock: Clock,
        permissions: Permissions | None,
        partitions: int | None = None,
    ) -> None:
        """Lock the directory, or make a temporary one that goes with the engine."""
        check_zone(str(spark.conf.get("spark.sql.session.timeZone")))
        self.spark = spark
        self.workspaces = Workspaces(spark, partitions)
        self.permissions = permissions
        self.catalog = Catalog()
        self.catalog.session_functions = SessionFunctions(spark)
        self.catalog.permissions = None  # they count when the journal has been read
        self.clock = EngineClock(clock)
        self.temporary = directory is None
        self.directory = local_directory(tempfile.mkdtemp(prefix="headgate-") if directory is None else directory)
        self.lock = Lock(self.directory)
        self.journal = Journal(None if self.temporary else self.directory)
        self.heartbeats = Heartbeats(self.catalog.declarations)
        self.heartbeats.enabling.set_date(self.clock.date_us(), self.clock.now_us())
        self.wake = threading.Event()
        """Set when something has arrived or is to end: a loop that waits looks again at once."""
        self.look = threading.Event()
        """Set when the sources are to be looked at: whoever waits to read them does so at once."""
        self.inputs = Inputs(
            self.spark,
            self.directory,
            self.catalog,
            self.heartbeats,
            self.journal,
            self.clock,
            self.arrived,
            self.look.set,
        )
        self.asking = Asking(self.clock, self.heartbeats, self.inputs.sources)
        self.loop = Loop(
            self.clock, self.heartbeats, self.asking, self.inputs.logs, self.journal, lambda: self.catalog.settings
        )
        self.members: dict[str, RunningQuery] = {}
        """The queries that run as members of families that were found, by name."""
        self.loop.horizon.wanted = self.look.set
        self.loop.horizon.batches = self.inputs.batches

    def arrived(self) -> None:
        """Let the loop look again at once, because rows are in a log. Sources are looked at too, if there are any:
        what waits for them may go on when all have been read once more.
        """
        if self.inputs.sources:
            self.look.set()
        self.wake.set()

    def wake_all(self) -> None:
        """Let those who wait look again at once: for what has arrived, and for what the sources have."""
        self.look.set()
        self.wake.set()

    def query(self, name: str) -> RunningQuery:
        """The running query of that name; an error with the nearest name if there is none."""
        known = self.catalog.query(name).name
        return self.members.get(known) or self.loop.queries[known]

    def queries(self) -> list[RunningQuery]:
        """All queries of the user that run, in the order in which they were registered."""
        names = [query.name for query in list(self.catalog.queries.values())]
        found = (self.members.get(name) or self.loop.queries.get(name) for name in names)
        return [query for query in found if query is not None]

    def group(self, name: str) -> RunningGroup:
        """The group of that name, if it has a sink; an error if there is none."""
        if name.lower() not in self.catalog.groups:
            raise unknown("group", name, (group.name for group in self.catalog.groups.values()))
        known = self.catalog.groups[name.lower()].name
        if known not in self.loop.groups:
            raise UserError("no-sink", f'group "{known}" has no sink', hint=f"CREATE GROUP {known} OF ... INTO one.")
        return self.loop.groups[known]

    def outlets(self) -> list[RunningQuery | RunningGroup]:
        """All that has a sink, or may have one: the queries of the user, and groups of them."""
        return [*self.queries(), *self.loop.groups.values()]

    def programs(self) -> list[RunningQuery]:
        """All queries that have fragments of their own: families stand for their members."""
        return list(self.loop.queries.values())

    def record(self, fact: EngineFact, then: Callable[[], None], undo: Callable[[], None] | None = None) -> None:
        """Make a fact durable and then apply it by `then`; if it does not become durable, call `undo`."""
        self.journal.record(SUBJECT, fact.to_json(), then=then, undo=undo)

    def stop_work(self) -> None:
        """Let go of sources and sinks. Sinks together get a while to take what waits for them."""
        self.inputs.close()
        end_s = time.monotonic() + CLOSE_SECONDS
        self.loop.finish(CLOSE_SECONDS)
        for group in self.loop.groups.values():
            group.close(max(0.0, end_s - time.monotonic()))
        for query in self.programs():
            query.close(max(0.0, end_s - time.monotonic()))
        self.workspaces.close()

    def let_go(self) -> None:
        """Write nothing more, and give the directory back; a temporary one is deleted."""
        self.journal.close()
        self.lock.release()
        if self.temporary:
            shutil.rmtree(self.directory, ignore_errors=True)
