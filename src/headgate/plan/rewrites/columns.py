"""Columns narrowed: what nobody above reads is not kept.

Of each node the columns that are read are worked out, for all places together at which it stands, so that a part used
twice stays one part. Counts carry multiplicities, so a projection may go below whatever treats rows one by one:

    π (L ⋈ R) = π (π L ⋈ π R)     π (L + R) = π L + π R     π (n · R) = n · π R γ R = γ π R      ρ R = ρ π R      ε R =
    ε π R      of aggregates, analytic functions and lateral views: what they read stays π Rstream R = Rstream π R
    it repeats what is there, row by row π Istream R = Istream π R      only where no row of R ever goes: otherwise rows
    that became equal would be set off against
                                   each other. The same holds for Dstream, which then is empty anyway
    π W S = W π S                  for time windows; for windows over values; for row windows if ties are broken by
    arrival, and
                                   not by the columns

Never below a distinct. Aggregates and analytic functions that nobody reads are not computed, but one stays: a
projection of a stream keeps the order of arrival and an analytic function over it does not. Where elements are read
back from logs, Spark leaves columns out by itself and the plan stays as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from headgate.plan.derived import kept
from headgate.plan.expressions import Call, Named
from headgate.plan.nodes import (
    Aggregate,
    Distinct,
    Dstream,
    Exploded,
    Filter,
    Final,
    Istream,
    Join,
    Needed,
    Node,
    Now,
    Passed,
    Piped,
    Project,
    Range,
    Ranked,
    Relation,
    Rows,
    Rstream,
    Source,
    Stored,
    Unbounded,
    Union,
    Values,
    Weight,
    Window,
    children,
    names,
)
from headgate.plan.properties import arrival_ordered, endless, in_logs
from headgate.plan.rewrites.substitution import movable
from headgate.plan.tree import with_children

Needs = dict[Node, set[str]]


def narrowed(plan: Node) -> Node:
    needs: Needs = {plan: every(plan)}
    for node in parents_first(plan):
        for child, columns in zip(children(node), _read_below(node, needs[node]), strict=True):
            needs.setdefault(child, set()).update(columns)
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
    match node:
        case Source() | Stored() | Piped():
            return ()
        case Project(_, items):
            return (set[str]().union(*(item.expression.columns for item in _items(items, needed))),)
        case Filter(_, condition):
            return (needed | condition.columns,)
        case Weight(_, factor):
            return (needed | factor.columns,)
        case Join(left, right, equalities, condition):
            used = needed | (condition.columns if condition is not None else frozenset())
            used = used.union(*(e.left.columns | e.right.columns for e in equalities))
            return used & every(left), used & every(right)
        case Union(left, right):
            places = _places(node, needed)
            return {names(left)[place].lower() for place in places}, {names(right)[place].lower() for place in places}
        case Aggregate(_, keys):
            used = set[str]().union(*(key.expression.columns for key in keys))
            return (used.union(*(call.columns for call in _calls(node, needed))),)
        case Ranked(child, by, items):
            used = needed | {name.lower() for name in by}
            used = used.union(*(item.expression.columns for item in _items(items, needed)))
            return (used & every(child),)
        case Istream(child) if endless(child):
            return (needed,)
        case Rstream():
            return (needed,)
        case Window(child, frame):
            match frame:
                case Now() | Unbounded() | Range():
                    return (needed & every(child),)
                case Rows(by=by) if arrival_ordered(child):
                    return (needed & every(child) | {name.lower() for name in by},)
                case Values(column=column) | Passed(column=column):
                    return (needed & every(child) | {column.lower()},)
                case Final(reads=reads):
                    return (needed & every(child) | reads,)
                case Rows():
                    return (every(child),)
        case Exploded(child, generator):
            return (needed & every(child) | generator.columns,)
        case Needed():
            return (needed | node.reads,)
        case Distinct(child) | Istream(child) | Dstream(child):
            return (every(child),)


def _over(node: Node, below: tuple[Node, ...], needs: Needs) -> Node:
    """The node over children that may have fewer columns: it has at least those that are needed of it."""
    needed = needs[node]
    match node:
        case Project(_, items):
            return replace(node, child=cast(Relation, below[0]), items=_items(items, needed))
        case Aggregate(child):
            return replace(node, child=_cut(child, below[0], needs), calls=_calls(node, needed))
        case Ranked(child, items=items):
            return replace(node, child=_cut(child, below[0], needs), items=_items(items, needed))
        case Join(left, right):
            return replace(node, left=_cut(left, below[0], needs), right=_cut(right, below[1], needs))
        case Union(left, right):
            places = _places(node, needed)
            return replace(node, left=_at(places, left, below[0]), right=_at(places, right, below[1]))
        case Needed(child):
            return replace(node, child=_exact(cast(Relation, below[0]), needs[child]))
        case Istream(child) | Rstream(child):
            return replace(node, child=_exact(cast(Relation, below[0]), needs[child]))
        case Window(Source() as source, Rows() | Values()) if (read := _read_below(node, needed)[0]) < every(source):
            return replace(node, child=Istream(_exact(Window(source, Unbounded()), read)))
        case _:
            return with_children(node, below)


# what stays, at least one of each: a node without columns cannot be written down


def _items(items: tuple[Named, ...], needed: set[str]) -> tuple[Named, ...]:
    return tuple(item for item in items if item.name.lower() in needed or not movable(item.expression)) or items[:1]


def _calls(node: Aggregate, needed: set[str]) -> tuple[Call, ...]:
    read = tuple(call for call in node.calls if call.name.lower() in needed)
    return read if read or node.keys else node.calls[:1]


def _places(node: Union, needed: set[str]) -> list[int]:
    return [place for place, name in enumerate(names(node)) if name.lower() in needed] or [0]


def _exact(node: Relation, wanted: set[str]) -> Relation:
    """Only these columns of the node, at least one."""
    columns = tuple(name for name in names(node) if name.lower() in wanted) or names(node)[:1]
    return node if columns == names(node) else kept(node, columns)


def _cut(child: Relation, below: Node, needs: Needs) -> Relation:
    """A child of which elements are kept between epochs, with the needed columns only."""
    node = cast(Relation, below)
    return node if in_logs(node) else _exact(node, needs[child])


def _at(places: list[int], child: Relation, below: Node) -> Relation:
    """A side of a union: the same positions on both sides."""
    wanted = tuple(names(child)[place] for place in places)
    node = cast(Relation, below)
    return node if wanted == names(node) else kept(node, wanted)
