"""Snapshots: the rows of several queries at one instant, the latest at which all of them are complete."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate import Engine, Snapshot, UserError
from headgate.deliver.sinks.sink import Result
from headgate.log.chunk import Chunk

pytestmark = pytest.mark.spark

BANK = """
CREATE STREAM debits (account STRING, amount INT);
CREATE STREAM credits (account STRING, amount INT);
CREATE VIEW moves AS SELECT account, -amount AS amount FROM debits [RANGE UNBOUNDED]
  UNION ALL SELECT account, amount FROM credits [RANGE UNBOUNDED];
CREATE QUERY balances AS SELECT account, SUM(amount) AS balance FROM moves GROUP BY account;
CREATE QUERY total AS SELECT SUM(amount) AS total FROM moves;
CREATE QUERY paid AS SELECT SUM(amount) AS paid FROM debits [RANGE UNBOUNDED];
CREATE QUERY got AS SELECT SUM(amount) AS got FROM credits [RANGE UNBOUNDED];
"""
"""Each transfer is a debit and a credit at one instant. What was paid is what was got at every instant."""


def transfer(engine: Engine, at: int, giver: str, taker: str, amount: int) -> None:
    engine.push("debits", [(at, (giver, amount))])
    engine.push("credits", [(at, (taker, amount))])


def bag(results: list[Result], at: Any) -> Counter[tuple[Any, ...]]:
    """The rows of a relation at an instant, counted one by one."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for result in results:
        if result.at <= at:
            rows[tuple(result.row.values())] += 1 if result.sign == "+" else -1
    return +rows


def rows_of(snapshot: Snapshot, query: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in snapshot[query])


def complaint(engine: Engine, text: str) -> UserError:
    with pytest.raises(UserError) as raised:
        engine.execute(text)
    return raised.value


