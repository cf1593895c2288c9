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

A, B = Table("a"), Table("b")


def test_every_clause_is_printed_in_its_place() -> None:
    query = select("k, COUNT(*) AS n", A, where=("k > 1", "", "v < 2"), group_by="k", having=("COUNT(*) > 1", ""))
    assert printed(query) == ("SELECT k, COUNT(*) AS n\nFROM a\nWHERE k > 1 AND v < 2\nGROUP BY k\nHAVING COUNT(*) > 1")


def test_a_condition_may_be_a_single_one_or_none() -> None:
    assert printed(select("1 AS n", where="TRUE")) == "SELECT 1 AS n\nWHERE TRUE"
    assert printed(select("*", A, where="")) == "SELECT *\nFROM a"


def test_sources_are_printed_inside_each_other() -> None:
    joined = Joined(Alias(select("*", A), "l"), Alias(B, "r"), ("l.k = r.k", "l.v < r.v"), outer=True)
    assert printed(select("*", LateralView(joined, "EXPLODE(x) e AS y"))) == (
        "SELECT *\nFROM (\n  SELECT *\n  FROM a\n) AS l\nLEFT JOIN b AS r ON l.k = r.k AND l.v < r.v\n"
        "LATERAL VIEW EXPLODE(x) e AS y"
    )


def test_a_table_is_read_as_often_as_it_stands_there() -> None:
    both = union(select("*", A), select("*", Joined(Alias(A, "x"), Alias(B, "y"), ("TRUE",))))
    assert tables(both) == (A, A, B)
    assert tables(select("*", LateralView(Alias(both, "z"), "EXPLODE(x) e AS y"))) == (A, A, B)
    assert tables(select("1")) == ()


def test_tables_within_expressions_are_read_too() -> None:
    largest = Subquery("COALESCE(", select("MAX(k)", B), ", 0) AS most")
    query = select(largest, A, where=Subquery("k > ", select("MIN(k)", B)))
    assert tables(query) == (B, A, B)
    assert printed(query) == (
        "SELECT COALESCE((SELECT MAX(k)\nFROM b), 0) AS most\nFROM a\nWHERE k > (SELECT MIN(k)\nFROM b)"
    )


def test_words_in_an_expression_are_no_tables() -> None:
    step = Step("s", select("EXTRACT(YEAR FROM a) AS y, 'x\nUNION ALL\nSELECT' AS text", B))
    assert step.reads == ("b",)
    assert unions_in_one_partition(step.query) == step.query


def test_a_union_of_one_is_that_one() -> None:
    assert union(select("*", A)) == select("*", A)


def test_every_union_comes_back_as_one_partition_wherever_it_stands() -> None:
    both = union(select("*", A), select("*", B))
    hinted = select("/*+ COALESCE(1) */ *", both)
    assert unions_in_one_partition(both) == hinted
    assert unions_in_one_partition(select("k", both, group_by="k")) == select("k", hinted, group_by="k")
    nested = select("*", LateralView(Joined(Alias(both, "l"), Alias(A, "r"), ("TRUE",)), "EXPLODE(x) e AS y"))
    expected = select("*", LateralView(Joined(Alias(hinted, "l"), Alias(A, "r"), ("TRUE",)), "EXPLODE(x) e AS y"))
    assert unions_in_one_partition(nested) == expected
    within = UnionAll((select("*", both), select("*", A)))
    assert unions_in_one_partition(within) == select(
        "/*+ COALESCE(1) */ *", UnionAll((select("*", hinted), select("*", A)))
    )


def test_a_table_in_a_text_gives_no_sql() -> None:
    assert str(A) != "a"
