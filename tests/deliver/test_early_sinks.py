"""Early answers in sinks: taken back where a sink can, marked where it is asked for, and otherwise not there."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tools.postgres_server import Server

from headgate import Engine, read_commits
from headgate.deliver.outbox import Outbox
from headgate.deliver.sinks.sink import Delivery
from headgate.errors import UserError
from headgate.log.journal import Journal
from headgate.ticks import TimeDomain


@pytest.fixture(autouse=True)
def _busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that does other work keeps sinks waiting."""
    monkeypatch.setattr("headgate.engine.registry.TAKE_BACK_SECONDS", 60.0)


STREAM = "CREATE STREAM s (k STRING, v INT) DISORDER 100;"
COUNTS = "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 50] GROUP BY k EMIT EARLY INTO "


def in_files(folder: Path, current: bool = False) -> list[tuple[object, ...]]:
    """The rows that a reader of the folder finds now."""
    commits = list(read_commits(folder))
    read = [file for commit in (commits[-1:] if current else commits) for file in commit.files]
    return sorted(tuple(row.values()) for file in read for row in pq.read_table(file).to_pylist())


def test_a_sink_of_current_rows_holds_early_answers_and_takes_them_back(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    into = f"parquet OPTIONS ('path' = '{out}', 'deliver' = 'current')"
    with Engine(spark, tmp_path / "engine") as engine:
        engine.execute(STREAM + COUNTS + into)
        engine.push("s", [(5, ("a", 1)), (7, ("b", 1))])
        engine.step()
        assert in_files(out, current=True) == [("a", 1), ("b", 1)]
        assert engine.query("q").complete is None
        engine.push("s", [(6, ("a", 1))])
        engine.step()
        assert in_files(out, current=True) == [("a", 2), ("b", 1)]
        engine.punctuate("s", 5)
        engine.step()
        assert in_files(out, current=True) == [("a", 2), ("b", 1)], "what is settled, and the early answer beyond it"
        assert list(read_commits(out))[-1].complete == 5
    with Engine(spark, tmp_path / "engine") as engine:  # it knows what the sink holds
        engine.push("s", [(8, ("c", 1))])
        engine.advance(7)
        assert in_files(out, current=True) == [("a", 2), ("b", 1)], "settled, and without the early answer"
        engine.step()
        assert in_files(out, current=True) == [("a", 2), ("b", 1), ("c", 1)]
        engine.advance(60)
        assert in_files(out, current=True) == [], "nothing is left in the window, and nothing was left behind"
        assert not list((tmp_path / "engine").rglob("early-*.parquet"))


def test_the_sink_ends_as_it_does_without_early_answers(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark) as engine:
        engine.execute(STREAM)
        for name, early in (("early", "EMIT EARLY"), ("settled", "")):
            into = f"INTO json OPTIONS ('path' = '{tmp_path / name}', 'deliver' = 'upserts', 'key' = 'k')"
            engine.execute(f"CREATE QUERY {name} AS SELECT k, SUM(v) AS v FROM s [RANGE 9] GROUP BY k {early} {into}")
        for at in (3, 9, 6, 12, 11):
            engine.push("s", [(at, ("ab"[at % 2], at))])
            engine.step()
            engine.punctuate("s", at - 5)
            engine.step()
        engine.advance(16)
        numbers = {}
        last: dict[str, dict[str, object]] = {}
        for name in ("early", "settled"):
            found: dict[str, object] = {}
            for commit in read_commits(tmp_path / name):
                numbers[name] = commit.number
                for file in commit.files:
                    for row in spark.read.json(str(file)).collect():
                        found[row["k"]] = row["v"] if row["_change"] == "+" else None
            last[name] = found
    assert last["early"] == last["settled"]
    assert numbers["early"] > numbers["settled"]


def test_partial_rows_are_marked_where_it_is_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Engine(spark) as engine:
        engine.execute(STREAM + COUNTS + f"parquet OPTIONS ('path' = '{out}', 'partial' = 'true')")
        engine.push("s", [(5, ("a", 1))])
        engine.step()
        engine.push("s", [(3, ("a", 1))])
        engine.step()
        engine.advance(5)
    early = [(3, "+", "a", 1, True), (5, "+", "a", 1, True), (5, "+", "a", 2, True), (5, "-", "a", 1, True)]
    settled = [(3, "+", "a", 1, False), (5, "+", "a", 2, False), (5, "-", "a", 1, False)]
    assert in_files(out) == sorted([*early, *settled])
    assert [commit.complete for commit in read_commits(out)] == [None, None, 5]


def test_other_sinks_get_only_what_is_settled(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Engine(spark) as engine:
        engine.execute(STREAM + COUNTS + f"parquet OPTIONS ('path' = '{out}')")
        engine.push("s", [(5, ("a", 1))])
        engine.step()
        assert in_files(out) == []
        engine.advance(5)
    assert in_files(out) == [(5, "+", "a", 1)]


def test_a_table_in_a_database_holds_early_answers(spark: SparkSession, postgres: Server, tmp_path: Path) -> None:
    into = (
        f"jdbc OPTIONS ('url' = '{postgres.url}', 'dbtable' = 'early', 'user' = 'tester', 'deliver' = 'current', "
        "'key' = 'k')"
    )

    def table() -> list[list[str]]:
        return postgres.ask("SELECT k, n FROM early ORDER BY k")

    with Engine(spark, tmp_path) as engine:
        engine.execute(STREAM + COUNTS + into)
        engine.push("s", [(5, ("a", 1)), (7, ("b", 1))])
        engine.step()
        assert table() == [["a", "1"], ["b", "1"]]
    with Engine(spark, tmp_path) as engine:
        engine.push("s", [(4, ("b", 1)), (6, ("a", 1))])
        engine.punctuate("s", 5)
        engine.step()
        assert table() == [["a", "2"], ["b", "2"]]
        engine.advance(100)
        assert table() == []


@pytest.mark.parametrize(
    "query, said",
    [
        ("SELECT * FROM s [NOW] INTO parquet OPTIONS ('path' = 'x', 'partial' = 'true')", "for early answers"),
        (
            "SELECT * FROM s [NOW] EMIT EARLY INTO parquet OPTIONS ('path' = 'x', 'deliver' = 'current', 'partial' = 'true')",
            "does not go with",
        ),
        ("SELECT * FROM s [NOW] EMIT EARLY INTO console OPTIONS ('partial' = 'true')", 'no option "partial"'),
    ],
)
def test_where_partial_may_not_stand(spark: SparkSession, query: str, said: str) -> None:
    with Engine(spark) as engine:
        engine.execute(STREAM)
        with pytest.raises(UserError, match=said):
            engine.execute(f"CREATE QUERY q AS {query}")


class Recorder:
    """A sink of current rows that wants no empty deliveries."""

    guarantee, wants_empty = "exactly once", False

    def deliver(self, delivery: Delivery) -> None:
        """Take it."""

    def delivered(self) -> int | None:
        return None

    def close(self) -> None:
        """Nothing is held."""


def test_an_epoch_without_results_takes_back_and_delivers_nothing_else(tmp_path: Path) -> None:
    outbox = Outbox("q", TimeDomain.INTEGER, Recorder(), tmp_path, Journal())
    table = pa.table({"_time": pa.array([5], pa.int64()), "_change": ["+"], "n": [1]})
    outbox.show_early(table, 0, 5, {"s": 1})
    assert outbox.put([], 0, 3, {"s": 1}) == []
    given = [(one.number, one.until, pq.read_table(one.files[0]).to_pylist()) for one in outbox.waiting]
    assert given == [
        (1, 0, [{"_time": 5, "_change": "+", "n": 1}]),
        (2, 0, [{"_time": 1, "_change": "-", "n": 1}]),
    ]
    outbox.tidy()
    assert not list(tmp_path.glob("early-*.parquet"))


@pytest.mark.parametrize("into", ["current", "upserts"])
def upserted(folder: Path) -> dict[str, int]:
    """The rows that a reader has who follows upserts."""
    found: dict[str, int] = {}
    for commit in read_commits(folder):
        for file in commit.files:
            for row in pq.read_table(file).to_pylist():
                found.pop(row["k"], None)
                found |= {row["k"]: row["n"]} if row["_change"] == "+" else {}
    return found


@pytest.mark.parametrize(
    "into, restarted",
    [("'deliver' = 'current'", False), ("'deliver' = 'upserts', 'key' = 'k'", False), ("'deliver' = 'current'", True)],
)
def test_a_query_that_is_dropped_leaves_what_is_settled(
    spark: SparkSession, tmp_path: Path, into: str, restarted: bool
) -> None:
    out = tmp_path / "out"

    def held() -> dict[str, int]:
        return dict(in_files(out, current=True)) if "current" in into else upserted(out)  # type: ignore[arg-type]

    with Engine(spark, tmp_path / "engine") as engine:
        engine.execute(STREAM + COUNTS + f"parquet OPTIONS ('path' = '{out}', {into})")
        engine.push("s", [(5, ("a", 1)), (7, ("b", 1)), (8, ("a", 1))])
        engine.punctuate("s", 5)
        engine.step()
        assert held() == {"a": 2, "b": 1}
        if not restarted:
            engine.execute("DROP QUERY q")
    if restarted:
        assert held() == {"a": 2, "b": 1}
        with Engine(spark, tmp_path / "engine") as engine:
            engine.execute("DROP QUERY q")
    assert held() == {"a": 1}


def test_a_query_that_is_altered_begins_behind_what_is_settled(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    into = f"INTO parquet OPTIONS ('path' = '{out}', 'deliver' = 'upserts', 'key' = 'k', 'existing' = 'append')"
    with Engine(spark, tmp_path / "engine") as engine:
        engine.execute(
            f"{STREAM} CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 50] GROUP BY k EMIT EARLY {into}"
        )
        engine.push("s", [(5, ("a", 1)), (7, ("b", 1))])
        engine.punctuate("s", 5)
        engine.step()
        assert upserted(out) == {"a": 1, "b": 1}
        elsewhere = into.replace(str(out), "/dev/null/no")
        with pytest.raises(UserError):
            engine.execute(
                f"ALTER QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 50] GROUP BY k EMIT EARLY {elsewhere}"
            )
        assert upserted(out) == {"a": 1}
        engine.step()
        assert upserted(out) == {"a": 1, "b": 1}, "the old one goes on, and answers early again"
        engine.execute(f"ALTER QUERY q AS SELECT k, MAX(v) AS n FROM s [RANGE 50] GROUP BY k {into}")
        assert upserted(out) == {"a": 1}
        engine.push("s", [(9, ("c", 3))])
        engine.advance(9)
        assert upserted(out)["c"] == 3
        assert engine.query("q").outbox.trouble is None
    assert [commit.number for commit in read_commits(out)] == sorted({one.number for one in read_commits(out)})


def test_a_sink_that_hangs_does_not_hold_up_the_end_of_its_query(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.engine.registry.TAKE_BACK_SECONDS", 0.2)
    told: list[str] = []
    with Engine(spark) as engine:
        engine._core.loop.tell = told.append
        engine.execute(STREAM + COUNTS + f"parquet OPTIONS ('path' = '{tmp_path / 'out'}', 'deliver' = 'current')")
        engine.push("s", [(5, ("a", 1))])
        engine.step()
        over = threading.Event()
        engine.query("q").outbox.sink.deliver = lambda delivery: over.wait()  # type: ignore[assignment]
        engine.execute("DROP QUERY q")
        over.set()
    assert told == ['the sink of query "q" is not reached: it may hold its last early answer']
