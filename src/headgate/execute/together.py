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
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from headgate.execute.fragment import PreparedEpoch, Written
from headgate.execute.statement import result_columns
from headgate.execute.workspace import TAKEN_ROWS, Slice, Workspace, values_in
from headgate.spark.in_memory import arrow_schema
from headgate.spark.jobs import JOBS
from headgate.spark.session import inheriting_tags
from headgate.spark.staging import write_arrow
from headgate.sql import indented
from headgate.sql import name as sql_name

MOST_BRANCHES = 50
"""How many epochs run together: what one of them meets with, all of them pay for."""

FOR_TWO = 4
"""From so many epochs on, they are two statements, side by side."""

Laid: TypeAlias = tuple[object, ...]
"""What tells some rows from others: their chunks, instants, sources and columns."""


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

    They are one statement, or two if they are many: most of the time is planning, which Spark does in one thread.
    """
    workspaces = epochs[0].fragment.workspaces
    if len(epochs) < FOR_TWO:
        return _run(workspaces.small, epochs)
    half = len(epochs) // 2
    with ThreadPoolExecutor(1) as other:
        work = inheriting_tags(workspaces.second.session, lambda: _run(workspaces.second, epochs[half:]))
        running = other.submit(work)
        first, second = _run(workspaces.small, epochs[:half]), running.result()
    return None if first is None or second is None else first + second


def _run(workspace: Workspace, epochs: Sequence[PreparedEpoch]) -> list[Written] | None:
    """Run epochs as branches of one statement."""
    with workspace.turn:
        workspace.interpret(max(epoch.rows for epoch in epochs))
        laid = _Laying(workspace)
        shared = _Columns([epoch.fragment.result_schema for epoch in epochs])
        branches = [
            _branch(number, epoch, laid.names(epoch), shared.selected(epoch.fragment.result_schema))
            for number, epoch in enumerate(epochs)
        ]
        frame = workspace.session.sql("\nUNION ALL\n".join(branches)).coalesce(1)
        with JOBS.timed():
            rows = frame.toArrow()
    counted = Counter[int](dict(zip(*_value_counts(rows.column("_branch")), strict=True)))
    if max(counted.values(), default=0) > TAKEN_ROWS:
        return None
    return [
        epoch.written(_write(epoch, shared.rows_of(number, rows, epoch.fragment.result_schema, counted[number])))
        for number, epoch in enumerate(epochs)
    ]


def _branch(number: int, epoch: PreparedEpoch, names: Mapping[str, str], selected: str) -> str:
    program = epoch.sized.program
    inputs = [f"{name} AS (SELECT * FROM {view})" for name, view in names.items()]
    steps = epoch.sized.output(result_columns(program)).removeprefix("WITH ")
    text = "WITH " + ",\n".join([*inputs, "".join(values_in(steps, epoch.span.values()))])
    return f"SELECT {number} AS _branch, {selected} FROM (\n{indented(text)}\nLIMIT {TAKEN_ROWS + 1})"


class _Laying:
    """Puts rows under names, the rows that several epochs read only once."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._laid: dict[Laid, str] = {}

    def names(self, epoch: PreparedEpoch) -> dict[str, str]:
        """Return the names under which the inputs and synopses of an epoch lie, by the names in its program."""
        fragment, program = epoch.fragment, epoch.sized.program
        needed, found = program.needed(program.result), dict[str, str]()
        for source in program.inputs:
            if source.name in needed:
                schema = fragment.schemas[source.stream]
                found[source.name] = self._lay(epoch.slices[source.name], schema, None, program.by_arrival)
        for name, schema in fragment.synopses.schemas.items():
            if name in needed:
                found[name] = self._lay(fragment.synopses.slices(name), schema, name, True)
        return found

    def _lay(self, slices: Sequence[Slice], schema: StructType, within: str | None, by_arrival: bool) -> str:
        kind = schema.simpleString() if within is None else f"{within} {schema.simpleString()}"
        rows = [(tuple((chunk.path, chunk.checksum) for chunk in one.chunks), one.condition) for one in slices]
        key: Laid = (kind, by_arrival, tuple(rows))
        if key not in self._laid:
            self._laid[key] = f"rows_{len(self._laid)}"
            self.workspace.lay(self._laid[key], slices, schema, within, by_arrival)
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


def _write(epoch: PreparedEpoch, rows: pa.Table) -> list[Path]:
    return sorted(write_arrow({".": rows}, epoch.fragment.directory / ".results").glob("*.parquet"))
