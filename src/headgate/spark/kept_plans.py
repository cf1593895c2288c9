"""Plans of small statements that are kept: Spark analyses, optimizes and plans a statement once, and runs it often.

Planning a small statement takes longer than running it, and the statements of a fragment differ only in their instants
and in the rows under them. So a statement is planned with places to fill:

    parameters    variables without a value, which Spark's optimizer can neither compute with nor compare
    inputs        scans of one partition, with nothing in them

To run it, a copy of the physical plan gets values and rows in these places. The optimizer has seen neither, so nothing
of what it decided depends on them. Only whether an input is empty is known to it: what reads nothing falls away, and a
statement has a plan for each set of empty inputs that it meets with.

No public interface of Spark does this. All that reaches into it is here: it works where Spark runs in this process,
with the version that headgate is made for. Elsewhere statements are planned each time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

CATALYST = "org.apache.spark.sql.catalyst"

LEAVES = ("RDDScanExec", "LocalTableScanExec", "OneRowRelationExec")
"""Leaves of plans that can be kept. Others, such as a shuffle that is used once more, may hide a plan that a copy would
share with the first; so would a subquery.
"""

FIRST_VALUE = 4_611_686_018_427_387_907
"""Parameters have this value and those behind it while a statement is analysed. No instant is so far away."""


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A physical plan with places for parameters and inputs."""

    dataset: JavaObject
    """The statement that it was made of."""

    plan: JavaObject
    scans: Mapping[str, tuple[tuple[JavaObject, JavaObject, str], ...]]
    """By input: the scans of it that are in the plan, each with its columns and its name."""

    variables: Mapping[str, JavaObject]
    """By parameter: what stands in its place."""

    schema: StructType
    """The columns that it gives."""


@dataclass(frozen=True, slots=True)
class FilledPlan:
    """A plan with what belongs into its places, ready to run."""

    plan: KeptPlan
    rows: Mapping[str, JavaObject]
    """By input: its rows, of `rows_for`."""

    values: Mapping[str, int]
    """By parameter."""


