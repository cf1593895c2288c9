"""From a query's INTO to its sink."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from headgate.catalog import sinks
from headgate.catalog.entries import Connector, Query
from headgate.deliver.sinks.callback import CallbackSink
from headgate.deliver.sinks.console import ConsoleSink
from headgate.deliver.sinks.delta import DeltaSink
from headgate.deliver.sinks.files import FileSink
from headgate.deliver.sinks.jdbc import JdbcSink
from headgate.deliver.sinks.kafka import KafkaSink
from headgate.deliver.sinks.memory import MemorySink
from headgate.deliver.sinks.postponed import PostponedSink
from headgate.deliver.sinks.sink import Sink
from headgate.deliver.sinks.webhook import WebhookSink
from headgate.deliver.sinks.writer import known
from headgate.log.checksum import torn

UNIDENTIFIED = ("memory", "console", "callback")
"""Sinks that do not tell deliveries of this query from those of another."""

KINDS: dict[str, type[Sink]] = {
    "memory": MemorySink,
    "console": ConsoleSink,
    "delta": DeltaSink,
    "kafka": KafkaSink,
    "jdbc": JdbcSink,
    "webhook": WebhookSink,
    "callback": CallbackSink,
}
"""All others are files."""


def made(query: Query, session: SparkSession, directory: Path, default: str = "memory") -> Sink:
    """The sink of a query.

    `directory` is the query's own in the engine's directory: a sink may keep small files of its own in it, which must
    be there again after a restart and must go when the query is dropped. `default` is where a query without INTO goes.
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
    """The sink of a query after a restart: one that is out of reach keeps neither its query nor the others from going
    on.
    """
    format = query.connector.format if query.connector is not None else default
    if format not in UNIDENTIFIED and not known(directory):
        raise torn(directory / "writer", "it is missing")
    try:
        return made(query, session, directory, default)
    except Exception:
        wants_empty = KINDS.get(format, FileSink).wants_empty
        return PostponedSink(
            lambda: made(query, session, directory, default), sinks.SINKS[format].guarantee, wants_empty
        )
