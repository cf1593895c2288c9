"""Compiled programs run in DuckDB instead of Spark: the same SQL, transpiled, epoch after epoch. No JVM, no log, no clock."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import duckdb
import sqlglot

from headgate.catalog import Catalog, Column, Function, Relation, Stream, TimeDomain, View
from headgate.cql.binder import bind
from headgate.cql.dialect import parse
from headgate.delta.lower import lower
from headgate.delta.program import Input, Program
from headgate.testing.cases import FUNCTIONS, Case, Change, Row, sql_type


def compiled(case: Case) -> Program:
    catalog = Catalog()
    catalog.set("range", case.range)
    catalog.set("empty_aggregate", case.empty_aggregate)
    catalog.set("time_unit", f"{case.unit_seconds} seconds")
    for name, (parameter, body) in FUNCTIONS.items():
        catalog.add_function(Function(name, (parameter,), body))
    for name, schema in case.streams.items():
        columns = tuple(Column(column, sql_type(kind)) for column, kind in schema.items())
        catalog.add(Stream(name, columns, TimeDomain.INTEGER))
    catalog.set("dialect", "stream" if case.dialect == "stream" else "cql")
    for name, schema in case.relations.items():
        columns = tuple(Column(column, sql_type(kind)) for column, kind in schema.items())
        catalog.add(Relation(name, columns, TimeDomain.INTEGER))
    for view in case.views:
        catalog.add(View(view.name, bind(parse(view.query)[0], view.query, catalog, columns=view.columns).plan))
    return lower(bind(parse(case.query)[0], case.query, catalog).plan)


@cache
def transpiled(sql: str) -> str:
    return sqlglot.transpile(sql, read="spark", write="duckdb")[0]


class Duck:
    """Executes one program; `moves` says after which epochs the state is moved forward."""

    def __init__(self, case: Case, program: Program) -> None:
        self.case = case
        self.program = program
        self.database = duckdb.connect(":memory:")
        self.database.execute(
            "SET threads = 1; CREATE MACRO pmod(a, b) AS ((a % b) + b) % b; CREATE MACRO raise_error(said) AS error(said)"
        )
        self.started = False

    def run(self, cuts: Iterable[int], moves: Iterable[bool]) -> list[Change]:
        since = after = self.program.domain.origin - 1
        changes: list[Change] = []
        for until, move in zip(cuts, moves, strict=True):
            self.lay_inputs(since, until)
            parameters = {"since": since, "until": until}
            if not self.started:
                self.lay_synopses(parameters)
            output = self.rows(self.program.output(), {**parameters, "after": after})
            for row in output:
                *values, ts, count = row
                assert after < ts <= until, f"an epoch ({after}, {until}] put out something at {ts}"
                changes.append((ts, "+" if count > 0 else "-", tuple(values)))
            if move:
                self.move(parameters)
                since = until
            after = until
        return changes

    def rows(self, sql: str, parameters: dict[str, int]) -> list[Row]:
        text = transpiled(sql)
        used = {name: value for name, value in parameters.items() if f"${name}" in text}
        return self.database.execute(text, used).fetchall()

    def lay_inputs(self, since: int, until: int) -> None:
        for source in self.program.inputs:
            self.lay(source, *source.range(since, until))

    def lay(self, source: Input, low: int | None, high: int | None) -> None:
        schema = {**self.case.streams, **self.case.relations}[source.stream]
        columns = ", ".join(f'"{name}" {sql_type(kind)}' for name, kind in schema.items())
        self.database.execute(f"CREATE OR REPLACE TEMP TABLE {source.name} ({columns}, _t BIGINT, _s BIGINT, _n BIGINT)")
        rows = [
            (*row, ts, position, 1 if sign == "+" else -1)
            for position, (ts, row, sign) in enumerate(self.case.input.get(source.stream, []))
            if (low is None or ts > low) and (high is None or ts <= high)
        ]
        if rows:
            marks = ", ".join("?" for _ in rows[0])
            self.database.executemany(f"INSERT INTO {source.name} VALUES ({marks})", rows)

    def lay_synopses(self, parameters: dict[str, int]) -> None:
        for synopsis in self.program.synopses:
            self.create(synopsis.name, f"SELECT * FROM ({self.program.shape(synopsis)}) AS shape WHERE FALSE", parameters)
        self.started = True

    def move(self, parameters: dict[str, int]) -> None:
        for synopsis in self.program.synopses:
            self.create(f"next_{synopsis.name}", self.program.contents(synopsis), parameters)
        for synopsis in self.program.synopses:
            self.database.execute(f"DROP TABLE {synopsis.name}; ALTER TABLE next_{synopsis.name} RENAME TO {synopsis.name}")

    def create(self, name: str, sql: str, parameters: dict[str, int]) -> None:
        text = transpiled(sql)
        for parameter, value in parameters.items():  # DuckDB takes no parameters in DDL
            text = text.replace(f"${parameter}", str(value))
        self.database.execute(f"CREATE TEMP TABLE {name} AS {text}")
