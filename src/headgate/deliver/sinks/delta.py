"""Results into a Delta table, one transaction a delivery, in order of time within each.

Delta remembers the last `txnVersion` of each `txnAppId` in the table's own log, and skips a write that it has. The
query's identity and the number of the delivery stand for these, so every delivery counts once.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from headgate.catalog import sinks
from headgate.catalog.entries import Connector
from headgate.deliver.sinks import shape
from headgate.deliver.sinks.sink import Delivery
from headgate.deliver.sinks.writer import identity
from headgate.paths import for_spark
from headgate.spark.session import let_go, own_session


class DeltaSink:
    """Appends each delivery to a Delta table in one transaction, which Delta skips if it has it."""

    guarantee = sinks.SINKS["delta"].guarantee
    wants_empty = False

    def __init__(self, query: str, connector: Connector, session: SparkSession, directory: Path) -> None:
        self.connector = connector
        self.path = for_spark(connector.options["path"])
        self.session = own_session(session)
        self.writer = identity(directory)

    def deliver(self, delivery: Delivery) -> None:
        """Append the rows in one transaction."""
        if delivery.rows:
            frame = shape.ordered(shape.shaped(self.session, delivery, self.connector), delivery.rows)
            frame.write.format("delta").mode("append").options(**transaction(self.writer, delivery)).save(self.path)

    def delivered(self) -> int | None:
        """Unknown: Delta is not asked, it skips what it has."""
        return None

    def close(self) -> None:
        """Release Spark's session."""
        let_go(self.session)


def transaction(writer: str, delivery: Delivery) -> dict[str, str]:
    """The options by which Delta knows a delivery again."""
    return {"txnAppId": f"headgate/{delivery.query}/{writer}", "txnVersion": str(delivery.number)}
