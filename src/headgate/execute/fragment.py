"""A fragment of a query while it runs: what it computes, how far it has come, and one epoch of it.

    statement     lay the ranges of the logs and the synopses under their names
    run           one Spark statement writes the results of an epoch; nothing of it counts yet
    commit        `Written` holds the fact that makes it count, in one line of the journal with its files
    move_state    bring the synopses up to what has been put out, when reading behind them has become dear

A fragment reads by time, up to where its inputs are complete. One that handles each tuple by itself reads in order of
arrival instead."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.delta.exact import BEYOND
from headgate.delta.program import Input, Program
from headgate.errors import UserError
from headgate.execute import errors
from headgate.execute.analysis import Analysis
from headgate.execute.compiled import Ahead, CompiledFragment
from headgate.execute.epoch_end import epoch_end, estimated_rows
from headgate.execute.next_event import next_event
from headgate.execute.position import Position, Unread, first_rows
from headgate.execute.programs import Programs, SizedProgram
from headgate.execute.progress import Progress
from headgate.execute.statement import Statement
from headgate.execute.synopses import SynopsisStore
from headgate.execute.workspace import Slice, Workspace
from headgate.log.checksum import torn
from headgate.log.chunk import Chunk
from headgate.log.journal import Journal
from headgate.log.log import Log
from headgate.plan.ends import ends
from headgate.plan.fragments import Part
from headgate.plan.nodes import Source, is_part, sources
from headgate.plan.properties import opens
from headgate.sources.verdict import source_texts
from headgate.spark.back_off import BackOff
from headgate.spark.failures import check_alive
from headgate.ticks import UNLIMITED, Tick

MOVE_COST_ROWS = 50_000
"""Moving the synopses costs about as much as reading this many tuples once more."""

MEASURED_ROWS = 100
"""So many tuples must have been read before their number says something about how many are put out for each."""

RESTARTS = 3
"""How often in a row a fragment that fails is restarted: what fails then as well will fail again."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Written:
    """The results of one epoch of a fragment, in files. They count when they are committed together with `progress`."""

    fragment: Fragment
    after: Tick
    until: Tick
    """The results are complete up to here."""

    files: list[Path]
    progress: dict[str, Any]
    """What the journal is to say of the fragment."""


