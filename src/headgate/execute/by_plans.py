"""Small work by plans that are kept: of each piece the steps that are computed first, then what is wanted.

A step that a long statement reads more than once is computed first, by a plan of its own. What it gives stays in
memory, and goes into the next plan like the rows of any other input.

Pieces of work of several fragments go forward side by side: each asks for one statement after another, and the
statements that are asked for at one time run in one job.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from pyspark.sql.types import StructType

from headgate.delta.program import Program
from headgate.execute.analysis import nullable
from headgate.execute.kept import KeptPlans, SmallStatement
from headgate.execute.programs import SizedProgram
from headgate.execute.statement import Span
from headgate.execute.workspace import Reading, Slice
from headgate.spark.kept_plans import FilledPlan
from headgate.sql import Sql

if TYPE_CHECKING:
    from headgate.execute.fragment import Fragment


@dataclass(frozen=True, slots=True)
class Given:
    """What a statement has given."""

    rows: pa.Table
    schema: StructType


Computation: TypeAlias = Generator[SmallStatement, Given | None, pa.Table | None]
"""Asks for statements, gets what each gives, and returns what is wanted. None stands for a statement that has no plan,
or gives too many rows: then nothing comes of it.
"""


def computation(
    fragment: Fragment,
    sized: SizedProgram,
    slices: Mapping[str, Sequence[Slice]],
    span: Span,
    targets: Sequence[str],
    text: Callable[[Program], Sql],
    schema: StructType,
) -> Computation:
    """Compute a statement over some steps.

    `text` writes the statement, by a program that knows which steps have been computed. Once the first step has run by
    a plan, plans of what comes behind it are made at once.
    """
    program, rows, computed = sized.program, fragment.rows_of(slices), dict[str, Reading]()
    needed = {name for target in targets for name in program.needed(target)}
    for name in sized.computed_first:
        if name in needed:
            reads = _reads(fragment, program, slices, [name], computed)
            step = program.step_statement(name)
            given = yield SmallStatement(step, reads, span.values(), rows, None, at_once=bool(computed))
            if given is None:
                return None
            computed[name] = Reading(name, (), given.schema, table=given.rows)
            program = sized.program.with_computed(program.computed | {name})
    reads = _reads(fragment, program, slices, targets, computed)
    given = yield SmallStatement(text(program), reads, span.values(), rows, schema, at_once=bool(computed))
    return None if given is None else given.rows


def computed_together(
    kept: KeptPlans, work: Sequence[Computation], run: Callable[[Sequence[FilledPlan]], list[pa.Table | None]]
) -> list[pa.Table | None]:
    """Return what each piece of work gives; None for one of which some statement has no plan, or gives too many rows.

    `run` runs the plans of one round, each for a different piece.
    """
    results: list[pa.Table | None] = [None] * len(work)
    going: dict[int, Given | None] = dict.fromkeys(range(len(work)))
    while going:
        asked: dict[int, SmallStatement] = {}
        for number, given in going.items():
            try:
                asked[number] = work[number].send(given)
            except StopIteration as end:
                results[number] = end.value
        numbers = list(asked)
        plans = {numbers[place]: plan for place, plan in kept.filled(list(asked.values())).items()}
        tables = dict(zip(plans, run(list(plans.values())), strict=True)) if plans else {}
        going = {number: _given(plans, tables, number) for number in asked}
    return results


def _given(plans: Mapping[int, FilledPlan], tables: Mapping[int, pa.Table | None], number: int) -> Given | None:
    table = tables.get(number)
    return None if table is None else Given(table, nullable(plans[number].plan.schema))


def _reads(
    fragment: Fragment,
    program: Program,
    slices: Mapping[str, Sequence[Slice]],
    targets: Sequence[str],
    computed: Mapping[str, Reading],
) -> tuple[Reading, ...]:
    """What some steps read: of logs, of synopses, and of steps that have been computed."""
    steps = {name for target in targets for name in program.needed(target)} & program.steps.keys()
    first = {read for name in steps for read in program.steps[name].reads} | set(targets)
    return *fragment.reads(program, slices, targets), *(one for name, one in computed.items() if name in first)
