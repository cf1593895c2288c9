"""Heartbeat generation against its definition: every continuation that the bounds allow is tried (section 3.2 of the
paper).

The wall clock and the timestamps are small integers, so that "can a tuple stamped τ still arrive?" is answered by
searching for instants of emission under which all bounds hold. A heartbeat is sound if nothing up to it can still
arrive, and the strongest if the next instant can. This is the only test that knows what a bound means; the others
compare one computation with another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.catalog.skew import Bounds, SkewBound, strongest
from headgate.heartbeat.arrivals import NEVER, Arrivals, of_one, of_rows
from headgate.heartbeat.generator import Generator

LONG_AGO = -1_000
"""Before every timestamp of the tests, less every `within`."""


@dataclass(frozen=True)
class Arrival:
    at: int
    source: int
    stamp: int


@dataclass(frozen=True)
class World:
    """Sources, the bounds between them as they hold at emission, and how long a tuple may be under way."""

    bounds: dict[tuple[int, int], Bounds]
    latencies: tuple[int, ...]

    @property
    def sources(self) -> range:
        return range(len(self.latencies))

    def allows(self, history: Sequence[Arrival]) -> bool:
        """Whether there are instants of emission under which every bound holds."""
        choices = [range(tuple_.at, tuple_.at - self.latencies[tuple_.source] - 1, -1) for tuple_ in history]
        return any(self._holds(history, emitted) for emitted in product(*choices))

    def _holds(self, history: Sequence[Arrival], emitted: Sequence[int]) -> bool:
        for (x, first), (y, second) in product(enumerate(history), repeat=2):
            for bound in self.bounds.get((first.source, second.source), ()) if x != y else ():
                if second.stamp <= first.stamp - bound.within and self._applies(bound, history, emitted, x, y):
                    return False
        return True

    def _applies(self, bound: SkewBound, history: Sequence[Arrival], emitted: Sequence[int], x: int, y: int) -> bool:
        """Whether y was emitted after the bound's delay since x."""
        if not bound.tuples:
            return emitted[y] > emitted[x] + bound.after_us
        between = [
            z
            for z in range(len(history))
            if history[z].source == history[y].source
            and self._before(history, emitted, x, z)
            and self._before(history, emitted, z, y)
        ]
        return len(between) >= bound.tuples

    def _before(self, history: Sequence[Arrival], emitted: Sequence[int], x: int, y: int) -> bool:
        """Strictly. Two tuples of one source that are never under way were emitted in the order in which they
        arrived.
        """
        same = history[x].source == history[y].source and not self.latencies[history[x].source]
        return emitted[x] < emitted[y] or (same and emitted[x] == emitted[y] and x < y)

    def can_still_come(self, history: Sequence[Arrival], source: int, stamp: int, now: int) -> bool:
        """Whether a tuple of the source can arrive after now with this timestamp. More tuples would only forbid
        more.
        """
        latest = now + 2 + max((bound.after_us for bounds in self.bounds.values() for bound in bounds), default=0)
        return any(self.allows([*history, Arrival(at, source, stamp)]) for at in range(now + 1, latest))


def closed(bounds: dict[tuple[int, int], Bounds], size: int) -> dict[tuple[int, int], Bounds]:
    """With every chain k to i to j as a bound from k to j: what a tuple seen out of order tells about when it was
    sent.
    """
    result = dict(bounds)
    for i, k, j in product(range(size), repeat=3):
        chains = [
            SkewBound(one.within + other.within, after_us=one.after_us + other.after_us)
            for one in result.get((k, i), ())
            for other in result.get((i, j), ())
        ]
        result[k, j] = strongest([*result.get((k, j), ()), *chains])
    return result


