"""Small epochs of several fragments in one Spark statement.

A job costs as much as a hundred rows, and so does its planning; N small epochs in one statement cost far less than N
statements. Each epoch is a branch of the statement, with the steps of its program in a WITH clause of its own:

    SELECT 0 AS _branch, symbol AS string_0, n AS bigint_0 FROM (WITH bids AS (SELECT * FROM rows_0), ... SELECT ...)
    UNION ALL
    SELECT 1 AS _branch, NULL, total FROM (WITH bids AS (SELECT * FROM rows_0), ... SELECT ...)

Branches that read the same rows share them. Results of all branches have common columns, by type, and are told apart by
`_branch`. Nothing counts before it is committed: if the statement fails, the caller runs each epoch alone, and finds
out which of them it is that fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.execute.fragment import PreparedEpoch, Written
from headgate.execute.kept import KeptPlans, SmallStatement
from headgate.execute.workspace import TAKEN_ROWS, Reading, Workspace, write_small
from headgate.spark.in_memory import arrow_schema
from headgate.spark.jobs import JOBS
from headgate.spark.kept_plans import FilledPlan
from headgate.spark.session import inheriting_tags
from headgate.sql import indented
from headgate.sql import name as sql_name

MOST_BRANCHES = 50
"""How many epochs run together: what one of them meets with, all of them pay for."""

FOR_TWO = 4
"""From so many epochs on, they are two statements, side by side."""

Laid: TypeAlias = tuple[object, ...]
"""What tells some rows from others: their chunks, instants, sources and columns."""

Results: TypeAlias = dict[int, pa.Table]
"""By the number of an epoch: what it puts out."""

T = TypeVar("T")


def fits_together(epoch: PreparedEpoch) -> bool:
    """Say whether an epoch can run in one statement with epochs of other fragments.

    It must be small and one statement, in a session that they share, and its results must come as Arrow.
    """
    program, fragment = epoch.sized.program, epoch.fragment
    if not epoch.sized.in_one_task or fragment.workspaces.frozen:
        return False
    computed_first = program.needed(program.result).intersection(epoch.sized.computed_first)
    return not computed_first and arrow_schema(fragment.result_schema) is not None


def run_together(epochs: Sequence[PreparedEpoch]) -> list[Written] | None:
    """Run epochs of different fragments together; None if the results of one are too many to be taken as Arrow.

    Those whose plan was kept run by it in one job, the others as branches of one statement. If they are many, they are
    two jobs or two statements, side by side: much of the time is planning, which Spark does in one thread.
    """
    workspaces = epochs[0].fragment.workspaces
    kept = workspaces.kept
    statements = [epoch.small_statement() for epoch in epochs]
    plans = {} if kept is None else kept.filled(statements)
    work: list[Callable[[], Results | None]] = []
    for numbers in _halves([number for number in range(len(epochs)) if number in plans]):
        assert kept is not None
        work.append(partial(_run_plans, kept, {number: plans[number] for number in numbers}))
    free = [workspaces.second, workspaces.small] if plans else [workspaces.small, workspaces.second]
    for numbers, workspace in zip(_halves([n for n in range(len(epochs)) if n not in plans]), free, strict=False):
        work.append(partial(_run_statement, workspace, epochs, statements, numbers))
    results: Results = {}
    for given in _side_by_side(workspaces.small.session, work):
        if given is None:
            return None
        results |= given
    return [
        epoch.written(write_small(results[number], epoch.fragment.directory / ".results"))
        for number, epoch in enumerate(epochs)
    ]


def _halves(numbers: list[int]) -> list[list[int]]:
    """Return some numbers in two parts if they are many, in one if they are few."""
    half = len(numbers) // 2
    parts = [numbers[:half], numbers[half:]] if len(numbers) >= FOR_TWO else [numbers]
    return [part for part in parts if part]


def _side_by_side(session: SparkSession, work: Sequence[Callable[[], T]]) -> list[T]:
    """Do several things, the first in this thread and the others beside it."""
    first, *rest = work
    if not rest:
        return [first()]
    with ThreadPoolExecutor(len(rest)) as others:
        running = [others.submit(inheriting_tags(session, one)) for one in rest]
        return [first(), *(one.result() for one in running)]


def _run_plans(kept: KeptPlans, plans: Mapping[int, FilledPlan]) -> Results | None:
    """Run epochs by the plans that were kept for them."""
    tables = kept.run(list(plans.values()))
    return None if tables is None else dict(zip(plans, tables, strict=True))


def _run_statement(
    workspace: Workspace, epochs: Sequence[PreparedEpoch], statements: Sequence[SmallStatement], numbers: Sequence[int]
) -> Results | None:
    """Run epochs as branches of one statement."""
    with workspace.turn:
        workspace.interpret(max(epochs[number].rows for number in numbers))
        laid = _Laying(workspace)
        schemas = {number: epochs[number].fragment.result_schema for number in numbers}
        shared = _Columns(list(schemas.values()))
        texts = {number: _text(statements[number], laid.names(epochs[number])) for number in numbers}
        branches = [
            f"SELECT {number} AS _branch, {shared.selected(schemas[number])} FROM (\n{text})"
            for number, text in texts.items()
        ]
        frame = workspace.session.sql("\nUNION ALL\n".join(branches)).coalesce(1)
        with JOBS.timed():
            rows = frame.toArrow()
    counted = Counter[int](dict(zip(*_value_counts(rows.column("_branch")), strict=True)))
    if max(counted.values(), default=0) > TAKEN_ROWS:
        return None
    return {number: shared.rows_of(number, rows, schemas[number], counted[number]) for number in numbers}


def _text(one: SmallStatement, views: Mapping[str, str]) -> str:
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

    def selected(self, schema: StructType) -> str:
        """Return what a branch selects."""
        by_slot = {slot: sql_name(name) for name, slot in self._places(schema)}
        return ", ".join(
            f"{by_slot.get(slot, f'CAST(NULL AS {kind})')} AS {slot}" for (kind, _), slot in self._names.items()
        )

    def rows_of(self, number: int, rows: pa.Table, schema: StructType, count: int) -> pa.Table:
        """Return the rows of a branch, with its own columns."""
        names = dict(self._places(schema))
        some = rows.filter(pc.field("_branch") == number) if count else rows.slice(0, 0)
        return some.select(list(names.values())).rename_columns(list(names))


def _value_counts(column: pa.ChunkedArray) -> tuple[list[int], list[int]]:
    counted = column.value_counts()
    return counted.field("values").to_pylist(), counted.field("counts").to_pylist()
