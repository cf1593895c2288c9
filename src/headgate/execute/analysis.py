"""Spark's analysis of a program over empty inputs, when a query is registered.

Types and functions are checked before anything runs, and the columns of results and synopses are found out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headgate.cql import calls
from headgate.errors import Place, UserError
from headgate.execute.programs import SizedProgram
from headgate.execute.statement import result_columns
from headgate.execute.wall import Wall
from headgate.execute.workspace import Workspace, values_in
from headgate.execute.workspaces import Workspaces
from headgate.spark.session import over_connect
from headgate.sql import Sql

USER_FUNCTIONS = (
    "PythonUDF",
    "PythonUDAF",
    "ScalaUDF",
    "ScalaAggregator",
    "HiveSimpleUDF",
    "HiveGenericUDF",
    "HiveUDAFFunction",
)
"""What Spark calls the functions that users register, in its plans."""


KNOWN_PROGRAMS = 1_000
"""Of so many programs the columns are remembered."""

COMPARED = re.compile(r"([<>=] )(?:('(?:[^'\\]|\\.)*')|\d{1,9}(?![\w.]))|'(?:[^'\\]|\\.)*'|`[^`]*`")
"""A text or a whole number behind a comparison; or a text or a name in quotes anywhere else."""


def shape(sql: str) -> str:
    """Return a statement without the values that are compared with: whatever they are, columns keep their types."""
    return COMPARED.sub(lambda found: f"{found[1]}?{'text' if found[2] else 'number'}" if found[1] else found[0], sql)


@dataclass(frozen=True, slots=True)
class Columns:
    """What Spark says of a program: the columns of its results and of its synopses."""

    results: StructType
    synopses: dict[str, StructType]


def analysed(workspaces: Workspaces, sized: SizedProgram, schemas: Mapping[str, StructType], text: str) -> Columns:
    """Let Spark analyse a program over empty inputs; what it refuses is raised.

    Programs that differ only in the values with which columns are compared have the same columns, so Spark is asked
    about one of them.
    """
    program = sized.program
    read = sorted({(source.name, schemas[source.stream].simpleString()) for source in program.inputs})
    steps = program.output(result_columns(program)), *(program.shape(synopsis) for synopsis in program.synopses)
    key = repr(read), sized.computed_first, *map(shape, steps)
    if key not in workspaces.known:
        with workspaces.analysis.turn:
            workspaces.known[key] = _Analysis(
                workspaces.analysis, sized, schemas, text, workspaces.frozen, workspaces.wall
            ).columns()
        while len(workspaces.known) > KNOWN_PROGRAMS:
            workspaces.known.pop(next(iter(workspaces.known)))
    return workspaces.known[key]


class _Analysis:
    """Spark's analysis of one program."""

    def __init__(
        self,
        workspace: Workspace,
        sized: SizedProgram,
        schemas: Mapping[str, StructType],
        text: str,
        own_functions: bool,
        wall: Wall | None,
    ) -> None:
        self.synopses: dict[str, StructType] = {}
        self._workspace = workspace
        self._wall = wall
        self._relations = {
            *(source.name for source in sized.program.inputs),
            *(synopsis.name for synopsis in sized.program.synopses),
            *sized.program.steps,
        }
        self._program = sized.program
        self._computed_first = sized.computed_first
        self._known: set[str] = set()
        for source in self._program.inputs:
            workspace.lay_nothing(source.name, schemas[source.stream])
        self._find_columns(self._program.result)
        for synopsis in self._program.synopses:  # the result does not read all of them
            self._find_columns(synopsis.name)
        results = self._frame(self._program.output(result_columns(self._program)))
        self.results = nullable(results.schema)
        if own_functions and not over_connect(workspace.session):
            _refuse_undetermined(results, text)

    def columns(self) -> Columns:
        """Return what was found out."""
        return Columns(self.results, self.synopses)

    def _find_columns(self, name: str) -> None:
        """Put synopses and steps that are computed first under their names, empty, so that their columns are known."""
        if name in self._known:
            return
        self._known.add(name)
        for synopsis in self._program.synopses:
            if synopsis.name == name:
                self._find_columns(synopsis.shape)
                self.synopses[name] = nullable(self._frame(self._program.shape(synopsis)).schema)
                self._workspace.lay_nothing(name, self.synopses[name])
        if name in self._program.steps:
            for read in self._program.steps[name].reads:
                self._find_columns(read)
            if name in self._computed_first:
                self._workspace.lay_nothing(name, self._frame(self._program.step_statement(name)).schema)
                self._program = replace(self._program, computed=self._program.computed | {name})

    def _frame(self, text: Sql) -> DataFrame:
        values = dict.fromkeys(("since", "until", "after"), self._program.domain.origin)
        if self._wall is None:
            return self._workspace.run(text, values)
        return self._wall.admitted(Sql("").join(values_in(text, values)), self._relations)


def _refuse_undetermined(results: DataFrame, text: str) -> None:
    """Refuse functions that the user registered with the session as not deterministic."""
    function = undetermined_function(results)
    if function is not None:
        raise UserError(
            "not-deterministic",
            f'function "{function}" gives another value each time it is called',
            place=calls.place_of(function.lower(), Place(text, 0, len(text))),
            hint="Compute its value from its arguments.",
            detail="An answer must follow from the tuples, and from nothing else.",
        )


def undetermined_function(frame: DataFrame) -> str | None:
    """Return the first of the user's functions that was registered as not deterministic.

    It can be seen only where Spark runs in this process.
    """
    waiting: list[Any] = [frame._jdf.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        kind = str(node.getClass().getSimpleName())
        if kind in USER_FUNCTIONS and not node.udfDeterministic():
            return str(node.name() if kind.startswith("Python") else node.toString())
        parts = [node.children()]
        if kind not in USER_FUNCTIONS and hasattr(node, "expressions") and _is_plan(node):
            parts.insert(0, node.expressions())
        for some in parts:
            waiting.extend(some.apply(number) for number in range(some.size()))
    return None


def _is_plan(node: Any) -> bool:
    return ".plans." in str(node.getClass().getName())


def nullable(schema: StructType) -> StructType:
    """Return columns of these names and types that may be null."""
    result = StructType()
    for field in schema:
        result.add(field.name, field.dataType, nullable=True)
    return result
