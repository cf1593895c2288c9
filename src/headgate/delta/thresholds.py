"""Buckets of values: which rows of two sides can satisfy an inequality, as an equality that a join can use.

    thresholds     --- 0 ---|- 1 -|--- 2 ---|- 3 -|--- 4 ---      borders: some of the thresholds themselves
    price                               ^                         finds the thresholds below it in buckets 0, 1 and 2

Where a join with a relation at rest equates nothing and compares numbers, the rows would all be tried with one another.
Instead a value lies in the bucket of its number: how many borders are not above it. If a is at most b, its bucket is
not above that of b. So the row that is bounded lies in one bucket, and the row that bounds it is put into every bucket
that its bounds reach. A pair meets in one bucket, where the condition is looked at as ever. All buckets but the last
hold partners only, so that the work follows the pairs that are found.

The borders are thresholds that are chosen by their hashes, so that they are the same wherever a statement computes
them. Other borders would give the same pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.delta import stored
from headgate.delta.query import Joined, LateralView, Select, Table, select
from headgate.plan.comparisons import comparisons
from headgate.plan.nodes import Join, Relation, names
from headgate.sql import ALL, Sql, listed, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

BORDERS = 63
"""How many borders there are at the most: one more gives 64 buckets."""

STAMPS = ("_t", "_x", "_n")


@dataclass(frozen=True, slots=True)
class Bounded:
    """How a join bounds a column: by columns of the other side, from below, from above or both."""

    column: str
    on_left: bool
    """Whether the bounded column is one of the left side."""

    least: str | None
    most: str | None


def found(node: Join) -> Bounded | None:
    """How a join with a relation at rest bounds a column; None if it equates something, or compares no numbers."""
    if node.equalities or stored.at_rest(node.left) == stored.at_rest(node.right):
        return None
    pairs = comparisons(node)
    left = set(names(node.left))
    bounded = [_bounded(column, pairs, left) for column in dict.fromkeys(one for pair in pairs for one in pair)]
    resting = stored.at_rest(node.left)
    # A column between two others says most; of several, that of the relation, which is put into one bucket.
    return max(bounded, key=lambda one: (None not in (one.least, one.most), one.on_left == resting), default=None)


def _bounded(column: str, pairs: tuple[tuple[str, str], ...], left: set[str]) -> Bounded:
    least = next((low for low, high in pairs if high == column), None)
    most = next((high for low, high in pairs if low == column), None)
    return Bounded(column, column in left, least, most)


def split(lowering: Lowering, node: Join, bounded: Bounded, left: Table, right: Table) -> tuple[Table, Table]:
    """Both sides with their buckets as `_b`."""
    borders = lowering.once("borders", node, lambda: _borders(lowering, node, bounded))
    both = ((node.left, left), (node.right, right))
    (side, rows), (other, others) = both if bounded.on_left else (both[1], both[0])
    low = Sql("0") if bounded.least is None else _bucket(bounded.least)
    high = Sql("SIZE(_borders)") if bounded.most is None else _bucket(bounded.most)
    placed = lowering.step("placed", select(f"{_columns(side)}, {_bucket(bounded.column)} AS _b", _with(rows, borders)))
    reached = LateralView(
        select(ALL, _with(others, borders)), f"EXPLODE(SEQUENCE({low}, GREATEST({low}, {high}))) e AS _b"
    )
    spread = lowering.step("spread", select(f"{_columns(other)}, _b", reached))
    return (placed, spread) if bounded.on_left else (spread, placed)


def _columns(side: Relation) -> Sql:
    return listed((*names(side), *STAMPS))


def _with(rows: Table, borders: Table) -> Joined:
    """Rows beside the one row of the borders."""
    return Joined(rows, borders, (Sql("TRUE"),))


def _bucket(column: str) -> Sql:
    return f"SIZE(FILTER(_borders, _border -> _border <= CAST({name(column)} AS DOUBLE)))"


def _borders(lowering: Lowering, node: Join, bounded: Bounded) -> Table:
    """One row with the borders in order: thresholds of the relation at rest, one for each remainder of their hashes."""
    resting = node.left if stored.at_rest(node.left) else node.right
    column = bounded.column if bounded.column in names(resting) else bounded.least or bounded.most or ""
    value = f"CAST({name(column)} AS DOUBLE)"
    values: Select = select(
        f"{value} AS _v, XXHASH64({value}) AS _h", lowering.passing(resting), where=f"{name(column)} IS NOT NULL"
    )
    chosen = lowering.step("chosen", select(Sql("MIN_BY(_v, _h) AS _v"), values, group_by=Sql(f"PMOD(_h, {BORDERS})")))
    return lowering.step("borders", select(Sql("SORT_ARRAY(COLLECT_SET(_v)) AS _borders"), chosen))
