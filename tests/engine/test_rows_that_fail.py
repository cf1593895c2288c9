"""Rows that cannot be evaluated: what ON ERROR SKIP leaves out, what it keeps of them, and what comes and goes with it.

What only this file can catch: an optimizer of Spark's that evaluates what may fail where nothing catches its error. The
laws (test_skip_laws) run mostly in DuckDB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tools.as_sql import sql as as_sql
from tools.duck_engine import engine_on_duckdb, killed, without_spark

from headgate import Engine
from headgate.cql.infallible import cannot_fail
from headgate.errors import UserError

STREAM = "CREATE STREAM s (k STRING, g STRING, n BIGINT)"
ROWS = [
    (1, ("1", "a", 1)),
    (2, ("x", "a", 2)),
    (3, ("3", "b", 3)),
    (4, (None, "a", None)),
    (5, ("2", "b", 2)),
    (6, ("99999999999", "a", 6)),
    (7, ("7", "a", 1)),
]
BIG = 4_000_000_000_000_000_000

ANSWERS: dict[str, tuple[str, list[tuple[Any, ...]], int]] = {
    "twice": (
        "SELECT ISTREAM(CAST(k AS INT) AS v, CAST(k AS INT) + 1 AS w) FROM s [NOW]",
        [(1, 1, 2), (3, 3, 4), (4, None, None), (5, 2, 3), (7, 7, 8)],
        2,
    ),
    "filtered": (
        "SELECT ISTREAM(k) FROM s [NOW] WHERE CAST(k AS INT) > 1 AND CAST(k AS INT) < 7",
        [(3, "3"), (5, "2")],
        2,
    ),
    "chosen": (
        "SELECT ISTREAM(CASE WHEN g = 'b' THEN CAST(k AS INT) ELSE 0 END AS v, n) FROM s [NOW]",
        [(1, 0, 1), (2, 0, 2), (3, 3, 3), (4, 0, None), (5, 2, 2), (6, 0, 6), (7, 0, 1)],
        0,
    ),
    "constant": ("SELECT ISTREAM(CAST('x' AS INT) AS v) FROM s [NOW]", [], 7),
    "json": ("SELECT ISTREAM(FROM_JSON(k, 'a INT').a AS v, TO_DATE(k) AS d) FROM s [NOW]", [(4, None, None)], 6),
    "keyed": (
        "SELECT ISTREAM(CAST(k AS INT) % 2 AS odd, SUM(CAST(k AS INT)) AS t) FROM s [NOW] GROUP BY CAST(k AS INT) % 2",
        [(1, 1, 1), (3, 1, 3), (4, None, None), (5, 0, 2), (7, 1, 7)],
        2,
    ),
    "given": (
        "SELECT ISTREAM(g, SUM(CAST(k AS INT)) FILTER (WHERE n = 3) AS t, COUNT(*) AS c) FROM s [NOW] GROUP BY g",
        [(1, "a", None, 1), (3, "b", 3, 1), (4, "a", None, 1), (5, "b", None, 1), (6, "a", None, 1)],  # 2 is as 1
        0,
    ),
    "wide": (
        f"SELECT ISTREAM(g, SUM(n * {BIG}) AS t, AVG(n * {BIG}) AS a) FROM s [RANGE 1] GROUP BY g",
        [
            (1, "a", BIG, BIG),
            (3, "a", 2 * BIG, 2 * BIG),
            (4, "a", None, None),
            (5, "b", 2 * BIG, 2 * BIG),
            (7, "a", BIG, BIG),
        ],
        3,  # two products, and the group at 2, whose sum is no BIGINT
    ),
    "paired": (
        "SELECT ISTREAM(a.k, b.n) FROM s [NOW] a, s [RANGE 3] b WHERE a.k = b.n AND CAST(b.k AS INT) > 0",
        [(1, "1", 1), (3, "3", 3), (5, "2", 2)],
        -1,
    ),
    "ranked": (
        "SELECT ISTREAM(k, RANK() OVER (PARTITION BY CAST(k AS INT) % 2 ORDER BY CAST(k AS INT)) AS r) FROM s [NOW]",
        [(1, "1", 1), (3, "3", 1), (4, None, 1), (5, "2", 1), (7, "7", 1)],
        2,
    ),
    "exploded": (
        "SELECT ISTREAM(x) FROM s [NOW] LATERAL VIEW EXPLODE(SEQUENCE(1, CAST(k AS INT))) e AS x",
        [(1, 1), *((3, x) for x in (1, 2, 3)), *((5, x) for x in (1, 2)), *((7, x) for x in range(1, 8))],
        2,
    ),
    "final": (
        "SELECT ELEMENT_TIME / 2 AS h, SUM(CAST(k AS INT)) AS t FROM s GROUP BY ELEMENT_TIME / 2 EMIT FINAL",
        [(2, 0, 1), (4, 1, 3), (6, 2, 2)],
        1,  # the other row belongs to a group that is not final
    ),
    "nested": (
        "SELECT ISTREAM(v * 1000000000 AS w) FROM (SELECT CAST(k AS INT) AS v FROM s [NOW]) x WHERE v > 0",
        [(1, 1_000_000_000), (5, 2_000_000_000)],
        4,
    ),
}


def told(engine: Engine, name: str) -> Counter[tuple[Any, ...]]:
    return Counter((one.at, *one.row.values()) for one in engine.query(name).results())


@pytest.mark.spark
@pytest.mark.parametrize("way", ["small epochs", "one small epoch", "one large epoch"])
def test_what_spark_leaves_out(spark: SparkSession, way: str) -> None:
    with Engine(spark, partitions=2 if way == "one large epoch" else None) as engine:
        engine.execute(STREAM)
        for name, (query, _, _) in ANSWERS.items():
            engine.execute(f"CREATE QUERY {name} AS {query} ON ERROR SKIP")
        for rows in [[row] for row in ROWS] if way == "small epochs" else [ROWS]:
            engine.push("s", rows)
            engine.advance(rows[-1][0])
        for name, (_, answers, left_out) in ANSWERS.items():
            assert told(engine, name) == Counter(answers), name
            if left_out:
                found = engine.query(f"errors({name})").count
                assert found == left_out or left_out < 0, (name, engine.query(f"errors({name})").results())
        first, *_ = engine.errors("twice")
        assert first["row"] == '{"k":"x","g":"a","n":2}'
        assert first["expression"] == "CAST(k AS INT), CAST(k AS INT) + 1"
        assert first["error"].startswith("[CAST_INVALID_INPUT] The value 'x' of the type \"STRING\"")


@pytest.mark.spark
def test_what_spark_leaves_out_of_many_rows(spark: SparkSession) -> None:
    """So many rows that Spark compiles what it evaluates."""
    rows = [(at, (str(at) if at % 3 else f"x{at}", "a", at)) for at in range(1, 9_001)]
    with Engine(spark) as engine:
        engine.execute(STREAM)
        text = "SELECT ISTREAM(CAST(k AS INT) AS v, CAST(k AS INT) + n AS w, CAST(k AS INT) % 5 AS p) FROM s [NOW]"
        engine.execute(f"CREATE QUERY q AS {text} WHERE CAST(k AS INT) % 7 > 0 ON ERROR SKIP")
        engine.execute(
            "CREATE QUERY t AS SELECT COUNT(*) AS n, MAX(CAST(k AS INT)) AS m FROM s [RANGE 9000] ON ERROR SKIP"
        )
        engine.push("s", rows)
        engine.advance(9_000)
        assert engine.query("q").count == sum(1 for at in range(1, 9_001) if at % 3 and at % 7)
        assert engine.query("errors(q)").count == engine.query("errors(t)").count == 3_000
        assert engine.query("t").results()[-1].row == {"n": 6_000, "m": 8_999}


# without Spark


@pytest.fixture
def duck() -> Iterator[None]:
    with without_spark():
        yield


NUMBERS = "CREATE STREAM s (k INT, g STRING);"
SKIPS = "CREATE QUERY q AS SELECT ISTREAM(k * 1000000000 AS v) FROM s [NOW] ON ERROR SKIP;"


def test_errors_are_a_stream_that_queries_read(duck: None) -> None:
    with engine_on_duckdb() as engine:
        engine.execute(NUMBERS + SKIPS)
        engine.execute(
            "CREATE QUERY counted AS SELECT COUNT(*) AS n FROM ERRORS(q) [RANGE 2];"
            "CREATE QUERY named AS SELECT ISTREAM(errors.row, e.operator) FROM ERRORS(q) [NOW] errors, ERRORS(q) [NOW] e"
        )
        engine.push("s", [(1, (1, "a")), (2, (3, "a")), (2, (3, "a")), (3, (5, "b"))])
        engine.advance(9)
        counts = [(one.at, one.sign, one.row["n"]) for one in engine.query("counted").results() if one.sign == "+"]
        assert counts == [(0, "+", 0), (2, "+", 2), (3, "+", 3), (5, "+", 1), (6, "+", 0)]
        assert engine.query("named").count == 5, "two equal rows of one instant are two"
        with pytest.raises(UserError, match="cannot be dropped while it is read"):
            engine.execute("DROP QUERY q")
        with pytest.raises(UserError, match="cannot be altered while it is read"):
            engine.execute("ALTER QUERY q AS SELECT k FROM s [NOW]")
        engine.execute("DROP QUERY counted; DROP QUERY named; DROP QUERY q")
        assert not engine.queries()


def test_what_is_left_out_is_kept_over_a_crash(duck: None, tmp_path: Path) -> None:
    engine = engine_on_duckdb(tmp_path / "state")
    engine.execute(NUMBERS + SKIPS)
    engine.push("s", [(1, (3, "a")), (2, (1, "a"))])
    engine.advance(2)
    with killed(engine, tmp_path / "state") as engine:
        engine.push("s", [(3, (4, "b"))])
        engine.advance(3)
        assert [one.row["row"] for one in engine.query("errors(q)").results()] == ['{"k":3,"g":"a"}', '{"k":4,"g":"b"}']
        assert "2 rows were left out" in str(engine.query("q").why())
        engine.execute("ALTER QUERY q AS SELECT ISTREAM(k + 2147483640 AS v) FROM s [NOW] ON ERROR SKIP")
        engine.push("s", [(4, (9, "c")), (5, (1, "c"))])
        engine.advance(5)
        assert [one.row["row"] for one in engine.query("errors(q)").results()] == ['{"k":9,"g":"c"}']
        again = engine
    with engine_on_duckdb(tmp_path / "state") as again:
        assert again.query("errors(q)").count == 1
        again.execute("ALTER QUERY q AS SELECT ISTREAM(k + 1 AS v) FROM s [NOW] ON ERROR STOP")
        assert [query.name for query in again.queries()] == ["q"]
    with engine_on_duckdb(tmp_path / "state") as again:
        assert [query.name for query in again.queries()] == ["q"]
        again.execute("DROP QUERY q")
    with engine_on_duckdb(tmp_path / "state") as again:
        assert not again.queries()


def test_only_the_last_rows_are_kept(duck: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.engine.registry.KEPT_ERRORS", 3)
    monkeypatch.setattr("headgate.log.log.MERGE_AT", 100)
    with engine_on_duckdb() as engine:
        engine.execute(NUMBERS + SKIPS)
        for at in range(1, 8):
            engine.push("s", [(at, (3 + at, "a"))])
            engine.advance(at)
        assert [one.at for one in engine.query("errors(q)").results()] == [5, 6, 7]
        assert engine.query("q").why().skipped == 7
        tables, upto = engine.query("errors(q)").page(0, 2)
        assert ([row["_time"] for table in tables for row in table.to_pylist()], upto) == ([5, 6], 6)


def test_with_families_early_answers_views_and_groups(duck: None) -> None:
    with engine_on_duckdb() as engine:
        engine.execute(NUMBERS + "CREATE RELATION limits (name STRING, least INT);")
        engine.execute(
            "CREATE QUERIES f FOR EACH ROW OF limits AS "
            "SELECT ISTREAM(s.k * limits.least AS v) FROM s [NOW] WHERE s.k > 0 ON ERROR SKIP;"
            "CREATE VIEW v AS SELECT k * 1000000000 AS w, g FROM s [RANGE 2];"
            "CREATE QUERY e AS SELECT g, MAX(w) AS m FROM v GROUP BY g EMIT EARLY ON ERROR SKIP;"
        )
        for number in range(6):  # of one shape: with STOP, they would be one family
            engine.execute(
                f"CREATE QUERY a{number} AS SELECT ISTREAM(k * 1000000000 + {number} AS v) FROM s [NOW] ON ERROR SKIP"
            )
        engine.push("limits", [(0, ("one", 1)), (0, ("many", 2_000_000_000))])
        engine.push("s", [(1, (1, "a")), (2, (2, "a")), (3, (3, "b"))])
        engine.step()
        early = engine.query("e").early_answers
        assert early is not None
        assert early.trouble is None
        engine.advance(5)
        members = sorted((one.at, one.row["v"]) for one in engine.query("f").results())
        assert members == [(1, 1), (1, 2_000_000_000), (2, 2), (3, 3)]
        assert engine.query("errors(f)").count == 2
        assert {one.row["m"] for one in engine.query("e").results()} == {1_000_000_000, 2_000_000_000}
        assert engine.query("errors(e)").count == 1
        assert [one.row["v"] for one in engine.query("a5").results()] == [1_000_000_005, 2_000_000_005]
        assert engine.query("errors(a5)").count == 1


def test_what_cannot_fail_stays_as_it_is(duck: None) -> None:
    with engine_on_duckdb() as engine:
        engine.execute(
            NUMBERS + "CREATE QUERY q AS SELECT g, COUNT(*) AS n FROM s [RANGE 5] WHERE k > 1 GROUP BY g ON ERROR SKIP"
        )
        query = engine.query("q").definition
        assert (query.skips, query.left_out, query.rules) == (True, (), ())
        assert "-- on error skip\nnothing in it can fail" in engine.query("q").explain()
        with pytest.raises(UserError, match='nothing in query "q" can fail'):
            engine.execute("SELECT * FROM ERRORS(q)")


@pytest.mark.parametrize(
    ("sql", "safe"),
    [
        ("a", True),
        ("a = b", True),
        ("a > 1 AND k = 'x' OR k IS NULL", True),
        ("k = 5", False),
        ("CAST(k AS INT)", False),
        ("TRY_CAST(k AS INT)", True),
        ("CAST(a AS BIGINT)", True),
        ("CAST(b AS INT)", False),
        ("CAST(a AS STRING)", True),
        ("a + 1", False),
        ("d * d", True),
        ("d * a", False),
        ("a % 60", True),
        ("a - a % 60", True),
        ("a - b % 60", False),
        ("a DIV 60", True),
        ("a DIV -1", False),
        ("DATE_TRUNC('MINUTE', at)", True),
        ("CASE WHEN a > 1 THEN k END", True),
        ("CASE WHEN a > 1 THEN k ELSE 1 END", False),
        ("k IN ('a', 'b')", True),
        ("a IN ('x')", False),
        ("COALESCE(k, '')", True),
        ("COALESCE(a, CAST(k AS INT))", False),
        ("k LIKE 'a%'", True),
        ("'abc' LIKE k", False),
        ("mine(a)", False),
    ],
)
def test_which_expressions_cannot_fail(sql: str, safe: bool) -> None:
    types = {"k": "STRING", "a": "INT", "b": "BIGINT", "d": "DOUBLE", "at": "TIMESTAMP"}
    assert cannot_fail(sql, {name: as_sql(kind) for name, kind in types.items()}) is safe


def test_over_spark_connect_it_is_refused(duck: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine_on_duckdb() as engine:
        engine.execute(NUMBERS)
        with monkeypatch.context() as connected:
            connected.setattr("headgate.execute.workspaces.Workspaces.walled", False)
            with pytest.raises(UserError, match="cannot skip errors over Spark Connect"):
                engine.execute(SKIPS)
            assert not engine.catalog.queries
        engine.execute(SKIPS)
        assert len(engine.queries()) == 2


TWO_STREAMS = "CREATE STREAM s (k INT, g STRING); CREATE STREAM t (v INT, g STRING);"
SHARING = {
    "a": "SELECT g, MAX(k * 1000000000) AS m, COUNT(*) AS c FROM s [RANGE 4 SLIDE 2] GROUP BY g",
    "b": "SELECT ISTREAM(x.k, y.v) FROM s [NOW] x, t [RANGE 3] y WHERE x.g = y.g AND x.k * 1000000000 > y.v",
    "d": "SELECT DISTINCT g, k * 1000000000 AS w FROM s [RANGE 3]",
}


@pytest.mark.parametrize("setting", ["", "SET low_level = 'on';"])
def test_beside_queries_that_share(duck: None, tmp_path: Path, setting: str) -> None:
    """Queries come, change and go with what they leave out, in one line of the journal, also where parts are shared."""

    def fed(engine: Engine, first: int) -> None:
        for at in range(first, first + 3):
            engine.push("s", [(at, (at % 5, "ab"[at % 2])), (at, (2, "a"))])
            engine.push("t", [(at, (at % 3, "ab"[at % 2])), (at, (1, "a"))])
            engine.advance(at)

    def all_results(engine: Engine) -> dict[str, Counter[str]]:
        return {
            one.name: Counter(f"{each.at} {each.sign} {each.row}" for each in one.results()) for one in engine.queries()
        }

    found: list[dict[str, Counter[str]]] = []
    for said in (setting, "SET sharing = 'off';"):
        directory = tmp_path / f"state-{len(found)}"
        engine = engine_on_duckdb(directory)
        engine.execute(said + TWO_STREAMS)
        for number in "12":
            for name, query in SHARING.items():
                engine.execute(f"CREATE QUERY {name}{number} AS {query} ON ERROR SKIP")
        fed(engine, 1)
        with killed(engine, directory) as engine:
            fed(engine, 4)
            for name, query in SHARING.items():
                engine.execute(f"ALTER QUERY {name}1 AS {query} ON ERROR SKIP")
            engine.execute("DROP QUERY b2; DROP QUERY d2")
            fed(engine, 7)
        with engine_on_duckdb(directory) as engine:
            fed(engine, 10)
            found.append(all_results(engine))
    assert found[0] == found[1]
    assert len(found[0]) == 8
    assert all(found[0].values())
