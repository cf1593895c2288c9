"""Buckets of time: which elements of two sides can live at a common instant, as an equality that a join can use.

    |--------- 0 ---------|--------- 1 ---------|--------- 2 ---------|   buckets of width L + R - 1
                        since

An element that lives at most L instants and one that lives at most R meet only if their starts are near: the left one
begins less than L before the right one begins, or while that one lives. So the left side goes into the bucket in which
it begins, and the right side into every bucket in which a partner of it may begin. These are two at the most, and each
pair meets in one of them: that of its left row.

Where a join bounds how far apart its rows begin, this says which begin near each other, whether they end or not. Then
the timestamps in the rows count, because of what is kept of a side only those are known.

Buckets are counted from the epoch's beginning. What began before lies in bucket 0 or below, and an old row of the right
side is put into later ones only: so an old row never meets an old one, and a pair is made in the epoch in which it
begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from headgate.delta.query import LateralView, Table, select
from headgate.plan.distances import between_starts
from headgate.plan.nodes import Join, Relation, names
from headgate.sql import EMPTY, Sql, listed
from headgate.ticks import UNLIMITED, Tick

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

STAMPS = ("_t", "_x", "_n")
MET = Sql("l._b = r._b")
"""The condition under which two rows lie in one bucket."""


def apply(node: Join) -> bool:
    """Whether buckets tell which elements can meet: all have an end, or the join says how far apart they begin."""
    return between_starts(node) is not None or _ending(node) is not None


def _ending(node: Join) -> tuple[Tick, Tick] | None:
    """How long the elements of both sides live at the most."""
    left, right = node.left.longest, node.right.longest
    return (left, right) if left is not None and right is not None else None


def sides(lowering: Lowering, node: Join) -> tuple[Table, Table]:
    """All rows of each side that can be part of a pair that begins in the epoch."""
    lowering.born(node.left)  # synopses have their names by this order, in directories too
    lowering.born(node.right)
    right = _side(lowering, node.right)
    return _side(lowering, node.left), right


def _side(lowering: Lowering, side: Relation) -> Table:
    # What lives for one instant only cannot meet anything that begins after it.
    return lowering.born(side) if side.instantaneous else lowering.passing(side)


def split(lowering: Lowering, node: Join, left: Table, right: Table) -> tuple[Table, Table]:
    """Both sides with their buckets as `_b`."""
    own, first, last = _buckets(node)
    columns = listed((*names(node.left), *STAMPS))
    placed = lowering.step("placed", select(f"{columns}, {own} AS _b", left))
    columns = listed((*names(node.right), *STAMPS))
    if first == last:  # its partners begin at one instant
        old = () if node.right.instantaneous else (f"(_t > :since OR {first} > 0)",)
        return placed, lowering.step("placed", select(f"{columns}, {first} AS _b", right, where=old))
    later = f"CASE WHEN _t > :since THEN {first} ELSE GREATEST({first}, 1) END"  # only new rows meet old ones
    view = f"EXPLODE(SEQUENCE({later}, GREATEST({later}, {last}))) e AS _b"
    return placed, lowering.step("spread", select(f"{columns}, _b", LateralView(right, view)))


def _buckets(node: Join) -> tuple[Sql, Sql, Sql]:
    """The bucket in which a row of the left side begins, and the first and last in which partners of a right one do."""
    ending, distance = _ending(node), between_starts(node)
    narrow = UNLIMITED if distance is None else cast(int, distance.most) - cast(int, distance.least) + 1
    if ending is not None and (width := sum(ending) - 1) <= narrow:
        first = bucket(Sql("_t"), width - ending[0], width)
        return bucket(Sql("_t"), width - 1, width), first, first if width == 1 else bucket(Sql("_x"), width - 2, width)
    assert distance is not None
    begun, theirs = distance.numbers
    return tuple(  # type: ignore[return-value]
        _floored(bucket(value, narrow - 1 + cast(int, offset), 1), narrow)
        for value, offset in ((begun, 0), (theirs, distance.least), (theirs, distance.most))
    )


def _floored(number: Sql, width: int) -> Sql:
    """A number in widths; what began before the last epoch lies below 0."""
    return number if width == 1 else f"({number} - PMOD({number}, {width})) DIV {width}"


def bucket(instant: Sql, offset: int, width: int) -> Sql:
    """How many buckets of the width lie between `since` and the instant, moved back or forth by the offset."""
    shift = Sql(f" {'+' if offset > 0 else '-'} {abs(offset)}") if offset else EMPTY
    return f"({instant} - :since{shift}){f' DIV {width}' if width > 1 else ''}"
