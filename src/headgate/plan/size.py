"""How large a plan is: counted once for each node, and without recursion, so that no plan is too large to be counted.

Plans share their parts: what is read twice is one node that stands below two. Whoever walks a plan meets it twice all
the same. So what counts is how often a walk meets a node, which grows with every join of a view with itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.plan.nodes import Node

MOST_DEEP = 120
"""So many nodes of a plan may stand on top of one another."""

MOST_STEPS = 50_000
"""So many nodes may a walk through a plan meet; that takes about a second."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many nodes stand on top of one another, and how many a walk meets."""

    deep: int
    steps: int


def size(plan: Node) -> Size:
    """The size of a plan. Each node remembers its own, as it does its hash."""
    waiting = [plan]
    while waiting:
        node = waiting[-1]
        left = [child for child in node.children if "_size" not in child.__dict__]
        if left:
            waiting += left
            continue
        below: list[Size] = [child.__dict__["_size"] for child in node.children]
        node.__dict__["_size"] = Size(
            1 + max((one.deep for one in below), default=0), 1 + sum(one.steps for one in below)
        )
        waiting.pop()
    known: Size = plan.__dict__["_size"]
    return known
