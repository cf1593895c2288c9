"""A Spark session in which statements run, over inputs that lie there under names.

Every input is a leaf of Spark's plan, so the plan of the thousandth epoch is no larger than that of the tenth. Views
are replaced under the same names, and Spark caches nothing.

A large statement reads Parquet files with an explicit schema and writes its rows to files. A small one, which runs in
one task, gets its rows from memory (`log.tail`) and gives them back as Arrow: files and their jobs would cost more than
the work.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType, TimestampType

from headgate.log.chunk import PLACE_DIGITS, STAMPS, Chunk, count
from headgate.log.tail import TAIL
from headgate.spark.in_memory import arrow_schema, fitted, text_of
from headgate.spark.jobs import JOBS
from headgate.spark.session import let_go, own_session, parallelism, task_memory
from headgate.spark.staging import address, write_arrow, write_parquet
from headgate.spark.statements import filtered, run, selected
from headgate.sql import EMPTY, NEVER, Column, Sql, cast, checked_type, part
from headgate.sql import name as sql_name
from headgate.ticks import Tick

BROADCAST_BYTES = "1048576"

FIRST = Sql(f"CAST(LEFT(RIGHT(_metadata.file_name, {PLACE_DIGITS + len('.parquet')}), {PLACE_DIGITS}) AS BIGINT)")
PLACE = f"{FIRST} + _metadata.row_index"
"""The order of arrival of a row in a file of a source that was taken as it is (see `Chunk.first`)."""


LEFT_OUT = "org.apache.spark.sql.execution.planmerging.MergeSubplans," + ",".join(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}"
    for rule in """
    CollapseGroupedSumOfCount CombineConcats CombineTypedFilters ConstantPropagation CostBasedJoinReorder
    DecimalAggregates EliminateAggregateFilter EliminateDistinct EliminateLimits EliminateMapObjects EliminateOffsets
    EliminateSerialization EliminateSorts EliminateWindowPartitions FoldablePropagation GenerateOptimization
    InferFiltersFromConstraints InferFiltersFromGenerate InferWindowGroupLimit InjectRuntimeFilter LikeSimplification
    LimitPushDown LimitPushDownThroughWindow NullDownPropagation ObjectSerializerPruning OptimizeCsvJsonExprs
    OptimizeExpand OptimizeIn OptimizeOneRowPlan OptimizeOneRowRelationSubquery OptimizeRand OptimizeRepartition
    OptimizeUpdateFields OptimizeWindowFunctions PullUpProjectAliasThroughWindow PushDownLeftSemiAntiJoin
    PushFoldableIntoBranches PushLeftSemiLeftAntiThroughJoin PushProjectionThroughLimitAndOffset
    ReassignLambdaVariableID RemoveLiteralFromGroupExpressions RemoveRedundantAggregates RemoveRedundantSorts
    RemoveRepetitionFromGroupExpressions ReorderAssociativeOperator SimplifyCaseConversionExpressions
    SimplifyDateTimeConversions SimplifyExtractValueOps TransposeWindow UnwrapCastInBinaryComparison
    UpdateAttributeNullability
    """.split()
)
"""Rules of Spark's optimizer that save time for each row and cost time for each plan. Those that prune, that choose and
order joins and that drop empty inputs stay. Spark ignores names that it does not know.
"""

LOCAL_BYTES = 16 * 2**20
"""Inputs of a small statement whose files are larger than this together are read by Spark: the rows must be wide."""

INTERPRETED_ROWS = 4_000
"""Up to here, interpreting expressions costs less than compiling them."""

TAKEN_ROWS = 100_000
"""A small statement that gives more rows than this writes them to files: a join can give far more than it reads."""


@dataclass(frozen=True)
class Slice:
    """Rows to be read: those in some chunks with timestamps in (low, high], of the sources that are seen."""

    chunks: Sequence[Chunk]
    low: Tick | None = None
    high: Tick | None = None
    seen: Sql = EMPTY
    """The condition for the sources in SQL; empty if all are seen."""

    @cached_property
    def rows(self) -> int:
        """How many rows it has: exactly where its chunks lie in memory, at the most where they do not."""
        return sum(self._rows(chunk) for chunk in self.chunks)

    def covers(self, chunk: Chunk) -> bool:
        """Say whether the timestamps of all rows of a chunk are wanted."""
        return (self.low is None or chunk.low > self.low) and (self.high is None or chunk.high <= self.high)

    def _rows(self, chunk: Chunk) -> int:
        known = None if self.covers(chunk) else TAIL.known([chunk])
        if known is None or "_t" not in known[0].column_names:
            return chunk.rows
        times = known[0].column("_t").to_numpy()
        low = times > self.low if self.low is not None else True
        return int(np.count_nonzero(low & (times <= self.high) if self.high is not None else low))

    @property
    def condition(self) -> Sql:
        """Which rows of its chunks are wanted, in SQL; empty if all are."""
        low = EMPTY if self.low is None else Sql(f"_t > {self.low}")
        high = EMPTY if self.high is None else Sql(f"_t <= {self.high}")
        return " AND ".join(filter(None, (low, high, self.seen)))

    def in_time(self, rows: pa.Table) -> pa.Table:
        """Those rows of its chunks whose timestamps are wanted."""
        wanted = pc.scalar(True)
        if self.low is not None:
            wanted &= pc.field("_t") > self.low
        if self.high is not None:
            wanted &= pc.field("_t") <= self.high
        return rows if self.low is None and self.high is None else rows.filter(wanted)


@dataclass(frozen=True, slots=True)
class Reading:
    """What an epoch reads under a name of its program: rows of a log, of a synopsis, or of a step computed first."""

    name: str
    slices: Sequence[Slice]
    schema: StructType
    within: str | None = None
    """The struct in which the files hold the rows, if they do."""

    table: pa.Table | None = None
    """Rows that the epoch itself has computed, instead of slices."""

    def known_by(self) -> tuple[object, ...]:
        """Return what tells its rows from those of other readings."""
        rows = [(tuple((chunk.path, chunk.checksum) for chunk in one.chunks), one.condition) for one in self.slices]
        return text_of(self.schema), self.within, *rows

    def check(self) -> None:
        """Compare the files with their checksums."""
        for one in self.slices:
            for chunk in one.chunks:
                chunk.check()


class Workspace:
    """A Spark session of ours, with inputs under names: for statements of one task, or for those of many."""

    def __init__(self, origin: SparkSession, in_one_task: bool, partitions: int | None = None) -> None:
        self.origin = origin
        """The session of the user, which stays as it is."""
        self.in_one_task = in_one_task
        """Whether statements run as one task, interpreted. In a small epoch, shuffling and compiling would cost more
        than they save.
        """
        self.partitions = partitions
        """How many tasks a statement has at the most, if the user says so."""
        self.turn = threading.RLock()
        """Held while inputs are laid and statements over them run."""
        self._session: SparkSession | None = None
        self._interpreted = False
        self._empty: dict[str, StructType] = {}
        """Names under which nothing lies, with its columns."""
        self._laid: dict[str, tuple[object, ...]] = {}
        """Which rows lie under a name, if they lie in memory: they are not laid again while they stay the same."""

    @property
    def session(self) -> SparkSession:
        """The session, which is made when it is first needed."""
        if self._session is None:
            self._session = own_session(self.origin, 1 if self.in_one_task else self.partitions)
            if self.in_one_task:
                self._prepare_for_one_task(self._session)
        return self._session

    def _prepare_for_one_task(self, session: SparkSession) -> None:
        excluded = self.origin.conf.get("spark.sql.optimizer.excludedRules", "") or ""
        for key, value in {
            "spark.sql.files.minPartitionNum": "1",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.sql.maxSinglePartitionBytes": str(2**62),
            "spark.sql.optimizer.excludedRules": f"{excluded},{LEFT_OUT}",
            "spark.sql.ui.explainMode": "simple",
        }.items():
            session.conf.set(key, value)

    def interpret(self, rows: int) -> None:
        """Let Spark interpret expressions in statements over few rows, and compile them in others.

        The instants in a statement differ in each epoch, so its code would be compiled in each.
        """
        interpreted = rows <= INTERPRETED_ROWS
        if interpreted != self._interpreted:
            self.session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN" if interpreted else "FALLBACK")
            self._interpreted = interpreted

    @cached_property
    def memory(self) -> int:
        """How many bytes Spark's tasks have together for the rows that they sort."""
        return task_memory(self.origin)

    def close(self) -> None:
        """Give the session back."""
        if self._session is not None:
            let_go(self._session)
        self._session, self._interpreted = None, False
        self._empty.clear()
        self._laid.clear()

    def tasks(self) -> int:
        """Return how many tasks share the work of a large statement."""
        return self.partitions or parallelism(self.origin)

    # inputs

    def lay(
        self,
        name: str,
        slices: Sequence[Slice],
        schema: StructType,
        within: str | None = None,
        by_arrival: bool = True,
    ) -> None:
        """Put the rows of slices under a name; with `within`, the files hold them in a struct of that name.

        Unless someone looks at their order of arrival, it is null in files that do not have it. To compute it costs
        more than the rest of a scan: Spark makes a record of the file and of the place in it for every row.

        The files are compared with their checksums now, also those whose rows are in memory: what is damaged is found
        in the next epoch that needs it, and not when memory lets go of it.
        """
        for one in slices:
            for chunk in one.chunks:
                chunk.check()
        form = text_of(schema), within
        if self.in_one_task and self._laid.get(name) == (form, _laid(slices)):
            return
        frames = self._frames_in_memory(slices, schema, within) if self.in_one_task else None
        in_memory = frames is not None
        if frames is None:
            frames = [frame for one in slices for frame in self._frames(one, schema, within, by_arrival)]
        self._lay(name, frames, schema)
        if in_memory:
            self._laid[name] = form, _laid(slices)

    def lay_files(self, name: str, files: Sequence[Path], schema: StructType) -> None:
        """Put the rows of files that this epoch has written under a name.

        If there are none, Spark knows it when it plans, and leaves out what would read them.
        """
        holding = [file for file in files if count(file)]
        self._lay(name, [self._frame(holding, EMPTY, schema)] if holding else [], schema)

    def lay_nothing(self, name: str, schema: StructType) -> None:
        """Put an empty input under a name."""
        self._lay(name, [], schema)

    def take_away(self, name: str) -> None:
        """Let nothing lie under a name any more."""
        self._laid.pop(name, None)
        self._empty.pop(name, None)
        self.session.catalog.dropTempView(name)

    def _frames_in_memory(
        self, slices: Sequence[Slice], schema: StructType, within: str | None
    ) -> list[DataFrame] | None:
        """The rows of slices, handed to Spark as they are in memory; None if they have to be read by Spark."""
        tables = tables_in_memory(slices, schema, within)
        if tables is None:
            return None
        frames = {seen: self.session.createDataFrame(table, schema) for seen, table in tables.items()}
        return [filtered(frame, seen) if seen else frame for seen, frame in frames.items()]

    def _frames(self, one: Slice, schema: StructType, within: str | None, by_arrival: bool) -> Iterator[DataFrame]:
        """The rows of a slice: of the chunks that headgate wrote, and of files of a source, taken as they are."""
        alike: dict[str | None, list[Path]] = {}
        for chunk in one.chunks:
            alike.setdefault(chunk.timestamp, []).append(chunk.path)
        for timestamp, files in alike.items():
            if timestamp is None:
                yield self._frame(files, one.condition, schema, within)
            else:
                own = StructType([field for field in schema if field.name not in STAMPS])
                in_time = isinstance(own[timestamp].dataType, TimestampType)
                own_time = sql_name(timestamp)
                computed = {
                    "_t": f"UNIX_MICROS({own_time})" if in_time else f"CAST({own_time} AS BIGINT)",
                    "_s": PLACE if by_arrival else NEVER,
                }
                columns = (f"{computed.get(field, sql_name(field))} AS {sql_name(field)}" for field in schema.names)
                yield filtered(selected(self._frame(files, EMPTY, own), *columns), one.condition or Sql("TRUE"))

    def _frame(self, files: Sequence[Path], condition: Sql, schema: StructType, within: str | None = None) -> DataFrame:
        wanted = schema if within is None else StructType().add(within, schema)
        frame = self.session.read.schema(wanted).parquet(*map(address, files))
        frame = frame if within is None else frame.select(f"{within}.*")
        return filtered(frame, condition) if condition else frame

    def _lay(self, name: str, frames: Sequence[DataFrame], schema: StructType) -> None:
        self._laid.pop(name, None)
        if not frames:
            if self._empty.get(name) != schema:
                nothing = (
                    cast(Column(one.name, checked_type(one.dataType.simpleString())), Sql("NULL")) for one in schema
                )
                run(self.session, f"SELECT {', '.join(nothing)} WHERE FALSE").createOrReplaceTempView(name)
                self._empty[name] = schema
            return
        self._empty.pop(name, None)
        frame = reduce(lambda one, other: one.unionAll(other), frames)
        frame = frame.coalesce(1) if self.in_one_task else frame
        frame.createOrReplaceTempView(name)

    # statements

    def run(self, text: Sql, values: Mapping[str, Tick]) -> DataFrame:
        """Return what a statement gives over the inputs, with values for its parameters."""
        return run(self.session, "".join(values_in(text, values)))

    def collected(self, frame: DataFrame) -> pa.Table | None:
        """Compute a frame of a small statement and return its rows; None if they have to be written by Spark."""
        if not self.in_one_task or arrow_schema(frame.schema) is None:
            return None
        rows = frame.limit(TAKEN_ROWS + 1).toArrow()
        return rows if rows.num_rows <= TAKEN_ROWS else None

    def write(self, frame: DataFrame, staging: Path) -> list[Path]:
        """Compute a frame and return the Parquet files that hold it. They count when they are committed."""
        with JOBS.timed():
            rows = self.collected(frame)
            if rows is None:
                return sorted(write_parquet(frame, staging).glob("*.parquet"))
        return write_small(rows, staging)


