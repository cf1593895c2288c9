"""Pieces of SQL: names come back as they went in, whatever letters they have, and are quoted wherever they must be."""

from __future__ import annotations

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as some

from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.delta.lower import lower
from headgate.sql import (
    BARE,
    Column,
    Sql,
    backquoted,
    cast,
    checked_literal,
    checked_type,
    ddl,
    is_plain,
    name,
    signature,
    spelled,
    unquoted,
)
from headgate.sql.database import quoted_column, table


@given(some.text(min_size=1))
def test_a_name_in_backquotes_comes_back(text: str) -> None:
    assert unquoted(backquoted(text)) == text
    assert "`" not in backquoted(text)[1:-1].replace("``", "")


@given(some.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True))
def test_a_plain_name_stays_as_it_is(text: str) -> None:
    assert spelled(text) == (text if is_plain(text) else backquoted(text))
    assert unquoted(name(text)) == text


@pytest.mark.parametrize("text", ["a b", "a.b", "a`b", "ä", "1a", "a\n", "", *sorted(BARE)])
def test_a_name_that_spark_would_read_otherwise_is_quoted(text: str) -> None:
    assert name(text) == spelled(text) == backquoted(text)


def test_columns_are_declared_and_cast_by_their_quoted_names() -> None:
    columns = [Column("a", Sql("INT")), Column("a`b", Sql("STRING")), Column("end", Sql("DATE"))]
    assert ddl(columns) == "a INT, `a``b` STRING, `end` DATE"
    assert signature(columns) == "a INT, a`b STRING, end DATE"
    assert [cast(columns[1]), cast(columns[1], Sql("NULL"))] == [
        "CAST(`a``b` AS STRING) AS `a``b`",
        "CAST(NULL AS STRING) AS `a``b`",
    ]


def test_a_backquote_within_a_name_is_doubled_in_every_statement() -> None:
    catalog = Catalog()
    define("CREATE STREAM s (`a``b` INT); CREATE QUERY q AS SELECT DISTINCT `a``b` FROM s [RANGE 5]", catalog)
    program = lower(catalog.query("q").plan)
    statements = [
        program.output(),
        *(program.step_statement(way) for synopsis in program.synopses for way in synopsis.ways()),
    ]
    assert any("`a``b`" in statement for statement in statements)
    assert not any("`a`b`" in statement for statement in statements)


def test_a_quote_within_a_name_does_not_end_the_text_of_an_error() -> None:
    catalog = Catalog()
    define(
        """CREATE STREAM s (`it's` BIGINT INCREASING, v INT); CREATE STREAM t (`it's` BIGINT INCREASING, w INT);
        CREATE QUERY joined AS SELECT v, w FROM s [RANGE UNBOUNDED], t [RANGE UNBOUNDED] WHERE s.`it's` = t.`it's`;
        CREATE QUERY last AS SELECT `it's`, COUNT(*) FROM s [RANGE UNBOUNDED] GROUP BY `it's` EMIT FINAL""",
        catalog,
    )
    for query in ("joined", "last"):
        raising = [step.sql for step in lower(catalog.query(query).plan).steps.values() if "RAISE_ERROR" in step.sql]
        assert raising
        for text in raising:
            sqlglot.parse_one(text, read="spark")


@pytest.mark.parametrize(
    "text",
    [
        "INT",
        "bigint",
        "decimal(10,2)",
        "DECIMAL(38, 0)",
        "timestamp_ntz",
        "varchar(9)",
        "string collate UTF8_LCASE",
        "interval day to second",
        "array<int>",
        "ARRAY<STRING>",
        "map<string,array<double>>",
        "struct<>",
        "struct<a:int,größe:array<map<string,struct<x:double NOT NULL>>>>",
        "STRUCT<a: INT, `b c`: STRING>",
    ],
)
def test_names_of_types_are_taken_as_they_are(text: str) -> None:
    assert checked_type(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "INT)",
        "INT\n",
        "INT, x",
        "INT AS x, (SELECT 1",
        "array<int",
        "array<int>>",
        "map<int>",
        "struct<a b:int>",
        "struct<`a``:int>",
        "decimal(1;2)",
        "decimal(10,2) -- x",
    ],
)
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a type"):
        checked_type(text)


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "-1",
        "2.50",
        ".5",
        "1.5D",
        "-1E+20D",
        "infD",
        "TRUE",
        "false",
        "''",
        r"'it\'s'",
        r"'\\'",
        "TIMESTAMP_MICROS(0)",
    ],
)
def test_literals_are_taken_as_they_are(text: str) -> None:
    assert checked_literal(text) == text


@pytest.mark.parametrize(
    "text", ["", "x", "1 OR TRUE", "1;", "'a' || 'b'", r"'a\'", "'a''b'", "(1)", "TIMESTAMP_MICROS(x)"]
)
def test_what_is_no_literal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a literal"):
        checked_literal(text)


@pytest.mark.parametrize("text", ["t", "s.t", '"my table"', '"a""b".t', "`a``b`", "[dbo].[t]", "größe", "db.s.t"])
def test_names_of_tables_are_taken_as_they_are(text: str) -> None:
    assert table(text) == text


@pytest.mark.parametrize("text", ["", "a b", "t; DROP TABLE u", "(SELECT 1) AS t", '"a"b"', "a.", "t --"])
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a table"):
        table(text)


def test_quotes_must_not_end_within_a_name() -> None:
    assert quoted_column('"a""b"') == '"a""b"'
    with pytest.raises(ValueError, match="is not the quoted name of a column"):
        quoted_column('"a" = 1 OR "b"')
