"""Literals and names of any characters arrive unchanged through parsing, plans, SQL, re-reading and Spark."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.cql.script import parse
from headgate.engine import Engine
from headgate.plan.nodes import Project
from headgate.testing.cases import Case
from headgate.testing.reference import evaluate

hard = st.text(st.sampled_from("'\"`\\%_nrtbZu0417${}:-/*\n\t\r\0\x0b\x1a\x85\u2028é😀 FROM;"), max_size=12)


def escaped(text: str, quote: str) -> str:
    return quote + text.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote


def doubled(text: str, quote: str) -> str:
    return quote + text.replace("\\", "\\\\").replace(quote, quote * 2) + quote


written = st.tuples(hard, st.sampled_from([escaped, doubled]), st.sampled_from("'\"")).map(
    lambda drawn: (drawn[0], drawn[1](drawn[0], drawn[2]))
)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'x''y'", "x'y"),
        ('"x""y"', 'x"y'),
        ("\"it''s\"", "it''s"),
        ("''''", "'"),
        ("'''x'''", "'x'"),
        (r"'a\'''b'", "a''b"),
        (r"'a\\''b'", r"a\'b"),
        (r"r'a\b'", r"a\b"),
        (r'R"a\n"', r"a\n"),
        (r"'a\%b\_c\d\Z'", "a\\%b\\_cd\x1a"),
        (r"'\u0041\101\400'", "AA400"),
        (r"'\ud83d\ude00'", "😀"),
        (r"'\U0001F600'", "😀"),
        ("'${env:HOME}'", "${env:HOME}"),
    ],
)
def test_a_literal_says_what_it_says_to_spark(literal: str, value: str) -> None:
    (tree,) = parse(f"SELECT {literal} AS q FROM s")
    assert tree.expressions[0].this.name == value
    (created,) = parse(f"CREATE STREAM s (a INT) FROM csv OPTIONS ('path' = {literal})")
    assert created.args["options"][0].expressions[1].name == value


@settings(max_examples=300)
@given(written)
def test_a_literal_survives_being_written_and_read(drawn: tuple[str, str]) -> None:
    text, literal = drawn
    catalog = Catalog()
    define("CREATE STREAM s (a STRING)", catalog)
    (query,) = define(f"CREATE QUERY q AS SELECT {literal} AS q FROM s [NOW]", catalog)
    projected = query.plan.child if not isinstance(query.plan, Project) else query.plan  # type: ignore[union-attr]
    (again,) = parse(f"SELECT {projected.items[0].expression.sql} AS q FROM s")  # type: ignore[union-attr]
    assert again.expressions[0].this.name == text


@settings(max_examples=60)
@given(written)
def test_a_literal_to_the_reference(drawn: tuple[str, str]) -> None:
    text, literal = drawn
    if "\0" in text:
        return  # DuckDB ends a text there
    case = Case(
        id="x",
        query=f"SELECT ISTREAM({literal} AS q) FROM S [NOW]",
        streams={"S": {"A": "int"}},
        relations={},
        views=(),
        input={"S": [(1, (1,), "+")]},
        horizon=1,
    )
    assert evaluate(case)[1] == [(1, "+", (text,))]


@pytest.mark.spark
def test_literals_and_names_reach_spark_as_they_are(spark: SparkSession) -> None:
    texts = [
        "x'y",
        'x"y',
        "a\\b",
        "a\\",
        "${env:HOME}",
        "${spark.app.name}",
        "\u2028\x0b\x85",
        "a\nb\tc\rd",
        "\0",
        "%_\\%",
        "--x",
        "/*",
        "é😀",
        "`",
        "';",
    ]
    names = ["a`b", "current_date", "user", "été", "x y", "select", "a'b", "${env:HOME}"]
    with Engine(spark) as engine:
        quoted = ["`" + name.replace("`", "``") + "`" for name in names]
        engine.execute(f"CREATE STREAM s (k INT, {', '.join(f'{name} INT' for name in quoted)})")
        values = ", ".join(f"{doubled(text, chr(39))} AS c{number}" for number, text in enumerate(texts))
        engine.execute(f"CREATE QUERY said AS SELECT {values} FROM s [NOW]")
        engine.execute(
            f"CREATE QUERY named AS SELECT {', '.join(quoted)}, COUNT(*) AS n FROM s [RANGE 5] GROUP BY {', '.join(quoted)}"
        )
        engine.push("s", [(1, (0, *range(len(names))))])
        engine.advance(1)
        assert list(engine.query("said").results()[0].row.values()) == texts
        assert engine.query("named").results()[0].row == {**dict(zip(names, range(len(names)), strict=True)), "n": 1}
