"""Groups of sources and environments: ⊔ by its definition, groups against their members, partitions against all there are.

A group that promises more than one of its members would lose tuples silently, and no other test would see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.catalog import Stream, TimeDomain
from headgate.heartbeat.arrivals import of_one
from headgate.heartbeat.bounds import Bound, Bounds, problem, strongest, weaker
from headgate.heartbeat.declared import Counter, Declarations, Grouping, Party, Sensors
from headgate.heartbeat.groups import DISTINCT, KINDS, partition
from headgate.heartbeat.manager import Heartbeats

SECOND = 1_000_000
LONGEST = 6


def sets_of_bounds(delay: int = LONGEST, tuples: bool = True) -> st.SearchStrategy[Bounds]:
    timed = st.builds(lambda within, after: Bound(within, after_us=after), st.integers(0, 9), st.integers(0, delay))
    counted = st.builds(lambda within, n: Bound(within, tuples=n), st.integers(0, 9), st.integers(1, delay))
    return st.lists(st.one_of(timed, counted) if tuples else timed, max_size=4).map(tuple)


def expanded(bounds: Bounds, counted: bool) -> list[int | None]:
    """S+: the strongest promise at every delay, written out."""
    scale = [bound for bound in bounds if bound.tuples or not bound.after_us] if counted else [b for b in bounds if not b.tuples]
    return [min((b.within for b in scale if b.delay <= delay), default=None) for delay in range(LONGEST + 1)]


@settings(max_examples=300)
@given(sets_of_bounds(), sets_of_bounds(), st.booleans())
def test_weaker_is_the_weaker_promise_at_every_delay(first: Bounds, second: Bounds, counted: bool) -> None:
    pairs = zip(expanded(first, counted), expanded(second, counted), strict=True)
    assert expanded(weaker(first, second), counted) == [None if x is None or y is None else max(x, y) for x, y in pairs]
    assert problem(weaker(first, second)) is None


@settings(max_examples=200)
@given(sets_of_bounds(), st.booleans())
def test_what_is_superfluous_says_nothing(bounds: Bounds, counted: bool) -> None:
    assert expanded(strongest(bounds), counted) == expanded(bounds, counted)
    assert problem(strongest(bounds)) is None
    for bound in strongest(bounds):
        fewer = tuple(other for other in strongest(bounds) if other != bound)
        assert any(expanded(fewer, scale) != expanded(bounds, scale) for scale in (False, True))


# groups against their members

SOURCES = "abcd"


@st.composite
def declarations(draw: st.DrawFn) -> Declarations:
    """Something about the stream, and something about some of its sources and pairs of them."""
    parties = [Party("s"), *(Party("s", source) for source in SOURCES)]
    some = st.lists(st.sampled_from(parties), unique=True, max_size=3)
    pairs = st.lists(st.tuples(st.sampled_from(parties), st.sampled_from(parties)), unique=True, max_size=5)
    deviations, delays = st.integers(0, 9), st.integers(0, 4)
    rates = st.sampled_from([None, Fraction(2_000_000)])
    return Declarations(
        skews={(Party("s"), Party("s")): draw(sets_of_bounds())} | {pair: draw(sets_of_bounds()) for pair in draw(pairs)},
        disorders={Party("s"): draw(sets_of_bounds())} | {party: draw(sets_of_bounds()) for party in draw(some)},
        latencies_us={party: draw(delays) for party in draw(some)},
        sensors={party: Sensors(draw(deviations), draw(rates)) for party in draw(some)},
        counters={party: Counter(0, draw(delays)) for party in draw(some)},
    )


def watching(declared: Declarations) -> Heartbeats:
    heartbeats = Heartbeats(declared)
    heartbeats.estimating = False
    heartbeats.generator.set_unit(1)
    heartbeats.add(Stream("s", (), TimeDomain.INTEGER, "at", source="who"), 0)
    return heartbeats


def promises(heartbeats: Heartbeats, now_us: int) -> dict[str, int]:
    timeline = heartbeats.timelines["s"]
    found = {number: heartbeats.generator.promised(number, now_us) for number in timeline.cohorts.values()}
    return {
        source: int(found[place[0]][place[1]]) for source, place in zip(timeline.sources, timeline.places.tolist(), strict=False)
    }


GROUPINGS = [
    Grouping(sets=(("a", "b"), ("c", "d"))),
    Grouping(sets=(("a", "b", "c"),)),
    Grouping(sets=(tuple(SOURCES),)),
    Grouping(count=1),
    Grouping(count=2),
]


@settings(max_examples=80)
@given(declarations(), st.sampled_from(GROUPINGS), st.data())
def test_a_group_never_promises_more_than_any_of_its_members(
    declared: Declarations, grouping: Grouping, data: st.DataObject
) -> None:
    apart, together = (
        watching(declared),
        watching(Declarations(**{name: getattr(declared, name) for name in Declarations.__slots__})),
    )
    together.declarations.groupings = {"s": grouping}
    together.heed()
    for now_us in range(data.draw(st.integers(3, 14))):
        for source, stamp in data.draw(st.lists(st.tuples(st.sampled_from(SOURCES), st.integers(0, 30)), max_size=2)):
            for heartbeats in (apart, together):
                heartbeats.arrived("s", of_one(np.array([stamp]), source), now_us)
        shared = promises(together, now_us)
        assert all(shared[source] <= alone for source, alone in promises(apart, now_us).items())


# which sources to put together


def partitions(numbers: list[int], most: int) -> Iterator[list[list[int]]]:
    """Every way to put numbers into at most so many groups."""
    if not numbers:
        yield []
        return
    for rest in partitions(numbers[1:], most):
        for position in range(len(rest)):
            yield [*rest[:position], [numbers[0], *rest[position]], *rest[position + 1 :]]
        if len(rest) < most:
            yield [[numbers[0]], *rest]


@settings(max_examples=100)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=7), st.integers(1, 4))
def test_no_partition_adds_less_delay(behind: list[int], groups: int) -> None:
    found = partition(np.array(behind), groups)
    assert len(found.bounds) <= groups
    for label, added, own in zip(found.labels.tolist(), found.added.tolist(), behind, strict=True):
        assert found.bounds[label] == own + added
        assert added >= 0
    costs = (sum(max(group) * len(group) - sum(group) for group in groups_) for groups_ in partitions(behind, groups))
    assert found.added.sum() == min(costs)


def test_very_many_different_sources_are_rounded_up() -> None:
    behind = np.random.default_rng(1).permutation(20 * DISTINCT) ** 2
    found = partition(behind, 16)
    assert len(found.bounds) == 16
    assert (found.bounds[found.labels] == behind + found.added).all()
    assert (found.added >= 0).all()
    fine = partition(np.sort(behind)[::20], 16)
    assert found.added.mean() < 1.05 * fine.added.mean()


def test_a_partition_says_how_far_from_ungrouped_it_is() -> None:
    assert str(partition(np.array([1, 2, 9]), 2)) == "2 groups: 1 ticks added at most, 0.3 on average"


def test_groups_are_formed_by_what_was_declared() -> None:
    deviations = {"a": 1, "b": 2, "c": 10, "d": 11}
    heartbeats = watching(Declarations(sensors={Party("s", source): Sensors(ticks) for source, ticks in deviations.items()}))
    heartbeats.declarations.groupings["s"] = Grouping(count=2)
    heartbeats.heed()
    for source in SOURCES:
        heartbeats.arrived("s", of_one(np.array([100]), source), 0)
    assert promises(heartbeats, 0) == {"a": 95, "b": 95, "c": 86, "d": 86}


# environments (section 4)


def in_force(declared: Declarations, *names: str) -> tuple[dict[str, Bounds], dict[tuple[str, str], Bounds]]:
    """The bounds that the generator has of streams with themselves and between two of them."""
    heartbeats = Heartbeats(declared)
    heartbeats.estimating = False
    for name in names:
        heartbeats.add(Stream(name, (), TimeDomain.INTEGER, "at"), 0)
    cohorts = {number: name for name in names for number in heartbeats.timelines[name].cohorts.values()}
    own = {name: heartbeats.generator.cohorts[number].own for number, name in cohorts.items()}
    between = {(cohorts[first], cohorts[second]): bounds for (first, second), bounds in heartbeats.generator.between.items()}
    return own, between


@given(st.integers(1, 100), st.integers(1, 100), st.sampled_from([None, Fraction(1), Fraction(7, 3), Fraction(1000)]))
def test_sensors(d_i: int, d_j: int, r_j: Fraction | None) -> None:
    """Bij = {(0, di + dj + 1)}, Bjj = {(0, 2 dj + 1)}; with a rate also the same ticks divided by it, and 0.

    The paper has di + dj, for deviations that are never quite reached, and dj for clocks that are only ever set right."""
    own, between = in_force(Declarations(sensors={Party("i"): Sensors(d_i, r_j), Party("j"): Sensors(d_j, r_j)}), "i", "j")

    def in_the_end(ticks: int) -> Bounds:
        return () if r_j is None else (Bound(0, after_us=ceil(Fraction(ticks * SECOND) / r_j)),)

    assert own["j"] == (Bound(2 * d_j + 1), *in_the_end(2 * d_j + 1))
    assert between["i", "j"] == (Bound(d_i + d_j + 1), *in_the_end(d_i + d_j + 1))


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_global_counter(least_i: int, more_i: int, least_j: int, more_j: int) -> None:
    """Bij = {(max(tmax_j - tmin_i, 0), 0), (1 tuple, 0)}, Bjj = {(0, 0)}."""
    counters = {Party("i"): Counter(least_i, least_i + more_i), Party("j"): Counter(least_j, least_j + more_j)}
    own, between = in_force(Declarations(counters=counters), "i", "j")
    delay = max(least_j + more_j - least_i, 0)
    assert own["j"] == (Bound(0),)
    assert between["i", "j"] == ((Bound(0, after_us=delay), Bound(0, tuples=1)) if delay else (Bound(0),))


def test_a_latency_is_added_to_every_delay() -> None:
    declared = Declarations(sensors={Party("i"): Sensors(1), Party("j"): Sensors(2, Fraction(2))}, latencies_us={Party("j"): 7})
    own, between = in_force(declared, "i", "j")
    assert own["j"] == (Bound(5, after_us=7), Bound(0, after_us=5 * SECOND // 2 + 7))
    assert between["i", "j"] == (Bound(4, after_us=7), Bound(0, after_us=2_000_007))
    assert between["j", "i"] == (Bound(4),)


@pytest.mark.parametrize(
    "declared,needed",
    [
        (Declarations(counters={Party("s"): Counter(0, SECOND)}), False),
        (Declarations(sensors={Party("s"): Sensors(5)}), True),
        (Declarations(sensors={Party("s"): Sensors(5, Fraction(1))}), False),
    ],
)
@pytest.mark.parametrize("grouping", [None, Grouping(count=2)])
def test_whether_an_environment_needs_a_timeout(declared: Declarations, needed: bool, grouping: Grouping | None) -> None:
    """Theorem 3.3, in words and in fact: without a timeout, everything that came is complete in the end or never."""
    declared.groupings = {} if grouping is None else {"s": grouping}
    heartbeats = watching(declared)
    for source, stamp in zip(SOURCES, (3, 5, 8, 8), strict=True):
        heartbeats.arrived("s", of_one(np.array([stamp]), source), 0)
    assert (heartbeats.without_progress(["s"]) is not None) == needed
    complete = heartbeats.heartbeat(["s"], 1000 * SECOND)
    assert (complete == 8) != needed


def test_many_different_deviations_are_told_apart_in_a_few_steps_that_hold_for_each() -> None:
    chance = np.random.default_rng(7)
    sensors = {f"n{number}": Sensors(int(chance.integers(1, 1000)), Fraction(int(chance.integers(1, 9)))) for number in range(60)}
    declared = Declarations(sensors={Party("s", source): sensor for source, sensor in sensors.items()})
    heartbeats = watching(declared)
    for source in sensors:
        heartbeats.arrived("s", of_one(np.array([0]), source), 0)
    timeline, generator = heartbeats.timelines["s"], heartbeats.generator
    assert len(timeline.cohorts) <= KINDS
    cohort = {source: int(timeline.places[number, 0]) for source, number in timeline.sources.items()}
    for first, one in sensors.items():
        for second, other in sensors.items():
            if first == second:
                promised, true = generator.cohorts[cohort[first]].own, one.own()
            else:
                promised, true = generator.between[cohort[first], cohort[second]], other.after(one)
            assert weaker(promised, true) == promised
    told_apart = {generator.cohorts[number].own[0].within for number in cohort.values()}
    assert len(told_apart) > KINDS // 2