def write_small(rows: pa.Table, staging: Path) -> list[Path]:
    """Write rows and return the Parquet file that holds them, if there are any. It counts when it is committed."""
    return sorted(write_arrow({".": rows}, staging).glob("*.parquet"))


def tables_in_memory(slices: Sequence[Slice], schema: StructType, within: str | None) -> dict[Sql, pa.Table] | None:
    """The rows of slices as Arrow, by the condition for their sources; None if they have to be read by Spark.

    With `within`, the files hold them in a struct of that name. The rows of a table lie in one piece: Spark takes two
    empty pieces in a row for the end of the table, and rows behind them would be lost.
    """
    columns = arrow_schema(schema)
    if columns is None or sum(chunk.size for one in slices for chunk in one.chunks) > LOCAL_BYTES:
        return None
    alike: dict[Sql, list[pa.Table]] = {}
    for one in slices:
        for chunk in one.chunks:
            rows = TAIL.table(chunk)
            try:
                alike.setdefault(one.seen, []).append(one.in_time(fitted(rows, columns, within)))
            except pa.ArrowException:
                return None  # a source's file with types that Spark converts and Arrow does not
    whole = {seen: pa.concat_tables(parts).combine_chunks() for seen, parts in alike.items()}
    return {seen: table for seen, table in whole.items() if table.num_rows}


