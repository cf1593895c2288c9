"""The engine: where the life of a query and the life of a tuple meet. It only delegates.

engine = Engine()
engine.execute("CREATE STREAM s (k STRING, v INT); CREATE QUERY q AS SELECT ISTREAM(k, v) FROM s [NOW] WHERE v > 1")
engine.push("s", [(1, {"k": "a", "v": 7})])
engine.advance(1)
engine.query("q").results()     # [Result(at=1, sign='+', row={'k': 'a', 'v': 7})]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import SparkSession

from headgate import masking, texts
from headgate.catalog.declarations import Party
from headgate.catalog.skew import SkewBound
from headgate.cql.definitions import Definition, Listing, ParameterSet, parameter, snapshot_asked
from headgate.engine import inspection, left_out, recovery, stream_statements
from headgate.engine.core import Core
from headgate.engine.overview import overview
from headgate.engine.parameters import set_parameter
from headgate.engine.registry import Answer, Registry
from headgate.engine.running import Running
from headgate.engine.snapshot import Snapshot, taken
from headgate.errors import Place, UserError
from headgate.gsql.translate import sql_value
from headgate.heartbeat.clock import Clock, SystemClock
from headgate.observe.overview import Overview, shown
from headgate.observe.profile import Adaptation, Figures
from headgate.observe.spans import Spans
from headgate.permissions import Permissions, permissions
from headgate.schedule.group import RunningGroup
from headgate.schedule.loop import Epoch
from headgate.schedule.query import RunningQuery
from headgate.server.listener import Door, Listener, listening, opened
from headgate.server.serving import Serving
from headgate.spark.session import started
from headgate.table import counted, paragraphs
from headgate.ticks import Tick

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider


class Engine:
    """Runs continuous queries. One with a directory goes on where the one before it there was, however that ended."""

    def __init__(
        self,
        spark: SparkSession | None = None,
        directory: str | Path | None = None,
        *,
        clock: Clock | None = None,
        partitions: int | None = None,
        default_sink: Literal["memory", "console"] = "memory",
        allow: Iterable[str] | str | Permissions | None = None,
    ) -> None:
        """`allow` says which connectors and places texts may use, such as "parquet=/data/in,kafka"; without it, all."""
        made = permissions(allow)
        self._core = core = Core(spark or started(), directory, clock or SystemClock(), made, partitions)
        self.spark, self.catalog, self.clock = core.spark, core.catalog, core.clock
        self._registry = Registry(core, default_sink)
        self._listeners: list[Listener] = []
        self.resumed = recovery.resume(self._registry)
        core.loop.profiler.begin()
        self._running = Running(self._registry, self.resumed)
        self._closed = False

    def __repr__(self) -> str:
        """How many streams and queries it has, and whether it runs."""
        state = "closed" if self._closed else "running" if self.running else "not running"
        where = "" if self._core.temporary else f' in "{self._core.directory}"'
        streams, queries = len(self.catalog.streams), len(self.catalog.queries)
        return f"Engine({counted(streams, 'stream')}, {counted(queries, 'query', 'queries')}, {state}{where})"

    def __str__(self) -> str:
        return repr(self) if self._closed else "\n\n".join([repr(self), *map(str, shown(self.overview()))])

    def _repr_html_(self) -> str:
        tables = () if self._closed else shown(self.overview())
        return paragraphs([repr(self)]) + "".join(one._repr_html_() for one in tables)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of sources and sinks, and leave a checkpoint if there is a directory; Spark goes on."""
        self._closed = True
        for listener in self._listeners:
            listener.stop()
        self._running.end()
        self._core.stop_work()
        self._running.checkpoint()
        self._core.let_go()
        if self._core.loop.spans is not None:
            self._core.loop.spans.close()
        self._running.raise_failure()

    # definitions

    def execute(
        self,
        cql: str,
        origin: str = "",
        *,
        allow: Iterable[str] | str | Permissions | None = None,
        answers: list[Definition | Answer] | None = None,
    ) -> list[Definition | Answer]:
        """Carry out CQL statements; returns what each of them defined or answered. `allow` limits what they may use.

        A list that is given for the `answers` has those of the statements before one that fails.
        """
        texts.check(cql, "the text of statements")
        if (hidden := masking.left(cql)) is not None:
            raise UserError(
                "masked",
                "a secret is masked here",
                place=Place(cql, hidden.start, hidden.end, origin),
                detail="The text was copied from where secrets are not shown.",
                hint=f"Write the secret itself in place of {masking.MASK}.",
            )
        return self._registry.execute(cql, origin, allow, answers)

    def register_function(self, name: str, function: Any, returns: str | None = None) -> None:
        """Make a Python function usable in CQL by name: a plain function with the SQL type it returns, or a Spark UDF,
        also one that works on pandas or Arrow batches. A pandas UDF from series to scalar is an aggregate. It must be
        deterministic: rows are computed again when they leave a relation.
        """
        self._registry.register_function(name, function, returns)

    def set_parameter(self, query: str, name: str, value: Any, since: Tick | None = None) -> Tick:
        """Give a parameter of a GSQL query another value, without a restart. It counts for tuples stamped `since` or
        later: an instant behind all that has come, by default the first. Returns that instant; it is durable then.
        """
        known = parameter(query, name, self.catalog)
        texts.check(value, "the value")
        asked = ParameterSet(known.query, known.name, sql_value(value, known.type), since)
        with self.turn:
            return set_parameter(self._core, asked).since or 0

    # running

    def push(self, stream: str, rows: Iterable[Any]) -> int:
        """Feed rows to a stream or relation: mappings or sequences of values; pairs (timestamp, row) if it has no
        timestamp column, for a relation also (timestamp, row, "+" or "-"). They are durable when this returns how many
        went to the log; the others are in `dead_letters(stream)`.
        """
        return self._core.inputs.push(stream, rows)

    def wake(self) -> None:
        """Let `run` look at once for what has arrived."""
        self._core.wake_all()

    @property
    def turn(self) -> AbstractContextManager[bool]:
        """The lock to hold while what the engine knows is changed; epochs run without it."""
        return self._core.journal.turn

    def listen(self, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> Listener:
        """Take rows over HTTP too, until the listener or the engine is stopped; port 0 chooses a free one."""
        return self._listening(listening(self, self._core.inputs, opened(host, port, token)))

    def serve(self, door: Door, serving: Serving | None = None) -> Listener:
        """Take rows and statements over HTTP, and give out results, until the listener or the engine is stopped."""
        return self._listening(listening(self, self._core.inputs, door, serving or Serving()))

    def _listening(self, listener: Listener) -> Listener:
        self._listeners.append(listener)
        self._running.endless = True
        return listener

    @property
    def running(self) -> bool:
        """True while `run` goes on."""
        return self._running.going_on

    def on_commit(self, listener: Callable[[], None]) -> None:
        """Call `listener` when epochs were committed or early answers given; it returns at once, and never fails."""
        self._core.loop.on_commit.append(listener)

    def export_traces(self, provider: TracerProvider | None = None) -> Spans:
        """Give each heartbeat that is through to OpenTelemetry, as a trace of spans: to this provider, or to the one
        that the program has configured. The engine never waits for it.
        """
        made = Spans(self.clock, provider)
        before, self._core.loop.spans = self._core.loop.spans, made
        if before is not None:
            before.close()
        return made

    def poll(self) -> int:
        """Take what is new from the sources; returns how many tuples came. Errors come when all have been tried."""
        return self._running.poll()

    def step(self) -> list[Epoch]:
        """Take every query as far as its inputs are complete by what arrived and what was promised."""
        return self._running.step()

    def advance(self, to: Tick | datetime | str) -> list[Epoch]:
        """Declare that nothing up to `to` will still come, and take every query over that kind of time there."""
        return self._running.advance(to)

    def run_once(self, *, close: bool | None = None) -> None:
        """Process all that is available and take the end of the input as the last heartbeat. With `close`, queries go
        on up to the end of the last slide and of the last final group: the default, except in an engine with a
        directory, where more may come. A query over a stream that cannot be read stays; the errors come last.
        """
        self._running.run_once(close)

    def replay(self, rows: int = 1_000, *, close: bool | None = None) -> None:
        """Process all files in order of arrival, so many rows at a time, by the bounds in force: what comes behind a
        heartbeat is late. `sources.replay` says how; the engine needs a `ReplayClock` and no directory.
        """
        self._running.replay(rows, close)

    def run(self, until: Callable[[], bool] | None = None, tell: Callable[[str], None] | None = None) -> None:
        """Go on until `stop()` is called, or until the given condition holds.

        A source that cannot be read, a full disk or a sink that is down is waited for. A query that fails is restarted
        from where it was; if it fails time and again, it stands still. `tell` hears of it. If all queries stand still,
        the run ends with their error, unless the engine is served or was started by `start`. What was never right is
        an error: a disk that could never be written to, or no source that could ever be read.
        """
        self._running.run(until, tell)

    def start(self, tell: Callable[[str], None] | None = None) -> None:
        """Run in a thread of its own, as `run` does, while this program or notebook goes on. `stop` ends it after the
        epoch it is in; `close` waits for that, and raises the error that ended it, if one has.
        """
        self._running.start(tell)

    def stop(self) -> None:
        """Let what runs end after the epoch it is in."""
        self._running.stop()

    # time

    def skew(self, first: str | Party, second: str | Party, *bounds: SkewBound) -> None:
        """Declare what a tuple of the first stream or source says about later ones of the second."""
        stream_statements.declare_skew(self._registry, first, second, bounds)

    def disorder(self, party: str | Party, *bounds: SkewBound) -> None:
        """Declare what a tuple of a source says about its own later ones."""
        stream_statements.declare_disorder(self._registry, party, bounds)

    def latency(self, party: str | Party, most: timedelta) -> None:
        """Declare how long a tuple is under way at the most."""
        stream_statements.declare_latency(self._registry, party, most)

    def sensors(
        self, stream: str, deviations: Mapping[Any, Tick | timedelta], rate: Fraction | float | None = None
    ) -> None:
        """Declare how far each source's clock deviates from the common one, and its least rate in ticks a second."""
        stream_statements.declare_sensors(self._core, stream, deviations, rate)

    def drop_skew(self, first: str | Party, second: str | Party) -> None:
        """Take back what was declared between two streams or sources."""
        stream_statements.drop_skew(self._registry, first, second)

    def drop_disorder(self, party: str | Party) -> None:
        """Take back what was declared of a source with itself."""
        stream_statements.drop_disorder(self._registry, party)

    def drop_latency(self, party: str | Party) -> None:
        """Take back how long a tuple is under way at the most."""
        stream_statements.drop_latency(self._registry, party)

    def drop_sensors(self, party: str | Party) -> None:
        """Take back how far the clock of a source deviates; for a stream, of all its sources."""
        stream_statements.drop_sensors(self._registry, party)

    def pause(self, stream: str) -> None:
        """Say that the stream is not read for a while: it is not silent, and the pause makes no tuple late."""
        stream_statements.pause(self._core, stream)

    def resume(self, stream: str) -> None:
        """Say that the stream is read again, and that what was held back has been."""
        stream_statements.resume(self._core, stream)

    def finish(self, stream: str, source: Any = None) -> None:
        """Say that nothing will come from the stream any more, or from one source of it."""
        stream_statements.finish(self._core, stream, source)

    def punctuate(self, stream: str, to: Tick | datetime | str, source: Any = None) -> None:
        """Give a heartbeat that the source itself gives: it will send nothing stamped up to `to` any more."""
        texts.check(source, "the name of the source")
        stream_statements.punctuate(self._core, stream, to, source)

    def ask(self, stream: str, function: Callable[[], Tick | datetime | str | None]) -> None:
        """Let a function say, when something waits for the stream, up to when nothing will still come on it; None if it
        does not know. It holds until the engine ends, and must answer at once.
        """
        stream_statements.ask_function(self._core, stream, function)

    # asking

    def query(self, name: str) -> RunningQuery:
        """The running query of that name."""
        return self._core.query(name)

    def group(self, name: str) -> RunningGroup:
        """The group of that name, with how far its sink is."""
        return self._core.group(name)

    def queries(self) -> list[RunningQuery]:
        """All running queries, in the order in which they were registered."""
        return self._core.queries()

    def snapshot(self, *queries: str, early: bool = False) -> Snapshot:
        """The rows of several queries at the latest instant at which all of them are complete: `["name"]` has those of
        one, `at` is the instant. They give relations, and their results are kept.

        With `early`, the rows as of their early answers, over one input: `reflects` says which. They may still change.
        """
        return taken(self._core, snapshot_asked(queries, self.catalog, early=early))

    def heartbeat(self, stream: str) -> Any:
        """The instant up to which the stream is known to be complete; None while that is unknown."""
        return inspection.heartbeat(self._core, stream)

    def silent(self, stream: str) -> bool:
        """True if nothing came from the stream for the timeout, so that it no longer holds queries back."""
        return inspection.silent(self._core, stream)

    def bounds(self) -> Listing:
        """The bounds in force, where each came from, and the line of CQL that would declare it."""
        return inspection.bounds(self._core)

    def notes(self) -> list[UserError]:
        """What went wrong with sources and holds up nothing, since it was last asked for: files that were set aside."""
        return self._core.inputs.fresh_notes()

    def overview(self) -> Overview:
        """How everything is at this moment: streams, logs, fragments, queries, sinks, and what holds queries back."""
        return overview(self._core, self.running)

    def profile(self, query: str | None = None) -> list[Figures]:
        """What streams, fragments and operators were seen to do lately: rates, selectivity, time for a row, state. With
        the name of a query, those of that one.
        """
        return inspection.profile(self._core, query)

    def adaptations(self, query: str | None = None) -> list[Adaptation]:
        """What was adapted lately, oldest first: when, what, and by which figures."""
        return self._core.loop.profiler.profile.adaptations.of(query)

    def troubles(self) -> dict[str, dict[str, str]]:
        """What has failed, and is tried again or stands still: streams, queries and sinks by name."""
        return inspection.troubles(self._core)

    def late(self, stream: str) -> dict[Any, int]:
        """How many tuples came late, by source; None is a stream's only source, or stands for forgotten ones."""
        return inspection.late(self._core, stream)

    def counts(self, stream: str) -> dict[str, int]:
        """How many tuples went to the log, and how many to the dead letters, by reason."""
        return inspection.counts(self._core, stream)

    def worst(self, stream: str) -> timedelta | int | None:
        """The largest lateness among the late tuples that are kept; None if there are none."""
        return inspection.worst(self._core, stream)

    def errors(self, query: str, rows: Sequence[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
        """The last rows that a query with ON ERROR SKIP has left out, or some of them, with the error that each raises.
        All that are kept are the results of the query "errors(q)".
        """
        given = left_out.last_rows(self._core, query) if rows is None else rows
        return left_out.with_errors(self._core, query, given)

    def dead_letters(self, stream: str) -> list[dict[str, Any]]:
        """The tuples that came late or could not be read, with the reason."""
        return inspection.dead_letters(self._core, stream)
