"""Columns narrowed: what nobody above reads is not kept.

Of each node the columns that are read are worked out, for all places together at which it stands, so that a part used
twice stays one part. Counts carry multiplicities, so a projection may go below whatever treats rows one by one:

    π (L ⋈ R) = π (π L ⋈ π R)      π (L + R) = π L + π R      π (n · R) = n · π R
    γ R = γ π R    ρ R = ρ π R    ε R = ε π R
                                   of aggregates, analytic functions and lateral views: what they read stays
    π Rstream R = Rstream π R      it repeats what is there, row by row
    π Istream R = Istream π R      only where no row of R ever goes: otherwise rows that became equal would be set off
                                   against each other. Dstream of such a relation is empty anyway
    π W S = W π S                  for time windows; for windows over values; for row windows if ties are broken by
                                   arrival, and not by the columns

Never below a distinct or a sample, which read every column. Aggregates and analytic functions that nobody reads are not
computed, but one stays: a projection of a stream keeps the order of arrival and an analytic function over it does not.
Where elements are read back from logs, Spark leaves columns out by itself and the plan stays as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from headgate.plan.derived import kept
from headgate.plan.nodes import Istream, Node, Relation, Scan, Unbounded, Union, Window, children, names
from headgate.plan.rewrites.substitution import movable

Needs = dict[Node, set[str]]


def columns_read(plan: Node) -> Needs:
    """The columns of each node that are read, in lower case, at all places together at which it stands."""
    needs: Needs = {plan: every(plan)}
    for node in parents_first(plan):
        for child, columns in zip(children(node), _read_below(node, needs[node]), strict=True):
            needs.setdefault(child, set()).update(columns)
    return needs


def narrowed(plan: Node) -> Node:
    needs = columns_read(plan)
    done: dict[Node, Node] = {}

    def rebuilt(node: Node) -> Node:
        if node not in done:
            done[node] = _over(node, tuple(rebuilt(child) for child in children(node)), needs)
        return done[node]

    return rebuilt(plan)


def parents_first(plan: Node) -> list[Node]:
    """Every different node of the plan, none before all of those above it."""
    found: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if node not in found:
            for child in children(node):
                visit(child)
            found[node] = None

    visit(plan)
    return list(reversed(found))


def every(node: Node) -> set[str]:
    return {name.lower() for name in names(node)}


def _read_below(node: Node, needed: set[str]) -> tuple[set[str], ...]:
    """The columns of each child that are read if these of the node are needed."""
    if isinstance(node, Union):
        return tuple(
            {names(side)[place].lower() for place in _places(node, needed)} for side in (node.left, node.right)
        )
    kept_node = node.with_outputs(needed, movable)
    used = node.deciding.union(*(read.columns for read in kept_node.expressions))
    return tuple(
        every(child) & used.union(*(value.columns for name, value in carried.items() if name in needed))
        for child, carried in zip(node.children, kept_node.carried, strict=True)
    )


def _over(node: Node, below: tuple[Node, ...], needs: Needs) -> Node:
    """The node over children that may have fewer columns: it has at least those that are needed of it."""
    needed = needs[node]
    if isinstance(node, Union):
        places = _places(node, needed)
        return replace(node, left=_at(places, node.left, below[0]), right=_at(places, node.right, below[1]))
    if isinstance(node, Window) and isinstance(node.child, Scan) and node.frame.kept:
        (read,) = _read_below(node, needed)
        if read < every(node.child):  # the tail holds no more than is read
            return replace(node, child=Istream(_exact(Window(node.child, Unbounded()), read)))
    if node.narrows != "never":
        trim = _exact if node.narrows == "always" else _trimmed
        below = tuple(trim(cast(Relation, new), needs[child]) for child, new in zip(node.children, below, strict=True))
    return node.with_outputs(needed, movable).over(below)


def _places(node: Union, needed: set[str]) -> list[int]:
    """The positions of the needed columns, at least one: SQL has no rows without columns."""
    return [place for place, name in enumerate(names(node)) if name.lower() in needed] or [0]


def _exact(node: Relation, wanted: set[str]) -> Relation:
    """Only these columns of the node, at least one."""
    columns = tuple(name for name in names(node) if name.lower() in wanted) or names(node)[:1]
    return node if columns == names(node) else kept(node, columns)


def _trimmed(node: Relation, wanted: set[str]) -> Relation:
    """A child whose elements are kept between epochs, with these columns only; what is in logs stays as it is."""
    return node if node.in_logs else _exact(node, wanted)


def _at(places: list[int], child: Relation, below: Node) -> Relation:
    """A side of a union: the same positions on both sides."""
    wanted = tuple(names(child)[place] for place in places)
    node = cast(Relation, below)
    return node if wanted == names(node) else kept(node, wanted)
