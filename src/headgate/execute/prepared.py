"""Work of a fragment that is ready to run: an epoch, or a move of its synopses.

Work that is small runs by plans that are kept, with that of other fragments (`together`). Other work, and work that
fails there, runs by a statement of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StructType

from headgate.delta.program import Program
from headgate.execute.by_plans import Computation, computation
from headgate.execute.kept import SmallStatement
from headgate.execute.programs import SizedProgram
from headgate.execute.statement import Span, result_columns, state_schema, state_text
from headgate.execute.workspace import Reading, Slice, write_small
from headgate.sql import Sql, result_order
from headgate.ticks import Tick

if TYPE_CHECKING:
    from headgate.execute.fragment import Fragment


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

    rows_in: int
    """How many rows it has read, about."""

    tuples: Mapping[str, int] = field(default_factory=dict)
    """By stream and relation: from how many tuples its results come, with those of earlier epochs."""

    read: Mapping[str, int] = field(default_factory=dict)
    """By the name of the input: how many rows its statement read."""

    in_order: bool = False
    """Whether the rows lie in the file in the order of results."""


@dataclass(frozen=True, slots=True)
class PreparedEpoch:
    """An epoch of a fragment that is ready to run: by which program, over what, and what comes of it."""

    fragment: Fragment
    sized: SizedProgram
    slices: Mapping[str, Sequence[Slice]]
    """By the name of the input: what is read of it."""

    span: Span
    after: Tick
    until: Tick
    """The results are complete up to here."""

    progress: dict[str, Any]
    """What the journal is to say of the fragment."""

    rows_in: int
    """How many rows are new, about."""

    tuples: Mapping[str, int]
    """By stream and relation: from how many tuples its results come, with those of earlier epochs."""

    @property
    def rows(self) -> int:
        """How many rows are read, of logs and synopses together."""
        return self.fragment.rows_of(self.slices)

    def reads(self) -> Iterator[Reading]:
        """Return what its statement reads, of logs and of synopses."""
        program = self.sized.program
        return self.fragment.reads(program, self.slices, [program.result])

    def small_statement(self) -> SmallStatement:
        """Return its statement, if it runs in one task."""
        text = self.sized.output(result_columns(self.sized.program))
        return SmallStatement(text, tuple(self.reads()), self.span.values(), self.rows, self.schema)

    @property
    def schema(self) -> StructType:
        """The columns of its results."""
        return self.fragment.result_schema

    def computation(self) -> Computation:
        """Return how its results are computed by plans that are kept."""
        targets = [self.sized.program.result]
        return computation(self.fragment, self.sized, self.slices, self.span, targets, self._text, self.schema)

    def _text(self, program: Program) -> Sql:
        """Return the statement for its results, by a program that knows which steps have been computed."""
        columns = result_columns(program)
        return program.output(columns) if program.computed else self.sized.output(columns)

    def run(self) -> Written:
        """Run it by a statement of its own, or by more than one if some of its steps are computed first."""
        workspace = self.fragment.workspaces.of(self.sized.in_one_task)
        with workspace.turn:
            self.fragment.lay(workspace, self.sized, self.slices)
            return self.written(self.fragment.statement(self.sized, self.span).write_results())

    def taken(self, rows: pa.Table) -> Written:
        """Write what it gives, once it has run; results lie in the file in their order."""
        results = self.fragment.output is None
        ordered = rows.sort_by(result_order(rows.column_names)) if results and rows.num_rows else rows
        return replace(self.written(write_small(ordered, self.fragment.directory / ".results")), in_order=results)

    def written(self, files: list[Path]) -> Written:
        """Return what it has written, once it has run."""
        read = {name: sum(one.rows for one in several) for name, several in self.slices.items()}
        return Written(self.fragment, self.after, self.until, files, self.progress, self.rows_in, self.tuples, read)


@dataclass(frozen=True, slots=True)
class PreparedMove:
    """A move of a fragment's synopses that is ready to run: up to which instant, and what is computed how."""

    fragment: Fragment
    sized: SizedProgram
    slices: Mapping[str, Sequence[Slice]]
    """By the name of the input: what is read of it."""

    span: Span
    steps: Mapping[str, str]
    """By synopsis: the step that computes it."""

    unchanged: frozenset[str]
    """Synopses that stay as they are: nothing has come for them. The others are computed."""

    @property
    def schema(self) -> StructType:
        """The columns of what is computed: all synopses together."""
        return state_schema(self.steps, self.fragment.synopses.schemas)

    def computation(self) -> Computation:
        """Return how the synopses are computed by plans that are kept."""
        text = partial(state_text, steps=self.steps, schemas=self.fragment.synopses.schemas)
        targets = list(self.steps.values())
        return computation(self.fragment, self.sized, self.slices, self.span, targets, text, self.schema)

    def run(self) -> dict[str, Any]:
        """Run it by a statement of its own; return the fact that makes what it has written count."""
        fragment, workspace = self.fragment, self.fragment.workspaces.of(self.sized.in_one_task)
        with workspace.turn:
            if not self.steps:
                return fragment.synopses.write(None, (), workspace, self.unchanged)
            fragment.lay(workspace, self.sized, self.slices)
            contents = fragment.statement(self.sized, self.span).synopses(fragment.synopses.schemas, self.steps)
            return fragment.synopses.write(contents, tuple(self.steps), workspace, self.unchanged)

    def written(self, contents: pa.Table) -> dict[str, Any]:
        """Write what was computed; return the fact that makes it count."""
        synopses, workspace = self.fragment.synopses, self.fragment.workspaces.small
        return synopses.write(contents, tuple(self.steps), workspace, self.unchanged)
