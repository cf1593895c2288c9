"""Joins of several inputs: whatever the orders and caches, and whenever they change, the answers are the reference's.

What only this file can catch: a combination that is counted twice or not at all because of the order in which new rows
go through the other inputs; a cache that is filled, used or dropped at the wrong instant.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tools.duck import Duck, bound
from tools.random_queries import HORIZON, KEYS, RELATIONS, STREAMS, cuttings, described, inputs

from headgate.delta.lower import Way, lower
from headgate.delta.program import Program
from headgate.plan.join_orders import Arrangement, as_written, cacheable, members, whole
from headgate.plan.multiway import Group, Inputs
from headgate.plan.nodes import Node
from headgate.plan.rewrites.driver import rewritten
from headgate.testing.cases import Case, difference
from headgate.testing.reference import evaluate
from headgate.testing.runner import on_spark

Cutting = tuple[list[int], list[bool]]

WINDOWS = ["[RANGE 3]", "[RANGE 5]", "[RANGE 4 SLIDE 2]", "[NOW]", "[ROWS 2]", "[RANGE UNBOUNDED]"]


@st.composite
def multiway_cases(draw: st.DrawFn, most: int = 8) -> Case:
    """Joins of three or four inputs: windows of streams, relations, an aggregate."""
    windows = st.sampled_from([*WINDOWS[:3], *WINDOWS])
    entries: list[str] = []
    for number in range(draw(st.integers(3, 4))):
        kind = draw(st.sampled_from(["S", "S", "T", "T", "R", "K", "G"]))
        if kind in "ST":
            entries.append(f"{kind} {draw(windows)} AS i{number}")
        elif kind == "G":
            entries.append(f"(SELECT A, COUNT(*) AS C FROM T {draw(windows)} GROUP BY A) AS i{number}")
        else:
            entries.append(f"{kind} AS i{number}")
    key = [("F" if entry.startswith("K ") else "A") for entry in entries]
    conditions = [
        f"i{number}.{key[number]} = i{(other := draw(st.integers(0, number - 1)))}.{key[other]}"
        for number in range(1, len(entries))
    ]
    value = ["E" if entry[0] in "RK" else "B" if entry.startswith("S") else "C" for entry in entries]
    if draw(st.booleans()):
        one, other = draw(st.lists(st.integers(0, len(entries) - 1), min_size=2, max_size=2, unique=True))
        conditions.append(f"i{one}.{value[one]} <= i{other}.{value[other]}")
    shown = ", ".join(f"i{number}.{value[number]} AS v{number}" for number in range(len(entries)))
    shown = draw(st.sampled_from(["ISTREAM({})", "DSTREAM({})", "{}"])).format(f"i0.{key[0]} AS k, {shown}")
    query = f"SELECT {shown} FROM {', '.join(entries)} WHERE {' AND '.join(conditions)}"
    return Case("joins", query, STREAMS, RELATIONS, (), draw(inputs(most)), HORIZON, range="closed", keys=KEYS)


def some_order(group: Group, random: Random, caches: frozenset[Inputs]) -> dict[Inputs, tuple[Inputs, ...]]:
    """Any order for everything, also orders in which nothing is equated."""
    found = {}
    for within in (*caches, whole(group)):
        beside = members(within, caches)
        for one in beside:
            others = [other for other in beside if other != one]
            random.shuffle(others)
            found[one] = tuple(others)
    return found


def some_caches(group: Group, random: Random) -> frozenset[Inputs]:
    """Some caches that lie within one another or apart."""
    found: frozenset[Inputs] = frozenset()
    for _ in range(random.randint(0, 3)):
        one = frozenset(random.sample(range(len(group.inputs)), random.randint(2, len(group.inputs) - 1)))
        if cacheable(group, one) and all(one < other or other < one or not one & other for other in found):
            found |= {one}
    return found


class Arranged(Duck):
    """Takes another order in each epoch, and other caches after each move of the state; it may begin as it is written."""

    def __init__(self, case: Case, plan: Node, random: Random) -> None:
        self.plan, self.random = plan, random
        self.groups = lower(plan, way=Way(joins=())).groups
        self.caches: Sequence[frozenset[Inputs]] = [frozenset() for _ in self.groups]
        self.trees = [random.random() < 0.5 for _ in self.groups]
        super().__init__(case, [self._program()])

    def _program(self, coming: Sequence[frozenset[Inputs]] | None = None) -> Program:
        """A program of any size with the caches in force; before a move, with those that are to be in force then."""
        arrangements = []
        for number, (group, caches) in enumerate(zip(self.groups, self.caches, strict=True)):
            if self.trees[number]:
                arrangements.append(as_written(group))
                continue
            used = caches if coming is None else caches & coming[number]
            filling = frozenset() if coming is None else coming[number] - caches
            arrangements.append(Arrangement(some_order(group, self.random, used), used, filling))
        tiny, large = self.random.random() < 0.3, self.random.random() < 0.6
        return lower(self.plan, tiny, way=Way(joins=tuple(arrangements), large=large))

    def respect(self, since: int, until: int) -> None:
        self.programs = [self._program()]
        super().respect(since, until)

    def move(self, since: int, until: int) -> None:
        self.trees = [tree and self.random.random() < 0.5 for tree in self.trees]
        coming = [
            frozenset() if tree else some_caches(group, self.random)
            for tree, group in zip(self.trees, self.groups, strict=True)
        ]
        self.programs = [self._program(coming)]
        super().respect(since, until)
        self.turn(0)
        self.lay_inputs(since, until)
        self.lay_synopses(since, until)
        super().move(since, until)
        self.caches = coming
        self.laid -= {name for name in self.laid if name not in {one.name for one in self.program.synopses}}


@settings(max_examples=40, deadline=None)
@given(case=multiway_cases(), cutting=cuttings(most=6), seed=st.integers(0, 10**6))
def test_orders_and_caches_do_not_change_answers(case: Case, cutting: Cutting, seed: int) -> None:
    duck = Arranged(case, rewritten(bound(case)).plan, Random(seed))
    differs = difference(evaluate(case)[1], duck.run(*cutting), case.horizon)
    assert differs is None, f"{described(case, cutting)}\n{seed}\n{differs}"


@pytest.mark.spark
@settings(max_examples=5, deadline=None)
@given(case=multiway_cases(), cutting=cuttings(most=2))
def test_joins_of_several_inputs_are_the_reference_on_spark(spark: SparkSession, case: Case, cutting: Cutting) -> None:
    differs = difference(evaluate(case)[1], on_spark(case, cutting[0], spark, 2), case.horizon)
    assert differs is None, f"{described(case, cutting)}\n{differs}"
