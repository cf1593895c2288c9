"""Other systems' bugs with time and state, each as a named case on a clock that is moved by hand."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate import Engine, ManualClock

pytestmark = pytest.mark.spark

SECOND = 1_000_000
TWO = "CREATE STREAM a (v INT); CREATE STREAM b (v INT); "
MERGED = "CREATE QUERY merged AS SELECT v FROM a UNION ALL SELECT v FROM b; "
COUNTED = "CREATE QUERY counted AS SELECT COUNT(*) AS n FROM a [RANGE 9 SLIDE 10]; "


class Play:
    """An engine with a clock of its own, and what a query has put out as (instant, sign, row)."""

    def __init__(self, spark: SparkSession, cql: str, date_us: int | None = None) -> None:
        self.clock = ManualClock(date_us=date_us)
        self.engine = Engine(spark, clock=self.clock)
        self.engine.execute(cql)

    def push(self, stream: str, *rows: tuple[Any, ...]) -> int:
        """Rows as (timestamp, value, ...)."""
        return self.engine.push(stream, [(instant, values) for instant, *values in rows])

    def step(self, seconds: float = 0) -> Any:
        """Let time pass, go as far as possible, and say how far the first query is."""
        self.clock.move_by(int(seconds * SECOND))
        self.engine.step()
        return self.engine.queries()[0].complete

    def found(self, query: str) -> list[tuple[Any, str, tuple[Any, ...]]]:
        return [(result.at, result.sign, tuple(result.row.values())) for result in self.engine.query(query).results()]

    def values(self, query: str) -> list[Any]:
        """The first column, in order of time; what comes at one instant has no order."""
        return [row[0] for _, _, row in sorted(self.found(query))]


def test_01_one_source_silent_for_ever_does_not_stop_the_others(spark: SparkSession) -> None:
    play = Play(spark, TWO + "TIMEOUT 5 SECONDS;" + MERGED)
    play.push("b", (1, 10))
    play.push("a", (1, 1), (3, 3))
    assert play.step() == 0
    assert "held back by b" in str(play.engine.query("merged").why())
    play.clock.move_by(4 * SECOND)
    play.push("a", (8, 8))
    assert play.step(1) == 7
    play.push("a", (20, 20))
    assert play.step(1) == 19
    assert play.values("merged") == [1, 10, 3, 8, 20], "nothing before 20 can still come"
    assert "silent" in str(play.engine.query("merged").why())


def test_01_by_a_skew_bound_it_needs_no_timeout(spark: SparkSession) -> None:
    play = Play(spark, TWO + "DISORDER OF a 0; DISORDER OF b 0; SKEW FROM a TO b (WITHIN 5);" + MERGED)
    play.push("a", (1, 1), (20, 20))
    assert play.step() == 15
    assert play.push("b", (16, 16)) == 1
    assert play.push("b", (15, 15)) == 0


def test_02_all_sources_silent_with_windows_pending(spark: SparkSession) -> None:
    play = Play(spark, TWO + "TIMEOUT 5 SECONDS;" + COUNTED)
    play.push("a", (1, 1), (2, 2), (20, 3))
    assert play.step() == 19
    assert play.step(5) == 20
    assert (20, "+", (1,)) in play.found("counted")


def test_03_a_source_that_never_sent_anything(spark: SparkSession) -> None:
    play = Play(spark, TWO + "TIMEOUT 5 SECONDS;" + MERGED)
    play.push("a", (1, 1), (2, 2))
    assert play.step() is None
    assert "nothing ever came" in str(play.engine.query("merged").why())
    assert play.step(5) == 2
    assert play.values("merged") == [1, 2]


def test_04_a_finished_source_is_not_an_idle_one(spark: SparkSession) -> None:
    play = Play(spark, TWO + MERGED)
    play.push("b", (1, 10))
    play.engine.finish("b")
    play.push("a", (5, 5))
    assert play.step() == 4
    assert play.push("a", (5, 6), (9, 9)) == 2, "nothing of the others is late because of the end of one"
    assert play.step() == 8
    assert play.values("merged") == [10, 5, 6, 9]


def test_05_the_order_in_which_sources_go_silent_changes_no_result(spark: SparkSession) -> None:
    answers = []
    for first, second in (("a", "b"), ("b", "a")):
        play = Play(
            spark,
            TWO + "CREATE STREAM c (v INT); TIMEOUT 5 SECONDS;"
            "CREATE QUERY merged AS SELECT v FROM a UNION ALL SELECT v FROM b UNION ALL SELECT v FROM c",
        )
        for name in "abc":
            play.push(name, (1, 1))
        play.clock.move_by(2 * SECOND)
        for name in (second, "c"):
            play.push(name, (4, 4))
        play.step(3)  # the first is silent
        play.push("c", (6, 6))
        play.step(4)  # and now the second
        assert play.engine.silent(first)
        assert play.engine.silent(second)
        play.push("c", (9, 9))
        play.step(5)
        answers.append((play.found("merged"), play.engine.query("merged").complete))
    assert answers[0] == answers[1]


def test_06_a_paused_reader_is_not_silent_and_nothing_of_it_is_late(spark: SparkSession) -> None:
    play = Play(
        spark, TWO + "TIMEOUT 5 SECONDS; DISORDER OF a 0; DISORDER OF b 0; SKEW FROM a TO b (WITHIN 2);" + MERGED
    )
    play.push("a", (3, 3))
    play.push("b", (2, 2))
    assert play.step() == 1
    play.engine.pause("b")
    play.push("a", (100, 100))
    assert play.step(60) == 1, "neither the timeout nor the skew bound passes what is not read"
    assert not play.engine.silent("b")
    assert "paused" in str(play.engine.query("merged").why())
    assert play.push("b", (4, 4), (99, 99)) == 2
    play.engine.resume("b")
    assert play.step() == 98
    assert play.engine.counts("b") == {"taken": 3}


def test_07_a_timeout_of_t_fires_at_t(spark: SparkSession) -> None:
    play = Play(spark, TWO + "TIMEOUT 10 SECONDS;" + MERGED)
    play.push("b", (1, 1))
    play.push("a", (1, 1))
    play.clock.move_by(3 * SECOND)
    play.push("a", (7, 7))
    play.clock.move_by(7 * SECOND - 1)
    assert play.step() == 0
    play.clock.move_by(1)
    assert play.step() == 6


def test_08_time_advances_when_every_tuple_is_filtered_out(spark: SparkSession) -> None:
    play = Play(
        spark,
        TWO + "CREATE QUERY none AS SELECT v FROM a WHERE v > 1000;"
        "CREATE QUERY closed AS SELECT COUNT(*) AS n FROM a [RANGE 4] WHERE v > 1000",
    )
    play.push("a", (1, 1), (50, 2))
    assert play.step() == 49
    assert play.engine.query("closed").complete == 49
    assert play.found("none") == []


def test_09_a_source_without_a_tuple_in_a_batch_keeps_its_progress(spark: SparkSession) -> None:
    play = Play(spark, TWO + MERGED)
    play.push("a", (10, 1))
    play.push("b", (10, 1))
    assert play.step() == 9
    for instant in (11, 12):
        play.push("a", (instant, 1))
        assert play.step() == 9
    assert play.engine.heartbeat("b") == 9


def test_10_more_readers_than_data(spark: SparkSession) -> None:
    play = Play(
        spark,
        "CREATE STREAM dev (id STRING, v INT) SOURCE BY id; TIMEOUT 5 SECONDS;"
        "CREATE QUERY q AS SELECT v FROM dev; CREATE QUERY r AS SELECT id FROM dev",
    )
    for source in "xyz":
        play.push("dev", (1, source, 1))
    assert play.engine.push("dev", []) == 0
    play.clock.move_by(4 * SECOND)
    play.push("dev", (9, "x", 9))
    assert play.step(1) == 8, "the two that stopped no longer count"
    assert play.engine.query("r").complete == 8


def test_11_a_source_that_resumes_with_old_tuples(spark: SparkSession) -> None:
    play = Play(spark, TWO + "TIMEOUT 5 SECONDS;" + MERGED)
    play.push("b", (1, 10))
    play.push("a", (1, 1))
    play.clock.move_by(5 * SECOND)
    play.push("a", (9, 9))
    assert play.step() == 8
    closed = play.found("merged")
    assert play.push("b", (2, 2), (8, 8), (12, 12)) == 1
    assert play.engine.late("b") == {None: 2}
    assert [letter["_behind"] for letter in play.engine.dead_letters("b")] == [6, 0]
    play.push("a", (20, 20))
    play.step()
    assert play.found("merged")[: len(closed)] == closed


def test_12_one_side_of_a_join_ends(spark: SparkSession) -> None:
    play = Play(
        spark, TWO + "CREATE QUERY joined AS SELECT a.v AS x, b.v AS y FROM a [RANGE 10], b [RANGE 10] WHERE a.v = b.v"
    )
    play.push("a", (1, 7))
    play.push("b", (2, 7))
    play.engine.finish("a")
    play.push("b", (30, 8))
    assert play.step() == 29
    assert play.found("joined") == [(2, "+", (7, 7)), (12, "-", (7, 7))]


def test_13_a_tuple_dated_far_in_the_future(spark: SparkSession) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    now_us = int(noon.timestamp() * SECOND)
    play = Play(
        spark,
        "CREATE STREAM a (v INT, at TIMESTAMP) TIMESTAMP BY at; CREATE QUERY q AS SELECT v FROM a;"
        "CREATE QUERY odd AS SELECT v, _reason FROM LATE(a)",
        date_us=now_us,
    )
    rows = [(1, noon), (2, noon + timedelta(days=400)), (3, noon + timedelta(seconds=1))]
    assert play.engine.push("a", rows) == 2
    assert play.engine.counts("a") == {"taken": 2, "far-future": 1}
    assert play.step() == noon + timedelta(seconds=1, microseconds=-1)
    assert play.engine.push("a", [(4, noon + timedelta(seconds=2))]) == 1, "others do not become late"
    play.step()
    assert play.found("odd")[0][2] == (2, "far-future")


def test_13_also_of_integer_time_and_by_policy(spark: SparkSession) -> None:
    play = Play(spark, TWO + "FUTURE OF a 1000;" + MERGED)
    assert play.push("a", (1, 1), (2, 2)) == 2
    assert play.push("a", (1_003, 3), (3, 3)) == 1
    assert play.engine.counts("a")["far-future"] == 1
    play.engine.execute("FUTURE OF a UNLIMITED")
    assert play.push("a", (5_000_000_000, 3)) == 1


def test_14_tiny_steps_back_of_a_clock_do_not_stall(spark: SparkSession) -> None:
    play = Play(spark, "CREATE STREAM a (v INT); CREATE QUERY q AS SELECT v FROM a")
    random.seed(4)
    for instant in range(10, 400, 10):
        play.push("a", (instant + random.randint(-2, 2), 1))
    assert play.step() >= 380
    play.push("a", (389, 1))
    play.push("a", (500, 1))
    assert play.step() >= 490


def test_15_slowly_or_fast_the_same_output(spark: SparkSession) -> None:
    random.seed(7)
    rows = [(instant + random.randint(0, 5), instant % 7) for instant in range(60)]
    outputs = []
    for size in (1, 7, 60):
        play = Play(
            spark,
            "CREATE STREAM a (v INT) DISORDER 6;CREATE QUERY q AS SELECT v, COUNT(*) AS n FROM a [RANGE 8] GROUP BY v",
        )
        for start in range(0, len(rows), size):
            play.push("a", *rows[start : start + size])
            if size > 1 or start % 12 == 0:
                play.step(0.3)
        play.engine.advance(200)
        assert play.engine.counts("a") == {"taken": 60}
        outputs.append(play.found("q"))
    assert sorted(outputs[0]) == sorted(outputs[1]) == sorted(outputs[2])


def test_16_a_late_tuple_never_opens_a_closed_window_again(spark: SparkSession) -> None:
    play = Play(spark, "CREATE STREAM a (v INT); " + COUNTED)
    play.push("a", (1, 1), (25, 2))
    play.step()
    closed = play.found("counted")
    assert play.push("a", (3, 3)) == 0
    play.push("a", (60, 4))
    play.step()
    assert play.found("counted")[: len(closed)] == closed
    assert [at for at, _, _ in play.found("counted")] == sorted(at for at, _, _ in play.found("counted"))


def test_17_no_null_row_for_a_row_that_matches(spark: SparkSession) -> None:
    play = Play(
        spark,
        TWO + "CREATE QUERY joined AS SELECT a.v AS x, b.v AS y FROM a [RANGE 10] LEFT JOIN b [RANGE 10] ON a.v = b.v",
    )
    play.push("a", (5, 7), (30, 8))
    play.push("b", (5, 7))
    play.step()
    play.push("b", (40, 1))
    play.push("a", (41, 1))
    play.step()
    assert (5, "+", (7, 7)) in play.found("joined")
    assert (5, "+", (7, None)) not in play.found("joined")


def test_18_state_over_state_keeps_its_rows(spark: SparkSession) -> None:
    play = Play(
        spark,
        "CREATE STREAM a (k STRING, v INT);"
        "CREATE VIEW sums AS SELECT k, SUM(v) AS s FROM a [RANGE 20] GROUP BY k;"
        "CREATE QUERY top AS SELECT MAX(s) AS most FROM sums",
    )
    play.push("a", (1, "x", 1), (2, "y", 5))
    play.step()
    play.push("a", (10, "x", 7), (11, "x", 1))
    play.step()
    play.push("a", (50, "x", 1))
    play.step()
    found = [(at, row[0]) for at, sign, row in play.found("top") if sign == "+"]
    assert found == [(0, None), (1, 1), (2, 5), (10, 8), (11, 9), (22, 8), (31, 1), (32, None)]


def test_19_every_place_that_drops_counts(spark: SparkSession) -> None:
    play = Play(
        spark,
        "CREATE STREAM a (id STRING, v INT) SOURCE BY id; CREATE STREAM b (v INT) LATE DROP;"
        "CREATE QUERY q AS SELECT v FROM a; CREATE QUERY r AS SELECT v FROM b; CREATE QUERY dead AS SELECT * FROM LATE(a)",
    )
    play.push("a", (10, "x", 1), (10, "y", 1))
    play.push("b", (10, 1))
    play.step(5)
    assert play.push("a", (1, "x", 1), (2, "y", 2), (3, "y", 3), (None, "y", 4), (-1, "x", 5), (12, "x", "six")) == 0
    assert play.push("b", (1, 1), (2, 2)) == 0
    assert play.engine.counts("a") == {"taken": 2, "late": 3, "no-timestamp": 1, "before-origin": 1, "malformed": 1}
    assert play.engine.late("a") == {"x": 1, "y": 2}
    assert play.engine.counts("b") == {"taken": 1, "late": 2}
    assert (len(play.engine.dead_letters("a")), play.engine.dead_letters("b")) == (6, [])
    play.engine.advance(20)
    assert len(play.found("dead")) == 6


def test_20_replay_of_year_old_data_behaves_as_live_data(spark: SparkSession) -> None:
    answers = []
    now = datetime(2026, 6, 1, tzinfo=UTC)
    for begin in (now, now - timedelta(days=365)):
        play = Play(
            spark,
            "CREATE STREAM a (v INT, at TIMESTAMP) TIMESTAMP BY at DISORDER 2 SECONDS;"
            "CREATE QUERY q AS SELECT COUNT(*) AS n FROM a [RANGE 5 SECONDS]",
            date_us=int(now.timestamp() * SECOND),
        )
        for second in (0, 2, 1, 6, 9):
            play.engine.push("a", [(second, begin + timedelta(seconds=second))])
            play.step(1)
        play.engine.advance(begin + timedelta(seconds=30))
        answers.append([(at - begin, sign, row) for at, sign, row in play.found("q") if at >= begin])
        assert play.engine.counts("a") == {"taken": 5}
    assert answers[0] == answers[1]


def test_21_windows_and_aggregates_over_a_relation_that_retracts(spark: SparkSession) -> None:
    play = Play(
        spark,
        "CREATE RELATION r (k STRING, v INT); CREATE STREAM a (k STRING);"
        "CREATE QUERY q AS SELECT r.k, SUM(v) AS s FROM r, a [RANGE 5] WHERE r.k = a.k GROUP BY r.k",
    )
    play.engine.push("r", [(1, ("x", 3)), (2, ("x", 4)), (4, ("x", 3), "-")])
    play.push("a", (3, "x"))
    play.engine.advance(20)
    assert play.found("q") == [(3, "+", ("x", 7)), (4, "-", ("x", 7)), (4, "+", ("x", 4)), (9, "-", ("x", 4))]


def test_22_a_bounded_rows_window_over_a_year_keeps_bounded_state(spark: SparkSession) -> None:
    play = Play(spark, "CREATE STREAM a (v INT); CREATE QUERY q AS SELECT SUM(v) AS s FROM a [ROWS 3]")
    fragment = play.engine.query("q").answer
    for day in range(0, 365, 73):
        play.push("a", *((day * 86_400 + second, second) for second in range(50)))
        play.step()
        fragment.move_state()
        play.engine._core.loop.tidy()
    assert fragment.synopses.rows <= 10
    assert sum(chunk.rows for chunk in play.engine._core.inputs.logs["a"].chunks) <= 100
    assert play.engine.query("q").growing() == ()
