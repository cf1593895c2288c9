"""What an epoch costs, in things that can be counted: jobs, nodes of the plan, files, views, cached blocks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import Engine
from headgate.execute import fragment as fragment_module
from headgate.execute.fragment import Fragment

pytestmark = pytest.mark.spark

QUERY = "SELECT x.k, COUNT(*) AS n, AVG(y.v) AS m FROM s [PARTITION BY k ROWS 2] x, s [RANGE 20] y WHERE x.k = y.k GROUP BY x.k"
"""Three synopses: the rows' tail, the pairs that have yet to end, and the sums."""


WINDOWED = "SELECT ISTREAM(k, COUNT(*) AS n, AVG(v) AS m) FROM s [RANGE 20] GROUP BY k"


def engine_with(spark: SparkSession, directory: Path, query: str = QUERY) -> Engine:
    engine = Engine(spark, directory)
    engine.execute(f"CREATE STREAM s (k INT, v DOUBLE); CREATE QUERY q AS {query}")
    return engine


def feed(engine: Engine, instant: int) -> None:
    engine.push("s", [(instant, (instant % 5, float(instant))), (instant, (instant % 3, 1.0))])
    engine.advance(instant)


def fragments(engine: Engine) -> list[Fragment]:
    return [query.answer for query in engine.queries()]


def plan_nodes(engine: Engine, until: int) -> list[int]:
    """How many operators the plans of the next epoch have."""
    sizes = []
    for fragment in fragments(engine):
        epoch = fragment.prepare(until)
        fragment.lay(fragment.workspaces.of(epoch.sized.in_one_task), epoch.sized, epoch.slices)
        plan = fragment.statement(epoch.sized, epoch.span).results()._jdf.queryExecution().analyzed().treeString()
        sizes.append(len(plan.splitlines()))
    return sizes


def test_nothing_grows_over_40_epochs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragment_module, "MOVE_COST_ROWS", 1_500)  # so that synopses move often, as under a real load
    engine = engine_with(spark, tmp_path, WINDOWED)
    counted: dict[int, tuple[list[int], int, int]] = {}
    for instant in range(1, 41):
        feed(engine, instant)
        if instant in (20, 25, 30, 35, 40):
            files = sum(1 for file in tmp_path.rglob("*.parquet") if file.is_file())
            spaces = fragments(engine)[0].workspaces
            views = sum(one.session.sql("SHOW TABLES").count() for one in (spaces.small, spaces.large))
            counted[instant] = (plan_nodes(engine, instant), files, views)
    early, late = counted[20], counted[40]
    assert late[0] <= early[0], "the plan of epoch 40 has no more nodes than that of epoch 20"
    programs = [fragment.program for fragment in fragments(engine)]
    most = sum(len(program.inputs) + len(program.synopses) for program in programs)
    assert late[2] <= 2 * most, "no views are left behind"
    assert late[1] <= max(count for instant, (_, count, _) in counted.items() if instant < 40) + 16, counted
    assert late[1] < 120
    assert not spark.sparkContext._jsc.getPersistentRDDs(), "nothing is cached"
    assert all(fragment.since > 20 for fragment in fragments(engine)), "synopses have moved"


def test_one_job_for_the_output_and_one_more_for_the_state(spark: SparkSession, tmp_path: Path) -> None:
    engine = engine_with(spark, tmp_path)
    assert len(fragments(engine)[0].program.synopses) == 3
    context = spark.sparkContext
    for instant in range(1, 4):
        feed(engine, instant)
    engine.push("s", [(9, (1, 1.0))])
    for fragment in fragments(engine):
        name = f"epoch of {fragment.query}"
        context.setJobGroup(name, name)
        fragment.run(9)
        assert len(context.statusTracker().getJobIdsForGroup(name)) == 1
        context.setJobGroup(f"state of {name}", name)
        fragment.move_state()
        assert len(context.statusTracker().getJobIdsForGroup(f"state of {name}")) == 1
    context.setJobGroup("", "")


def test_the_users_session_is_left_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    before = {row.key: row.value for row in spark.sql("SET").collect()}
    engine = engine_with(spark, tmp_path)
    feed(engine, 1)
    assert {row.key: row.value for row in spark.sql("SET").collect()} == before
    assert spark.catalog.listTables() == []
