"""Duplicate elimination.

timeline     of an aggregate without calls: a group for each row, alive while its count is positive

Of base relations, of which little changes in an epoch, only the rows are looked at that do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta import aggregate, stored
from headgate.delta.query import Table
from headgate.plan.expressions import Expression, Named
from headgate.plan.nodes import Aggregate, Distinct
from headgate.sql import backquoted

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def timeline(lowering: Lowering, node: Distinct) -> Table:
    """Timeline: the rows as groups, each with the instants at which it appears and disappears."""
    by_row = groups(node)
    if stored.at_rest(node) and not lowering.looked_up(node):
        lowering.touched_only.add(by_row)
    return aggregate.timeline(lowering, by_row)


def groups(node: Distinct) -> Aggregate:
    """The rows as groups of an aggregate without calls."""
    keys = tuple(
        Named(one.name, Expression(backquoted(one.name), one.type, frozenset({one.name.lower()}), one.name))
        for one in node.columns
    )
    return Aggregate(node.child, keys, (), row_when_empty=False)
