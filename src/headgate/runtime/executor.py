"""Runs a fragment's program on Spark: lays the inputs, runs one statement, hands the files it wrote to the results.

Every input is a leaf of the plan, Parquet read with an explicit schema, so the plan of the thousandth epoch is no larger than
that of the tenth. Views are replaced under the same names and nothing is cached.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.catalog import Tick, TimeDomain
from headgate.delta.program import Program
from headgate.delta.sql import listed
from headgate.errors import UserError
from headgate.log.chunk import count
from headgate.log.log import Log
from headgate.runtime.fragment import Fragment
from headgate.runtime.session import own

SMALL_EPOCH_ROWS = 50_000
"""Up to here one task does the work: more would cost more than they save."""

WRITE_OPTIONS = {
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


def result_statement(program: Program) -> str:
    """An epoch's results as sinks get them: `_time`, for a relation `_change` (+ or -), then the row."""
    time = "TIMESTAMP_MICROS(_t)" if program.domain is TimeDomain.TIMESTAMP else "_t"
    change = ", CASE WHEN _n > 0 THEN '+' ELSE '-' END AS _change" if program.kind == "relation" else ""
    columns = listed(column.name for column in program.columns)
    return program.output().replace(
        f"\nSELECT * FROM {program.result} ", f"\nSELECT {time} AS _time{change}, {columns} FROM {program.result} "
    )


