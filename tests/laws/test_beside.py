"""Rows of one instant beside the row of their group: a tuple beside the statistics of its key.

What only this file can catch: a row that finds the group as it was an instant before or after, a group that has not
changed since the last epoch and is not found, and netting of rows that look up the same group one after the other.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tools.duck import Duck, bound, compiled
from tools.random_queries import HORIZON, RELATIONS, STREAMS, cuttings, described, inputs

from headgate.plan.nodes import Join, Node
from headgate.plan.rewrites.driver import rewritten
from headgate.testing.cases import Case, difference
from headgate.testing.reference import evaluate

Cutting = tuple[list[int], list[bool]]

CALLS = [
    "Avg(y.B)",
    "Sum(y.B)",
    "Count(*)",
    "Count(y.B)",
    "Max(y.B)",
    "Count(Distinct y.B)",
    "Median(y.B)",
    "Variance(y.B)",
]
FRAMES = ["[Range 4]", "[Range 1]", "[Now]", "[Rows 3]", "[Range 4 Slide 2]", "[Partition By A Rows 2]", ""]


@st.composite
def lookup_cases(draw: st.DrawFn) -> Case:
    """Tuples of one instant, joined with groups of the same stream or of another."""
    calls = ", ".join(
        f"{call} As m{number}"
        for number, call in enumerate(draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=2)))
    )
    having = draw(st.sampled_from(["", " Having Count(*) > 1"]))
    where = draw(st.sampled_from(["", " Where y.B > 0"]))
    groups = f"(Select y.A As g, {calls} From S {draw(st.sampled_from(FRAMES))} y{where} Group By y.A{having}) r"
    rows, other = draw(st.sampled_from([("S [Now] x", "x.B"), ("S [Now] x", "x.A"), ("T [Now] x", "x.C")]))
    more = draw(st.sampled_from(["", f" And {other} > 0", " And r.m0 > 0"]))
    shown = draw(st.sampled_from([f"x.A, {other} As o, r.m0", f"{other} As o, r.m0", "r.g, r.m0", "x.A"]))
    order = draw(st.sampled_from([f"{rows}, {groups}", f"{groups}, {rows}"]))
    plain = f"Select {shown} From {order} Where x.A = r.g{more}"
    query = draw(st.sampled_from([plain, f"Istream({plain})", f"Dstream({plain})", f"Rstream({plain})"]))
    kind = draw(st.sampled_from(["closed", "half-open"]))
    return Case("beside", query, STREAMS, RELATIONS, (), draw(inputs()), HORIZON, range=kind, empty_aggregate="row")


@settings(max_examples=150, deadline=None)
@given(case=lookup_cases(), cutting=cuttings())
def test_rows_of_one_instant_beside_their_group(case: Case, cutting: Cutting) -> None:
    found = Duck(case, compiled(case)).run(*cutting)
    differs = difference(evaluate(case)[1], found, case.horizon)
    assert differs is None, f"{described(case, cutting)}\n{differs}"


def joins(node: Node) -> list[Join]:
    return [*([node] if isinstance(node, Join) else []), *(found for child in node.children for found in joins(child))]


def test_a_tuple_beside_the_statistics_of_its_key_is_not_paired() -> None:
    query = "Istream(Select x.A, x.B, r.m From S [Now] x, (Select A, Avg(B) As m From S [Range 4] Group By A) r Where x.A = r.A)"
    case = Case("beside", query, STREAMS, RELATIONS, (), {}, HORIZON)
    (join,) = joins(rewritten(bound(case)).plan)
    assert join.lookup is not None
    assert not join.retracts, "when its instant is complete, so is the group"
    program = compiled(case)[0]
    assert "JOIN" not in program.output()
    assert [synopsis.name for synopsis in program.synopses] == ["sums_1", "kept_1"]
    assert len(program.inputs_of(program.result)) == 2, "what comes, and what leaves: each range of the log once"
