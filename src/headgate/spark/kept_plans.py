"""Plans of small statements that are kept: Spark analyses, optimizes and plans a statement once, and runs it often.

Planning a small statement takes longer than running it, and the statements of a fragment differ only in their instants
and in the rows under them. So a statement is planned with places to fill:

    parameters    variables without a value, which Spark's optimizer can neither compute with nor compare
    inputs        scans of one partition, with nothing in them

Spark's optimizer sees neither, so nothing that it decides depends on them. Only whether an input is empty is known to
it: what reads nothing falls away, and a statement has a plan for each set of empty inputs that it meets with.

The physical plan reads its parameters from an array and its rows from buffers, and becomes an RDD once. To run it, the
array and the buffers are filled and the RDD is computed in a thread of the driver, without a job. Nothing is planned,
no code is generated and no RDD is made again. Only a plan with an exchange, which remembers its first rows, is copied
for each run and runs as a job.

No public interface of Spark does this. All that reaches into it is here: it works where Spark runs in this process,
with the version that headgate is made for. Elsewhere statements are planned each time.
"""

from __future__ import annotations

import json
import struct
import threading
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

import pyarrow as pa
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.spark.in_memory import arrow_schema
from headgate.spark.session import CODE_CACHE, active, may_be_interrupted, scala_object
from headgate.spark.statements import run, selected
from headgate.sql import Sql

CATALYST = "org.apache.spark.sql.catalyst"

LEAVES = ("RDDScanExec", "LocalTableScanExec", "OneRowRelationExec")
"""Leaves of plans that can be kept. Others, such as a shuffle that is used once more, may hide a plan."""

REMEMBERS = ("Exchange", "Broadcast")
"""Parts of the names of operators that keep what they gave first. A plan with one of them is copied for each run."""

REFUSED = ("InMemory", "Python", "Subquery")
"""Parts of the names of operators of which no plan is kept: what they keep or run lies elsewhere."""

FIRST_VALUE = 4_611_686_018_427_387_907
"""Parameters have this value and those behind it while a statement is analysed. No instant is so far away."""

CODE_FOR_PLANS = 1_000
"""Plans run compiled code if Spark keeps at least so many pieces of it; otherwise it would compile them again and
again, and plans are interpreted.
"""

INTERPRETED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Plans that run in the driver generate no code when they run: that takes longer than what it saves. The code of whole
stages is generated when they are planned.
"""

MOST_TOGETHER = 50
"""So many sets of plans that ran together are kept, ready to run once more."""

Rows: TypeAlias = JavaObject
"""Rows that Spark has, as a sequence of Scala."""


@dataclass(frozen=True, slots=True, eq=False)
class KeptPlan:
    """A plan that is ready to run, with places for parameters and inputs."""

    dataset: JavaObject
    """The statement that it was made of."""

    plan: JavaObject
    result: JavaObject | None
    """The RDD of what it gives, as Arrow's record batches; None if one is made for each run."""

    buffers: Mapping[str, JavaObject]
    """By input: the buffer from which its scans take their rows."""

    instants: JavaObject
    """The array from which it takes its parameters, in the order of `parameters`."""

    parameters: tuple[str, ...]
    schema: StructType
    """The columns that it gives."""

    held: dict[str, tuple[Rows, ...]] = field(default_factory=dict)
    """By input: what its buffer holds. Rows that stay, as those of a synopsis, are put into it once."""