def _laid(slices: Sequence[Slice]) -> tuple[object, ...]:
    """What tells the rows of slices from others. The name of a file is its own, in whatever folder it is linked."""
    return tuple(
        (one.low, one.high, one.seen, *((chunk.path.name, chunk.size, chunk.checksum) for chunk in one.chunks))
        for one in slices
        if one.chunks
    )


PARAMETER = re.compile(
    r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)|(?<![\w)\]`:]):(since|until|after)\b""", re.DOTALL
)
"""A text or a quoted name, in which nothing is replaced; or a parameter."""


@lru_cache(maxsize=1_000)
def _pieces(text: Sql) -> tuple[tuple[Sql, str], ...]:
    """A statement cut at its parameters: each piece of it with the parameter behind it, the last one with none."""
    pieces, start = list[tuple[Sql, str]](), 0
    for found in PARAMETER.finditer(text):
        if found[2]:
            pieces.append((part(text, start, found.start()), found[2]))
            start = found.end()
    return (*pieces, (part(text, start), ""))


def values_in(text: Sql, values: Mapping[str, Tick]) -> Iterator[Sql]:
    """The pieces of a statement with values for its parameters. Spark would parse it once more to do the same."""
    for piece, parameter in _pieces(text):
        yield piece
        yield Sql(f"({values[parameter]}L)") if parameter else EMPTY
