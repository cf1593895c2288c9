"""From a query's INTO to its sink."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from headgate.catalog import Connector, Query
from headgate.cql import into
from headgate.log.checksum import torn
from headgate.sinks.callback import CallbackSink
from headgate.sinks.console import ConsoleSink
from headgate.sinks.delta import DeltaSink
from headgate.sinks.files import FileSink
from headgate.sinks.jdbc import JdbcSink
from headgate.sinks.kafka import KafkaSink
from headgate.sinks.memory import MemorySink
from headgate.sinks.postponed import PostponedSink
from headgate.sinks.sink import Sink
from headgate.sinks.webhook import WebhookSink
from headgate.sinks.writer import known

UNIDENTIFIED = ("memory", "console", "callback")
"""Sinks that do not tell deliveries of this query from those of another."""

KINDS: dict[str, type[Sink]] = {
    "memory": MemorySink, "console": ConsoleSink, "delta": DeltaSink, "kafka": KafkaSink, "jdbc": JdbcSink,
    "webhook": WebhookSink, "callback": CallbackSink,
}  # fmt: skip
"""All others are files."""


def made(query: Query, session: SparkSession, directory: Path, default: str = "memory") -> Sink:
    """The sink of a query.

    `directory` is the query's own in the engine's directory: a sink may keep small files of its own in it, which must be there
    again after a restart and must go when the query is dropped. `default` is where a query without INTO goes.
    """
    connector = query.connector or Connector(default)
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


def made_again(query: Query, session: SparkSession, directory: Path, default: str = "memory") -> Sink:
    """The sink of a query after a restart: one that is out of reach keeps neither its query nor the others from going on."""
    format = query.connector.format if query.connector is not None else default
    if format not in UNIDENTIFIED and not known(directory):
        raise torn(directory / "writer", "it is missing")
    try:
        return made(query, session, directory, default)
    except Exception:
        wants_empty = KINDS.get(format, FileSink).wants_empty
        return PostponedSink(lambda: made(query, session, directory, default), into.SINKS[format].guarantee, wants_empty)
