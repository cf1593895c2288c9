"""Joins by time and by value: by buckets, by distance, and of rows of one instant with the row of their key.

What only this file can catch: a distance in TIMESTAMP time, where it is written as an interval and counted in
microseconds; a program that goes on from logs where another keeps sides of a join; and SQL that Spark understands in
another way than DuckDB.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tools.duck import Duck, bound, compiled
from tools.random_queries import (
    HORIZON,
    KEYS,
    RELATIONS,
    STREAMS,
    cuttings,
    described,
    inputs,
    moment_joins,
    near_joins,
    threshold_joins,
)

from headgate import Engine, ManualClock
from headgate.delta.lower import Way, lower
from headgate.plan.rewrites.driver import rewritten
from headgate.testing.cases import Case, Change, difference
from headgate.testing.reference import evaluate
from headgate.testing.runner import on_spark

Cutting = tuple[list[int], list[bool]]


@st.composite
def join_cases(draw: st.DrawFn, most: int = 12) -> Case:
    query = draw(st.one_of(near_joins(), moment_joins(), threshold_joins()))
    bound_of = draw(st.sampled_from(["closed", "half-open"]))
    given = draw(inputs(most))
    return Case(
        "joins", query, STREAMS, RELATIONS, (), given, HORIZON, range=bound_of, empty_aggregate="row", keys=KEYS
    )


def judged(case: Case, found: list[Change], cutting: object) -> None:
    differs = difference(evaluate(case)[1], found, case.horizon)
    assert differs is None, f"{described(case, cutting)}\n{differs}"


@settings(max_examples=150, deadline=None)
@given(case=join_cases(), cutting=cuttings())
def test_joins_by_time_are_the_reference(case: Case, cutting: Cutting) -> None:
    judged(case, Duck(case, compiled(case)).run(*cutting), cutting)


@settings(max_examples=40, deadline=None)
@given(case=join_cases(), cutting=cuttings())
def test_joins_from_the_logs_of_earlier_versions_are_the_reference(case: Case, cutting: Cutting) -> None:
    plan = rewritten(bound(case)).plan
    programs = [lower(plan, tiny, way=Way(by_distance=False)) for tiny in (False, True)]
    judged(case, Duck(case, programs).run(*cutting), cutting)


@pytest.mark.spark
@settings(max_examples=6, deadline=None)
@given(case=join_cases(most=8), cutting=cuttings(most=2))
def test_joins_by_time_are_the_reference_on_spark(spark: SparkSession, case: Case, cutting: Cutting) -> None:
    judged(case, on_spark(case, cutting[0], spark, 2), cutting[0])


NEAR = {
    "ABS(UNIX_MICROS(s.at) - UNIX_MICROS(t.at)) <= 2000000": (-2, 2),
    "t.at BETWEEN s.at AND s.at + INTERVAL 3 SECONDS": (-3, 0),
    "s.at - t.at < INTERVAL 2 SECONDS AND s.at >= t.at - INTERVAL 1 SECOND": (-1, 1),
}
"""Conditions in TIMESTAMP time, and between which numbers of seconds the difference of s and t lies by them."""


@pytest.mark.spark
def test_distances_of_timestamps(spark: SparkSession) -> None:
    """Some epochs give the pairs that a double loop finds, and keep only rows that can still find partners."""
    stamps = {"s": [0, 1, 1, 4, 7, 9, 12], "t": [0, 2, 3, 4, 6, 10, 11, 15]}
    noon = datetime(2026, 11, 1, 12, tzinfo=UTC)
    with Engine(spark, clock=ManualClock(), partitions=2) as engine:
        for stream in stamps:
            engine.execute(f"CREATE STREAM {stream} (k INT, n INT, at TIMESTAMP) TIMESTAMP BY at")
        for number, condition in enumerate(NEAR):
            engine.execute(
                f"CREATE QUERY q{number} AS SELECT ISTREAM(s.n AS a, t.n AS b) FROM s, t WHERE s.k = t.k AND {condition}"
            )
        for stream, seconds in stamps.items():
            engine.push(stream, [(1, n, noon + timedelta(seconds=at)) for n, at in enumerate(seconds)])
        for second in (3, 9, 20):
            engine.advance(noon + timedelta(seconds=second))
            for query in engine.queries():
                query.answer.move_state()
        for number, (least, most) in enumerate(NEAR.values()):
            expected = sorted(
                (a, b) for a, x in enumerate(stamps["s"]) for b, y in enumerate(stamps["t"]) if least <= x - y <= most
            )
            query = engine.query(f"q{number}")
            assert sorted(tuple(result.row.values()) for result in query.results()) == expected
            assert query.answer.synopses.rows == 0
