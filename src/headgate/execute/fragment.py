"""A fragment of a query while it runs: what it computes, how far it has come, and one epoch of it.

    prepare       find out what an epoch reads and by which program; nothing has run
    run           one Spark statement writes the results of an epoch; nothing of it counts yet
    Written       those results, with the fact that makes them count in one line of the journal
    move_state    bring the synopses up to what has been put out, when reading behind them has become dear

A fragment reads by time, up to where its inputs are complete. One that handles each tuple by itself reads in order of
arrival instead.
"""

from __future__ import annotations

import logging
import shutil
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql.types import ByteType, IntegerType, LongType, ShortType, StructField, StructType

from headgate.catalog import sinks
from headgate.catalog.entries import Query
from headgate.compile import CompiledFragment
from headgate.cql import calls
from headgate.delta.assumptions import Assumption, broken
from headgate.delta.exact import DOES_NOT_FIT
from headgate.delta.panes import keeps_panes
from headgate.delta.program import Program
from headgate.errors import UserError
from headgate.execute import errors
from headgate.execute.analysis import analysed
from headgate.execute.epoch_end import LEAST_ROWS, hashed_rows_for_memory, rows_for_memory
from headgate.execute.inputs import FragmentInputs
from headgate.execute.join_orders import COUNTED_IN_ONE_TASK, JoinOrders
from headgate.execute.prepared import PreparedEpoch, PreparedMove, Written
from headgate.execute.programs import Programs, SizedProgram
from headgate.execute.progress import Progress
from headgate.execute.statement import Span, Statement, state_steps
from headgate.execute.synopses import SynopsisStore
from headgate.execute.workspace import Reading, Slice, Workspace
from headgate.execute.workspaces import Workspaces
from headgate.log.chunk import Chunk
from headgate.log.journal import Journal
from headgate.log.log import Log
from headgate.plan.nodes import Node, is_shared
from headgate.plan.weights import partial_columns
from headgate.spark.back_off import BackOff
from headgate.spark.failures import check_alive, lacks_memory
from headgate.spark.statements import run
from headgate.sql import Sql
from headgate.ticks import UNLIMITED, Tick

MOVE_COST_ROWS = 12_000
"""Moving the synopses by a statement costs about as much as reading this many tuples once more."""

MOVE_COST_ROWS_BY_PLAN = 2_500
"""Moving them by a plan that is kept costs about as much as reading this many."""

LIGHTER_AT_REST = 10
"""So many rows of a synopsis at rest cost as much as one row that comes: they lie there, ready to be joined."""

MEASURED_ROWS = 100
"""So many tuples must have been read before their number says something about how many are put out for each."""

RESTARTS = 3
"""How often in a row a fragment that fails is restarted: what fails then as well will fail again."""

LOG = logging.getLogger(__name__)

T = TypeVar("T")


