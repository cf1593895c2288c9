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
import threading
import time
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from copy import deepcopy
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from pyspark.util import PythonEvalType

from headgate.catalog import sinks
from headgate.catalog.catalog import Catalog
from headgate.catalog.declarations import Party, Sensors
from headgate.catalog.entries import Function, Query, Relation, Stream, View
from headgate.catalog.skew import Bound
from headgate.cql.definitions import (
    Altered,
    BoundsAsked,
    Definition,
    Dropped,
    Explanation,
    Listing,
    Setting,
    WhyAsked,
    defined,
)
from headgate.deliver.courier import CLOSE_SECONDS, DROP_SECONDS
from headgate.deliver.outbox import Outbox
from headgate.deliver.sinks.made import made, made_again
from headgate.delta.lower import lower
from headgate.errors import UserError
from headgate.execute.executor import Executor
from headgate.execute.fragment import Ahead, Fragment
from headgate.heartbeat import in_force
from headgate.heartbeat.clock import Clock, EngineClock, SystemClock
from headgate.heartbeat.manager import Heartbeats, base
from headgate.heartbeat.saved import restore, saved
from headgate.heartbeat.why import Why, why
from headgate.log.checksum import writing
from headgate.log.journal import Fact, Journal
from headgate.log.lock import Lock
from headgate.log.log import Log
from headgate.observe import status
from headgate.observe.trouble import Trouble
from headgate.observe.watch import watching
from headgate.permissions import Permissions, permissions
from headgate.plan.fragments import Part, all_parts, split
from headgate.plan.nodes import domain, sources
from headgate.plan.scopes import scopes
from headgate.plan.settled import settled
from headgate.recovery import Statement, Statements
from headgate.schedule.asking import Asking
from headgate.schedule.loop import HAND_SECONDS, Epoch, Loop
from headgate.schedule.query import RunningQuery
from headgate.scope import described
from headgate.server.listener import Listener, listening
from headgate.sources.inlet import ticks
from headgate.sources.inputs import Inputs
from headgate.sources.replay import ReplayClock, date_us, histories
from headgate.spark.failures import concerns_all, raise_all, said, sentence
from headgate.spark.session import check_zone, started
from headgate.spark.staging import fresh_folder, on_files
from headgate.ticks import UNLIMITED, Tick, TimeDomain

