"""Spark's analysis of a program over empty inputs, when a query is registered.

Types and functions are checked before anything runs, and the columns of results and synopses are found out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headgate.cql import calls
from headgate.delta.program import Program
from headgate.delta.query import HINTS
from headgate.errors import Place, UserError
from headgate.execute.programs import SizedProgram
from headgate.execute.statement import result_columns
from headgate.execute.workspace import Workspace
from headgate.spark.session import over_connect

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


class Analysis:
    """What Spark says of a program: the columns of its results and of its synopses. What it refuses is raised."""

    def __init__(self, workspace: Workspace, sized: SizedProgram, schemas: Mapping[str, StructType], text: str) -> None:
        self.synopses: dict[str, StructType] = {}
        self._workspace = workspace
        self._program = sized.program
        self._computed_first = sized.computed_first
        self._known: set[str] = set()
        for source in self._program.inputs:
            workspace.lay_nothing(source.name, schemas[source.stream])
        self._find_columns(self._program.result)
        results = self._frame(self._program.output(result_columns(self._program)))
        self.results = _nullable(results.schema)
        self._refuse_undetermined(results, text)

    def _find_columns(self, name: str) -> None:
        """Put synopses and steps that are computed first under their names, empty, so that their columns are known."""
        if name in self._known:
            return
        self._known.add(name)
        for synopsis in self._program.synopses:
            if synopsis.name == name:
                self._find_columns(synopsis.shape)
                self.synopses[name] = _nullable(self._frame(self._program.shape(synopsis)).schema)
                self._workspace.lay_nothing(name, self.synopses[name])
        if name in self._program.steps:
            for read in self._program.steps[name].reads:
                self._find_columns(read)
            if name in self._computed_first:
                self._workspace.lay_nothing(name, self._frame(self._program.step_statement(name)).schema)
                self._program = replace(self._program, computed=self._program.computed | {name})

    def _refuse_undetermined(self, results: DataFrame, text: str) -> None:
        """Refuse functions that the user registered with the session as not deterministic."""
        if not calls_unknown_functions(self._program) or over_connect(self._workspace.session):
            return
        function = undetermined_function(results)
        if function is not None:
            raise UserError(
                "not-deterministic",
                f'function "{function}" gives another value each time it is called',
                place=calls.place_of(function.lower(), Place(text, 0, len(text))),
                hint="Compute its value from its arguments.",
                detail="An answer must follow from the tuples, and from nothing else.",
            )

    def _frame(self, text: str) -> DataFrame:
        origin = self._program.domain.origin
        return self._workspace.sql(text, dict.fromkeys(("since", "until", "after"), origin))


def calls_unknown_functions(program: Program) -> bool:
    """Say whether a program calls functions that Spark does not have by itself: the user's."""
    names = {name for step in program.steps.values() for name in calls.called_functions(step.sql)}
    return not names <= calls.KNOWN | HINTS


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


def _nullable(schema: StructType) -> StructType:
    result = StructType()
    for field in schema:
        result.add(field.name, field.dataType, nullable=True)
    return result
