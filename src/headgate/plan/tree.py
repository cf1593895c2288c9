"""Walking and rebuilding plans: a change made everywhere, who stands above whom, what is read from whom."""

from __future__ import annotations

from collections.abc import Callable

from headgate.plan.nodes import Node


def everywhere(plan: Node, change: Callable[[Node], Node | None]) -> Node:
    """The plan with `change` made at each node, children first, each node once; None leaves a node as it is."""
    done: dict[int, tuple[Node, Node]] = {}  # the first of the pair keeps its id from being used again

    def changed(node: Node) -> Node:
        if id(node) not in done:
            over = node.over(tuple(changed(child) for child in node.children))
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
        for child in node.children:
            above.setdefault(child, set()).add(node)
            waiting.append(child)
    return above


def complete(node: Node) -> bool:
    """Whether every expression reads only columns of the nodes below its own; `_at` is the instant of an answer."""
    have = {column.name.lower() for child in node.children for column in child.columns} | {"_at"}
    return all(read.columns <= have for read in node.expressions) and all(map(complete, node.children))
