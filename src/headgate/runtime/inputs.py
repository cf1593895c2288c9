"""The streams and relations of an engine: the inlet and the log of each, and the source it is read from, if it has one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headgate.catalog import Catalog, Relation, Stream, late_name
from headgate.delta.sql import name
from headgate.errors import UserError
from headgate.heartbeat.clock import EngineClock
from headgate.heartbeat.manager import Heartbeats
from headgate.log.journal import Fact, Journal
from headgate.log.log import Log
from headgate.runtime.session import columns_of, let_go
from headgate.runtime.staging import fresh_folder
from headgate.sources.files import FileSource
from headgate.sources.inlet import Inlet
from headgate.sources.reading import FILES
from headgate.sources.source import Source
from headgate.sources.streaming import StreamingSource, streams
from headgate.sources.tables import TableSource


class Inputs:
    def __init__(
        self, spark: SparkSession, directory: Path, catalog: Catalog, heartbeats: Heartbeats, journal: Journal,
        clock: EngineClock, wake: Callable[[], None],
    ) -> None:  # fmt: skip
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

    def inlet(self, name: str) -> Inlet:
        relation = self.catalog.relations.get(name.lower())
        return self.inlets[relation.name if relation is not None else self.catalog.stream(name).name]

    # coming and going

    def add(self, stream: Stream | Relation, folder: str | None = None) -> None:
        schema = self._shaped(stream)
        self.heartbeats.add(stream, self.clock.now_us())
        folder = folder or fresh_folder(self.directory / "streams", stream.name)
        inlet = Inlet(
            stream, to_arrow_schema(schema, timezone="UTC"), self.directory, self.heartbeats, self.journal, folder,
            self.clock.stand_at,
        )  # fmt: skip
        self.inlets[stream.name] = inlet
        self.logs[stream.name] = inlet.log
        if isinstance(stream, Stream):
            self.logs[late_name(stream.name)] = inlet.dead

    def connect(self, stream: Stream | Relation) -> None:
        """Make ready what it is read from, if it is not fed by hand."""
        inlet = self.inlets[stream.name]
        if stream.connector is None or stream.connector.format == "memory":
            return
        if stream.domain is not None and streams(stream.connector):
            self.sources.append(StreamingSource(self.spark, inlet, stream.connector, self.directory / "sources", self.wake))
        elif stream.connector.format in FILES:
            self.sources.append(FileSource(self.spark, inlet, stream.connector))
        else:
            self.sources.append(TableSource(self.spark, inlet, stream.connector))

    def reshape(self, stream: Stream) -> None:
        """A stream has one more column: rows that are in the log already have none there."""
        inlet = self.inlets[stream.name]
        inlet.shape(stream, to_arrow_schema(self._shaped(stream), timezone="UTC"))
        self.heartbeats.timelines[stream.name].stream = stream
        for source in self.sources:
            if source.inlet is inlet:
                source.reshape()

    def drop(self, name: str) -> None:
        inlet = self.inlets.pop(name, None)
        for source in [source for source in self.sources if source.inlet is inlet]:
            source.stop()
            self.sources.remove(source)
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

    def take(self, some: Callable[[Source], int]) -> int:
        """Let every source hand over rows; how many tuples came. One that cannot holds up no other: its error comes last."""
        taken, failed = 0, None
        for source in list(self.sources):
            try:
                taken += some(source)
            except UserError as error:
                failed = failed or error
            except KeyError:
                if source in self.sources:
                    raise
                continue  # its stream was dropped meanwhile
            with self.journal.turn:
                if source in self.sources and source.starting:
                    self.heartbeats.resume(source.inlet.stream.name, self.clock.now_us())
        if failed is not None:
            raise failed
        return taken

    def close(self) -> None:
        for source in self.sources:
            source.stop()
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