def generator_of(world: World, unit_us: int = 1) -> tuple[Generator, list[int]]:
    """Every source in a cohort of its own."""
    generator = Generator(unit_us)
    numbers = [generator.add(latency) for latency in world.latencies]
    for number in numbers:
        generator.cohorts[number].resize(1)
    for (first, second), bounds in world.bounds.items():
        arriving = as_they_arrive(bounds, world.latencies[second])
        if first == second:
            generator.cohorts[numbers[first]].own = arriving
        else:
            generator.bind(numbers[first], numbers[second], arriving)
    return generator, numbers


def as_they_arrive(bounds: Bounds, latency: int) -> Bounds:
    return tuple(bound if bound.tuples else replace(bound, after_us=bound.after_us + latency) for bound in bounds)


ONLY = np.zeros(1, np.intp)


def one(stamp: int) -> Arrivals:
    return of_one(np.array([stamp]))


def heartbeat(generator: Generator, number: int, now: int) -> int | None:
    found = int(generator.promised(number, now)[0])
    return None if found < NEVER // 2 else found


# what is drawn


def pairs(size: int) -> list[tuple[int, int]]:
    return [(first, second) for first in range(size) for second in range(size)]


def time_bounds(delay: int = 2, within: int = 3) -> st.SearchStrategy[Bounds]:
    bound = st.builds(
        lambda after, within: SkewBound(within, after_us=after), st.integers(0, delay), st.integers(0, within)
    )
    return st.lists(bound, max_size=2).map(strongest)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    size = draw(st.integers(1, 3))
    latencies = tuple(draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)))
    return World({pair: draw(time_bounds()) for pair in pairs(size)}, latencies)


def candidates(most: int, stamps: int = 7) -> st.SearchStrategy[list[tuple[int, int, int]]]:
    """Pauses, sources and timestamps; those that the bounds do not allow are left out."""
    return st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, stamps)), min_size=1, max_size=most)


def instants(world: World, drawn: list[tuple[int, int, int]], after: int = 5) -> Iterator[tuple[int, list[Arrival]]]:
    """Every instant with what arrives at it, as far as the bounds allow; a few more when nothing does."""
    history: list[Arrival] = []
    now = 0
    arriving: dict[int, list[Arrival]] = defaultdict(list)
    for pause, source, stamp in drawn:
        now += pause
        new = Arrival(now, source % len(world.latencies), stamp)
        if world.allows([*history, new]):
            history.append(new)
            arriving[now].append(new)
    for instant in range(now + after):
        yield instant, arriving[instant]


def check(world: World, drawn: list[tuple[int, int, int]], strong: bool) -> None:
    generator, numbers = generator_of(world)
    history: list[Arrival] = []
    for now, arriving in instants(world, drawn):
        for new in arriving:
            history.append(new)
            generator.arrived(numbers[new.source], ONLY, one(new.stamp), now)
        for source in world.sources:
            reached = heartbeat(generator, numbers[source], now)
            if reached is not None:
                for stamp in range(reached, reached - 4, -1):
                    assert not world.can_still_come(history, source, stamp, now), (now, source, stamp)
            if strong:
                soonest = LONG_AGO if reached is None else reached + 1
                assert world.can_still_come(history, source, soonest, now), (now, source, soonest)


# the two properties of section 3.2


@settings(max_examples=120)
@given(worlds(), candidates(most=5))
def test_nothing_arrives_at_or_before_a_heartbeat(world: World, drawn: list[tuple[int, int, int]]) -> None:
    check(world, drawn, strong=False)


@settings(max_examples=100)
@given(worlds(), candidates(most=5))
def test_no_larger_heartbeat_can_be_inferred(world: World, drawn: list[tuple[int, int, int]]) -> None:
    """Provided that the matrix says all that follows from it; else the order in which tuples came could say more."""
    check(replace(world, bounds=closed(world.bounds, len(world.latencies))), drawn, strong=True)


