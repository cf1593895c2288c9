"""Forms of the language that have a test of their own.

Deep texts, functions that are refused wherever they stand, zero divisors, views with types, units, the instant of the
answer, and `headgate check`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tools import random_queries
from tools.duck import Duck, compiled
from tools.random_queries import cuttings, described, inputs
from typer.testing import CliRunner

from headgate.catalog.catalog import Catalog
from headgate.check import problems
from headgate.cli import app
from headgate.compile import explanation
from headgate.cql import foreign
from headgate.cql.definitions import define
from headgate.engine import Engine
from headgate.errors import UserError
from headgate.plan.nodes import Node, Unbounded, Window
from headgate.sql.functions import COMPUTES, OPERATORS, REFUSED, is_judged
from headgate.testing.cases import Case, Row, difference
from headgate.testing.reference import evaluate

STREAMS = "CREATE STREAM s (k STRING, x INT, y INT, at TIMESTAMP) TIMESTAMP BY at; CREATE STREAM i (v INT);"


def defined(text: str) -> Catalog:
    catalog = Catalog()
    define(STREAMS + text, catalog)
    return catalog


# functions

PLACES = [
    "SELECT {0} AS q FROM s [RANGE 5]",
    "SELECT x FROM s [NOW] WHERE {0} IS NOT NULL",
    "SELECT k, MAX({0}) AS m FROM s GROUP BY k",
    "SELECT k FROM s [NOW] GROUP BY k HAVING MAX({0}) IS NULL",
    "SELECT x FROM s [NOW] ORDER BY {0} LIMIT 1",
    "SELECT COUNT(*) FILTER (WHERE {0} IS NULL) AS n FROM s [NOW]",
    "SELECT RANK() OVER (ORDER BY {0}) AS r FROM s [NOW]",
    "SELECT a.x FROM s [NOW] a JOIN s [NOW] b ON a.x = b.x AND {0} IS NULL",
    "CREATE VIEW v AS SELECT {0} AS q FROM s",
    "SELECT a.x FROM s [NOW] a LEFT JOIN s [NOW] b ON a.k = {0}",
    "CREATE FUNCTION f(a INT) RETURN CONCAT(a, {0})",
    "SELECT DSTREAM(COALESCE(CAST({0} AS STRING), k)) FROM s [ROWS 3]",
    "SELECT x FROM s [NOW] WHERE x IN (SELECT x FROM s WHERE {0} IS NULL)",
]
CALLED = sorted(REFUSED.keys() - {"identifier", "current_time", "window", "session_window", "window_time", "range"})


@settings(max_examples=250)
@given(
    st.sampled_from(CALLED), st.sampled_from(PLACES), st.sampled_from([str.upper, str.lower, str.title, "`{}`".format])
)
def test_what_does_not_follow_from_the_tuples_is_refused_wherever_it_stands(
    name: str, place: str, spelled: object
) -> None:
    call = f"{spelled(name)}()"  # type: ignore[operator]
    with pytest.raises(UserError) as refused:
        defined(place.format(call))
    assert refused.value.code in ("not-deterministic", "function-refused", "syntax", "wrong-arguments"), (
        refused.value.render()
    )
    assert refused.value.place is not None


@pytest.mark.spark
def test_the_list_of_functions_is_sparks(spark: SparkSession) -> None:
    """Somebody has judged every function of this Spark; those it marks as not deterministic are refused.

    A new version of Spark may bring a function that leaves the query, which no mark tells: read what it does, and put it
    on one of the lists of `headgate.sql.functions`.
    """
    state, jvm = spark._jsparkSession.sessionState(), spark._jvm
    assert jvm is not None
    marked = [
        jvm.java.lang.Class.forName(f"org.apache.spark.sql.catalyst.expressions.{name}")
        for name in ("Nondeterministic", "ExpressionWithRandomSeed")
    ]
    listed = state.functionRegistry().listFunction().toList()
    names = {listed.apply(number).funcName() for number in range(listed.size())}
    names -= {row[0].split(".")[-1] for row in spark.sql("SHOW USER FUNCTIONS").collect()}  # of other tests
    tables = state.tableFunctionRegistry().listFunction().toList()
    names |= {tables.apply(number).funcName() for number in range(tables.size())}
    built_in = {name for name in names if not name.startswith("chance")}
    assert [name for name in sorted(built_in) if not is_judged(name)] == []
    assert not COMPUTES & REFUSED.keys()
    found = set()
    for name in sorted(built_in - OPERATORS - {"range", "variant_explode", "variant_explode_outer"}):
        info = state.catalog().lookupFunctionInfo(jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name))
        made_by = jvm.java.lang.Class.forName(info.getClassName())
        if any(kind.isAssignableFrom(made_by) for kind in marked):
            found.add(name)
    assert {"rand", "uuid", "shuffle", "reflect"} <= found
    assert [name for name in sorted(found) if name not in REFUSED] == []


# deep texts


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k FROM s [RANGE 5 MINUTES] WHERE " + " OR ".join(f"x = {number}" for number in range(1500)),
        "SELECT " + " || ".join(["k"] * 1000) + " AS q FROM s [NOW]",
        "SELECT " + " + ".join(["x"] * 150) + " AS q FROM s [NOW]",
        "SELECT " + "(" * 150 + "x" + ")" * 150 + " AS q FROM s [NOW]",
    ],
    ids=["or", "concat", "add", "parentheses"],
)
def test_long_and_deep_texts_are_taken(text: str) -> None:
    catalog = defined(text)
    assert explanation(catalog.query("q1"), catalog)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + " + ".join(["x"] * 3000) + " AS q FROM s [NOW]",
        "SELECT " + "(" * 500 + "x" + ")" * 500 + " AS q FROM s [NOW]",
        "SELECT " + "(" * 100_000,
        "SELECT * FROM s [NOW] WHERE " + "NOT " * 5000 + "x = 1",
        "SELECT " + "- " * 5000 + "x AS q FROM s [NOW]",
        "SELECT " + "CASE WHEN x = 1 THEN " * 300 + "x" + " END" * 300 + " AS q FROM s [NOW]",
        "SELECT * FROM " + "(SELECT * FROM " * 300 + "s [NOW]" + ")" * 300,
        " UNION ALL ".join(["SELECT x FROM s [NOW]"] * 500),
        "CREATE STREAM z (a " + "ARRAY<" * 1000 + "INT" + ">" * 1000 + ")",
    ],
    ids=["add", "parentheses", "open", "not", "minus", "case", "queries", "union", "type"],
)
def test_what_is_too_deep_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(UserError) as refused:
        defined(text)
    assert refused.value.code == "too-deep"
    assert max(map(len, refused.value.render().splitlines())) < 320


# forms


def windows(node: Node) -> list[Window]:
    return [node] if isinstance(node, Window) else [found for child in (node.child,) for found in windows(child)]  # type: ignore[union-attr]


def test_unbounded_alone_is_a_window() -> None:
    (window,) = windows(defined("SELECT DISTINCT x FROM s [UNBOUNDED]").query("q1").bound)
    assert window.frame == Unbounded()


def test_a_view_can_say_its_types() -> None:
    catalog = defined("CREATE VIEW v (a BIGINT, b DOUBLE, c) AS SELECT x, y, k FROM s [NOW]; SELECT a, b, c FROM v")
    assert [(column.name, column.type) for column in catalog.views["v"].plan.columns] == [
        ("a", "BIGINT"),
        ("b", "DOUBLE"),
        ("c", "STRING"),
    ]


def test_nanoseconds() -> None:
    catalog = defined(
        "SET time_unit = '1 nanosecond'; SELECT v FROM i [RANGE 3 MICROSECONDS]; SELECT x FROM s [RANGE 5000 NANOSECONDS]"
    )
    assert [windows(catalog.query(name).bound)[0].frame.length for name in ("q1", "q2")] == [3000, 5]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "divided", ["x / y", "x % y", "x DIV y", "MOD(x, y)", "PMOD(x, y)", "x / 0", "x % 0", "x DIV (y - y)"]
)
def test_a_divisor_that_may_be_zero_is_null_then(divided: str) -> None:
    catalog = defined(f"SELECT {divided} AS q, SUM({divided}) AS n FROM s [RANGE 5] GROUP BY {divided}")
    assert "NULLIF(" in explanation(catalog.query("q1"), catalog)


def test_a_divisor_that_cannot_be_zero_stays() -> None:
    catalog = defined("SELECT x / 2 AS q, x % 60 AS r, PMOD(x, -7) AS p, x DIV 10 AS d FROM s [RANGE 5]")
    assert "NULLIF(" not in explanation(catalog.query("q1"), catalog)


@pytest.mark.parametrize("word", foreign.STATEMENTS)
def test_statements_of_other_systems_are_named(word: str) -> None:
    with pytest.raises(UserError) as refused:
        defined(f"{word} something else")
    assert refused.value.code == "foreign-construct"
    assert refused.value.hint


@pytest.mark.parametrize("word", foreign.CREATED)
def test_what_other_systems_create_is_named(word: str) -> None:
    with pytest.raises(UserError) as refused:
        defined(f"CREATE {word} something AS SELECT x FROM s")
    assert refused.value.code == "foreign-construct"
    assert refused.value.hint


@pytest.mark.parametrize("name", foreign.FUNCTIONS)
def test_functions_of_other_systems_are_named(name: str) -> None:
    for text in (
        f"SELECT {name}(at) AS q FROM s",
        f"SELECT COUNT(*) AS n FROM s GROUP BY {name}(at, INTERVAL '1' MINUTE)",
    ):
        with pytest.raises(UserError) as refused:
            defined(text)
        assert refused.value.code == "foreign-construct"
        assert refused.value.hint


FORMS = [
    "Select A % B As q, A Div B As r From S{0}",
    "Select Mod(A, B - 2) As q From S{0} Where B % A = 0",
    "Select x.A % y.E As q From S{0} x, R y",
    "Select A, Sum(B % A) As q From S{0} Group By A",
    "Select A, Sum(B) % Count(B) As q From S{0} Group By A",
    "Select A, CURRENT_TIME As q From S [Now]",
    "Select x.A, CURRENT_TIME - y.ELEMENT_TIME As q From S [Now] x, T{0} y",
    "Select x.A, y.E, CURRENT_TIME As q From S [Now] x Left Join R y On x.A = y.A",
    "Select y.E, CURRENT_TIME() As q From R y, S [Now] x",
    "Select Dstream(A, CURRENT_TIME) From S [Now]",
    "Select A, Max(CURRENT_TIME) As q From S [Now] Group By A",
    "Select A From S [Now] Where B > CURRENT_TIME",
    "Select x.A From T{0} y Right Join S [Now] x On x.A = y.A Where y.C < CURRENT_TIME",
    "Select Distinct A, 'a''b\\\\' As q From S [Unbounded] Where D <> 'x''y'",
    "Select A From S [Unbounded] Where A = 1 Or A = 2 Or B = 3 Or A = 4 Or A = 5 "
    "Or A = 6 Or B = 7 Or A = 8 Or A = 9 Or B Is Null",
]


@settings(max_examples=150)
@given(
    st.sampled_from(FORMS), st.sampled_from(["", " [Range 3]", " [Rows 2]", " [Range 4 Slide 2]"]), inputs(), cuttings()
)
def test_the_forms_by_the_reference(
    form: str, window: str, rows: dict[str, list[tuple[int, Row, str]]], cutting: tuple[list[int], list[bool]]
) -> None:
    case = Case(
        "form",
        form.format(window),
        random_queries.STREAMS,
        random_queries.RELATIONS,
        (),
        rows,
        random_queries.HORIZON,
        keys=random_queries.KEYS,
    )
    differs = difference(evaluate(case)[1], Duck(case, compiled(case)).run(*cutting), case.horizon)
    assert differs is None, f"{described(case, cutting)}\n{differs}"


# headgate check

SCRIPT = """CREATE STREAM s (k STRING, x INT, at TIMESTAMP) TIMESTAMP BY at FROM csv OPTIONS ('path' = '{here}', 'heder' = 'true');
CREATE QUERY a AS SELECT COUNTT(x) AS n FROM s [RANGE 5 MINUTES];
CREATE QUERY b AS SELECT k FROM s [NOW] WHERE x;
CREATE QUERY c AS SELECT k FROM s [RANGE 20000000 WEEKS];
CREATE STREAM m (a INT, at TIMESTAMP) TIMESTAMP BY at FROM json OPTIONS ('path' = '{here}/nowhere');
CREATE QUERY d AS SELECT k FROM s [NOW] WHERE SELECT;
"""


def test_check_without_spark(tmp_path: Path) -> None:
    script = tmp_path / "script.cql"
    script.write_text(SCRIPT.format(here=tmp_path))
    result = CliRunner().invoke(app, ["check", str(script), "--no-spark"])
    assert result.exit_code == 2
    codes = [
        line.split(":")[0]
        for line in result.output.splitlines()
        if line[:1].islower() and not line.startswith(("hint", "detail"))
    ]
    assert codes == ["bad-option", "no-such-function", "wrong-type", "too-large", "no-such-file", "syntax"]
    assert all(f"script.cql:{line}" in result.output for line in range(1, 7))
    script.write_text("CREATE STREAM s (x INT); CREATE QUERY q AS SELECT x FROM s [NOW];")
    assert CliRunner().invoke(app, ["check", str(script), "--no-spark"]).exit_code == 0
    refused = CliRunner().invoke(app, ["check", str(script), "--no-spark", "--allow", "csv=*"])
    assert isinstance(refused.exception, UserError)


@pytest.mark.spark
def test_check_with_spark(spark: SparkSession) -> None:
    script = """CREATE STREAM s (k STRING, x INT, at TIMESTAMP) TIMESTAMP BY at;
