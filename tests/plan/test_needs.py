"""What plans need of their streams: the columns, and the tuples that may pass, by cheap conditions only."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.as_sql import sql

from headgate.catalog.catalog import Catalog
from headgate.compile import compile_script
from headgate.cql.definitions import define
from headgate.plan.expressions import Expression
from headgate.plan.monotone import Divided, Floored, Scale, Shift, Step, Truncated
from headgate.plan.needs import Need, needs, together
from headgate.plan.prefilter import holds, is_cheap
from headgate.plan.weights import INSTANTS, Told, grains_of
from headgate.sql import Sql

STREAM = "CREATE STREAM s (k STRING, a INT, b BIGINT, d DOUBLE, ok BOOLEAN); CREATE STREAM r (k STRING, c INT);"


def of(query: str, stream: str = "s") -> tuple[str, str | None]:
    """The columns and the condition that a query needs of a stream."""
    catalog = Catalog()
    compile_script(f"{STREAM} CREATE QUERY q AS {query}", catalog)
    need = needs(catalog.queries["q"].plan)[stream]
    return " ".join(sorted(need.columns)), need.condition


@pytest.mark.parametrize(
    ("query", "columns", "condition"),
    [
        ("SELECT a FROM s [RANGE 5] WHERE k = 'x' AND b > 3", "a b k", "(k = 'x' AND b > 3)"),
        ("SELECT a + 1 AS c FROM s [NOW]", "a", None),
        ("SELECT a FROM s [RANGE 5] WHERE a IN (1, 2) OR NOT ok", "a ok", "((a IN (1, 2) OR NOT ok))"),
        ("SELECT a FROM s [RANGE 5] WHERE a BETWEEN 1 AND 5 AND b / a > 2", "a b", "(a BETWEEN 1 AND 5)"),
        ("SELECT a FROM s [RANGE 5] WHERE b / a > 2", "a b", None),  # may fail
        ("SELECT a FROM s [RANGE 5] WHERE k = 1", "a k", None),  # k would be cast
        ("SELECT c FROM (SELECT a AS c, k FROM s [RANGE 5]) x WHERE c > 1", "a", "(a > 1)"),
        ("SELECT a FROM s [ROWS 5] WHERE b > 3", "a b", None),  # others would be among the last
        ("SELECT a, b FROM s [PARTITION BY a ROWS 5] WHERE a > 3 AND b > 2", "a b", "(a > 3)"),
        ("SELECT k, COUNT(*) AS n FROM s [RANGE 5] GROUP BY k HAVING COUNT(*) > 2", "k", None),
        ("SELECT k, COUNT(*) AS n FROM s [RANGE 5] GROUP BY k HAVING k = 'x'", "k", "(k = 'x')"),
        ("SELECT DISTINCT k FROM s [RANGE 5] WHERE d < 1.5", "d k", "(d < 1.5)"),
        ("SELECT s.a, r.c FROM s [RANGE 5], r [RANGE 5] WHERE s.k = r.k AND a > 1 AND c > 2", "a k", "(a > 1)"),
        ("SELECT a FROM s [NOW] WHERE b = 1 UNION ALL SELECT a FROM s [NOW] WHERE b = 2", "a b", "(b = 1) OR (b = 2)"),
        ("SELECT a FROM s [NOW] WHERE b = 1 UNION ALL SELECT a FROM s [NOW]", "a b", None),
        ("SELECT a FROM s SAMPLE 10 PERCENT [RANGE 5] WHERE b = 1", "a b d k ok", None),
    ],
)
def test_needs(query: str, columns: str, condition: str | None) -> None:
    assert of(query) == (columns, condition)


@pytest.mark.parametrize(
    ("query", "counts"),
    [
        ("SELECT k, COUNT(*) AS n, COUNT(a) AS m, SUM(a) AS s, MAX(d) AS h FROM s [RANGE 5] GROUP BY k", True),
        ("SELECT k, COUNT(DISTINCT a) AS n FROM s [RANGE 5 SLIDE 5] WHERE b > 1 GROUP BY k", True),
        ("SELECT k, COUNT(*) AS n FROM (SELECT k FROM s [NOW] UNION ALL SELECT k FROM r [NOW]) x GROUP BY k", True),
        ("SELECT tb, k, COUNT(*) AS n FROM s GROUP BY ELEMENT_TIME DIV 10 AS tb, k EMIT FINAL", True),
        ("SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 5] GROUP BY k) x GROUP BY n", True),
        ("SELECT k, COUNT(*) AS n FROM s [ROWS 5] GROUP BY k", False),
        ("SELECT COUNT(*) AS n FROM s [RANGE 5]", False),  # a row where there are no tuples
        ("SELECT k, SUM(b) AS n FROM s [RANGE 5] GROUP BY k", True),
        ("SELECT k, SUM(b + 1) AS n FROM s [RANGE 5] GROUP BY k", False),  # a product may not fit
        ("SELECT k, SUM(d) AS n FROM s [RANGE 5] GROUP BY k", False),
        ("SELECT k, AVG(a) AS n FROM s [RANGE 5] GROUP BY k HAVING AVG(a) > 1", True),
        ("SELECT k, AVG(d) AS n FROM s [RANGE 5] GROUP BY k", False),
        ("SELECT k, AVG(DISTINCT a) AS n FROM s [RANGE 5] GROUP BY k", False),
        ("SELECT k, COUNT(*) FILTER (WHERE a > 1) AS n FROM s [RANGE 5] GROUP BY k", True),
        (
            "SELECT k, SUM(a) FILTER (WHERE b > 1) AS n, AVG(a) FILTER (WHERE k = 1) AS m FROM s [RANGE 5] GROUP BY k",
            True,
        ),
        ("SELECT ISTREAM(k) FROM s [RANGE 5]", False),
        ("SELECT s.k, COUNT(*) AS n FROM s [RANGE 5], r [RANGE 5] WHERE s.k = r.k GROUP BY s.k", False),
        ("SELECT k, COUNT(*) AS n FROM s [NOW] GROUP BY k UNION ALL SELECT k, a FROM s [NOW]", False),
    ],
)
def test_which_queries_only_count(query: str, counts: bool) -> None:
    catalog = Catalog()
    compile_script(f"{STREAM} CREATE QUERY q AS {query}; SET low_level = 'on'; CREATE QUERY p AS {query}", catalog)
    assert not needs(catalog.queries["q"].plan)["s"].told
    assert (needs(catalog.queries["p"].plan)["s"].told is not None) == counts
    assert catalog.queries["p"].plan.columns == catalog.queries["q"].plan.columns


@pytest.mark.parametrize(
    ("calls", "apart"),
    [
        ("COUNT(a), MIN(a), SUM(a), MAX(a)", {"k"}),
        ("count(A), Min(`a`), AVG(A)", {"k"}),
        ("SUM(a) FILTER (WHERE b > 1)", {"k", "b"}),
        ("AVG(a) FILTER (WHERE a > 1)", {"k", "a"}),
        ("COUNT(*) FILTER (WHERE b = 1), MAX(a)", {"k", "b"}),
    ],
)
def test_what_tells_tuples_apart(calls: str, apart: set[str]) -> None:
    catalog = Catalog()
    named = ", ".join(f"{call} AS c{number}" for number, call in enumerate(calls.split(", ")))
    text = f"SELECT k, {named} FROM s [RANGE 5] GROUP BY k"
    compile_script(f"{STREAM} SET low_level = 'on'; CREATE QUERY q AS {text}", catalog)
    told = needs(catalog.queries["q"].plan)["s"].told
    assert told is not None
    assert told.columns == apart


@pytest.mark.parametrize("call", ["MIN(t)", "MAX(t)", "SUM(t)", "COUNT(t)", "AVG(t)"])
def test_a_timestamp_that_is_aggregated_tells_instants_apart(call: str) -> None:
    catalog = Catalog()
    text = f"SELECT tb, {call} AS c FROM s GROUP BY t DIV 10 AS tb EMIT FINAL"
    define(f"CREATE STREAM s (t INT, a INT) TIMESTAMP BY t; SET low_level = 'on'; CREATE QUERY q AS {text}", catalog)
    told = needs(catalog.queries["q"].plan)["s"].told
    assert told is None or told.grains == INSTANTS


def test_a_join_needs_of_each_stream_its_own() -> None:
    query = "SELECT s.a, r.c FROM s [RANGE 5], r [RANGE 5] WHERE s.k = r.k AND a > 1 AND c > 2"
    assert of(query, "r") == ("c k", "(c > 2)")


def test_what_covers_what() -> None:
    one, other = Need(frozenset("ab"), frozenset({Sql("a = 1")})), Need(frozenset("bc"), frozenset({Sql("b = 2")}))
    both, everything = together([one, other]), Need(frozenset("abc"), None)
    assert both == Need(frozenset("abc"), frozenset({Sql("a = 1"), Sql("b = 2")}))
    assert both.covers(one)
    assert both.covers(other)
    assert not one.covers(other)
    assert everything.covers(both)
    assert not both.covers(everything)
    assert one.common(everything) == one
    assert not one.common(other).covers(one)
    assert Need.read(both.written()) == both
    assert Need.read(everything.written()) == everything


ROWS = pa.table(
    {
        "k": pa.array(["x", None, "y", ""]),
        "a": pa.array([1, 2, None, -4], pa.int32()),
        "b": pa.array([1, 1, 5, None], pa.int64()),
        "d": pa.array([0.5, float("nan"), None, 2.0]),
        "ok": pa.array([True, False, None, True]),
    }
)
TYPES = {"k": "STRING", "a": "INT", "b": "BIGINT", "d": "DOUBLE", "ok": "BOOLEAN"}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a = 1", [1, 0, 0, 0]),
        ("NOT a = 1", [0, 1, 0, 1]),
        ("a <> 1 OR ok", [1, 1, 0, 1]),
        ("k IS NULL", [0, 1, 0, 0]),
        ("NOT k IS NULL AND k <> 'x'", [0, 0, 1, 1]),
        ("k IN ('x', 'y')", [1, 0, 1, 0]),
        ("NOT k IN ('x')", [0, 0, 1, 1]),
        ("d > 1", [0, 1, 0, 1]),
        ("NOT d > 1", [1, 1, 0, 0]),
        ("d BETWEEN 0.5 AND 1", [1, 1, 0, 0]),
        ("a >= -4 AND b < 9223372036854775807", [1, 1, 0, 0]),
        ("3 > a", [1, 1, 0, 1]),
        ("k < 'xa'", [1, 0, 0, 1]),
    ],
)
def test_conditions_over_rows(condition: str, expected: list[int]) -> None:
    """As Spark has it, but for NaN, where the answer is always yes."""
    assert is_cheap(Expression(sql(condition), Sql("BOOLEAN"), frozenset()), TYPES)
    assert holds(condition, ROWS).to_pylist() == [bool(one) for one in expected]


@pytest.mark.parametrize(
    "condition",
    [
        "a + 1 = 2",
        "k = 1",
        "a = '1'",
        "a = 1.5",
        "a = b",
        "k LIKE 'x%'",
        "a = 99999999999999999999",
        "k = 'it\\'s'",
        "a",
    ],
)
def test_what_is_not_cheap(condition: str) -> None:
    assert not is_cheap(Expression(sql(condition), Sql("BOOLEAN"), frozenset()), TYPES)


INSTANT = {(0, 1)}


@pytest.mark.parametrize(
    ("query", "columns", "grains"),
    [
        ("SELECT k, SUM(a) AS n FROM s [RANGE 5] GROUP BY k", "k", INSTANT),
        ("SELECT k, SUM(a) AS n, MAX(a) AS h FROM s [RANGE 10 SLIDE 10] GROUP BY k", "k", {(1, 10), (0, 10)}),
        ("SELECT k, SUM(a) AS n FROM s [RANGE 25 SLIDE 10] WHERE b > 1 GROUP BY k", "b k", {(1, 10), (5, 10)}),
        ("SELECT k, SUM(a) AS n FROM s [RANGE 10 SLIDE 10] GROUP BY k, a", "a k", {(1, 10), (0, 10)}),
        ("SELECT k, SUM(a) AS n FROM s [RANGE 10 SLIDE 10] GROUP BY k, ELEMENT_TIME", "k", INSTANT),
        ("SELECT k, SUM(a * 2) AS n FROM s [RANGE 10 SLIDE 10] GROUP BY k", "a k", {(1, 10), (0, 10)}),
        ("SELECT k, MIN(d) AS n FROM s [RANGE 10 SLIDE 10] GROUP BY k", "d k", {(1, 10), (0, 10)}),
        ("SELECT tb, COUNT(a) AS n FROM s GROUP BY ELEMENT_TIME DIV 10 AS tb EMIT FINAL", "", {(0, 10), (1, 10)}),
        (
            "SELECT tb, SUM(x) AS n FROM (SELECT a AS x, (ELEMENT_TIME + 3) DIV 10 AS tb FROM s) y GROUP BY tb EMIT FINAL",
            "",
            {(7, 10), (8, 10)},
        ),
        (
            "SELECT tb, SUM(a) AS n FROM s GROUP BY ELEMENT_TIME - ELEMENT_TIME % 10 AS tb, ELEMENT_TIME DIV 4 EMIT FINAL",
            "",
            {(0, 10), (1, 10), (0, 4), (1, 4)},
        ),
    ],
)
def test_by_what_queries_tell_tuples_apart(query: str, columns: str, grains: set[tuple[int, int]]) -> None:
    catalog = Catalog()
    compile_script(f"{STREAM} SET low_level = 'on'; CREATE QUERY p AS {query}", catalog)
    told = needs(catalog.queries["p"].plan)["s"].told
    assert told is not None
    assert (" ".join(sorted(told.columns)), set(told.grains)) == (columns, grains)


@settings(max_examples=200)
@given(
    st.lists(
        st.one_of(
            st.builds(Shift, st.integers(-30, 30)),
            st.builds(Scale, st.integers(1, 4)),
            st.builds(Divided, st.integers(1, 12)),
            st.builds(Floored, st.integers(1, 12)),
            st.builds(Truncated, st.integers(1, 12)),
        ),
        max_size=4,
    ),
    st.integers(-300, 300),
)
def test_instants_of_one_bucket_have_one_value(steps: list[Step], at: int) -> None:
    grains = grains_of(tuple(steps))
    if grains is None:
        return
    found: dict[tuple[int, ...], int] = {}
    for instant in range(at, at + 60):
        value = instant
        for step in steps:
            match step:
                case Shift(by):
                    value += by
                case Scale(by):
                    value *= by
                case Divided(by):
                    value = int(value / by)
                case Floored(by):
                    value //= by
                case Truncated(by):
                    value -= value % by
        bucket = tuple((instant - offset) // width for offset, width in sorted(grains))
        assert found.setdefault(bucket, value) == value


def test_a_log_of_partial_aggregates_holds_what_a_query_needs_if_it_tells_no_more_apart() -> None:
    fine, coarse = frozenset({(0, 1)}), frozenset({(0, 10), (1, 10)})
    held = Need(frozenset({"a", "k", "_weight", "_sum_a"}), None, Told(frozenset({"k"}), coarse))
    assert held.covers(held)
    assert held.coarse
    for columns, told in (
        ({"a", "k"}, None),
        ({"a", "k", "_weight"}, Told(frozenset({"a"}), coarse)),
        ({"a", "k", "_weight"}, Told(frozenset({"k"}), fine)),
        ({"a", "k", "_weight", "_max_a"}, Told(frozenset({"k"}), coarse)),
    ):
        assert not held.covers(Need(frozenset(columns), None, told))
    assert Need(frozenset({"a", "k"}), None).covers(Need(frozenset({"a"}), None, Told(frozenset(), coarse)))
    assert Need.read(held.written()) == held
    both = together([held, Need(frozenset({"a", "_weight"}), None, Told(frozenset({"a"}), frozenset({(0, 4)})))])
    assert both.told == Told(frozenset({"a", "k"}), coarse | {(0, 4)})
    assert held.common(both).coarse
