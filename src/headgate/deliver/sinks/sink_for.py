"""Makes the sink of a query: looks up its row in `catalog.sinks`, checks that Spark can serve it, loads its class."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import cast

from pyspark.sql import SparkSession

from headgate.catalog.entries import Connector, Group, Query
from headgate.catalog.sinks import SINKS, SinkKind
from headgate.deliver.sinks.sink import Delivery, GroupSink, GroupSinkClass, Sink, SinkClass
from headgate.deliver.sinks.writer import known
from headgate.errors import UserError
from headgate.log.checksum import torn
from headgate.spark.connectors import check_connected
from headgate.spark.session import over_connect


def sink_for(query: Query, session: SparkSession, directory: Path, default: str = "memory") -> Sink:
    """Open the sink of a query. One that cannot be opened is a mistake of the query, and an error.

    `directory` is the query's own folder in the engine's directory. A sink may keep small files in it, which are there
    again after a restart and go when the query is dropped. `default` names the sink of a query without INTO.
    """
    connector = query.connector or Connector(default)
    kind = SINKS[connector.format]
    _check_served(kind, session)
    return sink_class(kind)(query.name, connector, session, directory)


def group_sink_for(group: Group, session: SparkSession, directory: Path) -> GroupSink:
    """Open the sink of a group. One that cannot be opened is a mistake of the group, and an error."""
    assert group.connector is not None
    kind = SINKS[group.connector.format]
    _check_served(kind, session)
    module, _, name = kind.together.partition(":")
    made = cast("GroupSinkClass", getattr(importlib.import_module(f"headgate.deliver.sinks.{module}"), name))
    return made(group.name, group.connector, group.members, session, directory)


def _check_served(kind: SinkKind, session: SparkSession) -> None:
    """Raise an error if Spark's session cannot serve a sink."""
    if kind.needs_jvm and over_connect(session):
        raise UserError(
            "not-over-connect",
            f"the {kind.name} sink does not work over Spark Connect",
            hint="Let headgate start Spark, or hand Engine a session of Spark itself.",
        )
    if kind.needs_connector:
        check_connected(session, kind.name)


def sink_after_restart(query: Query, session: SparkSession, directory: Path, default: str = "memory") -> Sink:
    """Open the sink of a query that was there before a restart.

    One that is out of reach keeps neither its query nor the others from going on: it is opened when there is something
    to deliver, and results wait in the outbox until then.
    """
    kind = SINKS[query.connector.format if query.connector is not None else default]
    if kind.identified and not known(directory):
        raise torn(directory / "writer", "it is missing")
    try:
        return sink_for(query, session, directory, default)
    except Exception:
        return UnopenedSink(lambda: sink_for(query, session, directory, default), kind)


def sink_class(kind: SinkKind) -> SinkClass:
    """The class that the row of a sink names."""
    module, _, name = kind.made_by.partition(":")
    return cast("SinkClass", getattr(importlib.import_module(f"headgate.deliver.sinks.{module}"), name))


class UnopenedSink:
    """A sink that was out of reach when the engine was started again; it is opened at the first delivery."""

    def __init__(self, open_sink: Callable[[], Sink], kind: SinkKind) -> None:
        self.open_sink = open_sink
        self.guarantee, self.wants_empty = kind.guarantee, sink_class(kind).wants_empty
        self._sink: Sink | None = None

    def _opened(self) -> Sink:
        if self._sink is None:
            self._sink = self.open_sink()
        return self._sink

    def deliver(self, delivery: Delivery) -> None:
        """Open the sink if need be, and deliver."""
        self._opened().deliver(delivery)

    def delivered(self) -> int | None:
        """Open the sink if need be, and ask it."""
        return self._opened().delivered()

    def close(self) -> None:
        """Close the sink if it was opened."""
        if self._sink is not None:
            self._sink.close()
