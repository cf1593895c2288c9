"""The engine on Spark: rows in, answers out, nothing lost on the way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import Engine, ManualClock, Result, UserError

pytestmark = pytest.mark.spark

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def test_push_advance_results(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM s (k STRING, v INT); CREATE QUERY q AS SELECT ISTREAM(k, v) FROM s [NOW] WHERE v > 1"
        )
        assert engine.push("s", [(1, {"k": "a", "v": 7}), (2, ("b", 1)), (3, {"v": 2})]) == 3
        engine.advance(2)
        assert engine.query("q").results() == [Result(1, "+", {"k": "a", "v": 7})]
        assert engine.query("Q").complete == 2
        engine.advance(3)
        assert engine.query("q").results()[1:] == [Result(3, "+", {"k": None, "v": 2})]


def test_timestamps_and_types_survive(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM s (at TIMESTAMP, d DATE, m DECIMAL(10, 2), tags ARRAY<STRING>, `odd name` INT, `order` BIGINT) TIMESTAMP BY at;"
            "CREATE QUERY q AS SELECT ISTREAM(*) FROM s [NOW];"
            "CREATE QUERY sums AS SELECT `odd name`, SUM(m) AS total, COUNT(tags) AS n FROM s [RANGE 5 SECONDS] GROUP BY `odd name`"
        )
        row = {"at": after(0.25), "d": NOON.date(), "m": "1.10", "tags": ["x", "y"], "odd name": 1, "order": 2}
        from decimal import Decimal

        engine.push("s", [{**row, "m": Decimal("1.10")}, {**row, "at": "2026-01-01T12:00:01.5", "m": Decimal("2.20")}])
        engine.advance(after(60))
        first, second = engine.query("q").results()
        assert (first.at, second.at) == (after(0.25), after(1.5))
        assert first.row["tags"] == ["x", "y"]
        totals = [(r.at, r.sign, float(r.row["total"]), r.row["n"]) for r in engine.query("sums").results()]
        assert totals == [
            (after(0.25), "+", 1.1, 1),
            (after(1.5), "-", 1.1, 1),
            (after(1.5), "+", 3.3, 2),
            (after(5.250001), "-", 3.3, 2),
            (after(5.250001), "+", 2.2, 1),
            (after(6.500001), "-", 2.2, 1),
        ]


def test_a_silent_stream_does_not_stop_the_answers(spark: SparkSession) -> None:
    clock = ManualClock()
    with Engine(spark, clock=clock) as engine:
        engine.execute(
            "CREATE STREAM a (v INT); CREATE STREAM b (v INT); TIMEOUT 2 SECONDS;"
            "CREATE QUERY merged AS SELECT v FROM a UNION ALL SELECT v FROM b"
        )
        engine.push("a", [(1, (1,)), (5, (5,))])
        engine.push("b", [(2, (2,))])
        engine.step()
        assert engine.query("merged").complete == 1
        clock.move_by(2_000_000)
        engine.push("a", [(8, (8,))])
        engine.step()
        assert engine.query("merged").complete == 7
        assert [result.at for result in engine.query("merged").results()] == [1, 2, 5, 8]
        assert engine.push("b", [(4, (4,)), (8, (80,))]) == 1
        assert engine.counts("b")["late"] == 1
        (letter,) = engine.dead_letters("b")
        assert (letter["v"], letter["_reason"], letter["_behind"]) == (4, "late", 3)
        engine.advance(8)
        assert [result.row["v"] for result in engine.query("merged").results()] == [1, 2, 5, 8, 80]


def test_bad_rows_are_kept_as_dead_letters(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute("CREATE STREAM s (v INT); CREATE QUERY q AS SELECT * FROM s")
        assert engine.push("s", [(1, (1,)), (2, ("two",)), ("three", (3,)), (None, (4,)), (-5, (5,)), (6, (6.5,))]) == 1
        assert engine.counts("s") == {"taken": 1, "no-timestamp": 1, "before-origin": 1, "malformed": 3}
        assert len(engine.dead_letters("s")) == 5
        for rows in ([7], [(1, {"w": 1})], [(1, (1, 2))]):
            with pytest.raises(UserError, match="bad-row"):
                engine.push("s", rows)


def test_spark_refuses_a_query_by_name(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute("CREATE STREAM s (v INT, k STRING)")
        with pytest.raises(UserError, match='there is no function "no_such_function"') as refused:
            engine.execute("CREATE QUERY q AS SELECT no_such_function(v) FROM s")
        assert "    |                          ^^^^^^^^^^^^^^^^" in refused.value.render()
        with pytest.raises(UserError, match="query-rejected"):
            engine.execute("CREATE QUERY q AS SELECT SUM(DATE '2026-01-01') AS x FROM s")
        engine.execute("CREATE QUERY q AS SELECT CAST(k AS INT) AS x FROM s")
        engine.push("s", [(1, (1, "a"))])
        with pytest.raises(UserError, match="query-failed") as failed:
            engine.advance(1)
        assert "CAST_INVALID_INPUT" in failed.value.render()


def test_changes_go_to_a_listener_and_to_parquet(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark) as engine:
        engine.execute(
            f"CREATE STREAM s (v INT); CREATE QUERY q AS SELECT v FROM s [RANGE 1] INTO parquet OPTIONS ('path' = '{tmp_path}/out')"
        )
        heard: list[Result] = []
        engine.query("q").on_change(heard.extend)
        engine.push("s", [(1, (7,))])
        engine.advance(1)
        engine.advance(5)
        expected = [Result(1, "+", {"v": 7}), Result(3, "-", {"v": 7})]
        assert heard == expected
        with pytest.raises(UserError, match="go to parquet"):
            engine.query("q").results()
        back = spark.read.parquet(f"{tmp_path}/out").orderBy("_time").collect()
        assert [tuple(row) for row in back] == [(1, "+", 7), (3, "-", 7)]


def test_rows_of_files_that_cannot_be_read_go_to_the_dead_letters(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.json").write_text('{"v": 1, "at": 1}\n{"v": "x", "at": 2}\nnot json\n{"v": 3}\n{"v": 4, "at": -1}\n')
    with Engine(spark) as engine:
        engine.execute(
            f"CREATE STREAM s (v INT, at INT) TIMESTAMP BY at FROM json OPTIONS ('path' = '{folder}'); CREATE QUERY q AS SELECT v FROM s"
        )
        engine.run_once()
        assert engine.query("q").results() == [Result(1, "+", {"v": 1})]
        assert engine.counts("s") == {"taken": 1, "malformed": 2, "no-timestamp": 1, "before-origin": 1}
        assert {letter["_raw"] for letter in engine.dead_letters("s")} >= {"not json", '{"v": "x", "at": 2}'}
        (folder / "2.json").write_text('{"v": 5, "at": 1}\n{"v": 6, "at": 9}\n')
        engine.run_once()
        assert engine.counts("s")["late"] == 1
        assert [result.row["v"] for result in engine.query("q").results()] == [1, 6]


def test_a_file_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "1.json").write_text('{"v": 1, "at": 1}\n')
    with Engine(spark) as engine:
        for folder in ("nowhere", "there"):
            engine.execute(
                f"CREATE STREAM {folder} (v INT, at INT) TIMESTAMP BY at FROM json OPTIONS ('path' = '{tmp_path}/{folder}')"
            )
        with pytest.raises(UserError, match="no-such-file"):
            engine.run_once()
        assert engine.counts("there") == {"taken": 1}, "it holds up no other"


def test_one_engine_a_directory(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark, tmp_path), pytest.raises(UserError, match="directory-in-use"):
        Engine(spark, tmp_path)
    Engine(spark, tmp_path).close()


def test_sums_recover_from_infinity_and_nan(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM s (v DOUBLE); CREATE QUERY q AS SELECT ISTREAM(SUM(v) AS s, AVG(v) AS m) FROM s [RANGE 1]"
        )
        values = [(1, (1.0,)), (3, (float("inf"),)), (4, (float("-inf"),)), (7, (float("nan"),)), (10, (2.5,))]
        engine.push("s", values)
        for until in (2, 4, 8, 11):
            engine.advance(until)
        found = [(result.at, str(result.row["s"])) for result in engine.query("q").results()]
        assert found == [
            (0, "None"),
            (1, "1.0"),
            (3, "inf"),
            (4, "nan"),
            (5, "-inf"),
            (6, "None"),
            (7, "nan"),
            (9, "None"),
            (10, "2.5"),
        ]


def test_a_relation_from_files_is_there_at_every_instant(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "sites.csv").write_text("sensor,site\na,roof\nb,cellar\n")
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM r (sensor STRING, at TIMESTAMP) TIMESTAMP BY at;"
            f"CREATE RELATION sites (sensor STRING, site STRING) FROM csv OPTIONS ('path' = '{tmp_path}/sites.csv', 'header' = 'true');"
            "CREATE QUERY named AS SELECT ISTREAM(r.sensor, site) FROM r [RANGE 3 SECONDS] LEFT JOIN sites s ON r.sensor = s.sensor;"
            "CREATE QUERY strange AS SELECT ISTREAM(sensor) FROM r [NOW] WHERE sensor NOT IN (SELECT sensor FROM sites)"
        )
        engine.poll()
        engine.push("r", [("a", after(0)), ("z", after(1))])
        engine.step()
        engine.push("r", [("b", after(5))])
        engine.advance(after(6))
        named = [(result.at, result.row["sensor"], result.row["site"]) for result in engine.query("named").results()]
        assert named == [(after(0), "a", "roof"), (after(1), "z", None), (after(5), "b", "cellar")]
        assert [result.row["sensor"] for result in engine.query("strange").results()] == ["z"]


def test_a_query_says_what_it_keeps_and_what_of_it_grows(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM s (k STRING, v INT, w INT);"
            "CREATE VIEW totals AS SELECT k, SUM(v) AS n, MAX(w) AS hi FROM s [RANGE 5] GROUP BY k;"
            "CREATE QUERY one AS SELECT x.n FROM totals x, totals y WHERE x.k = 'a' AND y.k = 'a' AND x.n = y.n;"
            "CREATE QUERY seen AS SELECT DISTINCT k FROM s"
        )
        engine.push("s", [(1, ("a", 1, 1)), (2, ("b", 5, 1)), (3, ("a", 2, 1))])
        engine.advance(2)
        engine.advance(9)
        assert [(r.at, r.sign, r.row["n"]) for r in engine.query("one").results()] == [
            (1, "+", 1),
            (3, "-", 1),
            (3, "+", 3),
            (7, "-", 3),
            (7, "+", 2),
            (9, "-", 2),
        ]
        assert engine.query("one").growing() == ()
        assert str(engine.query("one").state()[0]).startswith(
            "sums_1: one row for each k among what arrived in the last 5"
        )
        assert [growth.operator for growth in engine.query("seen").growing()] == ["DISTINCT"]
        assert "-- plan rewritten: " in engine.query("one").explain()
