"""The low level: logs keep what the queries that run need, and heartbeats, counts and dead letters are as without."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tools.duck_engine import engine_on_duckdb, killed, without_spark

from headgate.engine import Engine
from headgate.sources import judging
from headgate.sources.judged_batch import JudgedBatch

SCRIPT = "SET low_level = 'on'; CREATE STREAM s (k STRING, v INT, text STRING); DISORDER OF s 2;"
TENS = "CREATE QUERY tens AS SELECT ISTREAM(v) FROM s [RANGE 3] WHERE v >= 10"
XS = "CREATE QUERY xs AS SELECT k, COUNT(*) AS n FROM s [RANGE 3] WHERE k = 'x' GROUP BY k"


def kept(engine: Engine, stream: str = "s") -> list[tuple[Any, ...]]:
    """The tuples in the log of a stream: k, v, text, _t, _s."""
    rows = [row for chunk in engine._core.inputs.inlets[stream].log.chunks for row in chunk.table().to_pylist()]
    return [(row["k"], row["v"], row["text"], row["_t"], row["_s"]) for row in rows]


def answers(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    return [(one.at, one.sign, *one.row.values()) for one in engine.query(query).results()]


def test_the_log_keeps_what_queries_need(tmp_path: Path) -> None:
    with without_spark():
        engine = engine_on_duckdb(tmp_path)
        engine.execute(SCRIPT + TENS)
        assert engine.push("s", [(1, ("x", 10, "a")), (2, ("y", 9, "b")), (3, ("y", 12, "c"))]) == 3
        assert kept(engine) == [(None, 10, None, 1, 0), (None, 12, None, 3, 2)]
        assert engine.counts("s") == {"taken": 3, "unneeded": 1}
        assert "its log keeps v of tuples with (v >= 10)" in str(engine.execute("SHOW PLAN")[0].rows)  # type: ignore[union-attr]
        assert "s: v of tuples with (v >= 10)" in engine.query("tens").explain()
        engine = killed(engine, tmp_path)
        engine.push("s", [(4, ("x", 1, "d"))])
        assert len(kept(engine)) == 2, "as before the restart"
        assert engine.counts("s") == {"taken": 4, "unneeded": 2}
        engine.advance(9)
        assert answers(engine, "tens") == [(1, "+", 10), (3, "+", 12)]
        assert engine.query("tens").reflects["s"].tuples == 4, "labels count what came, and not what is kept"
        engine.close()


def test_a_tuple_that_nobody_needs_moves_the_heartbeat(tmp_path: Path) -> None:
    with without_spark(), engine_on_duckdb(tmp_path) as engine:
        engine.execute(SCRIPT + TENS)
        engine.push("s", [(1, ("x", 10, "a"))])
        engine.step()
        assert not answers(engine, "tens")
        engine.push("s", [(8, ("x", 0, "b"))])
        engine.step()
        assert answers(engine, "tens") == [(1, "+", 10)]
        assert engine.heartbeat("s") == 5
        engine.push("s", [(3, ("x", 0, "late")), (4, ("x", 11, "late"))])
        assert [(one["v"], one["text"]) for one in engine.dead_letters("s")] == [(0, "late"), (11, "late")], "whole"


def test_a_query_that_comes_later_begins_where_the_log_has_all_it_needs(tmp_path: Path) -> None:
    with without_spark():
        engine = engine_on_duckdb(tmp_path)
        engine.execute(SCRIPT + TENS)
        engine.push("s", [(1, ("x", 10, "a")), (4, ("x", 9, "b"))])
        engine.execute(XS)
        engine.execute("CREATE QUERY more AS SELECT ISTREAM(v) FROM s [RANGE 3] WHERE v >= 10")
        starts = {name: engine.query(name).answer.progress.start for name in ("xs", "more")}
        assert starts == {"xs": 4, "more": None}, "all that the last one needs is there"
        engine.push("s", [(3, ("x", 9, "c")), (5, ("x", 9, "d")), (6, ("y", 9, "e")), (6, ("y", 30, "f"))])
        assert kept(engine)[-3:] == [("x", 9, None, 3, 2), ("x", 9, None, 5, 3), ("y", 30, None, 6, 5)]
        engine = killed(engine, tmp_path)
        engine.advance(12)
        assert [one for one in answers(engine, "xs") if one[1] == "+"] == [(5, "+", "x", 1)]
        assert [one[2] for one in answers(engine, "more")] == [10, 30]
        engine.execute("SET low_level = 'off'")
        engine.push("s", [(20, ("z", 0, "all"))])
        assert kept(engine)[-1] == ("z", 0, "all", 20, 6)
        engine.execute("SET low_level = 'on'; DROP QUERY xs; DROP QUERY tens; DROP QUERY more")
        engine.push("s", [(21, ("z", 0, "all"))])
        assert kept(engine)[-1] == ("z", 0, "all", 21, 7), "a stream that no query reads keeps everything"
        engine.close()


def test_members_of_a_family_share_a_prefilter(tmp_path: Path) -> None:
    with without_spark(), engine_on_duckdb(tmp_path) as engine:
        engine.execute(SCRIPT)
        for number in range(5):
            engine.execute(f"CREATE QUERY q{number} AS SELECT ISTREAM(k, v) FROM s [NOW] WHERE v = {number}")
        assert any(query.hidden for query in engine._core.programs())
        engine.push("s", [(1, ("x", 3, "a")), (1, ("x", 7, "b"))])
        assert [row[1] for row in kept(engine)] == [3]
        engine.advance(5)
        assert answers(engine, "q3") == [(1, "+", "x", 3)]
        assert answers(engine, "q4") == []


def test_equal_tuples_are_kept_once_where_queries_count(tmp_path: Path) -> None:
    counting = "CREATE QUERY n AS SELECT k, COUNT(*) AS n, SUM(v) AS m FROM s [RANGE 3] GROUP BY k;"
    with without_spark():
        engine = engine_on_duckdb(tmp_path)
        engine.execute(SCRIPT + counting)
        assert engine.push("s", [(1, ("x", 2, str(n))) for n in range(10)] + [(2, ("x", 2, ""))]) == 11
        assert kept(engine) == [("x", 2, None, 1, 0), ("x", 2, None, 2, 10)]
        assert engine.counts("s") == {"taken": 11, "alike": 9}
        engine = killed(engine, tmp_path)
        engine.advance(2)
        assert [one[1:] for one in answers(engine, "n")][-1] == ("+", "x", 11, 22)
        assert engine.query("n").reflects["s"].tuples == 11
        engine.execute(TENS)
        assert engine.query("tens").answer.progress.start == 2
        engine.push("s", [(8, ("x", 2, "")), (8, ("x", 2, "")), (9, ("x", 10, "")), (9, ("x", 10, ""))])
        assert engine.counts("s") == {"taken": 15, "alike": 9}, "one of the queries does not count"
        engine.advance(20)
        assert [one[2] for one in answers(engine, "tens")] == [10, 10]
        assert answers(engine, "n")[-1][1:] == ("-", "x", 2, 20)
        engine.close()


# on Spark: files


def write(folder: Path, name: str, rows: list[tuple[int, str, int, str]]) -> None:
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({"at": at, "k": k, "v": v, "text": text}) for at, k, v, text in rows]
    (folder / name).write_text("\n".join(lines) + "\n")


FILES = (
    "CREATE STREAM s (at BIGINT, k STRING, v INT, text STRING) TIMESTAMP BY at {} FROM json OPTIONS ('path' = '{}');"
    "CREATE QUERY tens AS SELECT ISTREAM(v) FROM s [RANGE 3] WHERE v >= 10;"
)


@pytest.mark.spark
@pytest.mark.parametrize("by", ["", "SOURCE BY k"])
def test_files_are_reduced_where_they_come_in(
    spark: SparkSession, tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Spark's job and in memory alike, and with the same heartbeats, counts and dead letters as without."""
    write(tmp_path / "in", "a.json", [(n, "xy"[n % 2], n * 5 % 13, "long") for n in range(1, 40)])
    write(tmp_path / "in", "b.json", [(39, "x", 99, "z"), (45, "y", 0, "z"), (2, "y", 99, "late?"), (50, "x", 10, "z")])
    found = []
    for way, in_spark in (("off", True), ("on", True), ("on", False)):
        with monkeypatch.context() as patched, Engine(spark) as engine:
            if in_spark:
                patched.setattr("headgate.sources.small_files.MOST_BYTES", 0)
            engine.execute(f"SET low_level = '{way}';" + FILES.format(by, tmp_path / "in"))
            engine.run_once()
            write(tmp_path / "in", "c.json", [(60, "x", 11, "w"), (20, "y", 12, "w"), (61, "y", 1, "w")])
            engine.run_once()
            (tmp_path / "in" / "c.json").unlink()
            log = engine._core.inputs.inlets["s"].log
            rows = [row for chunk in log.chunks for row in chunk.table().to_pylist()]
            counts = engine.counts("s")
            if way == "on":
                assert counts.pop("unneeded") == counts["taken"] - len(rows) > 0
                assert {(row["text"], row["v"] >= 10) for row in rows} == {(None, True)}
            found.append((answers(engine, "tens"), counts, engine.dead_letters("s"), engine.heartbeat("s")))
    assert found[0] == found[1] == found[2]
    assert found[0][0]


