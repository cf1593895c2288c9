"""The engine: where the life of a query and the life of a tuple meet. It only delegates.

engine = Engine()
engine.execute("CREATE STREAM s (k STRING, v INT); CREATE QUERY q AS SELECT ISTREAM(k, v) FROM s [NOW] WHERE v > 1")
engine.push("s", [(1, {"k": "a", "v": 7})])
engine.advance(1)
engine.query("q").results()     # [Result(at=1, sign='+', row={'k': 'a', 'v': 7})]
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from pyspark.util import PythonEvalType

from headgate.catalog import UNLIMITED, Catalog, Function, Query, Relation, Stream, Tick, TimeDomain, View, late_name
from headgate.cql.definitions import BoundsAsked, Definition, Dropped, Explanation, Listing, Setting, WhyAsked, defined
from headgate.delta.lower import lower
from headgate.delta.sql import name
from headgate.errors import UserError
from headgate.heartbeat import in_force
from headgate.heartbeat.bounds import Bound
from headgate.heartbeat.clock import Clock, SystemClock
from headgate.heartbeat.declared import Party, Sensors
from headgate.heartbeat.manager import Heartbeats
from headgate.heartbeat.why import Why, why
from headgate.log.log import Log
from headgate.runtime import status
from headgate.runtime.executor import Executor
from headgate.runtime.fragment import Fragment
from headgate.runtime.lock import Lock
from headgate.runtime.loop import Epoch, Loop
from headgate.runtime.query import RunningQuery
from headgate.runtime.session import let_go, started
from headgate.runtime.staging import on_files
from headgate.sinks.console import ConsoleSink
from headgate.sinks.files import ParquetSink
from headgate.sinks.memory import MemorySink
from headgate.sinks.sink import Sink
from headgate.sources.files import FILES, FileSource
from headgate.sources.inlet import Inlet, ticks
from headgate.sources.tables import TableSource

POLL_SECONDS = 0.5
STATUS_US = 1_000_000
AGGREGATING = (PythonEvalType.SQL_GROUPED_AGG_PANDAS_UDF, PythonEvalType.SQL_GROUPED_AGG_ARROW_UDF)


class Engine:
    def __init__(
        self,
        spark: SparkSession | None = None,
        directory: str | Path | None = None,
        *,
        clock: Clock | None = None,
        partitions: int | None = None,
        default_sink: Literal["memory", "console"] = "memory",
    ) -> None:
        self.spark = spark or started()
        self.catalog = Catalog()
        self.clock: Clock = clock or SystemClock()
        self._temporary = directory is None
        self._directory = on_files(directory) if directory is not None else Path(tempfile.mkdtemp(prefix="headgate-"))
        self._directory.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self._directory)
        self._partitions = partitions
        self._default_sink = default_sink
        self._heartbeats = Heartbeats(self.catalog.declarations)
        self._heartbeats.set_date(self.clock.date_us(), self.clock.now_us())
        self._inlets: dict[str, Inlet] = {}
        self._sources: list[FileSource | TableSource] = []
        self._schemas: dict[str, StructType] = {}
        self._logs: dict[str, Log] = {}
        self._queries: dict[str, RunningQuery] = {}
        self._loop = Loop(self.clock, self._heartbeats, self._logs)
        self._loop.deliver = self._deliver
        self._stopping = False
        self._told_us = -STATUS_US

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Forget everything that was only in memory; Spark goes on."""
        for user in (*self._loop.executors.values(), *self._sources):
            let_go(user.session)
        self._lock.release()
        if self._temporary:
            shutil.rmtree(self._directory, ignore_errors=True)

    # definitions

    def execute(self, cql: str, origin: str = "") -> list[Definition | Why]:
        """Carry out CQL statements; returns what each of them defined or answered."""
        definitions: list[Definition | Why] = []
        for definition in defined(cql, self.catalog, origin):
            definitions.append(definition)
            match definition:
                case BoundsAsked():
                    definitions[-1] = self.bounds()
                case WhyAsked(query):
                    definitions[-1] = self.query(query).why()
                case Stream() | Relation():
                    self._add_or_forget(definition)
                case Query():
                    self._add_query(definition)
                case Dropped():
                    self._forget(definition)
                case Setting():
                    self._heed_settings()
                case View() | Function() | Explanation() | Listing():
                    pass
        return definitions

    def _heed_settings(self) -> None:
        """Streams' policies and bounds may have changed as well."""
        settings = self.catalog.settings
        self._heartbeats.timeout_us = settings.timeout_us
        self._heartbeats.estimating = settings.estimation == "on"
        self._heartbeats.generator.set_unit(settings.clock_unit_us)
        for stream in self.catalog.streams.values():
            self._heartbeats.timelines[stream.name].stream = stream
            self._inlets[stream.name].stream = stream
        self._heartbeats.heed()

    def _forget(self, dropped: Dropped) -> None:
        """Stop what was dropped. Logs and results stay on disk until the engine's directory goes."""
        match dropped.kind:
            case "query" if dropped.name:
                let_go(self._loop.executors.pop(dropped.name).session)
                del self._queries[dropped.name.lower()]
            case "stream" | "relation" if dropped.name:
                inlet = self._inlets.pop(dropped.name, None)
                self._sources = [source for source in self._sources if source.inlet is not inlet]
                self._heartbeats.remove(dropped.name)
                for known in (self._schemas, self._logs):
                    for log in (dropped.name, late_name(dropped.name)):
                        known.pop(log, None)

    def register_function(self, name: str, function: Any, returns: str | None = None) -> None:
        """Make a Python function usable in CQL by name: a plain function with the SQL type it returns, or a Spark UDF,
        also one that works on pandas or Arrow batches. A pandas UDF from series to scalar is an aggregate.
        """
        registered = (
            self.spark.udf.register(name, function) if returns is None else self.spark.udf.register(name, function, returns)
        )
        if getattr(registered, "evalType", None) in AGGREGATING:
            self.catalog.aggregates.add(name.lower())

    def _add_input(self, stream: Stream | Relation) -> None:
        columns = ", ".join(f"{name(column.name)} {column.type}" for column in stream.columns)
        sign = ", _n BIGINT" if isinstance(stream, Relation) else ""
        schema = self.spark.createDataFrame([], f"{columns}{sign}, _t BIGINT, _s BIGINT").schema
        self._schemas[stream.name] = schema
        self._heartbeats.add(stream, self.clock.now_us())
        inlet = Inlet(stream, to_arrow_schema(schema, timezone="UTC"), self._directory, self._heartbeats)
        self._inlets[stream.name] = inlet
        self._logs[stream.name] = inlet.log
        if isinstance(stream, Stream):
            late = self.catalog.late_of(stream)
            letters = ", ".join(f"{name(column.name)} {column.type}" for column in late.columns)
            self._schemas[late.name] = self.spark.createDataFrame([], f"{letters}, _t BIGINT, _s BIGINT").schema
            self._logs[late.name] = inlet.dead
        if stream.connector is None or stream.connector.format == "memory":
            return
        if stream.connector.format in FILES:
            self._sources.append(FileSource(self.spark, inlet, stream.connector))
        else:
            self._sources.append(TableSource(self.spark, inlet, stream.connector))

    def _add_query(self, query: Query) -> None:
        program, brief = lower(query.plan), lower(query.plan, few=True)
        forgotten = [log.forgotten for stream in program.streams() if (log := self._logs[stream]).forgotten is not None]
        fragment = Fragment(query.name, query.text, program, brief, max(forgotten) if forgotten else None)
        directory = self._directory / "queries" / query.name.lower()
        try:
            executor = Executor(self.spark, fragment, self._logs, self._schemas, directory, self._partitions)
            sink = self._sink(query, directory)
        except UserError:
            del self.catalog.queries[query.name.lower()]
            raise
        self._loop.executors[query.name] = executor
        self._queries[query.name.lower()] = RunningQuery(query, executor, sink, self.catalog, self._why)

    def _sink(self, query: Query, directory: Path) -> Sink:
        match query.connector.format if query.connector else self._default_sink:
            case "console":
                return ConsoleSink(query.name, directory / "results")
            case "parquet":
                assert query.connector is not None
                return ParquetSink(query.name, query.connector)
            case _:
                return MemorySink(directory / "results")

    def _add_or_forget(self, stream: Stream | Relation) -> None:
        """A stream that cannot be set up is not known either: its name is free for the next attempt."""
        try:
            self._add_input(stream)
        except Exception:
            kind = "stream" if isinstance(stream, Stream) else "relation"
            del self.catalog.of_kind(kind)[stream.name.lower()]
            self._forget(Dropped(kind, stream.name))
            raise

    # running

    def push(self, stream: str, rows: Iterable[Any]) -> int:
        """Feed rows to a stream or relation: mappings or sequences of values; pairs (timestamp, row) if it has no
        timestamp column, for a relation also (timestamp, row, "+" or "-").

        Returns how many went to the log; the others are in `dead_letters(stream)`.
        """
        return self._inlet(stream).push(rows, self.clock)

    def _inlet(self, name: str) -> Inlet:
        relation = self.catalog.relations.get(name.lower())
        return self._inlets[relation.name if relation is not None else self.catalog.stream(name).name]

    def step(self) -> list[Epoch]:
        """Take every query as far as its inputs are complete by what arrived and what was promised."""
        epochs = self._loop.step()
        self._loop.tidy()
        return epochs

    def advance(self, to: Tick | datetime | str) -> list[Epoch]:
        """Declare that nothing at or before `to` will still come on any stream, and take every query there.

        A point in time says nothing about queries over integer time.
        """
        until = to if isinstance(to, int) else ticks(to)
        meant = [query for query in self.queries() if isinstance(to, int) or query.domain is TimeDomain.TIMESTAMP]
        epochs = self._loop.take({query.name: until for query in meant})
        self._loop.tidy()
        return epochs

    def poll(self) -> int:
        """Read what is new in the files behind streams; returns how many tuples came.

        A source that cannot be read holds up no other: its error is raised when all have been tried.
        """
        taken, failed = 0, None
        for source in self._sources:
            try:
                taken += source.poll(self.clock)
            except UserError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return taken

    def run_once(self) -> None:
        """Process all that is available and take the end of the input as the last heartbeat."""
        self.poll()
        last = {domain: self._last(domain) for domain in TimeDomain}
        ends = {query.name: last[query.domain] for query in self._queries.values()}
        self._loop.take({name: end for name, end in ends.items() if end is not None})

    def _last(self, domain: TimeDomain) -> Tick | None:
        """The largest timestamp that has come on any stream with that kind of time."""
        inputs: list[Stream | Relation] = [*self.catalog.streams.values(), *self.catalog.relations.values()]
        members = (one.name for one in inputs if one.domain is domain)
        seen = (self._heartbeats.references(member) for member in members)
        return max((largest for largest in seen if largest is not None), default=None)

    def run(self, until: Callable[[], bool] | None = None) -> None:
        """Go on until `stop()` is called, or until the given condition holds."""
        self._stopping = False
        self._tell_status()
        while not self._stopping and not (until is not None and until()):
            arrived = self.poll()
            epochs = self.step()
            self._tell_status()
            if not epochs and not arrived:
                time.sleep(POLL_SECONDS)

    def _tell_status(self) -> None:
        """Leave word in the engine's directory, for `headgate why` to read from outside."""
        now_us = self.clock.now_us()
        if self._temporary or now_us - self._told_us < STATUS_US:
            return
        self._told_us = now_us
        status.write(self._directory, {query.name: query.why() for query in self.queries()})

    def stop(self) -> None:
        """Let `run` end after the epoch it is in."""
        self._stopping = True

    def _deliver(self, epoch: Epoch, files: list[Path]) -> None:
        self._queries[epoch.query.lower()].deliver(files)

    # time

    def skew(self, first: str | Party, second: str | Party, *bounds: Bound) -> None:
        """Declare what a tuple of the first stream or source says about later ones of the second."""
        self._declare(f"SKEW FROM {_written(first)} TO {_written(second)}", second, bounds)

    def disorder(self, party: str | Party, *bounds: Bound) -> None:
        """Declare what a tuple of a source says about its own later ones."""
        self._declare(f"DISORDER OF {_written(party)}", party, bounds)

    def latency(self, party: str | Party, most: timedelta) -> None:
        """Declare how long a tuple is under way at the most."""
        self.execute(f"LATENCY OF {_written(party)} {most // timedelta(microseconds=1)} MICROSECONDS")

    def _declare(self, statement: str, receiver: str | Party, bounds: Sequence[Bound]) -> None:
        """By the statement of CQL, so that both refuse the same nonsense."""
        name = receiver if isinstance(receiver, str) else receiver.stream
        found = self.catalog.streams.get(name.lower()) or self.catalog.relations.get(name.lower())
        domain = found.domain if found is not None and found.domain is not None else TimeDomain.INTEGER
        self.execute(f"{statement} {in_force.pairs(bounds, domain)}")

    def sensors(self, stream: str, deviations: Mapping[Any, Tick | timedelta], rate: Fraction | float | None = None) -> None:
        """Declare how far each source's clock deviates from the common one, and how many ticks a second it advances at least."""
        found = self.catalog.stream(stream)
        if found.source is None:
            raise UserError("no-source-column", f'stream "{found.name}" holds one source', hint="SOURCE BY column")
        known = {
            source: one // timedelta(microseconds=1) if isinstance(one, timedelta) else one for source, one in deviations.items()
        }
        least = min(known.values(), default=0)
        if least < 0 or (rate is not None and rate <= 0):
            raise UserError("bad-bound", "a deviation cannot be negative" if least < 0 else "a rate must be more than nothing")
        exact = None if rate is None else Fraction(rate)
        self.catalog.declarations.sensors |= {Party(found.name, str(source)): Sensors(d, exact) for source, d in known.items()}
        self._heartbeats.heed()

    def pause(self, stream: str) -> None:
        """Say that the stream is not read for a while: it is not silent, and nothing of it will be late because of the pause."""
        self._heartbeats.pause(self.catalog.stream(stream).name, self.clock.now_us())

    def resume(self, stream: str) -> None:
        """Say that the stream is read again, and that what was held back has been."""
        self._heartbeats.resume(self.catalog.stream(stream).name, self.clock.now_us())

    def finish(self, stream: str, source: Any = None) -> None:
        """Say that nothing will come from the stream any more, or from one source of it."""
        self._heartbeats.finish(self.catalog.stream(stream).name, source, self.clock.now_us())

    def punctuate(self, stream: str, to: Tick | datetime | str, source: Any = None) -> None:
        """A heartbeat the source itself gives: it will send nothing stamped up to `to` any more."""
        upto = to if isinstance(to, int) else ticks(to)
        self._heartbeats.punctuated(self.catalog.stream(stream).name, source, upto, self.clock.now_us())

    # asking

    def query(self, name: str) -> RunningQuery:
        return self._queries[self.catalog.query(name).name.lower()]

    def queries(self) -> list[RunningQuery]:
        return list(self._queries.values())

    def heartbeat(self, stream: str) -> Any:
        """Up to when the stream is known to be complete; None while that is unknown."""
        found = self.catalog.stream(stream)
        standing = self._heartbeats.standing(found.name, self.clock.now_us())
        instants = self._heartbeats.limit(found.name), standing.complete
        known = [tick for tick in instants if tick is not None and tick != UNLIMITED]
        return found.domain.moment(max(known)) if known else None

    def silent(self, stream: str) -> bool:
        """Whether nothing came from the stream for the timeout, so that it no longer holds queries back."""
        return self._heartbeats.silent(self.catalog.stream(stream).name, self.clock.now_us())

    def bounds(self) -> Listing:
        """The bounds in force, where each came from, and the line of CQL that would declare it."""
        return Listing(in_force.HEADINGS, in_force.all_rows(self._heartbeats))

    def _why(self, query: RunningQuery) -> Why:
        streams = query.streams()
        waiting = {stream: self._logs[stream].rows_after(query.reached) for stream in streams}
        now_us = self.clock.now_us()
        return why(self._heartbeats, query.name, streams, query.reached if query.epochs else None, waiting, now_us)

    def late(self, stream: str) -> dict[Any, int]:
        """How many tuples came late, by source; a stream without SOURCE BY has the one source None."""
        timeline = self._heartbeats.timelines[self.catalog.stream(stream).name]
        return {source: int(timeline.late[number]) for source, number in timeline.sources.items() if timeline.late[number]}

    def counts(self, stream: str) -> dict[str, int]:
        """How many tuples went to the log, and how many to the dead letters, by reason."""
        inlet = self._inlet(stream)
        return {"taken": inlet.log.rows, **inlet.counts}

    def dead_letters(self, stream: str) -> list[dict[str, Any]]:
        """The tuples that came late or could not be read, with the reason."""
        inlet = self._inlet(stream)
        columns = inlet.dead_schema.names
        return [row for chunk in inlet.dead.chunks for row in pq.ParquetFile(chunk.path).read(columns).to_pylist()]


def _written(party: str | Party) -> str:
    """A stream or source as CQL names it."""
    return in_force.named(Party(party) if isinstance(party, str) else party)
