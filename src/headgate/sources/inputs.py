"""The streams and relations of an engine: the inlet and the logs of each, and the source it is read from, if it has
one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, assert_never

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Relation, Stream, late_name
from headgate.catalog.readers import way
from headgate.errors import UserError
from headgate.heartbeat.clock import Clock, EngineClock
from headgate.heartbeat.manager import Heartbeats
from headgate.log.folders import fresh_folder
from headgate.log.journal import Fact, Journal
from headgate.log.log import Log
from headgate.sources.files import FileSource
from headgate.sources.inlet import Arrived, Inlet
from headgate.sources.pushes import Push, Pushes
from headgate.sources.source import Source
from headgate.sources.streaming import StreamingSource
from headgate.sources.tables import TableSource
from headgate.sources.verdict import TUPLE
from headgate.spark.back_off import BackOff
from headgate.spark.failures import check_alive, concerns_all, failure, raise_all
from headgate.spark.session import columns_of, let_go
from headgate.sql import ddl


class Unconnected:
    """Stands for a source that was out of reach when the engine was started again, until it can be connected."""

    starting = True

    def __init__(self, session: SparkSession, inlet: Inlet, connect: Callable[[], Source | None]) -> None:
        self.session = session
        self.inlet = inlet
        self.connect = connect
        self.notes: list[UserError] = []

    def connected(self) -> Source:
        """Try to connect; the source itself."""
        source = self.connect()
        assert source is not None, "what is fed by hand is never out of reach"
        return source

    def reshape(self) -> None:
        """Nothing to do: nothing is read yet."""

    def poll(self, clock: Clock) -> int:
        """Nothing comes yet."""
        return 0

    def drain(self, clock: Clock) -> int:
        """Nothing comes yet."""
        return 0

    def progress(self, clock: Clock) -> int | None:
        """Unknown."""
        return None

    def stop(self) -> None:
        """Nothing to stop."""


class Inputs:
    """All inlets, logs and sources by stream; reads the sources, each on its own so that one that fails holds up no
    other.
    """

    def __init__(
        self,
        spark: SparkSession,
        directory: Path,
        catalog: Catalog,
        heartbeats: Heartbeats,
        journal: Journal,
        clock: EngineClock,
        wake: Callable[[], None],
        look: Callable[[], None],
    ) -> None:
        self.spark = spark
        self.directory = directory
        self.catalog = catalog
        self.heartbeats = heartbeats
        self.journal = journal
        self.clock = clock
        self.wake = wake
        """Called when rows are in a log."""
        self.look = look
        """Called when a source has something to read."""
        self.pushes = Pushes(journal, clock)
        """Rows that are pushed, by any thread."""
        self.reading = threading.Lock()
        """Held while the sources are read: by one thread at a time. Never wait for it in the journal's turn."""
        self.inlets: dict[str, Inlet] = {}
        self.sources: list[Source] = []
        self.schemas: dict[str, StructType] = {}
        self.logs: dict[str, Log] = {}
        """The logs by name; `late(s)` holds the dead letters of s."""
        self.troubles: dict[str, UserError] = {}
        """Why streams cannot be read at the moment, by name."""
        self.notes: list[UserError] = []
        """Problems with sources that hold up nothing and were not reported yet."""
        self.back_offs: dict[str, BackOff] = {}
        """When sources that have failed are tried again, by stream."""
        self.on_failure: Callable[[str, str, Exception], None] = lambda kind, name, error: None
        """Called with "stream", its name and the error when a source has failed. It returns at once."""
        self.worked = False
        """True once any source was read."""

    def inlet(self, name: str) -> Inlet:
        """The inlet of a stream or relation; an error if there is none of that name."""
        relation = self.catalog.relations.get(name.lower())
        return self.inlets[relation.name if relation is not None else self.catalog.stream(name).name]

    def push(self, name: str, rows: Iterable[Any]) -> int:
        """Take rows from memory; how many went to the log. They are durable when this returns."""
        inlet, began_us = self.inlet(name), self.clock.now_us()
        return self.pushes.take(Push(inlet, inlet.rows.read(rows), began_us))[TUPLE]

    def batches(self, name: str) -> Iterable[Arrived]:
        """The batches that have come on a stream or relation lately; none on one that is made of another."""
        inlet = self.inlets.get(name)
        return () if inlet is None else inlet.lately

    # coming and going

    def add(self, stream: Stream | Relation, folder: str | None = None) -> None:
        """Make the inlet and logs of a new stream or relation."""
        logs = self._shaped(stream)
        self.schemas |= logs
        schema = logs[stream.name]
        self.heartbeats.define(stream, self.clock.now_us())
        folder = folder or fresh_folder(self.directory / "streams", stream.name)
        inlet = Inlet(
            stream,
            to_arrow_schema(schema, timezone="UTC"),
            self.directory,
            self.heartbeats,
            self.journal,
            folder,
            self.clock.stand_at,
            self.wake,
        )
        self.inlets[stream.name] = inlet
        self.logs[stream.name] = inlet.log
        if isinstance(stream, Stream):
            self.logs[late_name(stream.name)] = inlet.dead

    def connect(self, stream: Stream | Relation) -> None:
        """Open the source of a new stream or relation, unless its rows are pushed; an error if that cannot be done."""
        source = self._source(stream)
        if source is not None:
            if isinstance(source, FileSource):
                source.check()
            self.sources.append(source)
            self.look()

    def reconnect(self, stream: Stream | Relation) -> None:
        """Open a source after a restart. One that is out of reach does not keep the others from going on."""
        try:
            source = self._source(stream)
        except Exception as error:
            check_alive(self.spark, error)
            source = Unconnected(self.spark, self.inlets[stream.name], lambda: self._source(stream))
        if source is not None:
            self.sources.append(source)

    def _source(self, stream: Stream | Relation) -> Source | None:
        """Open the source of a stream or relation, by the way in which its rows come; None if they are pushed."""
        inlet, connector = self.inlets[stream.name], stream.connector
        if connector is None:
            return None
        match way(stream):
            case "push":
                return None
            case "stream":
                return StreamingSource(self.spark, inlet, connector, self.directory / "sources", self.look)
            case "files":
                return FileSource(self.spark, inlet, connector)
            case "whole":
                return TableSource(self.spark, inlet, connector)
            case other:
                assert_never(other)

    def reshaping(self, stream: Stream) -> Callable[[], None]:
        """What gives a stream one more column. Rows that are in the log already have null there."""
        return partial(self._reshape, stream, self._shaped(stream))

    def _reshape(self, stream: Stream, logs: Mapping[str, StructType]) -> None:
        self.schemas |= logs
        inlet = self.inlets[stream.name]
        inlet.shape(stream, to_arrow_schema(logs[stream.name], timezone="UTC"))
        self.heartbeats.define(stream, self.clock.now_us())
        for source in self.sources:
            if source.inlet is inlet:
                source.reshape()

    def drop(self, name: str) -> None:
        """Forget a stream or relation and stop its source."""
        inlet = self.inlets.pop(name, None)
        if inlet is not None:
            inlet.dropped = True
        for source in [source for source in self.sources if source.inlet is inlet]:
            self.sources.remove(source)
            self.troubles.pop(name, None)
            self.back_offs.pop(name, None)
            with suppress(Exception):  # of one that cannot even be stopped nothing more comes
                source.stop()
        self.heartbeats.remove(name)
        for log in (name, late_name(name)):
            self.schemas.pop(log, None)
            self.logs.pop(log, None)

    def _shaped(self, stream: Stream | Relation) -> dict[str, StructType]:
        """What the logs of a stream or relation hold, as Spark has it, by the name of the log."""
        return {log: columns_of(self.spark, ddl(columns)) for log, columns in self.catalog.logs_of(stream).items()}

    # reading

    def take(self, some: Callable[[Source], int], patient: bool = True) -> int:
        """Let every source hand over rows by calling `some` with it; how many tuples came.

        A source that fails holds up no other: the errors are raised in the end. It is tried again after a pause, or at
        once unless `patient`.
        """
        with self.reading:
            return self._take(some, patient)

    def _take(self, some: Callable[[Source], int], patient: bool) -> int:
        taken = 0
        for source in list(self.sources):
            name = source.inlet.stream.name
            back_off = self.back_offs.setdefault(name, BackOff())
            if patient and not back_off.ready(self.clock.now_us()):
                continue
            try:
                if isinstance(source, Unconnected):
                    connected = source.connected()
                    self.sources[self.sources.index(source)] = source = connected
                taken += some(source)
                starting = source.starting
            except Exception as error:
                if source in self.sources:  # otherwise its stream was dropped meanwhile
                    self._failed(name, error)
                continue
            self.troubles.pop(name, None)
            with self.journal.turn:
                self.notes += source.notes
            source.notes.clear()
            if not starting:
                back_off.succeeded()
                self.worked = True
            with self.journal.turn:
                if source in self.sources and starting:
                    self.heartbeats.resume(name, self.clock.now_us())
        raise_all(list(self.troubles.values()))
        return taken

    def _failed(self, stream: str, error: Exception) -> None:
        """Note that a source failed and leave it alone for a while. An error that concerns all is raised."""
        check_alive(self.spark, error)
        failed = failure(error, "source-failed", f'stream "{stream}" cannot be read')
        if concerns_all(failed):
            raise failed from error
        self.back_offs[stream].failed(self.clock.now_us())
        self.troubles[stream] = failed
        self.on_failure("stream", stream, failed)

    def watched(self) -> bool:
        """True if there are folders whose changes can be seen at a glance."""
        return any(isinstance(source, FileSource) and source.folder.path for source in list(self.sources))

    def stirred(self) -> bool:
        """True if files have come to one of those folders since it was last looked at."""
        return any(isinstance(source, FileSource) and source.stirred() for source in list(self.sources))

    def fresh_notes(self) -> list[UserError]:
        """The problems since the last call that hold up nothing."""
        with self.journal.turn:
            notes, self.notes = self.notes, []
        return notes

    def close(self) -> None:
        """Stop all sources and release their sessions."""
        for source in self.sources:
            with suppress(Exception):  # of one that cannot even be stopped nothing more comes
                source.stop()
                if not isinstance(source, Unconnected):
                    let_go(source.session)

    # what the journal knows of them

    def facts(self) -> Iterator[Fact]:
        """What the journal must know of all streams and relations, for a checkpoint."""
        for name in self.inlets:
            yield from self.facts_of(name)
        for source in self.sources:
            if isinstance(source, FileSource | TableSource):
                yield source.subject, source.state()

    def facts_of(self, name: str) -> list[Fact]:
        """What the journal must know of the logs of one stream or relation."""
        inlet = self.inlets[name]
        return [(part.subject, part.state()) for part in (inlet.log, inlet.dead, inlet)]

    def check_files(self, inlet: Inlet) -> None:
        """Raise an error for the first chunk that is missing or torn, and delete files that never came to count."""
        for log in (inlet.log, inlet.dead):
            log.check()
            log.sweep()

    def folders(self) -> dict[str, set[Path]]:
        """The folders of all streams and relations, by the folder of the engine's directory they lie in."""
        inlets = self.inlets.values()
        return {
            "streams": {inlet.log.directory for inlet in inlets},
            "dead": {inlet.dead.directory for inlet in inlets},
            "sources": {self.directory / "sources" / inlet.folder for inlet in inlets},
        }
