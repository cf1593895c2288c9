"""MIN and MAX over moving windows, of which only the rows that can still be the answer are kept.

What only this file can catch: a row that is let go although it is the answer again when another one leaves (ties, nulls,
FILTER, two calls with leaders of their own), and programs for directories of earlier versions, which keep none.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tools.duck import Duck, bound, compiled
from tools.random_queries import HORIZON, KEYS, RELATIONS, STREAMS, cuttings, described, inputs

from headgate import Engine, ManualClock, compile
from headgate.delta.lower import Way, lower
from headgate.delta.program import Program
from headgate.plan.rewrites.driver import rewritten
from headgate.testing.cases import Case, Change, difference
from headgate.testing.reference import evaluate
from headgate.testing.runner import on_spark

Cutting = tuple[list[int], list[bool]]

TABLES = (
    ("S [Range {n}] x", "B"),
    ("T [Range {n}] x", "C"),
    ("(Select A, B From S [Range {n}] Where B > 1) x", "B"),
    ("(Select A, B From S [Range {n}] Union All Select A, C From T [Range {n}]) x", "B"),
    ("(Istream(Select A, B From S Where A > 0)) [Range {n}] x", "B"),
    ("(Istream(Select A, Count(*) As B From T [Range 2] Group By A)) [Range {n}] x", "B"),
)
CALLS = ("Max({0})", "Min({0})", "Max({0}) Filter (Where x.A = 1)", "Min({0} * {0} - 3 * {0})", "Max(x.A)")
BESIDE = ("Count(*)", "Sum({0})", "Count(Distinct {0})")


@st.composite
def leader_cases(draw: st.DrawFn) -> Case:
    table, last = draw(st.sampled_from(TABLES))
    table, last = table.format(n=draw(st.integers(2, 6))), f"x.{last}"
    calls = draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=3))
    calls += draw(st.lists(st.sampled_from(BESIDE), max_size=1))
    shown = ", ".join(f"{call.format(last)} As v{number}" for number, call in enumerate(calls))
    having = draw(st.sampled_from(("", "", f" Having Max({last}) > 2")))
    key, by = draw(st.sampled_from((("x.A As k, ", f" Group By x.A{having}"), ("1 As k, ", ""))))
    one = f"Select {key}{shown} From {table}{by}"
    query = draw(
        st.sampled_from(
            (
                one,
                f"Istream({one})",
                f"Dstream({one})",
                f"Select y.A, p.v0 From S [Range 2] y, ({one}) p Where p.k = y.A",
                f"Select Count(*) As n, Max(p.v0) As m From ({one}) p",
            )
        )
    )
    way = draw(st.sampled_from(("closed", "half-open")))
    given = draw(inputs(14))
    return Case("leaders", query, STREAMS, RELATIONS, (), given, HORIZON, range=way, empty_aggregate="row", keys=KEYS)


def judged(case: Case, found: list[Change], cutting: object) -> None:
    differs = difference(evaluate(case)[1], found, case.horizon)
    assert differs is None, f"{described(case, cutting)}\n{differs}"


def keeps_leaders(program: Program) -> bool:
    return any(synopsis.name.startswith("leaders_") for synopsis in program.synopses)


@settings(max_examples=150, deadline=None)
@given(case=leader_cases(), cutting=cuttings())
def test_by_leaders(case: Case, cutting: Cutting) -> None:
    made = compiled(case)
    assert all(map(keeps_leaders, made))
    judged(case, Duck(case, made).run(*cutting), cutting)


@settings(max_examples=40, deadline=None)
@given(case=leader_cases(), cutting=cuttings())
def test_by_windows_that_are_read_again(case: Case, cutting: Cutting) -> None:
    """As for directories of earlier versions."""
    plan = rewritten(bound(case)).plan
    programs = [lower(plan, tiny, way=Way(by_leaders=False)) for tiny in (False, True)]
    assert not any(map(keeps_leaders, programs))
    judged(case, Duck(case, programs).run(*cutting), cutting)


@pytest.mark.spark
@settings(max_examples=6, deadline=None)
@given(case=leader_cases(), cutting=cuttings(most=2))
def test_by_leaders_on_spark(spark: SparkSession, case: Case, cutting: Cutting) -> None:
    judged(case, on_spark(case, cutting[0], spark, 2), cutting[0])


@pytest.mark.spark
def test_few_rows_are_kept(spark: SparkSession) -> None:
    """Of rising values only the last one leads, of falling ones all; equal ones are kept once."""
    given: dict[str, tuple[list[int | None], int]] = {
        "rising": ([1, 2, 3, 4, 5, 6], 1),
        "falling": ([6, 5, 4, 3, 2, 1], 6),
        "equal": ([3, 3, 3, 3, 3, 3], 1),
        "nothing": ([None, None, None, None, None, None], 1),
        "mixed": ([1, 6, 2, 5, None, 3], 3),
    }
    with Engine(spark, clock=ManualClock(), partitions=2) as engine:
        engine.execute("SET families = 'off'")
        for name, (values, _) in given.items():
            engine.execute(
                f"CREATE STREAM {name} (v INT); CREATE QUERY q{name} AS SELECT MAX(v) FROM {name} [RANGE 20]"
            )
            engine.push(name, [(at, (value,)) for at, value in enumerate(values)])
        engine.advance(10)
        for name, (_, expected) in given.items():
            fragment = engine.query(f"q{name}").answer
            fragment.move_state()
            assert fragment.synopses.rows == expected, name


@pytest.mark.spark
def test_a_directory_of_an_earlier_version_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions kept nothing of such windows: they read them again."""
    script = "CREATE STREAM s (v INT); CREATE QUERY q AS SELECT MAX(v) AS m FROM s [RANGE 9]"
    with monkeypatch.context() as patched:
        patched.setattr(compile, "way_of", lambda query: Way(by_leaders=False))
        with Engine(spark, tmp_path, clock=ManualClock()) as engine:
            engine.execute(script)
            engine.push("s", [(1, (5,)), (3, (2,))])
            engine.advance(4)
    with Engine(spark, tmp_path, clock=ManualClock()) as engine:
        assert not engine.query("q").answer.program.synopses
        engine.push("s", [(6, (3,))])
        engine.advance(20)
        assert [str(result) for result in engine.query("q").results()][-4:] == [
            "11 - m=5",
            "11 + m=3",
            "16 - m=3",
            "16 + m=None",
        ]
