"""Families on a running engine: members that come and go, what each is answered, and what a restart leaves of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headgate import Engine
from headgate.catalog.entries import Query
from headgate.errors import UserError

pytestmark = pytest.mark.spark

DEFINED = """
CREATE STREAM ticks (symbol STRING, price DOUBLE);
CREATE RELATION subscribers (symbol STRING, threshold DOUBLE);
"""
ALERT = """CREATE QUERIES alert FOR EACH ROW OF subscribers AS
SELECT ISTREAM s.symbol, s.price FROM ticks [NOW] s WHERE s.symbol = subscribers.symbol AND s.price > subscribers.threshold"""
HIGH = """CREATE QUERIES high FOR EACH ROW OF subscribers AS
SELECT COUNT(*) AS n FROM ticks [RANGE 10] WHERE symbol = subscribers.symbol AND price > subscribers.threshold"""


def rows(engine: Engine, name: str, *member: object) -> list[tuple[object, ...]]:
    return [(one.at, one.sign, *one.row.values()) for one in engine.query(name).member(*member).results()]


def play(engine: Engine, first: int, last: int) -> None:
    """The ticks of some instants: A rises by one at every instant, B falls."""
    for at in range(first, last + 1):
        engine.push("ticks", [(at, ("A", float(at))), (at, ("B", 10.0 - at))])
        engine.advance(at)


def test_members_come_and_go_as_rows(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(DEFINED + ALERT)
        heard: list[float] = []
        engine.query("alert").member(symbol="A", threshold=2).on_change(
            lambda results: heard.extend(one.row["price"] for one in results)
        )
        engine.push("subscribers", [(1, ("A", 2.0), "+"), (1, ("A", 2.0), "+"), (4, ("B", 4.0), "+")])
        engine.push("subscribers", [(5, ("A", 2.0), "-"), (6, ("A", 2.0), "-")])
        play(engine, 1, 7)
        assert rows(engine, "alert", "A", 2.0) == [(at, "+", "A", float(at)) for at in (3, 4, 5)]
        assert rows(engine, "alert", "B", 4.0) == [(at, "+", "B", 10.0 - at) for at in (4, 5)]
        assert rows(engine, "alert", "B", 99.0) == []
        assert heard == [3.0, 4.0, 5.0]
        family = engine.query("alert")
        assert list(family.results()[0].row) == ["subscribers_symbol", "threshold", "symbol", "price"]
        assert family.member("A", 2.0).complete == family.complete == 7
        assert "CROSS JOIN" in family.explain()


def test_every_member_has_its_total_also_over_nothing(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(DEFINED + HIGH)
        engine.push("subscribers", [(0, ("A", 2.0), "+"), (0, ("C", 1.0), "+"), (5, ("C", 1.0), "-")])
        play(engine, 1, 4)
        assert rows(engine, "high", "C", 1.0) == [(0, "+", 0)]
        assert rows(engine, "high", "A", 2.0) == [(0, "+", 0), (3, "-", 0), (3, "+", 1), (4, "-", 1), (4, "+", 2)]
        play(engine, 5, 5)
        assert rows(engine, "high", "C", 1.0)[1:] == [(5, "-", 0)]


def test_a_family_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark, tmp_path) as engine:
        engine.execute(DEFINED + ALERT)
        engine.push("subscribers", [(1, ("A", 2.0), "+"), (1, ("B", 4.0), "+")])
        play(engine, 1, 4)
        for fragment in engine.query("alert").fragments:
            fragment.move_state()
        play(engine, 5, 5)
        for fragment in engine.query("alert").fragments:
            fragment.move_state()  # the rows of the relation are the same: their files are linked
    with Engine(spark, tmp_path) as engine:
        definition = engine.catalog.query("alert")
        assert definition.family is not None
        assert definition.family.columns == ("symbol", "threshold")
        engine.push("subscribers", [(6, ("B", 4.0), "-"), (7, ("B", 1.0), "+")])
        play(engine, 6, 8)
        assert rows(engine, "alert", "A", 2.0) == [(at, "+", "A", float(at)) for at in range(3, 9)]
        assert rows(engine, "alert", "B", 4.0) == [(at, "+", "B", 10.0 - at) for at in range(1, 6)]
        assert rows(engine, "alert", "B", 1.0) == [(at, "+", "B", 10.0 - at) for at in (7, 8)]
        engine.execute(ALERT.replace("CREATE", "ALTER").replace(" > ", " < "))
        assert isinstance(engine.catalog.query("alert"), Query)
        engine.execute("DROP QUERIES alert")
        assert engine.queries() == []


def test_a_relation_with_a_key_changes_members_in_place(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM ticks (symbol STRING, price DOUBLE);"
            "CREATE RELATION watch (id INT, threshold DOUBLE, low DOUBLE) KEY (id);"
            "CREATE QUERIES inside FOR EACH ROW OF watch AS SELECT ISTREAM s.symbol, s.price FROM ticks [NOW] s "
            f"WHERE s.price BETWEEN watch.low AND watch.threshold INTO parquet OPTIONS ('path' = '{tmp_path}/out')"
        )
        engine.push("watch", [(1, (7, 3.0, 0.0), "+"), (5, (7, 9.0, 8.0), "+")])
        play(engine, 1, 8)
        engine.step()
        with pytest.raises(UserError, match="results-elsewhere"):
            engine.query("inside").member(7, 3.0, 0.0).results()
    found = pq.read_table(tmp_path / "out", columns=["_time", "id", "threshold", "symbol"]).to_pylist()
    told = {(one["_time"], one["threshold"], one["symbol"]) for one in found}
    assert told == {(1, 3.0, "A"), (2, 3.0, "A"), (3, 3.0, "A"), (8, 9.0, "A")}


def test_a_fixed_relation_has_members_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "subs.csv").write_text("symbol,threshold\nA,2\nB,8\nA,2\n")
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM ticks (symbol STRING, price DOUBLE);"
            "CREATE RELATION subscribers (symbol STRING, threshold DOUBLE) FROM csv "
            f"OPTIONS ('path' = '{tmp_path}/subs.csv', 'header' = 'true');" + ALERT
        )
        engine.poll()
        play(engine, 1, 4)
        assert rows(engine, "alert", "A", 2.0) == [(3, "+", "A", 3.0), (4, "+", "A", 4.0)]
        assert rows(engine, "alert", "B", 8.0) == [(1, "+", "B", 9.0)]


def test_members_that_are_none(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(DEFINED + ALERT + "; CREATE QUERY plain AS SELECT ISTREAM(symbol) FROM ticks [NOW]")
        with pytest.raises(UserError, match="no-family"):
            engine.query("plain").member(1)
        with pytest.raises(UserError, match="no-such-member"):
            engine.query("alert").member("A")
        with pytest.raises(UserError, match="no-such-member"):
            engine.query("alert").member("A", 1.0, 2.0)
        with pytest.raises(UserError, match="no-such-column"):
            engine.query("alert").member(symbol="A", treshold=1.0)
        engine.push("subscribers", [(1, ("A", 0.0), "+")])
        play(engine, 1, 1)
        with pytest.raises(UserError, match="wrong-type"):
            engine.query("alert").member("A", "much").results()


LASTING = """
CREATE STREAM ticks (symbol STRING, price DOUBLE);
CREATE RELATION subscribers (symbol STRING, n INT CHECK (n IN (1, 3, 5)));
CREATE QUERIES total FOR EACH ROW OF subscribers AS
  SELECT SUM(price) AS total, COUNT(*) AS n FROM ticks [RANGE subscribers.n] WHERE symbol = subscribers.symbol;
