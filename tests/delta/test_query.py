"""Queries as data: what they read, where their unions are, and how they are printed."""

from __future__ import annotations

from headgate.delta.program import Step
from headgate.delta.query import (
    Alias,
    Joined,
    LateralView,
    Subquery,
    Table,
    UnionAll,
    printed,
    select,
    tables,
    union,
    unions_in_one_partition,
)
from headgate.sql import Sql

A, B = Table("a"), Table("b")


def test_every_clause_is_printed_in_its_place() -> None:
    query = select(
        Sql("k, COUNT(*) AS n"),
        A,
        where=(Sql("k > 1"), Sql(""), Sql("v < 2")),
        group_by=Sql("k"),
        having=(Sql("COUNT(*) > 1"), Sql("")),
    )
    assert printed(query) == ("SELECT k, COUNT(*) AS n\nFROM a\nWHERE k > 1 AND v < 2\nGROUP BY k\nHAVING COUNT(*) > 1")


def test_a_condition_may_be_a_single_one_or_none() -> None:
    assert printed(select(Sql("1 AS n"), where=Sql("TRUE"))) == "SELECT 1 AS n\nWHERE TRUE"
    assert printed(select(Sql("*"), A, where=Sql(""))) == "SELECT *\nFROM a"


def test_sources_are_printed_inside_each_other() -> None:
    joined = Joined(Alias(select(Sql("*"), A), "l"), Alias(B, "r"), (Sql("l.k = r.k"), Sql("l.v < r.v")), outer=True)
    assert printed(select(Sql("*"), LateralView(joined, Sql("EXPLODE(x) e AS y")))) == (
        "SELECT *\nFROM (\n  SELECT *\n  FROM a\n) AS l\nLEFT JOIN b AS r ON l.k = r.k AND l.v < r.v\n"
        "LATERAL VIEW EXPLODE(x) e AS y"
    )


def test_a_table_is_read_as_often_as_it_stands_there() -> None:
    both = union(select(Sql("*"), A), select(Sql("*"), Joined(Alias(A, "x"), Alias(B, "y"), (Sql("TRUE"),))))
    assert tables(both) == (A, A, B)
    assert tables(select(Sql("*"), LateralView(Alias(both, "z"), Sql("EXPLODE(x) e AS y")))) == (A, A, B)
    assert tables(select(Sql("1"))) == ()


def test_tables_within_expressions_are_read_too() -> None:
    largest = Subquery(Sql("COALESCE("), select(Sql("MAX(k)"), B), Sql(", 0) AS most"))
    query = select(largest, A, where=Subquery(Sql("k > "), select(Sql("MIN(k)"), B)))
    assert tables(query) == (B, A, B)
    assert printed(query) == (
        "SELECT COALESCE((SELECT MAX(k)\nFROM b), 0) AS most\nFROM a\nWHERE k > (SELECT MIN(k)\nFROM b)"
    )


def test_words_in_an_expression_are_no_tables() -> None:
    step = Step("s", select(Sql("EXTRACT(YEAR FROM a) AS y, 'x\nUNION ALL\nSELECT' AS text"), B))
    assert step.reads == ("b",)
    assert unions_in_one_partition(step.query) == step.query


def test_a_union_of_one_is_that_one() -> None:
    assert union(select(Sql("*"), A)) == select(Sql("*"), A)


def test_every_union_comes_back_as_one_partition_wherever_it_stands() -> None:
    both = union(select(Sql("*"), A), select(Sql("*"), B))
    hinted = select(Sql("/*+ COALESCE(1) */ *"), both)
    assert unions_in_one_partition(both) == hinted
    assert unions_in_one_partition(select(Sql("k"), both, group_by=Sql("k"))) == select(
        Sql("k"), hinted, group_by=Sql("k")
    )
    nested = select(
        Sql("*"), LateralView(Joined(Alias(both, "l"), Alias(A, "r"), (Sql("TRUE"),)), Sql("EXPLODE(x) e AS y"))
    )
    expected = select(
        Sql("*"), LateralView(Joined(Alias(hinted, "l"), Alias(A, "r"), (Sql("TRUE"),)), Sql("EXPLODE(x) e AS y"))
    )
    assert unions_in_one_partition(nested) == expected
    within = UnionAll((select(Sql("*"), both), select(Sql("*"), A)))
    assert unions_in_one_partition(within) == select(
        Sql("/*+ COALESCE(1) */ *"), UnionAll((select(Sql("*"), hinted), select(Sql("*"), A)))
    )


def test_a_table_in_a_text_gives_no_sql() -> None:
    assert str(A) != "a"
