"""A real engine whose epochs run in DuckDB instead of Spark: logs, heartbeats, journal and loop are its own.

The state of a query is never moved: each epoch begins with empty synopses, and reads its logs from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as kinds
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from headgate import Engine, ManualClock
from headgate.delta.program import Input, Program
from headgate.execute.fragment import Fragment
from headgate.execute.prepared import PreparedEpoch, Written
from headgate.execute.statement import Span, result_columns
from headgate.execute.workspace import Slice
from headgate.plan.nodes import Node
from headgate.spark.in_memory import fitted
from tools.duck import Duck, shared, transpiled
from tools.no_spark import NoSpark

MEMORY_BYTES = 2**30

_SCHEMAS: dict[tuple[Node, str | None], kinds.StructType] = {}
"""The columns of results, by plan and by what reads them: some tests register one query many times."""


class OneEpoch(Duck):
    """The results of one epoch, from slices of logs."""

    def __init__(
        self, program: Program, slices: Mapping[str, Sequence[Slice]], schemas: Mapping[str, kinds.StructType]
    ) -> None:
        self.slices = slices
        self.schemas = schemas
        super().__init__(None, [program])  # type: ignore[arg-type]

    def lay(self, source: Input, low: int | None, high: int | None) -> None:
        schema = to_arrow_schema(self.schemas[source.stream], timezone="UTC")
        tables = [pa.table({field.name: pa.array([], field.type) for field in schema})]
        for one in self.slices.get(source.name, ()):
            rows = [fitted(one.in_time(chunk.table()), schema) for chunk in one.chunks]
            tables += [self._seen(table, one.seen) for table in rows]
        self.database.register("given", pa.concat_tables(tables))
        self.create(source.name, "FROM given")

    def _seen(self, rows: pa.Table, condition: str) -> pa.Table:
        if not condition:
            return rows
        self.database.register("all_of_them", rows)
        return self.database.sql(transpiled(f"SELECT * FROM all_of_them WHERE {condition}")).to_arrow_table()

    def results(self, span: Span) -> pa.Table:
        self.lay_inputs(span.since, span.until)
        self.lay_synopses(span.since, span.until)
        self.compute(self.program.result, span.since, span.until)
        columns = transpiled(f"SELECT {result_columns(self.program)} FROM {self.program.result}")
        found = self.database.sql(f"{columns} WHERE _t > {span.after}").to_arrow_table()
        self.database.close()
        return found


def _analyse(fragment: Fragment) -> None:
    """Find out the columns of results by an epoch over nothing. Synopses are never written."""
    before, known = fragment.program.domain.origin - 1, (fragment.part.plan, fragment.part.log)
    if known not in _SCHEMAS:
        nothing = OneEpoch(fragment.program, {}, fragment.schemas).results(Span(before, before + 1, before))
        _SCHEMAS[known] = from_arrow_schema(nothing.schema)
    fragment.result_schema = _SCHEMAS[known]
    fragment.synopses.schemas = {}
    fragment.hash_joins = False


def _run(epoch: PreparedEpoch) -> Written:
    rows = OneEpoch(epoch.sized.program, epoch.slices, epoch.fragment.schemas).results(epoch.span)
    path = epoch.fragment.directory / f".results-{epoch.fragment.epochs}.parquet"
    pq.write_table(rows, path)
    return epoch.written([path])


@contextmanager
def without_spark() -> Iterator[None]:
    """In here, engines run their epochs in DuckDB."""
    shared()
    _SCHEMAS.clear()
    with (
        patch.object(Fragment, "analyse", _analyse),
        patch.object(PreparedEpoch, "run", _run),
        patch("headgate.schedule.loop.fits_together", lambda epoch: False),
        patch("headgate.execute.workspace.own_session", lambda session, partitions=None: session),
        patch("headgate.execute.workspace.parallelism", lambda session: 1),
        patch("headgate.execute.workspace.task_memory", lambda session: MEMORY_BYTES),
    ):
        yield


def engine_on_duckdb(directory: Path | None = None, clock: ManualClock | None = None) -> Engine:
    return Engine(NoSpark(), directory, clock=clock or ManualClock())  # type: ignore[arg-type]


def killed(engine: Engine, directory: Path) -> Engine:
    """The engine that goes on where another was killed."""
    engine._core.journal.close()
    engine._core.lock.release()
    return engine_on_duckdb(directory)
