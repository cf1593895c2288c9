"""Trivial parts dropped: conditions that always hold, filters and projections that change nothing.

σ true R = R          π R = R where it gives every column under its own name, in its order
"""

from __future__ import annotations

from dataclasses import replace

from headgate.plan.expressions import Expression
from headgate.plan.nodes import Filter, Join, Node, Project, names
from headgate.plan.rewrites.substitution import always_true, conjunction, conjuncts
from headgate.plan.tree import everywhere


def dropped(plan: Node) -> Node:
    return everywhere(plan, _change)


def _change(node: Node) -> Node | None:
    if isinstance(node, Filter):
        needed = _needed(node.condition)
        if needed == node.condition:
            return None
        return node.child if needed is None else replace(node, condition=needed)
    if isinstance(node, Join) and node.condition is not None:
        needed = _needed(node.condition)
        return None if needed == node.condition else replace(node, condition=needed)
    if isinstance(node, Project):
        items = tuple(item.expression.column for item in node.items)
        return node.child if names(node.child) == items == names(node) else None
    return None


def _needed(condition: Expression) -> Expression | None:
    """The condition without the parts that always hold; None if nothing is left of it."""
    parts = conjuncts(condition)
    needed = [part for part in parts if not always_true(part)]
    if len(needed) == len(parts):
        return condition
    return conjunction(needed) if needed else None
