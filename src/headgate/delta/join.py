"""Inner joins.

    born     Δ(L ⋈ R) = ΔL ⋈ (R + ΔR) + L ⋈ ΔR, with L and R as they lived at `since`

One side old, the other new, counts ΔL ⋈ ΔR exactly once. A pair counts as often as the product of its sides, from the
later of their two starts to the earlier of their two ends, and not at all if that is empty.

Where rows of one instant meet the one row of their key that is there then, a sort finds it (see `as_of`).

Where a constraint says that each row refers to one row of the other side, rows wait only for that one (see
`constraints`).

Where a relation at rest is compared with something, and nothing is equated, buckets of values tell which rows can meet
(see `thresholds`).

Where every element of both sides has an end, elements that live at a common instant begin near each other. Then one
pairing does it, by time as well as by what is equated (see `buckets`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta import as_of, beside, buckets, constraints, stored, thresholds
from headgate.delta.query import Alias, Joined, Select, Table, select, union
from headgate.plan.constraints import referenced as constrained
from headgate.plan.nodes import Join, names
from headgate.sql import ALL, FOREVER, Sql, listed

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

OUTLIVES = Sql("(_x IS NULL OR _x > :until)")
"""The condition for an element that lives longer than the epoch, as far as is known."""


def born(lowering: Lowering, node: Join) -> Table:
    """Born: new left rows with all right rows, and old left rows with new right rows."""
    if (lookup := node.lookup) is not None:
        return beside.born(lowering, node, lookup)
    if lowering.large and (found := as_of.sides(node)):
        return as_of.born(lowering, node, found)
    if buckets.apply(node):
        return lowering.step("join", _paired(lowering, node, *buckets.sides(lowering, node)))
    if (referenced := constrained(node)) is not None:
        sides, raising = constraints.pairs(lowering, node, referenced)
        return lowering.step("join", union(*(_pairs(node, left, right) for left, right in sides), *raising))
    new_left, new_right = lowering.born(node.left), lowering.born(node.right)
    # What lives for one instant only cannot meet anything that begins after it.
    right = new_right if node.right.instantaneous else lowering.all_elements(node.right)
    pairs = [_pairs(node, *_by_value(lowering, node, new_left, right))]
    old_left = None if node.left.instantaneous else lowering.live(node.left)
    if old_left is not None:
        pairs.append(_pairs(node, *_by_value(lowering, node, old_left, new_right)))
    return lowering.step("join", union(*pairs))


def _by_value(lowering: Lowering, node: Join, left: Table, right: Table) -> tuple[Table, Table, tuple[Sql, ...]]:
    """The sides of a pairing, and what is equated beside what the join says: buckets of values, if it compares some."""
    bounded = None if lowering.tiny else thresholds.found(node)
    if bounded is None:
        return left, right, ()
    return *thresholds.split(lowering, node, bounded, left, right), (buckets.MET,)


def outliving(lowering: Lowering, node: Join) -> Table:
    """Those of `born` that outlive the epoch, by buckets, from the rows of both sides that do.

    Of a long epoch these are few, so much less is paired than for all that is born.
    """
    left, right = buckets.sides(lowering, node)
    left = lowering.step("lasting", select(ALL, left, where=OUTLIVES))
    right = lowering.step("lasting", select(ALL, right, where=OUTLIVES))
    return lowering.step("outliving", _paired(lowering, node, left, right))


def divided(lowering: Lowering, node: Join, left: Table, right: Table) -> tuple[Table, Table]:
    """Born, by buckets, from sides with a mark `_twin`: the pairs of rows without it, and those of which one has it.

    The mark is looked at before anything is paired: a side in which none has it costs nothing.
    """
    (left_alone, left_twins), (right_alone, right_twins) = (_by_mark(lowering, side) for side in (left, right))
    alone = lowering.step("join", _paired(lowering, node, left_alone, right_alone))
    pairs = _paired(lowering, node, left_twins, right), _paired(lowering, node, left_alone, right_twins)
    return alone, lowering.step("join", union(*pairs))


def _by_mark(lowering: Lowering, side: Table) -> tuple[Table, Table]:
    alone = lowering.step("alone", select(ALL, side, where=Sql("NOT _twin")))
    return alone, lowering.step("twinned", select(ALL, side, where=Sql("_twin")))


def _paired(lowering: Lowering, node: Join, left: Table, right: Table) -> Select:
    """The pairs by time; every row of each side is looked at once."""
    return _pairs(node, *buckets.split(lowering, node, left, right), (buckets.MET,), by_time=True)


def _pairs(node: Join, left: Table, right: Table, met: tuple[Sql, ...] = (), by_time: bool = False) -> Select:
    """The pairs of two tables that meet the condition and live at a common instant."""
    on = [e.sql for e in node.equalities]
    on += [*met, f"l._t < COALESCE(r._x, {FOREVER})", f"r._t < COALESCE(l._x, {FOREVER})"]
    if node.condition is not None:
        on.append(f"({node.condition.sql})")
    stamps = Sql("GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n")
    uneven = bool(node.equalities or met) and stored.at_rest(node.left) != stored.at_rest(node.right)
    both = Joined(Alias(left, "l"), Alias(right, "r"), tuple(on), by_time=by_time, uneven=uneven)
    return select(f"{listed(names(node))},\n  {stamps}", both)
