"""One statement: a program over inputs that lie in a workspace, for one span of time.

A statement over (since, until] computes from the synopses as of `since`. Its results are those behind `after`; those
up to there were put out by earlier epochs. The contents of its synopses are those as of `until`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql.functions import asc, desc
from pyspark.sql.types import StringType, StructType

from headgate.delta.program import Program
from headgate.execute.programs import SizedProgram
from headgate.execute.workspace import Workspace
from headgate.sql import EMPTY, Column, Sql, cast, checked_type, indented, listed, literal, spelled
from headgate.ticks import Tick, TimeDomain


@dataclass(frozen=True, slots=True)
class Span:
    """The instants that a statement is about: it computes from `since` up to `until`; results up to `after` are old."""

    since: Tick
    until: Tick
    after: Tick

    def values(self) -> dict[str, Tick]:
        """Return the values of a statement's parameters."""
        return {"since": self.since, "until": self.until, "after": self.after}


class Statement:
    """A program for (since, until], ready to be run in the workspace that holds its inputs."""

    def __init__(
        self,
        workspace: Workspace,
        directory: Path,
        sized: SizedProgram,
        span: Span,
        in_order: bool = False,
    ) -> None:
        self.workspace = workspace
        self.directory = directory
        """Where files are written that do not count yet."""
        self.program = sized.program
        self.span = span
        self.in_order = in_order and not sized.in_one_task
        """Whether each file of results is to be in order of time. Few results are sorted when they are delivered."""
        self._computed_first = sized.computed_first

    def write_results(self) -> list[Path]:
        """Compute the results and return the files that hold them."""
        self._compute_first(self.program.needed(self.program.result))
        return self.workspace.write(self.results(), self.directory / ".results")

    def synopses(self, schemas: Mapping[str, StructType], steps: Mapping[str, str]) -> DataFrame:
        """Return the contents of synopses as of `until` (`state_text`), each computed by a step."""
        self._compute_first({needed for step in steps.values() for needed in self.program.needed(step)})
        return self._frame(state_text(self.program, steps, schemas))

    def results(self) -> DataFrame:
        """Return the results as sinks or other fragments get them."""
        frame = self._frame(self.program.output(result_columns(self.program)))
        return frame.sortWithinPartitions(*_order(self.program)) if self.in_order else frame

    def _compute_first(self, needed: Set[str]) -> None:
        """Compute the steps that need a job of their own, each by one."""
        for name in self._computed_first:
            if name in needed:
                frame = self._frame(self.program.step_statement(name))
                files = self.workspace.write(frame, self.directory / f".{name}")
                self.workspace.lay_files(name, files, frame.schema)
                self.program = replace(self.program, computed=self.program.computed | {name})

    def _frame(self, text: Sql) -> DataFrame:
        return self.workspace.run(text, self.span.values())


def state_steps(program: Program, from_logs: frozenset[str], unchanged: frozenset[str]) -> dict[str, str]:
    """Return the step that computes each synopsis as of `until`, but for those that are unchanged; of some from the
    logs, by their names.
    """
    return {
        synopsis.name: synopsis.from_logs if synopsis.from_logs and synopsis.name in from_logs else synopsis.contents
        for synopsis in program.synopses
        if synopsis.name not in unchanged
    }


def state_text(program: Program, steps: Mapping[str, str], schemas: Mapping[str, StructType]) -> Sql:
    """Return the statement for several synopses, each computed by a step.

    A column names the synopsis of a row, and each synopsis has a struct of its own:

        _synopsis   sums_1                     kept_2
        sums_1      {_k1: a, _rows: 2}         null
        kept_2      null                       {k: a, _t: 17}
    """
    columns = {
        name: [Column(one.name, checked_type(one.dataType.simpleString())) for one in schemas[name]] for name in steps
    }
    structs = {name: f"STRUCT({', '.join(map(cast, columns[name]))})" for name in steps}
    nothing = {name: f"STRUCT({', '.join(cast(column, Sql('NULL')) for column in columns[name])})" for name in steps}
    branches = []
    for name, step in steps.items():
        own = (structs[one] if one == name else f"CASE WHEN FALSE THEN {nothing[one]} END" for one in steps)
        given = ", ".join(f"{struct} AS {spelled(one)}" for one, struct in zip(steps, own, strict=True))
        branches.append(
            f"SELECT {literal(name)} AS _synopsis, {given} FROM (\n{indented(program.step_statement(step))}\n)"
        )
    return "\nUNION ALL\n".join(branches)


def state_schema(names: Iterable[str], schemas: Mapping[str, StructType]) -> StructType:
    """Return the columns of `state_text`."""
    found = StructType().add("_synopsis", StringType(), nullable=False)
    for name in names:
        found = found.add(name, schemas[name])
    return found


def _order(program: Program) -> list[SparkColumn]:
    """The order of results: by time, "-" before "+", which is the other way round in ASCII."""
    return [asc("_time"), desc("_change")] if program.kind == "relation" else [asc("_time")]


def result_columns(program: Program) -> Sql:
    """Return what is selected from a program's result.

    Sinks get `_time`, for a relation `_change` (+ or -), then the row. Other fragments get elements.
    """
    if program.kind == "elements":
        return f"{listed(column.name for column in program.columns)}, _t, _x, _n"
    time = Sql("TIMESTAMP_MICROS(_t)") if program.domain is TimeDomain.TIMESTAMP else Sql("_t")
    change = Sql(", CASE WHEN _n > 0 THEN '+' ELSE '-' END AS _change") if program.kind == "relation" else EMPTY
    return f"{time} AS _time{change}, {listed(column.name for column in program.columns)}"
