"""Queries that wait for groups of sources, whole: what comes out when, what is late, and what a restart remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate import Engine
from headgate.schedule.query import RunningQuery

pytestmark = pytest.mark.spark

SCRIPT = """
CREATE STREAM s (dev STRING, v INT, at BIGINT) TIMESTAMP BY at SOURCE BY dev;
DISORDER OF s 0;
GROUPS OF s ('a', 'b'), ('c');
CREATE QUERY chosen AS SELECT ISTREAM(COUNT(*) AS n) FROM s [NOW] WHERE dev = 'c';
CREATE QUERY sums AS SELECT dev, SUM(v) AS n FROM s [RANGE 10] GROUP BY dev;
"""
AB, C, REST = "('a', 'b')", "('c')", "all but ('a', 'b', 'c')"


def rows(query: RunningQuery) -> list[tuple[Any, ...]]:
    return [(result.at, result.sign, *result.row.values()) for result in query.results()]


def test_a_group_is_answered_when_it_is_complete(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark, tmp_path) as engine:
        engine.execute(SCRIPT)
        engine.push("s", [("a", 1, 10), ("b", 1, 5), ("c", 1, 100), ("c", 2, 101)])
        engine.step()
        chosen, sums = map(engine.query, ("chosen", "sums"))
        assert rows(chosen)[-1] == (100, "+", 1)
        assert rows(sums) == [(100, "+", "c", 1)]
        assert (chosen.complete, sums.complete) == (100, 4)
        assert sums.complete_by_group == {AB: 4, C: 100, REST: 4}
        assert [fragment.epochs for fragment in sums.fragments] == [0, 1, 0], (
            "for a group with nothing to say none runs"
        )
        assert "waits for group ('c')" in chosen.explain()
        assert "group ('c'): complete up to 100" in str(sums.why())
        assert "SOURCE 'b' (one of 2 that speak), of group ('a', 'b')" in sums.why().held_by
        assert engine.push("s", [("a", 1, 11), ("b", 1, 9), ("c", 5, 99)]) == 2
        assert [(letter["dev"], letter["_behind"]) for letter in engine.dead_letters("s")] == [("c", 1)]

    with Engine(spark, tmp_path) as engine:  # each group goes on from where it was
        sums = engine.query("sums")
        assert sums.complete_by_group[C] == 100
        assert engine.push("s", [("c", 5, 99), ("a", 1, 12)]) == 1
        engine.execute("GROUPS OF s ('a'), ('b')")  # parts stay as they were, and wait for the groups of now
        engine.push("s", [("b", 1, 30), ("a", 1, 40), ("new", 7, 35)])
        engine.step()
        assert sums.complete_by_group == {AB: 29, C: 100, REST: 34}
        engine.advance(41)
        assert sums.complete == 41
        assert [row for row in rows(sums) if row[2] == "a"] == [
            (10, "+", "a", 1),
            (11, "-", "a", 1),
            (11, "+", "a", 2),
            (12, "-", "a", 2),
            (12, "+", "a", 3),
            (21, "-", "a", 3),
            (21, "+", "a", 2),
            (22, "-", "a", 2),
            (22, "+", "a", 1),
            (23, "-", "a", 1),
            (40, "+", "a", 1),
        ]
        assert [row for row in rows(sums) if row[2] in ("c", "new")] == [(35, "+", "new", 7), (100, "+", "c", 1)]
        assert engine.late("s") == {"c": 2}