POLL_SECONDS = 0.5
WAIT_SECONDS = 0.05
PATIENCE_US = 30_000_000
"""How long a replay waits for a sink that takes nothing."""
STATUS_US = 1_000_000
ANSWERS = (BoundsAsked, WhyAsked, Explanation, Listing)
"""Statements that leave everything as it is."""
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
        allow: Iterable[str] | str | Permissions | None = None,
    ) -> None:
        """An engine with a directory remembers: another one there goes on where this one was, however it ended.

        `allow` says which connectors and places texts may use, such as "parquet=/data/in,kafka"; without it, all.
        """
        self.spark = spark or started()
        check_zone(str(self.spark.conf.get("spark.sql.session.timeZone")))
        self.catalog = Catalog()
        self._permissions = permissions(allow)
        self.catalog.permissions = None  # what the journal holds was allowed when it was said
        self.clock = EngineClock(clock or SystemClock())
        self._temporary = directory is None
        self._directory = on_files(tempfile.mkdtemp(prefix="headgate-") if directory is None else directory)
        self._lock = Lock(self._directory)
        self._partitions = partitions
        self._default_sink = default_sink
        self._journal = Journal(None if self._temporary else self._directory)
        self._journal.subjects["engine"] = self._apply
        self._statements = Statements()
        self._heartbeats = Heartbeats(self.catalog.declarations)
        self._heartbeats.set_date(self.clock.date_us(), self.clock.now_us())
        self._wake = threading.Event()
        """Something has arrived, or is to end: whoever waits for the next look at the sources need not."""
        self._inputs = Inputs(
            self.spark, self._directory, self.catalog, self._heartbeats, self._journal, self.clock, self._wake.set
        )
        self._asking = Asking(self.clock, self._heartbeats, self._inputs.sources)
        self._loop = Loop(
            self.clock, self._heartbeats, self._asking, self._inputs.logs, self._journal, lambda: self.catalog.settings
        )
        self._source_trouble, self._query_trouble = Trouble(), Trouble()
        """Each trouble is told once, and that it is over."""
        self._well = False
        """Whether things have worked before: what never did is a mistake and not a trouble."""
        self._resuming: dict[str, tuple[Query, str | None]] = {}
        """While the journal is read: queries that were registered and not dropped so far, and where their files are."""
        self._stopping = False
        self._dropped = False
        self._told_us = -STATUS_US
        self._listeners: list[Listener] = []
        try:
            self.resumed = self._resume()
        except BaseException:
            self._lock.release()
            raise
        self.catalog.permissions = self._permissions

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of sources and sinks, and leave a checkpoint if there is a directory; Spark goes on."""
        for listener in self._listeners:
            listener.stop()
        self._inputs.close()
        end_s = time.monotonic() + CLOSE_SECONDS
        self._loop.finish(CLOSE_SECONDS)
        for query in self.queries():
            query.close(max(0.0, end_s - time.monotonic()))
        self._journal.checkpoint(self._facts)
        self._journal.close()
        self._lock.release()
        if self._temporary:
            shutil.rmtree(self._directory, ignore_errors=True)

    # what the journal knows of it

    def _resume(self) -> bool:
        """Go on where the engine before this one was; whether there was one."""
        found = self._journal.read()
        if not found:
            return False
        for inlet in self._inputs.inlets.values():
            self._inputs.reconnect(inlet.stream)
        for definition, folder in self._resuming.values():
            self._add_query(definition, folder)
        self._resuming, self._journal.waiting = {}, {}
        self.clock.go_on()
        self._heartbeats.set_date(self.clock.date_us(), self.clock.now_us())
        self._inputs.check_files()
        for query in self.queries():
            query.check_files()
            for fragment in (executor.fragment for executor in query.executors):
                for stream in (
                    fragment.part.streams if fragment.begun else ()
                ):  # one that never ran has given no heartbeat
                    self._heartbeats.give(stream, fragment.after, fragment.part.scopes.get(stream), again=True)
        for timeline in self._heartbeats.timelines.values():
            if timeline.external and not timeline.paused:  # nobody was silent because we did not listen
                self._heartbeats.resume(timeline.name, self.clock.now_us())
        self._sweep()
        return True

    def _apply(self, what: dict[str, Any]) -> None:
        """Do once more what was done before the restart."""
        match what:
            case {"statement": said}:
                statement = Statement(**{**said, "said": tuple(said["said"])})
                self.clock.stand_at(statement.now)
                again = (statement.query or "").lower() in self.catalog.queries
                cql = "ALTER" + statement.cql[len("CREATE") :] if again else statement.cql
                for _, definition in defined(cql, self.catalog):
                    self._carry_out_again(definition, statement)
                    self._statements.recall(statement, definition)
            case {"sensors": [stream, known, rate]}:
                self._declare_sensors(stream, known, None if rate is None else Fraction(rate))
            case {"aggregate": function}:
                self.catalog.aggregates.add(function)
            case {"heartbeats": state, "now": now_us}:
                self.clock.stand_at(now_us)
                restore(self._heartbeats, state, self.catalog)
            case {"told": [method, *arguments], "now": now_us}:
                self.clock.stand_at(now_us)
                getattr(self._heartbeats, method)(*arguments, now_us)

    def _carry_out_again(self, definition: Definition, statement: Statement) -> None:
        """As before the restart; but what queries and sources need of the world is only touched for those that are
        left.
        """
        match definition:
            case Stream() | Relation():
                self._inputs.add(definition, statement.folder)
            case Query() | Altered(Query()):
                query = definition.now if isinstance(definition, Altered) else definition
                assert isinstance(query, Query)
                if len(query.by_groups) != statement.groups:  # a version that knew no groups ran it as a whole
                    query = self.catalog.queries[query.name.lower()] = replace(query, by_groups=())
                self._resuming[query.name] = query, statement.folder
            case Dropped("query", name):
                self._resuming.pop(name, None)
            case _:
                self._carry_out(definition)

    def _facts(self) -> Iterator[Fact]:
        """A checkpoint: the shortest account that leads to where the engine is."""
        for function in sorted(self.catalog.aggregates):
            yield "engine", {"aggregate": function}
        for statement in self._statements.state():
            yield "engine", {"statement": statement}
        sensors = [
            (party.stream, party.source, found)
            for party, found in self.catalog.declarations.sensors.items()
            if party.source is not None  # of a whole stream they were declared by a statement
        ]
        for (stream, rate), members in groupby(sorted(sensors, key=_by_rate), lambda one: (one[0], one[2].rate)):
            known = {source: found.deviation for _, source, found in members}
            yield "engine", {"sensors": [stream, known, None if rate is None else str(rate)]}
        yield "engine", {"heartbeats": saved(self._heartbeats), "now": self.clock.now_us()}
        yield from self._inputs.facts()
        for query in self.queries():
            yield from query.facts()

    def _sweep(self) -> None:
        """Delete the folders of what is no longer known."""
        known = self._inputs.folders() | {"queries": {query.outbox.directory for query in self.queries()}}
        for kind, folders in known.items():
            there = self._directory / kind
            for folder in there.iterdir() if there.exists() else ():
                if folder not in folders:
                    shutil.rmtree(folder, ignore_errors=True)

    # definitions

    def execute(
        self, cql: str, origin: str = "", *, allow: Iterable[str] | str | Permissions | None = None
    ) -> list[Definition | Why]:
        """Carry out CQL statements; returns what each of them defined or answered.

        `allow` says what this text may use, where it comes from somebody else than whoever runs the engine.
        """
        answers: list[Definition | Why] = []
        with self._journal.turn, self._allowing(allow):
            before = self._declared()
            passed_over: list[Definition] = []

            def registered(said: str) -> Definition | None:
                known = self._statements.recalled(said)
                passed_over.extend([known] if known is not None else [])
                return known

            for said, definition in defined(cql, self.catalog, origin, registered):
                if any(definition is known for known in passed_over):
                    answers.append(definition)
                    continue
                with self._journal.together():
                    answers.append(self._carry_out(definition))
                    before, settled = self._declared(), before
                    changes = (
                        before != settled if isinstance(definition, Setting) else not isinstance(definition, ANSWERS)
                    )
                    if changes:
                        self._remember(said, definition)
                self._dropped |= isinstance(definition, Dropped | Altered)
        return answers

    @contextmanager
    def _allowing(self, allow: Iterable[str] | str | Permissions | None) -> Iterator[None]:
        self.catalog.permissions = self._permissions if allow is None else permissions(allow)
        try:
            yield
        finally:
            self.catalog.permissions = self._permissions

    def _declared(self) -> tuple[Any, ...]:
        """What settings and declarations say, to see whether a statement changes anything."""
        catalog = self.catalog
        return catalog.settings, deepcopy(catalog.declarations), tuple(catalog.streams.values()), catalog.pending

    def _remember(self, said: str, definition: Definition) -> None:
        made = definition.now if isinstance(definition, Altered) else definition
        folder = None
        if isinstance(made, Query):
            folder = self.query(made.name).outbox.directory.name
        elif isinstance(made, Stream | Relation):
            folder = self._inputs.inlets[made.name].folder
        statement = self._statements.of(said, definition, self.clock.now_us(), folder)
        done = lambda: self._statements.add(statement, definition)  # noqa: E731
        undo = lambda: self._take_back(definition)  # noqa: E731
        self._journal.record("engine", {"statement": asdict(statement)}, then=done, undo=undo)
        if isinstance(made, Query):
            outbox = self.query(made.name).outbox
            for executor in self.query(made.name).executors:
                self._journal.record(executor.subject, executor.state())
            self._journal.record(outbox.subject, {"number": outbox.number})

    def _take_back(self, definition: Definition) -> None:
        """It could not be made durable, so it is not so: what was set up is forgotten, and what cannot be undone ends
        all.
        """
        match definition:
            case Stream() | Relation() | Query():
                kind = type(definition).__name__.lower()
                del self.catalog.of_kind(kind)[definition.name.lower()]
                self._forget(Dropped(kind, definition.name))
            case _:
                self._journal.give_up()

    def _carry_out(self, definition: Definition) -> Definition | Why:
        match definition:
            case BoundsAsked():
                return self.bounds()
            case WhyAsked(query):
                return self.query(query).why()
            case Stream() | Relation():
                self._add_or_forget(definition)
            case Query():
                self._add_query(definition)
            case Dropped():
                self._forget(definition)
            case Altered(Query() as query, Query() as before):
                self._replace_query(query, before)
            case Altered(Stream() as stream):
                self._inputs.reshape(stream)
            case Altered():
                pass
            case Setting():
                self._heed_settings()
            case View() | Function() | Explanation() | Listing():
                pass
        return definition

    def _heed_settings(self) -> None:
        """Streams' policies and bounds may have changed as well."""
        settings = self.catalog.settings
        self._heartbeats.timeout_us = settings.timeout_us
        self._heartbeats.estimating = settings.estimation == "on"
        self._heartbeats.generator.set_unit(settings.clock_unit_us)
        for stream in self.catalog.streams.values():
            self._heartbeats.timelines[stream.name].stream = stream
            self._inputs.inlets[stream.name].stream = stream
        self._heartbeats.heed(self.clock.now_us())

    def _forget(self, dropped: Dropped) -> None:
        """Stop what was dropped. Its files go when no epoch runs any more that may read them."""
        match dropped.kind:
            case "query" if dropped.name:
                self._loop.queries.pop(dropped.name).close(DROP_SECONDS)
            case "stream" | "relation" if dropped.name:
                self._inputs.drop(dropped.name)
                self._asking.forget(dropped.name)

    def register_function(self, name: str, function: Any, returns: str | None = None) -> None:
        """Make a Python function usable in CQL by name: a plain function with the SQL type it returns, or a Spark UDF,
        also one that works on pandas or Arrow batches. A pandas UDF from series to scalar is an aggregate. It must be
        deterministic: rows are computed again when they leave a relation.
        """
        if not getattr(function, "deterministic", True):
            raise UserError(
                "not-deterministic",
                f'function "{name}" gives another value each time it is called',
                detail="An answer must follow from the tuples, and from nothing else.",
                hint="Compute its value from its arguments.",
            )
        registered = (
            self.spark.udf.register(name, function)
            if returns is None
            else self.spark.udf.register(name, function, returns)
        )
        self.catalog.outside.add(name.lower())
        if getattr(registered, "evalType", None) in AGGREGATING:
            self._journal.record("engine", {"aggregate": name.lower()})

    def _replace_query(self, query: Query, before: Query) -> None:
        """The old one ends where it is and the new one begins, at least as far; the others notice nothing."""
        old = self._loop.queries.pop(before.name)
        old.courier.hold(DROP_SECONDS)  # both may write to the same place
        try:
            self._add_query(query)
        except Exception:
            old.courier.go_on()
            self.catalog.queries[before.name.lower()] = before
            self._loop.queries[before.name] = old
            raise
        old.close(DROP_SECONDS)

    def _add_query(self, query: Query, folder: str | None = None) -> None:
        relations = {relation.name for relation in self.catalog.relations.values()}
        read = {source.name for source in sources(query.plan)}
        whole = frozenset(relations & read)
        start = self._start(query, sorted(read - whole))
        directory = self._directory / "queries" / (folder or fresh_folder(self._directory / "queries", query.name))
        try:
            with writing(directory):
                directory.mkdir(parents=True, exist_ok=True)
            self._refuse_partial(whole)
            executors = self._executors(query, start, whole, directory)
            make = made_again if self.clock.standing else made
            sink = make(query, self.spark, directory, self._default_sink)
            flush_rows = lambda: sinks.flush_rows(query.connector, self.catalog.settings.flush_rows)  # noqa: E731
            outbox = Outbox(query.name, domain(query.plan), sink, directory, self._journal, flush_rows)
            if not self.clock.standing:
                outbox.continue_numbers()
        except Exception:
            del self.catalog.queries[query.name.lower()]
            raise
        self._loop.queries[query.name] = RunningQuery(query, executors, outbox, self.catalog, self._why, self.wake)

    def _executors(self, query: Query, start: Tick | None, whole: frozenset[str], directory: Path) -> list[Executor]:
        """Of its fragments, each behind those it reads."""
        executors: list[Executor] = []
        made: dict[str, Log] = {}
        shapes: dict[str, StructType] = {}
        for number, (part, group) in enumerate(_parts(query), 1):
            piped = part.log is not None
            programs = lower(part.plan, as_elements=piped), lower(part.plan, tiny=True, as_elements=piped)
            sees = {
                stream: scope.condition(self.catalog.stream(stream).source or "")
                for stream, scope in part.scopes.items()
            }
            fragment = Fragment(query.name, query.text, part, *programs, start, whole, _ahead(query, part), sees, group)
            folder = directory / f"part-{number}" if piped else directory / f"group-{number}" if group else directory
            with writing(folder):
                folder.mkdir(exist_ok=True)
            output = (
                Log(folder / "elements", self._journal, f"log queries/{directory.name}/part-{number}")
                if piped
                else None
            )
            executor = Executor(
                self.spark,
                fragment,
                ChainMap(made, self._inputs.logs),
                ChainMap(shapes, self._inputs.schemas),
                folder,
                self._partitions,
                self._journal,
                output,
            )
            if part.log is not None and output is not None:
                made[part.log], shapes[part.log] = output, executor.result_schema
            executors.append(executor)
        return executors

    def _refuse_partial(self, relations: Iterable[str]) -> None:
        """A relation of which rows are gone that other queries no longer needed cannot be read by a new one."""
        for relation in relations:
            if self._inputs.logs[relation].forgotten is not None and not self.clock.standing:
                raise UserError(
                    "relation-forgotten",
                    f'the first rows of relation "{relation}" are not kept any more',
                    detail="No query needed them when newer ones had come.",
                    hint="Register queries over a relation together, or put its rows in once more, into another.",
                )

    def _start(self, query: Query, streams: Iterable[str]) -> Tick | None:
        """Behind which instant a new query sees its streams: what they were last complete up to, or all that is still
        kept.
        """
        kept = [forgotten for stream in streams if (forgotten := self._inputs.logs[stream].forgotten) is not None]
        seen = scopes(query.plan)
        told = [self._heartbeats.limit(base(stream), seen.get(stream)) for stream in streams]
        given = [limit for limit in told if limit is not None]
        known = kept if query.from_beginning else [*kept, *given]
        return max(known) if known else None

    def _add_or_forget(self, stream: Stream | Relation) -> None:
        """A stream that cannot be set up is not known either: its name is free for the next attempt."""
        try:
            self._inputs.add(stream)
            self._inputs.connect(stream)
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
        with self._journal.turn:
            taken = self._inputs.inlet(stream).push(
                rows, self.clock
            )  # durable when this returns, from whichever thread it is called
        self.wake()
        return taken

    def wake(self) -> None:
        """Something has arrived: `run` looks at once."""
        self._wake.set()

    @property
    def turn(self) -> AbstractContextManager[bool]:
        """Held by whoever changes what the engine knows; epochs run without it."""
        return self._journal.turn

    def listen(self, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> Listener:
        """Take rows over HTTP too, until the listener or the engine is stopped; port 0 chooses a free one."""
        self._listeners.append(listening(self, self._inputs.inlet, host, port, token))
        return self._listeners[-1]

    def step(self) -> list[Epoch]:
        """Take every query as far as its inputs are complete by what arrived and what was promised."""
        try:
            epochs = self._loop.step()
        except UserError as error:
            if error.code == "disk-failed":
                self._tidy()  # it makes room
            raise
        self._tidy()
        return epochs

    def advance(self, to: Tick | datetime | str) -> list[Epoch]:
        """Declare that nothing at or before `to` will still come on any stream, and take every query there.

        A point in time says nothing about queries over integer time.
        """
        until = to if isinstance(to, int) else ticks(to)
        meant = [query for query in self.queries() if isinstance(to, int) or query.domain is TimeDomain.TIMESTAMP]
        epochs = self._loop.take_all({query.name: until for query in meant})
        self._tidy()
        return epochs

    def _tidy(self) -> None:
        self._loop.tidy()
        if self._journal.due():
            self._journal.checkpoint(self._facts)
        with self._journal.turn:
            if self._dropped:
                self._dropped = False
                self._sweep()

    def poll(self) -> int:
        """Take what is new from the sources behind streams; returns how many tuples came.

        A source that cannot be read holds up no other: its error is raised when all have been tried.
        """
        return self._inputs.take(lambda source: source.poll(self.clock))

    def run_once(self, *, close: bool | None = None) -> None:
        """Process all that is available and take the end of the input as the last heartbeat.

        With `close`, what is open then is closed: queries go on up to the end of the last slide and of the last final
        group, and no further. The default is to close, except in an engine with a directory, where more may come in
        another run.

        A query over a stream that cannot be read is left where it was, the others go to the end; the errors come last.
        """
        failures: list[UserError] = []
        with _collected(failures):
            self._inputs.take(lambda source: source.drain(self.clock), patient=False)
        self._end(close, failures)

    def replay(self, rows: int = 1_000, *, close: bool | None = None) -> None:
        """Process all files in the order in which their rows came, so many at a time, by the bounds in force: what
        comes behind a heartbeat is late. `runtime.replay` says how; the engine needs a `ReplayClock` and no directory.
        """
        clock = self.clock.clock
        if not self._temporary or not isinstance(clock, ReplayClock):
            raise UserError(
                "no-replay",
                "a replay in the order of arrival is a trial: not in a directory, and by a clock of its own",
            )
        found = histories(self._inputs, self._directory / "replay", self.clock)
        rounds = max((-(-one.rows // rows) for one in found), default=0)
        unit_us = float(self.catalog.settings.unit_seconds * 1_000_000)
        failures: list[UserError] = []
        for pieces in zip(*(one.pieces(rounds) for one in found), strict=True):
            there = [(one, piece) for one, piece in zip(found, pieces, strict=True) if piece is not None]
            with self._journal.turn:
                clock.show(date_us(there, unit_us))
                for one, piece in there:
                    one.take(piece, self.clock)
            with _collected(failures):
                self.step()
        self._end(close, failures)

    def _end(self, close: bool | None, failures: list[UserError]) -> None:
        """No more input: all that came is complete, and what is open is closed or not. Then raise what has failed so
        far.
        """
        last = {domain: self._last(domain) for domain in TimeDomain}
        read = [
            query for query in self.queries() if self._inputs.troubles.keys().isdisjoint(map(base, query.streams()))
        ]
        ends = {query: end for query in read if (end := last[query.domain]) is not None}
        if self._temporary if close is None else close:
            ends = {query: settled(query.definition.plan, end, query.executor.closing) for query, end in ends.items()}
        with _collected(failures):
            self._loop.take_all({query.name: end for query, end in ends.items()})
            self._tidy()
        with _collected(failures):
            self._hand_over()
        raise_all([*failures, *self.notes()])

    def _hand_over(self) -> None:
        """Until the sinks have taken everything; one that does not for a while is an error."""
        waiting = [query for query in self.queries() if query.outbox.waiting]
        end_us = self.clock.now_us() + PATIENCE_US
        while waiting and not self._stopping and self.clock.now_us() < end_us:
            self._wake.wait(WAIT_SECONDS)
            self._wake.clear()
            self._loop.deliver()
            waiting = [query for query in waiting if query.outbox.waiting]
        raise_all([_not_taken(query) for query in waiting if not self._stopping])

    def _last(self, domain: TimeDomain) -> Tick | None:
        """The largest timestamp that has come on any stream with that kind of time."""
        inputs: list[Stream | Relation] = [*self.catalog.streams.values(), *self.catalog.relations.values()]
        members = (one.name for one in inputs if one.domain is domain)
        seen = (self._heartbeats.references(member) for member in members)
        return max((largest for largest in seen if largest is not None), default=None)

    def run(self, until: Callable[[], bool] | None = None, tell: Callable[[str], None] | None = None) -> None:
        """Go on until `stop()` is called, or until the given condition holds.

        What passes is waited for: a source that cannot be read, a disk that is full, a sink that is down. A query that
        fails is restarted from where it was; if it fails again and again, it stands still while others go on. `tell`
        hears of it. What was never right is an error: a disk that could never be written to, or no source that could
        ever be read."""
        self._loop.tell = tell or self._loop.tell
        self._well |= self.resumed
        self._inputs.worked |= self.resumed
        self._loop.patience_s = 0
        try:
            with watching(self._loop.watch, self.clock):
                while not self._stopping and not (until is not None and until()):
                    arrived, epochs = 0, []
                    with self._source_trouble.waited_out(self._loop.tell, self._goes_on_reading):
                        arrived = self.poll()
                        self._well = True
                    for note in self.notes():
                        self._loop.tell(note.render())
                    with self._query_trouble.waited_out(self._loop.tell, self._goes_on):
                        epochs = self.step()
                        self._well = True
                    self._tell_status()
                    if not epochs and not arrived and not self._loop.flushing() and not self._stopping:
                        self._wake.wait(self._patience_s())
                        self._wake.clear()
        finally:
            self._loop.patience_s = HAND_SECONDS
        self._stopping = self._loop.stopping = False

    def _patience_s(self) -> float:
        """How long to wait for something to arrive: not beyond the instant at which the clock alone lets something go
        on.
        """
        next_us = self._asking.next_us
        return POLL_SECONDS if next_us is None else min(max((next_us - self.clock.now_us()) / 1e6, 0), POLL_SECONDS)

    def _goes_on(self, error: UserError) -> str:
        """How, when a query has failed, or what all need."""
        if concerns_all(error):
            return "It is tried again." if error.code == "disk-failed" and self._well else ""
        failed = [query for query in self.queries() if query.failed]
        if any(not query.given_up for query in failed):
            return "It is restarted from where it was."
        if not failed:
            return "Everything goes on."
        return "It stands still, the others go on." if len(failed) < len(self.queries()) else ""

    def _goes_on_reading(self, error: UserError) -> str:
        """How, when a source cannot be read."""
        if concerns_all(error):
            return self._goes_on(error)
        return "It is tried again, and the others go on." if self._inputs.worked else ""

    def _tell_status(self) -> None:
        """Leave word in the engine's directory, for `headgate why` to read from outside."""
        now_us = self.clock.now_us()
        if self._temporary or now_us - self._told_us < STATUS_US:
            return
        self._told_us = now_us
        with self._journal.turn:
            reasons = {query.name: query.why() for query in self.queries()}
        with suppress(OSError):  # a full disk is told of elsewhere
            status.write(
                self._directory, reasons, {query.name: query.traces for query in self.queries()}, self.troubles()
            )

    def stop(self) -> None:
        """Let what runs end after the epoch it is in."""
        self._stopping = self._loop.stopping = True
        self._wake.set()

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

    def drop_skew(self, first: str | Party, second: str | Party) -> None:
        """Take back what was declared between two streams or sources."""
        self.execute(f"DROP SKEW FROM {_written(first)} TO {_written(second)}")

    def drop_disorder(self, party: str | Party) -> None:
        """Take back what was declared of a source with itself."""
        self.execute(f"DROP DISORDER OF {_written(party)}")

    def drop_latency(self, party: str | Party) -> None:
        """Take back how long a tuple is under way at the most."""
        self.execute(f"DROP LATENCY OF {_written(party)}")

    def drop_sensors(self, party: str | Party) -> None:
        """Take back how far the clock of a source deviates; of a stream: those of all its sources."""
        self.execute(f"DROP ENVIRONMENT sensors OF {_written(party)}")

    def _declare(self, statement: str, receiver: str | Party, bounds: Sequence[Bound]) -> None:
        """By the statement of CQL, so that both refuse the same nonsense."""
        name = receiver if isinstance(receiver, str) else receiver.stream
        found = self.catalog.streams.get(name.lower()) or self.catalog.relations.get(name.lower())
        domain = found.domain if found is not None and found.domain is not None else TimeDomain.INTEGER
        self.execute(f"{statement} {in_force.pairs(bounds, domain)}")

    def sensors(
        self, stream: str, deviations: Mapping[Any, Tick | timedelta], rate: Fraction | float | None = None
    ) -> None:
        """Declare how far each source's clock deviates from the common one, and how many ticks a second it advances at
        least.
        """
        found = self.catalog.stream(stream)
        if found.source is None:
            raise UserError("no-source-column", f'stream "{found.name}" holds one source', hint="SOURCE BY column")
        known = {
            source: one // timedelta(microseconds=1) if isinstance(one, timedelta) else one
            for source, one in deviations.items()
        }
        least = min(known.values(), default=0)
        if least < 0 or (rate is not None and rate <= 0):
            raise UserError(
                "bad-bound", "a deviation cannot be negative" if least < 0 else "a rate must be more than nothing"
            )
        exact = None if rate is None else str(Fraction(rate))
        self._journal.record(
            "engine", {"sensors": [found.name, {str(source): d for source, d in known.items()}, exact]}
        )

    def _declare_sensors(self, stream: str, known: Mapping[str, Tick], rate: Fraction | None) -> None:
        declared = self.catalog.declarations.sensors
        whole = (
            "None" if Party(stream) in declared else None
        )  # so earlier versions wrote down what was said of the whole stream
        declared |= {Party(stream, source): Sensors(d, rate) for source, d in known.items() if source != whole}
        self._heartbeats.heed(self.clock.now_us())

    def pause(self, stream: str) -> None:
        """Say that the stream is not read for a while: it is not silent, and nothing of it will be late because of the
        pause.
        """
        self._tell_heartbeats("pause", self.catalog.stream(stream).name)

    def resume(self, stream: str) -> None:
        """Say that the stream is read again, and that what was held back has been."""
        self._tell_heartbeats("resume", self.catalog.stream(stream).name)

    def finish(self, stream: str, source: Any = None) -> None:
        """Say that nothing will come from the stream any more, or from one source of it."""
        self._tell_heartbeats("finish", self.catalog.stream(stream).name, source)

    def punctuate(self, stream: str, to: Tick | datetime | str, source: Any = None) -> None:
        """A heartbeat the source itself gives: it will send nothing stamped up to `to` any more."""
        upto = to if isinstance(to, int) else ticks(to)
        self._tell_heartbeats("punctuated", self.catalog.stream(stream).name, source, upto)

    def ask(self, stream: str, function: Callable[[], Tick | datetime | str | None]) -> None:
        """Let a function say, when something waits for the stream, up to when nothing will still come on it; None if it
        does not know. It holds until the engine ends, and must answer at once."""
        found = self.catalog.stream(stream)
        if found.stamped != "external":
            raise UserError(
                "needs-no-bounds", f'stream "{found.name}" is stamped by the engine, which knows how far it is'
            )
        if self.catalog.declarations.enabling(found.name).how == "none":
            raise UserError(
                "heartbeat-none",
                f'nobody is asked about stream "{found.name}"',
                detail="HEARTBEAT NONE was said.",
                hint=f"HEARTBEAT OF {found.name} ON DEMAND;",
            )

        def asked() -> Tick | None:
            to = function()
            return to if to is None or isinstance(to, int) else ticks(to)

        with self._journal.turn:
            self._asking.functions[found.name] = asked

    def _tell_heartbeats(self, method: str, *arguments: Any) -> None:
        now_us = self.clock.now_us()
        told = lambda: getattr(self._heartbeats, method)(*arguments, now_us)  # noqa: E731
        self._journal.record("engine", {"told": [method, *arguments], "now": now_us}, then=told)

    # asking

    def query(self, name: str) -> RunningQuery:
        return self._loop.queries[self.catalog.query(name).name]

    def queries(self) -> list[RunningQuery]:
        return list(self._loop.queries.values())

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
        waiting = {stream: query.waiting(stream) for stream in streams}
        least = min((executor.fragment for executor in query.answers), key=lambda fragment: fragment.after)
        reached = query.reached if query.begun else None
        found = why(self._heartbeats, query.name, streams, reached, waiting, self.clock.now_us(), least.part.scopes)
        groups = {
            group: "no instant yet" if upto is None else str(upto) for group, upto in query.complete_by_group.items()
        }
        return replace(found, groups=groups)

    def notes(self) -> list[UserError]:
        """What went wrong with sources and holds up nothing, since it was last asked for: files that were set aside."""
        return self._inputs.told()

    def troubles(self) -> dict[str, dict[str, str]]:
        """What has failed, and is tried again or stands still: streams, queries and sinks by name."""
        queries = self.queries()
        return {
            "streams": {name: error.render() for name, error in list(self._inputs.troubles.items())},
            "queries": {query.name: query.trouble.render() for query in queries if query.trouble is not None},
            "sinks": {query.name: said(error) for query in queries if (error := query.outbox.trouble) is not None},
        }

    def late(self, stream: str) -> dict[Any, int]:
        """How many tuples came late, by source. A stream without SOURCE BY has the one source None; in one with many,
        None stands for those that were forgotten."""
        timeline = self._heartbeats.timelines[self.catalog.stream(stream).name]
        found = {
            source: int(timeline.late[number]) for source, number in timeline.sources.items() if timeline.late[number]
        }
        return found | ({None: timeline.forgotten_late} if timeline.forgotten_late else {})

    def counts(self, stream: str) -> dict[str, int]:
        """How many tuples went to the log, and how many to the dead letters, by reason."""
        inlet = self._inputs.inlet(stream)
        return {"taken": inlet.log.rows, **inlet.counts}

    def worst(self, stream: str) -> timedelta | int | None:
        """By how much the latest of the late tuples that are kept was late; None if there is none."""
        inlet = self._inputs.inlet(stream)
        kept = (chunk.table(["_reason", "_behind"]) for chunk in inlet.dead.chunks)
        found = [pc.max(one.filter(pc.equal(one["_reason"], "late"))["_behind"]).as_py() for one in kept]
        most = max((ticks for ticks in found if ticks is not None), default=None)
        return (
            timedelta(microseconds=most) if most is not None and inlet.stream.domain is TimeDomain.TIMESTAMP else most
        )

    def dead_letters(self, stream: str) -> list[dict[str, Any]]:
        """The tuples that came late or could not be read, with the reason."""
        inlet = self._inputs.inlet(stream)
        columns = inlet.dead_schema.names
        return [row for chunk in inlet.dead.chunks for row in chunk.table(columns).to_pylist()]


@contextmanager
def _collected(failures: list[UserError]) -> Iterator[None]:
    """Let errors of single queries, sources and sinks be added to a list and not raised."""
    try:
        yield
    except UserError as error:
        if concerns_all(error):
            raise
        failures.append(error)


def _not_taken(query: RunningQuery) -> UserError:
    trouble = query.outbox.trouble
    return UserError(
        "sink-failed",
        f'the sink of query "{query.name}" has not taken all results',
        detail="It has not answered yet." if trouble is None else sentence(trouble),
        hint="With --directory they are kept, and delivered the next time.",
    )


def _parts(query: Query) -> list[tuple[Part, str]]:
    """Of what it consists: its fragments, each behind those it reads, or one for each group of sources, with its
    group.
    """
    whole = split(query.plan, query.heartbeats)
    if not query.by_groups:
        return [(part, "") for part in all_parts(whole)]
    return [(replace(whole, scopes=seen), described(seen)) for seen in query.by_groups]


def _ahead(query: Query, part: Part) -> Ahead:
    """What a fragment takes of its streams before they are complete."""
    if part.log is not None or not part.plan.flowing:
        return "nothing"
    if len(sources(part.plan)) > 1:
        return "an instant"
    return "everything" if query.ordering == "needed" else "nothing"


def _written(party: str | Party) -> str:
    """A stream or source as CQL names it."""
    return in_force.named(Party(party) if isinstance(party, str) else party)


def _by_rate(one: tuple[str, str, Sensors]) -> tuple[str, bool, Fraction]:
    return one[0], one[2].rate is not None, one[2].rate or Fraction(0)
