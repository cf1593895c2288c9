"""The end of a replay, and replays in the order of arrival."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tools.duck import shared, transpiled

from headgate import Engine
from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.errors import UserError
from headgate.plan.settled import settled
from headgate.sources.replay import ReplayClock

STREAMS = "CREATE STREAM s (v INT, at INT) TIMESTAMP BY at; CREATE STREAM r (w INT, at INT) TIMESTAMP BY at;"


@pytest.mark.parametrize(
    ("query", "end"),
    [
        ("SELECT * FROM s [RANGE 7]", 23),
        ("SELECT * FROM s [RANGE 60 SLIDE 20]", 40),
        ("SELECT * FROM s [ROWS 10 SLIDE 5 SECONDS]", 25),
        ("SELECT s.v FROM s [RANGE 60 SLIDE 20], r [RANGE 60 SLIDE 30] WHERE s.v = r.w", 40),
        ("SELECT RSTREAM(v) FROM s [RANGE 7] EVERY 10", 30),
        ("SELECT COUNT(*) AS n FROM (SELECT ISTREAM(v) FROM s [RANGE 9 SLIDE 10]) [RANGE 9 SLIDE 7]", 35),
        ("SELECT at / 10 AS ten, COUNT(*) AS n FROM s GROUP BY at / 10 EMIT FINAL", 30),
        (
            "SELECT ten, COUNT(*) AS n FROM (SELECT at / 10 AS ten, v FROM s GROUP BY at / 10, v EMIT FINAL) AS x "
            "GROUP BY ten EMIT FINAL",
            31,
        ),
        (
            "SELECT ten DIV 6 AS m, COUNT(*) AS n FROM (SELECT at DIV 10 AS ten, v FROM s GROUP BY at DIV 10, v EMIT FINAL) AS x "
            "GROUP BY ten DIV 6 EMIT FINAL",
            61,
        ),
        (
            "SELECT -at DIV 50 AS m, COUNT(*) AS n FROM (SELECT s.at, v FROM s, r WHERE s.at = r.at EMIT FINAL) AS x "
            "GROUP BY -at DIV 50 EMIT FINAL",
            51,
        ),
        (
            "SELECT a DIV 30 AS m, COUNT(*) AS n FROM (SELECT s.at AS a, v FROM s, r WHERE s.at = r.at * 2 EMIT FINAL) AS x "
            "GROUP BY a DIV 30 EMIT FINAL",
            61,
        ),
    ],
)
def test_when_all_that_came_has_taken_effect(query: str, end: int) -> None:
    """By the plan alone; DuckDB evaluates the SQL of final groups."""

    def closing(sql: str, tick: int) -> int:
        row = shared().execute(transpiled(f"SELECT CAST({sql} AS BIGINT) FROM (SELECT {tick} AS _t)")).fetchone()
        assert row is not None
        return int(row[0])

    catalog = Catalog()
    define(f"{STREAMS} CREATE QUERY q AS {query}", catalog)
    assert settled(catalog.query("q").plan, 23, closing) == end


def written(folder: Path, name: str, *rows: dict[str, object]) -> str:
    (folder / name).mkdir(parents=True)
    (folder / name / "1.json").write_text("\n".join(map(json.dumps, rows)))
    return f"FROM json OPTIONS ('path' = '{folder}/{name}')"


@pytest.mark.spark
def test_a_replay_shows_the_last_window(spark: SparkSession, tmp_path: Path) -> None:
    source = written(tmp_path, "s", {"v": 1, "at": 3}, {"v": 2, "at": 12}, {"v": 3, "at": 14})
    script = f"""SET range = 'half-open'; CREATE STREAM s (v INT, at INT) TIMESTAMP BY at {source};
        CREATE QUERY tumbling AS SELECT SUM(v) AS v FROM s [RANGE 10 SLIDE 10];
        CREATE QUERY per_ten AS SELECT at / 10 AS ten, COUNT(*) AS n FROM s GROUP BY at / 10 EMIT FINAL;
        CREATE QUERY running AS SELECT v FROM s [RANGE 3]"""
    shown = {}
    for close in (True, False):
        with Engine(spark) as engine:
            engine.execute(script)
            engine.run_once(close=None if close else False)
            shown[close] = {query.name: list(map(str, query.results())) for query in engine.queries()}
            shown[close] |= {"complete": [str(query.complete) for query in engine.queries()]}
    assert shown[True]["tumbling"][-2:] == ["20 - v=1", "20 + v=5"]
    assert shown[True]["per_ten"] == ["10 + ten=0, n=1", "20 + ten=1, n=2"]
    assert shown[True]["running"] == shown[False]["running"], "windows do not run empty"
    assert shown[True]["complete"] == ["20", "20", "14"]
    assert shown[False]["tumbling"][-1] == "10 + v=1"
    assert shown[False]["per_ten"] == ["10 + ten=0, n=1"]
    with Engine(spark, tmp_path / "state") as engine:
        engine.execute(script)
        engine.run_once()
        assert [query.complete for query in engine.queries()] == [14, 14, 14], "more may come in another run"


@pytest.mark.spark
def test_a_replay_in_the_order_of_arrival_has_late_rows(spark: SparkSession, tmp_path: Path) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    seconds = [1, 2, 3, 9, 10, 11, 4, 8, 12, 30, 5, 31]  # 4 and 5 are behind the bound, 8 is not
    rows = [{"v": n, "at": (start + timedelta(seconds=n)).isoformat()} for n in seconds]
    source = written(tmp_path, "s", *rows[:6], {"v": 0}, *rows[6:])
    script = f"""CREATE STREAM s (v INT, at TIMESTAMP) TIMESTAMP BY at DISORDER 4 SECONDS {source};
        CREATE QUERY q AS SELECT ISTREAM(v) FROM s [NOW]"""
    for batch, late in ((1, [4, 5]), (100, [])):
        with Engine(spark, clock=ReplayClock()) as engine:
            engine.execute(script)
            engine.replay(batch)
            letters = engine.dead_letters("s")
            assert [letter["v"] for letter in letters if letter["_reason"] == "late"] == late
            assert [json.loads(letter["_raw"]) for letter in letters if letter["_reason"] == "no-timestamp"] == [
                {"v": 0}
            ]
            assert sorted(result.row["v"] for result in engine.query("q").results()) == sorted(set(seconds) - set(late))
            assert engine.worst("s") == (timedelta(seconds=21, microseconds=-1) if late else None)
    with Engine(spark) as engine, pytest.raises(UserError, match="no-replay"):
        engine.replay()


def test_the_clock_of_a_replay_does_not_go_back() -> None:
    clock = ReplayClock()
    assert (clock.now_us(), clock.date_us()) == (0, None)
    shown = []
    for date_us in (1_000, 5_000, 2_000, None, 7_000):
        clock.show(date_us)
        shown.append((clock.now_us(), clock.date_us()))
    assert shown == [(0, 1_000), (4_000, 5_000), (4_000, 5_000), (4_000, 5_000), (6_000, 7_000)]
