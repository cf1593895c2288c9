"""Directories that earlier versions have left: an engine opens each of them and goes on from there."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tools.places import FIXTURES

from headgate import Engine, ManualClock, compile
from headgate.catalog.declarations import Grouping, Party, Sensors
from headgate.catalog.skew import Bound
from headgate.delta.lower import Way

pytestmark = pytest.mark.spark

FORMAT_2 = FIXTURES / "directory-2"
"""Format 2, with every kind of fact that an engine wrote about itself: a checkpoint, and lines behind it.

The checkpoint holds aggregates, statements, sensors and the state of the heartbeats. The lines hold a statement of
each sort (ALTER, TIMEOUT, DROP of a declaration), sensors, an aggregate, and the words pause, resume, punctuated and
finish. Queries run whole, cut into fragments, and by groups of sources."""


def test_a_directory_of_format_2_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    shutil.copytree(FORMAT_2, tmp_path / "state")
    with Engine(spark, tmp_path / "state", clock=ManualClock()) as engine:
        assert engine.resumed
        assert [query.name for query in engine.queries()] == ["sums", "pairs", "q1", "grouped", "altered"]
        assert engine.counts("s") == {"taken": 4, "no-timestamp": 1, "late": 1}
        assert engine.late("s") == {"c": 1}
        assert [engine.heartbeat(stream) for stream in "stu"] == [6, 9, 0]
        assert engine.catalog.aggregates == {"spread", "other_spread"}
        assert engine.catalog.settings.timeout_us == 5_000_000
        declared = engine.catalog.declarations
        assert declared.disorders == {Party("s"): (Bound(5),), Party("t"): (Bound(1),)}
        assert declared.latencies_us == {}
        assert declared.sensors == {Party("s", "a"): Sensors(3, Fraction(2)), Party("s", "b"): Sensors(6)}
        assert declared.groupings == {"s": Grouping(sets=(("a",), ("b",)))}
        assert {query.name: query.complete for query in engine.queries()} == {
            "sums": 6,
            "pairs": 6,
            "altered": None,
            "q1": 9,
            "grouped": 3,
        }
        engine.advance(30)
        found = {query.name: [str(result) for result in query.results()] for query in engine.queries()}
    assert found["sums"] == [
        "1 + k=a, total=1",
        "2 + k=b, total=2",
        "4 - k=a, total=1",
        "4 + k=a, total=4",
        "8 - k=b, total=2",
        "8 + k=b, total=6",
        "11 - k=a, total=4",
        "11 + k=a, total=3",
        "12 - k=b, total=6",
        "12 + k=b, total=4",
        "14 - k=a, total=3",
        "18 - k=b, total=4",
    ]
    assert found["pairs"][-5:] == [
        "11 + k=a, n=1, w=2",
        "12 - k=b, n=2, w=5",
        "12 + k=b, n=1, w=5",
        "13 - k=b, n=1, w=5",
        "14 - k=a, n=1, w=2",
    ]
    assert found["altered"] == ["4 + k=a, v=3", "8 + k=b, v=4"]
    assert found["q1"] == ["3 + w=5", "6 + w=2"]
    assert found["grouped"][-3:] == ["12 + k=b, n=1", "14 - k=a, n=1", "18 - k=b, n=1"]


def test_a_window_that_slides_goes_on_with_the_running_sums_of_an_earlier_version(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions kept running sums where panes are kept now."""
    script = """
    CREATE STREAM s (k STRING, v DOUBLE);
    CREATE QUERY q AS SELECT k, SUM(v) AS total FROM s [RANGE 4 SLIDE 2] GROUP BY k;
    """
    with monkeypatch.context() as patched:
        patched.setattr(compile, "way_of", lambda query: Way(by_panes=False))
        with Engine(spark, tmp_path, clock=ManualClock()) as engine:
            engine.execute(script)
            engine.push("s", [(1, ("a", 1.5)), (1, ("b", 1e300)), (4, ("a", 0.25))])
            engine.advance(4)
            engine.query("q").answer.move_state()
            kept = engine.query("q").answer.synopses.shapes()
    assert "sums_1" in kept
    assert "wild_sums_1" in kept
    with Engine(spark, tmp_path, clock=ManualClock()) as engine:
        assert engine.query("q").answer.synopses.shapes() == kept
        engine.push("s", [(5, ("a", 8.0))])
        engine.advance(12)
        found = [str(result) for result in engine.query("q").results()]
    assert found == [
        "2 + k=a, total=1.5",
        "2 + k=b, total=1e+300",
        "4 - k=a, total=1.5",
        "4 + k=a, total=1.75",
        "6 - k=a, total=1.75",
        "6 - k=b, total=1e+300",
        "6 + k=a, total=8.25",
        "10 - k=a, total=8.25",
    ]


def test_a_join_with_a_distance_goes_on_from_the_logs_that_an_earlier_version_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions kept nothing of the sides of such joins, only the pairs that live."""
    script = """
    CREATE STREAM s (k STRING, at BIGINT) TIMESTAMP BY at;
    CREATE STREAM t (k STRING, at BIGINT) TIMESTAMP BY at;
    CREATE QUERY near AS SELECT ISTREAM(s.at AS a, t.at AS b) FROM s, t WHERE s.k = t.k AND ABS(s.at - t.at) <= 2;
    CREATE QUERY pairs AS
      SELECT s.at AS a, t.at AS b FROM s [RANGE 8], t [RANGE 8] WHERE s.k = t.k AND t.at BETWEEN s.at AND s.at + 1;
    """

    def push(engine: Engine, s: list[int], t: list[int], until: int) -> None:
        for stream, instants in (("s", s), ("t", t)):
            engine.push(stream, [("x", at) for at in instants])
        engine.advance(until)

    with monkeypatch.context() as patched:
        patched.setattr(compile, "way_of", lambda query: Way(by_distance=False))
        with Engine(spark, tmp_path, clock=ManualClock()) as engine:
            engine.execute(script)
            push(engine, [1, 4], [2], 4)
            engine.query("pairs").answer.move_state()
            kept = engine.query("pairs").answer.synopses.shapes()
    assert kept.keys() == {"kept_1"}
    with Engine(spark, tmp_path, clock=ManualClock()) as engine:
        assert engine.query("pairs").answer.synopses.shapes() == kept
        assert not engine.query("near").answer.program.synopses
        push(engine, [7], [5], 20)
        found = {query.name: [str(result) for result in query.results()] for query in engine.queries()}
    assert found["near"] == ["2 + a=1, b=2", "4 + a=4, b=2", "5 + a=4, b=5", "7 + a=7, b=5"]
    assert found["pairs"] == ["2 + a=1, b=2", "5 + a=4, b=5", "10 - a=1, b=2", "13 - a=4, b=5"]
