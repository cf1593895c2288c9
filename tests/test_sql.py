"""Pieces of SQL: names come back as they went in, whatever letters they have, and are quoted wherever they must be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.delta.lower import lower
from headgate.sql import BARE, Column, Sql, backquoted, cast, ddl, is_plain, name, signature, spelled, unquoted


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
