"""In which order a join of several inputs goes through them, and what it keeps in between: decided by counted rows.

    Arrangement   the orders in force, and the caches: intermediate results that are kept
    Counts        what was counted lately: of some new rows of an input, how many rows they gave with which others
    greedy        the order for one input by these counts
    adapted       the arrangement to go on with, and why it is another one; the same one if there is no reason

New rows of an input go through the others one after another. The next one is always the one with which they give the
fewest rows: the greedy invariant. An order is kept while it keeps to that within a margin, so that it does not go back
and forth with chance. Of a set of inputs, the number of rows does not depend on the order; so it is counted by set.

A cache is the join of some inputs. Its members' new rows go through the other members first and make what is new of the
cache; the new rows of other inputs meet the cache at once. Caches lie within one another or apart, so they form a tree:
without any, each input has its pipeline; with as many as fit, it is a tree of joins of two. A query begins as the tree
in which it is written, and leaves it when counted rows say that this pays.

What is counted in the end are rows that a statement reads and makes, and its joins: each costs as much as some thousand
rows, however few it reads.

Everything here is a pure function of counts. What is decided never changes an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from headgate.plan.multiway import Group, Inputs

MARGIN = 1.25
"""By what factor an order or a set of caches must be better before it takes the place of the one in force."""

LEAST_GAIN = 0.1
"""So many rows, for each row that comes, a change has to save at the least."""

FADING = 0.5
"""How much what was counted before weighs when something is counted again."""

UPKEEP = 2.0
"""What a row of a cache costs, in rows joined: it is written, and read again, when the state is moved."""

JOIN_ROWS = 10_000.0
"""What a join in a statement costs, in rows, beside the rows that it reads and makes."""

ALL_SETS = 4
"""Of at most so many inputs all sets are counted and all caches weighed. Of more, only those along the orders in force,
and caches one by one.
"""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How a group is joined. Without anything, each input goes through the others as they are written."""

    orders: Mapping[Inputs, tuple[Inputs, ...]] = field(default_factory=dict)
    """Per input or cache that new rows come from: the inputs and caches beside it, in the order in which these go
    through them.
    """

    caches: frozenset[Inputs] = frozenset()
    """The caches in use. Of any two, one lies in the other, or they have nothing in common."""

    filling: frozenset[Inputs] = frozenset()
    """Caches that are kept and not in use, because they have yet to be filled."""

    as_written: bool = False
    """True if it is the tree of joins of two in which the query is written. It keeps its caches by the rules of these
    joins, so that they may be joins of anything.
    """


