"""Runs a fragment's program on Spark: lays the inputs, runs one statement, hands the files it wrote to the results.

Every input is a leaf of the plan, Parquet read with an explicit schema, so the plan of the thousandth epoch is no
larger than that of the tenth. Views are replaced under the same names and nothing is cached."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, reduce
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.cql import calls
from headgate.delta.exact import DOES_NOT_FIT
from headgate.delta.program import Input, Program
from headgate.errors import Place, UserError
from headgate.execute import refusals
from headgate.execute.epoch_end import about, cut
from headgate.execute.fragment import Fragment, Taken
from headgate.execute.next_event import due
from headgate.log.checksum import synced, torn, writing
from headgate.log.chunk import Chunk, count, sized
from headgate.log.journal import Journal
from headgate.log.log import Log
from headgate.plan.nodes import Scan, is_part, sources
from headgate.sources.verdict import source_texts
from headgate.spark.back_off import BackOff
from headgate.spark.failures import check_alive, concerns_all, failure, parameters
from headgate.spark.session import let_go, over_connect, own, parallelism
from headgate.spark.staging import address, staged
from headgate.sql import listed
from headgate.ticks import UNLIMITED, Tick, TimeDomain

FEW_ROWS = 1_000
"""Up to here looking at every row at every instant costs less than the steps that would save it."""

SMALL_EPOCH_ROWS = 50_000
"""Up to here one task does the work: more would cost more than they save."""

BROADCAST_BYTES = "1048576"

RESTARTS = 3
"""How often in a row a fragment that fails is restarted: what fails then as well will fail again."""

T = TypeVar("T")

Pieces: TypeAlias = list[tuple[list[Chunk], str]]
"""Chunks of a log, each list with the bounds within which its rows are wanted."""


def result_columns(program: Program) -> str:
    """A result as sinks get it: `_time`, for a relation `_change` (+ or -), then the row. Other fragments get
    elements.
    """
    if program.kind == "elements":
        return f"{listed(column.name for column in program.columns)}, _t, _x, _n"
    time = "TIMESTAMP_MICROS(_t)" if program.domain is TimeDomain.TIMESTAMP else "_t"
    change = ", CASE WHEN _n > 0 THEN '+' ELSE '-' END AS _change" if program.kind == "relation" else ""
    return f"{time} AS _time{change}, {listed(column.name for column in program.columns)}"


class Executor:
    """One fragment's program in a Spark session of its own. What it puts out goes to `output`, if others read it."""

    def __init__(
        self,
        session: SparkSession,
        fragment: Fragment,
        logs: Mapping[str, Log],
        schemas: Mapping[str, StructType],
        directory: Path,
        partitions: int | None = None,
        journal: Journal | None = None,
        output: Log | None = None,
    ) -> None:
        self.origin = session
        self.session = own(session, partitions)
        self.output = output
        self.spans = fragment.part.plan.ends
        self.partitions = partitions
        self.fragment = fragment
        self.logs = logs
        self.schemas = schemas
        self.directory = directory
        self.program = fragment.program
        self.take_programs()
        self.synopsis_schemas: dict[str, StructType] = {}
        self.synopsis_files: dict[str, list[Chunk]] = {}
        self.empty: set[str] = set()
        self.one_partition = False
        self.version = 0
        self.journal = journal or Journal()
        within = f"{directory.parent.name}/{directory.name}" if output is not None or fragment.group else directory.name
        self.subject = f"fragment {within}"
        self.back_off = BackOff()
        """When it is restarted after it has failed."""
        self.taking: dict[str, Taken] = {}
        """While an epoch runs: how far it takes streams in order of arrival."""
        self.analyse()
        self.journal.introduce(self.subject, self.apply)

    def analyse(self) -> None:
        """Let Spark analyse the program over empty inputs: types and functions are checked before anything runs."""
        origin = self.program.domain.origin
        for source in self.program.inputs:
            self.lay(source.name, [], self.schemas[source.stream])
        try:
            self.shape(self.program.result, set())
            results = self.results(origin, origin)
            self.result_schema = _nullable(results.schema)
            self.refuse_undetermined(results)
        except UserError:
            raise
        except Exception as error:
            check_alive(self.origin, error)
            raise translated(error, self.fragment) from error

    def refuse_undetermined(self, results: DataFrame) -> None:
        """Functions that the user registered with the session may say of themselves that they are not deterministic."""
        names = {name for step in self.program.steps.values() for name in calls.called(step.sql)}
        if names <= calls.KNOWN or over_connect(self.session):
            return
        function = refusals.undetermined(results)
        if function is not None:
            text = self.fragment.text
            raise UserError(
                "not-deterministic",
                f'function "{function}" gives another value each time it is called',
                place=calls.where(function.lower(), Place(text, 0, len(text))),
                hint="Compute its value from its arguments.",
                detail="An answer must follow from the tuples, and from nothing else.",
            )

    def shape(self, name: str, known: set[str]) -> None:
        """Put every synopsis and every step that is computed for itself under its name, empty, so that its columns are
        known.
        """
        if name in known:
            return
        known.add(name)
        origin = self.program.domain.origin
        for synopsis in self.program.synopses:
            if synopsis.name == name:
                self.shape(synopsis.shape, known)
                schema = _nullable(self.sql(self.program.shape(synopsis), origin, origin).schema)
                self.synopsis_schemas[name] = schema
                self.lay(name, [], schema)
        if name in self.program.steps:
            for read in self.program.steps[name].reads:
                self.shape(read, known)
            if name in self.shared:
                self.lay(name, [], self.sql(self.program.step_statement(name), origin, origin).schema)
                self.program = replace(self.program, computed=self.program.computed | {name})

    # what the journal knows of it

    def apply(self, what: dict[str, Any]) -> None:
        fragment = self.fragment
        fragment.start = what.get("start", fragment.start)
        fragment.after = what.get("after", fragment.after)
        fragment.since = what.get("since", fragment.since)
        fragment.epochs = what.get("epochs", fragment.epochs)
        if "taken" in what:
            fragment.taken = {stream: Taken(*position) for stream, position in what["taken"].items()}
        if "synopses" in what:
            self._compare_shapes(what["shapes"])
            self.version, fragment.reread = what["version"], 0
            fragment.synopsis_rows = what["synopsis_rows"]
            folder = self.synopsis_folder(self.version)
            self.synopsis_files = read_synopses(folder, what["synopses"])

    def state(self) -> dict[str, Any]:
        fragment = self.fragment
        progress: dict[str, Any] = {
            "start": fragment.start,
            "after": fragment.after,
            "since": fragment.since,
            "epochs": fragment.epochs,
        }
        progress |= {"taken": dict(fragment.taken)} if fragment.taken else {}
        return progress | (self._synopses_state() if self.version else {})

    def _synopses_state(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "synopses": listed_synopses(self.synopsis_folder(self.version), self.synopsis_files),
            "synopsis_rows": self.fragment.synopsis_rows,
            "shapes": self.shapes(),
        }

    def shapes(self) -> dict[str, str]:
        return {name: schema.simpleString() for name, schema in self.synopsis_schemas.items()}

    def _compare_shapes(self, shapes: dict[str, str]) -> None:
        if self.wide.for_all_doubles is not None and shapes.keys() > self.shapes().keys():
            self.go_beyond()  # it had met such doubles before
        if shapes != self.shapes():
            raise UserError(
                "other-version",
                f'what query "{self.fragment.name}" keeps was written by another version of headgate',
                hint="DROP the query with that version, or begin with a new directory.",
            )

    def check(self) -> None:
        """Raise an error that names the first file of the synopses that is missing or cut short."""
        for chunk in chain.from_iterable(self.synopsis_files.values()):
            if problem := chunk.problem():
                raise torn(chunk.path, problem)

    def sweep(self) -> None:
        """Delete what was written and never came to count."""
        for left in self.directory.iterdir():
            if left.name.startswith(".") and left.is_dir():
                shutil.rmtree(left)
        self.drop_old_synopses()

    def drop_old_synopses(self) -> None:
        folder = self.synopsis_folder(self.version)
        for old in folder.parent.iterdir() if folder.parent.exists() else ():
            if old != folder:
                shutil.rmtree(old)

    def synopsis_folder(self, version: int) -> Path:
        return self.directory / "synopses" / f"{version:012d}"

    # one epoch

    def happens(self, until: Tick) -> bool:
        """Whether anything can happen behind what was put out and up to `until`: tuples that wait, or elements that
        end.
        """
        fragment = self.fragment
        if not fragment.epochs and fragment.part.plan.opens:
            return True
        return self.wide.happens(fragment.after, until, self.has_rows)

    def has_rows(self, log: str, low: Tick | None, high: Tick) -> bool:
        """Whether a log may have tuples within the range that the fragment sees."""
        chunks, scope = self.logs[log].overlapping(low, high), self.fragment.part.scopes.get(log)
        if scope is None:
            return bool(chunks)
        column = next(
            source.by for source in sources(self.fragment.part.plan) if isinstance(source, Scan) and source.name == log
        )
        try:
            return any(scope.meets(sources_in(chunk, column or "")) for chunk in chunks)
        except (UserError, OSError, pa.ArrowException):
            return True  # an epoch will say what is wrong with the file

    def due(self) -> Tick | None:
        """The first instant at which it may have something to say by what has come; None if there is none."""
        fragment = self.fragment
        return due(self.spans, self.logs, fragment.after, fragment.start, fragment.whole)

    def closing(self, closes: str, tick: Tick) -> Tick | None:
        """The instant that SQL says for a tuple of that timestamp."""
        return self.session.sql(f"SELECT CAST({closes} AS BIGINT) FROM VALUES ({tick}L) AS one(_t)").collect()[0][0]

    def run(self, until: Tick) -> list[Path]:
        """One epoch, from where the fragment is up to `until`; the files of its results, which count when it is
        `reached`.
        """
        fragment = self.fragment
        fragment.rows_in += round(sum(about(self.logs[log].chunks, fragment.after, until) for log in self.wide.logs()))

        def results() -> list[Path]:
            self.prepare(until)
            self.compute_shared(until, self.program.needed(self.program.result))
            return self.write(self.results(fragment.since, until), "results")

        return self.attempted(results, fragment.after, until)

    def attempted(self, work: Callable[[], T], after: Tick, until: Tick) -> T:
        """Do it. When a double turns up that the program does not sum, do it again with the program that sums every
        double.

        Nothing of the first attempt counts: what it has written was not committed.
        """
        try:
            try:
                return work()
            except PySparkException as error:
                if self.wide.for_all_doubles is None or DOES_NOT_FIT not in str(error):
                    raise
                self.go_beyond()
                return work()
        except Exception as error:
            raise self.failed(error, after, until) from error

    def go_beyond(self) -> None:
        """From now on with the program that sums every double. What it keeps in addition is empty: there was none to
        keep.
        """
        fragment = self.fragment
        assert fragment.program.for_all_doubles is not None
        assert fragment.brief.for_all_doubles is not None
        fragment.program, fragment.brief = fragment.program.for_all_doubles(), fragment.brief.for_all_doubles()
        self.take_programs()
        self.analyse()

    def take_programs(self) -> None:
        """Derive the programs for large, small and tiny epochs from the fragment's."""
        self.wide = self.fragment.program
        self.narrow = self.fragment.program.single_task()
        self.brief = self.fragment.brief.single_task()
        self.shared = self.wide.shared()
        self.shared_when_brief = self.brief.shared()
        self.program = self.wide

    def reached(self, until: Tick) -> None:
        """The results up to there are kept."""
        fragment = self.fragment
        fragment.reread += sum(self.logs[log].rows_within(fragment.since, until) for log in self.wide.logs())
        since = {} if fragment.program.synopses else {"since": until}
        self.journal.record(self.subject, {"after": until, "epochs": fragment.epochs + 1, **since})

    def passed(self, until: Tick) -> None:
        """Nothing happens up to there: it is complete without an epoch. After a crash it is found to be so once
        more.
        """
        fragment = self.fragment
        fragment.after = until
        if not fragment.program.synopses:
            fragment.since = until

    # tuples in order of arrival

    def taken(self, stream: str) -> Taken:
        """At first nothing, except what was put out by time."""
        return self.fragment.taken.get(stream, Taken(0, self.fragment.after))

    def waited(self, stream: str, upto: Tick) -> list[Chunk]:
        """Chunks of which only a part was taken, with more that is stamped up to there."""
        taken = self.taken(stream)
        known = [chunk for chunk in self.logs[stream].chunks if chunk.arrived <= taken.arrived]
        cut = [chunk for chunk in known if taken.upto < chunk.high and chunk.low <= upto and taken.upto < upto]
        return [chunk for chunk in cut if chunk.first_after(taken.upto) <= upto]

    def arriving(self, stream: str) -> list[Chunk]:
        """Chunks that have come since."""
        return [chunk for chunk in self.logs[stream].chunks if chunk.arrived > self.taken(stream).arrived]

    def waits(self, upto: Tick) -> bool:
        """Whether there is anything stamped up to there that was not taken yet."""
        streams = self.wide.streams()
        return any(self.waited(stream, upto) or any(c.low <= upto for c in self.arriving(stream)) for stream in streams)

    def bounded(self, upto: Tick, most: int) -> Tick:
        """Where a merge ends that keeps the order of timestamps, if it is to take about `most` rows."""
        streams = self.wide.streams()
        chunks = [
            c for stream in streams for c in (*self.waited(stream, upto), *self.arriving(stream)) if c.low <= upto
        ]
        return cut(chunks, min(self.taken(stream).upto for stream in streams), upto, most)

    def run_arrived(self, upto: Tick, most: int) -> tuple[list[Path], bool]:
        """Take what has arrived, stamped up to there, tuple by tuple: the files of the results, and whether that was
        all.

        Where any order will do, it is of what came since the last time as much as makes about `most` rows.
        """
        fragment, before = self.fragment, self.wide.domain.origin - 1
        streams, pieces, everything = self.wide.streams(), dict[str, Pieces](), True
        since = f" AND _t > {fragment.start}" if fragment.start is not None else ""
        for stream in streams:
            begin = f"{since} AND {fragment.sees[stream]}" if stream in fragment.sees else since
            taken, new = self.taken(stream), self.arriving(stream)
            some = _first(new, most) if fragment.ahead == "everything" else new
            everything &= len(some) == len(new)
            reached = Taken(max((chunk.arrived for chunk in some), default=taken.arrived), max(upto, taken.upto))
            # What came before the first reading by arrival was put out by time, as far as the fragment had come then.
            behind = "" if stream in fragment.taken else f"_t > {taken.upto} AND "
            pieces[stream] = [
                (self.waited(stream, upto), f"_t > {taken.upto} AND _t <= {upto}{begin}"),
                (some, f"{behind}_t <= {reached.upto}{begin}"),
            ]
            self.taking[stream] = reached
            fragment.rows_in += sum(chunk.rows for chunk in some)

        def results() -> list[Path]:
            self.prepare(upto, {source.name: pieces[source.stream] for source in self.wide.inputs})
            found = self.sql(self.program.output(result_columns(self.program)), before, UNLIMITED, before)
            return self.write(found, "results")

        return self.attempted(results, fragment.after, upto), everything

    def reached_arrived(self, until: Tick) -> None:
        """What was taken is kept, and everything up to `until` is among it."""
        what = {"after": until, "since": until, "epochs": self.fragment.epochs + 1, "taken": dict(self.taking)}
        self.journal.record(self.subject, what)

    def move(self) -> None:
        """Move the synopses forward to what has been put out: one job for all of them."""
        fragment, target = self.fragment, self.synopsis_folder(self.version + 1)

        def moved() -> None:
            self.prepare(fragment.after)
            self.compute_shared(fragment.after, set(self.program.steps))
            self.write_synopses(target)

        self.attempted(moved, fragment.since, fragment.after)
        written: dict[str, list[Chunk]] = {}
        for synopsis in self.program.synopses:
            files = sorted((target / f"_synopsis={synopsis.name}").glob("*.parquet"))
            written[synopsis.name] = [sized(Chunk(file, count(file), 0, 0)) for file in files]
            if self.journal.durable:
                with writing(target):
                    for file in (*files, *{file.parent for file in files}, target, target.parent):
                        synced(file)
        rows = sum(chunk.rows for chunk in chain.from_iterable(written.values()))
        what = {"since": fragment.after, "version": self.version + 1, "synopses": listed_synopses(target, written)}
        undo = lambda: shutil.rmtree(target, ignore_errors=True)  # noqa: E731
        self.journal.record(self.subject, {**what, "synopsis_rows": rows, "shapes": self.shapes()}, undo=undo)
        self.drop_old_synopses()

    def restart(self) -> None:
        """Begin anew from what was last committed, in a new session."""
        self.check()
        let_go(self.session)
        self.session = own(self.origin, self.partitions)
        self.empty.clear()
        self.program = self.wide
        self.analyse()
        self.fragment.failed = False

    def failed(self, error: Exception, after: Tick, until: Tick) -> UserError:
        """What went wrong, in our words. If it does not concern all, the fragment stands still until it is
        restarted.
        """
        check_alive(self.origin, error)
        for source in self.program.inputs:
            for chunk in self.logs[source.stream].chunks:
                if problem := chunk.problem():
                    self.fragment.failed = True
                    return torn(chunk.path, problem)
        failed = translated(error, self.fragment, (after, until))
        self.fragment.failed |= not concerns_all(failed)
        return failed

    def write_synopses(self, target: Path) -> None:
        """All synopses as one job, told apart by a partition column; each has its own columns, the others are null."""
        fragment, program = self.fragment, self.program
        tagged: DataFrame | None = None
        for synopsis in program.synopses:
            contents = self.sql(program.contents(synopsis), fragment.since, fragment.after)
            schema = self.synopsis_schemas[synopsis.name]
            columns = [
                f"CAST({_quoted(field.name)} AS {field.dataType.simpleString()}) AS {_quoted(field.name)}"
                for field in schema
            ]
            part = contents.selectExpr(
                f"'{synopsis.name}' AS _synopsis", f"STRUCT({', '.join(columns)}) AS {synopsis.name}"
            )
            tagged = part if tagged is None else tagged.unionByName(part, allowMissingColumns=True)
        assert tagged is not None
        shutil.rmtree(target, ignore_errors=True)  # of a version that never came to count
        sealed = staged(tagged, self.directory / ".synopses", "_synopsis")
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            sealed.rename(target)

    def sql(self, text: str, since: Tick, until: Tick, after: Tick | None = None) -> DataFrame:
        cut_off = self.fragment.after if after is None else after
        return self.session.sql(text, args={"since": since, "until": until, "after": cut_off})

    def results(self, since: Tick, until: Tick) -> DataFrame:
        return self.sql(self.program.output(result_columns(self.program)), since, until)

    def prepare(self, until: Tick, pieces: Mapping[str, Pieces] | None = None) -> None:
        """Put the ranges of the logs and the synopses under their names, as one partition each if the epoch is small.

        A small epoch then runs in one task and interpreted: shuffling and compiling would cost more than they save.
        """
        self.program = self.wide
        ranges = pieces or {source.name: self.chunks(source, until) for source in self.wide.inputs}
        read = sum(chunk.rows for parts in ranges.values() for chunks, _ in parts for chunk in chunks)
        rows = self.fragment.synopsis_rows + read
        small = rows <= SMALL_EPOCH_ROWS and self.partitions is None
        if small:
            self.program = self.brief if rows <= FEW_ROWS and pieces is None else self.narrow
            ranges = pieces or {source.name: self.chunks(source, until) for source in self.program.inputs}
        settings = self.session.conf
        width = "1" if small else str(self.partitions or parallelism(self.session))
        settings.set("spark.sql.shuffle.partitions", width)
        settings.set("spark.sql.files.minPartitionNum", width)
        settings.set("spark.sql.codegen.wholeStage", str(not small).lower())
        settings.set("spark.sql.autoBroadcastJoinThreshold", "-1" if small else BROADCAST_BYTES)
        self.one_partition = small
        for source in self.program.inputs:
            self.lay_chunks(source.name, ranges[source.name], self.schemas[source.stream])
        for name, chunks in self.synopsis_files.items():
            self.lay_chunks(name, [(chunks, "")], self.synopsis_schemas[name])

    def lay_chunks(self, name: str, pieces: Pieces, schema: StructType) -> None:
        """Put chunks under a name. Spark reads them in this epoch, so they are compared with their checksums now."""
        try:
            for chunks, _ in pieces:
                for chunk in chunks:
                    chunk.check()
        except UserError:
            self.fragment.failed = True
            raise
        self.lay(name, [([chunk.path for chunk in chunks], bounds) for chunks, bounds in pieces], schema)

    def compute_shared(self, until: Tick, needed: set[str]) -> None:
        """Compute the steps that a long statement reads more than once, each by a job of its own."""
        for name in self.shared_when_brief if self.program is self.brief else self.shared:
            if name not in needed:
                continue
            frame = self.sql(self.program.step_statement(name), self.fragment.since, until)
            files = self.write(frame, name)
            self.lay(name, [(files, "")], frame.schema)
            self.program = replace(self.program, computed=self.program.computed | {name})

    def chunks(self, source: Input, until: Tick) -> Pieces:
        """The chunks that hold an input, and the exact bounds within them."""
        low, high = source.range(self.fragment.since, until)
        if self.fragment.start is not None and source.stream not in self.fragment.whole and not is_part(source.stream):
            low = self.fragment.start if low is None else max(low, self.fragment.start)
        bounds = f"_t <= {high}" if low is None else f"_t > {low} AND _t <= {high}"
        if source.stream in self.fragment.sees:
            bounds += f" AND {self.fragment.sees[source.stream]}"
        return [(self.logs[source.stream].overlapping(low, high) if low is None or low < high else [], bounds)]

    def lay(self, name: str, pieces: list[tuple[list[Path], str]], schema: StructType) -> None:
        """Put files under a name, those of each piece within its bounds."""
        if not any(files for files, _ in pieces):
            if name in self.empty:
                return
            nothing = ", ".join(
                f"CAST(NULL AS {field.dataType.simpleString()}) AS {_quoted(field.name)}" for field in schema
            )
            self.session.sql(f"SELECT {nothing} WHERE FALSE").createOrReplaceTempView(name)
            self.empty.add(name)
            return
        self.empty.discard(name)
        nested = name in self.synopsis_schemas
        wanted = StructType().add(name, schema) if nested else schema
        parts = []
        for files, bounds in pieces:
            if files:
                part = self.session.read.schema(wanted).parquet(*map(address, files))
                part = part.select(f"{name}.*") if nested else part
                parts.append(part.where(bounds) if bounds else part)
        frame = reduce(lambda one, other: one.unionAll(other), parts)
        frame = frame.coalesce(1) if self.one_partition else frame
        frame.createOrReplaceTempView(name)

    def write(self, frame: DataFrame, name: str) -> list[Path]:
        return sorted(staged(frame, self.directory / f".{name}").glob("*.parquet"))


