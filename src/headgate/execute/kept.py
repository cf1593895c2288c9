"""The plans of small statements that an engine keeps, and the rows that it fills them with.

A statement is planned to be kept when it is met with again: most statements of a short run never are. Once it was,
plans for other sets of empty inputs are made at once. A plan in which fewer inputs are taken to be empty answers as
well, so it serves while there is none for just that set.

While an engine runs and nothing is to be done, plans are made ahead (`plan_ahead`): for statements that were met with
once, for all of their inputs, and for sets that return. So no answer has to wait for a plan when, say, the first tuples
leave a window.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from headgate.execute.rows_in_spark import RowsInSpark
from headgate.execute.workspace import TAKEN_ROWS, Reading, Workspace, tables_in_memory, values_in
from headgate.spark.in_memory import arrow_schema, text_of
from headgate.spark.jobs import JOBS
from headgate.spark.kept_plans import FilledPlan, KeptPlan, Planner, Rows, placeholder, table_of
from headgate.sql import EMPTY, Sql, indented
from headgate.sql import name as quoted

WORTH_AFTER = 1
"""So often a statement is planned as it is before a plan of it is kept."""

MOST_PLANS = 600
"""So many plans are kept; the one that was not used for longest goes first."""

KEPT_ROWS = 50_000
"""Statements that read more rows are planned each time: more than one task may run them."""

RETURNS = 20
"""So often a set of empty inputs is served by a plan for more inputs before it is worth one of its own."""

MOST_WISHES = 100
"""So many plans wait to be made ahead at the most; the oldest wish is let go."""

PARAMETERS = ("since", "until", "after")

Key: TypeAlias = tuple[str, tuple[tuple[str, str, bool], ...], int]
"""A statement; for each of its inputs the name, the columns and whether it is empty; and a number that tells several of
them apart that run together: each has a plan of its own, because a plan is filled with rows.
"""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SmallStatement:
    """A statement that runs in one task: its text, with parameters, and what it reads."""

    text: Sql
    reads: tuple[Reading, ...]
    values: Mapping[str, int]
    """By parameter."""

    rows: int
    """How many rows it reads, about."""

    schema: StructType | None
    """The columns that it gives; None if they are whatever Spark says."""

    at_once: bool = False
    """Whether it is planned to be kept even if it was not met with before."""

    def over(self, views: Mapping[str, str], values: Mapping[str, int]) -> Sql:
        """Return its text over views that have other names than its inputs, with values for its parameters."""
        inputs = ",\n".join(f"{quoted(name)} AS (SELECT * FROM {quoted(view)})" for name, view in views.items())
        return f"WITH {inputs}\nSELECT * FROM (\n{indented(''.join(values_in(self.text, values)))}\n)"


@dataclass(frozen=True, slots=True)
class Wish:
    """A plan to be made when there is time: of which statement, over what, and which inputs are taken to be empty."""

    statement: SmallStatement
    examples: Mapping[str, pa.Table]
    """By input: some of its rows, as many as there usually are."""

    empty: frozenset[str]


class KeptPlans:
    """Plans for the small statements of an engine."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._planner: Planner | None = None
        self._rows = RowsInSpark(lambda table, schema: self.planner.rows_for(table, schema))
        self._plans: OrderedDict[Key, KeptPlan | None] = OrderedDict()
        """None for a statement of which no plan can be kept."""
        self._wishes: OrderedDict[Key, Wish] = OrderedDict()
        self._met: Counter[Key] = Counter()
        self._returning: set[str] = set()
        """The texts of statements that were met with again."""
        self._places: dict[str, int] = {}
        """By columns: the number of the places for inputs that have them."""
        self._broken = False
        """Whether Spark turned out not to be as it is expected."""

    @property
    def planner(self) -> Planner:
        """The one that makes plans and runs them."""
        assert self._planner is not None
        return self._planner

    def _has_planner(self) -> bool:
        """Make the planner when it is first needed; say whether there is one."""
        if self._planner is None:
            try:
                self._planner = Planner(self.workspace.session)
            except Py4JNetworkError:
                return False  # Spark is gone: the statement will say so
            except Py4JError as error:
                self._break_off(error)
        return self._planner is not None

    def _break_off(self, error: Py4JError) -> None:
        log.warning("plans of Spark are not kept, because Spark is not as expected: %s", error)
        self._broken = True

    def filled(self, statements: Sequence[SmallStatement]) -> dict[int, FilledPlan]:
        """Return plans for those of some statements that have one, by their numbers, with rows and values."""
        found: dict[int, FilledPlan] = {}
        if self._broken or not self._has_planner():
            return found
        together = Counter[str]()
        with self.workspace.turn:
            self.workspace.interpret(0)
            for number, one in enumerate(statements):
                try:
                    filled = self._filled(one, together[one.text])
                except (Py4JNetworkError, Py4JJavaError, PySparkException):
                    filled = None  # the statement will say what is wrong
                except Py4JError as error:
                    self._break_off(error)
                    return {}
                together[one.text] += 1
                if filled is not None:
                    found[number] = filled
        return found

    def _filled(self, one: SmallStatement, number: int) -> FilledPlan | None:
        """Return a plan for a statement; None if there is none, or not yet."""
        if one.rows > KEPT_ROWS:
            return None
        rows = dict[str, Sequence[Rows]]()
        for reading in one.reads:
            pieces = self._rows.of(reading)
            if pieces is None:
                return None
            rows[reading.name] = pieces
        key = (
            one.text,
            tuple((read.name, text_of(read.schema), not rows[read.name]) for read in one.reads),
            number,
        )
        empty = frozenset(name for name, pieces in rows.items() if not pieces)
        served = self._serving(key)
        if served not in self._plans and self._is_worth_a_plan(key, one):
            self._returning.add(one.text)
            self._make(key, one, {}, empty)
            served = key
        self._met[key] += 1
        self._wish(key, served, one, empty)
        plan = self._plans.get(served)
        if plan is None:
            return None
        self._plans.move_to_end(served)
        for reading in one.reads:
            reading.check()  # what is damaged is found, also if its rows are in memory
        return FilledPlan(plan, rows, one.values)

    def _is_worth_a_plan(self, key: Key, one: SmallStatement) -> bool:
        return one.at_once or one.text in self._returning or self._met[key] >= WORTH_AFTER

    def _serving(self, key: Key) -> Key:
        """Return under which key the plan is that serves a statement best: its own, or one for more inputs."""
        if key in self._plans:
            return key
        return general if self._plans.get(general := _for_all_inputs(key)) is not None else key

    # plans that are made ahead

    def _wish(self, key: Key, served: Key, one: SmallStatement, empty: frozenset[str]) -> None:
        """Note which plan would serve a statement better than what there is, if any."""
        if (general := _for_all_inputs(key)) not in self._plans:
            wanted, without = general, frozenset[str]()
        elif served != key and self._met[key] >= RETURNS:
            wanted, without = key, empty
        else:
            return
        if wanted in self._wishes:
            return
        examples = {read.name: _example(read) for read in one.reads}
        self._wishes[wanted] = Wish(one, examples, without)
        if len(self._wishes) > MOST_WISHES:
            self._wishes.popitem(last=False)

    def plan_ahead(self) -> bool:
        """Make one plan that was missed; return whether there was any."""
        with self.workspace.turn:
            if self._broken or self._planner is None or not self._wishes:
                return False
            key, wish = self._wishes.popitem(last=False)
            if key not in self._plans:
                self.workspace.interpret(0)
                with suppress(
                    Py4JError, PySparkException
                ):  # no plan is kept then; the statement will say what is wrong
                    self._make(key, wish.statement, wish.examples, wish.empty)
            return True

    def _make(self, key: Key, one: SmallStatement, examples: Mapping[str, pa.Table], empty: frozenset[str]) -> None:
        """Plan a statement, to be kept under a key."""
        self._keep(key, None)
        self._keep(key, self._planned(one, examples, empty))

    def run(self, plans: Sequence[FilledPlan]) -> list[pa.Table | None]:
        """Run plans in one job and return what each gives; None for one that gives too many rows to be taken."""
        with JOBS.timed():
            given = self.planner.run(plans)
        tables = [table_of(batches, _columns(one.plan)) for one, batches in zip(plans, given, strict=True)]
        return [table if table.num_rows <= TAKEN_ROWS else None for table in tables]

    def _keep(self, key: Key, plan: KeptPlan | None) -> None:
        self._plans[key] = plan
        while len(self._plans) > MOST_PLANS:
            self._plans.popitem(last=False)
        if len(self._met) > 10 * MOST_PLANS:
            self._met.clear()
        if len(self._returning) > MOST_PLANS:
            self._returning.clear()

    def _planned(self, one: SmallStatement, examples: Mapping[str, pa.Table], empty: frozenset[str]) -> KeptPlan | None:
        """Plan a statement; rows of inputs are in their examples, if it has some."""
        views, alike = dict[str, str](), Counter[str]()
        for read in one.reads:
            if read.name in empty:
                views[read.name] = "nothing_in_" + self._place(read.schema, alike)
                self.workspace.lay_nothing(views[read.name], read.schema)
            else:
                views[read.name] = "rows_in_" + self._place(read.schema, alike)
                example = examples[read.name] if read.name in examples else _example(read)
                self.planner.lay_place(views[read.name], example, read.schema)
        text = one.over(views, {name: placeholder(number) for number, name in enumerate(PARAMETERS)})
        places = {name: view for name, view in views.items() if name not in empty}
        plan = self.planner.planned(f"{text}\nLIMIT {TAKEN_ROWS + 1}", places, PARAMETERS)
        for view in views.values():
            self.workspace.take_away(view)
        return plan if plan is not None and _fits(plan, one.schema) else None

    def _place(self, schema: StructType, alike: Counter[str]) -> str:
        """Return the name of a place for an input: inputs of one statement that have the same columns differ in it."""
        columns = text_of(schema)
        alike[columns] += 1
        number = self._places.setdefault(columns, len(self._places))
        return f"{number}_{alike[columns]}"


def _for_all_inputs(key: Key) -> Key:
    """Return the key of the plan that serves a statement whatever of its inputs is empty."""
    text, reads, number = key
    return text, tuple((name, columns, False) for name, columns, _ in reads), number


def _example(read: Reading) -> pa.Table:
    """Return the rows of an input."""
    if read.table is not None:
        return read.table
    tables = tables_in_memory(read.slices, read.schema, read.within)
    assert tables is not None
    columns = arrow_schema(read.schema)
    assert columns is not None
    return tables.get(EMPTY, columns.empty_table())


def _fits(plan: KeptPlan, schema: StructType | None) -> bool:
    """Say whether a plan gives the columns that are expected, and gives them as Arrow."""
    expected = schema is None or text_of(plan.schema) == text_of(schema)
    return expected and arrow_schema(plan.schema) is not None


def _columns(plan: KeptPlan) -> pa.Schema:
    columns = arrow_schema(plan.schema)
    assert columns is not None
    return columns