@pytest.mark.spark
def test_equal_tuples_in_files_are_kept_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.sources.small_files.MOST_BYTES", 0)
    write(tmp_path / "in", "a.json", [(n // 20, "xy"[n % 2], n % 3, "long") for n in range(200)])
    found = []
    for way in ("off", "on"):
        with Engine(spark) as engine:
            engine.execute(
                f"SET low_level = '{way}';"
                "CREATE STREAM s (at BIGINT, k STRING, v INT, text STRING) TIMESTAMP BY at FROM json"
                f" OPTIONS ('path' = '{tmp_path / 'in'}');"
                "CREATE QUERY n AS SELECT k, COUNT(*) AS n, SUM(v) AS m, MAX(v) AS h FROM s [RANGE 2] WHERE v > 0 GROUP BY k"
            )
            engine.run_once()
            counts, log = engine.counts("s"), engine._core.inputs.inlets["s"].log
            if way == "on":
                assert sum(chunk.rows for chunk in log.chunks) == 40  # two keys and two values in ten instants
                assert (counts.pop("unneeded"), counts.pop("alike")) == (67, 93)
            found.append((answers(engine, "n"), counts, engine.heartbeat("s"), log.rows, log.newest()))
            assert all(isinstance(one[3], int) for one in answers(engine, "n"))
    assert found[0] == found[1]
    assert found[0][0]


@pytest.mark.spark
def test_a_batch_is_judged_as_a_whole_if_more_is_needed_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a batch is judged a query comes, or a promise is given by which tuples that nobody needs are late."""
    write(tmp_path / "in", "a.json", [(n, "x", n, "long") for n in range(1, 20)])
    with Engine(spark) as engine:
        engine.execute("SET low_level = 'on';" + FILES.format("", tmp_path / "in"))
        happens: list[Callable[[], object]] = [lambda: engine.execute(XS)]

        def interrupted(*arguments: Any) -> JudgedBatch:
            batch = judging.judged(*arguments)
            if happens:
                happens.pop()()
            return batch

        monkeypatch.setattr("headgate.sources.files.judged", interrupted)
        engine.run_once()
        assert engine.counts("s") == {"taken": 19}, "all of them are kept"
        assert len([one for one in answers(engine, "xs") if one[1] == "+"]) > 1, "it sees them"
        write(tmp_path / "in", "b.json", [(30, "y", 0, "b"), (31, "y", 40, "b")])
        happens.append(lambda: engine.advance(30))
        engine.run_once()
        assert [one["text"] for one in engine.dead_letters("s")] == ["b"], "whole"
        assert engine.counts("s") == {"taken": 20, "late": 1}