@lru_cache(maxsize=100_000)
def sources_in(chunk: Chunk, column: str) -> frozenset[str]:
    """Whose tuples a chunk of a log holds. A chunk never changes, and most are small."""
    return frozenset(source_texts(column, chunk.table([column])).unique().to_pylist())


def needed(readers: Iterable[Executor], log: str, chunk: Chunk) -> bool:
    """Whether any of the fragments may still read the chunk."""
    for executor in readers:
        fragment = executor.fragment
        if fragment.ahead != "nothing":
            taken = executor.taken(log)
            if chunk.arrived > taken.arrived or chunk.high > min(taken.upto, fragment.after):
                return True
            continue
        for source in fragment.program.inputs:
            low = source.low.at(fragment.since, fragment.since)
            if source.stream == log and (low is None or chunk.high > low):
                return True
    return False


def positions(readers: Iterable[Executor], log: str) -> set[int]:
    """Up to where they have read, in order of arrival: chunks before and behind must not be merged."""
    return {executor.taken(log).arrived for executor in readers if executor.fragment.ahead != "nothing"}


def _first(chunks: list[Chunk], most: int) -> list[Chunk]:
    """The first of the chunks, as many as hold no more rows than that, but at least one."""
    rows = list(accumulate(chunk.rows for chunk in chunks))
    return [chunk for chunk, total in zip(chunks, rows, strict=True) if total <= most] or chunks[:1]


