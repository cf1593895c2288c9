"""Aggregates, distinct rows and analytic functions over rows that live for one instant each: plain SQL, instant by
instant.

    γ R at t = γ {the rows that live at t}, and none of them lives at any other instant

So the instant is one more key to group or partition by, whatever the function; nothing is kept, swept or recomputed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta import netting
from headgate.plan.expressions import Call
from headgate.plan.nodes import Aggregate, Distinct, Ranked, names
from headgate.sql import ONE, comma, listed, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

SPAN = f"_t + 1 AS _x, {ONE} AS _n"


def born(lowering: Lowering, node: Aggregate | Distinct | Ranked) -> str:
    rows, columns = _rows(lowering, node), listed(names(node))
    match node:
        case Distinct():
            return lowering.step("distinct", f"SELECT DISTINCT {columns}, _t, {SPAN} FROM {rows}")
        case Ranked(child, items=items):
            moments = lowering.step("alive", f"SELECT {listed(names(child))}, _t AS _at, _t FROM {rows}")
            computed = ", ".join(f"{item.expression.sql} AS {name(item.name)}" for item in items)
            return lowering.step("ranked", f"SELECT {comma(listed(names(child)), computed)}, _t, {SPAN} FROM {moments}")
        case Aggregate(keys=keys, calls=calls):
            hidden = [f"_k{number + 1}" for number in range(len(keys))]
            values = ", ".join(f"{key.expression.sql} AS {own}" for key, own in zip(keys, hidden, strict=True))
            keyed = lowering.step("keyed", f"SELECT *, {values} FROM {rows}")
            shown = ", ".join(f"{own} AS {name(key.name)}" for key, own in zip(keys, hidden, strict=True))
            computed = ", ".join(f"{_called(call)} AS {name(call.name)}" for call in calls)
            return lowering.step(
                "groups", f"SELECT {comma(shown, computed)}, _t, {SPAN} FROM {keyed} GROUP BY {listed((*hidden, '_t'))}"
            )


def _rows(lowering: Lowering, node: Aggregate | Distinct | Ranked) -> str:
    """The rows below, each as often as it counts."""
    born = lowering.born(node.child)
    if not node.child.retracts:
        return born
    row = comma(listed(names(node.child)), "_t")
    net = f"SELECT {row}, SUM(_n) AS _n FROM {born} GROUP BY {row} HAVING SUM(_n) > 0"
    return netting.repeated(lowering, node.child, net)


def _called(call: Call) -> str:
    return f"{call.sql} FILTER (WHERE {call.condition})" if call.condition else call.sql
