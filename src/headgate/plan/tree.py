"""Walking and rebuilding plans: a node with other children, a change made everywhere, who stands above whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from headgate.plan.nodes import Join, Node, Piped, Relation, Source, Stored, Union, children


def with_children(node: Node, below: tuple[Node, ...]) -> Node:
    """The node over other children; the node itself if they are the same."""
    if all(one is other for one, other in zip(children(node), below, strict=True)):
        return node
    match node:
        case Source() | Stored() | Piped():
            return node
        case Join() | Union():
            left, right = cast("tuple[Relation, Relation]", below)
            return replace(node, left=left, right=right)
        case _:
            return cast(Node, replace(node, child=below[0]))  # type: ignore[arg-type]


def everywhere(plan: Node, change: Callable[[Node], Node | None]) -> Node:
    """The plan with `change` made at each node, children first, each node once; None leaves a node as it is."""
    done: dict[int, tuple[Node, Node]] = {}  # the first of the pair keeps its id from being used again

    def changed(node: Node) -> Node:
        if id(node) not in done:
            over = with_children(node, tuple(changed(child) for child in children(node)))
            new = change(over)
            done[id(node)] = (node, over if new is None else new)
        return done[id(node)][1]

    return changed(plan)


def parents(plan: Node) -> dict[Node, set[Node]]:
    """The different nodes that stand directly above each node of the plan."""
    above: dict[Node, set[Node]] = {plan: set()}
    seen: set[int] = set()
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for child in children(node):
            above.setdefault(child, set()).add(node)
            waiting.append(child)
    return above