def listed_synopses(folder: Path, synopses: Mapping[str, list[Chunk]]) -> dict[str, dict[str, list[int | None]]]:
    """The files of each synopsis for the journal, with their sizes and checksums."""
    return {
        name: {str(chunk.path.relative_to(folder)): [chunk.size, chunk.checksum] for chunk in chunks}
        for name, chunks in synopses.items()
    }


def read_synopses(folder: Path, listed: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Chunk]]:
    """What `listed_synopses` wrote. Before there were checksums, the journal had the sizes alone."""
    found: dict[str, list[Chunk]] = {}
    for name, files in listed.items():
        known = {file: (said, None) if isinstance(said, int) else said for file, said in files.items()}
        found[name] = [
            Chunk(folder / file, 0, 0, 0, size, checksum=checksum) for file, (size, checksum) in known.items()
        ]
    return found


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _nullable(schema: StructType) -> StructType:
    result = StructType()
    for field in schema:
        result.add(field.name, field.dataType, nullable=True)
    return result


def translated(error: Exception, fragment: Fragment, epoch: tuple[Tick, Tick] | None = None) -> UserError:
    """An error as one of ours: which query, which epoch, where in its text, and what was said of it."""
    place = _place(error, fragment.text)
    if epoch is None:
        return failure(
            error,
            "query-rejected",
            f'Spark refuses query "{fragment.name}"',
            place=refusals.place(error, fragment.text),
            hint=refusals.hint(error),
        )
    span = f"in the epoch ({epoch[0]}, {epoch[1]}]"
    return failure(error, "query-failed", f'query "{fragment.name}" failed {span}', place=place)


def _place(error: Exception, text: str) -> Place | None:
    """The longest of the names and expressions Spark complains of that stands in the user's text."""
    named = [str(value).strip("`\"'") for value in parameters(error).values()]
    found = [(len(name), start) for name in named if name and (start := text.lower().find(name.lower())) >= 0]
    if not found:
        return None
    length, start = max(found)
    return Place(text, start, start + length)
