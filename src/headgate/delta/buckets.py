"""Buckets of time: which elements of two sides can live at a common instant, as an equality that a join can use.

    |--------- 0 ---------|--------- 1 ---------|--------- 2 ---------|   buckets of width L + R - 1
                        since

An element that lives at most L instants and one that lives at most R meet only if their starts are near: the left one
begins less than L before the right one begins, or while that one lives. So the left side goes into the bucket in which
it begins, and the right side into every bucket in which a partner of it may begin. These are two at the most, and each
pair meets in one of them: that of its left row.

Buckets are counted from the epoch's beginning. What began before lies in bucket 0, and an old row of the right side is
put into later ones only: so an old row never meets an old one, and a pair is made in the epoch in which it begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta.query import LateralView, Table, select
from headgate.plan.nodes import Join, Relation, names
from headgate.sql import listed

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

STAMPS = ("_t", "_x", "_n")
MET = "l._b = r._b"
"""The condition under which two rows lie in one bucket."""


def apply(node: Join) -> bool:
    """Whether the elements of both sides have an end, so that buckets of time tell which can meet."""
    return node.left.longest is not None and node.right.longest is not None


def sides(lowering: Lowering, node: Join) -> tuple[Table, Table]:
    """All rows of each side that can be part of a pair that begins in the epoch."""
    lowering.born(node.left)  # synopses have their names by this order, in directories too
    lowering.born(node.right)
    right = _side(lowering, node.right)
    return _side(lowering, node.left), right


def _side(lowering: Lowering, side: Relation) -> Table:
    # What lives for one instant only cannot meet anything that begins after it.
    return lowering.born(side) if side.instantaneous else lowering.alive(side)


def split(
    lowering: Lowering, node: Join, left: Table, right: Table, marks: tuple[str, ...] = ()
) -> tuple[Table, Table]:
    """Both sides with their buckets as `_b`; `marks` are further columns of both."""
    left_most, right_most = node.left.longest, node.right.longest
    assert left_most is not None
    assert right_most is not None
    width = left_most + right_most - 1
    own = f"{listed((*names(node.left), *STAMPS, *marks))}, {bucket('_t', width - 1, width)} AS _b"
    columns = listed((*names(node.right), *STAMPS, *marks))
    first = f"CASE WHEN _t > :since THEN {bucket('_t', width - left_most, width)} ELSE 1 END"
    placed = lowering.step("placed", select(own, left))
    if width == 1:  # both live for one instant: the same one
        return placed, lowering.step("placed", select(f"{columns}, {bucket('_t', 0, 1)} AS _b", right))
    last = bucket("_x", width - 2, width)
    view = f"EXPLODE(SEQUENCE({first}, GREATEST({first}, {last}))) e AS _b"
    return placed, lowering.step("spread", select(f"{columns}, _b", LateralView(right, view)))


def bucket(instant: str, offset: int, width: int) -> str:
    """How many buckets of the width lie between `since` and the instant, moved back or forth by the offset."""
    shifted = f"({instant} - :since + {offset})" if offset else f"({instant} - :since)"
    return f"{shifted} DIV {width}" if width > 1 else shifted
