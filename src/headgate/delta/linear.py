"""Filter, project, explode, weight and union all: Δ(op R) = op(ΔR), and the same for what lives and what ends.

The stamps stay as they are; a weight multiplies the counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.plan.nodes import Exploded, Filter, Project, Union, Weight, names
from headgate.sql import listed, name, union

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def apply(
    lowering: Lowering, node: Filter | Project | Weight | Exploded, child: str, carried: str = "_t, _x, _n"
) -> str:
    match node:
        case Weight():
            factor = f"CAST({node.factor.sql} AS BIGINT)"
            weighted = f"SELECT {listed(names(node))}, _t, _x, _n * {factor} AS _n FROM {child} WHERE {factor} <> 0"
            return lowering.step("weight", weighted)
        case Filter():
            return lowering.step(
                "filter", f"SELECT {listed(names(node))}, {carried} FROM {child} WHERE {node.condition.sql}"
            )
        case Exploded():
            outer = "OUTER " if node.outer else ""
            view = f"LATERAL VIEW {outer}{node.generator.sql} e AS {listed(node.made)}"
            return lowering.step("exploded", f"SELECT {listed(names(node))}, {carried} FROM {child} {view}")
        case Project():
            return lowering.step("project", f"SELECT {items(node)}, {carried} FROM {child}")


def items(node: Project) -> str:
    return ", ".join(
        item.expression.sql if item.expression.column == item.name else f"{item.expression.sql} AS {name(item.name)}"
        for item in node.items
    )


def both(lowering: Lowering, node: Union, left: str, right: str) -> str:
    """Bag union; the right side takes the left side's names by position."""
    first = f"SELECT {listed(names(node.left))}, _t, _x, _n FROM {left}"
    second = f"SELECT {listed(names(node.right))}, _t, _x, _n FROM {right}"
    return lowering.step("union", union(first, second))


def either(lowering: Lowering, node: Union, left: str | None, right: str | None) -> str | None:
    if left is not None and right is not None:
        return both(lowering, node, left, right)
    if right is None:
        return left
    renamed = ", ".join(
        f"{name(theirs)} AS {name(ours)}" for theirs, ours in zip(names(node.right), names(node), strict=True)
    )
    return lowering.step("union", f"SELECT {renamed}, _t, _x, _n FROM {right}")
