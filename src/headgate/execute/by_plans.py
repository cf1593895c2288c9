"""One small statement of a fragment by plans that are kept: the steps that are computed first, then what is wanted.

A step that a long statement reads more than once is computed first, by a plan and a job of its own. What it gives stays
in memory, and goes into the next plan like the rows of any other input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from headgate.delta.program import Program
from headgate.execute.analysis import nullable
from headgate.execute.kept import KeptPlans, SmallStatement
from headgate.execute.programs import SizedProgram
from headgate.execute.statement import Span
from headgate.execute.workspace import Reading, Slice

if TYPE_CHECKING:
    from headgate.execute.fragment import Fragment


def computed_by_plans(
    fragment: Fragment,
    sized: SizedProgram,
    slices: Mapping[str, Sequence[Slice]],
    span: Span,
    targets: Sequence[str],
    text: Callable[[Program], str],
    schema: StructType,
) -> pa.Table | None:
    """Return what a statement over some steps gives; None if there are no plans for it, or not yet.

    `text` writes the statement, by a program that knows which steps have been computed.
    """
    kept, program = fragment.workspaces.kept, sized.program
    if kept is None or not sized.in_one_task:
        return None
    rows, computed = fragment.rows_of(slices), dict[str, Reading]()
    needed = {name for target in targets for name in program.needed(target)}
    for name in sized.computed_first:
        if name in needed:
            reads = _reads(fragment, program, slices, [name], computed)
            step = SmallStatement(program.step_statement(name), reads, span.values(), rows, None)
            given = _given(kept, step, at_once=bool(computed))
            if given is None:
                return None
            computed[name] = Reading(name, (), given[1], table=given[0])
            program = replace(program, computed=program.computed | {name})
    reads = _reads(fragment, program, slices, targets, computed)
    given = _given(kept, SmallStatement(text(program), reads, span.values(), rows, schema), at_once=bool(computed))
    return None if given is None else given[0]


def _given(kept: KeptPlans, one: SmallStatement, at_once: bool) -> tuple[pa.Table, StructType] | None:
    """Run a statement by its plan; return its rows and columns, or None if it has no plan or gives too many rows.

    Once the first step has run by a plan, plans of what comes behind it are made at once.
    """
    filled = kept.filled([one], at_once).get(0)
    tables = kept.run([filled]) if filled is not None else None
    return None if filled is None or tables is None else (tables[0], nullable(filled.plan.schema))


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
