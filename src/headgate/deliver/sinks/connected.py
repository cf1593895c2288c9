"""Whether a Spark session has the connector that a sink needs: found out when the query is created, not when results
wait.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from headgate.errors import UserError
from headgate.spark import connectors
from headgate.spark.session import over_connect

MISSING = ("DATA_SOURCE_NOT_FOUND", "KAFKA_DATA_SOURCE_NOT_ENABLED")


def check_connected(session: SparkSession, connector: str) -> None:
    """Ask for a table that is not there: Spark looks for the connector first."""
    try:
        session.read.format(connector).load("/no such table")
    except Exception as error:
        if any(missing in str(error) for missing in MISSING):
            package = next(iter(connectors.packages(connector)), "")
            raise UserError(
                "no-connector",
                f"Spark's session has no connector for {connector}",
                hint=f"Start Spark with the package {package}, or let headgate start it.",
            ) from error


def check_classic(session: SparkSession, sink: str) -> None:
    """Kafka's ends and a database's transactions are asked for through the driver's JVM, which a Connect client does
    not have.
    """
    if over_connect(session):
        raise UserError(
            "not-over-connect",
            f"the {sink} sink does not work over Spark Connect",
            hint="Let headgate start Spark, or hand Engine a session of Spark itself.",
        )
