"""EMIT EARLY: answers from what has come beyond the heartbeats, which are corrected, and give way to settled ones."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import Engine
from headgate.errors import UserError
from headgate.schedule import early as early_answers
from headgate.schedule.early import EarlyAnswer
from headgate.testing.cases import Row


class ManualClock:
    """A clock that is set by hand."""

    us = 0

    def now_us(self) -> int:
        return self.us

    def date_us(self) -> int | None:
        return None


STREAM = "CREATE STREAM s (k STRING, v INT) DISORDER 100"
COUNTS = "SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k"


def early(engine: Engine) -> list[tuple[int, str, Row]]:
    given = engine.query("q").early()
    assert given is not None
    return [(one.at, one.sign, tuple(one.row.values())) for one in given.results]


def test_an_early_answer_is_corrected_and_settled(spark: SparkSession) -> None:
    heard: list[EarlyAnswer] = []
    with Engine(spark) as engine:
        engine.execute(f"{STREAM}; CREATE QUERY q AS {COUNTS} EMIT EARLY")
        query = engine.query("q")
        assert query.early() is None
        query.on_early(heard.append)
        engine.push("s", [(5, ("a", 1))])
        engine.step()
        assert early(engine) == [(5, "+", ("a", 1))]
        assert query.results() == []
        engine.push("s", [(3, ("a", 1))])  # it is not late: nothing was promised
        engine.step()
        assert early(engine) == [(3, "+", ("a", 1)), (5, "-", ("a", 1)), (5, "+", ("a", 2))]
        assert [str(one) for one in heard[-1].added] == ["~ 3 + k=a, n=1", "~ 5 - k=a, n=1", "~ 5 + k=a, n=2"]
        assert [str(one) for one in heard[-1].withdrawn] == ["~ 5 + k=a, n=1"]
        assert heard[-1].tuples == {"s": 2}
        assert (heard[-1].complete, heard[-1].upto) == (None, 5)
        engine.punctuate("s", 4)
        engine.step()
        assert [str(one) for one in query.results()] == ["3 + k=a, n=1"]
        assert early(engine) == [(5, "-", ("a", 1)), (5, "+", ("a", 2))]
        engine.punctuate("s", 9)
        engine.step()
        assert [str(one) for one in query.results()] == ["3 + k=a, n=1", "5 - k=a, n=1", "5 + k=a, n=2"]
        assert early(engine) == []
        assert len(heard) == 4
        assert "answers early" in query.explain()
        assert engine.late("s") == {}


def test_nothing_is_computed_while_nothing_comes(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    with Engine(spark) as engine:
        engine.execute(f"{STREAM}; CREATE QUERY q AS {COUNTS} EMIT EARLY")
        engine.push("s", [(5, ("a", 1)), (7, ("a", 1))])
        engine.step()
        monkeypatch.setattr(early_answers, "run_together", lambda epochs: pytest.fail("nothing has come"))
        before = engine.query("q").early()
        engine.step()
        assert engine.query("q").early() is before
        monkeypatch.setattr("headgate.schedule.early._together", lambda epochs: {})
        engine.punctuate("s", 5)
        engine.step()
        assert [at for at, *_ in early(engine)] == [7, 7]


def test_early_answers_keep_their_pause(spark: SparkSession) -> None:
    clock = ManualClock()
    with Engine(spark, clock=clock) as engine:
        engine.execute(f"{STREAM}; CREATE QUERY q AS {COUNTS} EMIT EARLY EVERY 2 SECONDS")
        engine.push("s", [(5, ("a", 1))])
        engine.step()
        engine.push("s", [(6, ("b", 1))])
        clock.us += 1_999_999
        engine.step()
        assert early(engine) == [(5, "+", ("a", 1))]
        clock.us += 1
        engine.step()
        assert early(engine) == [(5, "+", ("a", 1)), (6, "+", ("b", 1))]


def test_a_run_gives_early_answers_by_itself(spark: SparkSession) -> None:
    came = threading.Event()
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM s (at TIMESTAMP, k STRING) TIMESTAMP BY at DISORDER 1 MINUTE;"
            "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k EMIT EARLY EVERY 10 MILLISECONDS"
        )
        engine.query("q").on_early(lambda answer: came.set() if len(answer.results) > 1 else None)
        running = threading.Thread(target=engine.run)
        running.start()
        try:
            engine.push("s", [(datetime(2026, 1, 1, 12, tzinfo=UTC), "a")])
            engine.push("s", [(datetime(2026, 1, 1, 12, 0, 5, tzinfo=UTC), "b")])
            assert came.wait(60)
        finally:
            engine.stop()
            running.join()
        assert engine.query("q").results() == []


def test_streams_joined_early(spark: SparkSession) -> None:
    """The join reads both streams up to one point of their order of arrival."""
    with Engine(spark) as engine:
        engine.execute(
            f"{STREAM}; CREATE STREAM r (k STRING, w INT) DISORDER 100;"
            "CREATE QUERY q AS SELECT ISTREAM s.v, r.w FROM s [RANGE 5], r [RANGE 5] WHERE s.k = r.k EMIT EARLY"
        )
        engine.push("s", [(4, ("a", 1))])
        engine.push("r", [(2, ("a", 7)), (20, ("a", 8))])
        engine.step()
        assert early(engine) == [(4, "+", (1, 7))]
        assert engine.query("q").complete is None or engine.query("q").complete < 4


def test_a_flowing_query_needs_no_early_answers(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(f"{STREAM}; CREATE QUERY q AS SELECT * FROM s WHERE v > 1 EMIT EARLY")
        engine.push("s", [(5, ("a", 2))])
        engine.step()
        assert [one.at for one in engine.query("q").results()] == [5]
        assert early(engine) == []


def test_an_early_answer_that_fails_holds_up_nothing(spark: SparkSession) -> None:
    told: list[str] = []
    with Engine(spark) as engine:
        engine.execute(f"{STREAM}; CREATE QUERY q AS SELECT CAST(k AS INT) AS n FROM s [NOW] EMIT EARLY")
        engine.execute("CREATE QUERY other AS SELECT COUNT(*) AS n FROM s [NOW] EMIT EARLY")
        engine._core.loop.tell = told.append
        engine.push("s", [(3, ("1", 1)), (5, ("no number", 1))])
        engine.step()
        assert len(told) == 1
        assert 'an early answer of query "q" failed' in told[0]
        assert engine.query("other").early() is not None
        engine.punctuate("s", 4)
        engine.step()
        assert [one.row for one in engine.query("q").results()] == [{"n": 1}, {"n": 1}]


def test_an_early_answer_that_is_too_large_is_not_given(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(early_answers, "MOST_ROWS", 3)
    with Engine(spark) as engine:
        engine.execute(f"{STREAM}; CREATE QUERY q AS SELECT ISTREAM * FROM s [RANGE 2] EMIT EARLY")
        engine._core.loop.tell = told.append
        engine.push("s", [(at, ("a", at)) for at in range(4)])
        engine.step()
        assert "has 4 rows" in told[0]
        engine.advance(9)
        assert len(engine.query("q").results()) == 4


def test_early_answers_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark, tmp_path) as engine:
        engine.execute(f"{STREAM}; CREATE QUERY q AS {COUNTS} EMIT EARLY")
        engine.push("s", [(5, ("a", 1))])
        engine.step()
    with Engine(spark, tmp_path) as engine:
        engine.step()
        assert early(engine) == [(5, "+", ("a", 1))]
        engine.execute(f"ALTER QUERY q AS {COUNTS}")
        with pytest.raises(UserError, match="gives no early answers"):
            engine.query("q").early()


@pytest.mark.parametrize(
    "text, said",
    [
        (f"CREATE QUERY q AS ISTREAM({COUNTS} EMIT EARLY)", "behind a whole query"),
        (f"CREATE QUERY q AS {COUNTS} EMIT EARLY EVERY 3", "a length of time on the clock"),
        (f"CREATE QUERY q AS {COUNTS} EMIT EARLY EVERY 3 TICKS", "a length of time on the clock"),
        (f"CREATE QUERY q AS {COUNTS} EMIT EARLY EVERY", "EVERY needs a length of time"),
        (f"CREATE VIEW v AS {COUNTS} EMIT EARLY", "not in a view"),
        (f"CREATE QUERY q AS SELECT * FROM ({COUNTS} EMIT EARLY) x", "not in a view or a subquery"),
    ],
)
def test_where_early_may_not_stand(spark: SparkSession, text: str, said: str) -> None:
    with Engine(spark) as engine:
        engine.execute(STREAM)
        with pytest.raises(UserError, match=said):
            engine.execute(text)
