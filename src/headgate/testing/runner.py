"""Runs test cases on Spark or by the reference evaluator, with the input split into epochs, and compares."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from headgate.errors import UserError
from headgate.sql import name
from headgate.testing.cases import FUNCTIONS, Case, Change, differs, sql_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a case; it passed if there is no complaint."""

    case: Case
    complaint: str = ""

    @property
    def passed(self) -> bool:
        """Whether the output was the expected one."""
        return not self.complaint


def epoch_ends(case: Case, epochs: str) -> list[int]:
    """The ends of the epochs: all input in one, an epoch for each arrival, or at random instants."""
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
    """The definitions of a case and its query, which is named `answer`, as CQL."""
    lines = [
        f"SET dialect = '{'stream' if case.dialect == 'stream' else 'cql'}'",
        f"SET range = '{case.range}'",
        f"SET empty_aggregate = '{case.empty_aggregate}'",
        f"SET time_unit = '{case.unit_seconds} seconds'",
    ]
    lines += [
        f"CREATE FUNCTION {function}({argument} DOUBLE) RETURN {body}"
        for function, (argument, body) in FUNCTIONS.items()
    ]
    for kind, schemas in (("STREAM", case.streams), ("RELATION", case.relations)):
        for stream, schema in schemas.items():
            orders = {column: f" {order}" for column, order in case.orders.get(stream, {}).items()}
            columns = ", ".join(
                f"{name(column)} {sql_type(type_)}{orders.get(column, '')}" for column, type_ in schema.items()
            )
            key = f" KEY ({', '.join(map(name, case.keys[stream]))})" if stream in case.keys else ""
            stamp = f" TIMESTAMP BY {name(case.timestamps[stream])}" if stream in case.timestamps else ""
            lines.append(f"CREATE {kind} {name(stream)} ({columns}){key}{stamp}")
    for view in case.views:
        columns = f" ({', '.join(map(name, view.columns))})" if view.columns else ""
        lines.append(f"CREATE VIEW {name(view.name)}{columns} AS {view.query.rstrip('; ')}")
    lines.append(f"CREATE QUERY answer AS {case.query.rstrip('; ')}")
    return ";\n".join(lines)


def on_spark(
    case: Case,
    epochs: str | Sequence[int],
    spark: SparkSession,
    partitions: int | None = None,
    heartbeats: str = "query",
) -> list[Change]:
    """Runs a case on Spark.

    `epochs` says how time is split into epochs, or where; `heartbeats` is the setting of that name.
    """
    from headgate.engine import Engine

    with Engine(spark, partitions=partitions) as engine:
        engine.execute(f"SET heartbeats = '{heartbeats}'")
        engine.execute(script(case))
        for stream in case.streams:
            rows = case.input.get(stream, [])
            engine.push(stream, [row if stream in case.timestamps else (ts, row) for ts, row, _ in rows])
        for relation in case.relations:
            engine.push(relation, case.input.get(relation, []))
        for until in epoch_ends(case, epochs) if isinstance(epochs, str) else epochs:
            engine.advance(until)
        return [(result.at, result.sign, tuple(result.row.values())) for result in engine.query("answer").results()]


def by_reference(case: Case) -> list[Change]:
    """Runs a case by the reference evaluator."""
    from headgate.testing.reference import evaluate

    return evaluate(case)[1]


def outcomes(cases: list[Case], engine: Literal["spark", "reference"], epochs: str) -> Iterator[Outcome]:
    """Runs the cases that have an expected output, one after the other."""
    spark = None
    if engine == "spark":
        from headgate.spark.session import started

        spark = started()
    for case in cases:
        try:
            epoch_ends(case, epochs)
            found = by_reference(case) if spark is None else on_spark(case, epochs, spark)
        except UserError as error:
            yield Outcome(case, error.render())
            continue
        difference = differs(case, found)
        yield Outcome(case, "" if difference is None else str(difference))
