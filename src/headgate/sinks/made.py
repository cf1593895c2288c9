"""From a query's INTO to its sink."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from headgate.catalog import Connector, Query
from headgate.log.checksum import torn
from headgate.sinks.callback import CallbackSink
from headgate.sinks.console import ConsoleSink
from headgate.sinks.delta import DeltaSink
from headgate.sinks.files import FileSink
from headgate.sinks.jdbc import JdbcSink
from headgate.sinks.kafka import KafkaSink
from headgate.sinks.memory import MemorySink
from headgate.sinks.sink import Sink
from headgate.sinks.webhook import WebhookSink
from headgate.sinks.writer import known

UNIDENTIFIED = ("memory", "console", "callback")
"""Sinks that do not tell deliveries of this query from those of another."""


def made(query: Query, session: SparkSession, directory: Path, default: str = "memory", *, restarted: bool = False) -> Sink:
    """The sink of a query, also of one that was there before a restart.

    `directory` is the query's own in the engine's directory: a sink may keep small files of its own in it, which must be there
    again after a restart and must go when the query is dropped. `default` is where a query without INTO goes.
    """
    connector = query.connector or Connector(default)
    if restarted and connector.format not in UNIDENTIFIED and not known(directory):
        raise torn(directory / "writer", "it is missing")
    match connector.format:
        case "memory":
            return MemorySink()
        case "console":
            return ConsoleSink()
        case "delta":
            return DeltaSink(connector, session, directory)
        case "kafka":
            return KafkaSink(query.name, connector, session, directory)
        case "jdbc":
            return JdbcSink(query.name, connector, session, directory)
        case "webhook":
            return WebhookSink(connector, session, directory)
        case "callback":
            return CallbackSink(connector, session, directory)
        case _:
            return FileSink(query.name, connector, session, directory)
