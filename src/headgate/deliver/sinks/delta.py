"""Results into a Delta table, one transaction a delivery, in order of time within each.

Delta remembers the last `txnVersion` of each `txnAppId` in the table's own log and skips a write that it has: by the
query's identity and the number of the delivery every delivery counts once."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from headgate.catalog import sinks
from headgate.catalog.entries import Connector
from headgate.deliver.sinks import shape
from headgate.deliver.sinks.sink import Delivery
from headgate.deliver.sinks.writer import identity
from headgate.spark.session import let_go, own


class DeltaSink:
    """Appends each delivery to a Delta table in one transaction, which Delta skips if it has it."""

    wants_empty = False

    def __init__(self, query: str, connector: Connector, session: SparkSession, directory: Path) -> None:
        self.guarantee = sinks.SINKS["delta"].guarantee
        self.path = connector.options["path"]
        self.session = own(session)
        self.writer = identity(directory)

    def deliver(self, delivery: Delivery) -> None:
        if delivery.rows:
            frame = shape.ordered(shape.changes(self.session, delivery), delivery.rows)
            frame.write.format("delta").mode("append").options(**transaction(self.writer, delivery)).save(self.path)

    def delivered(self) -> int | None:
        return None

    def close(self) -> None:
        let_go(self.session)


def transaction(writer: str, delivery: Delivery) -> dict[str, str]:
    return {"txnAppId": f"headgate/{delivery.query}/{writer}", "txnVersion": str(delivery.number)}