def test_without_its_chains_a_matrix_says_less_than_could_be_inferred() -> None:
    """b came behind a, so it was sent before a, and what it says about c holds earlier than its arrival alone would
    tell.
    """
    world = World({(0, 1): (SkewBound(1),), (1, 2): (SkewBound(0),)}, (0, 1, 1))
    history = [Arrival(5, 0, 10), Arrival(6, 1, 7)]
    assert world.allows(history)
    assert not world.can_still_come(history, 2, 7, now=6)
    for bounds, reached in ((world.bounds, None), (closed(world.bounds, 3), 9)):
        generator, numbers = generator_of(replace(world, bounds=bounds))
        for new in history:
            generator.arrived(numbers[new.source], ONLY, one(new.stamp), new.at)
        assert heartbeat(generator, numbers[2], 6) == reached


# delays in tuples


def tuple_bounds() -> st.SearchStrategy[Bounds]:
    """As in section 3.1: in order with at most k repetitions; as from a global counter; or anything."""
    repeating = st.integers(1, 3).map(lambda k: (SkewBound(1), SkewBound(0, tuples=k)))
    anything = st.builds(lambda n, within: SkewBound(within, tuples=n), st.integers(1, 3), st.integers(0, 3))
    return st.one_of(repeating, st.just((SkewBound(0, tuples=1),)), st.lists(anything, max_size=2).map(strongest))


@st.composite
def counting_worlds(draw: st.DrawFn, latency: int) -> World:
    size = draw(st.integers(1, 3))
    latencies = tuple(draw(st.lists(st.integers(0, latency), min_size=size, max_size=size)))
    return World({pair: draw(tuple_bounds()) for pair in pairs(size)}, latencies)


@settings(max_examples=120)
@given(counting_worlds(latency=0), candidates(most=8, stamps=4))
def test_delays_in_tuples_are_exact_if_tuples_come_one_by_one(world: World, drawn: list[tuple[int, int, int]]) -> None:
    check(world, [(max(pause, 1), source, stamp) for pause, source, stamp in drawn], strong=True)


@settings(max_examples=120)
@given(counting_worlds(latency=2), candidates(most=5, stamps=4))
def test_delays_in_tuples_are_sound(world: World, drawn: list[tuple[int, int, int]]) -> None:
    check(world, drawn, strong=False)


def test_at_most_k_repetitions() -> None:
    """Section 3.1: with (0, 1) and (k, 0) the k-th repetition completes its instant, and so does the next instant."""
    world = World({(0, 0): (SkewBound(1), SkewBound(0, tuples=2))}, (0,))
    generator, (number,) = generator_of(world)
    reached = []
    for now, stamp in enumerate([5, 5, 5, 6, 6, 8]):
        generator.arrived(number, ONLY, one(stamp), now)
        reached.append(heartbeat(generator, number, now))
    assert reached == [4, 4, 5, 5, 5, 7]


# batches


@settings(max_examples=60)
@given(worlds(), candidates(most=12, stamps=9), st.data())
def test_a_batch_is_its_tuples_one_by_one(world: World, drawn: list[tuple[int, int, int]], data: st.DataObject) -> None:
    whole, parts, counted = generator_of(world), generator_of(world), data.draw(counting_worlds(latency=1))
    now = 0
    for pause, source, _ in drawn:
        now += pause
        stamps = np.array(data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4)))
        source %= len(world.latencies)
        whole[0].arrived(whole[1][source], ONLY, of_one(stamps), now)
        for stamp in stamps.tolist():
            parts[0].arrived(parts[1][source], ONLY, one(stamp), now)
        for mine, theirs in zip(whole[1], parts[1], strict=True):
            assert heartbeat(whole[0], mine, now) == heartbeat(parts[0], theirs, now)
    summary, rows, single = generator_of(counted), generator_of(counted), generator_of(counted)
    for now, (_, source, stamp) in enumerate(drawn):
        source %= len(counted.latencies)
        stamps = np.array([stamp, *data.draw(st.lists(st.integers(0, 9), max_size=3))])
        summary[0].arrived(summary[1][source], ONLY, replace(of_one(stamps), rows=None), now)
        rows[0].arrived(rows[1][source], ONLY, of_one(stamps), now)
        for alone in stamps.tolist():
            single[0].arrived(single[1][source], ONLY, one(alone), now)
        for known, more, most in zip(summary[1], rows[1], single[1], strict=True):
            least, better, best = (
                summary[0].promised(known, now),
                rows[0].promised(more, now),
                single[0].promised(most, now),
            )
            assert least[0] <= better[0] <= best[0]


