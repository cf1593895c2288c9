"""Rows of one instant beside the one row of their key that is there at that instant: a join by one sort.

    born     for each row of one instant, in the order of time, the last row of its key that came before or with it and
             has not gone

It takes the place of a join where the other side has one row for each key at most, and the join equates that key: the
last price of an article, the current row of a relation with a key, the average of a group. A join would pair each row
with every row that its key has in the epoch, and then look which of them is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.delta.query import Table, select, union
from headgate.plan.expressions import Expression
from headgate.plan.nodes import Aggregate, Distinct, Filter, Join, Project, Relation, Rows, Stored, Window, names
from headgate.sql import EMPTY, Sql, comma, listed, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

GOES, COMES, ASKS = 0, 1, 2
"""What happens at one instant, in this order: rows go, others come, and rows of that instant look which are there."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides of such a join."""

    asking: Relation
    """Its rows live for one instant."""

    asked: Relation
    """Of each key it has one row at most."""

    keys: tuple[tuple[Expression, Expression], ...]
    """The key, as the asking side and as the other one has it."""


def sides(node: Join) -> Sides | None:
    """The sides of a join, if it is one of rows of one instant with the row of their key; None if it is not."""
    turned = tuple((e.right, e.left) for e in node.equalities)
    straight = tuple((e.left, e.right) for e in node.equalities)
    for asking, asked, pairs in ((node.left, node.right, straight), (node.right, node.left, turned)):
        if asking.instantaneous and asked.unique is not None and _told_apart(asked):
            kinds = {column.name.lower(): column.type for column in asked.columns}
            known = {theirs.column.lower(): (mine, theirs) for mine, theirs in pairs if theirs.column is not None}
            keys = tuple(known[key] for key in sorted(asked.unique) if key in known)
            alike = all(mine.type == kinds[(theirs.column or "").lower()] != "UNKNOWN" for mine, theirs in keys)
            if alike and len(keys) == len(asked.unique):
                return Sides(asking, asked, keys)
    return None


def _told_apart(node: Relation) -> bool:
    """Whether each row of a key ends, or is taken back, when the next one of its key comes, and only once."""
    while isinstance(node, Filter | Project):
        node = node.child
    if isinstance(node, Window):
        return isinstance(node.frame, Rows) and node.frame == Rows(1, node.frame.by)
    if isinstance(node, Aggregate | Distinct):
        return not node.momentary
    return isinstance(node, Stored)


def born(lowering: Lowering, node: Join, found: Sides) -> Table:
    """Born: the rows of the asking side, each with the row of its key that is there."""
    lowering.born(node.left)  # synopses have their names by this order, in directories too
    lowering.born(node.right)
    asking, elements = lowering.born(found.asking), lowering.all_elements(found.asked)
    hidden = [Sql(f"_k{number}") for number in range(1, len(found.keys) + 1)]
    own, theirs = (
        comma(*(f"{key.sql} AS {alias}" for key, alias in zip(keys, hidden, strict=True)))
        for keys in ([mine for mine, _ in found.keys], [other for _, other in found.keys])
    )
    nothing = ", ".join(f"NULL AS {name(column)}" for column in names(found.asking))
    row = listed(names(found.asked))

    def event(instant: Sql, kind: int) -> Sql:
        there = f"STRUCT({row}, {'TRUE' if kind == COMES else 'FALSE'} AS _there) AS _row"
        return comma(nothing, theirs, f"{instant} AS _t, NULL AS _x, NULL AS _n, {kind} AS _kind, {there}")

    seen = Sql("(_x IS NULL OR _x > _t)")
    events = union(
        select(comma(listed(names(found.asking)), own, Sql(f"_t, _x, _n, {ASKS} AS _kind, NULL AS _row")), asking),
        select(event(Sql("_t"), COMES), elements, where=(Sql("_n > 0"), seen)),
        select(event(Sql("_x"), GOES), elements, where=(Sql("_n > 0"), seen, Sql("_x <= :until"))),
        select(event(Sql("_t"), GOES), elements, where=Sql("_n < 0")),
    )
    by = f"PARTITION BY {listed(hidden)} " if hidden else EMPTY
    over = f"({by}ORDER BY _t, _kind ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    columns = comma(listed(names(found.asking)), Sql("_t, _x, _n, _kind"))
    last = select(f"{columns}, LAST_VALUE(_row) IGNORE NULLS OVER {over} AS _row", lowering.step("events", events))
    shown = ", ".join(f"_row.{name(column)} AS {name(column)}" for column in names(found.asked))
    there = (Sql(f"_kind = {ASKS}"), Sql("_row._there"))
    beside = lowering.step(
        "beside", select(comma(listed(names(found.asking)), shown, Sql("_t, _x, _n")), last, where=there)
    )
    on = [e.sql for e in node.equalities]
    on += [f"({node.condition.sql})"] if node.condition is not None else []
    return lowering.step("as_of", select(f"{listed(names(node))}, _t, _x, _n", beside, where=on))
