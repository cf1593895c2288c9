"""What programs take for granted of numbers: what holds for chunks, what is left out, and what happens when it breaks."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.duck import Duck, bound
from tools.random_queries import HORIZON, cuttings, described

from headgate.delta.assumptions import Assumption, origins
from headgate.delta.lower import Way, lower
from headgate.log.statistics import Values
from headgate.plan.nodes import Aggregate, Node
from headgate.plan.rewrites.driver import rewritten
from headgate.testing.cases import Case, difference
from headgate.testing.reference import evaluate

Cutting = tuple[list[int], list[bool]]

STREAMS = {"N": {"A": "int", "X": "double", "Y": "double"}}
TOTAL = "Select x.A, Sum(x.X) As t, Count(x.X) As n From N [Range 3] x Group By x.A"


def case_of(query: str, rows: list[tuple[int, tuple[object, ...], str]]) -> Case:
    return Case("assumed", query, STREAMS, {}, (), {"N": rows}, HORIZON, empty_aggregate="row")


@pytest.mark.parametrize(
    ("kind", "values", "holds"),
    [
        ("complete", Values(3, 0, 1.0, 2.0), True),
        ("complete", Values(3, 1, 1.0, 2.0), False),
        ("complete", None, False),
        ("small", Values(3, 0, -262143.0, 262143.0), True),
        ("small", Values(3, 0, -262144.0, 1.0), False),
        ("small", Values(3, 0), False),  # nothing is known of its range: there may be NaN
        ("small", Values(3, 3), True),
        ("fitting", Values(3, 0, 2.0**-32, 100.0), True),
        ("fitting", Values(3, 0, -100.0, -(2.0**-32)), True),
        ("fitting", Values(3, 0, 0.0, 100.0), False),  # between them may be a tiny one
        ("fitting", Values(3, 0, -1.0, 1.0), False),
        ("fitting", Values(3, 0, 1.0, 2.0**52), False),
    ],
)
def test_what_holds_for_values(kind: str, values: Values | None, holds: bool) -> None:
    assert Assumption("N", "X", kind).holds(values) is holds  # type: ignore[arg-type]


def test_a_column_is_followed_to_its_stream() -> None:
    def below(query: str) -> Node:
        found = bound(case_of(query, []))
        while not isinstance(found, Aggregate):
            (found,) = found.children
        return found.child

    plain = below(
        "Select v.p, Sum(v.q) As t From (Select x.A As p, x.X As q From N [Range 3] x Where x.Y > 1) v Group By v.p"
    )
    both = below(
        "Select v.q, Sum(v.q) As t From (Select x.X As q From N [Range 3] x Union All Select x.Y From N [Now] x) v Group By v.q"
    )
    computed = below("Select v.p, Sum(v.q) As t From (Select x.A As p, x.X + 1 As q From N [Range 3] x) v Group By v.p")
    assert origins(plain, "q") == frozenset({("N", "X")})
    assert origins(both, "q") == frozenset({("N", "X"), ("N", "Y")})
    assert origins(computed, "q") is None


def test_sums_over_small_complete_numbers_have_fewer_parts() -> None:
    plan = rewritten(bound(case_of(TOTAL, []))).plan
    usual, careful = lower(plan), lower(plan, way=Way(denied=None))
    assert {str(one) for one in usual.assumed} == {
        "X of N is never null",
        "X of N is smaller than 2^18",
        "X of N is from 2^-32 to 2^52 in size",
    }
    assert not careful.assumed
    assert careful.for_all_doubles is not None
    assert usual.for_all_doubles is None, "nothing is looked at, so nothing can fail"
    assert "RAISE_ERROR" in careful.output()
    assert "RAISE_ERROR" not in usual.output()
    assert "_a1" in careful.output(), "a count of its own"
    assert "_a1" not in usual.output()


NUMBERS = [1.0, 0.1, 3.5, -2.25, 100.0]
BREAKING = [None, 0.0, 262144.0, 1e-12, 5e-324, 1e300, math.inf]


@st.composite
def breaking_cases(draw: st.DrawFn) -> Case:
    """Doubles that keep to every assumption at first, and from some instant on may break them."""
    breaks = draw(st.integers(0, HORIZON))
    rows = []
    for _ in range(draw(st.integers(0, 10))):
        ts = draw(st.integers(0, HORIZON - 3))
        pool = NUMBERS if ts < breaks else [*NUMBERS, *BREAKING]
        rows.append((ts, (draw(st.integers(0, 1)), draw(st.sampled_from(pool)), draw(st.sampled_from(pool))), "+"))
    call = st.sampled_from(["Sum(x.X)", "Avg(x.Y)", "Count(x.X)", "Sum(x.A)", "Count(*)", "Variance(x.X)"])
    calls = ", ".join(f"{draw(call)} As c{number}" for number in range(draw(st.integers(1, 3))))
    frame = draw(st.sampled_from(["[Range 3]", "[Range 4 Slide 2]", "[Range 2 Slide 2]", "[Rows 3]", ""]))
    plain = f"Select x.A As k, {calls} From N {frame} x Group By x.A"
    query = draw(st.sampled_from([plain, f"Istream({plain})"]))
    return case_of(query, sorted(rows, key=lambda row: row[0]))


@settings(max_examples=120, deadline=None)
@given(case=breaking_cases(), cutting=cuttings())
def test_a_program_goes_on_when_a_chunk_breaks_what_it_assumed(case: Case, cutting: Cutting) -> None:
    plan = rewritten(bound(case)).plan
    found = Duck(case, [lower(plan), lower(plan, tiny=True)]).run(*cutting)
    if any(value == math.inf or value == 1e300 for _, row, _ in case.input["N"] for value in row):
        return  # the reference adds doubles in another order; tests/laws/test_numbers.py judges these
    differs = difference(evaluate(case)[1], found, case.horizon)
    assert differs is None, f"{described(case, cutting)}\n{differs}"