class Fragment:
    """A part of a query that runs by itself."""

    def __init__(
        self,
        query: Query,
        compiled: CompiledFragment,
        workspaces: Workspaces,
        logs: Mapping[str, Log],
        schemas: Mapping[str, StructType],
        directory: Path,
        *,
        start: Tick | None = None,
        whole: frozenset[str] = frozenset(),
        journal: Journal | None = None,
        output: Log | None = None,
    ) -> None:
        self.query = query.name
        self.text = query.text
        """The query's text, in which errors show their place."""
        self.part = compiled.part
        self.group = compiled.group
        """The group of sources whose answers it gives; empty if its query does not run by groups."""
        self.programs = Programs(compiled.program, compiled.tiny_program)
        self.joins = JoinOrders(self.programs.groups, self.program.arrangements, query.join_caches)
        """How its joins of several inputs are arranged."""
        self.denied: frozenset[Assumption] | None = frozenset()
        """What chunks have shown not to hold of their numbers, so that programs do not take it for granted; None if the
        synopses are those of a version that took nothing for granted.
        """
        self.schemas = _with_partials(compiled.part.plan, schemas)
        """By name: the columns of its logs."""
        self.directory = directory
        self.output = output
        """The log to which its elements go, for other fragments to read; None if it gives the answer."""
        self.in_order = output is None and query.connector is not None and sinks.takes_files_in_order(query.connector)
        """Whether large results are sorted, file by file: their files can then be handed over as they are."""
        self.journal = journal or Journal()
        before = self.program.domain.origin - 1
        self.progress = Progress(start, since=before, after=before)
        self.inputs = FragmentInputs(compiled, self.progress, logs, whole)
        self.synopses = SynopsisStore(directory, self.journal.durable)
        self.workspaces = workspaces.of_their_own() if calls.calls_unknown(compiled.part.plan) else workspaces
        self.failed = False
        """An epoch failed. The fragment stands still and holds up no other, until it is restarted."""
        self.back_off = BackOff()
        """When it is restarted after it has failed."""
        self.hash_joins = True
        """Whether joins may make hash tables. False after one of them did not fit into memory."""
        self.rows_in = self.rows_out = 0
        """How many rows it has read and put out since the engine was started."""
        self._began_s: float | None = None
        """When the epoch began that runs now."""
        self.reread = 0
        """How many rows behind `since` its epochs have read since the synopses were last moved."""
        within = f"{directory.parent.name}/{directory.name}" if output is not None or self.group else directory.name
        self.subject = f"fragment {within}"
        self.analyse()
        self.journal.introduce(self.subject, self.apply)

    def __repr__(self) -> str:
        return f"Fragment({self.full_name}: after {self.after})"

    @property
    def full_name(self) -> str:
        """The name that errors and notes give it."""
        if self.shared:
            return self.part.name
        whole = self.query if self.part.log is None else f"{self.part.log} of {self.query}"
        return f"{whole} for group {self.group}" if self.group else whole

    @property
    def shared(self) -> bool:
        """Whether it belongs to the engine, and several queries may read it."""
        return is_shared(self.part.log)

    @property
    def stop(self) -> str:
        """The name it has on the way of a heartbeat, in traces."""
        return self.part.log or self.query

    @property
    def program(self) -> Program:
        """What it computes, as it was compiled."""
        return self.programs.program

    def analyse(self) -> None:
        """Let Spark analyse the program, before anything runs. What it refuses is raised as an error of ours."""
        try:
            found = analysed(self.workspaces, self.programs.parallel, self.schemas, self.text)
        except UserError:
            raise
        except Exception as error:
            check_alive(self.workspaces.origin, error)
            raise errors.rejected(error, self.query, self.text) from error
        self.result_schema, self.synopses.schemas = found.results, found.synopses

    # how far it is

    @property
    def since(self) -> Tick:
        """The instant that the synopses describe."""
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

    @property
    def tuples(self) -> Mapping[str, int]:
        """From how many tuples its results come, by stream and relation that it reads itself; empty if unknown."""
        if not self.inputs.by_arrival:
            return self.progress.tuples
        if self.epochs and not self.progress.positions:
            return {}  # an earlier version read by time
        return {stream: self.inputs.position(stream).arrived for stream in self.program.streams()}

    def selectivity(self) -> float | None:
        """Return how many rows it puts out for each that it reads; None while too few were read to know."""
        return self.rows_out / self.rows_in if self.rows_in >= MEASURED_ROWS else None

    # one epoch

    def rows_at_once(self) -> int:
        """Return how many rows an epoch takes at most, unless the user says it: as many as Spark's memory holds."""
        logs = self.program.logs()
        if sum(chunk.rows for log in logs for chunk in self.inputs.logs[log].chunks) <= LEAST_ROWS:
            return LEAST_ROWS  # whatever memory there is
        columns = max((len(self.schemas[log].names) for log in logs), default=0)
        newest = [chunk for log in logs for chunk in self.inputs.logs[log].chunks[-1:]]
        return rows_for_memory(self.workspaces.large.memory, columns, newest)

    def run(self, until: Tick) -> Written:
        """Run one epoch by time, from where the fragment is up to `until`."""
        return self._attempt(lambda: self.prepare(until).run(), self.after, until)

    def run_arrived(self, upto: Tick, until: Tick, most: int) -> Written:
        """Run one epoch over what has arrived and is stamped up to `upto`: all of it, or about `most` rows.

        If it is all, the results are complete up to `until`.
        """
        return self._attempt(lambda: self.prepare_arrived(upto, until, most).run(), self.after, upto)

    def prepare(self, until: Tick, inputs: FragmentInputs | None = None) -> PreparedEpoch:
        """Prepare an epoch by time, from where the fragment is up to `until`; over other inputs if they are given."""
        inputs = inputs or self.inputs
        inputs.look()
        if inputs is self.inputs and self.joins.groups:
            self._count_if_due(until)
        self._began_s = monotonic()
        sized, slices = self._sized_for(until, lambda program: [program.result], inputs)
        tuples = inputs.tuples()
        fact = {"after": until, "epochs": self.epochs + 1, "tuples": tuples}
        fact = fact if self.keeps_state else {**fact, "since": until}
        span = Span(self.since, until, self.after)
        return PreparedEpoch(self, sized, slices, span, self.after, until, fact, inputs.rows_taken(until), tuples)

    def prepare_arrived(self, upto: Tick, until: Tick, most: int) -> PreparedEpoch:
        """Prepare an epoch over what has arrived and is stamped up to `upto`: all of it, or about `most` rows.

        Its statement takes every tuple, whenever it is stamped.
        """
        with self.journal.turn:  # what comes from now on is left to the next epoch, tuples and members alike
            after, arrived, before = self.after, self.inputs.arrived(upto, most), self.program.domain.origin - 1
        until = min(until, upto) if arrived.all_of_it else after
        fact = {"after": until, "epochs": self.epochs + 1, "taken": dict(arrived.positions)}
        fact = fact if self.program.synopses else {**fact, "since": until}  # otherwise it reads members from the first
        sized, span = self._sized(arrived.slices, tiny=False), Span(before, UNLIMITED, before)
        sized = self._with_hash_joins(sized, arrived.slices)
        tuples = {stream: position.arrived for stream, position in arrived.positions.items()}
        return PreparedEpoch(self, sized, arrived.slices, span, after, until, fact, arrived.rows, tuples)

    def committed(self, written: Written, rows: int) -> None:
        """Count what an epoch has put out, now that it is committed."""
        self.rows_in += written.rows_in
        self.rows_out += rows
        self.reread += self.inputs.rows_reread(written.until)
        if self._began_s is not None:
            self.joins.epochs_s += monotonic() - self._began_s
            self._began_s = None

    def advance_idle(self, until: Tick) -> None:
        """Be complete up to `until` without an epoch, because nothing happens. After a crash that is found out anew."""
        self.progress.after = until
        self.progress.tuples = {} if self.inputs.by_arrival else self.inputs.tuples()
        if not self.keeps_state:
            self.progress.since = until

    @property
    def keeps_state(self) -> bool:
        """Whether there are synopses, so that `since` is the instant that these describe."""
        return bool(self.program.synopses or self.synopses.files)

    def should_move_state(self) -> bool:
        """Say whether reading behind `since` has by now cost as much as moving the synopses would."""
        rewritten = self.synopses.rows - self._rows_at_rest()
        by_time = not self.inputs.by_arrival  # otherwise there is nothing to move: members are read whole
        cost = MOVE_COST_ROWS if self.workspaces.kept is None else min(MOVE_COST_ROWS, MOVE_COST_ROWS_BY_PLAN)
        if self.joins.coming is not None:
            return by_time and self.begun  # caches come or go
        return bool(self.program.synopses) and by_time and self.reread > cost + rewritten

    def _rows_at_rest(self) -> int:
        """How many rows of the synopses follow from base relations alone."""
        return sum(self.synopses.counts.get(one.name, 0) for one in self.program.synopses if one.at_rest)

    def move_state(self) -> None:
        """Bring the synopses up to what has been put out, by one Spark job for all of them."""
        until = self.after
        self.state_moved(until, self._attempt(lambda: self.prepare_move().run(), self.since, until))

    def state_moved(self, until: Tick, fact: Mapping[str, Any]) -> None:
        """Let synopses count that were written and describe `until`."""
        self.journal.record(self.subject, {"since": until, **fact, **self._denial()}, undo=self.synopses.discard_next)
        self.synopses.delete_others()

    def _unchanged(self, until: Tick) -> frozenset[str]:
        """Return the synopses that are at `until` what they are now: of base relations of which no row has come."""
        kept = [one for one in self.program.synopses if one.at_rest and one.name in self.synopses.counts]
        return frozenset(one.name for one in kept if not self._rows_come(one.contents, until))

    def _rows_come(self, step: str, until: Tick) -> bool:
        """Say whether a step reads rows that came after the synopses were moved."""
        ranges = self.inputs.ranges(self.program, [step], until)
        return any(
            any(one.rows for one in ranges[source.name]) if source.moves() else self.since < self.program.domain.origin
            for source in self.program.inputs_of(step)
        )

    def prepare_move(self) -> PreparedMove:
        """Prepare a move of the synopses up to what has been put out, from the logs where less is read that way."""
        until = self.after
        if self.joins.coming is not None:
            self._change_programs(self.programs.arranged(self.joins.while_moving()))
        unchanged = self._unchanged(until)
        from_logs = frozenset(
            synopsis.name
            for synopsis in self.program.synopses
            if synopsis.from_logs and self._reads_less(synopsis.from_logs, synopsis.contents, until)
        )
        sized, slices = self._sized_for(until, lambda program: state_steps(program, from_logs, unchanged).values())
        span, steps = Span(self.since, until, self.after), state_steps(sized.program, from_logs, unchanged)
        return PreparedMove(self, sized, slices, span, steps, unchanged)

    def reads(
        self, program: Program, slices: Mapping[str, Sequence[Slice]], targets: Iterable[str]
    ) -> Iterator[Reading]:
        """Return what some steps read, of logs and of synopses."""
        needed = {name for target in targets for name in program.needed(target)}
        for source in program.inputs:
            if source.name in needed:
                yield Reading(source.name, slices[source.name], self.schemas[source.stream])
        for name, schema in self.synopses.schemas.items():
            if name in needed:
                yield Reading(name, self.synopses.slices(name), schema, within=name)

    def _reads_less(self, step: str, other: str, until: Tick) -> bool:
        return self.inputs.rows_read([step], until) < self.inputs.rows_read([other], until) + self.synopses.rows

    # joins of several inputs

    def _count_if_due(self, until: Tick) -> None:
        """Count with how many rows new rows agree, if it is time to, and go on with the orders that are best by that.

        Counting decides how something is computed, and nothing else. If it fails, it is tried again later.
        """
        plain = self.inputs.ranges(self.program, [self.program.result], until)
        if not self.inputs.rows_taken(until) or not self.joins.due(self.rows_of(plain)):
            return
        began_s = monotonic()
        self._respect(lambda: plain)
        new = {one.stream: 0 for one in self.program.inputs}
        for one in self.program.inputs:
            new[one.stream] += sum(some.rows for some in plain.get(one.name, ())) if one.moves() else 0
        in_one_task = self.workspaces.partitions is None and self.rows_of(plain) <= COUNTED_IN_ONE_TASK
        sized = self.programs.counting(self.joins.to_count(new), in_one_task)
        try:
            counted = self.counted_rows(sized, Span(self.since, until, self.after))
        except PySparkException as error:
            check_alive(self.workspaces.origin, error)
            LOG.warning("rows of %s could not be counted: %s", self.full_name, str(error).partition("\n")[0])
        else:
            if self.joins.take(counted):
                self.programs = self.programs.arranged(self.joins.arrangements)  # the synopses stay as they are
                self.inputs.program = self.program
        self.joins.took(monotonic() - began_s)

    def counted_rows(self, sized: SizedProgram, span: Span) -> list[tuple[int, int, str, int]]:
        """Run a program that counts: return group, input, with which others, and how many rows."""
        slices = self.inputs.ranges(sized.program, [sized.program.result], span.until)
        workspace = self.workspaces.of(sized.in_one_task)
        with workspace.turn:
            self.lay(workspace, sized, slices)
            frame = workspace.run(sized.program.step_statement(sized.program.result), span.values())
            return [tuple(row) for row in frame.collect()]

    # the statement of an epoch

    def statement(self, sized: SizedProgram, span: Span) -> Statement:
        """Return the statement of a program over the inputs that lie in its workspace."""
        return Statement(self.workspaces.of(sized.in_one_task), self.directory, sized, span, self.in_order)

    def lay(self, workspace: Workspace, sized: SizedProgram, slices: Mapping[str, Sequence[Slice]]) -> None:
        """Put the inputs and the synopses of a program under their names."""
        if sized.in_one_task:
            workspace.interpret(self.rows_of(slices))
        for source in sized.program.inputs:
            if source.name in slices:
                schema, by_arrival = self.schemas[source.stream], sized.program.by_arrival
                workspace.lay(source.name, slices[source.name], schema, by_arrival=by_arrival)
        self.synopses.lay(workspace)

    def _sized_for(
        self, until: Tick, targets: Callable[[Program], Iterable[str]], inputs: FragmentInputs | None = None
    ) -> tuple[SizedProgram, dict[str, list[Slice]]]:
        """Return the program for some steps over (since, until], and what it reads."""
        inputs = inputs or self.inputs
        self._respect(lambda: inputs.ranges(self.program, targets(self.program), until))
        sized = self._sized(inputs.ranges(self.program, targets(self.program), until))
        slices = inputs.ranges(sized.program, targets(sized.program), until)
        return self._with_hash_joins(sized, slices), slices

    def _respect(self, ranges: Callable[[], Mapping[str, Sequence[Slice]]]) -> None:
        """Change to programs that take nothing for granted which the chunks in some ranges do not keep to."""
        if not self.programs.assumed:
            return
        read: dict[str, list[Chunk]] = {}
        slices = ranges()
        for source in self.program.inputs:
            read.setdefault(source.stream, []).extend(
                chunk for one in slices.get(source.name, ()) for chunk in one.chunks
            )
        if found := broken(self.programs.assumed, lambda stream: read.get(stream, ())):
            self._deny((self.denied or frozenset()) | found)

    def _deny(self, denied: frozenset[Assumption] | None) -> None:
        if denied != self.denied:
            self.denied = denied
            self._change_programs(self.programs.denying(denied))

    def _sized(self, slices: Mapping[str, Sequence[Slice]], tiny: bool = True) -> SizedProgram:
        """Return the program for the number of rows that are to be read."""
        if self.workspaces.partitions is not None:
            return self.programs.large(self.workspaces.large.tasks)
        return self.programs.for_rows(self.rows_of(slices), self.workspaces.large.tasks, tiny)

    def rows_of(self, slices: Mapping[str, Sequence[Slice]]) -> int:
        """Return how many rows some slices and the synopses have together; rows at rest count less."""
        resting = self._rows_at_rest()
        kept = self.synopses.rows - resting + resting // LIGHTER_AT_REST
        return kept + sum(one.rows for several in slices.values() for one in several)

    def _with_hash_joins(self, sized: SizedProgram, slices: Mapping[str, Sequence[Slice]]) -> SizedProgram:
        """Return the program with hash tables for the joins that gain by them, where a side fits into memory."""
        if not self.hash_joins or not sized.program.hashes(sized.in_one_task):
            return sized
        of_all = self.synopses.rows  # where it is not known of each
        kept = {one.name: self.synopses.counts.get(one.name, of_all) for one in sized.program.synopses}
        rows = kept | {name: sum(one.rows for one in several) for name, several in slices.items()}
        columns = max(len(schema.names) for schema in self.schemas.values())
        most = hashed_rows_for_memory(self.workspaces.large.memory, columns)
        decided = sized.program.with_hash_joins(lambda name: rows.get(name, 0), most, sized.in_one_task)
        return replace(sized, program=decided)

    def instant_of(self, sql: Sql, tick: Tick) -> Tick | None:
        """Return the instant that an expression in SQL gives for a tuple of that timestamp."""
        text = f"SELECT CAST({sql} AS BIGINT) FROM VALUES ({tick}L) AS one(_t)"
        return run(self.workspaces.analysis.session, text).collect()[0][0]

    # failures

    def _attempt(self, work: Callable[[], T], after: Tick, until: Tick) -> T:
        """Do the work of an epoch, and once more if a double turns up that the program does not sum.

        Likewise if the memory is too small for the hash tables of its joins: then these sort their sides from now on.

        Nothing of the first attempt counts: what it has written was not committed.
        """
        try:
            try:
                return work()
            except PySparkException as error:
                if DOES_NOT_FIT in str(error) and not self.programs.sums_every_double:
                    self._sum_every_double()
                elif self.hash_joins and lacks_memory(error):
                    self.hash_joins = False
                else:
                    raise
                return work()
        except Exception as error:
            raise self.failure(error, after, until) from error

    def _sum_every_double(self) -> None:
        """Go on with the programs that sum every double. What they keep in addition is empty: there was none so far."""
        self._change_programs(self.programs.summing_every_double())

    def _change_programs(self, programs: Programs) -> None:
        self.programs = programs
        self.inputs.program = self.program
        self.analyse()

    def compute_by(self, compiled: CompiledFragment) -> None:
        """Go on with programs that give the answers of the ones before up to where it is, and keep what they kept."""
        shapes, programs = self.synopses.shapes(), Programs(compiled.program, compiled.tiny_program)
        if self.denied is None or self.denied:
            programs = programs.denying(self.denied)
        if self.joins.groups and programs.groups:
            programs = programs.arranged(self.joins.arrangements)
            self.joins.groups = programs.groups
        self._change_programs(programs)
        if self.synopses.shapes() != shapes:
            self._compare_shapes(shapes)

    def failure(self, error: Exception, after: Tick, until: Tick) -> UserError:
        """Return what went wrong in an epoch as an error of ours: a damaged input, or what Spark says."""
        check_alive(self.workspaces.origin, error)
        return self.inputs.damaged() or errors.failed(error, self.query, self.text, after, until)

    def restart(self) -> None:
        """Begin again from what was last committed, in a new session."""
        self.synopses.check()
        self.workspaces.renew()
        self.analyse()
        self.failed = False

    def close(self) -> None:
        """Give back the sessions that only this fragment has."""
        if self.workspaces.frozen:
            self.workspaces.close()

    # what the journal knows of it

    def apply(self, fact: dict[str, Any]) -> None:
        """Take what the journal says of it."""
        before = self.since
        self.progress.apply(fact)
        if "synopses" in fact:
            known = fact.get("denied")
            self._deny(None if known is None else frozenset(Assumption(*one) for one in known))
            self._compare_shapes(fact["shapes"])
            self.synopses.apply(fact)
            self.reread = 0
        elif self.since > before and self.program.synopses and not self.synopses.version:
            self._compare_shapes({})

    def state(self) -> dict[str, Any]:
        """Return the fact that `apply` takes."""
        return self.progress.state() | self.synopses.state() | (self._denial() if self.synopses.version else {})

    def _denial(self) -> dict[str, Any]:
        """Return what its programs must not take for granted, for the journal."""
        return {} if self.denied is None else {"denied": [list(astuple(one)) for one in sorted(self.denied)]}

    def _compare_shapes(self, shapes: Mapping[str, str]) -> None:
        if self.joins.groups and (arrangements := self.joins.with_synopses(shapes)):
            self._change_programs(self.programs.arranged(arrangements))
        if shapes.keys() != self.synopses.shapes().keys() and (trees := self.programs.as_trees()):
            if shapes.keys() == {one.name for one in trees.program.synopses}:
                self.joins = JoinOrders((), (), False)
                self._change_programs(trees)  # an earlier version knew of no joins of several inputs
        if not any(map(keeps_panes, shapes)) and (programs := self.programs.without_panes()):
            self._change_programs(programs)  # an earlier version kept running sums
        if not self.programs.sums_every_double and shapes.keys() > self.synopses.shapes().keys():
            self._sum_every_double()  # such doubles came before the restart
        if shapes != self.synopses.shapes() and (programs := self.programs.without_distances()):
            self._change_programs(programs)  # an earlier version read these sides of joins from their logs
        if shapes != self.synopses.shapes() and (programs := self.programs.without_leaders()):
            self._change_programs(programs)  # an earlier version read the windows below MIN and MAX again
        if shapes != self.synopses.shapes():
            raise UserError(
                "other-version",
                f'what query "{self.query}" keeps was written by another version of headgate',
                hint="DROP the query with that version, or begin with a new directory.",
            )

    def check_files(self) -> None:
        """Raise an error that names the first of its files that is missing or cut short; delete what never counted."""
        if self.output is not None:
            self.output.check()
        self.synopses.check()
        self.sweep()
        if self.output is not None:
            self.output.sweep()

    def sweep(self) -> None:
        """Delete files that were written and never came to count."""
        for left in self.directory.iterdir():
            if left.name.startswith(".") and left.is_dir():
                shutil.rmtree(left)
        self.synopses.delete_others()


def _with_partials(plan: Node, schemas: Mapping[str, StructType]) -> Mapping[str, StructType]:
    """The columns of logs, with those of partial aggregates that the plan reads; in files without any they are null."""
    partial = partial_columns(plan)
    if not partial:
        return schemas
    own = {
        stream: StructType([*schemas[stream].fields, *(StructField(one.name, WHOLE[one.type.upper()]) for one in more)])
        for stream, more in partial.items()
    }
    return ChainMap(own, schemas)  # type: ignore[arg-type]


WHOLE = {"TINYINT": ByteType(), "SMALLINT": ShortType(), "INT": IntegerType(), "BIGINT": LongType()}
"""The types that columns of partial aggregates have."""
