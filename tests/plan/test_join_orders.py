"""Decisions about joins of several inputs, from counts alone: orders by the greedy invariant, caches by their cost."""

from __future__ import annotations

from headgate.catalog.catalog import Catalog
from headgate.compile import compile_script
from headgate.delta.lower import Way, lower
from headgate.plan.join_orders import Arrangement, Counts, adapted, cost, described, order, sets_to_count, whole
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


def counts(found: dict[tuple[int, Inputs], int], arrived: int = 100) -> Counts:
    """What is known after 100 rows of each input gave so many rows with others."""
    each = {0: arrived, 1: arrived, 2: arrived}
    return Counts().with_more(each, {0: 0, 1: 0, 2: 0}, {0: 100, 1: 100, 2: 100}, found)


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
    without = cost(group, Arrangement({some(1): (some(2), some(0))}), counts(SELECTIVE))
    saving = cost(group, with_cache, counts(SELECTIVE))
    assert without is not None
    assert saving is not None
    assert saving < without / 10
    assert "keeps the join of b with c" in described(group, with_cache)
    turned = {key: 10 if rows == 5000 else 800 if rows == 1 else rows for key, rows in SELECTIVE.items()}
    after, changes = adapted(group, with_cache, counts(turned))
    assert after.caches != {some(1, 2)}
    assert changes


def test_only_what_logs_can_tell_is_cached() -> None:
    group = group_of(CHAIN, "[ROWS 5]")
    assert adapted(group, Arrangement(), counts(SELECTIVE))[0].caches == frozenset()