CREATE QUERIES last FOR EACH ROW OF subscribers AS
  SELECT symbol, MIN(price) AS low FROM ticks [PARTITION BY symbol ROWS subscribers.n] GROUP BY symbol;
"""


def test_members_have_windows_of_their_own_length(spark: SparkSession, tmp_path: Path) -> None:
    """Also over a restart; a member that breaks the CHECK is none, and one without a length sees nothing."""
    with Engine(spark, tmp_path) as engine:
        engine.execute(LASTING)
        members = [
            (1, ("A", 1), "+"),
            (1, ("A", 3), "+"),
            (1, ("A", 4), "+"),
            (1, ("A", None), "+"),
            (7, ("A", 1), "-"),
        ]
        assert engine.push("subscribers", members) == 4
        play(engine, 1, 4)
        before = engine.query("total").count
    with Engine(spark, tmp_path) as engine:
        engine.execute(LASTING)
        assert engine.counts("subscribers") == {"taken": 4, "check-failed": 1}
        engine.push("subscribers", [(6, ("B", 5), "+")])
        play(engine, 5, 8)
        assert engine.query("total").count > before
        added = {
            member: [one for one in rows(engine, "total", *member) if one[1] == "+"]
            for member in (("A", 1), ("A", 3), ("B", 5))
        }
        assert added["A", 1] == [
            (
                at,
                "+",
                float(2 * at - 1 if at > 1 else 1),
                min(at, 2),
            )
            for at in range(1, 7)
        ]
        assert added["A", 3] == [(at, "+", float(sum(range(max(at - 3, 1), at + 1))), min(at, 4)) for at in range(1, 9)]
        assert added["B", 5] == [
            (at, "+", float(sum(10 - one for one in range(max(at - 5, 1), at + 1))), 6) for at in (6, 7, 8)
        ]
        assert rows(engine, "total", "A", None) == [(1, "+", None, 0)]
        assert rows(engine, "total", "A", 4) == []
        lows = {(at, symbol): low for at, sign, symbol, low in rows(engine, "last", "A", 3) if sign == "+"}
        assert lows[8, "A"] == 6.0, "the least of the last three"
        assert lows[8, "B"] == 2.0
