"""Constraints whose k is detected: plans over the lives of values, by which state is dropped while k follows the data.

A tuple of a stream has a distance from the order that the constraint describes:

    CLUSTERED BY c    how many tuples came since the last one with its value of c
    ORDERED BY c      how many tuples ago the first larger value of c came

The k in force for a tuple is the largest distance of the tuples before it, in their block and in the block before that
one. In the first block, and at the most, it is the k of the statement. So k rises with the next tuple, and falls when
it was not needed for a block or two. The horizon of a tuple is the furthest place that was more than k tuples behind a
tuple up to this one; it never goes back, because what was dropped does not come again.

    CLUSTERED BY c    a value whose last tuple is before the horizon is closed; a tuple with it begins a new life
    ORDERED BY c      a value below the largest one up to the horizon is closed; a tuple with it has a life of its own

All of this follows from the tuples in the order of their timestamps and of their arrival, and not from epochs.

    γ c (σ π W S)  becomes  π (γ c, life (σ π W (lives S)))

So a value that comes after it was closed makes a group of its own, and the answer is the exact one as long as none
does. It is done only where it lets state go: not where a join, a ranking or RSTREAM keeps the rows of all groups.
"""

from __future__ import annotations

from dataclasses import replace

from headgate.plan.constraints import Origin, closed_groups, origin
from headgate.plan.expressions import Named
from headgate.plan.nodes import (
    Aggregate,
    Constraint,
    Distinct,
    Exploded,
    Filter,
    Join,
    Lives,
    Needed,
    Node,
    Project,
    Ranked,
    Relation,
    Rstream,
    Weight,
    Window,
)
from headgate.plan.nodes.operator import column_of
from headgate.plan.rewrites.projections import merged
from headgate.plan.sums import summed
from headgate.plan.tree import everywhere, parents
from headgate.sql import BIGINT

LIFE = "_life"


def followed(plan: Node) -> Node:
    """The plan in which groups have lives, where that lets state go; as it was where no constraint is detected."""
    kept = _kept_anyway(plan)

    def change(node: Node) -> Node | None:
        if node in kept:
            return None
        if isinstance(node, Distinct) and not node.partners:
            return _with_lives(_groups(node))
        return _with_lives(node) if isinstance(node, Aggregate) and not node.compares else None

    found = everywhere(plan, change)
    return found if found == plan else merged(found)


def has_lives(plan: Node) -> bool:
    """Whether some groups of a plan have lives."""
    return any(isinstance(node, Lives) for node in parents(plan))


def _kept_anyway(plan: Node) -> set[Node]:
    """The nodes whose rows something above them keeps for as long as they are there."""
    found: set[Node] = set()
    waiting: list[tuple[Node, bool]] = [(plan, False)]
    seen: set[tuple[int, bool]] = set()
    while waiting:
        node, kept = waiting.pop()
        if (id(node), kept) not in seen:
            seen.add((id(node), kept))
            found |= {node} if kept else set()
            kept = kept or isinstance(node, Join | Ranked | Rstream | Needed)
            waiting += [(child, kept) for child in node.children]
    return found


def _groups(node: Distinct) -> Aggregate:
    """Distinct rows as groups of an aggregate without calls."""
    keys = tuple(Named(one.name, column_of(one.name, one.type)) for one in node.columns)
    return Aggregate(node.child, keys, (), row_when_empty=False)


def _with_lives(node: Aggregate) -> Relation | None:
    """An aggregate by lives as well, without them in its columns; None if no constraint is detected for its keys."""
    if not node.child.endless or closed_groups(node) or not all(map(summed, node.calls)):
        return None
    found = next(filter(None, (_detected(node.child, key) for key in node.keys)), None)
    if found is None:
        return None
    keys = (*node.keys, Named(LIFE, column_of(LIFE, BIGINT)))
    by_lives = replace(node, child=_carrying(node.child, found), keys=keys)
    return Project(by_lives, tuple(Named(one.name, column_of(one.name, one.type)) for one in node.columns))


def _detected(node: Relation, key: Named) -> Constraint | None:
    """The first constraint that is detected for the column of a stream that a key is."""
    found = origin(node, key.expression.column) if key.expression.column is not None else None
    return next((one for one in found.scan.constraints if _says(one, found)), None) if found is not None else None


def _says(constraint: Constraint, found: Origin) -> bool:
    return constraint.detected and constraint.column.lower() == found.column.lower()


def _carrying(node: Relation, constraint: Constraint) -> Relation:
    """The relation with the lives of its tuples."""
    if isinstance(node, Window):
        return replace(node, child=Lives(node.child, constraint, LIFE))
    assert isinstance(node, Filter | Project | Exploded | Weight), node  # as `origin` has found
    below = _carrying(node.child, constraint)
    if isinstance(node, Project):
        return replace(node, child=below, items=(*node.items, Named(LIFE, column_of(LIFE, BIGINT))))
    return replace(node, child=below)
