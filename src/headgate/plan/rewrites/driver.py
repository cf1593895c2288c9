"""Applies the rules, one after the other and again, until none of them finds anything to do.

A rule is a function from plan to plan. It may change nothing of what a query says: the columns of the result stay as
they are, names, order and all, and so does every row at every instant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from headgate.errors import Broken
from headgate.plan.nodes import Node
from headgate.plan.rewrites import columns, common, filters, partners, projections, trivial

Rule: TypeAlias = Callable[[Node], Node]

RULES: dict[str, Rule] = {
    "common parts once": common.once,
    "filters pushed down": filters.pushed_down,
    "trivial parts dropped": trivial.dropped,
    "projections merged": projections.merged,
    "partners by time": partners.limited,
    "columns narrowed": columns.narrowed,
}
"""Common parts come first: they are recognized before anything is moved into one of them and not into the other."""

ROUNDS = 50
"""Every round leaves a plan that means the same; after this many it is taken as it is."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    plan: Node
    fired: tuple[str, ...]
    """The rules that changed something, in the order in which they first did."""


def rewritten(plan: Node) -> Rewritten:
    fired: dict[str, None] = {}
    current = plan
    for _ in range(ROUNDS):
        before = current
        for name, rule in RULES.items():
            found = rule(current)
            if found == current:
                continue
            if found.columns != plan.columns:
                raise Broken(f"rule {name} changed the columns of a plan from {plan.columns} to {found.columns}")
            fired[name] = None
            current = found
        if current == before:
            break
    return Rewritten(current, tuple(fired))