class Planner:
    """Makes plans in one session and runs them, there or in other threads."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        jvm: Any = session._jvm
        self._jvm = jvm
        self._own: Any = session._jsparkSession
        self._context: Any = session.sparkContext._jsc.sc()
        self._datasets = self._object("org.apache.spark.sql.classic.Dataset")
        self._sessions = jvm.org.apache.spark.sql.classic.SparkSession
        self._long = self._object("org.apache.spark.sql.types.LongType")
        self._literals = self._object(f"{CATALYST}.expressions.Literal")
        self._single = self._object(f"{CATALYST}.plans.physical.SinglePartition")
        self._none = self._object("scala.None")
        self._no_pairs = self._object("scala.collection.immutable.Map").empty()
        self._is_row = self._tag(f"{CATALYST}.InternalRow")
        self._is_bytes = self._tag("[B")
        self._nothing = self._sequence([])
        self._places: dict[str, tuple[JavaObject, DataFrame]] = {}
        """By view: the rows that stand for its input in plans, and the frame of them."""

    def rows_for(self, rows: pa.Table, schema: StructType) -> JavaObject | None:
        """Hand rows to Spark, in one partition; None if they are so many that Spark divides them itself."""
        found = self.session.createDataFrame(rows, schema)._jdf.queryExecution().analyzed()
        if _kind(found) != "LocalRelation":
            return None
        return self._context.parallelize(found.data(), 1, self._is_row)

    # making a plan

    def planned(self, text: str, inputs: Mapping[str, str], parameters: Sequence[str]) -> KeptPlan | None:
        """Plan a statement; None if a plan of it cannot be kept.

        It reads the views of `inputs`, which are places made by `lay_place`, and has `placeholder` values for its
        parameters.
        """
        variables = {name: self._variable(name, number) for number, name in enumerate(parameters)}
        analysed = self.session.sql(text)._jdf.queryExecution().analyzed()
        values = [(self._literal(FIRST_VALUE + number), variables[name]) for number, name in enumerate(parameters)]
        opened = analysed.transformAllExpressions(self._pairs(values))
        with self._active():
            dataset = self._datasets.ofRows(self._own, opened)
            plan = dataset.queryExecution().executedPlan()
        leaves = list(self._items(plan.collectLeaves()))
        if not plan.subqueriesAll().isEmpty() or any(_kind(leaf) not in LEAVES for leaf in leaves):
            return None
        numbers = {self._places[view][0].id(): name for name, view in inputs.items()}
        scans: dict[str, list[tuple[JavaObject, JavaObject, str]]] = {name: [] for name in inputs}
        for leaf in leaves:
            if _kind(leaf) == "RDDScanExec" and leaf.rdd().id() in numbers:
                scans[numbers[leaf.rdd().id()]].append((leaf, leaf.output(), leaf.name()))
        schema = StructType.fromJson(json.loads(plan.schema().json()))
        return KeptPlan(dataset, plan, {name: tuple(found) for name, found in scans.items()}, variables, schema)

    def lay_place(self, view: str, example: pa.Table, schema: StructType) -> None:
        """Put a place for an input under the name of a view.

        Spark takes its rows to be about as large as those of the example, so that one task may have all of them.
        """
        if view not in self._places:
            local = self.session.createDataFrame(example, schema)._jdf.queryExecution().analyzed()
            place = self._context.parallelize(self._nothing, 1, self._is_row)
            of_one_partition = local.output(), place, self._single, self._nothing, False, self._none
            sized = self._own, self._jvm.scala.Some(local.stats()), self._none, False
            scan = self._jvm.org.apache.spark.sql.execution.LogicalRDD(*of_one_partition, *sized)
            frame = DataFrame(self._datasets.ofRows(self._own, scan).toDF(), self.session)
            self._places[view] = place, frame
        self._places[view][1].createOrReplaceTempView(view)

    # running plans

    def run(self, work: Sequence[FilledPlan]) -> list[list[pa.Buffer]]:
        """Run plans in one job and return what each gives, as Arrow's record batches without their schema."""
        with self._active():
            parts = [self._part(one) for one in work]
            together = self._context.union(self._sequence(parts), self._is_bytes)
            owners = [number for number, part in enumerate(parts) for _ in range(part.getNumPartitions())]
            dataset = self._own.createDataset(together, self._jvm.org.apache.spark.sql.Encoders.BINARY())
        frame = DataFrame(dataset.toDF(), self.session).selectExpr("SPARK_PARTITION_ID() AS part", "value")
        taken = frame.coalesce(1).toArrow()
        batches: list[list[pa.Buffer]] = [[] for _ in work]
        for part, value in zip(taken.column("part").to_pylist(), taken.column("value"), strict=True):
            batches[owners[part]].append(value.as_buffer())
        return batches

    def _part(self, work: FilledPlan) -> JavaObject:
        """Return the rows that a plan gives as Arrow, to be computed."""
        kept = work.plan
        rows = [
            (scan, scan.copy(columns, work.rows[name], label, self._single, self._nothing, self._none))
            for name, scans in kept.scans.items()
            for scan, columns, label in scans
        ]
        values = [(variable, self._literal(work.values[name])) for name, variable in kept.variables.items()]
        plan = kept.plan.transform(self._pairs(rows)).transformAllExpressions(self._pairs(values))
        return kept.dataset.toArrowBatchRdd(plan)

    # Spark's objects

    def _variable(self, name: str, number: int) -> JavaObject:
        variables = self._jvm.org.apache.spark.sql.catalyst.expressions.objects
        return variables.LambdaVariable(name, self._long, False, FIRST_VALUE + number)

    def _literal(self, value: int) -> JavaObject:
        if -(2**31) <= value < 2**31:  # it would get there as an INT
            return self._own.sessionState().sqlParser().parseExpression(f"{value}L")
        return self._literals.create(value, self._long)

    @contextmanager
    def _active(self) -> Iterator[None]:
        """In here our session is the one that Spark finds in this thread: copies of a plan belong to it."""
        before = self._sessions.getActiveSession()
        self._sessions.setActiveSession(self._own)
        try:
            yield
        finally:
            if before.isDefined():
                self._sessions.setActiveSession(before.get())
            else:
                self._sessions.clearActiveSession()

    def _object(self, name: str) -> Any:
        """Return an object of Scala."""
        found = self._jvm
        for part in f"{name}$".split("."):
            found = getattr(found, part)
        return getattr(found, "MODULE$")

    def _tag(self, name: str) -> Any:
        return self._object("scala.reflect.ClassTag").apply(self._jvm.java.lang.Class.forName(name))

    def _pairs(self, pairs: Sequence[tuple[Any, Any]]) -> Any:
        """Return a map of Scala, which is also a rule: what is a key becomes its value, and the rest stays."""
        found = self._no_pairs
        for key, value in pairs:
            found = found.updated(key, value)
        return found

    def _sequence(self, items: Sequence[Any]) -> Any:
        listed = self._jvm.java.util.ArrayList()
        for item in items:
            listed.add(item)
        return self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(listed)

    def _items(self, items: Any) -> Iterator[Any]:
        return (items.apply(number) for number in range(items.size()))


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def placeholder(number: int) -> int:
    """Return the value that a parameter has while its statement is planned."""
    return FIRST_VALUE + number


def table_of(batches: Sequence[pa.Buffer], schema: pa.Schema) -> pa.Table:
    """Return what a plan has given as a table."""
    return pa.Table.from_batches([pa.ipc.read_record_batch(batch, schema) for batch in batches], schema)
