"""Which of the fragments that are ready runs first: STREAM's section 4.3, its tables, and blocks of steepest descent."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedule.test_selection import Made, asking, everything

from headgate.bench.papers.stream.chains import first_example, queue_sizes, second_example
from headgate.schedule.priorities import Cost, blocks, descent, first, priorities
from headgate.schedule.selection import by_priority
from headgate.settings import Scheduling

FIRST: dict[Scheduling, list[float]] = {
    "fifo": [1.0, 1.2, 2.0, 2.2, 3.0, 3.2, 4.0],
    "greedy": [1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2],
    "chain": [1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2],
}
SECOND: dict[Scheduling, list[float]] = {
    "fifo": [1.0, 1.9, 2.9, 3.0, 3.9, 4.9, 5.0],
    "greedy": [1.0, 1.9, 2.8, 3.7, 4.6, 5.5, 6.4],
    "chain": [1.0, 1.9, 2.9, 3.0, 3.9, 4.9, 5.0],
}
"""The paper's tables; chain is as good as the better of the others."""


@pytest.mark.parametrize("how", FIRST)
def test_the_first_table(how: Scheduling) -> None:
    sizes = queue_sizes(first_example(), how, units=15)
    assert [float(size) for size in sizes[:7]] == FIRST[how]
    assert round(float(sum(sizes[:7]) / 7), 1) == (2.4 if how == "fifo" else 1.6)
    assert sizes[13] > 0, "it declines"
    assert sizes[14] == 0, "and is empty after t = 13"


@pytest.mark.parametrize("how", SECOND)
def test_the_second_table(how: Scheduling) -> None:
    sizes = queue_sizes(second_example(), how, units=22)
    assert [float(size) for size in sizes[:7]] == SECOND[how]
    assert round(float(sum(sizes[:7]) / 7), 1) == (3.7 if how == "greedy" else 3.2)
    assert sizes[20] > 0
    assert sizes[21] == 0, "seven batches take three units each, however they are scheduled"


def test_blocks_are_stretches_of_steepest_descent() -> None:
    assert blocks([Cost(0.2, 1), Cost(0, 5)]) == [1, 1]
    assert blocks([Cost(0.9, 1), Cost(1, 1 / 0.9), Cost(0, 1 / 0.9)]) == [3]
    assert blocks([Cost(0.5, 1), Cost(2.0, 1), Cost(0.1, 1), Cost(0, 10)]) == [1, 2, 1]


COSTS = st.builds(Cost, st.floats(0, 3), st.floats(0.01, 10))


@given(st.lists(COSTS, min_size=1, max_size=6))
def test_blocks_cover_the_way_and_fall_ever_less_steeply(way: list[Cost]) -> None:
    lengths = blocks(way)
    assert sum(lengths) == len(way)
    starts = [sum(lengths[:number]) for number in range(len(lengths))]
    slopes = [descent(way[start : start + length]) for start, length in zip(starts, lengths, strict=True)]
    for start, length, slope in zip(starts, lengths, slopes, strict=True):
        ends = range(start + 1, len(way) + 1)
        assert slope == max(descent(way[start:end]) for end in ends), (start, length)
    assert all(one >= other - 1e-9 for one, other in itertools.pairwise(slopes) if other > 0)


def test_a_fragment_on_several_ways_has_what_the_best_of_them_gives_it() -> None:
    reads = {"answer": ["join"], "join": ["left", "right"], "left": [], "right": []}
    costs = {"answer": Cost(0, 1000), "join": Cost(0.1, 1), "left": Cost(1, 1), "right": Cost(1, 100)}
    found = priorities("chain", "answer", reads, costs)
    assert found["left"] == descent([costs["left"], costs["join"]]) == 0.45
    assert found["right"] == descent([costs["right"], costs["join"]])
    assert found["join"] == found["left"] > found["right"]
    assert set(priorities("fifo", "answer", reads, costs).values()) == {0.0}


def test_of_equals_the_one_nearest_the_answer_goes_first() -> None:
    assert first(["answer", "join", "left"], {"answer": 1.0, "join": 1.0, "left": 0.5}) == "answer"


def test_the_first_priority_runs_until_the_answer_has_run() -> None:
    story: list[str] = []
    one, two = Made(story, "one", 2), Made(story, "two", 1)
    answer = Made(story, "answer", below=[one, two])
    slopes = {one: 3.0, two: 2.0, answer: 1.0}
    for made in by_priority(answer, {each: each.below for each in everything(answer)}, lambda: slopes, lambda: None):
        made.run()
    assert story == ["run one", "run one", "run two", "run answer"]


def test_streams_are_asked_when_nothing_is_ready() -> None:
    story: list[str] = []
    one = asking(Made(story, "one"), "s", answers=True)
    answer = asking(Made(story, "answer", below=[one]), "all")
    reads = {each: each.below for each in everything(answer)}
    for made in by_priority(answer, reads, lambda: dict.fromkeys(reads, 0.0), lambda: None):
        made.run()
    assert story == ["ask all", "ask s", "run one", "run answer"]
