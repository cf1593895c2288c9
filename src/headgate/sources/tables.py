"""Relations that never change, from any reader Spark has: read once, whole, into the relation's log."""

from __future__ import annotations

import shutil
from typing import Any

from pyspark.sql import SparkSession

from headgate.catalog.entries import Connector
from headgate.errors import UserError
from headgate.heartbeat.clock import Clock
from headgate.sources.inlet import Inlet
from headgate.spark.failures import failure
from headgate.spark.session import own_session
from headgate.spark.staging import write_parquet
from headgate.sql import cast


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
        staging = self.inlet.log.directory / ".arriving"
        try:
            rows = self.session.read.format(self.connector.format).options(**self.connector.options).load()
            stamped = rows.selectExpr(*columns, "1L AS _n", "0L AS _t", "MONOTONICALLY_INCREASING_ID() AS _s")
            files = sorted(write_parquet(stamped, staging).glob("*.parquet"))
        except Exception as error:
            message = f'Spark cannot read relation "{relation.name}" from {self.connector.format}'
            raise failure(error, "source-failed", message) from error
        with self.inlet.together():
            chunks = self.inlet.log.adopt(files)
            self.inlet.journal.record(self.subject, {"read": True})
        shutil.rmtree(staging)
        return sum(chunk.rows for chunk in chunks)
