"""Constraints: answers are those without the constraint, as long as it holds, however time is cut into epochs.

What only this file can catch: state that is dropped too early because tuples are counted in another order at the end of
an epoch; a violation that is not found, or found where there is none; state that is not dropped at all. Where k is
detected: a k, a horizon or a life that depends on where an epoch ends, or on when the state was moved.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.duck import Duck, catalog_of, variants
from tools.random_queries import HORIZON, cuttings, described

from headgate.cql.definitions import define
from headgate.delta.constraints import REMEMBERED
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


@st.composite
def clustered_case(draw: st.DrawFn) -> tuple[Case, list[str]]:
    k, count = draw(st.integers(0, 3)), draw(st.integers(1, 14))
    values = in_clusters(draw, k, instants(draw, count), [range(20)] * count)
    rows: Tuples = [(at, (value, draw(st.integers(0, 3))), "+") for at, value in values]
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
        values = in_clusters(draw, within, asked, possible)
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
    """Instants and values, each of those possible there, with at most k tuples between two neighbours of one value."""
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


@settings(max_examples=60, deadline=None)
@given(drawn=st.one_of(clustered_case(), ordered_case()), cutting=cuttings())
def test_groups_that_a_constraint_closes_are_the_reference(drawn: tuple[Case, list[str]], cutting: Cutting) -> None:
    case, constraints = drawn
    judged(case, constraints, Duck(case, programs(case, constraints)).run(*cutting), cutting)


@settings(max_examples=60, deadline=None)
@given(drawn=referring_case(), cutting=cuttings())
def test_joins_of_rows_that_refer_to_one_row_are_the_reference(drawn: tuple[Case, list[str]], cutting: Cutting) -> None:
    case, constraints = drawn
    judged(case, constraints, Duck(case, programs(case, constraints)).run(*cutting), cutting)


class Watching(Duck):
    """Notes how many rows each synopsis has after each move of the state, and what was counted."""

    def __init__(self, case: Case, programs: Sequence[Program]) -> None:
        super().__init__(case, programs)
        self.largest: dict[str, int] = {}
        self.violations = 0
        self.ks: list[int] = []

    def move(self, since: int, until: int) -> None:
        super().move(since, until)
        for synopsis in self.program.synopses:
            rows = self.database.sql(f"FROM {synopsis.name}").fetchall()
            self.largest[synopsis.name] = max(len(rows), self.largest.get(synopsis.name, 0))
            if synopsis.name.startswith("violations_of_"):
                self.violations = rows[0][0]
            if synopsis.name.startswith("k_of_"):
                self.ks.append(rows[0][1])


def at_every_instant() -> Cutting:
    return list(range(HORIZON + 1)), [True] * (HORIZON + 1)


@settings(max_examples=30, deadline=None)
@given(
    values=st.lists(st.integers(0, 5), min_size=1, max_size=14),
    k=st.integers(0, 3),
    word=st.sampled_from(["CLUSTERED", "ORDERED"]),
    cutting=cuttings(),
    data=st.data(),
)
def test_violations_are_counted_or_an_error_however_time_is_cut(
    values: list[int], k: int, word: str, cutting: Cutting, data: st.DataObject
) -> None:
    stamps = sorted(data.draw(st.lists(st.integers(0, HORIZON), min_size=len(values), max_size=len(values))))
    rows: Tuples = [(at, (value, 1), "+") for at, value in zip(stamps, values, strict=True)]
    case = case_of(GROUPED[0], S=rows)
    expected = 0
    for place, value in enumerate(values):
        if word == "ORDERED":
            expected += value < max(values[: max(place - k, 0)], default=value)
        elif value in values[:place]:
            between = values[:place][::-1].index(value)
            expected += k < between < REMEMBERED * (k + 1)
    constraint = f"CONSTRAINT c ON S {word} BY k WITHIN {k} TUPLES ON VIOLATION"
    counting = Watching(case, programs(case, [f"{constraint} COUNT"]))
    counting.run(cutting[0], [True] * len(cutting[0]))
    assert counting.violations == expected, (values, stamps, cutting)
    failing = Duck(case, programs(case, [f"{constraint} FAIL"]))
    if expected:
        with pytest.raises(duckdb.Error, match='constraint "c" on stream "S" is broken'):
            failing.run(*cutting)
    else:
        judged(case, [constraint], failing.run(*cutting), cutting)


def test_the_state_of_groups_and_joins_is_what_the_constraints_allow() -> None:
    many: Tuples = [(at, (at // 2, at), "+") for at in range(HORIZON)]
    grouped = case_of(GROUPED[0], S=many)
    free, tied = (
        Watching(grouped, programs(grouped, some))
        for some in ([], ["CONSTRAINT c ON S CLUSTERED BY k WITHIN 1 TUPLES"])
    )
    assert free.run(*at_every_instant()) == tied.run(*at_every_instant())
    assert (free.largest["sums_1"], tied.largest["sums_1"]) == (HORIZON // 2, 2)

    ones: Tuples = [(at, (at, at), "+") for at in range(HORIZON)]
    late: Tuples = [(at, (at + 2, at), "+") for at in range(HORIZON - 2)]
    joined = case_of(JOINED[0], D=late, O=ones)
    constraints = [
        "CONSTRAINT r ON D (x) REFERENCES O (id) WITHIN 2 TUPLES",
        "CONSTRAINT c ON D CLUSTERED BY x WITHIN 0 TUPLES",
    ]
    both = Watching(joined, programs(joined, constraints))
    assert len(both.run(*at_every_instant())) == HORIZON - 2
    # Two tuples of O came before the first of D, and no tuple of D refers to them: they may still be asked for.
    assert both.largest["waiting_1"] == 2
    assert both.largest["held_1"] <= 4
    states = programs(joined, constraints)[0].state()
    assert not any(str(kept).startswith("log of") for kept in states), "no log is kept"
    assert any("limited by constraint c" in str(kept.bound) for kept in states)


@pytest.mark.parametrize("k", [0, 2])
def test_rows_without_a_partner_are_violations(k: int) -> None:
    ones: Tuples = [(at, (at, at), "+") for at in (1, 2, 3, 4, 5)] + [(6, (5, 0), "+")]
    many: Tuples = [(1, (9, 1), "+"), (2, (1, 1), "+")]
    case = case_of(JOINED[0], D=many, O=ones)
    promise = f"CONSTRAINT r ON D (x) REFERENCES O (id) WITHIN {k} TUPLES ON VIOLATION"
    counting = Watching(case, programs(case, [f"{promise} COUNT"]))
    assert counting.run(*at_every_instant()) == [(2, "+", (1, 1, 1))]
    assert counting.violations == 2, "no tuple for 9, and two with 5"
    with pytest.raises(duckdb.Error, match=r"no tuple of O came for 9|several tuples of O have 5"):
        Duck(case, programs(case, [f"{promise} FAIL"])).run([HORIZON], [True])


def test_the_error_of_an_answer_is_proportional_to_the_violations() -> None:
    """Of 200 groups of 5 tuples, some get one tuple more, far behind: it can make the count of its group wrong only."""
    wrong = {}
    for broken in (0, 20, 40):
        values = [group for group in range(200) for _ in range(5)]
        for group in sorted(random.Random(7).sample(range(190), broken), reverse=True):
            values.insert((group + 2) * 5 + 1, group)
        rows: Tuples = [(number // 25, (value, 1), "+") for number, value in enumerate(values)]
        case = replace(case_of("Select k, Count(*) As n From S Group By k", S=rows), horizon=len(values) // 25)
        constraint = "CONSTRAINT c ON S CLUSTERED BY k WITHIN 2 TUPLES ON VIOLATION COUNT"
        counted = Watching(case, programs(case, [constraint]))
        ends = list(range(case.horizon + 1))
        changes = counted.run(ends, [True] * len(ends))
        found = {group: count for _, sign, (group, count) in changes if sign == "+"}
        wrong[broken] = sum(found[group] != values.count(group) for group in set(values))
        assert counted.violations == broken
    assert wrong[0] == 0
    assert all(0 < wrong[broken] <= broken for broken in (20, 40)), wrong


# k is detected

BY_LIVES = {
    GROUPED[
        0
    ]: "Select k, n, s, m From (Select k, life, Count(*) As n, Sum(v) As s, Max(v) As m From S Group By k, life)",
    GROUPED[1]: "Select k From (Select Distinct k, life From S)",
    GROUPED[2]: "Select k, v From (Select Distinct k, v, life From S Where v > 0)",
    GROUPED[3]: "Istream(Select k, a From (Select k, life, Avg(v) As a From S Where v > 1 Group By k, life))",
    GROUPED[4]: "Dstream(Select k, n From (Select k, life, Count(*) As n From S Group By k, life))",
    GROUPED[6]: "Select k, v, n From (Select k, v, life, Count(*) As n From (Select k, life, v + 1 As v From S) "
    "Group By k, v, life)",
    GROUPED[9]: "Select k, n From (Select k, life, Count(*) As n From S Group By k, life) Where n > 1",
    "Select n, Count(*) As m From (Select k, Count(*) As n From S Group By k) Group By n": "Select n, Count(*) As m "
    "From (Select k, life, Count(*) As n From S Group By k, life) Group By n",
}
"""Queries, and what they mean over tuples that carry their lives."""

CONFIDENCES = {"0.5": 1, "0.75": 3, "0.8": 4, "0.9": 9}
"""Confidences, and how many tuples a block has."""


@dataclass(frozen=True)
class Lived:
    """What becomes of tuples one by one: their lives, the k in force behind the last, how many break it."""

    lives: list[int | None]
    k: int
    violations: int


def lived(word: str, values: Sequence[int | None], most: int, block: int) -> Lived:
    """What `plan.lives` says, tuple after tuple."""
    distances: list[int] = []
    lives: list[int | None] = []
    last: dict[int | None, int] = {}
    horizon = violations = 0

    def k_of(place: int) -> int:
        here = (place - 1) // block
        return max(distances[max(here - 1, 0) * block :], default=0) if here else most

    for place, value in enumerate(values, start=1):
        horizon = max(horizon, place - k_of(place) - 1)
        if word == "CLUSTERED":
            before = last.get(value, 0)
            distance = place - before - 1 if before else 0
            begins = before < max(horizon, 1)
            violations += begins and before > 0 and distance <= most
            lives.append(place if begins else lives[before - 1])
        else:
            larger = [at for at in range(1, place) if _is_below(value, values[at - 1])]
            distance = place - larger[0] if larger else 0
            begins = bool(larger) and larger[0] <= horizon
            violations += begins
            lives.append(place if begins else None)
        distances.append(distance if distance <= most else 0)
        last[value] = place
    return Lived(lives, k_of(len(values) + 1), violations)


def _is_below(value: int | None, other: int | None) -> bool:
    return value is not None and other is not None and value < other


@st.composite
def detected_case(draw: st.DrawFn) -> tuple[Case, str, int, str]:
    """Values that mostly rise and come together, so that some break what was detected; null among them."""
    word, most = draw(st.sampled_from(["CLUSTERED", "ORDERED"])), draw(st.integers(0, 8))
    count = draw(st.integers(1, 24))
    odd = st.one_of(st.integers(0, 5), st.none())
    values = [draw(odd) if draw(st.integers(0, 3)) == 0 else place // 3 for place in range(count)]
    rows: Tuples = [
        (at, (value, draw(st.integers(0, 3))), "+") for at, value in zip(instants(draw, count), values, strict=True)
    ]
    return case_of(draw(st.sampled_from(list(BY_LIVES))), S=rows), word, most, draw(st.sampled_from(list(CONFIDENCES)))


@settings(max_examples=80, deadline=None)
@given(drawn=detected_case(), cutting=cuttings())
def test_answers_by_a_k_that_is_detected_are_those_over_lives_however_time_is_cut(
    drawn: tuple[Case, str, int, str], cutting: Cutting
) -> None:
    case, word, most, confidence = drawn
    constraint = f"CONSTRAINT c ON S {word} BY k DETECTED WITHIN {most} TUPLES CONFIDENCE {confidence}"
    rows = case.input["S"]
    expected = lived(word, [row[0] for _, row, _ in rows], most, CONFIDENCES[confidence])
    with_lives: Tuples = [(at, (*row, life), "+") for (at, row, _), life in zip(rows, expected.lives, strict=True)]
    by_lives = replace(
        case,
        query=BY_LIVES[case.query],
        streams={"S": {**STREAMS["S"], "life": "int"}},
        input={"S": with_lives},
    )
    cuts, moves = cutting
    found = Watching(case, programs(case, [constraint]))
    changes = found.run(cuts, [*moves[:-1], True])
    differs = difference(evaluate(by_lives)[1], changes, case.horizon)
    assert differs is None, f"{constraint}\n{described(case, cutting)}\n{expected}\n{differs}"
    assert (found.violations, found.ks[-1]) == (expected.violations, expected.k), f"{constraint}\n{case}\n{cutting}"


@settings(max_examples=40, deadline=None)
@given(
    drawn=st.one_of(clustered_case(), ordered_case()), cutting=cuttings(), confidence=st.sampled_from(["0.5", "0.9"])
)
def test_answers_are_the_reference_as_long_as_no_tuple_breaks_the_k_that_is_detected(
    drawn: tuple[Case, list[str]], cutting: Cutting, confidence: str
) -> None:
    case, (declared,) = drawn
    constraint = declared.replace("WITHIN", "DETECTED WITHIN") + f" CONFIDENCE {confidence}"
    found = Watching(case, programs(case, [constraint]))
    changes = found.run(cutting[0], [True] * len(cutting[0]))
    if not found.violations:
        judged(case, [constraint], changes, cutting)


def test_state_and_k_shrink_and_grow_with_the_data() -> None:
    """Groups come one by one, then four in turn, then one by one again."""
    values = [*(at // 3 for at in range(60)), *(100 + at % 4 + at // 20 * 4 for at in range(60)), *range(200, 260)]
    rows: Tuples = [(at // 6, (value, 1), "+") for at, value in enumerate(values)]
    case = replace(case_of("Select k, Count(*) As n From S Group By k", S=rows), horizon=30)
    found = Watching(
        case, programs(case, ["CONSTRAINT c ON S CLUSTERED BY k DETECTED WITHIN 20 TUPLES CONFIDENCE 0.9"])
    )
    sizes: list[int] = []
    move = found.move

    def noted(since: int, until: int) -> None:
        move(since, until)
        sizes.append(len(found.database.sql("FROM sums_1").fetchall()))

    found.move = noted  # type: ignore[method-assign]
    found.run(list(range(31)), [True] * 31)
    assert (found.ks[0], found.ks[8], found.ks[18], found.ks[29]) == (20, 0, 3, 0)
    assert (sizes[8], sizes[18], sizes[29]) == (1, 4, 1)
    assert found.violations == 3, "the first of the four brings k up, and the others have begun again before that"


@pytest.mark.parametrize("word", ["CLUSTERED", "ORDERED"])
def test_the_error_is_at_most_the_violations_where_k_is_detected(word: str) -> None:
    """Of 100 groups of 5 tuples, some get one tuple more, behind two other groups."""
    wrong = {}
    for late in (0, 5, 20):
        values = [group for group in range(100) for _ in range(5)]
        for group in sorted(random.Random(5).sample(range(20, 95), late), reverse=True):
            values.insert((group + 3) * 5, group)
        rows: Tuples = [(number // 25, (value, 1), "+") for number, value in enumerate(values)]
        case = replace(case_of("Select k, Count(*) As n From S Group By k", S=rows), horizon=len(values) // 25)
        constraint = f"CONSTRAINT c ON S {word} BY k DETECTED WITHIN 40 TUPLES CONFIDENCE 0.9"
        found = Watching(case, programs(case, [constraint]))
        ends = list(range(case.horizon + 1))
        rows_now: Counter[Row] = Counter()
        for _, sign, row in found.run(ends, [True] * len(ends)):
            rows_now[row] += 1 if sign == "+" else -1
        right = Counter({(group, values.count(group)): 1 for group in set(values)})
        wrong[late] = len({group for group, _ in (+rows_now - right) + (right - rows_now)})
        assert wrong[late] <= found.violations <= late
    assert wrong[0] == 0 < wrong[5], wrong