def test_two_streams_read_at_the_same_instant_count_as_simultaneous() -> None:
    """Which of two batches is handed over first says nothing about which was sent first."""
    world = World({(0, 1): (SkewBound(0, tuples=1),)}, (0, 0))
    generator, (first, second) = generator_of(world)
    generator.arrived(first, ONLY, one(100), 1)
    generator.arrived(second, ONLY, one(50), 1)
    assert heartbeat(generator, second, 1) is None
    generator.arrived(second, ONLY, one(51), 2)
    assert heartbeat(generator, second, 2) == 100


# coarser clocks, and what is kept


@settings(max_examples=60)
@given(worlds(), candidates(most=10), st.integers(2, 5))
def test_a_coarser_clock_is_later_by_at_most_a_unit(world: World, drawn: list[tuple[int, int, int]], unit: int) -> None:
    fine, coarse = generator_of(world), generator_of(world, unit)
    seen: dict[int, tuple[list[int], list[int]]] = {}
    ends = sum(pause for pause, _, _ in drawn) + 12
    arriving = defaultdict(list)
    now = 0
    for pause, source, stamp in drawn:
        now += pause
        arriving[now].append((source % len(world.latencies), stamp))
    for now in range(ends):
        for source, stamp in arriving[now]:
            for generator, numbers in (fine, coarse):
                generator.arrived(numbers[source], ONLY, one(stamp), now)
        seen[now] = tuple([int(g.promised(number, now)[0]) for number in numbers] for g, numbers in (fine, coarse))  # type: ignore[assignment]
    for now in range(ends):
        assert all(late <= early for early, late in zip(*seen[now], strict=True))
        if now + unit < ends:
            assert all(late >= early for early, late in zip(seen[now][0], seen[now + unit][1], strict=True))


def test_no_more_is_kept_than_the_longest_delay_has_units() -> None:
    """O(tmax + Lmax) entries a source, whether or not anybody asks for heartbeats."""
    for unit, asking in product((1, 4), (True, False)):
        bounds = (SkewBound(9), SkewBound(4, after_us=10), SkewBound(0, after_us=40))
        world = World(dict.fromkeys(pairs(2), bounds), (3, 8))
        generator, numbers = generator_of(world, unit)
        for now in range(600):
            for number in numbers:
                generator.arrived(number, ONLY, one(now), now)
                if asking:
                    generator.promised(number, now)
        entries = (40 + 8) // unit + 2
        for number in numbers:
            cohort = generator.cohorts[number]
            assert len(cohort.maxima) <= 2 * entries
            assert cohort.kept() <= (2 + len(bounds)) * entries


def test_a_promise_does_not_depend_on_when_it_was_first_asked_for() -> None:
    generator, (number,) = generator_of(World({(0, 0): (SkewBound(1, after_us=5),)}, (0,)))
    generator.arrived(number, ONLY, one(10), 0)
    assert heartbeat(generator, number, 20) == 9


# many sources at once


@dataclass(frozen=True)
class Fleet:
    """Cohorts of sources: bounds of a source with itself, to others of its cohort, and between cohorts."""

    sizes: tuple[int, ...]
    latencies: tuple[int, ...]
    own: tuple[Bounds, ...]
    between: dict[tuple[int, int], Bounds]

    def bounds(self, first: tuple[int, int], second: tuple[int, int]) -> Bounds:
        return self.own[first[0]] if first == second else self.between[first[0], second[0]]


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    cohorts = draw(st.integers(1, 3))
    several = st.lists(st.integers(1, 4), min_size=cohorts, max_size=cohorts)
    delays = st.lists(st.integers(0, 3), min_size=cohorts, max_size=cohorts)
    own = tuple(draw(st.lists(time_bounds(6, 9), min_size=cohorts, max_size=cohorts)))
    between = {pair: draw(time_bounds(6, 9)) for pair in pairs(cohorts)}
    return Fleet(tuple(draw(several)), tuple(draw(delays)), own, between)


