"""Queries that wait for groups of sources, whole: what comes out when, what is late, and what a restart remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate import Engine
from headgate.runtime.query import RunningQuery

pytestmark = pytest.mark.spark

SCRIPT = """
CREATE STREAM s (dev STRING, v INT, at BIGINT) TIMESTAMP BY at SOURCE BY dev;
DISORDER OF s 0;
GROUPS OF s ('a', 'b'), ('c');
CREATE QUERY chosen AS SELECT ISTREAM(dev, v, at) FROM s [NOW] x, s [NOW] y WHERE x.dev = 'c' AND y.dev = x.dev;
CREATE QUERY sums AS SELECT dev, SUM(v) AS n FROM s [RANGE 10] GROUP BY dev;
CREATE QUERY total AS SELECT COUNT(*) AS n FROM s [RANGE 10];
""".replace("ISTREAM(dev, v, at)", "ISTREAM(x.dev, x.v, y.at)")


def rows(query: RunningQuery) -> list[tuple[Any, ...]]:
    return [(result.at, result.sign, *result.row.values()) for result in query.results()]


def test_a_group_is_answered_when_it_is_complete(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark, tmp_path) as engine:
        engine.execute(SCRIPT)
        engine.push("s", [("a", 1, 10), ("b", 1, 5), ("c", 1, 100), ("c", 2, 101)])
        engine.step()
        chosen, sums, total = map(engine.query, ("chosen", "sums", "total"))
        assert rows(chosen) == [(100, "+", "c", 1, 100)]
        assert rows(sums) == [(100, "+", "c", 1)]
        assert (chosen.complete, sums.complete, total.complete) == (100, 4, 4)
        assert sums.complete_by_group == {"('a', 'b')": 4, "('c')": 100, "all but ('a', 'b', 'c')": 4}
        assert "waits for group ('c')" in chosen.explain()
        assert "group ('c'): complete up to 100" in str(sums.why())
        assert "SOURCE 'b' (one of 2 that speak), of group ('a', 'b')" in sums.why().held_by
        assert engine.push("s", [("a", 1, 11), ("b", 1, 9), ("c", 5, 99)]) == 2
        assert [(letter["dev"], letter["_behind"]) for letter in engine.dead_letters("s")] == [("c", 1)]

    with Engine(spark, tmp_path) as engine:  # each group goes on from where it was
        sums = engine.query("sums")
        assert sums.complete_by_group == {"('a', 'b')": 4, "('c')": 100, "all but ('a', 'b', 'c')": 4}
        assert engine.push("s", [("c", 5, 99), ("a", 1, 12)]) == 1
        engine.execute("GROUPS OF s ('a'), ('b')")  # parts stay as they were, and wait for the groups of now
        engine.push("s", [("b", 1, 30), ("a", 1, 40), ("new", 7, 35), ("c", 3, 120)])
        engine.step()
        assert sums.complete_by_group == {"('a', 'b')": 29, "('c')": 100, "all but ('a', 'b', 'c')": 34}
        engine.advance(150)
        assert sums.complete == 150
        found = rows(sums)
        assert engine.late("s") == {"c": 2}

    with Engine(spark) as engine:
        engine.execute(SCRIPT.replace("GROUPS OF s ('a', 'b'), ('c');", ""))
        history = [("a", 1, 10), ("b", 1, 5), ("c", 1, 100), ("c", 2, 101), ("a", 1, 11), ("b", 1, 9), ("a", 1, 12)]
        engine.push("s", [*history, ("b", 1, 30), ("a", 1, 40), ("new", 7, 35), ("c", 3, 120)])
        engine.advance(150)
        assert not engine.query("sums").complete_by_group
        assert sorted(rows(engine.query("sums"))) == sorted(found), "the answers are those without groups"
