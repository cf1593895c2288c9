"""ON ERROR SKIP: the answer is the one over the rows that can be evaluated, however time is cut into epochs.

What only this file can catch: a rule that moves what may fail to where nothing catches it, or that leaves out a row too
many. The reference has its own meaning of SKIP, which shares nothing with the rewrite; over windows that count no rows,
the query over the input without the rows that fail is a second judge.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tools.duck import Duck, Fragments, bound, compiled
from tools.random_queries import HORIZON, KEYS, RELATIONS, SHAPES, STREAMS, cuttings, described, inputs, windows

from headgate.plan.fragments import all_parts, split
from headgate.plan.rewrites.driver import rewritten
from headgate.testing.cases import Case, Change, Row, difference
from headgate.testing.reference import evaluate
from headgate.testing.runner import on_spark

Cutting = tuple[list[int], list[bool]]
SKIP = " On Error Skip"


def judged(case: Case, found: list[Change], cutting: object) -> None:
    differs = difference(evaluate(case)[1], found, case.horizon)
    assert differs is None, f"{described(case, cutting)}\n{differs}"


@st.composite
def values(draw: st.DrawFn, column: str) -> str:
    """A value of a column that overflows for some rows; sometimes one that never does."""
    return draw(
        st.sampled_from(
            [
                f"{column} * 1000000000",
                f"{column} + 2147483645",
                f"Case When {column} > 1 Then {column} * 1000000000 Else {column} End",
                f"Coalesce({column}, 3) * 1000000000 % 7",
                f"{column} * 1000000000 + {column}",
                column,
            ]
        )
    )


@st.composite
def conditions(draw: st.DrawFn, column: str, other: str) -> str:
    """A WHERE clause, or none."""
    value, limit = draw(values(column)), draw(st.sampled_from(["0", "2000000000", other]))
    return draw(
        st.sampled_from(
            [
                "",
                f" Where {value} > {limit}",
                f" Where {other} > 0 And {value} > {limit}",
                f" Where {other} Is Null Or {value} > {limit}",
                f" Where Not ({value} > {limit})",
            ]
        )
    )


@st.composite
def plain(draw: st.DrawFn, window: str) -> str:
    """A selection and projection of one stream."""
    one, two = draw(values("B")), draw(values("A"))
    return f"Select {one} As x, A, {two} As y From S{window}{draw(conditions('B', 'A'))}"


@st.composite
def grouped(draw: st.DrawFn, window: str) -> str:
    """An aggregate, with keys, arguments, and what stands above that may fail."""
    key, value, other = draw(st.sampled_from(["A", "A", "D", draw(values("A"))])), draw(values("B")), draw(values("A"))
    call = draw(
        st.sampled_from(
            [
                "Count(*)",
                f"Max({value})",
                f"Min({value})",
                f"Count(Distinct {value})",
                f"Count({value}) Filter (Where {other} > 0)",
                f"Sum(Cast({value} As BigInt))",
                "Cast(Count(*) As Int) * 1000000000",
                "Max(B) * 1000000000",
            ]
        )
    )
    having = draw(st.sampled_from(["", " Having Max(A) * 1000000000 > 0", " Having Count(*) > 1"]))
    by = draw(st.booleans())
    text = f"Select {f'{key} As k, ' if by else ''}{call} As v From S{window}{draw(conditions('B', 'A'))}"
    return f"{text}{f' Group By {key}' if by else ''}{having if by else ''}"


@st.composite
def joined(draw: st.DrawFn, window: str) -> str:
    """A join of two streams, or of a stream and a relation."""
    other = draw(st.sampled_from([f"T{draw(windows(SHAPES['T']))} y", "R y"]))
    name = "C" if other.startswith("T") else "E"
    one, two = draw(values("x.B")), draw(values(f"y.{name}"))
    on = draw(st.sampled_from(["x.A = y.A", f"{one} = y.A", f"x.A = y.A And {one} > {two}", f"{one} > {two}"]))
    if draw(st.booleans()):  # three inputs, whose joins may be one sum or take another order
        return (
            f"Select x.A, {two} As v From S{window} x, {other}, T [Range 2] z Where {on} And z.A = x.A And {one} > z.C"
        )
    kind = draw(st.sampled_from(["Join", "Join", "Left Join"]))
    return f"Select x.A, {two} As v From S{window} x {kind} {other} On {on}"


@st.composite
def nested(draw: st.DrawFn, window: str) -> str:
    """A selection from a selection, a union, distinct rows, or analytic functions."""
    value, more = draw(values("B")), draw(values("b"))
    inner = f"(Select {value} As b, A As a From S{window}) n"
    rank = f"Rank() Over (Partition By A Order By {value})"
    return draw(
        st.sampled_from(
            [
                f"Select {more} As c From {inner}{draw(conditions('b', 'a'))}",
                f"Select Distinct {value} As c From S{window}",
                f"Select {value} As c From S{window} Union All Select {draw(values('C'))} As c From T [Range 3]",
                f"Select A, B, {rank} As r From S{window}",
                f"Select a, Max({more}) As m From {inner} Group By a",
            ]
        )
    )


@st.composite
def queries(draw: st.DrawFn, window: str | None = None) -> str:
    """A query with ON ERROR SKIP, in which some rows fail."""
    given_window = draw(windows(SHAPES["S"])) if window is None else window
    text = draw(st.sampled_from([plain, grouped, joined, nested]).flatmap(lambda kind: kind(given_window)))
    return draw(st.sampled_from([text, text, f"Istream({text})", f"Dstream({text})"])) + SKIP


@st.composite
def cases(draw: st.DrawFn, most: int = 10) -> Case:
    return _case(draw(queries()), draw(inputs(most)))


def _case(query: str, given_input: dict[str, list[tuple[int, Row, str]]]) -> Case:
    return Case("skip", query, STREAMS, RELATIONS, (), given_input, HORIZON, keys=KEYS)


@settings(max_examples=400)
@given(cases(), cuttings())
def test_skip_is_reference(case: Case, cutting: Cutting) -> None:
    judged(case, Duck(case, compiled(case)).run(*cutting), cutting)


@settings(max_examples=100)
@given(cases(), st.lists(cuttings(), min_size=1, max_size=3))
def test_skip_in_fragments(case: Case, cuttings: list[Cutting]) -> None:
    judged(case, Fragments(case, all_parts(split(rewritten(bound(case)).plan, "operator"))).run(cuttings), cuttings)


@settings(max_examples=150)
@given(
    st.sampled_from([" [Now]", " [Range 3]", " [Range 4 Slide 2]", ""]),
    st.sampled_from(
        [
            "Select {0} As v, A From S{1}",
            "Select A, Max({0}) As v, Count(*) As n From S{1} Group By A",
            "Select Distinct {0} As v From S{1}",
            "Select A From S{1} Where {0} > 0",
            "Istream(Select {0} As v From S{1})",
        ]
    ),
    inputs(),
    cuttings(),
)
def test_skip_is_the_query_over_the_rows_that_do_not_fail(
    window: str, text: str, rows: dict[str, list[tuple[int, Row, str]]], cutting: Cutting
) -> None:
    """B * 1000000000 is an INT for -2, -1, 0, 1, 2 and null."""
    query = text.format("B * 1000000000", window)
    kept = rows | {"S": [one for one in rows["S"] if one[1][1] is None or abs(one[1][1]) <= 2]}
    skipping = _case(query + SKIP, rows)
    found = Duck(skipping, compiled(skipping)).run(*cutting)
    differs = difference(evaluate(_case(query, kept))[1], found, HORIZON)
    assert differs is None, f"{described(skipping, cutting)}\n{differs}"


@pytest.mark.spark
@settings(max_examples=12)
@given(case=cases(most=8), cutting=cuttings(most=2), partitions=st.sampled_from([None, 1, 4]))
def test_skip_is_reference_on_spark(spark: SparkSession, case: Case, cutting: Cutting, partitions: int | None) -> None:
    judged(case, on_spark(case, cutting[0], spark, partitions), cutting[0])


def test_most_cases_leave_something_out() -> None:
    """The generator must not become harmless: with STOP, many of its queries fail."""
    failed = 0

    @settings(max_examples=60, database=None)
    @given(cases())
    def collect(case: Case) -> None:
        nonlocal failed
        stopping = replace(case, query=case.query.removesuffix(SKIP))
        try:
            Duck(stopping, compiled(stopping)).run([HORIZON], [False])
        except Exception as error:
            assert "Overflow" in str(error), described(stopping, None)
            failed += 1

    collect()
    assert failed > 10