class Figure2:
    """The paper's algorithm word for word: a matrix, a loop, and an infinite array for each source."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.sources = [(cohort, member) for cohort, size in enumerate(fleet.sizes) for member in range(size)]
        self.array: dict[tuple[int, int], dict[int, int]] = {source: {} for source in self.sources}

    def arrived(self, i: tuple[int, int], stamp: int, now: int) -> None:
        for j in self.sources:
            for bound in self.fleet.bounds(i, j):
                at = now + bound.after_us + self.fleet.latencies[j[0]]
                self.array[j][at] = max(self.array[j].get(at, LONG_AGO), stamp - bound.within)

    def heartbeat(self, j: tuple[int, int], now: int) -> int:
        return max((value for at, value in self.array[j].items() if at <= now), default=LONG_AGO)


@settings(max_examples=100)
@given(fleets(), st.data())
def test_many_sources_at_once_are_the_matrix_of_figure_2(fleet: Fleet, data: st.DataObject) -> None:
    generator, naive = Generator(1), Figure2(fleet)
    numbers = [generator.add(latency) for latency in fleet.latencies]
    for number, size, own, latency in zip(numbers, fleet.sizes, fleet.own, fleet.latencies, strict=True):
        generator.cohorts[number].resize(size)
        generator.cohorts[number].own = as_they_arrive(own, latency)
    for (first, second), bounds in fleet.between.items():
        generator.bind(numbers[first], numbers[second], as_they_arrive(bounds, fleet.latencies[second]))
    spoken = st.tuples(st.sampled_from(naive.sources), st.integers(0, 30))
    for now in range(data.draw(st.integers(2, 8)) + 8):
        batch = data.draw(st.lists(spoken, max_size=6)) if now < 8 else []
        for source, stamp in batch:
            naive.arrived(source, stamp, now)
        for position, number in enumerate(numbers):
            mine = [(member, stamp) for (cohort, member), stamp in batch if cohort == position]
            if mine:
                members = sorted({member for member, _ in mine})
                places = np.array([members.index(member) for member, _ in mine])
                arrivals = of_rows(members, places, np.array([stamp for _, stamp in mine]))
                generator.arrived(number, np.array(members), arrivals, now)
        for position, number in enumerate(numbers):
            expected = [naive.heartbeat((position, member), now) for member in range(fleet.sizes[position])]
            assert np.maximum(generator.promised(number, now), LONG_AGO).tolist() == expected


# arrivals in numbers


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9)), min_size=1, max_size=20), st.data())
def test_arrivals_are_counted_as_they_are(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    arrivals = of_rows(list("abcd"), np.array([place for place, _ in rows]), np.array([stamp for _, stamp in rows]))
    for place in range(4):
        stamps = [stamp for other, stamp in rows if other == place]
        assert arrivals.counts[place] == len(stamps)
        if stamps:
            assert (arrivals.smallest[place], arrivals.largest[place]) == (min(stamps), max(stamps))
            assert arrivals.behind[place] == max(max(stamps[: end + 1]) - stamp for end, stamp in enumerate(stamps))
    members = np.array(data.draw(st.lists(st.integers(0, 1), min_size=4, max_size=4)))
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=4, max_size=4)))
    for known in (arrivals, replace(arrivals, rows=None)):
        places, part = known.of_members(members, chosen)
        for place, count, largest in zip(places.tolist(), part.counts.tolist(), part.largest.tolist(), strict=True):
            stamps = [stamp for other, stamp in rows if chosen[other] and members[other] == place]
            assert count == len(stamps)
            assert not stamps or largest == max(stamps)
