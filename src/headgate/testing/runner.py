"""Runs cases on Spark or by the reference, with the input cut into epochs as one likes, and compares."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from headgate.catalog import Catalog, Column, Query, Stream, TimeDomain, View
from headgate.cql.definitions import define
from headgate.cql.dialect import parse
from headgate.cql.functions import AGGREGATES
from headgate.delta.lower import lower
from headgate.delta.sql import name
from headgate.errors import UserError
from headgate.testing.cases import FUNCTIONS, Case, Change, difference, sql_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case: passed if there is no complaint."""

    case: Case
    complaint: str = ""

    @property
    def passed(self) -> bool:
        return not self.complaint


def cuts(case: Case, epochs: str) -> list[int]:
    """The ends of the epochs: all in one, one at each instant at which something arrives, or at random ones."""
    if epochs == "one":
        return [case.horizon]
    if epochs == "each":
        return case.instants()
    kind, _, seed = epochs.partition(":")
    if kind != "random" or not seed.isdigit():
        raise UserError("bad-option", f'epochs "{epochs}" are neither one, each nor random:SEED')
    chance = random.Random(f"{seed} {case.id}")
    count = chance.randint(1, max(1, min(8, case.horizon)))
    return sorted({*chance.sample(range(case.horizon + 1), count), case.horizon})


def script(case: Case) -> str:
    """The case's definitions and its query, named `answer`, as CQL."""
    lines = [
        f"SET dialect = '{'stream' if case.dialect == 'stream' else 'cql'}'",
        f"SET range = '{case.range}'",
        f"SET empty_aggregate = '{case.empty_aggregate}'",
        f"SET time_unit = '{case.unit_seconds} seconds'",
    ]
    lines += [f"CREATE FUNCTION {function}({argument} DOUBLE) RETURN {body}" for function, (argument, body) in FUNCTIONS.items()]
    for kind, schemas in (("STREAM", case.streams), ("RELATION", case.relations)):
        for stream, schema in schemas.items():
            columns = ", ".join(f"{name(column)} {sql_type(type_)}" for column, type_ in schema.items())
            lines.append(f"CREATE {kind} {name(stream)} ({columns})")
    for view in case.views:
        columns = f" ({', '.join(map(name, view.columns))})" if view.columns else ""
        lines.append(f"CREATE VIEW {name(view.name)}{columns} AS {view.query.rstrip('; ')}")
    lines.append(f"CREATE QUERY answer AS {case.query.rstrip('; ')}")
    return ";\n".join(lines)


def explained(case: Case) -> list[str]:
    """Bind and compile the case without running it; returns what had to be assumed, because the case does not say it.

    Published texts name streams, columns and aggregates that they do not define: each is taken as it is used.
    """
    text = case.query
    for schema in (*case.streams.values(), *case.relations.values()):
        for column in schema:
            if not column.isidentifier():  # such as x-pos
                text = re.sub(rf"(?<![\w`]){re.escape(column)}(?![\w`])", f"`{column}`", text)
    catalog = Catalog()
    definitions = script(replace(case, query="Select 1", views=())).split(";\n")[:-1]
    define(";\n".join(definitions), catalog)
    tree = parse(text)[-1]
    assumed = _assume(tree, catalog)
    for view in case.views:
        define(f"CREATE VIEW {name(view.name)} AS {view.query.rstrip('; ')}", catalog)
    (definition,) = define(text, catalog)
    assert isinstance(definition, Query | View)
    lower(definition.plan)
    return assumed


def _assume(tree: exp.Expression, catalog: Catalog) -> list[str]:
    """Define what a text reads without having defined it."""
    tables = {table.name: table.alias or table.name for table in tree.find_all(exp.Table)}
    missing = [table for table in tables if not catalog.has_source(table)]
    assumed = []
    for found in tree.find_all(exp.In):  # (a, b) NOT IN (Rel)
        if (
            isinstance(found.this, exp.Tuple)
            and len(found.expressions) == 1
            and not catalog.has_source(found.expressions[0].name)
        ):
            relation, width = found.expressions[0].name, len(found.this.expressions)
            columns_there = tuple(Column(f"c{number + 1}", "DOUBLE") for number in range(width))
            catalog.add(Stream(relation, columns_there, TimeDomain.INTEGER))
            assumed.append(f"a stream {relation} of {width} columns")
    known = {column.name.lower() for stream in catalog.streams.values() for column in stream.columns if stream.name in tables}
    made = {alias.alias.lower() for alias in tree.find_all(exp.Alias)} | {"timestamp", "element_time"}
    made -= {column.name.lower() for alias in tree.find_all(exp.Alias) for column in alias.this.find_all(exp.Column)}
    columns: dict[str, dict[str, None]] = {table: {} for table in missing}
    for column in tree.find_all(exp.Column):
        if isinstance(column.this, exp.Star) or catalog.has_source(column.name):
            continue
        owners = [table for table in missing if column.table.lower() in (table.lower(), tables[table].lower())]
        if not column.table and column.name.lower() not in known | made:
            owners = missing[:1]
            if not missing and next(iter(tables)).lower() in catalog.streams:
                stream = catalog.stream(next(iter(tables)))
                widened = replace(stream, columns=(*stream.columns, Column(column.name, "DOUBLE")))
                catalog.streams[stream.name.lower()] = widened
                known.add(column.name.lower())
                assumed.append(f"a column {column.name} of {stream.name}")
        for owner in owners:
            columns[owner][column.name] = None
    for table, names_read in columns.items():
        wanted = {read.lower(): read for read in names_read or ["value"]}
        catalog.add(Stream(table, tuple(Column(read, "DOUBLE") for read in wanted.values()), TimeDomain.INTEGER))
        assumed.append(f"a stream {table} ({', '.join(wanted.values())})")
    for select in tree.find_all(exp.Select):
        if select.args.get("group"):
            calls = {call.name for item in select.expressions for call in item.find_all(exp.Anonymous)}
            outside = sorted(call for call in calls if call.lower() not in catalog.functions and call.lower() not in AGGREGATES)
            catalog.aggregates |= {call.lower() for call in outside}
            assumed += [f"an aggregate {call}" for call in outside]
    return assumed


def on_spark(case: Case, epochs: str, spark: SparkSession, partitions: int | None = None) -> list[Change]:
    from headgate.engine import Engine

    with Engine(spark, partitions=partitions) as engine:
        engine.execute(script(case))
        for stream in case.streams:
            engine.push(stream, [(ts, row) for ts, row, _ in case.input.get(stream, [])])
        for relation in case.relations:
            engine.push(relation, case.input.get(relation, []))
        for until in cuts(case, epochs):
            engine.advance(until)
        return [(result.at, result.sign, tuple(result.row.values())) for result in engine.query("answer").results()]


def by_reference(case: Case) -> list[Change]:
    from headgate.testing.reference import evaluate

    return evaluate(case)[1]


def outcomes(cases: list[Case], engine: Literal["spark", "reference"], epochs: str) -> Iterator[Outcome]:
    """Run the cases that have an expected output, one after the other."""
    spark = None
    if engine == "spark":
        from headgate.runtime.session import started

        spark = started()
    for case in cases:
        try:
            cuts(case, epochs)
            found = by_reference(case) if spark is None else on_spark(case, epochs, spark)
        except UserError as error:
            yield Outcome(case, error.render())
            continue
        assert case.expected is not None
        differs = difference(case.expected, found, case.horizon)
        yield Outcome(case, "" if differs is None else str(differs))
