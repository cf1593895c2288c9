"""Plans of small statements that are kept: answers are those of statements that are planned each time."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from headgate import Engine
from headgate.execute import fragment as fragments
from headgate.execute import kept, programs
from headgate.execute.statement import Statement
from headgate.spark import kept_plans
from headgate.spark.kept_plans import FilledPlan, Planner

NEVER = 10**9

COMPUTED_FIRST = "SELECT k, MIN(v) AS low, MAX(v) AS high FROM s [ROWS 5] WHERE v > 0 GROUP BY k"
"""Its statement is so long that a step of it is computed first."""

QUERIES = (
    "SELECT ISTREAM k, v FROM s [NOW] WHERE v > 2",
    "SELECT k, COUNT(*) AS n, AVG(v) AS m FROM s [RANGE {unit} * 4] GROUP BY k",
    "SELECT ISTREAM MAX(v) AS m, COUNT(*) AS n FROM s [ROWS 5]",
    "SELECT DISTINCT k FROM s [RANGE {unit} * 3]",
    "SELECT s.k, s.v, r.w FROM s [RANGE {unit} * 3], r [RANGE {unit} * 5] WHERE s.k = r.k",
    "SELECT s.v, b.v AS other, r.w FROM s [RANGE {unit} * 3], s [RANGE {unit} * 2] b, r [RANGE {unit} * 5] "
    "WHERE s.k = b.k AND b.k = r.k",
    "SELECT DSTREAM k, SUM(w) AS total FROM r [RANGE {unit} * 4 SLIDE {unit} * 2] GROUP BY k",
    "SELECT s.k, r.w FROM s [RANGE {unit} * 2] LEFT JOIN r [NOW] ON s.k = r.k",
    "SELECT ISTREAM k, v FROM s [NOW] WHERE v > (SELECT AVG(w) FROM r [RANGE {unit} * 6])",
    "SELECT ISTREAM ARRAY(k, 'x') AS both, NAMED_STRUCT('v', v, 'n', 1) AS pair FROM s [NOW]",
    COMPUTED_FIRST,
)


class Counting:
    """Notes how many epochs ran by plans that were kept, and how many plans were made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.epochs = self.plans = 0
        run, planned = kept.KeptPlans.run, Planner.planned

        def counted(plans: kept.KeptPlans, some: Sequence[FilledPlan]) -> Any:
            self.epochs += len(some)
            return run(plans, some)

        def made(planner: Planner, *arguments: Any) -> Any:
            self.plans += 1
            return planned(planner, *arguments)

        monkeypatch.setattr(kept.KeptPlans, "run", counted)
        monkeypatch.setattr(Planner, "planned", made)


def texts(unit: int) -> list[str]:
    scaled = []
    for text in QUERIES:
        for often in range(1, 7):
            text = text.replace(f"{{unit}} * {often}", str(unit * often))
        scaled.append(text)
    return scaled


def answers(spark: SparkSession, queries: Iterable[str], unit: int = 1, instants: int = 8) -> list[list[str]]:
    """The answers of queries over streams that have no tuples at some instants."""
    chance = random.Random(7)
    with Engine(spark) as engine:
        engine.execute("CREATE STREAM s (t BIGINT, k STRING, v DOUBLE) TIMESTAMP BY t")
        engine.execute("CREATE STREAM r (t BIGINT, k STRING, w INT) TIMESTAMP BY t")
        names = [f"q{number}" for number, _ in enumerate(queries)]
        for name, text in zip(names, queries, strict=True):
            engine.execute(f"CREATE QUERY {name} AS {text}")
        for instant in range(1, instants + 1):
            for stream in ("s", "r"):
                count = chance.randrange(4) if chance.random() < 0.7 else 0
                engine.push(stream, [(instant * unit, chance.choice("abc"), chance.randrange(5)) for _ in range(count)])
            engine.advance(instant * unit)
        engine.advance(instants * unit + 10 * unit)
        return [list(map(str, engine.query(name).results())) for name in names]


@pytest.mark.spark
@pytest.mark.parametrize("unit", [1, 10_000_000_000])
def test_answers_are_those_of_statements(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, unit: int) -> None:
    """For instants that are small numbers and for those that need 64 bits, also when the state moves."""
    monkeypatch.setattr(fragments, "MOVE_COST_ROWS", 10)
    counting = Counting(monkeypatch)
    monkeypatch.setattr(kept, "WORTH_AFTER", NEVER)
    expected = answers(spark, texts(unit), unit)
    assert counting.epochs == 0
    monkeypatch.setattr(kept, "WORTH_AFTER", 0)
    assert answers(spark, texts(unit), unit) == expected
    assert counting.epochs > counting.plans
    assert all(expected)