def as_written(group: Group) -> Arrangement:
    """The tree of joins in which a group is written."""
    return Arrangement(caches=frozenset(group.inner), as_written=True)


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted, each new count weighing more than those before."""

    arrived: Mapping[int, float] = field(default_factory=dict)
    """By input: how many rows come in an epoch."""

    stood: Mapping[int, float] = field(default_factory=dict)
    """By input: how many rows live when an epoch begins."""

    found: Mapping[tuple[int, Inputs], tuple[float, float]] = field(default_factory=dict)
    """By input and set of others: how many rows were looked at, and how many rows they gave with the others."""

    def with_more(
        self,
        arrived: Mapping[int, int],
        stood: Mapping[int, int],
        sample: Mapping[int, int],
        found: Mapping[tuple[int, Inputs], int],
    ) -> Counts:
        """What is known after another count: rows that came, that lived, that were looked at, and what these gave."""
        seen = dict(self.found)
        for (number, others), rows in found.items():
            if sample.get(number, 0):
                before = seen.get((number, others), (0.0, 0.0))
                seen[number, others] = before[0] * FADING + sample[number], before[1] * FADING + rows
        return Counts(_faded(self.arrived, arrived), _faded(self.stood, stood), seen)

    def rows(self, number: int, others: Inputs) -> float | None:
        """How many rows a new row of an input gives with a set of others; None if that was never counted."""
        looked, gave = self.found.get((number, others), (0.0, 0.0))
        return gave / looked if looked else None


def _faded(before: Mapping[int, float], now: Mapping[int, int]) -> dict[int, float]:
    """Means in which newer counts weigh more."""
    return {**before, **{one: before.get(one, rows) * FADING + rows * (1 - FADING) for one, rows in now.items()}}


# what lies beside what


def members(whole: Inputs, caches: Iterable[Inputs]) -> tuple[Inputs, ...]:
    """What a group or a cache is made of: the largest caches within it, and its other inputs, each by itself."""
    inside = [one for one in caches if one < whole]
    largest = [one for one in inside if not any(one < other for other in inside)]
    alone = whole - frozenset().union(*largest)
    return tuple(sorted([*largest, *(frozenset({one}) for one in alone)], key=sorted))


def whole(group: Group) -> Inputs:
    """All inputs of a group."""
    return frozenset(range(len(group.inputs)))


def order(group: Group, arrangement: Arrangement, one: Inputs, within: Inputs) -> tuple[Inputs, ...]:
    """The order in which new rows of an input or cache go through what lies beside it in a group or cache."""
    beside = [other for other in members(within, arrangement.caches) if other != one]
    known = arrangement.orders.get(one, ())
    if set(known) == set(beside):
        return known
    found: list[Inputs] = []
    while beside:
        found.append(candidates(group, one.union(*found), beside)[0])
        beside.remove(found[-1])
    return tuple(found)


def candidates(group: Group, before: Inputs, beside: Iterable[Inputs]) -> list[Inputs]:
    """What can come next: what is equated with something that is there; if nothing is, anything."""
    beside = list(beside)
    return [one for one in beside if group.connected(before, one)] or beside


def path(group: Group, arrangement: Arrangement, number: int) -> list[Inputs]:
    """The inputs and caches that a new row of an input goes through, up to the result."""
    found: list[Inputs] = []
    here = frozenset({number})
    for within in (*sorted((cache for cache in arrangement.caches if number in cache), key=len), whole(group)):
        found += order(group, arrangement, here, within)
        here = within
    return found


# counting


def sets_to_count(group: Group, arrangement: Arrangement, number: int) -> tuple[Inputs, ...]:
    """The sets of other inputs with which the new rows of an input are to be joined, to see how many rows that gives.

    Along the order in force, each input that could come next instead; of a few inputs, every set that can be needed.
    With all others together it gives the same rows in every order, so that is not counted.
    """
    others = whole(group) - {number}
    if len(group.inputs) <= ALL_SETS:
        sets = (frozenset(some) for size in range(1, len(others)) for some in combinations(sorted(others), size))
        return tuple(some for some in sets if group.holds_together(some | {number}))
    found, before = dict[Inputs, None](), frozenset[int]()
    for step in path(group, arrangement, number):
        rest = [frozenset({one}) for one in others - before]
        found |= dict.fromkeys(before | one for one in candidates(group, before | {number}, rest))
        before |= step
        found[before] = None
    return tuple(one for one in found if one != others)


# deciding


@dataclass(frozen=True, slots=True)
class Change:
    """Something that is done in another way from now on."""

    what: str
    by: str
    """The figures that it was decided by."""


def adapted(
    group: Group, arrangement: Arrangement, counts: Counts, caching: bool = True
) -> tuple[Arrangement, list[Change]]:
    """The arrangement to go on with by what was counted, and what is different in it."""
    changes: list[Change] = []
    if caching:
        arrangement, changes = _with_other_caches(group, arrangement, counts)
    if arrangement.as_written:
        return arrangement, changes
    for one, within in _places(group, arrangement.caches):
        now = order(group, arrangement, one, within)
        place, before = _violation(group, counts, one, now)
        if place is None:
            continue
        better = (*now[:place], *greedy(group, counts, one, now[place:], before))
        old, new = (_rows(counts, one, before | some[place]) for some in (now, better))
        arrangement = replace(arrangement, orders={**arrangement.orders, one: better})
        what = f"new rows of {named(group, one)} go through {_through(group, better)}, no longer {_through(group, now)}"
        changes.append(
            Change(what, f"{new:.3g} rows for each behind {_through(group, better[: place + 1])}, not {old:.3g}")
        )
    return arrangement, changes


def _violation(group: Group, counts: Counts, one: Inputs, now: tuple[Inputs, ...]) -> tuple[int | None, Inputs]:
    """The first place of an order at which something else gives fewer rows by the margin, and what comes before it."""
    before = frozenset[int]()
    for place, chosen in enumerate(now):
        rows = _rows(counts, one, before | chosen)
        best = _fewest(group, counts, one, now[place:], before)
        if best is not None and rows is not None and _pays(rows, best[0]):
            return place, before
        before |= chosen
    return None, before


def _fewest(
    group: Group, counts: Counts, one: Inputs, beside: Iterable[Inputs], before: Inputs
) -> tuple[float, list[int]] | None:
    """What comes next by the greedy invariant, as sorted numbers, and how many rows that gives; None if unknown."""
    able = candidates(group, one | before, beside)
    known = [(rows, sorted(other)) for other in able if (rows := _rows(counts, one, before | other)) is not None]
    return min(known, default=None)


def greedy(
    group: Group, counts: Counts, one: Inputs, beside: Iterable[Inputs], before: Inputs = frozenset()
) -> tuple[Inputs, ...]:
    """The order by the greedy invariant in which new rows go through inputs and caches, behind some others.

    Where nothing was counted, they come as they stand.
    """
    rest, found = list(beside), list[Inputs]()
    while rest:
        best = _fewest(group, counts, one, rest, before)
        found.append(frozenset(best[1]) if best is not None else candidates(group, one | before, rest)[0])
        before |= found[-1]
        rest.remove(found[-1])
    return tuple(found)


def _pays(now: float, better: float) -> bool:
    return now > better * MARGIN and now - better > LEAST_GAIN


def _places(group: Group, caches: frozenset[Inputs]) -> Iterator[tuple[Inputs, Inputs]]:
    """Each input and cache, and the smallest cache that it lies in, or the whole group."""
    for within in (*sorted(caches, key=lambda cache: (len(cache), sorted(cache))), whole(group)):
        for one in members(within, caches):
            yield one, within


def _rows(counts: Counts, one: Inputs, others: Inputs) -> float | None:
    """How many rows a new row of an input or cache gives with others; None if that is not known."""
    known = [
        (counts.arrived.get(number, 0.0), own, rows)
        for number in one
        if (rows := counts.rows(number, (one | others) - {number})) is not None
        and (own := 1.0 if len(one) == 1 else counts.rows(number, one - {number})) is not None
    ]
    new = sum(arrived * own for arrived, own, _ in known)
    if not known:
        return None
    if not new:
        return sum(rows for _, _, rows in known) / len(known) if len(one) == 1 else 0.0
    return sum(arrived * rows for arrived, _, rows in known) / new


def cost(group: Group, arrangement: Arrangement, counts: Counts) -> float | None:
    """What an epoch costs, in rows read and made; None if some of it was never counted.

    The rows of the result are left out: they are the same in every arrangement.
    """
    everything, caches = whole(group), arrangement.caches
    if not all(one in counts.arrived and one in counts.stood for one in everything):
        return None
    total = 0.0
    try:
        for within in (*caches, everything):
            beside = members(within, caches)
            made = 0.0 if within == everything else _new(counts, within)
            total += made * (1 + UPKEEP * group.lasting(within))
            if len(beside) == 2 and group.ending(within):  # paired at once
                total += JOIN_ROWS + sum(_all(group, counts, one) for one in beside)
                continue
            for place, one in enumerate(beside):
                before, rows = frozenset[int](), _new(counts, one)
                earlier = frozenset[int]().union(*beside[:place])
                if not group.lasting(earlier):
                    continue  # nothing of what was there before meets it
                for other in order(group, arrangement, one, within):
                    there = (_old if other <= earlier else _all)(group, counts, other)
                    if not there:
                        break  # Spark leaves out what reads nothing
                    total += JOIN_ROWS + rows + there
                    before |= other
                    if before | one < within:
                        rows = _new(counts, one, before, earlier)
                        total += rows
    except _NeverCounted:
        return None
    return total


class _NeverCounted(Exception):
    """How many rows some inputs give with others is not known."""


def _counted(counts: Counts, number: int, others: Inputs) -> float:
    rows = counts.rows(number, others) if others else 1.0
    if rows is None:
        raise _NeverCounted
    return rows


def _new(counts: Counts, some: Inputs, others: Inputs = frozenset(), earlier: Inputs = frozenset()) -> float:
    """How many new rows an input or cache gives in an epoch with others, of which the earlier ones are not new.

    A row that is new by several of its inputs counts for the last of these.
    """
    found = 0.0
    for number in some:
        old = (frozenset(one for one in some if one < number)) | (others & earlier)
        found += counts.arrived[number] * _counted(counts, number, (some - {number}) | others) * _old_share(counts, old)
    return found


def _old(group: Group, counts: Counts, some: Inputs) -> float:
    """How many rows of an input or cache live when an epoch begins."""
    if not group.lasting(some):
        return 0.0
    each = [
        counts.stood[number] * _counted(counts, number, some - {number}) * _old_share(counts, some - {number})
        for number in some
    ]
    return sum(each) / len(each)


def _all(group: Group, counts: Counts, some: Inputs) -> float:
    return _old(group, counts, some) + _new(counts, some)


def _old_share(counts: Counts, some: Inputs) -> float:
    """Which part of the rows that some inputs give with others is not new by any of these."""
    share = 1.0
    for one in some:
        every = counts.stood[one] + counts.arrived[one]
        share *= counts.stood[one] / every if every else 0.0
    return share


def _with_other_caches(group: Group, arrangement: Arrangement, counts: Counts) -> tuple[Arrangement, list[Change]]:
    """The arrangement with the caches that cost least, if that saves enough."""
    now = cost(group, arrangement, counts)
    if now is None or arrangement.filling or not can_change(group, arrangement):
        return arrangement, []
    best, best_cost = arrangement, now
    for caches in _other_caches(group, arrangement.caches):
        other = replace(arrangement, caches=caches, as_written=False)
        for one, within in _places(group, caches):
            beside = [sibling for sibling in members(within, caches) if sibling != one]
            other = replace(other, orders={**other.orders, one: greedy(group, counts, one, beside)})
        rows = cost(group, other, counts)
        if rows is not None and rows < best_cost:
            best, best_cost = other, rows
    arrived = max(sum(counts.arrived.values()), 1.0)
    if best is arrangement or not _pays(now / arrived, best_cost / arrived):
        return arrangement, []
    come, go = (
        sorted(best.caches - arrangement.caches, key=sorted),
        sorted(arrangement.caches - best.caches, key=sorted),
    )
    kept = [f"the join of {named(group, one)} is kept" for one in come]
    kept += [f"the join of {named(group, one)} is no longer kept" for one in go]
    figures = f"{best_cost / arrived:.3g} rows read, made or kept for each that comes instead of {now / arrived:.3g}"
    return best, [Change(one, figures) for one in kept]


def can_change(group: Group, arrangement: Arrangement) -> bool:
    """Whether caches can come and go: what the tree as it is written keeps must be something that can come again."""
    return not arrangement.as_written or all(cacheable(group, one) or not group.lasting(one) for one in group.inner)


def _other_caches(group: Group, caches: frozenset[Inputs]) -> Iterator[frozenset[Inputs]]:
    """Other sets of caches: of a few inputs all that there are, of more those with one more, one less or one other."""
    sizes = range(2, len(group.inputs))
    every = [frozenset(some) for size in sizes for some in combinations(sorted(whole(group)), size)]
    able = [one for one in every if cacheable(group, one)]
    if len(group.inputs) <= ALL_SETS:
        found = [
            frozenset(some)
            for size in range(len(group.inputs) - 1)
            for some in combinations(able, size)
            if all(_fit(*pair) for pair in combinations(some, 2))
        ]
    else:
        fewer = [caches & frozenset(able), *((caches & frozenset(able)) - {one} for one in caches)]
        found = [*fewer, *(some | {one} for some in fewer for one in able if all(_fit(one, other) for other in some))]
    yield from (some for some in dict.fromkeys(found) if some != caches)


def _fit(one: Inputs, other: Inputs) -> bool:
    """Whether two caches can be beside each other: one lies in the other, or they have nothing in common."""
    return one < other or other < one or not one & other


def cacheable(group: Group, one: Inputs) -> bool:
    """Whether the join of some inputs can be kept: equalities connect them, and logs tell which of their rows live."""
    inputs = [group.inputs[number] for number in one]
    told = all(node.in_logs and node.longest is not None and not node.instantaneous for node in inputs)
    return told and group.holds_together(one)


def named(group: Group, some: Inputs) -> str:
    """Some inputs by their names."""
    return " with ".join(group.name(number) for number in sorted(some))


def _through(group: Group, through: Iterable[Inputs]) -> str:
    return ", ".join(f"({named(group, one)})" if len(one) > 1 else named(group, one) for one in through)


def described(group: Group, arrangement: Arrangement) -> list[str]:
    """The orders and caches in force, a line each."""
    if arrangement.as_written:
        kept = [
            f"keeps the join of {named(group, one)}" for one in sorted(group.inner, key=sorted) if group.lasting(one)
        ]
        return ["two inputs after two, as they are written", *kept]
    lines = [
        f"new rows of {named(group, one)} go through {_through(group, order(group, arrangement, one, within))}"
        for one, within in _places(group, arrangement.caches)
    ]
    lines += [f"keeps the join of {named(group, one)}" for one in sorted(arrangement.caches, key=sorted)]
    return lines + [
        f"begins to keep the join of {named(group, one)}" for one in sorted(arrangement.filling, key=sorted)
    ]
