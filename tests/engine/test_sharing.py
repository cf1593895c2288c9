"""One plan for all queries: what their plans have in common is computed once, and everybody's answers stay the same."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate import Engine
from headgate.errors import UserError

STREAMS = """
CREATE STREAM s (t BIGINT, k STRING, v DOUBLE) TIMESTAMP BY t;
CREATE STREAM r (t BIGINT, k STRING, w INT) TIMESTAMP BY t;
"""
GROUPS = "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM s [RANGE 4] GROUP BY k"
PAIRS = "SELECT x.k AS k, y.w AS w FROM s [RANGE 4] x, r [RANGE 4] y WHERE x.k = y.k"


def shared(engine: Engine, query: str) -> list[str]:
    return [fragment.part.name for fragment in engine.query(query).shared]


def answers(engine: Engine, query: str) -> list[str]:
    return sorted(map(str, engine.query(query).results()))


def feed(engine: Engine, *instants: int) -> None:
    for instant in instants:
        engine.push("s", [(instant, "a", float(instant)), (instant, "b" if instant % 2 else "a", 0.5)])
        engine.push("r", [(instant, "a", instant), (instant, "b", -instant)])
        engine.advance(instant)


def alone(spark: SparkSession, queries: dict[str, str], *instants: int) -> dict[str, list[str]]:
    with Engine(spark) as engine:
        engine.execute(f"{STREAMS} SET sharing = 'off';")
        for name, text in queries.items():
            engine.execute(f"CREATE QUERY {name} AS {text}")
        feed(engine, *instants)
        assert not any(shared(engine, name) for name in queries)
        return {name: answers(engine, name) for name in queries}


def register(engine: Engine, queries: dict[str, str]) -> None:
    engine.execute(STREAMS)
    for name, text in queries.items():
        engine.execute(f"CREATE QUERY {name} AS {text}")


def test_equal_parts_of_queries_are_one(spark: SparkSession) -> None:
    queries = {
        "all_groups": GROUPS,
        "large": "SELECT k AS key, COUNT(*) AS many FROM s [RANGE 4] GROUP BY k HAVING COUNT(*) > 2",
        "coming": f"SELECT ISTREAM * FROM ({GROUPS}) g",
        "same": GROUPS.replace("AS n", "AS number"),
        "pairs": PAIRS,
        "sums": f"SELECT k, SUM(w) AS total FROM ({PAIRS}) p GROUP BY k",
    }
    with Engine(spark) as engine:
        register(engine, queries)
        read = {name: shared(engine, name) for name in queries}
        assert read["all_groups"] == read["coming"] == read["same"] != []
        assert read["pairs"] == read["sums"] != []
        assert read["large"] == [], "it has another aggregate"
        feed(engine, 1, 2, 3, 4, 7, 9)
        found = {name: answers(engine, name) for name in queries}
    assert found == alone(spark, queries, 1, 2, 3, 4, 7, 9)


def test_what_is_shared_may_read_what_is_shared(spark: SparkSession) -> None:
    sums = f"SELECT k, SUM(w) AS total FROM ({PAIRS}) p GROUP BY k"
    queries = {
        "low": f"{sums} HAVING SUM(w) < 10",
        "high": f"{sums} HAVING SUM(w) > 3",
        "pairs": PAIRS,
        "total": sums,
        "largest": f"SELECT MAX(w) AS top FROM ({PAIRS}) p",
    }
    with Engine(spark) as engine:
        register(engine, queries)
        for name in ("low", "high", "total"):
            assert shared(engine, name) == ["shared(2)", "shared(1)"], name
        assert shared(engine, "pairs") == shared(engine, "largest") == ["shared(2)"]
        feed(engine, 1, 2, 3, 4, 7, 9)
        found = {name: answers(engine, name) for name in queries}
        engine.execute("DROP QUERY low; DROP QUERY high; DROP QUERY total;")
        assert list(engine._registry.sharing.shared) == ["shared(2)"]
        engine.execute("DROP QUERY pairs; DROP QUERY largest;")
        assert not engine._registry.sharing.shared
    assert found == alone(spark, queries, 1, 2, 3, 4, 7, 9)


def test_a_shared_fragment_and_its_readers_run_in_one_turn(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        register(
            engine, {"a": GROUPS, "b": f"{GROUPS} HAVING COUNT(*) > 1", "c": f"SELECT ISTREAM * FROM ({GROUPS}) g"}
        )
        engine.push("s", [(1, "a", 1.0), (1, "a", 2.0)])
        engine.punctuate("s", 1)
        epochs = engine.step()
        assert sorted((epoch.query, epoch.part) for epoch in epochs) == [
            ("a", "answer"),
            ("a", "shared(1)"),
            ("b", "answer"),
            ("c", "answer"),
        ]
        assert [engine.query(name).complete for name in "abc"] == [1, 1, 1]


def test_a_query_that_comes_later_sees_only_what_comes_then(spark: SparkSession) -> None:
    queries = {"a": GROUPS, "b": GROUPS}
    with Engine(spark) as engine:
        register(engine, queries)
        feed(engine, 1, 2)
        engine.execute(f"CREATE QUERY late AS {GROUPS}; CREATE QUERY later AS {GROUPS}")
        assert shared(engine, "late") == shared(engine, "later") == ["shared(2)"]
        feed(engine, 3, 4, 9)
        found = {name: answers(engine, name) for name in ("a", "b", "late", "later")}
    with Engine(spark) as engine:
        engine.execute(f"{STREAMS} SET sharing = 'off'; CREATE QUERY a AS {GROUPS}")
        feed(engine, 1, 2)
        engine.execute(f"CREATE QUERY late AS {GROUPS}")
        feed(engine, 3, 4, 9)
        assert found["a"] == found["b"] == answers(engine, "a")
        assert found["late"] == found["later"] == answers(engine, "late") != found["a"]


def test_a_query_from_the_beginning_joins_while_the_log_is_whole(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(STREAMS)
        for name in ("a", "b"):
            engine.execute(f"CREATE QUERY {name} FROM BEGINNING AS {GROUPS}")
        engine.push("s", [(1, "a", 1.0), (2, "b", 2.0)])
        engine._core.loop.take(dict.fromkeys(("a", "b"), 2))  # a turn, and no tidying behind it
        engine.execute(f"CREATE QUERY c FROM BEGINNING AS {GROUPS}")
        assert shared(engine, "c") == ["shared(1)"]
        engine.advance(3)
        assert answers(engine, "c") == answers(engine, "a") != []


@pytest.mark.parametrize("setting", ["SET sharing = 'off'", "SET heartbeats = 'operator'"])
def test_who_does_not_share(spark: SparkSession, setting: str) -> None:
    with Engine(spark) as engine:
        engine.execute(f"{STREAMS} CREATE QUERY a AS {GROUPS}; {setting}; CREATE QUERY b AS {GROUPS}")
        assert shared(engine, "a") == shared(engine, "b") == []
        engine.execute(f"SET sharing = 'on'; SET heartbeats = 'query'; CREATE QUERY c AS {GROUPS}")
        assert shared(engine, "a") == shared(engine, "c") != []
        assert shared(engine, "b") == []


def test_functions_of_the_user_are_not_shared(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.register_function("twice", lambda v: 2 * v, "DOUBLE")
        text = "SELECT k, MAX(twice(v)) AS m FROM s [RANGE 4] GROUP BY k"
        register(engine, {"a": text, "b": text})
        assert shared(engine, "a") == shared(engine, "b") == []


def test_dropped_and_altered_readers_let_go(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark, tmp_path) as engine:
        register(engine, {"a": GROUPS, "b": GROUPS, "c": GROUPS})
        feed(engine, 1, 2)
        engine.execute("DROP QUERY a")
        feed(engine, 3)
        assert shared(engine, "b") == shared(engine, "c") == ["shared(1)"]
        engine.execute(f"ALTER QUERY b AS {GROUPS} HAVING COUNT(*) > 1")
        assert shared(engine, "b") == [], "it begins anew"
        engine.execute("DROP QUERY c")
        feed(engine, 4)
        assert not list((tmp_path / "shared").iterdir())
        assert engine.query("b").complete == 4


def test_a_restart_makes_the_same_plan(spark: SparkSession, tmp_path: Path) -> None:
    sums = f"SELECT k, SUM(w) AS total FROM ({PAIRS}) p GROUP BY k"
    queries = {"low": f"{sums} HAVING SUM(w) < 10", "total": sums, "pairs": PAIRS, "a": GROUPS, "b": GROUPS}
    with Engine(spark, tmp_path) as engine:
        register(engine, queries)
        before = {name: shared(engine, name) for name in queries}
        assert all(before.values())
        feed(engine, 1, 2)
    with Engine(spark, tmp_path) as engine:  # it reads a checkpoint
        assert {name: shared(engine, name) for name in queries} == before
        feed(engine, 3)
        engine._core.journal.close()  # as if it were killed
        engine._core.lock.release()
    with Engine(spark, tmp_path) as engine:  # it reads lines
        assert {name: shared(engine, name) for name in queries} == before
        engine.execute("DROP QUERY low; DROP QUERY a")
        feed(engine, 4)
        engine._core.journal.close()
        engine._core.lock.release()
    with Engine(spark, tmp_path) as engine:
        assert shared(engine, "total") == before["total"]
        feed(engine, 7, 9)
        found = {name: answers(engine, name) for name in ("total", "pairs", "b")}
        engine.execute(f"CREATE QUERY again AS {GROUPS}; CREATE QUERY once_more AS {GROUPS}")
        assert shared(engine, "again") == shared(engine, "once_more") == ["shared(4)"], "no name is used twice"
    expected = alone(spark, queries, 1, 2, 3, 4, 7, 9)
    assert found == {name: expected[name] for name in found}


def test_a_restart_before_anything_has_run(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark, tmp_path) as engine:
        register(engine, {"a": GROUPS})
    with Engine(spark, tmp_path) as engine:
        engine.execute(f"CREATE QUERY b AS {GROUPS}")
        assert shared(engine, "a") == shared(engine, "b") == ["shared(1)"]
    with Engine(spark, tmp_path) as engine:
        assert shared(engine, "a") == shared(engine, "b") == ["shared(1)"]
        feed(engine, 1, 2)
        assert answers(engine, "a") == answers(engine, "b") != []


def test_all_readers_say_that_what_they_share_has_failed(spark: SparkSession, tmp_path: Path) -> None:
    bad = "SELECT k, SUM(CAST(k AS INT)) AS total FROM s [RANGE 4] GROUP BY k"
    with Engine(spark, tmp_path) as engine:
        register(
            engine, {"a": bad, "b": f"{bad} HAVING COUNT(*) > 0 OR SUM(CAST(k AS INT)) > 1", "c": bad, "good": GROUPS}
        )
        assert shared(engine, "a") == shared(engine, "c") != []
        engine.push("s", [(1, "a", 1.0)])
        with pytest.raises(UserError) as raised:
            engine.advance(1)
        told = raised.value.render()
        for name in ("a", "c"):
            assert f'query "{name}" failed in the epoch' in told
            assert engine.query(name).failed
            assert engine.query(name).trouble is not None
        assert set(engine.troubles()["queries"]) >= {"a", "c"}
        assert engine.query("good").complete == 1
        engine.execute(f"ALTER QUERY c AS {GROUPS}; DROP QUERY b")
        with suppress(UserError):  # it may be time to restart it
            feed(engine, 2)
        assert engine.query("a").failed
        assert not engine.query("c").failed
        engine.execute("DROP QUERY a")
    with Engine(spark, tmp_path) as engine:
        feed(engine, 20)
        assert engine.query("c").complete == 20


def test_a_query_that_is_refused_leaves_the_others_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark, tmp_path) as engine:
        register(engine, {"a": GROUPS})
        with pytest.raises(UserError, match="refuses"):
            engine.execute(f"CREATE QUERY b AS SELECT CAST(g.n AS DATE) AS day FROM ({GROUPS}) g")
        assert shared(engine, "a") == []
        feed(engine, 1, 2)
        given = answers(engine, "a")
    with Engine(spark, tmp_path) as engine:
        assert answers(engine, "a") == given != []
        assert engine.query("a").complete == 2


def test_the_plan_is_drawn(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        register(
            engine, {"a": GROUPS, "b": f"SELECT ISTREAM * FROM ({GROUPS}) g", "c": "SELECT ISTREAM k FROM s [NOW]"}
        )
        feed(engine, 1, 2)
        (listing,) = engine.execute("SHOW PLAN")
        assert str(listing).splitlines() == [
            "plan",
            "stream s: 4 tuples, read by shared(1), query c",
            "stream r: 4 tuples, read by no query",
            "shared(1): complete up to 2, 4 elements, read by query a, query b",
            "  aggregate COUNT(*), MAX(v) by k",
            "  └─ window [range 4]",
            "     └─ stream s",
            "  keeps sums_1: one row for each k among what arrived in the last 4 units of time",
            "  keeps leaders_1: rows that can still be the largest or smallest, among what arrived in the last 4 units of time",
            "query a: complete up to 2, gives a relation",
            "  project k, c1 AS n, c2 AS m",
            "  └─ what shared(1) puts out",
            "query b: complete up to 2, gives a stream",
            "  istream",
            "  └─ project k, c1 AS n, c2 AS m",
            "     └─ what shared(1) puts out",
            "query c: complete up to 2, gives a stream",
            "  istream",
            "  └─ project k",
            "     └─ window [now]",
            "        └─ stream s",
        ]
        said = engine.query("a").explain()
        assert "-- shares\nshared(1): with b" in said


def test_traces_go_through_what_is_shared(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        register(engine, {"a": GROUPS, "b": GROUPS})
        for instant in (1, 2, 3):
            engine.push("s", [(instant, "a", 1.0)])
            engine.punctuate("s", instant)
            engine.step()
        for name in ("a", "b"):
            traces = engine.query(name).traces
            assert traces.fragments == ("shared(1)", name)
            assert {"shared(1)", name} <= traces.traces[-1].seen.keys()
            why: Any = engine.query(name).why()
            assert "s" in str(why)
