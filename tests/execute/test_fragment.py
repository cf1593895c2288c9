"""Fragments on Spark: a part runs ahead by itself, tuples are read in order of arrival, and answers do not differ."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.engine import Engine
from headgate.errors import UserError
from headgate.heartbeat.clock import ManualClock

STREAMS = "CREATE STREAM s1 (k INT, a INT); CREATE STREAM s2 (k INT, b INT); CREATE STREAM s3 (k INT, c INT);"
FIGURE_5 = """CREATE QUERY q AS SELECT RSTREAM(s1.k, a, b, c) FROM s1 [NOW], s2 [RANGE 2], s3 [RANGE 100]
  WHERE s1.k = s2.k AND s2.k = s3.k"""


def rows(column: str, *stamps: int) -> list[tuple[int, dict[str, int]]]:
    return [(stamp, {"k": 1, column: stamp}) for stamp in stamps]


def shown(engine: Engine, query: str = "q") -> list[tuple[object, ...]]:
    return [(result.at, *result.row.values()) for result in engine.query(query).results()]


@pytest.mark.spark
def test_a_part_runs_ahead_of_the_stream_it_does_not_read(spark: SparkSession, tmp_path: Path) -> None:
    """Figure 5: s3 lags. Its next tuple then costs one epoch and not two; and all this survives a restart."""
    with Engine(spark, tmp_path, clock=ManualClock()) as engine:
        engine.execute(f"SET estimation = 'off'; {STREAMS} SET heartbeats = 'operator'; {FIGURE_5}")
        assert "part(1): waits for s1, s2" in engine.query("q").explain()
        engine.push("s3", rows("c", 1))
        engine.push("s1", rows("a", 3, 5, 8))
        engine.push("s2", rows("b", 4, 5, 8))
        assert [(epoch.part, epoch.until) for epoch in engine.step()] == [("part(1)", 7)]
        assert engine.query("q").complete == 0, "without an epoch, because nothing can have happened"
        assert engine.step() == [], "nothing has changed"
        engine.push("s3", rows("c", 6))
        assert [(epoch.part, epoch.until) for epoch in engine.step()] == [("answer", 5)]
        assert shown(engine) == [(5, 1, 5, 4, 1), (5, 1, 5, 5, 1)]
    with Engine(spark, tmp_path, clock=ManualClock()) as engine:
        engine.push("s3", rows("c", 9))
        engine.push("s1", rows("a", 9))
        engine.push("s2", rows("b", 9))
        assert [(epoch.part, epoch.until) for _ in range(2) for epoch in engine.step()] == [
            ("answer", 7),
            ("part(1)", 8),
            ("answer", 8),
        ]
        assert shown(engine)[2:] == [(8, 1, 8, 8, 1), (8, 1, 8, 8, 6)]
        assert engine.push("s1", rows("a", 7)) == 0, "late, because part(1) was told that s1 is complete up to there"


@pytest.mark.spark
def test_what_proliferates_does_not_run_ahead(spark: SparkSession) -> None:
    query = FIGURE_5.replace("s1 [NOW]", "s1 [RANGE 100]").replace("RSTREAM", "ISTREAM")
    with Engine(spark, clock=ManualClock()) as engine:
        engine.execute(f"SET estimation = 'off'; {STREAMS} SET heartbeats = 'memory-aware'; {query}")
        engine.push("s3", rows("c", 0))
        engine.push("s1", rows("a", *range(1, 80)))
        engine.push("s2", rows("b", *range(1, 80)))
        engine.step()
        part = engine.query("q").fragments[0]
        assert (part.selectivity() or 0) > 1
        before = part.after
        engine.push("s1", rows("a", 90))
        engine.push("s2", rows("b", 90))
        assert engine.step() == []
        assert part.after == before, "it waits for s3 as the answer does"
        engine.push("s3", rows("c", 88))
        assert [epoch.part for _ in range(2) for epoch in engine.step()] == ["answer", "part(1)", "answer"]


@pytest.mark.spark
def test_selections_do_not_wait_unless_their_order_is_wanted(spark: SparkSession, tmp_path: Path) -> None:
    script = """CREATE STREAM s (k INT, a INT) DISORDER 10; CREATE QUERY free AS SELECT a FROM s WHERE a <> 3;
      SET ordering = 'always'; CREATE QUERY kept AS SELECT a FROM s WHERE a <> 3;"""
    with Engine(spark, tmp_path, clock=ManualClock()) as engine:
        engine.execute(script)
        engine.push("s", rows("a", 12, 3, 7))
        engine.step()
        assert shown(engine, "free") == [(7, 7), (12, 12)]
        assert (shown(engine, "kept"), engine.query("free").complete, engine.query("kept").complete) == ([], 1, 1)
    with Engine(spark, tmp_path, clock=ManualClock()) as engine:
        engine.push("s", rows("a", 5, 40, 30))
        engine.step()
        assert shown(engine, "free") == [(5, 5), (7, 7), (12, 12), (30, 30), (40, 40)], "each once"
        assert shown(engine, "kept") == [(5, 5), (7, 7), (12, 12)]
        assert engine.push("s", rows("a", 20)) == 0
        assert engine.step() == []


@pytest.mark.spark
def test_simultaneous_tuples_of_a_merge_do_not_wait_for_one_another(spark: SparkSession) -> None:
    with Engine(spark, clock=ManualClock()) as engine:
        engine.execute(f"SET estimation = 'off'; {STREAMS}")
        engine.execute(
            "CREATE QUERY q AS SELECT k, a FROM s1 UNION ALL SELECT k, b FROM s2 UNION ALL SELECT k, c FROM s3"
        )
        engine.push("s1", rows("a", 5, 5))
        engine.push("s2", rows("b", 5, 8))
        engine.step()
        assert shown(engine) == [], "s3 may still send something earlier"
        engine.push("s3", rows("c", 5))
        engine.step()
        assert shown(engine) == [(5, 1, 5)] * 4, "5 is not over, but nothing before it can come"
        engine.push("s3", rows("c", 5))
        engine.step()
        assert shown(engine) == [(5, 1, 5)] * 5
        engine.push("s1", rows("a", 9))
        engine.push("s3", rows("c", 7))
        engine.step()
        assert shown(engine) == [*[(5, 1, 5)] * 5, (7, 1, 7)], "8 waits for 7"


@pytest.mark.spark
def test_the_first_tuple_of_a_stream_that_was_not_waited_for(spark: SparkSession) -> None:
    """A merge has gone on without s2, up to the first open instant; then s2 sends its first tuple, of just that
    instant.
    """
    clock = ManualClock()
    with Engine(spark, clock=clock) as engine:
        engine.execute(f"SET estimation = 'off'; TIMEOUT 1 SECOND; {STREAMS}")
        engine.execute("CREATE QUERY q AS SELECT k, a FROM s1 UNION ALL SELECT k, b FROM s2")
        engine.step()
        clock.move_by(1_000_000)
        engine.push("s1", rows("a", 3, 7))
        engine.step()
        assert (shown(engine), engine.query("q").complete) == ([(3, 1, 3), (7, 1, 7)], 6)
        assert engine.push("s2", [(7, {"k": 2, "b": 70})]) == 1, "not late: 7 is not complete"
        engine.step()
        assert sorted(shown(engine)) == [(3, 1, 3), (7, 1, 7), (7, 2, 70)]


@pytest.mark.spark
def test_a_merge_in_many_epochs_keeps_the_order_of_timestamps(spark: SparkSession) -> None:
    with Engine(spark, clock=ManualClock()) as engine:
        engine.execute(
            f"SET epoch_rows = 3; {STREAMS} CREATE QUERY q AS SELECT k, a FROM s1 UNION ALL SELECT k, b FROM s2"
        )
        stamps: list[int] = []
        engine.query("q").on_change(lambda results: stamps.extend(result.at for result in results))
        for stream, column, some in (
            ("s1", "a", (1, 2)),
            ("s2", "b", (50, 60)),
            ("s1", "a", (3, 4, 5)),
            ("s1", "a", (55, 70)),
        ):
            engine.push(stream, rows(column, *some))
        while engine.step():
            pass
        assert stamps == [1, 2, 3, 4, 5, 50, 55, 60]


@pytest.mark.spark
def test_a_query_that_comes_later_sees_all_of_its_parts(spark: SparkSession) -> None:
    """What a part has before its first tuple, and of relations, lies before the instant at which the query begins."""
    query = """SELECT ISTREAM(s1.k, n, m) FROM s1 [NOW], (SELECT COUNT(*) AS n FROM s2 [RANGE 10]) x,
      (SELECT r.k, COUNT(*) AS m FROM r GROUP BY r.k) y WHERE s1.k = y.k"""
    with Engine(spark, clock=ManualClock()) as engine:
        engine.execute(
            f"{STREAMS} CREATE RELATION r (k INT, d INT); CREATE QUERY before AS SELECT COUNT(*) FROM s1, s2, r"
        )
        engine.push("r", [(1, (1, 7)), (2, (1, 8))])
        engine.advance(100)
        engine.execute(f"CREATE QUERY fused AS {query}; SET heartbeats = 'operator'; CREATE QUERY cut AS {query}")
        assert len(engine.query("cut").fragments) > 2
        engine.push("s1", rows("a", 105, 120))
        engine.push("s2", rows("b", 104))
        engine.advance(130)
        assert shown(engine, "cut") == shown(engine, "fused") == [(105, 1, 1, 2), (120, 1, 0, 2)]


@pytest.mark.spark
def test_a_failed_fragment_is_restarted_from_its_last_commit(spark: SparkSession, tmp_path: Path) -> None:
    broken = tmp_path / "broken"

    def check(value: int) -> int:
        if broken.exists():
            raise ValueError("the network is down")
        return value

    clock, heard = ManualClock(), list[str]()
    with Engine(spark, clock=clock) as engine:
        engine.register_function("check", check, "INT")
        engine.execute(
            f"{STREAMS} CREATE QUERY q AS SELECT ISTREAM(k, SUM(check(a)) AS total) FROM s1 [RANGE 10] GROUP BY k"
        )
        engine.run(until=lambda: True, tell=heard.append)
        engine.push("s1", rows("a", 1, 2))
        engine.advance(2)
        broken.touch()
        engine.push("s1", rows("a", 3, 9))
        with pytest.raises(UserError) as failed:
            engine.step()
        assert failed.value.code == "query-failed"
        assert engine.step() == [], "it stands still for a while"
        broken.unlink()
        clock.move_by(1_000_000)
        engine.step()
        assert shown(engine) == [(1, 1, 1), (2, 1, 3), (3, 1, 6)]
        assert heard == ["q is restarted from where it was"]
