"""The Spark session of a fragment: its inputs lie there under names, and its statements run there.

Every input is a leaf of Spark's plan, Parquet read with an explicit schema, so the plan of the thousandth epoch is no
larger than that of the tenth. Views are replaced under the same names, and nothing is cached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType, TimestampType

from headgate.log.chunk import PLACE_DIGITS, STAMPS, Chunk, count
from headgate.spark.session import let_go, own_session, parallelism, task_memory
from headgate.spark.staging import address, write_parquet
from headgate.sql import Column, cast
from headgate.sql import name as sql_name
from headgate.ticks import Tick

BROADCAST_BYTES = "1048576"

FIRST = f"CAST(LEFT(RIGHT(_metadata.file_name, {PLACE_DIGITS + len('.parquet')}), {PLACE_DIGITS}) AS BIGINT)"
PLACE = f"{FIRST} + _metadata.row_index"
"""The order of arrival of a row in a file of a source that was taken as it is (see `Chunk.first`)."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows to be read: those in some chunks for which a condition holds."""

    chunks: Sequence[Chunk]
    condition: str = ""
    """In SQL; empty if all rows are wanted."""

    @property
    def rows(self) -> int:
        """How many rows its chunks have."""
        return sum(chunk.rows for chunk in self.chunks)


class Workspace:
    """A Spark session of a fragment's own_session, with inputs under names."""

    def __init__(self, origin: SparkSession, directory: Path, partitions: int | None = None) -> None:
        self.origin = origin
        """The session of the user, which stays as it is."""
        self.directory = directory
        self.partitions = partitions
        """How many tasks a statement has at the most, if the user says so."""
        self.session = own_session(origin, partitions)
        self._in_one_task = False
        self._empty: dict[str, StructType] = {}
        """Names under which nothing lies, with its columns."""

    @cached_property
    def memory(self) -> int:
        """How many bytes Spark's tasks have together for the rows that they sort."""
        return task_memory(self.origin)

    def renew(self) -> None:
        """Go on in a new session, without inputs."""
        let_go(self.session)
        self.session = own_session(self.origin, self.partitions)
        self._empty.clear()

    def close(self) -> None:
        """Give the session back."""
        let_go(self.session)

    def tasks(self) -> int:
        """Return how many tasks share the work of a large statement."""
        return self.partitions or parallelism(self.session)

    def resize(self, in_one_task: bool) -> None:
        """Make statements run as one task, interpreted, or as many tasks, compiled.

        In a small epoch, shuffling and compiling would cost more than they save.
        """
        settings = self.session.conf
        width = "1" if in_one_task else str(self.tasks())
        settings.set("spark.sql.shuffle.partitions", width)
        settings.set("spark.sql.files.minPartitionNum", width)
        settings.set("spark.sql.codegen.wholeStage", str(not in_one_task).lower())
        settings.set("spark.sql.autoBroadcastJoinThreshold", "-1" if in_one_task else BROADCAST_BYTES)
        self._in_one_task = in_one_task

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

        Spark reads the files in this epoch, so they are compared with their checksums now.
        """
        for one in slices:
            for chunk in one.chunks:
                chunk.check()
        self._lay(name, [frame for one in slices for frame in self._frames(one, schema, within, by_arrival)], schema)

    def lay_files(self, name: str, files: Sequence[Path], schema: StructType) -> None:
        """Put the rows of files that this epoch has written under a name.

        If there are none, Spark knows it when it plans, and leaves out what would read them.
        """
        holding = [file for file in files if count(file)]
        self._lay(name, [self._frame(holding, "", schema)] if holding else [], schema)

    def lay_nothing(self, name: str, schema: StructType) -> None:
        """Put an empty input under a name."""
        self._lay(name, [], schema)

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
                computed = {
                    "_t": f"UNIX_MICROS({sql_name(timestamp)})"
                    if in_time
                    else f"CAST({sql_name(timestamp)} AS BIGINT)",
                    "_s": PLACE if by_arrival else "CAST(NULL AS BIGINT)",
                }
                columns = (f"{computed.get(field, sql_name(field))} AS {sql_name(field)}" for field in schema.names)
                yield self._frame(files, "", own).selectExpr(*columns).where(one.condition or "TRUE")

    def _frame(self, files: Sequence[Path], condition: str, schema: StructType, within: str | None = None) -> DataFrame:
        wanted = schema if within is None else StructType().add(within, schema)
        frame = self.session.read.schema(wanted).parquet(*map(address, files))
        frame = frame if within is None else frame.select(f"{within}.*")
        return frame.where(condition) if condition else frame

    def _lay(self, name: str, frames: Sequence[DataFrame], schema: StructType) -> None:
        if not frames:
            if self._empty.get(name) != schema:
                nothing = (cast(Column(one.name, one.dataType.simpleString()), "NULL") for one in schema)
                self.session.sql(f"SELECT {', '.join(nothing)} WHERE FALSE").createOrReplaceTempView(name)
                self._empty[name] = schema
            return
        self._empty.pop(name, None)
        frame = reduce(lambda one, other: one.unionAll(other), frames)
        frame = frame.coalesce(1) if self._in_one_task else frame
        frame.createOrReplaceTempView(name)

    # statements

    def sql(self, text: str, since: Tick, until: Tick, after: Tick) -> DataFrame:
        """Return what a statement gives over the inputs in (since, until]; results up to `after` are old."""
        return self.session.sql(text, args={"since": since, "until": until, "after": after})

    def write(self, frame: DataFrame, name: str) -> list[Path]:
        """Compute a frame and return the Parquet files that hold it. They count when they are committed."""
        return sorted(write_parquet(frame, self.directory / f".{name}").glob("*.parquet"))
