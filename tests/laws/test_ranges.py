"""Windows and sums over all rows, cut into ranges of their order: the laws, and that several tasks share the work.

What only this file can catch: a row that is displaced by one of another range, or of a range further on, and a row
that is lost, or there twice, where ranges meet. The programs run by themselves here, not in turns with others, so that
every epoch is cut.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tools.duck import NARROW, WIDE, Duck, bound
from tools.random_queries import HORIZON, RELATIONS, STREAMS, cuttings, described, inputs

from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.delta.lower import lower
from headgate.delta.program import Edge, Program
from headgate.delta.ranges import Ranges
from headgate.plan.rewrites.driver import rewritten
from headgate.spark.session import own_session
from headgate.sql import Sql
from headgate.testing.cases import Case, Change, difference
from headgate.testing.reference import evaluate
from headgate.ticks import TimeDomain

Cutting = tuple[list[int], list[bool]]

SECOND = 1_000_000
CUTS = [NARROW, WIDE, Ranges(pieces=3, blocks=1000, own=0), Ranges(pieces=30, blocks=2, own=0)]


@st.composite
def cut_cases(draw: st.DrawFn) -> Case:
    """Windows over the last rows, or near the largest value, of a stream or of what is selected from it, and sums."""
    name, last = draw(st.sampled_from([("S", "B"), ("T", "C")]))
    count = draw(st.integers(1, 6))
    window = draw(st.sampled_from([f"[Rows {count}]", f"[Rows {count} Slide 3 Seconds]", f"[Range {count} On {last}]"]))
    table = draw(
        st.sampled_from([f"{name} {window} x", f"(Istream(Select A, {last} From {name} Where A > 0)) {window} x"])
    )
    shown = draw(st.sampled_from([f"x.A, x.{last}", f"x.{last}", f"Count(*) As n, Sum(x.{last}) As s"]))
    query = f"Select {shown} From {table}"
    if draw(st.booleans()):
        query = draw(aggregates(name, last))
    query = draw(st.sampled_from([query, f"Istream({query})", f"Dstream({query})"]))
    bound_of = draw(st.sampled_from(["closed", "half-open"]))
    return Case(
        "ranges", query, STREAMS, RELATIONS, (), draw(inputs(most=16)), HORIZON, range=bound_of, empty_aggregate="row"
    )


@st.composite
def aggregates(draw: st.DrawFn, name: str, last: str) -> str:
    """Aggregates over everything, alone or below a selection, another aggregate or a join."""
    calls = draw(st.lists(st.sampled_from(["Count(*)", "Sum({})", "Avg({} / 4)", "Max({})"]), min_size=1, max_size=3))
    shown = ", ".join(f"{call.format(f'x.{last}')} As v{number}" for number, call in enumerate(calls))
    window = draw(st.sampled_from(["[Range 3]", "[Range Unbounded]", "[Now]", "[Rows 4]", f"[Range 2 On {last}]"]))
    whole = f"Select {shown} From {name} {window} x"
    return draw(
        st.sampled_from(
            [
                whole,
                f"{whole} Having Count(*) > 1",
                f"Select v0 + 1 As w From ({whole}) y",
                f"Select Sum(v0) As w, Count(*) As n From ({whole}) y",
                f"Select y.v0, z.A From ({whole}) y, T [Range 2] z",
                f"Select x.{last}, Count(Distinct x.A) As d From {name} {window} x Group By x.{last}",
                f"Select Count(Distinct x.A) As d, {shown} From {name} {window} x",
            ]
        )
    )


def cut(case: Case, ranges: Ranges, time: TimeDomain = TimeDomain.INTEGER) -> Program:
    made = lower(rewritten(bound(case, time)).plan)
    return made.by_ranges(ranges) if made.by_ranges else made


def judged(case: Case, found: list[Change], cutting: object) -> None:
    differs = difference(evaluate(case)[1], found, case.horizon)
    assert differs is None, f"{described(case, cutting)}\n{differs}"


@settings(max_examples=120)
@given(cut_cases(), cuttings(), st.sampled_from(CUTS))
def test_by_ranges(case: Case, cutting: Cutting, ranges: Ranges) -> None:
    judged(case, Duck(case, [cut(case, ranges)]).run(*cutting), (cutting, ranges))


@settings(max_examples=50)
@given(cut_cases(), cuttings(), st.sampled_from(CUTS), st.sampled_from([0, -HORIZON, -7]))
def test_in_microseconds(case: Case, cutting: Cutting, ranges: Ranges, shift: int) -> None:
    """Instants before 1970 are negative, and they lie far apart. The plain program is judged elsewhere."""
    shift -= shift % 3  # a multiple of the slide
    moved = {
        stream: [((ts + shift) * SECOND, row, sign) for ts, row, sign in rows] for stream, rows in case.input.items()
    }
    case, (ends, moves) = replace(case, input=moved), cutting
    plain = lower(rewritten(bound(case, TimeDomain.TIMESTAMP)).plan)
    expected = Duck(case, [plain]).run([(HORIZON + shift) * SECOND], [False])
    made = cut(case, ranges, TimeDomain.TIMESTAMP)
    found = Duck(case, [made]).run([(end + shift) * SECOND for end in ends], moves)
    assert sorted(map(str, found)) == sorted(map(str, expected)), described(case, (cutting, ranges))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("query", "step", "column"),
    [
        ("SELECT DSTREAM(k, v) FROM s [ROWS 50]", "displaced_1", "_x"),
        ("SELECT DSTREAM(k, v) FROM s [RANGE 300 ON k]", "displaced_1", "_x"),
        ("SELECT DSTREAM(k, v) FROM s [RANGE 2.5 ON v]", "displaced_1", "_x"),
        ("SELECT ISTREAM(COUNT(*) AS k, AVG(k) AS v) FROM s [RANGE 100]", "swept_1", "_rows"),
    ],
)
def test_several_tasks_give_the_answers_of_one(spark: SparkSession, query: str, step: str, column: str) -> None:
    """Bursts, ties in time, values that are null, infinite or not a number; the ranges are those of large epochs."""
    session = own_session(spark, 4)
    definitions = define(f"CREATE STREAM s (k INT, v DOUBLE); {query}", Catalog())
    plain = lower(definitions[-1].plan)  # type: ignore[union-attr]
    assert plain.by_ranges is not None
    odd = "CASE id % 997 WHEN 1 THEN NULL WHEN 3 THEN DOUBLE('-Infinity') ELSE SQRT(id) END"
    odd = f"CASE WHEN id = 19000 THEN DOUBLE('NaN') ELSE {odd} END"  # from there on, all others are out of reach
    at = "CASE WHEN id < 2000 THEN id DIV 3 ELSE 50000 + id DIV 2 END"
    rows = session.range(20_000).selectExpr("CAST(id AS INT) AS k", f"{odd} AS v", f"{at} AS _t", "id AS _s")
    for source in plain.inputs:
        rows.where("TRUE" if source.low == Edge("since") else "FALSE").createOrReplaceTempView(source.name)
    epoch = {"since": -1, "until": 1_000_000, "after": -1}
    for synopsis in plain.synopses:
        session.sql(plain.shape(synopsis), args=epoch).where("FALSE").createOrReplaceTempView(synopsis.name)
    answers, tasks = [], []
    for program in (plain, plain.by_ranges(Ranges())):
        walked = f"{program.steps_for(step)} SELECT SPARK_PARTITION_ID() AS task, {column} FROM {step}"
        tasks.append(len({row.task for row in session.sql(walked, args=epoch).collect()}))
        found = session.sql(program.output(Sql("k, CAST(v AS STRING) AS v, _t, _n")), args=epoch)
        answers.append(sorted(map(str, found.collect())))
    assert len(answers[0]) > 5_000
    assert answers[0] == answers[1]
    assert tasks[0] == 1
    assert tasks[1] > 1


@pytest.mark.spark
def test_one_exchange_serves_the_sums_of_ranges_and_the_walks_through_them(spark: SparkSession) -> None:
    session = own_session(spark, 4)
    definitions = define("CREATE STREAM s (k INT); SELECT ISTREAM(SUM(k) AS total) FROM s", Catalog())
    plain = lower(definitions[-1].plan)  # type: ignore[union-attr]
    assert plain.by_ranges is not None
    program = plain.by_ranges(Ranges())
    (source,), (sums,), epoch = program.inputs, program.synopses, {"since": -1, "until": 9, "after": -1}
    rows = session.range(10).selectExpr("CAST(id AS INT) AS k", "id AS _t", "id AS _s")
    rows.createOrReplaceTempView(source.name)
    session.sql(program.shape(sums), args=epoch).where("FALSE").createOrReplaceTempView(sums.name)
    executed = session.sql(program.output(), args=epoch)._jdf.queryExecution().executedPlan().toString()
    reused = executed.count("ReusedExchange")  # which names the exchange that it stands for
    assert reused >= 1
    assert executed.count("Exchange hashpartitioning(_range") - reused == 1
    assert executed.count("Sort [_range") == 2  # the rows, and the few sums of ranges; not once more to look back
