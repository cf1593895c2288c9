"""The plans of small statements that an engine keeps, and the rows that it fills them with.

A statement is planned to be kept when it is met with again: most statements of a short run never are.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from headgate.execute.statement import result_columns
from headgate.execute.workspace import INTERPRETED_ROWS, TAKEN_ROWS, Workspace, tables_in_memory, values_in
from headgate.spark.in_memory import arrow_schema
from headgate.spark.jobs import JOBS
from headgate.spark.kept_plans import FilledPlan, KeptPlan, Planner, placeholder, table_of

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

    from headgate.execute.fragment import PreparedEpoch

WORTH_AFTER = 1
"""So often a statement is planned as it is before a plan of it is kept."""

MOST_PLANS = 400
"""So many plans are kept; the one that was not used for longest goes first."""

PARAMETERS = ("since", "until", "after")

Key: TypeAlias = tuple[str, tuple[tuple[str, str, bool], ...]]
"""A statement, and for each of its inputs the name, the columns and whether it is empty."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InputRows:
    """The rows of one input of an epoch."""

    name: str
    schema: StructType
    rows: pa.Table | None
    """None if there are none."""

    known_by: tuple[object, ...]
    """What tells them from other rows."""


class KeptPlans:
    """Plans for the small statements of an engine."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._planner: Planner | None = None
        self._plans: OrderedDict[Key, KeptPlan | None] = OrderedDict()
        """None for a statement of which no plan can be kept."""
        self._met: Counter[Key] = Counter()
        self._places: dict[str, int] = {}
        """By columns: the number of the places for inputs that have them."""
        self._handed: dict[tuple[object, ...], JavaObject] = {}
        """Rows that Spark got in this turn or the one before."""
        self._broken = False
        """Whether Spark turned out not to be as it is expected."""

    def filled(self, epochs: Sequence[PreparedEpoch]) -> dict[int, FilledPlan]:
        """Return plans for those of some epochs that have one, by their numbers, with rows and instants filled in."""
        found: dict[int, FilledPlan] = {}
        if self._broken:
            return found
        before, self._handed = self._handed, {}
        with self.workspace.turn:
            self.workspace.interpret(0)
            for number, epoch in enumerate(epochs):
                try:
                    filled = self._filled(epoch, before)
                except (Py4JNetworkError, Py4JJavaError, PySparkException):
                    filled = None  # its statement will say what is wrong
                except Py4JError as error:
                    log.warning("plans of Spark are not kept, because Spark is not as expected: %s", error)
                    self._broken = True
                    return {}
                if filled is not None:
                    found[number] = filled
        return found

    def _filled(self, epoch: PreparedEpoch, before: Mapping[tuple[object, ...], JavaObject]) -> FilledPlan | None:
        """Return a plan for an epoch; None if there is none, or not yet."""
        inputs = rows_of(epoch) if epoch.rows <= INTERPRETED_ROWS else None  # for many rows, compiled code pays
        if inputs is None:
            return None
        key = _key(epoch, inputs)
        if key not in self._plans and self._met[key] >= WORTH_AFTER:
            self._keep(key, None)
            self._keep(key, self._planned(epoch, inputs))
        self._met[key] += 1
        plan = self._plans.get(key)
        rows = None if plan is None else self._rows(plan, inputs, before)
        if plan is None or rows is None:
            return None
        self._plans.move_to_end(key)
        return FilledPlan(plan, rows, epoch.span.values())

    def run(self, plans: Sequence[FilledPlan]) -> list[pa.Table] | None:
        """Run plans in one job and return what each gives; None if one gives too many rows to be taken as Arrow."""
        assert self._planner is not None
        with JOBS.timed():
            given = self._planner.run(plans)
        tables = [table_of(batches, _columns(one.plan)) for one, batches in zip(plans, given, strict=True)]
        return None if any(table.num_rows > TAKEN_ROWS for table in tables) else tables

    def _keep(self, key: Key, plan: KeptPlan | None) -> None:
        self._plans[key] = plan
        while len(self._plans) > MOST_PLANS:
            self._plans.popitem(last=False)
        if len(self._met) > 10 * MOST_PLANS:
            self._met.clear()

    def _planned(self, epoch: PreparedEpoch, inputs: Sequence[InputRows]) -> KeptPlan | None:
        """Plan the statement of an epoch, to be kept."""
        if self._planner is None:
            self._planner = Planner(self.workspace.session)
        views, alike = dict[str, str](), Counter[str]()
        for one in inputs:
            if one.rows is None:
                views[one.name] = "nothing_in_" + self._place(one.schema, alike)
                self.workspace.lay_nothing(views[one.name], one.schema)
            else:
                views[one.name] = "rows_in_" + self._place(one.schema, alike)
                self._planner.lay_place(views[one.name], one.rows, one.schema)
        text = statement(epoch, views, {name: placeholder(number) for number, name in enumerate(PARAMETERS)})
        places = {one.name: views[one.name] for one in inputs if one.rows is not None}
        plan = self._planner.planned(text, places, PARAMETERS)
        for view in views.values():
            self.workspace.take_away(view)
        return plan if plan is not None and _fits(plan, epoch.fragment.result_schema) else None

    def _place(self, schema: StructType, alike: Counter[str]) -> str:
        """Return the name of a place for an input: inputs of one statement that have the same columns differ in it."""
        columns = schema.simpleString()
        alike[columns] += 1
        number = self._places.setdefault(columns, len(self._places))
        return f"{number}_{alike[columns]}"

    def _rows(
        self, plan: KeptPlan, inputs: Sequence[InputRows], before: Mapping[tuple[object, ...], JavaObject]
    ) -> dict[str, JavaObject] | None:
        """Hand the rows that a plan reads to Spark, unless Spark has them already; None if they are too many."""
        assert self._planner is not None
        found: dict[str, JavaObject] = {}
        for one in inputs:
            if one.rows is None:
                continue
            handed = self._handed.get(one.known_by) or before.get(one.known_by)
            handed = handed or self._planner.rows_for(one.rows, one.schema)
            if handed is None:
                return None
            self._handed[one.known_by] = found[one.name] = handed
        return found


def statement(epoch: PreparedEpoch, views: Mapping[str, str], values: Mapping[str, int]) -> str:
    """Return the statement for the results of an epoch, over views that have other names than its inputs."""
    inputs = [f"{name} AS (SELECT * FROM {view})" for name, view in views.items()]
    steps = epoch.sized.output(result_columns(epoch.sized.program)).removeprefix("WITH ")
    return "WITH " + ",\n".join([*inputs, "".join(values_in(steps, values))]) + f"\nLIMIT {TAKEN_ROWS + 1}"


def rows_of(epoch: PreparedEpoch) -> list[InputRows] | None:
    """Return the rows that an epoch reads; None if some of them have to be read by Spark, or judged by it."""
    found = list[InputRows]()
    for one in epoch.reads():
        tables = tables_in_memory(one.slices, one.schema, one.within)
        if tables is None or any(tables):
            return None
        found.append(InputRows(one.name, one.schema, tables.get(""), one.known_by()))
    return found


def _key(epoch: PreparedEpoch, inputs: Sequence[InputRows]) -> Key:
    text = epoch.sized.output(result_columns(epoch.sized.program))
    return text, tuple((one.name, one.schema.simpleString(), one.rows is None) for one in inputs)


def _fits(plan: KeptPlan, schema: StructType) -> bool:
    """Say whether a plan gives the columns that are expected, and gives them as Arrow."""
    return plan.schema.simpleString() == schema.simpleString() and arrow_schema(plan.schema) is not None


def _columns(plan: KeptPlan) -> pa.Schema:
    columns = arrow_schema(plan.schema)
    assert columns is not None
    return columns
