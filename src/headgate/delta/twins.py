"""Twins: which rows of a join Istream and Dstream have to set off against each other, found before they are paired.

    Istream(L ⋈ R) = alone + net twinned

Two pairs of which one ends when the other begins differ in their left or in their right row. If they are equal rows
all the same, these two agree in every column that is put out as it is, and live at a common instant or one after the
other: they are twins. A pair of rows without twins needs no netting.

Twins are searched in each side by itself, whose rows are far fewer than the pairs, and by a hash of each row, because a
number is shuffled and sorted faster than a row. Mostly there are none: they are
looked for by a job of their own, and what would net them is left out of the statement when it has found none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.delta import buckets, join, linear
from headgate.delta.query import Alias, Joined, LateralView, Table, select
from headgate.plan.nodes import Filter, Join, Needed, Project, Relation, names
from headgate.plan.nodes.operator import RowByRow
from headgate.sql import Sql, comma, listed, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

WIDTH = 8
"""How many times as long as an element a bucket is: the longer, the fewer elements reach into a second one."""


@dataclass(frozen=True, slots=True)
class Divided:
    """The elements of a relation that are born in the epoch, in two parts."""

    alone: Table
    """Those that no equal row ends beside when they begin, nor begins when they end."""

    twinned: Table


def divided(lowering: Lowering, node: Relation) -> Divided | None:
    """The elements born in the epoch, divided; None where the division is not known, or not worth it."""
    return lowering.once("divided", node, lambda: _divided(lowering, node))


def _divided(lowering: Lowering, node: Relation) -> Divided | None:
    above: list[Filter | Project] = []
    below = node
    while isinstance(below, Filter | Project):
        above.append(below)
        below = below.child
    if not lowering.large or not isinstance(below, Join) or below.retracts or not buckets.apply(below):
        return None
    if lowering.arranged(below):
        return None  # its sides are not computed
    if not (_told(below.left) and _told(below.right)):
        return None
    shown = _shown(below, above)
    if any(not shown & _named(side) - _equated(below) for side in (below.left, below.right)):
        return None  # many rows would be twins
    left, right = (
        _marked(lowering, side, rows, shown & _named(side))
        for side, rows in zip((below.left, below.right), buckets.sides(lowering, below), strict=True)
    )
    alone, twinned = join.divided(lowering, below, left, right)
    for one in reversed(above):
        alone, twinned = linear.apply(lowering, one, alone), linear.apply(lowering, one, twinned)
    return Divided(alone, twinned)


def _told(side: Relation) -> bool:
    """Whether all rows that live, or have just ended, can be read, so that none of their twins is missed."""
    below = side
    while isinstance(below, RowByRow) and not isinstance(below, Needed):
        below = below.child
    read_again = side.in_logs or not side.instantaneous
    return side.longest is not None and read_again and not isinstance(below, Needed)


def _marked(lowering: Lowering, side: Relation, rows: Table, shown: frozenset[str]) -> Table:
    """The rows of a side, with `_twin`: whether another row that agrees with it lives beside it, or may do so."""
    longest = side.longest
    assert longest is not None
    width = WIDTH * longest
    first, last = (buckets.bucket(instant, longest, width) for instant in (Sql("_t"), Sql("_x")))
    own = [name(column) for column in names(side) if column.lower() in shown]
    # A row that begins while another one lives, or when it ends, begins in a bucket of that one.
    every = lowering.passing(side)  # also of pairs that were there before
    in_each = LateralView(every, f"EXPLODE(SEQUENCE({first}, {last})) e AS _b")
    hashed = select(f"{_hash(own)} AS _h, {_hash(own, first)} AS _begun", in_each)
    counted = select(Sql("_begun, COUNT(*) OVER (PARTITION BY _h) AS _together"), hashed)
    twins = lowering.step("twins", select(Sql("DISTINCT _begun"), counted, where=Sql("_together > 1")), alone=True)
    # One join, so that Spark sees that nothing is marked if there are no twins.
    both = Joined(Alias(rows, "e"), Alias(twins, "m"), (f"{_hash(own, first)} = m._begun",), outer=True)
    columns = listed((*names(side), "_t", "_x", "_n"), Sql("e"))
    return lowering.step("marked", select(f"{columns}, m._begun IS NOT NULL AS _twin", both))


def _hash(values: list[Sql], bucket: Sql = Sql("_b")) -> Sql:
    """A number for a row in a bucket. Equal rows have equal numbers.

    Two other rows may have one number as well, which is rare. They are taken for twins and netted in vain.
    """
    return f"XXHASH64({comma(*values, bucket)})"


def _shown(node: Join, above: list[Filter | Project]) -> frozenset[str]:
    """The columns of a join, in lower case, that follow from the row put out: it has them, or what they equal."""
    found = {column.name.lower(): column.name.lower() for column in (above[0] if above else node).columns}
    for one in above:
        carried = one.carried[0]
        held = {name: carried[inside].column for name, inside in found.items()}
        found = {name: inside.lower() for name, inside in held.items() if inside is not None}
    shown = set(found.values())
    kinds = {column.name.lower(): column.type for column in node.columns}
    for equality in node.equalities:
        pair = {one.column.lower() for one in (equality.left, equality.right) if one.column is not None}
        if len(pair) == 2 and pair & shown and len({kinds[name] for name in pair}) == 1:
            shown |= pair
    return frozenset(shown)


def _named(side: Relation) -> frozenset[str]:
    return frozenset(name.lower() for name in names(side))


def _equated(node: Join) -> frozenset[str]:
    return frozenset().union(*(one.columns for e in node.equalities for one in (e.left, e.right)))