@dataclass(frozen=True, slots=True)
class FilledPlan:
    """A plan with what belongs into its places."""

    plan: KeptPlan
    rows: Mapping[str, Sequence[Rows]]
    """By input: its rows, of `rows_for`, in one or more pieces."""

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
        self._gateway: Any = session.sparkContext._gateway
        self._datasets = scala_object(self._jvm, "org.apache.spark.sql.classic.Dataset")
        self._sessions = jvm.org.apache.spark.sql.classic.SparkSession
        self._expressions = jvm.org.apache.spark.sql.catalyst.expressions
        self._long = scala_object(self._jvm, "org.apache.spark.sql.types.LongType")
        self._int = scala_object(self._jvm, "org.apache.spark.sql.types.IntegerType")
        self._longs = scala_object(self._jvm, "org.apache.spark.sql.types.ArrayType").apply(self._long, False)
        self._instants = jvm.org.apache.spark.sql.catalyst.expressions.UnsafeArrayData
        self._offset = jvm.org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET
        self._arrow = scala_object(self._jvm, "org.apache.spark.sql.execution.arrow.ArrowConverters")
        self._literals = scala_object(self._jvm, f"{CATALYST}.expressions.Literal")
        self._single = scala_object(self._jvm, f"{CATALYST}.plans.physical.SinglePartition")
        self._none = scala_object(self._jvm, "scala.None")
        self._no_pairs = scala_object(self._jvm, "scala.collection.immutable.Map").empty()
        self._as_it_is = getattr(scala_object(self._jvm, "scala.Predef"), "$conforms")()
        self._is_row = self._tag(f"{CATALYST}.InternalRow")
        self._is_object = self._tag("java.lang.Object")
        self._is_bytes = self._tag("[B")
        # py4j asks Java for each part of a name, and Java then looks through all its libraries: so names are kept
        self._list = jvm.java.util.ArrayList
        self._to_sequence = jvm.org.apache.spark.api.python.PythonUtils.toSeq
        self._bytes_out, self._data_out = jvm.java.io.ByteArrayOutputStream, jvm.java.io.DataOutputStream
        self._as_text = jvm.java.util.Base64.getEncoder()
        self._properties = jvm.java.util.Properties()
        for key, value in {**session.conf.getAll, **INTERPRETED}.items():
            self._properties.setProperty(key, value)
        self._nothing = self._sequence([])
        self._tasks = scala_object(self._jvm, "org.apache.spark.TaskContext")
        self._task = jvm.org.apache.spark.TaskContextImpl
        self._memory = jvm.org.apache.spark.memory.TaskMemoryManager
        self._metrics = scala_object(self._jvm, "org.apache.spark.executor.TaskMetrics")
        self._driver_memory = self._memory_manager()
        self._python = scala_object(self._jvm, "org.apache.spark.api.python.PythonRDD")
        self._end = self._context.parallelize(self._sequence([b""]), 1, self._is_bytes)
        """Stands behind the batches of a plan: a batch of no bytes."""
        self._numbers = count(2)
        """Tasks that run here are numbered downwards; those of jobs are numbered upwards."""
        self._compiles = int(session.conf.get(CODE_CACHE, "100") or 0) >= CODE_FOR_PLANS
        self._places: dict[str, tuple[JavaObject, DataFrame]] = {}
        """By view: the rows that stand for its input in plans, and the frame of them."""
        self._together: OrderedDict[tuple[KeptPlan, ...], tuple[JavaObject, JavaObject]] = OrderedDict()
        """By plans that ran together: the RDD of what all of them give, and its partition."""
        self._turn = threading.Lock()
        """Held while plans that run together are looked up."""

    def rows_for(self, rows: pa.Table, schema: StructType) -> Rows | None:
        """Hand rows to Spark; None if they are so many that Spark divides them itself."""
        found = self._local_relation(rows, schema)
        return found.data() if _kind(found) == "LocalRelation" else None

    def _local_relation(self, rows: pa.Table, schema: StructType) -> JavaObject:
        """Hand rows to Spark and return the plan that has them.

        `createDataFrame` does the same, by way of a socket of its own and of names that py4j looks up each time.
        """
        columns = arrow_schema(schema)
        assert columns is not None
        batches = rows.cast(columns).combine_chunks().to_batches()
        given = self._sequence([batch.serialize().to_pybytes() for batch in batches]).iterator()
        return self._arrow.toDataFrame(given, schema.json(), self._own).queryExecution().analyzed()

    # making a plan

    def planned(self, text: Sql, inputs: Mapping[str, str], parameters: Sequence[str]) -> KeptPlan | None:
        """Plan a statement; None if a plan of it cannot be kept.

        It reads the views of `inputs`, which are places made by `lay_place`, and has `placeholder` values for its
        parameters.
        """
        variables = {name: self._variable(name, number) for number, name in enumerate(parameters)}
        analysed = run(self.session, text)._jdf.queryExecution().analyzed()
        values = [
            (self._literals.create(FIRST_VALUE + n, self._long), variables[name]) for n, name in enumerate(parameters)
        ]
        opened = analysed.transformAllExpressions(self._pairs(values))
        with active(self._sessions, self._own), self._compiled():
            dataset = self._datasets.ofRows(self._own, opened)
            plan = dataset.queryExecution().executedPlan()
            operators = list(self._operators(plan))
            kinds = list(map(_kind, operators))
            if not plan.subqueriesAll().isEmpty() or any(word in kind for kind in kinds for word in REFUSED):
                return None
            if any(_kind(leaf) not in LEAVES for leaf in operators if leaf.children().isEmpty()):
                return None
            places = {self._places[view][0].id(): name for name, view in inputs.items()}
            filled, buffers = self._reading_buffers(operators, places)
            instants = self._instants.fromPrimitiveArray(self._gateway.new_array(self._jvm.long, len(parameters)))
            array = self._expressions.Literal(instants, self._longs)
            read = [(variables[name], self._element(array, place)) for place, name in enumerate(parameters)]
            ready = plan.transform(self._pairs(filled)).transformAllExpressions(self._pairs(read))
            once = not any(word in kind for kind in kinds for word in REMEMBERS)
            result = dataset.toArrowBatchRdd(ready) if once else None
        schema = StructType.fromJson(json.loads(plan.schema().json()))
        return KeptPlan(dataset, ready, result, buffers, instants, tuple(parameters), schema)

    def _reading_buffers(
        self, operators: Sequence[Any], inputs: Mapping[int, str]
    ) -> tuple[list[tuple[Any, Any]], dict[str, JavaObject]]:
        """Return for each scan of an input one that reads a buffer, and the buffer of each input."""
        pairs, buffers, rows = list[tuple[Any, Any]](), dict[str, JavaObject](), dict[str, JavaObject]()
        for scan in operators:
            name = inputs.get(scan.rdd().id()) if _kind(scan) == "RDDScanExec" else None
            if name is None:
                continue
            if name not in buffers:
                buffers[name] = self._jvm.scala.collection.mutable.ArrayBuffer()
                held = self._context.parallelize(self._sequence([buffers[name]]), 1, self._is_object)
                rows[name] = held.flatMap(self._as_it_is, self._is_row)
            place = scan.output(), rows[name], scan.name(), self._single, self._nothing, self._none
            pairs.append((scan, scan.copy(*place)))
        return pairs, buffers

    def _element(self, array: JavaObject, place: int) -> JavaObject:
        """Return an expression that reads a parameter. Generated code refers to the array, and not to what is in it."""
        element = self._expressions.GetArrayItem(array, self._expressions.Literal(place, self._int), False)
        return self._expressions.KnownNotNull(element)

    def lay_place(self, view: str, example: pa.Table, schema: StructType) -> None:
        """Put a place for an input under the name of a view.

        Spark takes its rows to be about as large as those of the example, so that one task may have all of them.
        """
        if view not in self._places:
            local = self._local_relation(example, schema)
            place = self._context.parallelize(self._nothing, 1, self._is_row)
            of_one_partition = local.output(), place, self._single, self._nothing, False, self._none
            sized = self._own, self._jvm.scala.Some(local.stats()), self._none, False
            scan = self._jvm.org.apache.spark.sql.execution.LogicalRDD(*of_one_partition, *sized)
            frame = DataFrame(self._datasets.ofRows(self._own, scan).toDF(), self.session)
            self._places[view] = place, frame
        self._places[view][1].createOrReplaceTempView(view)

    # running plans

    def run(self, work: Sequence[FilledPlan]) -> list[list[pa.Buffer]]:
        """Run plans together and return what each gives, as Arrow's record batches without their schema.

        They run in the driver, where their rows are: to send rows and plans to a task takes longer than to run them.
        Plans with an exchange run as a job, and so do all plans of a thread whose jobs may be interrupted.
        """
        for one in work:
            self._fill(one)
        plans = tuple(one.plan for one in work)
        if any(plan.result is None for plan in plans) or may_be_interrupted(self.session):
            return self._run_as_job(plans)
        return self._run_here(plans)

    def _fill(self, work: FilledPlan) -> None:
        """Put rows and values into the places of a plan."""
        plan = work.plan
        for name, buffer in plan.buffers.items():
            wanted, held = tuple(work.rows[name]), plan.held.pop(name, ())
            if len(wanted) != len(held) or any(one is not other for one, other in zip(wanted, held, strict=True)):
                buffer.clear()
                for rows in wanted:
                    buffer.addAll(rows)
            plan.held[name] = wanted
        values = [work.values[name] for name in plan.parameters]
        laid = struct.pack(f"={len(values) + 2}q", len(values), 0, *values)  # how many there are, and which are null
        plan.instants.pointTo(laid, self._offset, len(laid))

    def _run_here(self, plans: tuple[KeptPlan, ...]) -> list[list[pa.Buffer]]:
        """Run plans one after the other in this thread of the driver, as one task of no job.

        The task has memory of its own, which is given back when it ends, whatever became of it.
        """
        everything, partition = self._one_behind_the_other(plans)
        memory = self._memory(self._driver_memory, -next(self._numbers))
        job = 0, 0, 0, -1, 0, 1  # stage and its attempt, partition, task and its attempt, number of partitions
        told = self._properties, None, self._metrics.empty()  # a task finds Spark's settings in its properties
        task = self._task(*job, memory, *told, None, self._no_pairs)
        given = self._bytes_out()
        written = self._data_out(self._as_text.wrap(given))  # py4j would make Python's bytes of Java's one by one
        self._tasks.setTaskContext(task)
        try:
            self._python.writeIteratorToStream(everything.iterator(partition, task), written)
            written.close()
        finally:
            try:
                task.markTaskCompleted(self._none)
            finally:
                memory.cleanUpAllAllocatedMemory()
                self._tasks.unset()
        return _batches(b64decode(given.toString()), len(plans))

    def _one_behind_the_other(self, plans: tuple[KeptPlan, ...]) -> tuple[JavaObject, JavaObject]:
        """Return an RDD of what plans give, with an empty batch behind each of them, and its only partition."""
        with self._turn:
            known = self._together.pop(plans, None)
            if known is None:
                with active(self._sessions, self._own):
                    parts = [part for plan in plans for part in (plan.result, self._end)]
                    union = self._context.union(self._sequence(parts), self._is_bytes)
                    whole = union.coalesce(1, False, self._none, None)
                    known = whole, whole.partitions()[0]
            self._together[plans] = known
            while len(self._together) > MOST_TOGETHER:
                self._together.popitem(last=False)
            return known

    def _run_as_job(self, plans: Sequence[KeptPlan]) -> list[list[pa.Buffer]]:
        """Run plans as one job with one task."""
        with active(self._sessions, self._own):
            parts = [plan.result or plan.dataset.toArrowBatchRdd(plan.plan.clone()) for plan in plans]
            together = self._context.union(self._sequence(parts), self._is_bytes)
            dataset = self._own.createDataset(together, self._jvm.org.apache.spark.sql.Encoders.BINARY())
        frame = selected(DataFrame(dataset.toDF(), self.session), Sql("SPARK_PARTITION_ID() AS part"), Sql("value"))
        taken = frame.coalesce(1).toArrow()
        owners = [number for number, part in enumerate(parts) for _ in range(part.getNumPartitions())]
        batches: list[list[pa.Buffer]] = [[] for _ in plans]
        for part, value in zip(taken.column("part").to_pylist(), taken.column("value"), strict=True):
            batches[owners[part]].append(value.as_buffer())
        return batches

    # Spark's objects

    def _variable(self, name: str, number: int) -> JavaObject:
        variables = self._jvm.org.apache.spark.sql.catalyst.expressions.objects
        return variables.LambdaVariable(name, self._long, False, FIRST_VALUE + number)

    @contextmanager
    def _compiled(self) -> Iterator[None]:
        """In here, plans are made to run generated code, if Spark keeps that compiled.

        Operators without such code, as those of windows, stay interpreted: each task would generate code for them.
        """
        if not self._compiles:
            yield
            return
        keys = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
        before = {key: str(self.session.conf.get(key)) for key in keys}
        try:
            for key, value in keys.items():
                self.session.conf.set(key, value)
            yield
        finally:
            for key, value in before.items():
                self.session.conf.set(key, value)

    def _operators(self, plan: Any) -> Iterator[Any]:
        yield plan
        for child in self._items(plan.children()):
            yield from self._operators(child)

    def _memory_manager(self) -> JavaObject:
        """Return what gives memory to the tasks of this process.

        Only its field can be read: to call the method, py4j lists all methods of its class, and some of those need
        classes that Spark comes without.
        """
        field = self._jvm.java.lang.Class.forName("org.apache.spark.SparkEnv").getDeclaredField("_memoryManager")
        field.setAccessible(True)
        found: JavaObject = field.get(scala_object(self._jvm, "org.apache.spark.SparkEnv").get())
        return found

    def _tag(self, name: str) -> Any:
        return scala_object(self._jvm, "scala.reflect.ClassTag").apply(self._jvm.java.lang.Class.forName(name))

    def _pairs(self, pairs: Sequence[tuple[Any, Any]]) -> Any:
        """Return a map of Scala, which is also a rule: what is a key becomes its value, and the rest stays."""
        found = self._no_pairs
        for key, value in pairs:
            found = found.updated(key, value)
        return found

    def _sequence(self, items: Sequence[Any]) -> Any:
        listed = self._list()
        for item in items:
            listed.add(item)
        return self._to_sequence(listed)

    def _items(self, items: Any) -> Iterator[Any]:
        return (items.apply(number) for number in range(items.size()))


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def placeholder(number: int) -> int:
    """Return the value that a parameter has while its statement is planned."""
    return FIRST_VALUE + number


def _batches(given: bytes, plans: int) -> list[list[pa.Buffer]]:
    """Return the batches of each plan. Each batch has its length before it; one of no bytes ends those of a plan."""
    batches: list[list[pa.Buffer]] = [[]]
    place = 0
    while place < len(given):
        size = int.from_bytes(given[place : place + 4], "big")
        if size:
            batches[-1].append(pa.py_buffer(given[place + 4 : place + 4 + size]))  # a copy, which is aligned
        else:
            batches.append([])
        place += 4 + size
    assert len(batches) == plans + 1
    return batches[:-1]


def table_of(batches: Sequence[pa.Buffer], schema: pa.Schema) -> pa.Table:
    """Return what a plan has given as a table."""
    return pa.Table.from_batches([pa.ipc.read_record_batch(batch, schema) for batch in batches], schema)
