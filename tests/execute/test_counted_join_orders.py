"""Joins of several inputs on Spark: orders and caches change between epochs and over a restart, the answers do not."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from headgate import Engine, ManualClock
from headgate.execute import join_orders

QUERY = """
  CREATE STREAM a (x INT, p INT); CREATE STREAM b (x INT, y INT); CREATE STREAM c (y INT, r INT);
  CREATE QUERY q AS SELECT ISTREAM(a.p, b.y, c.r) FROM a [RANGE 20], b [RANGE 20], c [RANGE 20]
    WHERE a.x = b.x AND b.y = c.y;
"""


def answers(spark: SparkSession, directory: Path, order: str, epochs: int = 2) -> tuple[list[str], list[str], str]:
    """The results, what was adapted and the last explanation; the engine is started anew for every epoch."""
    random, now, adapted, explained = Random(3), 0, list[str](), ""
    for epoch in range(epochs):
        with Engine(spark, directory, clock=ManualClock()) as engine:
            if not epoch:
                engine.execute(f"SET join_order = '{order}'; {QUERY}")
            few, many = 5, 300
            for _ in range(10):
                now += 1
                for stream, columns in (("a", "xp"), ("b", "xy"), ("c", "yr")):
                    keys = {"x": few, "y": many, "p": 1000, "r": 1000}
                    rows = [{column: random.randrange(keys[column]) for column in columns} for _ in range(3)]
                    engine.push(stream, [(now, row) for row in rows])
            engine.advance(now)
            query = engine.query("q")
            adapted += [change.what for change in query.answer.joins.changes]
            explained = query.explain()
            found = sorted(map(str, query.results()))
    return found, adapted, explained


@pytest.mark.spark
def test_a_cache_comes_and_outlives_a_restart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_orders, "SHARE", 1e9)
    monkeypatch.setattr(join_orders, "LEAST_ROWS", 1)
    found, adapted, explained = answers(spark, tmp_path / "adaptive", "adaptive")
    expected, nothing, _ = answers(spark, tmp_path / "fixed", "fixed")
    assert found == expected
    assert expected
    assert nothing == []
    assert "the join of b with c is kept" in adapted
    assert "keeps the join of b with c" in explained
