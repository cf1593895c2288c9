"""Relations that never change, from any reader Spark has: read once, whole, into the relation's log."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from headgate import paths
from headgate.catalog.entries import Connector
from headgate.errors import UserError
from headgate.heartbeat.clock import Clock
from headgate.sources.inlet import Inlet
from headgate.sources.judging import arriving_folder, judged
from headgate.sources.payload import CORRUPT, ROW
from headgate.spark.failures import failure
from headgate.spark.session import own_session
from headgate.spark.statements import selected
from headgate.sql import Sql, cast


class TableSource:
    """Reads a relation once, whole, by any reader that Spark has."""

    def __init__(self, session: SparkSession, inlet: Inlet, connector: Connector) -> None:
        self.session = own_session(session)
        self.inlet = inlet
        self.connector = connector
        self.notes: list[UserError] = []
        self.read = False
        self.subject = f"table {inlet.folder}"
        inlet.journal.introduce(self.subject, self.apply)

    def apply(self, what: dict[str, Any]) -> None:
        """Apply a fact of the journal: the relation was read."""
        self.read = what["read"]

    def state(self) -> dict[str, Any]:
        """All that `apply` has learnt, as one fact."""
        return {"read": self.read}

    def drain(self, clock: Clock) -> int:
        """Read the relation if it was not read yet."""
        return self.poll(clock)

    starting = False

    def progress(self, clock: Clock) -> int | None:
        """Now, once it is read: it never changes."""
        return clock.now_us() if self.read else None

    def reshape(self) -> None:
        """Nothing to do: the columns are asked for when it is read."""

    def stop(self) -> None:
        """Nothing to do: nothing is held between polls."""

    def poll(self, clock: Clock) -> int:
        """Read the relation the first time; how many rows it has."""
        if self.read:
            return 0
        relation = self.inlet.stream
        columns = map(cast, relation.columns)
        unread = (f"CAST(NULL AS STRING) AS {column}" for column in (CORRUPT, ROW))
        with arriving_folder(self.inlet) as folder:
            try:
                rows = (
                    self.session.read.format(self.connector.format)
                    .options(**paths.opened(self.connector.options))
                    .load()
                )
                placed = selected(rows, *columns, *unread, Sql("MONOTONICALLY_INCREASING_ID() AS _s"))
                batch = judged(self.session, self.inlet, lambda _: placed, folder, clock)
            except Exception as error:
                message = f'Spark cannot read relation "{relation.name}" from {self.connector.format}'
                raise failure(error, "source-failed", message) from error
            with self.inlet.together():
                taken = batch.take(clock)
                self.inlet.journal.record(self.subject, {"read": True})
        return taken
