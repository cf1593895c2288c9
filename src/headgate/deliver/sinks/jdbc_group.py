"""Results of several queries into tables of one database: a delivery of all of them is one transaction.

Each query has its table and its line in `headgate_deliveries`, as a query by itself has. The rows of all are staged
first. One transaction then merges all of them and sets the numbers of all lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.catalog import sinks
from headgate.catalog.entries import Connector
from headgate.deliver.sinks.jdbc import JdbcSink
from headgate.deliver.sinks.sink import Delivery


class JdbcGroupSink:
    """Merges the results of each query into its table, in one transaction for all."""

    guarantee = sinks.SINKS["jdbc"].guarantee
    wants_empty = True

    def __init__(
        self, group: str, connector: Connector, members: Mapping[str, Connector], session: SparkSession, directory: Path
    ) -> None:
        self.sinks = {
            name: JdbcSink(name, one, session, directory / f"member-{place}")
            for place, (name, one) in enumerate(members.items())
        }

    def delivered(self) -> int | None:
        """The number that the database has. Before the first delivery, tables may have those of earlier writers."""
        return max(sink.delivered() or 0 for sink in self.sinks.values())

    def deliver_all(self, delivery: Delivery, parts: Mapping[str, Delivery]) -> None:
        """Stage the rows of all queries, and merge them in one transaction."""
        if delivery.number <= (self.delivered() or 0):
            return
        first = next(iter(self.sinks.values()))
        try:
            frames = {name: sink.staged(parts[name]) for name, sink in self.sinks.items()}
            with first.database.transaction() as run:
                for name, sink in self.sinks.items():
                    sink.merge(run, frames[name], parts[name])
        except Exception as error:
            self._noted(None)  # perhaps only the answer was lost and not the transaction
            raise first.database.translated(error, '", "'.join(sink.target for sink in self.sinks.values())) from error
        self._noted(delivery.number)

    def _noted(self, number: int | None) -> None:
        for sink in self.sinks.values():
            sink.noted(number)

    def close(self) -> None:
        """Take the staging tables away."""
        for sink in self.sinks.values():
            sink.close()
