"""Constraints in an engine: declared or detected, shown, used, recovered and dropped; what breaks them is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tools.duck_engine import engine_on_duckdb, killed, without_spark

from headgate import Engine, ManualClock
from headgate.cql.definitions import Listing
from headgate.errors import UserError

SCRIPT = """CREATE STREAM s (k STRING, v INT);
CONSTRAINT together ON s CLUSTERED BY k WITHIN 1 TUPLES ON VIOLATION COUNT;
CREATE QUERY totals AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;
"""


def shown(engine: Engine) -> list[tuple[str, ...]]:
    (listing,) = engine.execute("SHOW CONSTRAINTS")
    assert isinstance(listing, Listing)
    return list(listing.rows)


def last(engine: Engine, query: str) -> dict[Any, Any]:
    found = {}
    for one in engine.query(query).results():
        key, value = one.row.values()
        if one.sign == "+":
            found[key] = value
    return found


def test_constraints_are_remembered_and_dropped(tmp_path: Path) -> None:
    with without_spark():
        engine = engine_on_duckdb(tmp_path)
        engine.execute(SCRIPT)
        expected = ("together", "s", "CLUSTERED BY k WITHIN 1 TUPLES", "count", "totals", "1", "0")
        assert shown(engine) == [expected]
        assert "limited by constraint together" in engine.query("totals").explain()
        engine = killed(engine, tmp_path)
        assert shown(engine) == [expected]
        assert "limited by constraint together" in engine.query("totals").explain()
        for statement in ("DROP CONSTRAINT together", "DROP STREAM s"):
            with pytest.raises(UserError, match="while it is read"):
                engine.execute(statement)
        engine.execute("DROP QUERY totals; DROP CONSTRAINT together; DROP CONSTRAINT IF EXISTS together")
        engine = killed(engine, tmp_path)
        assert shown(engine) == []
        engine.execute("CREATE QUERY totals AS SELECT k, COUNT(*) AS n FROM s GROUP BY k; DROP QUERY totals")
        engine.execute("DROP STREAM s")
        engine.close()


@pytest.mark.spark
def test_violations_are_shown_and_survive_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    pushed = [(1, ("a", 1)), (2, ("a", 1)), (3, ("b", 1)), (4, ("c", 1)), (5, ("d", 1)), (6, ("e", 1))]
    engine = Engine(spark, tmp_path, clock=ManualClock())
    engine.execute(SCRIPT)
    engine.push("s", pushed)
    engine.advance(6)
    assert last(engine, "totals") == {"a": 2, "b": 1, "c": 1, "d": 1, "e": 1}
    engine.push("s", [(7, ("a", 1))])
    engine.advance(7)
    for fragment in engine.query("totals").fragments:
        fragment.move_state()
    assert shown(engine)[0][-1] == "1"
    engine.close()
    again = Engine(spark, tmp_path, clock=ManualClock())
    assert shown(again)[0][-1] == "1"
    again.push("s", [(8, ("a", 1)), (9, ("f", 1))])
    again.advance(9)
    assert last(again, "totals")["f"] == 1
    again.close()


@pytest.mark.spark
def test_a_query_fails_where_a_tuple_breaks_its_constraint(spark: SparkSession, tmp_path: Path) -> None:
    engine = Engine(spark, tmp_path, clock=ManualClock())
    engine.execute(
        "CREATE STREAM orders (id INT, customer STRING); CREATE STREAM paid (id INT, amount INT);"
        "CONSTRAINT known ON paid (id) REFERENCES orders (id) WITHIN 1 TUPLE;"
        "CONSTRAINT rising ON paid ORDERED BY id WITHIN 0 TUPLES;"
        "CREATE QUERY amounts AS SELECT ISTREAM(customer, amount) FROM orders, paid WHERE orders.id = paid.id;"
    )
    kept = [str(one) for one in engine.query("amounts").state()]
    assert kept
    assert all("limited by constraint" in one for one in kept), kept
    engine.push("orders", [(1, (1, "x")), (3, (2, "y")), (5, (3, "z"))])
    engine.push("paid", [(2, (2, 20)), (4, (2, 5))])
    engine.advance(4)
    assert [tuple(one.row.values()) for one in engine.query("amounts").results()] == [("y", 20), ("y", 5)]
    engine.push("paid", [(6, (1, 10))])
    with pytest.raises(UserError, match="constraint"):
        engine.advance(7)
    engine.close()


DETECTED = """CREATE STREAM s (k INT, v INT);
CONSTRAINT seen ON s CLUSTERED BY k DETECTED WITHIN 20 TUPLES CONFIDENCE 0.9;
CREATE QUERY totals AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;
"""


def moved(engine: Engine) -> int:
    """Moves the state of the query; how many groups it keeps then."""
    (fragment,) = engine.query("totals").fragments
    fragment.move_state()
    return fragment.synopses.counts["sums_1"]


def test_detection_can_be_switched_off(tmp_path: Path) -> None:
    with without_spark():
        engine = engine_on_duckdb(tmp_path)
        engine.execute(f"SET detection = 'off'; {DETECTED}")
        promise = "CLUSTERED BY k DETECTED WITHIN 20 TUPLES CONFIDENCE 0.9"
        assert shown(engine) == [("seen", "s", promise, "count", "", "20", "0")]
        assert "constraint seen" not in engine.query("totals").explain()
        engine.execute("DROP QUERY totals; SET detection = 'on'")
        engine.execute("CREATE QUERY totals AS SELECT k, COUNT(*) AS n FROM s GROUP BY k")
        assert "limited by constraint seen (k is detected)" in engine.query("totals").explain()
        engine = killed(engine, tmp_path)
        assert shown(engine) == [("seen", "s", promise, "count", "totals", "20", "0")]
        assert "lives of k by constraint seen" in engine.query("totals").explain()
        engine.execute("SET detection = 'off'")
        engine = killed(engine, tmp_path)
        assert "lives of k by constraint seen" in engine.query("totals").explain(), "as when it was registered"
        engine.execute("SET detection = 'on'")
        engine.execute("CREATE QUERY pairs AS SELECT a.k FROM s a, (SELECT DISTINCT k FROM s) b WHERE a.k = b.k")
        assert "lives of" not in engine.query("pairs").explain(), "a join keeps the rows anyway"
        engine.close()


@pytest.mark.spark
def test_a_k_that_is_detected_follows_the_data_and_survives_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """Groups come one by one, then three in turn; one of the first ones comes again behind all of them."""
    engine = Engine(spark, tmp_path, clock=ManualClock())
    engine.execute(DETECTED)
    engine.push("s", [(at, (at // 3, 1)) for at in range(6)])
    engine.advance(5)
    assert moved(engine) == 2, "the first block is not full"
    assert shown(engine)[0][-2:] == ("20", "0")
    engine.push("s", [(at, (at // 3, 1)) for at in range(6, 30)])
    engine.advance(29)
    assert moved(engine) == 1
    assert shown(engine)[0][-2:] == ("0", "0")
    engine.push("s", [(at, (50 + at % 3, 1)) for at in range(30, 39)])
    engine.advance(38)
    assert moved(engine) == 3
    assert shown(engine)[0][-2:] == ("2", "2"), "the second one had been dropped before k rose"
    assert "detection: k of constraint seen is 0" in engine.query("totals").explain()
    assert any("k of constraint seen is 0" in line for line in engine.query("totals").why().adapted)
    engine.close()

    again = Engine(spark, tmp_path, clock=ManualClock())
    assert shown(again)[0][-2:] == ("2", "2")
    again.push("s", [(39, (50, 1)), (40, (9, 1)), (41, (51, 1))])
    again.advance(41)
    assert moved(again) == 4
    assert shown(again)[0][-2:] == ("10", "3")
    again.push("s", [(42, (51, 1))])
    again.advance(42)
    counts: dict[int, list[int]] = {}
    for one in again.query("totals").results():
        key, count = one.row.values()
        kept = counts.setdefault(key, [])
        kept.append(count) if one.sign == "+" else kept.remove(count)
    assert counts == {**{group: [3] for group in range(9)}, 9: [3, 1], 50: [1, 3], 51: [1, 4], 52: [3]}
    (listing,) = again.execute("SHOW PROFILE")
    assert isinstance(listing, Listing)
    assert any("k of constraint seen is 10" in line for (line,) in listing.rows)
    again.close()