CREATE QUERY good AS SELECT k, COUNT(*) AS n FROM s [RANGE 5 MINUTES] GROUP BY k;
CREATE QUERY bad AS
  SELECT k, x + ARRAY( 1 ) AS y FROM s [NOW];
CREATE STREAM t (a INT, at TIMESTAMP) TIMESTAMP BY at FROM frobnicator;
SELECT CAST(ARRAY(x) AS INT) AS z FROM s [NOW];"""
    found = list(problems(script, "script.cql", spark))
    shown = [(error.code, error.place.text[error.place.start : error.place.end]) for error in found if error.place]
    assert shown == [
        ("query-rejected", "x + ARRAY( 1"),
        ("no-such-source", "frobnicator"),
        ("query-rejected", "CAST(ARRAY(x) AS INT"),
    ]
    assert all(error.hint for error in found if error.code == "query-rejected")


@pytest.mark.spark
def test_zeros_and_deep_texts_on_spark(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute("CREATE STREAM i (v INT, w INT); CREATE VIEW n (a BIGINT) AS SELECT v FROM i [NOW]")
        engine.execute(
            "CREATE QUERY zero AS SELECT v % w AS a, v DIV w AS b, MOD(v, w) AS c, PMOD(v, w) AS d, v / w AS e FROM i [NOW]"
        )
        engine.execute("CREATE QUERY wide AS SELECT a, " + " + ".join(["a"] * 150) + " AS b FROM n")
        engine.execute(
            "CREATE QUERY many AS SELECT v FROM i [NOW] WHERE " + " OR ".join(f"v = {number}" for number in range(1000))
        )
        engine.execute("CREATE QUERY long AS SELECT " + " || ".join(["STRING(v)", "'-'"] * 1500) + " AS s FROM i [NOW]")
        engine.execute("CREATE QUERY clock AS SELECT v, CURRENT_TIME AS t FROM i [NOW]")
        engine.push("i", [(3, (7, 0))])
        engine.advance(3)
        assert list(engine.query("zero").results()[0].row.values()) == [None] * 5
        assert engine.query("wide").results()[0].row == {"a": 7, "b": 1050}
        assert engine.query("many").results()[0].row == {"v": 7}
        assert engine.query("long").results()[0].row == {"s": "7-" * 1500}
        assert engine.query("clock").results()[0].row == {"v": 7, "t": 3}
