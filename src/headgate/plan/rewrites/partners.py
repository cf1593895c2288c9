"""Partners by time: of a join that equates temporal attributes, a row is needed no longer than it can find a partner.

    L ⋈ R = N L ⋈ N R       where a row of L with value v is needed until no row of R with that value can begin any more

A pair begins when the later of its two rows does, so until then the earlier one is there. Only sides whose rows never end are
changed: others end by themselves.
"""

from __future__ import annotations

from headgate.plan.expressions import Expression
from headgate.plan.nodes import Equality, Filter, Join, Needed, Node, Project, Relation
from headgate.plan.properties import endless
from headgate.plan.temporal import partner_until, windows
from headgate.plan.tree import everywhere


def limited(plan: Node) -> Node:
    return everywhere(plan, _change)


def _change(node: Node) -> Node | None:
    if not isinstance(node, Join) or _marked(node.left) or _marked(node.right):
        return None
    left, right = partner_until(node)
    because = ", ".join(map(_shown, node.equalities))
    return Join(_needed(node.left, left, because), _needed(node.right, right, because), node.equalities, node.condition)


def _marked(side: Relation) -> bool:
    match side:
        case Needed():
            return True
        case Filter(child) | Project(child):
            return _marked(child)
        case _:
            return False


def _shown(equality: Equality) -> str:
    return f"{equality.left.sql} = {equality.right.sql}"


def _needed(side: Relation, until: Expression | None, because: str) -> Relation:
    return Needed(side, until, because) if until is not None and endless(side) and windows(side) else side
