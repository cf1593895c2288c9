"""Windows that slide, under aggregates: by panes, by running sums, and with time in microseconds.

What only this file can catch: a pane that is shown too long in TIMESTAMP time, where instants lie before 0 and slides
are large, and a program for the sums of earlier directories that differs from the one that keeps panes.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tools.duck import Duck, bound, compiled
from tools.random_queries import HORIZON, RELATIONS, STREAMS, cuttings, described, inputs, paned

from headgate.delta.lower import Way, lower
from headgate.delta.panes import keeps_panes
from headgate.delta.program import Program
from headgate.plan.nodes import Node
from headgate.plan.rewrites.driver import rewritten
from headgate.testing.cases import Case, Change, difference
from headgate.testing.reference import evaluate
from headgate.ticks import TimeDomain

Cutting = tuple[list[int], list[bool]]

SECOND = 1_000_000
CALLS = [
    "Count(*)",
    "Count({1})",
    "Sum({0})",
    "Avg({0} / 4)",
    "Min({0})",
    "Max({0})",
    "Max_By({0}, {1})",
    "Min_By({0}, {1})",
    "Variance({0})",
    "Sum({0}) Filter (Where {1} > 0)",
    "Max({0}) Filter (Where {1} = 1)",
    "Count(Distinct {0})",
    "Median({0})",
]


@st.composite
def pane_cases(draw: st.DrawFn) -> Case:
    """Groups over windows that slide, alone, beside another such group, and together with one."""
    parts = []
    for alias in "xy":
        table, columns = draw(paned())
        calls = draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=3))
        first, last = f"{alias}.{columns.first}", f"{alias}.{columns.last}"
        shown = ", ".join(f"{call.format(last, first)} As v{i}" for i, call in enumerate(calls))
        where = draw(st.sampled_from(["", "", f" Where {last} > 0"]))
        having = draw(st.sampled_from(["", "", " Having Count(*) > 1", f" Having Min({last}) < 3"]))
        key, by = draw(st.sampled_from([(f"{first} As k, ", f" Group By {first}{having}"), ("1 As k, ", "")]))
        parts.append(f"Select {key}{shown} From {table} {alias}{where}{by}")
    one, two = parts
    query = draw(
        st.sampled_from(
            [
                one,
                f"Istream({one})",
                f"Dstream({one})",
                f"Select p.k, p.v0, q.v0 As w From ({one}) p, ({two}) q Where p.k = q.k",
                f"Select k, v0 From ({one}) p Union All Select k, v0 From ({two}) q",
                f"Select Count(*) As n, Max(p.v0) As m From ({one}) p",
            ]
        )
    )
    bound_of = draw(st.sampled_from(["closed", "half-open"]))
    return Case("panes", query, STREAMS, RELATIONS, (), draw(inputs()), HORIZON, range=bound_of, empty_aggregate="row")


def judged(case: Case, found: list[Change], cutting: object) -> None:
    differs = difference(evaluate(case)[1], found, case.horizon)
    assert differs is None, f"{described(case, cutting)}\n{differs}"


def programs(plan: Node, by_panes: bool = True) -> list[Program]:
    return [lower(plan, tiny, way=Way(by_panes=by_panes)) for tiny in (False, True)]


@settings(max_examples=150)
@given(pane_cases(), cuttings())
def test_by_panes(case: Case, cutting: Cutting) -> None:
    made = compiled(case)
    assert "Median" in case.query or any(keeps_panes(synopsis.name) for synopsis in made[0].synopses)
    judged(case, Duck(case, made).run(*cutting), cutting)


@settings(max_examples=60)
@given(pane_cases(), cuttings())
def test_by_running_sums_as_earlier_versions(case: Case, cutting: Cutting) -> None:
    made = programs(rewritten(bound(case)).plan, by_panes=False)
    assert not any(keeps_panes(synopsis.name) for synopsis in made[0].synopses)
    judged(case, Duck(case, made).run(*cutting), cutting)


@settings(max_examples=80)
@given(pane_cases(), cuttings(), st.sampled_from([0, -HORIZON, -7]))
def test_in_microseconds(case: Case, cutting: Cutting, shift: int) -> None:
    """A second has a million instants then, and those before 1970 are negative. The slides stay where they are."""
    shift -= shift % 12  # a multiple of all slides
    moved = {
        stream: [((ts + shift) * SECOND, row, sign) for ts, row, sign in rows] for stream, rows in case.input.items()
    }
    made = programs(rewritten(bound(case, TimeDomain.TIMESTAMP)).plan)
    ends, moves = cutting
    scaled = Duck(replace(case, input=moved), made).run([(end + shift) * SECOND for end in ends], moves)
    origin = TimeDomain.TIMESTAMP.origin
    found = [(0 if ts == origin else ts // SECOND - shift, sign, row) for ts, sign, row in scaled]
    assert all(ts % SECOND == 0 for ts, *_ in scaled)
    judged(case, found, cutting)
