"""Aggregates, distinct rows and analytic functions over rows that live for one instant each.

    born     γ R at t = γ {the rows that live at t}, and none of them lives at any other instant

So this is plain SQL with the instant as one more key to group or partition by, whatever the function is. Nothing is
kept, swept or recomputed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from headgate.delta import netting
from headgate.delta.query import Table, select
from headgate.plan.expressions import Call
from headgate.plan.nodes import Aggregate, Distinct, Ranked, names
from headgate.sql import ONE, Sql, comma, listed, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

SPAN = f"_t + 1 AS _x, {ONE} AS _n"


def born(lowering: Lowering, node: Aggregate | Distinct | Ranked) -> Table:
    """Born: the rows of each instant of the epoch, which live for that instant."""
    rows, columns = _rows(lowering, node), listed(names(node))
    match node:
        case Distinct():
            return lowering.step("distinct", select(f"DISTINCT {columns}, _t, {SPAN}", rows))
        case Ranked(child, items=items):
            moments = lowering.step("alive", select(f"{listed(names(child))}, _t AS _at, _t", rows))
            computed = ", ".join(f"{item.expression.sql} AS {name(item.name)}" for item in items)
            return lowering.step("ranked", select(f"{comma(listed(names(child)), computed)}, _t, {SPAN}", moments))
        case Aggregate(keys=keys, calls=calls):
            hidden = [Sql(f"_k{number + 1}") for number in range(len(keys))]
            values = ", ".join(f"{key.expression.sql} AS {own}" for key, own in zip(keys, hidden, strict=True))
            keyed = lowering.step("keyed", select(f"*, {values}", rows))
            shown = ", ".join(f"{own} AS {name(key.name)}" for key, own in zip(keys, hidden, strict=True))
            computed = ", ".join(f"{_called(call)} AS {name(call.name)}" for call in calls)
            row = f"{comma(shown, computed)}, _t, {SPAN}"
            return lowering.step("groups", select(row, keyed, group_by=listed((*hidden, "_t"))))
        case _:
            assert_never(node)


def _rows(lowering: Lowering, node: Aggregate | Distinct | Ranked) -> Table:
    """The child's rows, each as often as it counts."""
    born = lowering.born(node.child)
    if not node.child.retracts:
        return born
    row = comma(listed(names(node.child)), Sql("_t"))
    net = select(f"{row}, SUM(_n) AS _n", born, group_by=row, having=Sql("SUM(_n) > 0"))
    return netting.repeated(lowering, node.child, net)


def _called(call: Call) -> Sql:
    return f"{call.sql} FILTER (WHERE {call.condition})" if call.condition else call.sql
