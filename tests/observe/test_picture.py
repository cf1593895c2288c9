"""Pictures of queries: which rows are read and shown, and what is said of a query. No JVM."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from tools.duck_engine import engine_on_duckdb, without_spark
from tools.no_spark import NoSpark

from headgate import Engine, ManualClock, UserError
from headgate.observe import picture as module
from headgate.observe.overview import SHOWN, shown
from headgate.observe.picture import Current, Lately, drawn, glance
from headgate.schedule.query import RunningQuery


@pytest.fixture
def engine() -> Iterator[Engine]:
    with without_spark(), engine_on_duckdb() as made:
        made.execute(
            """CREATE STREAM s (k STRING, v INT);
            CREATE QUERY largest AS SELECT k, MAX(v) AS v FROM s [RANGE UNBOUNDED] GROUP BY k;
            CREATE QUERY all_of_it AS SELECT ISTREAM(k, v) FROM s [RANGE UNBOUNDED]"""
        )
        yield made


def feed(engine: Engine, rows: list[tuple[int, tuple[str, int]]]) -> None:
    engine.push("s", rows)
    engine.advance(rows[-1][0])


def read(rows: Lately | Current) -> Lately | Current:
    rows.read()
    return rows


def test_the_last_results_come_newest_first(engine: Engine) -> None:
    query = engine.query("all_of_it")
    rows = Lately(query, 2)
    assert str(read(rows).table()) == "_time  k  v\nno results"
    feed(engine, [(1, ("a", 1)), (2, ("b", 2)), (3, ("c", 3))])
    rows.read()
    assert rows.table().rows == (("3", "c", "3"), ("2", "b", "2"))
    assert ([result.at for result in rows.fresh], rows.passed) == ([2, 3], 1)
    feed(engine, [(4, ("d", 4))])
    rows.read()
    assert rows.table().rows == (("4", "d", "4"), ("3", "c", "3"))
    assert ([result.at for result in rows.fresh], rows.passed) == ([4], 0)
    rows.read()
    assert (rows.fresh, rows.passed, rows.behind) == ([], 0, 0)


def test_results_that_nobody_sees_are_not_read(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    query = engine.query("all_of_it")
    feed(engine, [(instant, (str(instant), instant)) for instant in range(1, 101)])
    asked, page = list[int](), RunningQuery.page

    def noted(self: RunningQuery, after: int, most: int) -> tuple[list[pa.Table], int]:
        asked.append(after)
        return page(self, after, most)

    monkeypatch.setattr(RunningQuery, "page", noted)
    rows = read(Lately(query, 5))
    feed(engine, [(instant, (str(instant), instant)) for instant in range(101, 201)])
    rows.read()
    assert asked == [95, 195]


def test_a_relation_is_shown_as_it_is_now(engine: Engine) -> None:
    rows = Current(engine.query("largest"), 2)
    assert str(read(rows).table()) == "k  v\nno rows"
    feed(engine, [(1, ("c", 1)), (2, ("a", 2))])
    assert read(rows).table().rows == (("a", "2"), ("c", "1"))
    feed(engine, [(3, ("a", 9)), (4, ("b", 5)), (5, ("d", 1))])
    assert read(rows).table().rows == (("a", "9"), ("b", "5"))
    assert rows.table().below == "... and 2 more rows"


def test_a_long_history_is_read_in_steps(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE_ROWS", 4)
    query = engine.query("largest")
    feed(engine, [(instant, ("a", instant)) for instant in range(1, 5)])
    assert query.count == 7
    rows = Current(query, 5)
    rows.read()
    picture = drawn(query, query.why(), rows, 5)
    assert picture.lines[-1] == "3 results have yet to be read"
    rows.read()
    picture = drawn(query, query.why(), rows, 5)
    assert picture.lines[-1] == "nothing holds it back"
    assert picture.rows is not None
    assert picture.rows.rows == (("a", "4"),)


def test_of_a_large_relation_the_last_changes_are_shown(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 3)
    rows = Current(engine.query("largest"), 2)
    feed(engine, [(instant, (str(instant), instant)) for instant in range(1, 6)])
    shown = read(rows).table()
    assert shown.rows == (("5", "+", "5", "5"), ("4", "+", "4", "4"))
    assert shown.below == "more than 3 rows: the last changes, the newest first"
    feed(engine, [(6, ("6", 6))])
    assert read(rows).table().rows[0] == ("6", "+", "6", "6")
    assert rows.behind == 0


def test_a_picture_says_how_far_a_query_is_and_what_holds_it_back() -> None:
    clock = ManualClock()
    with without_spark(), engine_on_duckdb(clock=clock) as engine:
        engine.execute(
            """CREATE STREAM a (k INT); CREATE STREAM b (k INT);
            CREATE QUERY q AS SELECT ISTREAM(a.k) FROM a [RANGE 10], b [RANGE 10] WHERE a.k = b.k"""
        )
        engine.push("a", [(1, (1,)), (5, (2,))])
        engine.push("b", [(2, (1,))])
        clock.move_by(2_500_000)
        engine.step()
        picture = glance(engine.query("q"), engine.query("q").why())
        assert picture.title == "query q: stream, 0 results in 1 epoch"
        assert picture.lines[0] == "complete up to 1"
        assert picture.lines[1] == "held back by b, last heard of 2.5 s ago"
        assert picture.lines[2].startswith("because its last tuple that counts is stamped 2")
        assert picture.lines[3].startswith("released by ")
        assert picture.inputs.rows == (("a", "4", "speaking", "1"), ("b", "1", "speaking", "1"))
        assert str(picture).startswith("query q: stream")
        assert "<b>query q: stream, 0 results in 1 epoch</b>" in picture._repr_html_()


def test_what_has_failed_is_said(engine: Engine) -> None:
    query = engine.query("largest")
    query.trouble = UserError("query-failed", 'query "largest" failed', hint="Try this.")
    assert glance(query, query.why()).lines[-2:] == ('query-failed: query "largest" failed', "hint: Try this.")


def test_results_that_go_elsewhere_are_not_shown() -> None:
    with without_spark(), Engine(NoSpark(), clock=ManualClock(), default_sink="console") as engine:  # type: ignore[arg-type]
        engine.execute("CREATE STREAM s (k INT); CREATE QUERY q AS SELECT ISTREAM(k) FROM s [NOW]")
        picture = glance(engine.query("q"), engine.query("q").why())
        assert picture.rows is None
        assert picture.lines[-1] == "the results go to the console"
        assert picture.title == "query q: stream, 0 epochs"


def test_early_answers_are_shown_as_such() -> None:
    with without_spark(), engine_on_duckdb() as engine:
        engine.execute(
            """CREATE STREAM s (k STRING, v INT);
            CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k EMIT EARLY"""
        )
        engine.push("s", [(1, ("a", 1)), (5, ("b", 1))])
        engine.step()
        picture = glance(engine.query("q"), engine.query("q").why())
        assert picture.early is not None
        assert picture.early.rows == (("5", "+", "b", "1"),)
        assert picture.early.below == "early, up to 5: these changes may still be withdrawn"
        assert "may still be withdrawn" in str(picture)


def test_members_of_a_family_show_their_own_rows() -> None:
    with without_spark(), engine_on_duckdb() as engine:
        engine.execute("CREATE STREAM s (k INT)")
        engine.execute(
            ";".join(f"CREATE QUERY q{n} AS SELECT ISTREAM(k) FROM s [RANGE UNBOUNDED] WHERE k > {n}" for n in range(6))
        )
        query = engine.query("q4")
        assert query.shares_outbox
        engine.push("s", [(1, (3,)), (2, (5,))])
        engine.advance(2)
        picture = glance(query, query.why())
        assert picture.rows is not None
        assert picture.rows.rows == (("2", "5"),)
        assert picture.title == "query q4: stream, 1 epoch"


def test_queries_and_engines_show_themselves(engine: Engine) -> None:
    feed(engine, [(1, ("<script>alert(1)</script>", 1))])
    query = engine.query("all_of_it")
    html = query._repr_html_()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<script>" not in html
    assert "SELECT ISTREAM(k, v) FROM s [RANGE UNBOUNDED]" in html
    assert repr(engine) == "Engine(1 stream, 2 queries, not running)"
    assert str(engine) == (
        "Engine(1 stream, 2 queries, not running)\n\n"
        "stream  kind    tuples  complete up to  state\n"
        "s       stream  1       1               speaking\n\n"
        "query      kind      results  complete up to  state\n"
        "largest    relation  1        1               ok\n"
        "all_of_it  stream    1        1               ok"
    )
    assert ">all_of_it</td>" in engine._repr_html_()
    assert "&lt;script&gt;" in engine.snapshot("largest")._repr_html_()
    engine.close()
    assert repr(query) == "RunningQuery(all_of_it: has ended, complete up to 1)"
    assert query._repr_html_() == f"<div><b>{query!r}</b></div>"
    assert engine._repr_html_() == "<div><b>Engine(1 stream, 2 queries, closed)</b></div>"
    assert str(engine) == repr(engine)


def test_an_engine_lists_only_so_many() -> None:
    with without_spark(), engine_on_duckdb() as engine:
        engine.execute(";".join(f"CREATE STREAM s{n} (k INT)" for n in range(SHOWN + 3)))
        streams, queries = shown(engine.overview())
        assert len(streams.rows) == SHOWN
        assert streams.below == "... and 3 more"
        assert (queries.rows, queries.below) == ((), "")
        assert streams.rows[0] == ("s0", "stream", "0", "-", "nothing came yet")
