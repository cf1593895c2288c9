"""Duplicate elimination: a group for each row, alive while its count is positive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta import aggregate
from headgate.plan.expressions import Expression, Named
from headgate.plan.nodes import Aggregate, Distinct
from headgate.sql import backquoted

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def timeline(lowering: Lowering, node: Distinct) -> str | None:
    keys = tuple(
        Named(one.name, Expression(backquoted(one.name), one.type, frozenset({one.name.lower()}), one.name))
        for one in node.columns
    )
    return aggregate.timeline(lowering, Aggregate(node.child, keys, (), row_when_empty=False))
