"""Constraints: answers are those without the constraint, as long as it holds, however time is cut into epochs.

What only this file can catch: state that is dropped too early because tuples are counted in another order at the end of
an epoch; a violation that is not found, or found where there is none; state that is not dropped at all.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.duck import Duck, catalog_of, variants
from tools.random_queries import HORIZON, cuttings, described

from headgate.compile import compile_query
from headgate.cql.definitions import define
from headgate.delta.program import Program
from headgate.testing.cases import Case, Change, Row, difference
from headgate.testing.reference import evaluate

Cutting = tuple[list[int], list[bool]]
Tuples = list[tuple[int, Row, str]]

STREAMS = {"S": {"k": "int", "v": "int"}, "O": {"id": "int", "w": "int"}, "D": {"x": "int", "v": "int"}}

GROUPED = (
    "Select k, Count(*) As n, Sum(v) As s, Max(v) As m From S Group By k",
    "Select Distinct k From S",
    "Select Distinct k, v From S Where v > 0",
    "Istream(Select k, Avg(v) As a From S Where v > 1 Group By k)",
    "Dstream(Select k, Count(*) As n From S Group By k)",
    "Rstream(Select k, Count(*) As n From S Group By k)",
    "Select k, v, Count(*) As n From (Select k, v + 1 As v From S) Group By k, v",
    "Select k, Count(Distinct v) As n From S Group By k",
    "Select k, Count(*) As n From S [Range 3 Seconds] Group By k",
    "Select x.k, x.n From (Select k, Count(*) As n From S Group By k) x Where x.n > 1",
)
JOINED = (
    "Select D.x, D.v, O.w From D, O Where D.x = O.id",
    "Istream(Select D.v, O.w From O, D Where O.id = D.x And D.v > 1)",
    "Select D.x, D.v From D, O Where D.x = O.id And D.v < O.w",
    "Select O.w, Count(*) As n From D, O Where D.x = O.id Group By O.w",
    "Select D.x, D.v, O.w From D Left Join O On D.x = O.id",
    "Rstream(Select D.x, O.w From D, O Where D.x = O.id And O.w > 1)",
    "Select D.x, D.v, O.w From D [Range 4 Seconds], O Where D.x = O.id",
)


def instants(draw: st.DrawFn, count: int) -> list[int]:
    return sorted(draw(st.lists(st.integers(0, HORIZON - 1), min_size=count, max_size=count)))


def clustered(draw: st.DrawFn, k: int, possible: Sequence[Sequence[int]]) -> list[int]:
    """Values, each of those possible at its place, with at most k tuples between two neighbours of one value.

    A place that has no such value gets the number -1, which the caller leaves out.
    """
    found: list[int] = []
    for some in possible:
        open_values = found[-(k + 1) :]
        fitting = [value for value in some if value in open_values or value not in found]
        if fitting:
            found.append(draw(st.sampled_from(fitting)))
    return found


@st.composite
def clustered_case(draw: st.DrawFn) -> tuple[Case, list[str]]:
    k, count = draw(st.integers(0, 3)), draw(st.integers(1, 14))
    values = clustered(draw, k, [range(8)] * count)
    rows: Tuples = [
        (at, (value, draw(st.integers(0, 3))), "+") for at, value in zip(instants(draw, len(values)), values, strict=True)
    ]
    return case_of(draw(st.sampled_from(GROUPED)), S=rows), [f"CONSTRAINT c ON S CLUSTERED BY k WITHIN {k} TUPLES"]


@st.composite
def ordered_case(draw: st.DrawFn) -> tuple[Case, list[str]]:
    k, count = draw(st.integers(0, 3)), draw(st.integers(1, 14))
    values: list[int] = []
    for _ in range(count):
        least = max(values[: len(values) - k], default=0)
        values.append(draw(st.integers(least, least + 3)))
    rows: Tuples = [
        (at, (value, draw(st.integers(0, 3))), "+") for at, value in zip(instants(draw, count), values, strict=True)
    ]
    return case_of(draw(st.sampled_from(GROUPED)), S=rows), [f"CONSTRAINT c ON S ORDERED BY k WITHIN {k} TUPLES"]


@st.composite
def referring_case(draw: st.DrawFn) -> tuple[Case, list[str]]:
    """Tuples of D refer to one of O that is there, or is among the next k; those of D may be clustered or ordered."""
    k, size = draw(st.integers(0, 3)), draw(st.integers(1, 8))
    ids = draw(st.permutations(range(size)))
    stamps = instants(draw, size)
    ones: Tuples = [(at, (one, draw(st.integers(0, 3))), "+") for at, one in zip(stamps, ids, strict=True)]
    constraints = [f"CONSTRAINT r ON D (x) REFERENCES O (id) WITHIN {k} TUPLES"]
    possible = []
    asked = instants(draw, draw(st.integers(1, 10)))
    for at in asked:
        there = sum(stamp <= at for stamp in stamps)
        possible.append(ids[: there + k])
    more = draw(st.sampled_from(["", "CLUSTERED", "ORDERED"]))
    within = draw(st.integers(0, 2))
    if more == "CLUSTERED":
        values = [(at, value) for at, value in in_clusters(draw, within, asked, possible)]
    else:
        values = [(at, draw(st.sampled_from(some))) for at, some in zip(asked, possible, strict=True) if some]
    if more == "ORDERED":
        kept: list[tuple[int, int]] = []
        for at, value in values:
            if value >= max((one for _, one in kept[: max(len(kept) - within, 0)]), default=0):
                kept.append((at, value))
        values = kept
    constraints += [f"CONSTRAINT m ON D {more} BY x WITHIN {within} TUPLES"] if more else []
    many: Tuples = [(at, (value, draw(st.integers(0, 3))), "+") for at, value in values]
    return case_of(draw(st.sampled_from(JOINED)), D=many, O=ones), constraints


def in_clusters(
    draw: st.DrawFn, k: int, stamps: Sequence[int], possible: Sequence[Sequence[int]]
) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for at, some in zip(stamps, possible, strict=True):
        values = [value for _, value in found]
        fitting = [value for value in some if value in values[-(k + 1) :] or value not in values]
        if fitting:
            found.append((at, draw(st.sampled_from(fitting))))
    return found


def case_of(query: str, **given: Tuples) -> Case:
    streams = {name: STREAMS[name] for name in given}
    return Case("constraints", query, streams, {}, (), given, HORIZON)


def programs(case: Case, constraints: Sequence[str]) -> tuple[Program, ...]:
    catalog = catalog_of(case)
    define(";".join(constraints), catalog)
    (query,) = define(f"CREATE QUERY answer AS {case.query}", catalog)
    return variants(query.plan)  # type: ignore[union-attr]


def judged(case: Case, constraints: Sequence[str], found: list[Change], cutting: object) -> None:
    differs = difference(evaluate(case)[1], found, case.horizon)
    assert differs is None, f"{constraints}\n{described(case, cutting)}\n{differs}"


@settings(max_examples=150, deadline=None)
@given(drawn=st.one_of(clustered_case(), ordered_case()), cutting=cuttings())
def test_groups_that_a_constraint_closes_are_the_reference(drawn: tuple[Case, list[str]], cutting: Cutting) -> None:
    case, constraints = drawn
    judged(case, constraints, Duck(case, programs(case, constraints)).run(*cutting), cutting)


@settings(max_examples=150, deadline=None)
@given(drawn=referring_case(), cutting=cuttings())
def test_joins_of_rows_that_refer_to_one_row_are_the_reference(
    drawn: tuple[Case, list[str]], cutting: Cutting
) -> None:
    case, constraints = drawn
    judged(case, constraints, Duck(case, programs(case, constraints)).run(*cutting), cutting)
