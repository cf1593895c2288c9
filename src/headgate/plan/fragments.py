"""Where a plan is split into fragments, and how far each of them may run ahead.

A fragment runs as far as its own inputs are complete. So a split pays below an operator with several inputs, on a side
that does not read all that the operator reads: that side need not wait for the others. Reading a base stream through
selections and projections needs no split, because the stream's log is one.

    query-level heartbeats      no split: the whole plan waits for all of its streams
    operator-level heartbeats   a split wherever one pays
    memory-aware heartbeats     the same splits; what makes more tuples than it takes waits for those who consume them
    stages of early answers     a split below every operator with several inputs, whatever its sides read
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, cast

from headgate.plan.nodes import Node, Piped, Relation, children, is_part, is_stream, part_name, sources
from headgate.plan.scopes import scopes
from headgate.plan.tree import parents
from headgate.scope import Scopes

Splitting: TypeAlias = Literal["query", "operator", "memory-aware", "stages"]


@dataclass(frozen=True, slots=True)
class Part:
    """The plan of one fragment; the parts it reads stand in it as `Piped`."""

    log: str | None
    """Where it puts its elements; None for the one that gives the answer."""

    plan: Node
    parts: tuple[Part, ...]
    streams: frozenset[str]
    """The base streams and changing relations below it, through all its parts."""

    scopes: Scopes = field(default_factory=dict, compare=False)
    """The sources that it can see of a stream with many, where it does not see all."""

    @property
    def name(self) -> str:
        return self.log or "answer"


def split(plan: Node, how: Splitting) -> Part:
    """The fragment that gives the answer, with those it reads."""
    return (
        _Splitter(parents(plan), everywhere=how == "stages").part(plan, None)
        if how != "query"
        else Part(None, plan, (), streams(plan), scopes(plan))
    )


def streams(node: Node) -> frozenset[str]:
    """What the node waits for: relations that never change, and members of a family that was found, are complete."""
    return frozenset(source.name for source in sources(node) if source.domain is not None and not is_part(source.name))


def all_parts(root: Part) -> list[Part]:
    """Every part once, each behind those it reads."""
    found: dict[str, Part] = {}

    def visit(part: Part) -> None:
        for below in part.parts:
            visit(below)
        found.setdefault(part.name, part)

    visit(root)
    return list(found.values())


class _Splitter:
    def __init__(self, above: Mapping[Node, set[Node]], everywhere: bool) -> None:
        self.above = above
        self.everywhere = everywhere
        self.made: dict[Node, Part] = {}

    def part(self, plan: Node, log: str | None) -> Part:
        read: dict[str, Part] = {}
        over = self.below(plan, read)
        return Part(log, over, tuple(read.values()), streams(plan), scopes(plan))

    def below(self, node: Node, read: dict[str, Part]) -> Node:
        """The node over its children, of which those that are split off are read from their logs."""
        return node.over(
            tuple(
                self.split_off(child, read)
                if node.waits_for_several and self.pays(node, child)
                else self.below(child, read)
                for child in children(node)
            ),
        )

    def pays(self, node: Node, child: Node) -> bool:
        """Whether the child has less to wait for than the node, and is not just a look at logs that are there."""
        if child.at_leaf or not streams(child):
            return False
        return not is_stream(child) if self.everywhere else streams(child) != streams(node)

    def split_off(self, node: Node, read: dict[str, Part]) -> Node:
        """Split here, or further down where others read the same: outer joins and the like read each side more than
        once.
        """
        shared, here = node, node
        while len(children(here)) == 1 and not here.at_leaf:
            shared = here if len(self.above[here]) > 1 and not is_stream(here) else shared
            (here,) = children(here)
        return self.over(node, shared, self.piped(cast(Relation, shared), read))

    def over(self, node: Node, old: Node, new: Node) -> Node:
        """The chain from `node` down to `old`, over `new` instead."""
        return new if node is old else node.over((self.over(children(node)[0], old, new),))

    def piped(self, child: Relation, read: dict[str, Part]) -> Piped:
        if child not in self.made:
            part = self.part(child, None)  # which may find others below it
            self.made[child] = replace(part, log=part_name(len(self.made) + 1))
        part = self.made[child]
        assert part.log is not None
        read.setdefault(part.log, part)
        return Piped(child, part.log)


# how far each may run ahead


def labels(root: Part, how: Splitting, selectivity: Mapping[str, float]) -> dict[str, frozenset[str]]:
    """For each part the streams whose heartbeats it waits for: its own, or those of the part above it (AssignLabels).

    `selectivity` is how many tuples a part puts out for each it takes, as measured; what was not is taken to be
    selective. A part is tied to the lowest one above it such that all between them together are selective; the answer
    always is. Whatever has a tie that leads out of it waits as its reader does, so that all on the way have the same
    heartbeat.
    """
    above = _readers(root)
    if how == "query":
        return {part.name: root.streams for part in all_parts(root)}
    tied = {
        part.name: _tied_to(part, above, selectivity) if how == "memory-aware" else part for part in all_parts(root)
    }
    result: dict[str, frozenset[str]] = {}
    for part in reversed(all_parts(root)):
        inside = {below.name for below in all_parts(part)}
        leads_out = any(tied[name].name not in inside for name in inside)
        waits = (
            frozenset[str]().union(*(result[reader.name] for reader in above[part.name])) if leads_out else part.streams
        )
        result[part.name] = waits
    return result


def _readers(root: Part) -> dict[str, list[Part]]:
    above: dict[str, list[Part]] = {part.name: [] for part in all_parts(root)}
    for part in all_parts(root):
        for below in part.parts:
            above[below.name].append(part)
    return above


def _tied_to(part: Part, above: Mapping[str, list[Part]], selectivity: Mapping[str, float]) -> Part:
    """The lowest part from this one upwards with which the way from here is selective, all in all."""
    factor, here = 1.0, part
    while above[here.name]:
        factor *= selectivity.get(here.name, 1.0)
        if factor <= 1.0:
            return here
        here = above[here.name][0]
    return here
