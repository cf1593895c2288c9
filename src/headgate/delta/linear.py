"""Filter, project, explode, weight and union all: the rows of a form of the child give the rows of that form.

    born, live, ends     Δ(op R) = op(ΔR)

Each row is handled alone and keeps its stamps, so a row lives exactly as long as the row it comes from. A weight
multiplies the counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta.query import LateralView, Table, select, union
from headgate.plan.nodes import Exploded, Filter, Project, Union, Weight, names
from headgate.sql import Sql, listed, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def apply(
    lowering: Lowering, node: Filter | Project | Weight | Exploded, child: Table, carried: Sql = Sql("_t, _x, _n")
) -> Table:
    """Any form of the node, from that form of its child; `carried` are the columns of the form beside the row's."""
    match node:
        case Weight():
            factor = f"CAST({node.factor.sql} AS BIGINT)"
            columns = f"{listed(names(node))}, _t, _x, _n * {factor} AS _n"
            return lowering.step("weight", select(columns, child, where=f"{factor} <> 0"))
        case Filter():
            return lowering.step("filter", select(f"{listed(names(node))}, {carried}", child, where=node.condition.sql))
        case Exploded():
            view = f"{'OUTER ' if node.outer else ''}{node.generator.sql} e AS {listed(node.made)}"
            return lowering.step("exploded", select(f"{listed(names(node))}, {carried}", LateralView(child, view)))
        case Project():
            return lowering.step("project", select(f"{items(node)}, {carried}", child))


def items(node: Project) -> Sql:
    """The expressions of a projection under their names."""
    return ", ".join(
        item.expression.sql if item.expression.column == item.name else f"{item.expression.sql} AS {name(item.name)}"
        for item in node.items
    )


def both(lowering: Lowering, node: Union, left: Table, right: Table) -> Table:
    """Any form of a bag union, from that form of its sides; the right side takes the left side's names by position."""
    first = select(f"{listed(names(node.left))}, _t, _x, _n", left)
    second = select(f"{listed(names(node.right))}, _t, _x, _n", right)
    return lowering.step("union", union(first, second))


def either(lowering: Lowering, node: Union, left: Table | None, right: Table | None) -> Table | None:
    """Any form of a bag union where a side may have no rows in that form."""
    if left is not None and right is not None:
        return both(lowering, node, left, right)
    if right is None:
        return left
    renamed = ", ".join(
        f"{name(theirs)} AS {name(ours)}" for theirs, ours in zip(names(node.right), names(node), strict=True)
    )
    return lowering.step("union", select(f"{renamed}, _t, _x, _n", right))