def test_all_queries_are_shown_at_the_instant_of_the_slowest(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(BANK)
        engine.push("debits", [(at, ("a", at)) for at in range(1, 6)])
        engine.push("credits", [(at, ("b", at)) for at in range(1, 5)])
        engine.punctuate("debits", 5)
        engine.punctuate("credits", 3)
        engine.step()
        assert engine.query("paid").complete == 5
        assert engine.query("got").complete == 3
        snapshot = engine.snapshot("paid", "got", "balances", "total")
        assert snapshot.at == 3
        assert dict(snapshot) == {
            "paid": [{"paid": 6}],
            "got": [{"got": 6}],
            "balances": [{"account": "a", "balance": -6}, {"account": "b", "balance": 6}],
            "total": [{"total": 0}],
        }
        assert engine.snapshot("paid").at == 5
        assert engine.snapshot("PAID")["paid"] == engine.snapshot("paid")["Paid"] == [{"paid": 15}]
        with pytest.raises(KeyError):
            snapshot["payd"]


def test_a_statement_answers_the_same_and_prints_the_instant_first(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(BANK)
        transfer(engine, 1, "a", "b", 5)
        engine.advance(2)
        (answer,) = engine.execute("SNAPSHOT balances, total")
        assert isinstance(answer, Snapshot)
        assert (
            str(answer) == "at 2\n\nbalances: 2 rows\naccount  balance\na        -5\nb        5\n\n"
            "total: 1 row\ntotal\n0"
        )
        assert repr(answer) == "Snapshot(at 2: balances: 2 rows, total: 1 rows)"
        assert engine.execute("SNAPSHOT balances")[0].at == 2  # type: ignore[union-attr]


def test_equal_rows_stand_as_often_as_they_are_there(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute("CREATE STREAM s (k STRING); CREATE QUERY q AS SELECT k FROM s [RANGE 3]")
        engine.push("s", [(1, ("a",)), (1, ("a",)), (2, ("b",)), (2, ("a",))])
        engine.advance(3)
        assert sorted(row["k"] for row in engine.snapshot("q")["q"]) == ["a", "a", "a", "b"]
        engine.advance(5)
        assert sorted(row["k"] for row in engine.snapshot("q")["q"]) == ["a", "b"]
        engine.advance(20)
        snapshot = engine.snapshot("q")
        assert snapshot["q"] == []
        assert snapshot.table("q").column_names == ["k"]
        assert str(snapshot) == "at 20\n\nq: 0 rows"


def test_a_query_that_never_had_a_row_has_its_columns(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute("CREATE STREAM s (k STRING); CREATE QUERY q AS SELECT k, LENGTH(k) AS n FROM s [RANGE 3]")
        engine.advance(3)
        assert engine.snapshot("q").table("q").column_names == ["k", "n"]


def test_the_instant_is_a_timestamp_where_time_is(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM s (k STRING, at TIMESTAMP) TIMESTAMP BY at; CREATE QUERY q AS SELECT k FROM s [RANGE 1 HOUR]"
        )
        engine.push("s", [("a", "2026-01-01T00:00:01"), ("b", "2026-01-01T00:00:03")])
        engine.advance("2026-01-01T00:00:02")
        snapshot = engine.snapshot("q")
        assert snapshot.at == engine.query("q").complete == datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC)
        assert snapshot["q"] == [{"k": "a"}]


def test_members_of_a_found_family_have_their_own_rows(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute("CREATE STREAM s (k STRING, v INT)")
        for n in range(6):
            engine.execute(f"CREATE QUERY q{n} AS SELECT SUM(v) AS v FROM s [RANGE 10] WHERE k = 'k{n}' GROUP BY k")
        assert any(query.hidden for query in engine._core.programs())
        engine.push("s", [(1, (f"k{n}", n)) for n in range(5)])
        engine.push("s", [(2, ("k1", 100))])
        engine.advance(2)
        snapshot = engine.snapshot(*(f"q{n}" for n in range(6)))
        assert snapshot.at == 2
        assert [snapshot[f"q{n}"] for n in range(6)] == [
            [{"v": 0}],
            [{"v": 101}],
            [{"v": 2}],
            [{"v": 3}],
            [{"v": 4}],
            [],
        ]
        assert snapshot.table("q5").column_names == ["v"]


def test_a_query_by_groups_is_as_far_as_its_slowest_group(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM s (car STRING, v INT, at INT) TIMESTAMP BY at SOURCE BY car; GROUPS OF s ('a'), ('b');"
            "CREATE QUERY q AS SELECT car, SUM(v) AS v FROM s [RANGE 50] GROUP BY car"
        )
        assert len(engine.query("q").answers) > 1
        engine.push("s", [("a", 1, 1), ("a", 2, 5), ("b", 7, 1), ("b", 9, 3)])
        engine.punctuate("s", 6, "a")
        engine.punctuate("s", 2, "b")
        engine.step()
        snapshot = engine.snapshot("q")
        assert snapshot.at == engine.query("q").complete == 2
        assert rows_of(snapshot, "q") == Counter([("a", 1), ("b", 7)])


def test_queries_of_a_declared_family_are_one_relation(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM s (k STRING, v INT); CREATE RELATION limits (k STRING, least INT);"
            "CREATE QUERIES q FOR EACH ROW OF limits AS SELECT k, v FROM s [RANGE 5] "
            "WHERE k = limits.k AND v > limits.least"
        )
        engine.push("limits", [(0, ("a", 3), "+"), (0, ("b", 8), "+")])
        engine.push("s", [(1, ("a", 4)), (1, ("b", 5)), (2, ("b", 9))])
        engine.advance(2)
        assert [row["v"] for row in engine.snapshot("q")["q"]] == [4, 9]


def test_a_query_that_began_later_has_no_rows_before(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM slow (v INT); CREATE STREAM fast (v INT); CREATE QUERY a AS SELECT v FROM slow [RANGE 50];"
            "CREATE QUERY before AS SELECT v FROM fast [RANGE 50]"
        )
        engine.push("slow", [(1, (1,))])
        engine.push("fast", [(1, (1,))])
        engine.punctuate("slow", 5)
        engine.punctuate("fast", 10)
        engine.step()
        engine.execute("CREATE QUERY b AS SELECT v FROM fast [RANGE 50]")
        engine.push("fast", [(12, (2,))])
        engine.punctuate("fast", 12)
        engine.step()
        assert engine.snapshot("a", "before").at == 5
        error = complaint(engine, "SNAPSHOT b, a")
        assert error.code == "nothing-complete"
        assert error.message == 'query "b" begins at 10, and "a" is complete up to 5 only'
        assert error.place is not None
        assert error.place.text[error.place.start : error.place.end] == "a"
        engine.punctuate("slow", 11)
        engine.step()
        assert engine.snapshot("a", "b").at == 11
        assert engine.snapshot("a", "b")["b"] == []


@pytest.mark.parametrize(
    "text, code, word, hint",
    [
        ("SNAPSHOT balances, totl", "no-such-query", "totl", 'Did you mean "total"?'),
        ("SNAPSHOT total, tuples", "wrong-kind", "tuples", "Leave ISTREAM"),
        ("SNAPSHOT total, stored", "results-elsewhere", "stored", "Leave INTO out"),
        ("SNAPSHOT total, paid, Total", "name-taken", "Total", ""),
        ("SNAPSHOT total, clock", "time-domains-differ", "clock", "Name those of one kind only."),
        ("SNAPSHOT total, debits", "wrong-kind", "debits", "CREATE QUERY debits_now"),
        ("SNAPSHOT total, moves", "wrong-kind", "moves", "CREATE QUERY moves_now"),
        ("SNAPSHOT paid, total", "nothing-complete", "paid", "WHY paid"),
    ],
)
def test_what_cannot_be_shown_is_said_with_its_place(
    spark: SparkSession, tmp_path: Path, text: str, code: str, word: str, hint: str
) -> None:
    with Engine(spark) as engine:
        engine.execute(BANK)
        engine.execute(
            "CREATE STREAM timed (v INT, at TIMESTAMP) TIMESTAMP BY at; CREATE QUERY clock AS SELECT v FROM timed [NOW];"
            "CREATE QUERY tuples AS SELECT ISTREAM(account) FROM debits [NOW];"
            f"CREATE QUERY stored AS SELECT account FROM debits [NOW] INTO parquet OPTIONS ('path' = '{tmp_path / 'out'}')"
        )
        error = complaint(engine, text)
        assert error.code == code
        assert error.place is not None
        assert error.place.text[error.place.start : error.place.end] == word
        assert hint in error.hint
        with pytest.raises(UserError) as raised:
            engine.snapshot(*text.removeprefix("SNAPSHOT ").split(", "))
        assert (raised.value.code, raised.value.message) == (error.code, error.message)


def test_a_snapshot_of_nothing_is_refused(spark: SparkSession) -> None:
    with Engine(spark) as engine, pytest.raises(UserError) as raised:
        engine.snapshot()
    assert raised.value.code == "no-name"


def test_printed_results_are_not_kept(spark: SparkSession) -> None:
    with Engine(spark, default_sink="console") as engine:
        engine.execute("CREATE STREAM s (v INT); CREATE QUERY q AS SELECT v FROM s [NOW]")
        engine.advance(1)
        assert complaint(engine, "SNAPSHOT q").code == "results-elsewhere"


def test_a_snapshot_is_no_statement_to_remember_and_is_the_same_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    with Engine(spark, tmp_path) as engine:
        engine.execute(BANK)
        for at in range(1, 40):
            transfer(engine, at, "ab"[at % 2], "bc"[at % 2], at)
            engine.advance(at)
        before = engine.execute("SNAPSHOT balances, total, paid, got")[0]
        assert isinstance(before, Snapshot)
    with Engine(spark, tmp_path) as engine:
        after = engine.snapshot("balances", "total", "paid", "got")
        assert (after.at, dict(after)) == (before.at, dict(before))
        assert after["paid"][0]["paid"] == after["got"][0]["got"] == sum(range(1, 40))


def test_every_picture_adds_up_while_the_engine_runs(spark: SparkSession) -> None:
    """The two streams of transfers come one behind the other. Snapshots are taken from another thread meanwhile."""
    pictures: list[Snapshot] = []
    with Engine(spark) as engine:
        engine.execute(BANK)
        engine.advance(0)
        over = threading.Event()

        def look() -> None:
            while not over.is_set():
                pictures.append(engine.snapshot("balances", "total", "paid", "got"))

        looking = threading.Thread(target=look)
        looking.start()
        try:
            for at in range(1, 25):
                engine.push("debits", [(at, (f"a{at % 3}", at))])
                engine.punctuate("debits", at)
                engine.step()
                engine.push("credits", [(at, (f"a{at % 5}", at))])
                engine.punctuate("credits", at)
                if at % 3:
                    engine.step()
        finally:
            over.set()
            looking.join()
        engine.step()
        results = {name: engine.query(name).results() for name in ("balances", "total", "paid", "got")}
    assert len({picture.at for picture in pictures}) > 3
    for picture in pictures:
        for name, known in results.items():
            assert rows_of(picture, name) == bag(known, picture.at)
        assert sum(row["balance"] for row in picture["balances"]) == 0
        assert [row["paid"] for row in picture["paid"]] == [row["got"] for row in picture["got"]]


# early


EARLY_BANK = BANK.replace("FROM moves GROUP BY account;", "FROM moves GROUP BY account EMIT EARLY;").replace(
    "AS total FROM moves;", "AS total FROM moves EMIT EARLY;"
)


def test_an_early_snapshot_shows_queries_over_one_input_and_says_which(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(
            f"{EARLY_BANK} DISORDER OF debits 100; DISORDER OF credits 100;"
            "CREATE QUERY n AS SELECT COUNT(*) AS n FROM debits [RANGE UNBOUNDED] EMIT EARLY"
        )
        transfer(engine, 1, "a", "b", 5)
        engine.punctuate("debits", 1)
        engine.punctuate("credits", 1)
        engine.push("debits", [(4, ("b", 3))])
        engine.step()
        early = engine.snapshot("balances", "total", early=True)
        assert (early.at, early.partial) == (4, True)
        assert dict(early) == {
            "balances": [{"account": "a", "balance": -5}, {"account": "b", "balance": 2}],
            "total": [{"total": -3}],
        }
        assert {name: (one.tuples, one.complete) for name, one in early.reflects.items()} == {
            "debits": (2, 4),
            "credits": (1, 4),
        }
        settled = engine.snapshot("balances", "total")
        assert (settled.at, settled.partial, settled["total"]) == (1, False, [{"total": 0}])
        (said,) = engine.execute("SNAPSHOT EARLY total")
        assert str(said) == (
            "at 4, early: from the first 1 tuples of credits and the first 2 tuples of debits\n\ntotal: 1 row\ntotal\n-3"
        )
        assert repr(said) == "Snapshot(early, at 4: total: 1 rows)"
        engine.push("credits", [(3, ("c", 3))])
        engine.step()
        assert engine.snapshot("n", "total", early=True).at == 4, "the query of one stream has nothing new to say"
        assert engine.snapshot("total", early=True)["total"] == [{"total": 0}]


def test_what_cannot_be_shown_early(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(EARLY_BANK + "DISORDER OF debits 100; DISORDER OF credits 100;")
        error = complaint(engine, "SNAPSHOT EARLY total, paid")
        assert (error.code, error.message) == ("nothing-complete", 'there is no early answer yet of "total"')
        transfer(engine, 1, "a", "b", 5)
        engine.step()
        error = complaint(engine, "SNAPSHOT EARLY total, paid")
        assert (error.code, error.hint) == (
            "no-early-answers",
            "Write EMIT EARLY behind it, or leave EARLY out: SNAPSHOT paid.",
        )
        assert error.place is not None
        assert error.place.text[error.place.start : error.place.end] == "paid"
        engine.execute(
            "CREATE QUERY rare AS SELECT SUM(amount) AS got FROM credits [RANGE UNBOUNDED] EMIT EARLY EVERY 1 HOUR"
        )
        engine.step()
        transfer(engine, 2, "a", "b", 5)
        engine.step()
        error = complaint(engine, "SNAPSHOT EARLY total, rare")
        assert error.code == "not-one-input"
        assert "reflects 2 tuples of credits" in error.message
        error = complaint(engine, "SNAPSHOT early")
        assert error.code == "no-such-query"


# cost


def test_a_snapshot_reads_only_what_came_since_the_last(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    table = Chunk.table
    with Engine(spark) as engine:
        engine.execute(BANK)
        for at in range(1, 9):
            transfer(engine, at, f"a{at}", "b", at)
            engine.advance(at)
        first = engine.snapshot("balances")
        transfer(engine, 9, "a9", "b", 9)
        engine.advance(9)

        def counting(chunk: Chunk, *columns: Any) -> Any:
            read.append(chunk.path.name)
            return table(chunk, *columns)

        monkeypatch.setattr(Chunk, "table", counting)
        second = engine.snapshot("balances")
        assert len(read) == 1
        assert engine.snapshot("balances")["balances"] == second["balances"]
        assert len(read) == 1, "nothing has come"
        assert rows_of(second, "balances") == bag(engine.query("balances").results(), 9)
        assert len(first["balances"]) == 9


def test_files_that_are_merged_meanwhile_are_looked_for_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine(spark) as engine:
        engine.execute(BANK)
        for at in range(1, 30):
            transfer(engine, at, f"a{at % 3}", "b", at)
            engine.advance(at)
        log, table, merged = engine.query("balances").outbox.log, Chunk.table, list[int]()

        def merging(chunk: Chunk, *columns: Any) -> Any:
            assert not engine.turn._is_owned(), "rows are read outside of the journal's turn"  # type: ignore[attr-defined]
            if not merged:
                merged.append(len(log.chunks))
                monkeypatch.setattr("headgate.log.log.MERGE_AT", 2)
                log.compact()
                merged.append(len(log.chunks))
            return table(chunk, *columns)

        monkeypatch.setattr(Chunk, "table", merging)
        snapshot = engine.snapshot("balances")
        monkeypatch.undo()
        assert merged[1] < merged[0]
        assert rows_of(snapshot, "balances") == bag(engine.query("balances").results(), 29)