class Fragment:
    """A part of a query that runs by itself, in a Spark session of its own."""

    def __init__(
        self,
        compiled: CompiledFragment,
        session: SparkSession,
        logs: Mapping[str, Log],
        schemas: Mapping[str, StructType],
        directory: Path,
        *,
        start: Tick | None = None,
        whole: frozenset[str] = frozenset(),
        partitions: int | None = None,
        journal: Journal | None = None,
        output: Log | None = None,
    ) -> None:
        self.compiled = compiled
        self.programs = Programs(compiled.program, compiled.tiny)
        self.logs = logs
        """By name: the logs of streams and relations, and those that other fragments of the query write."""
        self.schemas = schemas
        self.directory = directory
        self.whole = whole
        """Relations, of which it sees everything in any case: their rows were put in before and are still there."""
        self.output = output
        """The log to which its elements go, for other fragments to read; None if it gives the answer."""
        self.journal = journal or Journal()
        before = self.program.domain.origin - 1
        self.progress = Progress(start, since=before, after=before)
        self.synopses = SynopsisStore(directory, self.journal.durable)
        self.workspace = Workspace(session, directory, partitions)
        self.failed = False
        """An epoch failed. The fragment stands still and holds up no other, until it is restarted."""
        self.back_off = BackOff()
        """When it is restarted after it has failed."""
        self.rows_in = self.rows_out = 0
        """How many rows it has read and put out since the engine was started."""
        self.reread = 0
        """How many rows behind `since` its epochs have read since the synopses were last moved."""
        self._spans = ends(self.part.plan)
        within = f"{directory.parent.name}/{directory.name}" if output is not None or self.group else directory.name
        self.subject = f"fragment {within}"
        self.analyse()
        self.journal.introduce(self.subject, self.apply)

    def __repr__(self) -> str:
        return f"Fragment({self.full_name}: after {self.after})"

    # what it is

    @property
    def query(self) -> str:
        """The name of its query."""
        return self.compiled.query

    @property
    def part(self) -> Part:
        """Its part of the query's plan."""
        return self.compiled.part

    @property
    def program(self) -> Program:
        """What it computes, as it was compiled."""
        return self.programs.program

    @property
    def group(self) -> str:
        """The group of sources whose answers it gives; empty if its query does not run by groups."""
        return self.compiled.group

    @property
    def ahead(self) -> Ahead:
        """What it takes beyond its heartbeat."""
        return self.compiled.ahead

    @property
    def by_arrival(self) -> bool:
        """Whether it reads tuples in order of arrival, and does not wait until an instant is complete."""
        return self.ahead != "nothing"

    @property
    def full_name(self) -> str:
        """The name that errors and notes give it."""
        return self.compiled.full_name

    @property
    def stop(self) -> str:
        """The name it has on the way of a heartbeat, in traces."""
        return self.compiled.stop

    def analyse(self) -> None:
        """Let Spark analyse the program, before anything runs. What it refuses is raised as an error of ours."""
        try:
            found = Analysis(self.workspace, self.programs.parallel, self.schemas, self.compiled.text)
        except UserError:
            raise
        except Exception as error:
            check_alive(self.workspace.origin, error)
            raise errors.rejected(error, self.query, self.compiled.text) from error
        self.result_schema, self.synopses.schemas = found.results, found.synopses

    # how far it is

    @property
    def since(self) -> Tick:
        """The instant as of which the synopses are."""
        return self.progress.since

    @property
    def after(self) -> Tick:
        """The instant up to which its results are complete."""
        return self.progress.after

    @property
    def epochs(self) -> int:
        """How many epochs it has run."""
        return self.progress.epochs

    @property
    def begun(self) -> bool:
        """Whether its results are complete up to any instant."""
        return self.after >= self.program.domain.origin

    def selectivity(self) -> float | None:
        """Return how many rows it puts out for each that it reads; None while too few were read to know."""
        return self.rows_out / self.rows_in if self.rows_in >= MEASURED_ROWS else None

    def position(self, stream: str) -> Position:
        """Return how far it has read a stream in order of arrival: at first nothing but what was read by time."""
        return self.progress.positions.get(stream, Position(0, self.after))

    def unread(self, stream: str) -> Unread:
        """Return the tuples of a stream that it has not read, in order of arrival."""
        return Unread(self.logs[stream], self.position(stream))

    # what there is to do

    def has_work(self, until: Tick) -> bool:
        """Say whether an epoch up to `until` may give any result: tuples wait, or elements end."""
        if self.by_arrival:
            return any(self.unread(stream).any(until) for stream in self.program.streams())
        return self.has_events(until)

    def has_events(self, until: Tick) -> bool:
        """Say whether anything can happen up to `until`, read by time: tuples wait, or elements end."""
        if not self.epochs and opens(self.part.plan):
            return True
        visible = lambda log, low, high: has_visible_rows(self.part, log, self.logs[log], low, high)  # noqa: E731
        return self.program.happens(self.after, until, visible)

    def next_event(self) -> Tick | None:
        """Return the first instant at which it may have something to say, by what has come; None if there is none."""
        return next_event(self._spans, self.logs, self.after, self.progress.start, self.whole)

    def epoch_end(self, complete: Tick, most: int) -> Tick:
        """Return where the next epoch ends: at `complete`, or where about `most` rows lie before that."""
        start = self.progress.start
        after = self.after if start is None else max(self.after, min(start, complete))  # nothing of before is read
        waiting = [chunk for log in self.program.logs() for chunk in self.logs[log].overlapping(after, complete)]
        return epoch_end(waiting, after, complete, most)

    def arrival_end(self, upto: Tick, most: int) -> Tick:
        """Return where an epoch ends that merges what has arrived in order of timestamps: at about `most` rows."""
        streams = self.program.streams()
        waiting = [chunk for stream in streams for chunk in self.unread(stream).up_to(upto)]
        return epoch_end(waiting, min(self.position(stream).upto for stream in streams), upto, most)

    def still_needs(self, log: str, chunk: Chunk) -> bool:
        """Say whether it may still read a chunk of one of its logs."""
        if self.by_arrival:
            position = self.position(log)
            return chunk.arrived > position.arrived or chunk.high > min(position.upto, self.after)
        lows = [source.low.at(self.since, self.since) for source in self.program.inputs if source.stream == log]
        return any(low is None or chunk.high > low for low in lows)

    def should_move_state(self) -> bool:
        """Say whether reading behind `since` has by now cost as much as moving the synopses would."""
        return bool(self.program.synopses) and self.reread > MOVE_COST_ROWS + self.synopses.rows

    # one epoch

    def run(self, until: Tick) -> Written:
        """Run one epoch by time, from where the fragment is up to `until`."""
        after = self.after
        chunks = (self.logs[log].chunks for log in self.program.logs())
        self.rows_in += round(sum(estimated_rows(some, after, until) for some in chunks))
        files = self._attempt(lambda: self.statement(until).write_results(), after, until)
        fact = {"after": until, "epochs": self.epochs + 1}
        return Written(self, after, until, files, fact if self.program.synopses else {**fact, "since": until})

    def run_arrived(self, upto: Tick, until: Tick, most: int) -> Written:
        """Run one epoch over what has arrived and is stamped up to `upto`: all of it, or about `most` rows.

        If it is all, the results are complete up to `until`.
        """
        after, read_all = self.after, True
        slices, positions = dict[str, list[Slice]](), dict[str, Position]()
        for stream in self.program.streams():
            unread = self.unread(stream)
            new = unread.new()
            some = first_rows(new, most) if self.ahead == "everything" else new
            read_all &= len(some) == len(new)
            arrived = max((chunk.arrived for chunk in some), default=unread.position.arrived)
            positions[stream] = Position(arrived, max(upto, unread.position.upto))
            slices[stream] = self._arrived(stream, unread, some, upto)
            self.rows_in += sum(chunk.rows for chunk in some)
        files = self._attempt(lambda: self._arrival_statement(slices).write_results(), after, upto)
        until = min(until, upto) if read_all else after
        fact = {"after": until, "since": until, "epochs": self.epochs + 1, "taken": positions}
        return Written(self, after, until, files, fact)

    def committed(self, written: Written, rows: int) -> None:
        """Count what an epoch has put out, now that it is committed."""
        self.rows_out += rows
        self.reread += sum(self.logs[log].rows_within(self.since, written.until) for log in self.program.logs())

    def advance_idle(self, until: Tick) -> None:
        """Be complete up to `until` without an epoch, because nothing happens. After a crash that is found out anew."""
        self.progress.after = until
        if not self.program.synopses:
            self.progress.since = until

    def move_state(self) -> None:
        """Bring the synopses up to what has been put out, by one Spark job for all of them."""
        since, after = self.since, self.after
        fact = self._attempt(lambda: self.synopses.write(self.statement(after).synopses()), since, after)
        self.journal.record(self.subject, {"since": after, **fact}, undo=self.synopses.discard_next)
        self.synopses.delete_others()

    # the statement of an epoch

    def statement(self, until: Tick) -> Statement:
        """Lay the inputs for (since, until], and return the statement over them."""
        ranges = self._ranges(self.program, until)
        sized = self._sized(ranges)
        self._lay(sized, self._ranges(sized.program, until))
        return Statement(self.workspace, sized, self.since, until, self.after)

    def _arrival_statement(self, slices: Mapping[str, list[Slice]]) -> Statement:
        """Lay slices of streams; the statement over them takes every tuple, whenever it is stamped."""
        inputs = {source.name: slices[source.stream] for source in self.program.inputs}
        sized = self._sized(inputs, tiny=False)
        self._lay(sized, inputs)
        before = self.program.domain.origin - 1
        return Statement(self.workspace, sized, before, UNLIMITED, before)

    def _sized(self, inputs: Mapping[str, Sequence[Slice]], tiny: bool = True) -> SizedProgram:
        """Return the program for the number of rows that are to be read."""
        if self.workspace.partitions is not None:
            return self.programs.parallel
        rows = self.synopses.rows + sum(one.rows for slices in inputs.values() for one in slices)
        return self.programs.for_rows(rows, tiny)

    def _lay(self, sized: SizedProgram, inputs: Mapping[str, Sequence[Slice]]) -> None:
        self.workspace.resize(sized.in_one_task)
        for source in sized.program.inputs:
            self.workspace.lay(source.name, inputs[source.name], self.schemas[source.stream])
        self.synopses.lay(self.workspace)

    def _ranges(self, program: Program, until: Tick) -> dict[str, list[Slice]]:
        return {source.name: [self._range(source, until)] for source in program.inputs}

    def _range(self, source: Input, until: Tick) -> Slice:
        """Return the chunks that hold an input, with the exact bounds of its timestamps."""
        (low, high), start = source.range(self.since, until), self.progress.start
        if start is not None and source.stream not in self.whole and not is_part(source.stream):
            low = start if low is None else max(low, start)
        bounds = f"_t <= {high}" if low is None else f"_t > {low} AND _t <= {high}"
        chunks = self.logs[source.stream].overlapping(low, high) if low is None or low < high else []
        return Slice(chunks, f"{bounds}{self._seen(source.stream)}")

    def _arrived(self, stream: str, unread: Unread, new: list[Chunk], upto: Tick) -> list[Slice]:
        """Return what is to be read of a stream: tuples that were skipped so far, and some new chunks."""
        start, reached = self.progress.start, unread.position.upto
        seen = f" AND _t > {start}{self._seen(stream)}" if start is not None else self._seen(stream)
        # What came before the first reading by arrival was put out by time, as far as the fragment had come then.
        behind = "" if stream in self.progress.positions else f"_t > {reached} AND "
        skipped = Slice(unread.skipped(upto), f"_t > {reached} AND _t <= {upto}{seen}")
        return [skipped, Slice(new, f"{behind}_t <= {max(upto, reached)}{seen}")]

    def _seen(self, stream: str) -> str:
        """Return the condition for the sources that it sees, to be added to another."""
        return f" AND {self.compiled.sees[stream]}" if stream in self.compiled.sees else ""

    def instant_of(self, sql: str, tick: Tick) -> Tick | None:
        """Return the instant that an expression in SQL gives for a tuple of that timestamp."""
        return self.workspace.session.sql(f"SELECT CAST({sql} AS BIGINT) FROM VALUES ({tick}L) AS one(_t)").collect()[
            0
        ][0]

    # failures

    def _attempt(self, work: Callable[[], T], after: Tick, until: Tick) -> T:
        """Do the work of an epoch, and once more if a double turns up that the program does not sum.

        Nothing of the first attempt counts: what it has written was not committed.
        """
        try:
            try:
                return work()
            except PySparkException as error:
                if self.programs.sums_every_double or BEYOND not in str(error):
                    raise
                self._sum_every_double()
                return work()
        except Exception as error:
            raise self.failure(error, after, until) from error

    def _sum_every_double(self) -> None:
        """Go on with the programs that sum every double. What they keep in addition is empty: there was none so far."""
        self.programs = self.programs.summing_every_double()
        self.analyse()

    def failure(self, error: Exception, after: Tick, until: Tick) -> UserError:
        """Return what went wrong in an epoch as an error of ours: a damaged input, or what Spark says."""
        check_alive(self.workspace.origin, error)
        for log in self.program.logs():
            for chunk in self.logs[log].chunks:
                if problem := chunk.problem():
                    return torn(chunk.path, problem)
        return errors.failed(error, self.query, self.compiled.text, after, until)

    def restart(self) -> None:
        """Begin again from what was last committed, in a new session."""
        self.synopses.check()
        self.workspace.renew()
        self.analyse()
        self.failed = False

    # what the journal knows of it

    def apply(self, fact: dict[str, Any]) -> None:
        """Take what the journal says of it."""
        self.progress.apply(fact)
        if "synopses" in fact:
            self._compare_shapes(fact["shapes"])
            self.synopses.apply(fact)
            self.reread = 0

    def state(self) -> dict[str, Any]:
        """Return the fact that `apply` takes."""
        return self.progress.state() | self.synopses.state()

    def _compare_shapes(self, shapes: Mapping[str, str]) -> None:
        if not self.programs.sums_every_double and shapes.keys() > self.synopses.shapes().keys():
            self._sum_every_double()  # such doubles came before the restart
        if shapes != self.synopses.shapes():
            raise UserError(
                "other-version",
                f'what query "{self.query}" keeps was written by another version of headgate',
                hint="DROP the query with that version, or begin with a new directory.",
            )

    def sweep(self) -> None:
        """Delete files that were written and never came to count."""
        for left in self.directory.iterdir():
            if left.name.startswith(".") and left.is_dir():
                shutil.rmtree(left)
        self.synopses.delete_others()


def has_visible_rows(part: Part, name: str, log: Log, low: Tick | None, high: Tick) -> bool:
    """Say whether a log may have tuples in (low, high] of sources that a part of a plan sees."""
    chunks, scope = log.overlapping(low, high), part.scopes.get(name)
    if scope is None:
        return bool(chunks)
    found = (source for source in sources(part.plan) if isinstance(source, Source) and source.name == name)
    column = next(found).by or ""
    try:
        return any(scope.meets(sources_in(chunk, column)) for chunk in chunks)
    except (UserError, OSError, pa.ArrowException):
        return True  # an epoch will say what is wrong with the file


@lru_cache(maxsize=100_000)
def sources_in(chunk: Chunk, column: str) -> frozenset[str]:
    """Return the sources whose tuples a chunk holds. A chunk never changes, and most are small."""
    return frozenset(source_texts(column, chunk.table([column])).unique().to_pylist())
