"""Small epochs of several fragments in one Spark job, and small moves of their synopses in another.

A job costs as much as a hundred rows, and so does its planning. Work of which plans are kept runs by them
(`by_plans`). Other epochs run in one statement. Each epoch is a branch of it, with the steps of its program in a WITH
clause of its own:

    SELECT 0 AS _branch, symbol AS string_0, n AS bigint_0 FROM (WITH bids AS (SELECT * FROM rows_0), ... SELECT ...)
    UNION ALL
    SELECT 1 AS _branch, NULL, total FROM (WITH bids AS (SELECT * FROM rows_0), ... SELECT ...)

Branches that read the same rows share them. Results of all branches have common columns, by type, and are told apart by
`_branch`. Nothing counts before it is committed: if the job fails, the caller runs each epoch alone, and finds out
which of them it is that fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.execute.by_plans import computed_together
from headgate.execute.kept import SmallStatement
from headgate.execute.prepared import PreparedEpoch, PreparedMove, Written
from headgate.execute.workspace import TAKEN_ROWS, Reading, Workspace
from headgate.execute.workspaces import Workspaces
from headgate.spark.in_memory import arrow_schema
from headgate.spark.jobs import JOBS
from headgate.spark.kept_plans import FilledPlan
from headgate.spark.session import inheriting_tags
from headgate.spark.statements import run
from headgate.sql import Sql, checked_type, indented
from headgate.sql import name as sql_name

MOST_BRANCHES = 50
"""How many epochs run together: what one of them meets with, all of them pay for."""

FOR_TWO = 4
"""From so many epochs on, they are two statements, side by side."""

Laid: TypeAlias = tuple[object, ...]
"""What tells some rows from others: their chunks, instants, sources and columns."""

BESIDE = ThreadPoolExecutor(4, "headgate-small")
"""Threads for jobs beside the first. They stay: a new thread opens a new connection to Spark."""

T = TypeVar("T")


def fits_together(work: PreparedEpoch | PreparedMove) -> bool:
    """Say whether an epoch or a move of synopses can run in one job with those of other fragments.

    It must be small, in a session that they share, and what it gives must come as Arrow. If some of its steps are
    computed first, plans must be kept.
    """
    workspaces, sized = work.fragment.workspaces, work.sized
    if not sized.in_one_task or workspaces.frozen or arrow_schema(work.schema) is None:
        return False
    if isinstance(work, PreparedMove):
        return workspaces.kept is not None and bool(work.steps)
    return workspaces.kept is not None or not _computes_first(work)


def run_together(epochs: Sequence[PreparedEpoch]) -> list[Written | None]:
    """Run epochs of different fragments together; None for each that has to run alone.

    Those are epochs that give too many rows to be taken as Arrow, and epochs with steps that are computed first of
    which no plan is kept yet. If epochs are many, they are two jobs or two statements, side by side.
    """
    workspaces = epochs[0].fragment.workspaces
    results = _by_plans(workspaces, epochs)
    planned_now = [n for n, one in enumerate(epochs) if results[n] is None and not _computes_first(one)]
    if planned_now:
        free = workspaces.small, workspaces.second
        work = [
            partial(_run_statement, workspace, epochs, numbers)
            for numbers, workspace in zip(_halves(planned_now), free, strict=False)
        ]
        for tables in _side_by_side(workspaces.small.session, work):
            for number, table in tables.items():
                results[number] = table
    return [None if rows is None else epoch.taken(rows) for epoch, rows in zip(epochs, results, strict=True)]


def move_together(moves: Sequence[PreparedMove]) -> None:
    """Move the synopses of different fragments by plans that are kept. Moves without such plans are left out."""
    for move, contents in zip(moves, _by_plans(moves[0].fragment.workspaces, moves), strict=True):
        if contents is not None:
            move.fragment.state_moved(move.span.until, move.written(contents))


def _computes_first(epoch: PreparedEpoch) -> bool:
    """Say whether some steps of an epoch are computed before its results are."""
    program = epoch.sized.program
    return not program.needed(program.result).isdisjoint(epoch.sized.computed_first)


def _by_plans(workspaces: Workspaces, work: Sequence[PreparedEpoch] | Sequence[PreparedMove]) -> list[pa.Table | None]:
    """Return what is computed by plans that are kept; None for what is not."""
    kept = workspaces.kept
    if kept is None:
        return [None] * len(work)

    def run(plans: Sequence[FilledPlan]) -> list[pa.Table | None]:
        parts = [partial(kept.run, part) for part in _halves(plans)]
        return [table for tables in _side_by_side(workspaces.small.session, parts) for table in tables]

    return computed_together(kept, [one.computation() for one in work], run)


def _halves(items: Sequence[T]) -> list[Sequence[T]]:
    """Return some items in two parts if they are many, in one if they are few."""
    half = len(items) // 2
    parts = [items[:half], items[half:]] if len(items) >= FOR_TWO else [items]
    return [part for part in parts if part]


def _side_by_side(session: SparkSession, work: Sequence[Callable[[], T]]) -> list[T]:
    """Do several things, the first in this thread and the others beside it."""
    first, *rest = work
    running = [BESIDE.submit(inheriting_tags(session, one)) for one in rest]
    try:
        return [first(), *(one.result() for one in running)]
    finally:
        wait(running)


def _run_statement(
    workspace: Workspace, epochs: Sequence[PreparedEpoch], numbers: Sequence[int]
) -> dict[int, pa.Table | None]:
    """Run epochs as branches of one statement; return by their numbers what they give, None if it is too much."""
    with workspace.turn:
        workspace.interpret(max(epochs[number].rows for number in numbers))
        laid = _Laying(workspace)
        schemas = {number: epochs[number].schema for number in numbers}
        shared = _Columns(list(schemas.values()))
        texts = {number: _text(epochs[number].small_statement(), laid.names(epochs[number])) for number in numbers}
        branches = [
            f"SELECT {number} AS _branch, {shared.selected(schemas[number])} FROM (\n{text})"
            for number, text in texts.items()
        ]
        frame = run(workspace.session, "\nUNION ALL\n".join(branches)).coalesce(1)
        with JOBS.timed():
            rows = frame.toArrow()
    counted = Counter[int](dict(zip(*_value_counts(rows.column("_branch")), strict=True)))
    return {
        number: shared.rows_of(number, rows, schemas[number], counted[number])
        if counted[number] <= TAKEN_ROWS
        else None
        for number in numbers
    }


def _text(one: SmallStatement, views: Mapping[str, str]) -> Sql:
    return indented(f"{one.over(views, one.values)}\nLIMIT {TAKEN_ROWS + 1}")


class _Laying:
    """Puts rows under names, the rows that several epochs read only once."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._laid: dict[Laid, str] = {}

    def names(self, epoch: PreparedEpoch) -> dict[str, str]:
        """Return the names under which the inputs and synopses of an epoch lie, by the names in its program."""
        by_arrival = epoch.sized.program.by_arrival
        return {one.name: self._lay(one, one.within is not None or by_arrival) for one in epoch.reads()}

    def _lay(self, one: Reading, by_arrival: bool) -> str:
        key: Laid = (by_arrival, *one.known_by())
        if key not in self._laid:
            self._laid[key] = f"rows_{len(self._laid)}"
            self.workspace.lay(self._laid[key], one.slices, one.schema, one.within, by_arrival)
        return self._laid[key]


