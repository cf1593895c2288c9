"""Joins of several inputs on Spark: orders and caches change between epochs and over a restart, the answers do not."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from headgate import Engine, ManualClock
from headgate.delta.lower import Way
from headgate.errors import UserError
from headgate.execute import join_orders
from headgate.execute.fragment import Fragment
from headgate.plan import join_orders as deciding

QUERY = """
  CREATE STREAM a (x INT, p INT); CREATE STREAM b (x INT, y INT); CREATE STREAM c (y INT, r INT);
  CREATE QUERY q AS SELECT ISTREAM(a.p, b.y, c.r) FROM a [RANGE 20], b [RANGE 20], c [RANGE 20]
    WHERE a.x = b.x AND b.y = c.y;
"""


class Killed(Exception):
    """Stands for the end of the process."""


class Told:
    """What engines over one directory answered and did, one engine for each epoch."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark, self.directory = spark, directory
        self.random, self.now = Random(3), 0
        self.adapted: list[str] = []
        self.explained = ""
        self.answers: list[str] = []

    def epoch(self, setting: str = "", first: bool = False) -> None:
        with Engine(self.spark, self.directory, clock=ManualClock()) as engine:
            if first:
                engine.execute(f"{setting} {QUERY}")
            few, many = 5, 300
            for _ in range(10):
                self.now += 1
                for stream, columns in (("a", "xp"), ("b", "xy"), ("c", "yr")):
                    keys = {"x": few, "y": many, "p": 1000, "r": 1000}
                    rows = [{column: self.random.randrange(keys[column]) for column in columns} for _ in range(3)]
                    engine.push(stream, [(self.now, row) for row in rows])
            self.go_on(engine)

    def go_on(self, engine: Engine) -> None:
        query = engine.query("q")
        try:
            engine.advance(self.now)
        finally:
            self.adapted += [change.what for change in query.answer.joins.changes]
        self.explained = query.explain()
        self.answers = sorted(map(str, query.results()))


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Counts before every epoch, and takes a join in a statement to cost nothing."""
    monkeypatch.setattr(join_orders, "SHARE", 1e9)
    monkeypatch.setattr(join_orders, "LEAST_ROWS", 1)
    monkeypatch.setattr(deciding, "JOIN_ROWS", 0.0)
    return monkeypatch


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The answers of a tree that stays as it is written."""
    told = Told(spark, tmp_path_factory.mktemp("fixed"))
    told.epoch("SET join_order = 'fixed';", first=True)
    told.epoch()
    assert told.answers
    assert told.adapted == []
    return told.answers


@pytest.mark.spark
def test_a_tree_becomes_another_one_and_that_outlives_a_restart(
    spark: SparkSession, tmp_path: Path, eager: pytest.MonkeyPatch, expected: list[str]
) -> None:
    told = Told(spark, tmp_path)
    told.epoch(first=True)
    told.epoch()
    assert told.answers == expected
    assert told.adapted == ["the join of b with c is kept", "the join of a with b is no longer kept"]
    assert "keeps the join of b with c" in told.explained


@pytest.mark.spark
def test_a_crash_in_the_middle_of_a_change_leaves_the_tree(
    spark: SparkSession, tmp_path: Path, eager: pytest.MonkeyPatch, expected: list[str]
) -> None:
    def killed(fragment: Fragment, *_: object) -> None:
        raise Killed

    told = Told(spark, tmp_path)
    with eager.context() as broken:
        broken.setattr(Fragment, "state_moved", killed)  # the new cache is written, and never came to count
        with pytest.raises(UserError, match="Killed"):
            told.epoch(first=True)
    assert "the join of b with c is kept" in told.adapted
    eager.setattr(join_orders, "LEAST_ROWS", 10**9)
    told.epoch()
    assert told.answers == expected
    assert "two inputs after two, as they are written" in told.explained


@pytest.mark.spark
def test_a_directory_of_a_tree_goes_on_as_a_tree(
    spark: SparkSession, tmp_path: Path, eager: pytest.MonkeyPatch, expected: list[str]
) -> None:
    told = Told(spark, tmp_path)
    with eager.context() as earlier:
        earlier.setattr("headgate.compile.way_of", lambda query: Way())  # a version without joins of several inputs
        earlier.setattr("headgate.execute.fragment.MOVE_COST_ROWS", -1)
        told.epoch(first=True)
    told.epoch()
    assert told.answers == expected
    assert told.adapted == []
