"""Trivial parts dropped: conditions that always hold, filters and projections that change nothing.

σ true R = R          π R = R where it gives every column under its own name, in its order
"""

from __future__ import annotations

from headgate.plan.nodes import Filter, Join, Node, Project, names
from headgate.plan.rewrites.substitution import always_true, conjunction, conjuncts
from headgate.plan.tree import everywhere


def dropped(plan: Node) -> Node:
    return everywhere(plan, _change)


def _change(node: Node) -> Node | None:
    match node:
        case Filter(child, condition):
            parts = conjuncts(condition)
            needed = [part for part in parts if not always_true(part)]
            if len(needed) == len(parts):
                return None
            return Filter(child, conjunction(needed)) if needed else child
        case Join(left, right, equalities, condition) if condition is not None:
            parts = conjuncts(condition)
            needed = [part for part in parts if not always_true(part)]
            if len(needed) == len(parts):
                return None
            return Join(left, right, equalities, conjunction(needed) if needed else None)
        case Project(child, items):
            return child if names(child) == tuple(item.expression.column for item in items) == names(node) else None
        case _:
            return None
