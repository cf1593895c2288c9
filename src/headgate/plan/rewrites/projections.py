"""Adjacent projections merged: π π R = π R, what the lower one computes put in place of the columns that read it.

Only where nothing is computed more often by it: whatever is more than a column must be read once at the most.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from headgate.plan.expressions import Named
from headgate.plan.nodes import Node, Project
from headgate.plan.rewrites.substitution import movable, occurrences, substituted
from headgate.plan.tree import everywhere


def merged(plan: Node) -> Node:
    return everywhere(plan, _change)


def _change(node: Node) -> Node | None:
    if not (isinstance(node, Project) and isinstance(node.child, Project)):
        return None
    child, inner, outer = node.child.child, node.child.items, node.items
    if not all(movable(item.expression) for item in (*inner, *outer)):
        return None
    uses = sum((occurrences(item.expression) for item in outer), Counter[str]())
    computed = [item for item in inner if item.expression.column is None and item.expression.columns]
    if any(uses[item.name.lower()] > 1 for item in computed):
        return None
    values = {item.name.lower(): item.expression for item in inner}
    items = [(item.name, substituted(item.expression, values)) for item in outer]
    if any(expression is None for _, expression in items):
        return None
    return replace(node, child=child, items=tuple(Named(name, new) for name, new in items if new is not None))
