"""A real engine whose epochs run in DuckDB instead of Spark: logs, heartbeats, journal and loop are its own.

The state of a query is never moved: each epoch begins with empty synopses, and reads its logs from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
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
from headgate.log.tail import TAIL
from headgate.plan.nodes import Node
from headgate.spark.in_memory import fitted
from tools.duck import Duck, shared, transpiled
from tools.no_spark import NoSpark

MEMORY_BYTES = 2**30

_SCHEMAS: dict[tuple[Node, str | None], kinds.StructType] = {}
"""The columns of results, by plan and by what reads them: some tests register one query many times."""

_SYNOPSES: dict[tuple[str, ...], str] = {}
"""The columns of synopses, by the steps that they follow from and by what these read."""

_EPOCHS: dict[tuple[object, ...], pa.Table] = {}
"""The results of epochs, by statement, span and all rows that are read: queries that differ in their level alone have
many epochs in common.
"""


class OneEpoch(Duck):
    """The results of one epoch, from slices of logs."""

    def __init__(
        self, program: Program, slices: Mapping[str, Sequence[Slice]], schemas: Mapping[str, kinds.StructType]
    ) -> None:
        self.slices = slices
        self.schemas = schemas
        super().__init__(None, [program])  # type: ignore[arg-type]

    def lay(self, source: Input, low: int | None, high: int | None) -> None:
        self.database.register(source.name, self.given[source.name])

    @cached_property
    def given(self) -> dict[str, pa.Table]:
        """The rows of each input."""
        return {source.name: self._rows(source) for source in self.program.inputs}

    def _rows(self, source: Input) -> pa.Table:
        schema = to_arrow_schema(self.schemas[source.stream], timezone="UTC")
        tables = [schema.empty_table()]
        for one in self.slices.get(source.name, ()):
            rows = [fitted(one.in_time(TAIL.table(chunk)), schema) for chunk in one.chunks]
            tables += [self._seen(table, one.seen) for table in rows]
        return pa.concat_tables(tables)

    def _seen(self, rows: pa.Table, condition: str) -> pa.Table:
        if not condition:
            return rows
        self.database.register("all_of_them", rows)
        return self.database.sql(transpiled(f"SELECT * FROM all_of_them WHERE {condition}")).to_arrow_table()

    def lay_synopses(self, since: int, until: int) -> None:
        """Create the synopses, empty. Their columns are found out once."""
        for synopsis in self.program.synopses:
            steps = self.program.needed(synopsis.shape)
            key = (
                *(step.sql for name, step in self.program.steps.items() if name in steps),
                *(f"{one.name} {self.schemas[one.stream].simpleString()}" for one in self.program.inputs),
            )
            if key not in _SYNOPSES:
                self.compute(synopsis.shape, since, until)
                described = self.database.sql(f"DESCRIBE FROM {synopsis.shape}").fetchall()
                _SYNOPSES[key] = ", ".join(f'"{name}" {kind}' for name, kind, *_ in described)
            self.database.execute(f"CREATE TEMP TABLE {synopsis.name} ({_SYNOPSES[key]})")

    def results(self, span: Span) -> pa.Table:
        """The results of an epoch that no query has had before, or those that one has had."""
        steps = (step.sql for step in self.program.steps.values())
        rows = (f"{name} {table.schema} {table.to_pylist()}" for name, table in self.given.items())
        key = (result_columns(self.program), *steps, *rows, span)
        if key not in _EPOCHS:
            _EPOCHS[key] = self._results(span)
        self.database.close()
        return _EPOCHS[key]

    def _results(self, span: Span) -> pa.Table:
        self.lay_inputs(span.since, span.until)
        self.lay_synopses(span.since, span.until)
        self.tables = self.computed | {self.program.result}
        self.compute(self.program.result, span.since, span.until)
        columns = transpiled(f"SELECT {result_columns(self.program)} FROM {self.program.result}")
        return self.database.sql(f"{columns} WHERE _t > {span.after}").to_arrow_table()


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
    _SYNOPSES.clear()
    _EPOCHS.clear()
    with (
        patch.object(Fragment, "analyse", _analyse),
        patch.object(PreparedEpoch, "run", _run),
        patch.object(Fragment, "should_move_state", lambda fragment: False),
        patch("headgate.schedule.loop.fits_together", lambda epoch: False),
        patch("headgate.schedule.early.fits_together", lambda epoch: False),
        patch("headgate.execute.workspace.own_session", lambda session, partitions=None: session),
        patch("headgate.execute.workspace.parallelism", lambda session: 1),
        patch("headgate.execute.workspace.task_memory", lambda session: MEMORY_BYTES),
    ):
        yield


def engine_on_duckdb(directory: Path | None = None, clock: ManualClock | None = None, **options: Any) -> Engine:
    return Engine(NoSpark(), directory, clock=clock or ManualClock(), **options)  # type: ignore[arg-type]


def killed(engine: Engine, directory: Path) -> Engine:
    """The engine that goes on where another was killed."""
    engine._core.journal.close()
    engine._core.lock.release()
    return engine_on_duckdb(directory)