@pytest.mark.spark
def test_plans_are_interpreted_where_spark_keeps_little_code(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "WORTH_AFTER", NEVER)
    expected = answers(spark, texts(1)[:5], instants=5)
    monkeypatch.setattr(kept, "WORTH_AFTER", 0)
    monkeypatch.setattr(kept_plans, "CODE_FOR_PLANS", NEVER)
    assert answers(spark, texts(1)[:5], instants=5) == expected


@pytest.mark.spark
def test_steps_that_are_computed_first_have_plans_of_their_own(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if what they give is empty."""
    monkeypatch.setattr(kept, "WORTH_AFTER", NEVER)
    expected = answers(spark, [COMPUTED_FIRST])
    monkeypatch.setattr(kept, "WORTH_AFTER", 0)
    counting = Counting(monkeypatch)

    def refused(_: Statement) -> None:
        raise AssertionError("a statement was planned for an epoch")

    monkeypatch.setattr(Statement, "write_results", refused)
    assert answers(spark, [COMPUTED_FIRST]) == expected
    assert counting.epochs > counting.plans > 2


@pytest.mark.spark
def test_families_by_thresholds_have_plans_without_an_exchange(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their borders are read more than once, which Spark would make a subquery of: no plan with one is kept."""
    monkeypatch.setattr(kept, "WORTH_AFTER", 0)
    monkeypatch.setattr(programs, "TINY_ROWS", 0)
    made: list[kept_plans.KeptPlan | None] = []
    planned = Planner.planned
    monkeypatch.setattr(Planner, "planned", lambda *given: made.append(planned(*given)) or made[-1])  # type: ignore[func-returns-value]
    answers(spark, [f"SELECT k, COUNT(*) AS n FROM s [RANGE 2] WHERE v > {n} GROUP BY k" for n in range(4)])
    assert made
    assert all(plan is not None and plan.result is not None for plan in made)


@pytest.mark.spark
def test_a_plan_is_made_when_a_statement_is_met_again_and_then_used(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = Counting(monkeypatch)
    with Engine(spark) as engine:
        engine.execute("CREATE STREAM s (t BIGINT, k STRING, v DOUBLE) TIMESTAMP BY t")
        engine.execute("CREATE QUERY q AS SELECT ISTREAM k, v FROM s [NOW] WHERE v > 1")
        for instant in range(1, 6):
            engine.push("s", [(instant, "a", float(instant))])
            engine.advance(instant)
        assert counting.plans == 1
        assert counting.epochs >= 3
        assert [result.row["v"] for result in engine.query("q").results()] == [2.0, 3.0, 4.0, 5.0]


@pytest.mark.spark
def test_a_query_that_fails_is_found_and_the_others_go_on(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "WORTH_AFTER", 0)
    with Engine(spark) as engine:
        engine.execute("CREATE STREAM s (t BIGINT, k STRING, v DOUBLE) TIMESTAMP BY t")
        engine.execute("CREATE QUERY good AS SELECT ISTREAM k FROM s [NOW]")
        engine.execute("CREATE QUERY bad AS SELECT ISTREAM CAST(k AS INT) AS n FROM s [NOW]")
        engine.push("s", [(1, "1", 1.0)])
        engine.advance(1)
        engine.push("s", [(2, "a", 1.0)])
        with pytest.raises(Exception, match="bad") as failure:
            engine.advance(2)
        assert "CAST" in str(failure.value)
        assert [result.row for result in engine.query("good").results()] == [{"k": "1"}, {"k": "a"}]
        assert [result.row for result in engine.query("bad").results()] == [{"n": 1}]


@pytest.mark.spark
def test_where_spark_is_not_as_expected_statements_are_planned_each_time(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing(*_: Any) -> None:
        raise Py4JError("Method copy does not exist")

    monkeypatch.setattr(kept, "WORTH_AFTER", NEVER)
    expected = answers(spark, texts(1)[:2], instants=3)
    monkeypatch.setattr(kept, "WORTH_AFTER", 0)
    monkeypatch.setattr(Planner, "planned", missing)
    with caplog.at_level(logging.WARNING):
        assert answers(spark, texts(1)[:2], instants=3) == expected
    assert caplog.text.count("plans of Spark are not kept") == 1


@pytest.mark.spark
def test_so_many_plans_are_kept(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "WORTH_AFTER", NEVER)
    expected = answers(spark, texts(1)[:4], instants=4)
    monkeypatch.setattr(kept, "WORTH_AFTER", 0)
    monkeypatch.setattr(kept, "MOST_PLANS", 2)
    assert answers(spark, texts(1)[:4], instants=4) == expected


@pytest.mark.spark
@pytest.mark.parametrize(("failed_after", "by"), [("none", "driver"), ("10 minutes", "job")])
def test_plans_run_in_the_driver_unless_an_epoch_may_be_interrupted(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, failed_after: str, by: str
) -> None:
    ran, planners = list[str](), list[Planner]()
    here, job = Planner._run_here, Planner._run_as_job

    def run_here(planner: Planner, plans: Any) -> Any:
        ran.append("driver")
        planners.append(planner)
        return here(planner, plans)

    def run_as_job(planner: Planner, plans: Any) -> Any:
        ran.append("job")
        return job(planner, plans)

    monkeypatch.setattr(kept, "WORTH_AFTER", 0)
    monkeypatch.setattr(Planner, "_run_here", run_here)
    monkeypatch.setattr(Planner, "_run_as_job", run_as_job)
    with Engine(spark) as engine:
        engine.execute(f"SET failed_after = '{failed_after}'")
        engine.execute("CREATE STREAM s (t BIGINT, k STRING, v DOUBLE) TIMESTAMP BY t")
        engine.execute("CREATE QUERY q AS SELECT k, COUNT(DISTINCT v) AS n FROM s [RANGE 3] GROUP BY k")
        engine.execute("CREATE QUERY bad AS SELECT ISTREAM CAST(k AS INT) AS n FROM s [NOW] ORDER BY n")
        for instant in range(1, 5):
            engine.push("s", [(instant, "1", float(instant))])
            engine.advance(instant)
        engine.push("s", [(5, "a", 1.0)])
        with pytest.raises(Exception, match="bad"):
            engine.advance(5)
        assert [result.row["n"] for result in engine.query("q").results()][:3] == [1, 1, 2]
    assert set(ran) == {by}
    for planner in planners[:1]:
        assert planner._driver_memory.executionMemoryUsed() == 0  # also that of the run that failed


@pytest.mark.spark
def test_plans_that_are_made_ahead_serve_what_comes_later(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the first tuples leave the window, the statement reads an input that was empty until then."""
    monkeypatch.setattr(fragments, "MOVE_COST_ROWS", 2)
    counting = Counting(monkeypatch)
    query = "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 4] GROUP BY k"
    answered, found = list[list[str]](), list[list[int]]()
    for ahead in (False, True):
        with Engine(spark) as engine:
            engine.execute(f"CREATE STREAM s (t BIGINT, k STRING) TIMESTAMP BY t; {query}")
            plans = engine._core.workspaces.kept
            assert plans is not None
            made = list[int]()
            for instant in range(1, 21):
                engine.push("s", [(instant, "x")])
                before = counting.plans
                engine.advance(instant)
                made.append(counting.plans - before)
                while ahead and plans.plan_ahead():
                    pass
            found.append(made)
            answered.append([str(result) for result in engine.query("q").results()])
    assert answered[0] == answered[1]
    assert any(found[0][6:])
    assert not any(found[1][6:])


@pytest.mark.spark
def test_a_set_of_empty_inputs_that_returns_gets_a_plan_of_its_own(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "RETURNS", 2)
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM s (t BIGINT, k STRING) TIMESTAMP BY t; CREATE STREAM r (t BIGINT, k STRING) TIMESTAMP BY t"
        )
        engine.execute("CREATE QUERY q AS SELECT s.k FROM s [NOW], r [RANGE 100] WHERE s.k = r.k")
        plans = engine._core.workspaces.kept
        assert plans is not None
        for instant in range(1, 8):
            engine.push("s", [(instant, "x")])
            engine.advance(instant)
            while plans.plan_ahead():
                pass
        known = [key for key, plan in plans._plans.items() if plan is not None]
        assert {any(empty for *_, empty in reads) for _, reads, _ in known} == {True, False}
        engine.push("r", [(8, "x")])
        engine.push("s", [(8, "x")])
        engine.advance(8)
        assert [str(result) for result in engine.query("q").results()] == ["8 + k=x"]


@pytest.mark.spark
def test_a_running_engine_plans_ahead_when_nothing_is_to_be_done(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine(spark) as engine:
        engine.execute("CREATE STREAM s (t BIGINT, k STRING) TIMESTAMP BY t")
        engine.execute("CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 4] GROUP BY k")
        plans = engine._core.workspaces.kept
        assert plans is not None
        engine.push("s", [(1, "x"), (2, "x")])
        engine.step()
        assert plans._wishes
        engine.run(until=lambda: not plans._wishes)
        assert not plans._wishes
        assert any(plan is not None for plan in plans._plans.values())
