"""The two laws, on random queries, inputs and cuts: what a program puts out is what CQL's definition says, however time is cut.

What only this file can catch: wrong rules that happen to agree on the hand-made cases. The reference recomputes everything at every
instant and shares nothing with the rules but the syntax; programs run in DuckDB, a smaller number of them on Spark.
"""

from __future__ import annotations

import random

import pytest
from duck import Duck, compiled
from generator import cases, cuttings
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from headgate.engine import Engine
from headgate.testing.cases import Case, Change, difference
from headgate.testing.reference import evaluate
from headgate.testing.runner import on_spark, script


def judged(case: Case, found: list[Change]) -> None:
    differs = difference(evaluate(case)[1], found, case.horizon)
    assert differs is None, f"{case.query}\n{differs}"


@settings(max_examples=200)
@given(cases(), cuttings())
def test_incremental_is_reference(case: Case, cutting: tuple[list[int], list[bool]]) -> None:
    judged(case, Duck(case, compiled(case)).run(*cutting))


@settings(max_examples=25)
@given(cases(depth=3), cuttings())
def test_incremental_is_reference_nested_deeper(case: Case, cutting: tuple[list[int], list[bool]]) -> None:
    judged(case, Duck(case, compiled(case)).run(*cutting))


@pytest.mark.spark
@settings(max_examples=12)
@given(case=cases(), seed=st.integers(0, 1000), partitions=st.sampled_from([None, 1, 4]))
def test_incremental_is_reference_on_spark(spark: SparkSession, case: Case, seed: int, partitions: int | None) -> None:
    judged(case, on_spark(case, f"random:{seed}", spark, partitions))


@pytest.mark.spark
@settings(max_examples=5)
@given(case=cases(depth=1), seed=st.integers(0, 1000))
def test_any_arrival_order_within_the_bound(spark: SparkSession, case: Case, seed: int) -> None:
    """Tuples come out of order by up to three ticks, ties in their order, and epochs follow the heartbeats."""
    chance = random.Random(seed)
    arrivals = sorted(
        ((ts + chance.randint(0, 3), ts, place, stream, row)
         for stream, entries in case.input.items() for place, (ts, row, _) in enumerate(entries)),
        key=lambda arrival: (arrival[0], arrival[1], arrival[2]),
    )  # fmt: skip
    with Engine(spark) as engine:
        engine.execute(script(case) + ";\n" + ";\n".join(f"DISORDER OF {stream} 3" for stream in case.streams))
        for position, (_, ts, _, stream, row) in enumerate(arrivals):
            assert engine.push(stream, [(ts, row)]) == 1
            if position % 4 == 3:
                engine.step()
        engine.advance(case.horizon)
        found = [(result.at, result.sign, tuple(result.row.values())) for result in engine.query("answer").results()]
        assert all(engine.counts(stream).get("late", 0) == 0 for stream in case.streams)
    judged(case, found)
