"""The two laws, on random queries, inputs and cuts: output is what CQL's definition says, however time is cut.

What only this file can catch: wrong rules that happen to agree on the hand-made cases. The reference recomputes
everything at every instant and shares nothing with the rules but the syntax; programs run in DuckDB, a smaller number
of them on Spark.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tools.duck import Duck, Fragments, bound, compiled
from tools.query_features import EXPECTED, features
from tools.random_queries import cases, cuttings, described

from headgate.engine import Engine
from headgate.plan.fragments import all_parts, split
from headgate.plan.rewrites.driver import rewritten
from headgate.testing.cases import Case, Change, difference
from headgate.testing.reference import evaluate
from headgate.testing.runner import on_spark, script

Cutting = tuple[list[int], list[bool]]


def judged(case: Case, found: list[Change], cutting: object) -> None:
    differs = difference(evaluate(case)[1], found, case.horizon)
    assert differs is None, f"{described(case, cutting)}\n{differs}"


@settings(max_examples=600)
@given(cases(depth=0), cuttings())
def test_incremental_is_reference(case: Case, cutting: Cutting) -> None:
    judged(case, Duck(case, compiled(case)).run(*cutting), cutting)


@settings(max_examples=250)
@given(cases(depth=1), cuttings())
def test_incremental_is_reference_nested(case: Case, cutting: Cutting) -> None:
    judged(case, Duck(case, compiled(case)).run(*cutting), cutting)


@settings(max_examples=80)
@given(cases(depth=2), cuttings())
def test_incremental_is_reference_nested_deeper(case: Case, cutting: Cutting) -> None:
    judged(case, Duck(case, compiled(case)).run(*cutting), cutting)


@settings(max_examples=220)
@given(cases(depth=1), st.lists(cuttings(), min_size=1, max_size=3))
def test_in_fragments_each_with_its_own_epochs(case: Case, cuttings: list[Cutting]) -> None:
    judged(case, Fragments(case, all_parts(split(rewritten(bound(case)).plan, "operator"))).run(cuttings), cuttings)


def test_every_operator_is_drawn() -> None:
    """The generator must not grow narrower: every kind of node, window and form occurs among the queries it draws."""
    seen: set[str] = set()
    queries: set[str] = set()

    @settings(max_examples=100, phases=[Phase.generate], database=None)
    @given(cases(depth=2, most=1))
    def collect(case: Case) -> None:
        if case.query not in queries:
            queries.add(case.query)
            seen.update(features(case))

    for number in range(30):
        if not seen >= EXPECTED:
            seed(number)(collect)()
    assert seen >= EXPECTED, f"never drawn: {sorted(EXPECTED - seen)}"


@pytest.mark.spark
@settings(max_examples=24)
@given(case=cases(depth=0, most=6), cutting=cuttings(most=2), partitions=st.sampled_from([None, 1, 4]))
def test_incremental_is_reference_on_spark(
    spark: SparkSession, case: Case, cutting: Cutting, partitions: int | None
) -> None:
    judged(case, on_spark(case, cutting[0], spark, partitions), cutting[0])


@pytest.mark.spark
@settings(max_examples=2)
@given(case=cases(depth=1, most=6), cutting=cuttings(most=2))
def test_incremental_is_reference_on_spark_nested(spark: SparkSession, case: Case, cutting: Cutting) -> None:
    judged(case, on_spark(case, cutting[0], spark), cutting[0])


@pytest.mark.spark
@settings(max_examples=3)
@given(case=cases(depth=1, most=6), cutting=cuttings(most=2))
def test_in_fragments_on_spark(spark: SparkSession, case: Case, cutting: Cutting) -> None:
    judged(case, on_spark(case, cutting[0], spark, heartbeats="operator"), cutting[0])


@pytest.mark.spark
@settings(max_examples=3)
@given(case=cases(depth=0), chance=st.integers(0, 1000))
def test_any_arrival_order_within_the_bound(spark: SparkSession, case: Case, chance: int) -> None:
    """Tuples come out of order by up to three ticks, ties in their order, and epochs follow the heartbeats."""
    delay = random.Random(chance)
    arrivals = sorted(
        (
            (ts + delay.randint(0, 3), ts, place, stream, row)
            for stream in case.streams
            for place, (ts, row, _) in enumerate(case.input[stream])
        ),
        key=lambda arrival: (arrival[0], arrival[1], arrival[2]),
    )
    with Engine(spark) as engine:
        engine.execute(script(case) + ";\n" + ";\n".join(f"DISORDER OF {stream} 3" for stream in case.streams))
        for relation in case.relations:
            engine.push(relation, case.input[relation])
        for position, (_, ts, _, stream, row) in enumerate(arrivals):
            assert engine.push(stream, [(ts, row)]) == 1
            if position % 4 == 3:
                engine.step()
        engine.advance(case.horizon)
        found = [(result.at, result.sign, tuple(result.row.values())) for result in engine.query("answer").results()]
        assert all(engine.counts(stream).get("late", 0) == 0 for stream in case.streams)
    judged(case, found, chance)
