"""The streams and relations of an engine: the inlet and the log of each, and the source it is read from, if it has
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Relation, Stream, late_name
from headgate.cql.readers import FILES
from headgate.errors import UserError
from headgate.heartbeat.clock import Clock, EngineClock
from headgate.heartbeat.manager import Heartbeats
from headgate.log.journal import Fact, Journal
from headgate.log.log import Log
from headgate.sources.files import FileSource
from headgate.sources.inlet import Inlet
from headgate.sources.source import Source
from headgate.sources.streaming import StreamingSource, streams
from headgate.sources.tables import TableSource
from headgate.spark.back_off import BackOff
from headgate.spark.failures import check_alive, concerns_all, failure, raise_all
from headgate.spark.session import columns_of, let_go
from headgate.spark.staging import fresh_folder
from headgate.sql import name


class Unconnected:
    """A source that was out of reach when the engine was started again: it is connected as soon as that can be done."""

    starting = True

    def __init__(self, session: SparkSession, inlet: Inlet, connect: Callable[[], Source | None]) -> None:
        self.session = session
        self.inlet = inlet
        self.connect = connect
        self.notes: list[UserError] = []

    def connected(self) -> Source:
        source = self.connect()
        assert source is not None, "what is fed by hand is never out of reach"
        return source

    def reshape(self) -> None:
        """Nothing is read yet."""

    def poll(self, clock: Clock) -> int:
        return 0

    def drain(self, clock: Clock) -> int:
        return 0

    def progress(self, clock: Clock) -> int | None:
        return None

    def stop(self) -> None:
        """There is nothing to stop."""


class Inputs:
    def __init__(
        self,
        spark: SparkSession,
        directory: Path,
        catalog: Catalog,
        heartbeats: Heartbeats,
        journal: Journal,
        clock: EngineClock,
        wake: Callable[[], None],
    ) -> None:
        self.spark = spark
        self.directory = directory
        self.catalog = catalog
        self.heartbeats = heartbeats
        self.journal = journal
        self.clock = clock
        self.wake = wake
        self.inlets: dict[str, Inlet] = {}
        self.sources: list[Source] = []
        self.schemas: dict[str, StructType] = {}
        self.logs: dict[str, Log] = {}
        """By name; `late(s)` are the dead letters of s."""
        self.troubles: dict[str, UserError] = {}
        """Why streams are not read at the moment, by name."""
        self.notes: list[UserError] = []
        """What went wrong with sources and holds up nothing, and was not told yet."""
        self.back_offs: dict[str, BackOff] = {}
        """When sources that have failed are tried again, by stream."""
        self.worked = False
        """Whether any source was ever read."""

    def inlet(self, name: str) -> Inlet:
        relation = self.catalog.relations.get(name.lower())
        return self.inlets[relation.name if relation is not None else self.catalog.stream(name).name]

    # coming and going

    def add(self, stream: Stream | Relation, folder: str | None = None) -> None:
        schema = self._shaped(stream)
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
        )
        self.inlets[stream.name] = inlet
        self.logs[stream.name] = inlet.log
        if isinstance(stream, Stream):
            self.logs[late_name(stream.name)] = inlet.dead

    def connect(self, stream: Stream | Relation) -> None:
        """Make ready what it is read from, if it is not fed by hand."""
        source = self._source(stream)
        if source is not None:
            if isinstance(source, FileSource):
                source.check()
            self.sources.append(source)

    def reconnect(self, stream: Stream | Relation) -> None:
        """Connect a source after a restart: one that is out of reach does not keep the others from going on."""
        try:
            source = self._source(stream)
        except Exception as error:
            check_alive(self.spark, error)
            source = Unconnected(self.spark, self.inlets[stream.name], lambda: self._source(stream))
        if source is not None:
            self.sources.append(source)

    def _source(self, stream: Stream | Relation) -> Source | None:
        inlet = self.inlets[stream.name]
        if stream.connector is None or stream.connector.format == "memory":
            return None
        if stream.domain is not None and streams(stream.connector):
            return StreamingSource(self.spark, inlet, stream.connector, self.directory / "sources", self.wake)
        if stream.connector.format in FILES:
            return FileSource(self.spark, inlet, stream.connector)
        return TableSource(self.spark, inlet, stream.connector)

    def reshape(self, stream: Stream) -> None:
        """A stream has one more column: rows that are in the log already have none there."""
        inlet = self.inlets[stream.name]
        inlet.shape(stream, to_arrow_schema(self._shaped(stream), timezone="UTC"))
        self.heartbeats.define(stream, self.clock.now_us())
        for source in self.sources:
            if source.inlet is inlet:
                source.reshape()

    def drop(self, name: str) -> None:
        inlet = self.inlets.pop(name, None)
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

    def _shaped(self, stream: Stream | Relation) -> StructType:
        """What the log of a stream or relation holds, as Spark has it; the same of a stream's dead letters."""
        columns = ", ".join(f"{name(column.name)} {column.type}" for column in stream.columns)
        sign = ", _n BIGINT" if isinstance(stream, Relation) else ""
        schema = columns_of(self.spark, f"{columns}{sign}, _t BIGINT, _s BIGINT")
        self.schemas[stream.name] = schema
        if isinstance(stream, Stream):
            late = self.catalog.late_of(stream)
            letters = ", ".join(f"{name(column.name)} {column.type}" for column in late.columns)
            self.schemas[late.name] = columns_of(self.spark, f"{letters}, _t BIGINT, _s BIGINT")
        return schema

    # reading

    def take(self, some: Callable[[Source], int], patient: bool = True) -> int:
        """Let every source hand over rows; how many tuples came. One that cannot holds up no other: the errors come
        last.

        A source that has failed is tried again after a while, or at once if nobody is patient.
        """
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
        """The source is left alone for a while. What concerns all is raised."""
        check_alive(self.spark, error)
        failed = failure(error, "source-failed", f'stream "{stream}" cannot be read')
        if concerns_all(failed):
            raise failed from error
        self.back_offs[stream].failed(self.clock.now_us())
        self.troubles[stream] = failed

    def told(self) -> list[UserError]:
        """What went wrong since it was last asked for, and holds up nothing."""
        notes, self.notes = self.notes, []
        return notes

    def close(self) -> None:
        for source in self.sources:
            with suppress(Exception):  # of one that cannot even be stopped nothing more comes
                source.stop()
                if not isinstance(source, Unconnected):
                    let_go(source.session)

    # what the journal knows of them

    def facts(self) -> Iterator[Fact]:
        for inlet in self.inlets.values():
            yield from ((part.subject, part.state()) for part in (inlet.log, inlet.dead, inlet))
        for source in self.sources:
            if isinstance(source, FileSource | TableSource):
                yield source.subject, source.state()

    def check_files(self) -> None:
        """Raise an error that names the first chunk that is missing or torn; delete what never came to count."""
        for inlet in self.inlets.values():
            for log in (inlet.log, inlet.dead):
                log.check()
                log.sweep()

    def folders(self) -> dict[str, set[Path]]:
        """Where they have their files."""
        inlets = self.inlets.values()
        return {
            "streams": {inlet.log.directory for inlet in inlets},
            "dead": {inlet.dead.directory for inlet in inlets},
            "sources": {self.directory / "sources" / inlet.folder for inlet in inlets},
        }
