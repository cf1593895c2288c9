"""Partial counts: an aggregate over tuples that stand for several, so that the low level may keep equal ones once.

    γ COUNT(*), SUM(x), MAX(y) (σ π W S)  =  γ SUM(w), SUM(x * w), MAX(y) (σ π W S')

where S' has a column more, `_weight`: how many tuples of S the tuple stands for, all of them with its timestamp and
with its values in every column that is read. A tuple that was kept as it came has none, and stands for itself. So the
plan gives the same over a log in which equal tuples were counted and over one in which they were not, or in part.

It is done to a plan if all that it reads of streams goes into such aggregates: counts, sums of whole numbers up to INT,
extremes and distinct values, of groups. A product with a BIGINT may not fit, where the sum does; a sum of other numbers
would be rounded differently. Windows must take each tuple by itself: a row window counts tuples.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.plan.expressions import Call, Expression, Named
from headgate.plan.nodes import Aggregate, Filter, Node, Project, Relation, Scan, Union, Window
from headgate.plan.nodes.operator import column_of
from headgate.plan.tree import everywhere
from headgate.sql import Column

WEIGHT = "_weight"
SMALL = ("TINYINT", "SMALLINT", "INT")
"""Types of numbers whose product with a weight fits into a BIGINT, whatever they are."""

ONE_OR_MORE = f"COALESCE({WEIGHT}, 1)"


def weighted(plan: Node) -> Node:
    """The plan over tuples that may stand for several; as it was if they must stand for themselves."""
    found = everywhere(plan, _over_weights)
    return found if all(map(carries_weight, _scans(found))) else plan


def carries_weight(scan: Scan) -> bool:
    """Whether what reads a stream heeds the weights of its tuples."""
    return any(column.name == WEIGHT for column in scan.columns)


def weighted_streams(plan: Node) -> set[str]:
    """The streams whose tuples are read with their weights."""
    return {scan.stream for scan in _scans(plan) if carries_weight(scan)}


def _scans(plan: Node) -> list[Scan]:
    return [source for source in plan.sources if isinstance(source, Scan)]


def _over_weights(node: Node) -> Node | None:
    if not isinstance(node, Aggregate) or not node.keys or node.compares:
        return None
    calls = [_weighed(call) for call in node.calls]
    below = _with_weight(node.child)
    if below is None or any(call is None for call in calls):
        return None
    return replace(node, child=below, calls=tuple(call for call in calls if call is not None))


def _with_weight(node: Relation) -> Relation | None:
    """The relation with the weights of tuples as its last column; None if a row is more than one selected tuple."""
    if isinstance(node, Window) and isinstance(node.child, Scan):
        taken_by_itself = node.frame.together is None and node.arrival is None
        if not taken_by_itself or node.child.stream.startswith("late("):
            return None
        scan = replace(node.child, columns=(*node.child.columns, Column(WEIGHT, "BIGINT")))
        with_weight = replace(node, child=scan)
        return with_weight if node.stamp is None else _weight_last(with_weight)
    if isinstance(node, Filter):
        below = _with_weight(node.child)
        return None if below is None else replace(node, child=below)
    if isinstance(node, Project):
        below = _with_weight(node.child)
        return None if below is None else replace(node, child=below, items=(*node.items, _weight_item()))
    if isinstance(node, Union):
        left, right = _with_weight(node.left), _with_weight(node.right)
        return None if left is None or right is None else replace(node, left=left, right=right)
    return None


def _weight_last(node: Relation) -> Relation:
    own = [column for column in node.columns if column.name != WEIGHT]
    return Project(node, (*(Named(one.name, column_of(one.name, one.type)) for one in own), _weight_item()))


def _weight_item() -> Named:
    return Named(WEIGHT, column_of(WEIGHT, "BIGINT"))


def _weighed(call: Call) -> Call | None:
    """The call over tuples that stand for several; None if there is none that gives the same."""
    plain = call.condition is None and not call.outside
    match call.function.lower():
        case "min" | "max":
            return call
        case "count" | "sum" if call.distinct and plain:
            return call
        case "count" if not call.arguments and plain:
            return _sum(call, ONE_OR_MORE)
        case "count" if len(call.arguments) == 1 and plain:
            return _sum(call, f"CASE WHEN {call.arguments[0].sql} IS NULL THEN 0 ELSE {ONE_OR_MORE} END")
        case "sum" if plain and call.arguments[0].type in SMALL:
            return _sum(call, f"{_bracketed(call.arguments[0])} * {ONE_OR_MORE}")
        case _:
            return None


def _sum(call: Call, sql: str) -> Call:
    columns = call.columns | {WEIGHT}
    return replace(
        call, function="sum", sql=f"SUM({sql})", arguments=(Expression(sql, "BIGINT", columns),), columns=columns
    )


def _bracketed(one: Expression) -> str:
    return one.sql if one.column is not None else f"({one.sql})"