class _Columns:
    """The columns that branches have in common: of each type, as many as one of the branches has."""

    def __init__(self, schemas: Sequence[StructType]) -> None:
        most = Counter[str]()
        for schema in schemas:
            most |= Counter(field.dataType.simpleString() for field in schema)
        self._names = {slot: f"c{number}" for number, slot in enumerate((t, n) for t in most for n in range(most[t]))}

    def _places(self, schema: StructType) -> Iterator[tuple[str, str]]:
        """The columns of a branch, each with the common column that it goes to."""
        seen = Counter[str]()
        for field in schema:
            kind = field.dataType.simpleString()
            yield field.name, self._names[kind, seen[kind]]
            seen[kind] += 1

    def selected(self, schema: StructType) -> Sql:
        """Return what a branch selects."""
        by_slot = {slot: sql_name(name) for name, slot in self._places(schema)}
        return ", ".join(
            f"{by_slot.get(slot, f'CAST(NULL AS {checked_type(kind)})')} AS {sql_name(slot)}"
            for (kind, _), slot in self._names.items()
        )

    def rows_of(self, number: int, rows: pa.Table, schema: StructType, count: int) -> pa.Table:
        """Return the rows of a branch, with its own columns."""
        names = dict(self._places(schema))
        some = rows.filter(pc.field("_branch") == number) if count else rows.slice(0, 0)
        return some.select(list(names.values())).rename_columns(list(names))


def _value_counts(column: pa.ChunkedArray) -> tuple[list[int], list[int]]:
    counted = column.value_counts()
    return counted.field("values").to_pylist(), counted.field("counts").to_pylist()
