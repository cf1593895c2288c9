"""Decisions about joins of several inputs, from counts alone: orders by the greedy invariant, caches by their cost."""

from __future__ import annotations

from headgate.catalog.catalog import Catalog
from headgate.compile import compile_script
from headgate.delta.lower import Way, lower
from headgate.plan.join_orders import (
    Arrangement,
    Counts,
    adapted,
    as_written,
    cost,
    described,
    order,
    sets_to_count,
    whole,
)
from headgate.plan.multiway import Group, Inputs

CHAIN = "a.x = b.x AND b.y = c.y"
STAR = "a.x = b.x AND b.x = c.y"


def group_of(condition: str, windows: str = "[RANGE 10]") -> Group:
    catalog = Catalog()
    text = f"""
      CREATE STREAM a (x INT, p INT); CREATE STREAM b (x INT, y INT); CREATE STREAM c (y INT, r INT);
      CREATE QUERY q AS SELECT ISTREAM(a.p, b.y, c.r) FROM a {windows}, b {windows}, c {windows} WHERE {condition}
    """
    compile_script(text, catalog)
    (group,) = lower(catalog.queries["q"].plan, way=Way(joins=())).groups
    return group


def some(*numbers: int) -> Inputs:
    return frozenset(numbers)


def counts(found: dict[tuple[int, Inputs], int], arrived: int = 10_000, stood: int = 10_000) -> Counts:
    """What is known after a count: so many rows came and lived, and 100 of each input gave so many rows with others."""
    each = (0, 1, 2)
    return Counts().with_more(dict.fromkeys(each, arrived), dict.fromkeys(each, stood), dict.fromkeys(each, 100), found)


def test_new_rows_meet_what_they_are_equated_with_first() -> None:
    group = group_of(CHAIN)
    assert order(group, Arrangement(), some(2), whole(group)) == (some(1), some(0))
    assert sets_to_count(group, Arrangement(), 0) == (some(1),)


def test_equalities_that_follow_from_others_open_more_orders() -> None:
    group = group_of(STAR)
    assert group.connected(some(0), some(2))
    assert sets_to_count(group, Arrangement(), 0) == (some(1), some(2))


def test_an_order_changes_when_another_input_gives_fewer_rows() -> None:
    group = group_of(STAR)
    seen = counts({(0, some(1)): 500, (0, some(2)): 20, (0, some(1, 2)): 100})
    after, (change,) = adapted(group, Arrangement(), seen, caching=False)
    assert after.orders == {some(0): (some(2), some(1))}
    assert change.what == "new rows of a go through c, b, no longer b, c"
    assert change.by == "0.2 rows for each behind c, not 5"
    assert adapted(group, after, seen, caching=False) == (after, [])


def test_an_order_stays_while_the_difference_is_small() -> None:
    group = group_of(STAR)
    close = counts({(0, some(1)): 110, (0, some(2)): 100, (0, some(1, 2)): 10})
    assert adapted(group, Arrangement(), close, caching=False) == (Arrangement(), [])
    few = counts({(0, some(1)): 5, (0, some(2)): 0, (0, some(1, 2)): 0})  # a twentieth of a row for each
    assert adapted(group, Arrangement(), few, caching=False) == (Arrangement(), [])


def test_what_was_never_counted_changes_nothing() -> None:
    group = group_of(STAR)
    assert adapted(group, Arrangement(), Counts()) == (Arrangement(), [])
    assert cost(group, Arrangement(), Counts()) is None


def test_new_counts_outweigh_old_ones() -> None:
    group = group_of(STAR)
    seen = counts({(0, some(1)): 500, (0, some(2)): 20})
    for _ in range(3):
        seen = seen.with_more({0: 100}, {}, {0: 100}, {(0, some(1)): 20, (0, some(2)): 500})
    turned = Arrangement({some(0): (some(2), some(1))})
    after, changes = adapted(group, turned, seen, caching=False)
    assert after.orders == {some(0): (some(1), some(2))}
    assert len(changes) == 1


SELECTIVE = {
    (0, some(1)): 5000,  # a new row of a meets many of b, which all but never meet anything of c
    (0, some(1, 2)): 10,
    (1, some(0)): 5000,
    (1, some(2)): 1,
    (1, some(0, 2)): 10,
    (2, some(1)): 1,
    (2, some(0, 1)): 10,
}


def test_a_cache_comes_when_it_saves_more_than_it_costs_and_goes_when_it_does_not() -> None:
    group = group_of(CHAIN)
    with_cache, changes = adapted(group, Arrangement(), counts(SELECTIVE))
    assert with_cache.caches == {some(1, 2)}
    assert changes[0].what == "the join of b with c is kept"
    without = cost(group, Arrangement(), counts(SELECTIVE))
    saving = cost(group, with_cache, counts(SELECTIVE))
    assert without is not None
    assert saving is not None
    assert saving < without / 5
    assert "keeps the join of b with c" in described(group, with_cache)
    turned = {key: 10 if rows == 5000 else 5000 if rows == 1 else rows for key, rows in SELECTIVE.items()}
    after, changes = adapted(group, with_cache, counts(turned))
    assert after.caches == {some(0, 1)}
    assert [one.what for one in changes] == ["the join of a with b is kept", "the join of b with c is no longer kept"]


def test_a_tree_as_it_is_written_becomes_another_tree_and_orders_no_longer_follow_the_text() -> None:
    group = group_of(CHAIN)
    tree = as_written(group)
    assert tree.caches == {some(0, 1)}
    assert described(group, tree) == ["two inputs after two, as they are written", "keeps the join of a with b"]
    after, _ = adapted(group, tree, counts(SELECTIVE))
    assert after.caches == {some(1, 2)}
    assert not after.as_written
    assert adapted(group, after, counts(SELECTIVE)) == (after, [])


def test_a_tree_that_keeps_far_more_than_comes_becomes_pipelines() -> None:
    group = group_of(STAR)
    pairs = {(one, some(other)): 2_000 for one in range(3) for other in range(3) if one != other}
    after, changes = adapted(group, as_written(group), counts(pairs, arrived=1_000, stood=200_000))
    assert after.caches == frozenset()
    assert not after.as_written
    assert [one.what for one in changes] == ["the join of a with b is no longer kept"]


def test_small_epochs_stay_as_they_are_written() -> None:
    group = group_of(CHAIN)
    few = counts(SELECTIVE, arrived=10, stood=20)
    assert adapted(group, as_written(group), few) == (as_written(group), [])


def test_only_what_logs_can_tell_is_cached() -> None:
    group = group_of(CHAIN, "[ROWS 5]")
    assert adapted(group, Arrangement(), counts(SELECTIVE))[0].caches == frozenset()
    tree = as_written(group)  # what it keeps could not come again
    assert adapted(group, tree, counts(SELECTIVE)) == (tree, [])
