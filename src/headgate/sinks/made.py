"""From a query's INTO to its sink."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession

from headgate.catalog import Column, Query
from headgate.errors import NotYet
from headgate.sinks.console import ConsoleSink
from headgate.sinks.memory import MemorySink
from headgate.sinks.sink import Sink

Kind = Literal["stream", "relation"]


def made(
    query: Query, kind: Kind, columns: Sequence[Column], session: SparkSession, directory: Path, default: str = "memory"
) -> Sink:
    """The sink of a query.

    `directory` is the query's own in the engine's directory: a sink may keep small files of its own in it, which must be there
    again after a restart and must go when the query is dropped. `default` is where a query without INTO goes.
    """
    match query.connector.format if query.connector else default:
        case "memory":
            return MemorySink()
        case "console":
            return ConsoleSink()
        case other:
            raise NotYet(f"a query INTO {other}")
