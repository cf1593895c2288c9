"""Groups of sources and environments: ⊔ by its definition, groups against their members, partitions against all there
are.

A group that is said to be complete before one of its members is would lose tuples silently, and no other test would see
it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.places import FIXTURES

from headgate.catalog.catalog import Catalog
from headgate.catalog.declarations import Counter, Declarations, Grouping, Party, Sensors
from headgate.catalog.entries import Stream
from headgate.catalog.skew import Bounds, SkewBound, problem, strongest, weaker
from headgate.cql.definitions import define
from headgate.heartbeat.arrivals import NEVER, of_one
from headgate.heartbeat.groups import DISTINCT, KINDS, partition
from headgate.heartbeat.manager import Heartbeats
from headgate.heartbeat.progress import missing_bound
from headgate.scope import Groups, Scope
from headgate.ticks import TimeDomain

SECOND = 1_000_000
LONGEST = 6


def sets_of_bounds(delay: int = LONGEST, tuples: bool = True) -> st.SearchStrategy[Bounds]:
    timed = st.builds(lambda within, after: SkewBound(within, after_us=after), st.integers(0, 9), st.integers(0, delay))
    counted = st.builds(lambda within, n: SkewBound(within, tuples=n), st.integers(0, 9), st.integers(1, delay))
    return st.lists(st.one_of(timed, counted) if tuples else timed, max_size=4).map(tuple)


def expanded(bounds: Bounds, counted: bool) -> list[int | None]:
    """S+: the strongest promise at every delay, written out."""
    scale = (
        [bound for bound in bounds if bound.tuples or not bound.after_us]
        if counted
        else [b for b in bounds if not b.tuples]
    )
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
        skews={(Party("s"), Party("s")): draw(sets_of_bounds())}
        | {pair: draw(sets_of_bounds()) for pair in draw(pairs)},
        disorders={Party("s"): draw(sets_of_bounds())} | {party: draw(sets_of_bounds()) for party in draw(some)},
        latencies_us={party: draw(delays) for party in draw(some)},
        sensors={party: Sensors(draw(deviations), draw(rates)) for party in draw(some)},
        counters={party: Counter(0, draw(delays)) for party in draw(some)},
    )


def watching(declared: Declarations) -> Heartbeats:
    heartbeats = Heartbeats(declared)
    heartbeats.model.clocks.estimating = False
    heartbeats.model.clocks.generator.set_unit(1)
    heartbeats.define(Stream("s", (), TimeDomain.INTEGER, "at", source="who"), 0)
    return heartbeats


def promises(heartbeats: Heartbeats, now_us: int) -> dict[str, int]:
    timeline = heartbeats.model.clocks["s"]
    found = {
        number: heartbeats.model.clocks.generator.promised(number, now_us) for number in timeline.table.cohorts.values()
    }
    return {
        source: int(found[place[0]][place[1]])
        for source, place in zip(timeline.table.sources, timeline.table.places.tolist(), strict=False)
    }


GROUPINGS = [
    Grouping(sets=(("a", "b"), ("c", "d"))),
    Grouping(sets=(("a", "b", "c"),)),
    Grouping(sets=(tuple(SOURCES),)),
    Grouping(count=1),
    Grouping(count=2),
]


def grouped_by(heartbeats: Heartbeats, grouping: Grouping | None) -> None:
    """As the statement does it, again and again."""
    heartbeats.model.declarations.groupings = {} if grouping is None else {"s": grouping}
    heartbeats.apply_declarations()


@settings(max_examples=60)
@given(declarations(), st.sampled_from(GROUPINGS), st.data())
def test_groups_change_no_promise_and_each_is_that_of_its_least_member(
    declared: Declarations, grouping: Grouping, data: st.DataObject
) -> None:
    apart, together = watching(declared), watching(replace(declared))
    grouped_by(together, grouping)
    spoken: set[str] = set()
    for now_us in range(data.draw(st.integers(3, 14))):
        for source, stamp in data.draw(st.lists(st.tuples(st.sampled_from(SOURCES), st.integers(0, 30)), max_size=2)):
            spoken.add(source)
            for heartbeats in (apart, together):
                heartbeats.arrived("s", of_one(np.array([stamp]), source), now_us)
        alone = promises(apart, now_us)
        assert promises(together, now_us) == alone
        assert together.complete(["s"], now_us) == apart.complete(["s"], now_us), (
            "who reads all is as far as without groups"
        )
        for group in (
            together.model.clocks["s"].groups.scopes() if together.model.clocks["s"].groups is not None else ()
        ):
            if spoken & group.sources and not group.others and group.sources <= spoken:
                least = min(alone[source] for source in group.sources)
                reader = Scope(frozenset([min(group.sources)]))
                assert together.complete(["s"], now_us, scopes={"s": reader}) == (least if least > NEVER // 2 else None)


def test_who_leaves_a_group_takes_only_its_own_timestamps_along() -> None:
    heartbeats = watching(
        Declarations(disorders={Party("s"): (SkewBound(1),)}, skews={(Party("s"), Party("s")): (SkewBound(200),)})
    )
    grouped_by(heartbeats, Grouping(sets=(("a", "b"),)))
    for source, stamp in (("a", 10), ("b", 100)):
        heartbeats.arrived("s", of_one(np.array([stamp]), source), 0)
    grouped_by(heartbeats, Grouping(sets=(("a",), ("b",))))
    assert heartbeats.complete(["s"], 0) == 9


def test_groups_need_no_bounds_between_their_sources() -> None:
    heartbeats = watching(
        Declarations(disorders={Party("s"): (SkewBound(1),)}, groupings={"s": Grouping(sets=(("a", "b"),))})
    )
    for source, stamp in (("a", 10), ("b", 100)):
        heartbeats.arrived("s", of_one(np.array([stamp]), source), 0)
    assert heartbeats.complete(["s"], 0) == 9


# lateness, through any regrouping


@st.composite
def groupings(draw: st.DrawFn) -> Grouping | None:
    """None, so many by likeness, or sets: some sources may stand in none."""
    if draw(st.booleans()):
        return draw(st.sampled_from([None, None, Grouping(count=1), Grouping(count=2)]))
    labels = draw(st.lists(st.integers(0, 3), min_size=len(SOURCES), max_size=len(SOURCES)))
    sets = [tuple(source for source, label in zip(SOURCES, labels, strict=True) if label == one) for one in range(3)]
    return Grouping(sets=tuple(filter(None, sets))) if any(sets) else None


READERS = [None, *(Scope(frozenset(some)) for some in ("a", "b", "ab", "cd")), Scope(frozenset("ab"), True)]


@settings(max_examples=80)
@given(st.integers(0, 5), st.integers(1, 12), st.data())
def test_a_tuple_within_its_bounds_is_never_late_however_sources_are_regrouped(
    disorder: int, skew: int, data: st.DataObject
) -> None:
    """Joining, leaving, splitting and merging groups, and sources that come to be of another kind, while readers go on.

    The oracle is what was declared: no tuple is more than `disorder` behind its source, nor `skew` or more behind all
    others.
    """
    declared = Declarations(disorders={Party("s"): (SkewBound(disorder + 1),)})
    between = data.draw(st.booleans())
    if between:
        declared.skews[Party("s"), Party("s")] = (SkewBound(skew),)
    heartbeats = watching(declared)
    largest: dict[str, int] = {}
    before: dict[str, int] = {}
    told: dict[Scope | None, int] = {}
    for now_us in range(data.draw(st.integers(5, 40))):
        match data.draw(st.sampled_from(["tuple", "tuple", "tuple", "read", "read", "regroup", "kind"])):
            case "tuple":
                source = data.draw(st.sampled_from(SOURCES))
                others = [stamp for other, stamp in largest.items() if other != source] if between else []
                least = max([0, largest.get(source, 0) - disorder, *(stamp - skew + 1 for stamp in others)])
                stamp = least + data.draw(st.integers(0, 8))
                common, single = heartbeats.model.clocks["s"].promises.limits()
                closed = single.get(source, NEVER if common is None else common)
                before.setdefault(source, closed)
                assert stamp > closed or stamp <= before[source], (
                    "late only behind what was given before the source first spoke"
                )
                heartbeats.arrived("s", of_one(np.array([stamp]), source), now_us)
                largest[source] = max(stamp, largest.get(source, stamp))
            case "read":
                reader = data.draw(st.sampled_from(READERS))
                complete = heartbeats.complete(["s"], now_us, scopes={} if reader is None else {"s": reader})
                if complete is not None:  # a reader never goes back, and says again how far it is, as after a restart
                    told[reader] = max(complete, told.get(reader, complete))
                    heartbeats.promise("s", told[reader], reader, again=data.draw(st.booleans()))
            case "regroup":
                grouped_by(heartbeats, data.draw(groupings()))
            case _:
                source = data.draw(st.sampled_from(SOURCES))
                declared.disorders[Party("s", source)] = (SkewBound(disorder + 1),)
                heartbeats.apply_declarations()


def grouped(*sets: str) -> Heartbeats:
    heartbeats = watching(Declarations(disorders={Party("s"): (SkewBound(1),)}))
    grouped_by(heartbeats, Grouping(sets=tuple(map(tuple, sets))))
    return heartbeats


FAST, SLOW, REST = Scope(frozenset("a")), Scope(frozenset("b")), Scope(frozenset("ab"), True)


def test_a_slow_group_is_not_late_because_readers_of_a_fast_one_went_on() -> None:
    heartbeats = grouped("a", "b")
    for source, stamp in (("a", 100), ("b", 10)):
        heartbeats.arrived("s", of_one(np.array([stamp]), source), 0)
    assert [heartbeats.complete(["s"], 0, scopes={"s": reader}) for reader in (FAST, SLOW)] == [99, 9]
    assert heartbeats.complete(["s"], 0) == 9
    heartbeats.promise("s", 99, FAST)
    assert heartbeats.model.clocks["s"].promises.limits() == (None, {"a": 99})
    heartbeats.promise("s", 9)
    assert heartbeats.model.clocks["s"].promises.limits() == (9, {"a": 99})
    grouped_by(heartbeats, None)
    assert heartbeats.model.clocks["s"].promises.limits() == (9, {"a": 99}), "what was given stays given"
    heartbeats.promise("s", 120)
    assert heartbeats.model.clocks["s"].promises.limits() == (120, {}), "and counts no more once all is further"


def test_a_reader_that_was_further_by_its_group_closes_no_other_when_there_are_no_groups_any_more() -> None:
    heartbeats = grouped("a", "b")
    for source, stamp in (("a", 100), ("b", 10)):
        heartbeats.arrived("s", of_one(np.array([stamp]), source), 0)
    heartbeats.promise("s", 99, FAST)
    grouped_by(heartbeats, None)
    assert heartbeats.complete(["s"], 0, scopes={"s": FAST}) == 99, "it does not go back"
    heartbeats.promise("s", 99, FAST)  # as a query does that answers tuples as they come
    assert heartbeats.model.clocks["s"].promises.limits() == (None, {"a": 99})
    heartbeats.promise(
        "s", 120, FAST, again=True
    )  # as after a restart, of which nobody knows how the sources were grouped
    assert heartbeats.model.clocks["s"].promises.limits() == (None, {"a": 120})
    heartbeats.promise("s", 130, FAST)  # without groups it has waited for all
    assert heartbeats.model.clocks["s"].promises.limits() == (130, {})


def test_what_stands_in_no_set_is_a_group_of_its_own() -> None:
    heartbeats = grouped("a", "b")
    for source, stamp in (("a", 100), ("b", 10)):
        heartbeats.arrived("s", of_one(np.array([stamp]), source), 0)
    assert heartbeats.complete(["s"], 0, scopes={"s": REST}) == 9, (
        "while nothing came from it, it is where the stream is"
    )
    heartbeats.arrived("s", of_one(np.array([50]), "new"), 0)
    assert heartbeats.complete(["s"], 0, scopes={"s": REST}) == 49
    heartbeats.promise("s", 49, REST)
    assert heartbeats.model.clocks["s"].promises.limits() == (49, {"a": NEVER, "b": NEVER})


def test_a_group_that_never_spoke_is_waited_for_and_a_silent_one_follows_the_stream() -> None:
    heartbeats = grouped("a", "b")
    heartbeats.arrived("s", of_one(np.array([100]), "a"), 0)
    assert heartbeats.complete(["s"], 0, scopes={"s": SLOW}) is None
    heartbeats.model.clocks.timeout_us = 10 * SECOND
    heartbeats.arrived("s", of_one(np.array([10]), "b"), SECOND)
    heartbeats.arrived("s", of_one(np.array([200]), "a"), 5 * SECOND)
    assert heartbeats.complete(["s"], 6 * SECOND, scopes={"s": SLOW}) == 9
    assert heartbeats.complete(["s"], 12 * SECOND, scopes={"s": SLOW}) == heartbeats.complete(["s"], 12 * SECOND) == 199


def test_a_silent_group_of_which_others_are_declared_to_speak_goes_as_far_as_they_say() -> None:
    heartbeats = watching(
        Declarations(
            disorders={Party("s"): (SkewBound(1),)}, skews={(Party("s", "a"), Party("s", "b")): (SkewBound(50),)}
        )
    )
    grouped_by(heartbeats, Grouping(sets=(("a",), ("b",))))
    heartbeats.model.clocks.timeout_us = 10 * SECOND
    heartbeats.arrived("s", of_one(np.array([100]), "a"), 0)
    assert heartbeats.complete(["s"], 0, scopes={"s": SLOW}) == 50, "b has not spoken yet"
    heartbeats.arrived("s", of_one(np.array([20]), "b"), SECOND)
    heartbeats.arrived("s", of_one(np.array([200]), "a"), 15 * SECOND)
    assert heartbeats.complete(["s"], 16 * SECOND, scopes={"s": SLOW}) == 150
    assert heartbeats.complete(["s"], 16 * SECOND, scopes={"s": FAST}) == 199


def test_a_silent_group_stays_as_far_as_its_own_sources_said() -> None:
    heartbeats = grouped("a", "b")
    heartbeats.model.clocks.timeout_us = 10 * SECOND
    heartbeats.arrived("s", of_one(np.array([100]), "a"), 0)
    heartbeats.arrived("s", of_one(np.array([10]), "b"), 5 * SECOND)
    assert [heartbeats.complete(["s"], us * SECOND, scopes={"s": FAST}) for us in (6, 11)] == [99, 99]


def test_a_finished_source_lets_its_group_go_on_beside_silent_ones() -> None:
    heartbeats = grouped("ab", "c")
    heartbeats.model.clocks.timeout_us = 10 * SECOND
    for source, stamp in (("a", 10), ("c", 5)):
        heartbeats.arrived("s", of_one(np.array([stamp]), source), 0)
    heartbeats.arrived("s", of_one(np.array([100]), "b"), 15 * SECOND)
    heartbeats.finish("s", "b", 15 * SECOND)
    assert heartbeats.complete(["s"], 16 * SECOND, scopes={"s": FAST}) == 100
    assert heartbeats.complete(["s"], 16 * SECOND) == 100


def test_who_was_given_up_is_late_behind_what_its_own_readers_were_told() -> None:
    heartbeats = grouped("a", "b")
    heartbeats.model.clocks.timeout_us = 10 * SECOND
    for source, stamp in (("a", 100), ("b", 100)):
        heartbeats.arrived("s", of_one(np.array([stamp]), source), 0)
    heartbeats.promise("s", 99, FAST)
    for source in "ab":
        heartbeats.arrived("s", of_one(np.array([50]), source), 20 * SECOND)
    assert heartbeats.model.clocks["s"].gave_up == {"a": 99}, "nobody was told anything of b"
    heartbeats.model.intake.late("s", ["a"], np.array([1]))
    assert heartbeats.model.clocks["s"].late_given_up == 1


def test_a_stream_that_begins_may_hold_more_sources_but_a_named_group_does_not() -> None:
    heartbeats = watching(Declarations())
    heartbeats.model.clocks.estimating = True
    grouped_by(heartbeats, Grouping(sets=(("a",), ("b",))))
    heartbeats.arrived("s", of_one(np.array([100, 101]), "a"), 0)
    assert heartbeats.complete(["s"], 0, scopes={"s": FAST}) is not None
    assert heartbeats.complete(["s"], 0, scopes={"s": REST}) is None
    assert heartbeats.complete(["s"], 0) is None


def test_sources_that_an_earlier_version_kept_together_are_kept_apart() -> None:
    """Of a group only the largest timestamp was saved: nobody knows from whom it was."""
    catalog = Catalog()
    define(
        "CREATE STREAM s (who STRING, at BIGINT) TIMESTAMP BY at SOURCE BY who; SKEW FROM s TO s (WITHIN 200); DISORDER OF s 0;"
        "GROUPS OF s ('a', 'b'), ('c', 'd')",
        catalog,
    )
    heartbeats = Heartbeats(catalog.declarations)
    for stream in catalog.streams.values():
        heartbeats.define(stream, 0)
    heartbeats.restore(json.loads((FIXTURES / "grouped-heartbeats.json").read_text()), catalog)
    assert heartbeats.stream("s").promised() == 3
    assert heartbeats.complete(["s"], SECOND) == 3, "it does not go back"
    for source, stamp in (("a", 10), ("b", 100), ("c", 110), ("d", 120)):
        heartbeats.arrived("s", of_one(np.array([stamp]), source), SECOND)
    assert heartbeats.complete(["s"], SECOND) == 9


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
    heartbeats = watching(
        Declarations(sensors={Party("s", source): Sensors(ticks) for source, ticks in deviations.items()})
    )
    grouped_by(heartbeats, Grouping(count=2))
    assert heartbeats.model.clocks["s"].groups == Groups((frozenset("ab"), frozenset("cd")))


# environments (section 4)


def in_force(declared: Declarations, *names: str) -> tuple[dict[str, Bounds], dict[tuple[str, str], Bounds]]:
    """The bounds that the generator has of streams with themselves and between two of them."""
    heartbeats = Heartbeats(declared)
    heartbeats.model.clocks.estimating = False
    for name in names:
        heartbeats.define(Stream(name, (), TimeDomain.INTEGER, "at"), 0)
    cohorts = {number: name for name in names for number in heartbeats.model.clocks[name].table.cohorts.values()}
    own = {name: heartbeats.model.clocks.generator.cohorts[number].own for number, name in cohorts.items()}
    between = {
        (cohorts[first], cohorts[second]): bounds
        for (first, second), bounds in heartbeats.model.clocks.generator.between.items()
    }
    return own, between


@given(st.integers(1, 100), st.integers(1, 100), st.sampled_from([None, Fraction(1), Fraction(7, 3), Fraction(1000)]))
def test_sensors(d_i: int, d_j: int, r_j: Fraction | None) -> None:
    """Bij = {(0, di + dj + 1)}, Bjj = {(0, 2 dj + 1)}; with a rate also the same ticks divided by it, and 0.

    The paper has di + dj, for deviations that are never quite reached, and dj for clocks that are only ever set
    right.
    """
    own, between = in_force(
        Declarations(sensors={Party("i"): Sensors(d_i, r_j), Party("j"): Sensors(d_j, r_j)}), "i", "j"
    )

    def in_the_end(ticks: int) -> Bounds:
        return () if r_j is None else (SkewBound(0, after_us=ceil(Fraction(ticks * SECOND) / r_j)),)

    assert own["j"] == (SkewBound(2 * d_j + 1), *in_the_end(2 * d_j + 1))
    assert between["i", "j"] == (SkewBound(d_i + d_j + 1), *in_the_end(d_i + d_j + 1))


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_global_counter(least_i: int, more_i: int, least_j: int, more_j: int) -> None:
    """Bij = {(max(tmax_j - tmin_i, 0), 0), (1 tuple, 0)}, Bjj = {(0, 0)}."""
    counters = {Party("i"): Counter(least_i, least_i + more_i), Party("j"): Counter(least_j, least_j + more_j)}
    own, between = in_force(Declarations(counters=counters), "i", "j")
    delay = max(least_j + more_j - least_i, 0)
    assert own["j"] == (SkewBound(0),)
    assert between["i", "j"] == ((SkewBound(0, after_us=delay), SkewBound(0, tuples=1)) if delay else (SkewBound(0),))


def test_a_latency_is_added_to_every_delay() -> None:
    declared = Declarations(
        sensors={Party("i"): Sensors(1), Party("j"): Sensors(2, Fraction(2))}, latencies_us={Party("j"): 7}
    )
    own, between = in_force(declared, "i", "j")
    assert own["j"] == (SkewBound(5, after_us=7), SkewBound(0, after_us=5 * SECOND // 2 + 7))
    assert between["i", "j"] == (SkewBound(4, after_us=7), SkewBound(0, after_us=2_000_007))
    assert between["j", "i"] == (SkewBound(4),)


@pytest.mark.parametrize(
    "declared,needed",
    [
        (Declarations(counters={Party("s"): Counter(0, SECOND)}), False),
        (Declarations(sensors={Party("s"): Sensors(5)}), True),
        (Declarations(sensors={Party("s"): Sensors(5, Fraction(1))}), False),
    ],
)
@pytest.mark.parametrize("grouping", [None, Grouping(count=2)])
def test_whether_an_environment_needs_a_timeout(
    declared: Declarations, needed: bool, grouping: Grouping | None
) -> None:
    """Theorem 3.3, in words and in fact: without a timeout, everything that came is complete in the end or never."""
    declared.groupings = {} if grouping is None else {"s": grouping}
    heartbeats = watching(declared)
    for source, stamp in zip(SOURCES, (3, 5, 8, 8), strict=True):
        heartbeats.arrived("s", of_one(np.array([stamp]), source), 0)
    assert (missing_bound(heartbeats.model, ["s"]) is not None) == needed
    complete = heartbeats.complete(["s"], 1000 * SECOND)
    assert (complete == 8) != needed


def test_many_different_deviations_are_told_apart_in_a_few_steps_that_hold_for_each() -> None:
    chance = np.random.default_rng(7)
    sensors = {
        f"n{number}": Sensors(int(chance.integers(1, 1000)), Fraction(int(chance.integers(1, 9))))
        for number in range(60)
    }
    declared = Declarations(sensors={Party("s", source): sensor for source, sensor in sensors.items()})
    heartbeats = watching(declared)
    for source in sensors:
        heartbeats.arrived("s", of_one(np.array([0]), source), 0)
    timeline, generator = heartbeats.model.clocks["s"], heartbeats.model.clocks.generator
    assert len(timeline.table.cohorts) <= KINDS
    cohort = {source: int(timeline.table.places[number, 0]) for source, number in timeline.table.sources.items()}
    for first, one in sensors.items():
        for second, other in sensors.items():
            if first == second:
                promised, true = generator.cohorts[cohort[first]].own, one.own()
            else:
                promised, true = generator.between[cohort[first], cohort[second]], other.after(one)
            assert weaker(promised, true) == promised
    told_apart = {generator.cohorts[number].own[0].within for number in cohort.values()}
    assert len(told_apart) > KINDS // 2