class Executor:
    """One query's program in a Spark session of its own."""

    def __init__(
        self, session: SparkSession, fragment: Fragment, logs: Mapping[str, Log], schemas: Mapping[str, StructType],
        directory: Path, partitions: int | None = None,
    ) -> None:  # fmt: skip
        self.session = own(session, partitions)
        self.width = self.session.conf.get("spark.sql.shuffle.partitions")
        self.fixed_width = partitions is not None
        self.fragment = fragment
        self.logs = logs
        self.schemas = schemas
        self.directory = directory
        self.statement = result_statement(fragment.program)
        self.synopsis_schemas: dict[str, StructType] = {}
        self.version = 0
        self.check()

    def check(self) -> None:
        """Let Spark analyse the program over empty inputs: types and functions are checked before anything runs."""
        origin = self.fragment.program.domain.origin
        for source in self.fragment.program.inputs:
            self.lay(source.name, [], self.schemas[source.stream])
        try:
            for synopsis in self.fragment.program.synopses:
                shape = self.sql(self.fragment.program.shape(synopsis), origin, origin)
                self.synopsis_schemas[synopsis.name] = _nullable(shape.schema)
                self.lay(synopsis.name, [], self.synopsis_schemas[synopsis.name])
            self.sql(self.statement, origin, origin)
        except PySparkException as error:
            raise translated(error, self.fragment.name) from error

    def run(self, until: Tick) -> list[Path]:
        """One epoch, from where the fragment is up to `until`; the files of its results."""
        fragment = self.fragment
        try:
            rows = self.lay_inputs(until)
            self.set_width(rows + fragment.synopsis_rows)
            files = self.write(self.sql(self.statement, fragment.since, until), "results")
        except PySparkException as error:
            raise translated(error, fragment.name, fragment.after, until) from error
        fragment.after = until
        fragment.epochs += 1
        if not fragment.program.synopses:
            fragment.since = until
        return files

    def move(self) -> None:
        """Move the synopses forward to what has been put out: one job for all of them."""
        fragment, program = self.fragment, self.fragment.program
        try:
            self.set_width(self.lay_inputs(fragment.after) + fragment.synopsis_rows)
            self.version += 1
            target = self.directory / "synopses" / f"{self.version:012d}"
            self.write_synopses(target)
        except PySparkException as error:
            raise translated(error, fragment.name, fragment.since, fragment.after) from error
        fragment.synopsis_rows = 0
        for synopsis in program.synopses:
            files = sorted((target / f"_synopsis={synopsis.name}").glob("*.parquet"))
            fragment.synopsis_rows += sum(map(count, files))
            self.lay(synopsis.name, files, self.synopsis_schemas[synopsis.name])
        fragment.since = fragment.after
        for old in (self.directory / "synopses").iterdir():
            if old != target:
                shutil.rmtree(old)

    def write_synopses(self, target: Path) -> None:
        """All synopses as one job, told apart by a partition column; each has its own columns, the others are null."""
        fragment, program = self.fragment, self.fragment.program
        tagged: DataFrame | None = None
        for synopsis in program.synopses:
            contents = self.sql(program.contents(synopsis), fragment.since, fragment.after)
            schema = self.synopsis_schemas[synopsis.name]
            columns = [f"CAST({_quoted(field.name)} AS {field.dataType.simpleString()}) AS {_quoted(field.name)}" for field in schema]
            part = contents.selectExpr(f"'{synopsis.name}' AS _synopsis", f"STRUCT({', '.join(columns)}) AS {synopsis.name}")
            tagged = part if tagged is None else tagged.unionByName(part, allowMissingColumns=True)
        assert tagged is not None
        tagged.write.options(**WRITE_OPTIONS).partitionBy("_synopsis").parquet(str(target))

    def sql(self, text: str, since: Tick, until: Tick) -> DataFrame:
        return self.session.sql(text, args={"since": since, "until": until, "after": self.fragment.after})

    def lay_inputs(self, until: Tick) -> int:
        """Put the ranges of the logs under their names; returns about how many rows they hold."""
        rows = 0
        for source in self.fragment.program.inputs:
            low, high = source.low.at(self.fragment.since, until), source.high.at(self.fragment.since, until)
            if self.fragment.start is not None:
                low = self.fragment.start if low is None else max(low, self.fragment.start)
            log = self.logs[source.stream]
            chunks = [] if low is not None and high is not None and high <= low else log.overlapping(low, high)
            rows += sum(chunk.rows for chunk in chunks)
            bounds = " AND ".join([f"_t > {low}"] * (low is not None) + [f"_t <= {high}"] * (high is not None))
            self.lay(source.name, [chunk.path for chunk in chunks], self.schemas[source.stream], bounds)
        return rows

    def lay(self, name: str, files: list[Path], schema: StructType, bounds: str = "") -> None:
        if files:
            nested = name in self.synopsis_schemas
            wanted = StructType().add(name, schema) if nested else schema
            frame = self.session.read.schema(wanted).parquet(*(str(file) for file in files))
            frame = frame.select(f"{name}.*") if nested else frame
            frame = frame.where(bounds) if bounds else frame
        else:
            frame = self.session.createDataFrame([], schema)
        frame.createOrReplaceTempView(name)

    def set_width(self, rows: int) -> None:
        if not self.fixed_width:
            self.session.conf.set("spark.sql.shuffle.partitions", "1" if rows <= SMALL_EPOCH_ROWS else str(self.width))

    def write(self, frame: DataFrame, name: str) -> list[Path]:
        staging = self.directory / f".{name}"
        frame.write.mode("overwrite").options(**WRITE_OPTIONS).parquet(str(staging))
        return sorted(staging.glob("*.parquet"))


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _nullable(schema: StructType) -> StructType:
    result = StructType()
    for field in schema:
        result.add(field.name, field.dataType, nullable=True)
    return result


def translated(error: PySparkException, query: str, since: Tick | None = None, until: Tick | None = None) -> UserError:
    """A Spark exception as an error of ours: which query, which epoch, and the first line of what Spark said."""
    condition = error.getCondition() or "error"
    said = next((line for line in str(error).splitlines() if line.strip()), condition).strip()
    where = f" in the epoch ({since}, {until}]" if until is not None else ""
    code = "query-failed" if until is not None else "query-rejected"
    return UserError(code, f'Spark refused query "{query}"{where}', detail=said)
