"""Levels of consistency, through CQL: what a query says of itself, what is kept, and what its sinks get."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tools.duck_engine import engine_on_duckdb, killed, without_spark

from headgate import Engine, ManualClock
from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query
from headgate.compile import compile_query, compile_script, explanation
from headgate.schedule import early as early_answers
from headgate.settings import TokenPeriod

STREAMS = "CREATE STREAM a (k INT, x INT) DISORDER 1000; CREATE STREAM b (k INT, y INT) DISORDER 1000;"
QUERY = (
    "SELECT o.k, o.x, c.y FROM (SELECT a.k, a.x FROM a [RANGE 50], b [RANGE 50] WHERE a.k = b.k) o, b [RANGE 50] c "
    "WHERE o.k = c.k EMIT EARLY"
)

JOINS = (
    "SELECT l.k FROM (SELECT a.k FROM a [RANGE 4], b [RANGE 4] WHERE a.k = b.k) l, "
    "(SELECT a.k FROM a [RANGE 3], b [RANGE 3] WHERE a.k = b.k) r WHERE l.k = r.k EMIT EARLY"
)
"""Its answer reads no stream itself, so that tuples leave the logs when the windows have passed them."""


def compiled(settings: str, text: str = QUERY) -> tuple[Query, Catalog]:
    catalog = Catalog()
    (query,) = [
        one
        for one in compile_script(f"{settings}; {STREAMS} CREATE QUERY q AS {text}", catalog)
        if isinstance(one, Query)
    ]
    return query, catalog


@pytest.mark.parametrize(
    "settings, parts, said",
    [
        ("SET range = 'closed'", 2, "input-prefix, by draining: 2 stages run in turn"),
        ("SET consistency = 'synchronized'", 2, "synchronized, by draining: 2 stages run in turn"),
        ("SET consistency_method = 'fused'", 1, "input-prefix consistent by construction: one fragment"),
        (
            "SET consistency_method = 'fused'; SET consistency = 'synchronized'",
            1,
            "by construction, cut at the last instant that every stream",
        ),
        ("SET consistency_method = 'fused'", 1, "costs more than draining"),
        ("SET consistency = 'none'", 2, "none: 2 stages run side by side"),
        ("SET consistency_method = 'heeding'", 2, "input-prefix, by heeding: 2 stages run side by side"),
        ("SET consistency_method = 'tokens'", 2, "input-prefix, by tokens (latency 1 seconds)"),
        ("SET consistency_method = 'heeding'; SET inconsistent = 'mark'", 2, "others are given, and marked"),
    ],
)
def test_explain_says_which_level_a_plan_has(settings: str, parts: int, said: str) -> None:
    query, catalog = compiled(settings)
    assert len(compile_query(query, catalog)) == parts
    text = explanation(query, catalog)
    assert said in text
    assert "settled answers are synchronized by construction" in text


def test_a_plan_of_one_stage_is_one_fragment() -> None:
    query, catalog = compiled("SET range = 'closed'", "SELECT a.k FROM a [NOW], b [NOW] WHERE a.k = b.k EMIT EARLY")
    assert len(compile_query(query, catalog)) == 1
    said = explanation(query, catalog)
    assert "by construction: one fragment" in said
    assert "costs more" not in said


@pytest.mark.parametrize(
    "settings, groups",
    [("SET range = 'closed'", 3), ("SET consistency_method = 'fused'", 3), ("SET consistency = 'none'", 0)],
)
def test_a_query_by_groups_of_sources_is_not_cut_to_be_drained(settings: str, groups: int) -> None:
    catalog = Catalog()
    text = (
        "CREATE STREAM s (dev STRING, v INT) SOURCE BY dev; GROUPS OF s ('a'), ('b');"
        "CREATE QUERY q AS SELECT o.dev, o.v, c.n FROM s [RANGE 9] o, "
        "(SELECT dev, COUNT(*) AS n FROM s [RANGE 9] GROUP BY dev) c WHERE o.dev = c.dev EMIT EARLY"
    )
    query = compile_script(f"{settings}; {text}", catalog)[-1]
    assert isinstance(query, Query)
    assert len(query.by_groups) == groups
    assert len(compile_query(query, catalog)) == (groups or 2)


def test_arithmetic_over_queries_may_be_early() -> None:
    query, _ = compiled("SET range = 'closed'", "(SELECT COUNT(*) FROM a) * (SELECT COUNT(*) FROM b) EMIT EARLY")
    assert query.early is not None


def test_a_level_costs_a_query_without_early_answers_nothing() -> None:
    query, catalog = compiled("SET consistency = 'none'", QUERY.removesuffix(" EMIT EARLY"))
    assert len(compile_query(query, catalog)) == 1
    said = explanation(query, catalog)
    assert "settled answers are synchronized by construction: all inputs up to one instant; it costs nothing" in said
    assert "early answers" not in said


def test_the_period_of_tokens() -> None:
    found = [
        compiled(f"SET token_period = '{said}'")[0].early for said in ("2 seconds", "latency 1 minute", "throughput 7")
    ]
    assert [one.tokens for one in found if one is not None] == [
        TokenPeriod(2_000_000, None),
        TokenPeriod(latency_us=60_000_000),
        TokenPeriod(latency_us=None, throughput=7),
    ]


@pytest.mark.parametrize("method", ["draining", "heeding", "heeding-scan", "tokens"])
def test_an_answer_reflects_what_is_settled_and_gone(method: str) -> None:
    """Tuples that came after the last early answer, and that no window holds any more, are in the label of the next."""
    clock = ManualClock()
    with without_spark(), engine_on_duckdb(clock=clock) as engine:
        engine.execute(f"SET consistency_method = '{method}'; {STREAMS} CREATE QUERY q AS {JOINS} EVERY 1 SECOND")
        engine.push("a", [(1, (1, 10))])
        engine.step()
        engine.push("b", [(2, (1, 20))])
        engine.punctuate("a", 500)
        engine.punctuate("b", 500)
        for _ in range(4):
            engine.step()  # it is not yet time for another early answer
        clock.move_by(1_000_000)
        engine.step()
        answer = engine.query("q").early()
        assert answer is not None
        assert (dict(answer.tuples), answer.consistent, answer.results) == ({"a": 1, "b": 1}, True, [])


def test_a_level_is_kept_with_its_query(tmp_path: Path) -> None:
    with without_spark():
        engine = engine_on_duckdb(tmp_path)
        engine.execute(
            f"SET consistency = 'none'; {STREAMS} CREATE QUERY q AS {QUERY}; SET consistency = 'synchronized'"
        )
        engine.push("a", [(1, (1, 10))])
        engine.push("b", [(2, (1, 20))])
        engine.step()
        engine = killed(engine, tmp_path)
        early = engine.query("q").early_answers
        assert early is not None
        assert early.early.level == "none"
        assert early.stages is not None
        engine.step()
        answer = engine.query("q").early()
        assert answer is not None
        assert [str(one) for one in answer.results] == ["~ 2 + k=1, x=10, y=20"]
        assert len(list(tmp_path.rglob(".early/*.parquet"))) == 1, "what the engine before had put out early is gone"
        engine.close()


def test_heartbeats_that_settle_more_than_a_stage_has_taken_void_what_it_put_out() -> None:
    """An early answer that was computed without a tuple which is settled by now would take away what is not there."""
    with without_spark(), engine_on_duckdb() as engine:
        engine.execute(
            "CREATE STREAM s (k STRING) DISORDER 1000;"
            "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 100] GROUP BY k EMIT EARLY EVERY 1 HOUR"
        )
        engine.push("s", [(5, ("a",)), (11, ("a",))])
        engine.step()
        query = engine.query("q")
        answer = query.early()
        assert answer is not None
        assert [str(one) for one in answer.results] == ["~ 5 + k=a, n=1", "~ 11 - k=a, n=1", "~ 11 + k=a, n=2"]
        engine.push("s", [(8, ("a",))])
        engine.punctuate("s", 10)
        engine.step()
        assert [str(one) for one in query.results()] == ["5 + k=a, n=1", "8 - k=a, n=1", "8 + k=a, n=2"]
        answer = query.early()
        assert answer is not None
        assert answer.results == [], "one at 11 that takes away a count of 1 would be wrong"
        assert (answer.upto, dict(answer.tuples)) == (10, {"s": 3}), "nothing is known beyond what is settled"


def test_a_query_over_what_it_does_not_see_comes_to_rest() -> None:
    with without_spark(), engine_on_duckdb() as engine:
        engine.execute(f"{STREAMS} SET consistency_method = 'tokens'; CREATE QUERY other AS {QUERY}")
        engine.push("a", [(1, (1, 10))])
        engine.push("b", [(2, (1, 20))])
        engine.advance(5)
        engine.execute(f"CREATE QUERY q AS {QUERY}")
        engine.step()
        assert engine._core.loop.next_early_us() is None
        engine.push("b", [(7, (1, 30))])
        engine.step()
        engine.step()
        assert engine._core.loop.next_early_us() is None
        answer = engine.query("q").early()
        assert answer is not None
        assert answer.results == [], "a has a tuple that the query does not see"


def test_a_synchronized_answer_ends_where_every_stream_has_come() -> None:
    with without_spark(), engine_on_duckdb() as engine:
        engine.execute(
            f"SET consistency = 'synchronized'; {STREAMS}"
            "CREATE QUERY q AS SELECT k FROM a [RANGE 50] UNION ALL SELECT k FROM b [RANGE 50] EMIT EARLY"
        )
        engine.push("a", [(1, (1, 1)), (9, (2, 1))])
        engine.step()
        answer = engine.query("q").early()
        assert answer is None or not answer.results
        engine.push("b", [(5, (3, 1))])
        engine.step()
        answer = engine.query("q").early()
        assert answer is not None
        assert [str(one) for one in answer.results] == ["~ 1 + k=1", "~ 5 + k=3"]
        assert answer.upto == 5


def test_what_lies_between_stages_may_be_more_than_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_answers, "MOST_ROWS", 3)
    with without_spark(), engine_on_duckdb() as engine:
        told: list[str] = []
        engine._core.loop.tell = told.append
        engine.execute(
            f"{STREAMS} CREATE QUERY q AS SELECT c.y, COUNT(*) AS n FROM "
            "(SELECT a.k, a.x FROM a [RANGE 50], b [RANGE 50] WHERE a.k = b.k) o, b [RANGE 50] c WHERE o.k = c.k "
            "GROUP BY c.y EMIT EARLY"
        )
        engine.push("b", [(2, (1, 20))])
        for x in range(6):  # one more pair in each turn, which all stand for one row of the answer
            engine.push("a", [(1, (1, x))])
            engine.step()
            answer = engine.query("q").early()
            assert answer is not None
            assert [str(one) for one in answer.results] == [f"~ 2 + y=20, n={x + 1}"]
            assert answer.tuples == {"a": x + 1, "b": 1}
        engine.step()
        assert engine._core.loop.next_early_us() is None
        assert not told
        engine.advance(5)
        assert [str(one) for one in engine.query("q").results()] == ["2 + y=20, n=6"]


def test_stages_on_spark(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(
            f"SET consistency_method = 'heeding'; SET inconsistent = 'mark'; {STREAMS} CREATE QUERY q AS {QUERY}"
        )
        engine.push("a", [(1, (1, 10))])
        engine.push("b", [(2, (1, 20))])
        engine.step()
        engine.push("b", [(3, (1, 30))])
        engine.step()
        answer = engine.query("q").early()
        assert answer is not None
        assert (answer.consistent, len(answer.results)) == (False, 2), "b has come on one path, and not on the other"
        engine.step()
        answer = engine.query("q").early()
        assert answer is not None
        assert (answer.consistent, len(answer.results)) == (True, 4)
        assert answer.tuples == {"a": 1, "b": 2}
        engine.advance(10)
        assert len(engine.query("q").results()) == 4
