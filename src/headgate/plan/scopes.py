"""Which sources of its streams a plan can see, and whether each of its answers comes from one source alone.

A stream with SOURCE BY holds many sources, each with its own clock. `scopes` finds those of which tuples can have an
effect on the answer, where selections by constants on that column say so: a condition moves down as filters do (see
`rewrites.filters`), through renamings, keys and partitions, and from one side of a join to the other by its equalities.

`apart` finds plans that can be run for each group of sources by themselves: the rows of every relation on the way
follow from tuples of one source, and those of different sources never meet. That is so of selections and projections,
of aggregates whose keys hold the source, of analytic functions and row windows that partition by it, and of joins that
equate it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache, reduce
from typing import TypeAlias, cast

from headgate.plan.expressions import INTEGRAL
from headgate.plan.nodes import Equality, Filter, Join, Node, Piped, Relation, Scan, Union, is_stream, names, sources
from headgate.plan.nodes.operator import Carried
from headgate.plan.rewrites.substitution import constants
from headgate.scope import EVERYTHING, NOTHING, Groups, Scope, Scopes

Allowed: TypeAlias = Mapping[str, frozenset[str | int]]
"""By column, in lower case: the values with which a row can have an effect."""

Seen: TypeAlias = dict[str, list[Scope | None]]
Known: TypeAlias = set[tuple[int, frozenset[tuple[str, frozenset[str | int]]]]]


@lru_cache(maxsize=1_000)
def scopes(plan: Node) -> Scopes:
    """Of each stream with many sources what the plan can see of it, where that is not all of it."""
    seen: Seen = {}
    _look(plan, {}, seen, set())
    found = {
        stream: [one for one in several if one is not None] for stream, several in seen.items() if None not in several
    }
    return {stream: reduce(Scope.__or__, several) for stream, several in found.items()}


def _look(node: Node, allowed: Allowed, seen: Seen, known: Known) -> None:
    """Note what is seen of each base stream below the node, if only rows with the allowed values matter; `known` is
    done.
    """
    if (key := (id(node), frozenset(allowed.items()))) in known:
        return
    known.add(key)
    if isinstance(node, Scan):
        base = _base(node.stream)
        seen.setdefault(base, []).append(_scope(node, allowed) if node.stream == base else None)
    for watched in node.watches:
        seen.setdefault(watched, []).append(None)
    if isinstance(node, Piped):
        _look(node.child, allowed, seen, known)
    for child, carried in zip(node.children, node.carried, strict=True):
        _look(child, _below(node, child, carried, allowed), seen, known)


def _base(stream: str) -> str:
    """Of dead letters, which are complete where their stream is, that stream."""
    return stream[len("late(") : -1] if stream.startswith("late(") else stream


def _scope(source: Scan, allowed: Allowed) -> Scope | None:
    by = (source.by or "").lower()
    values = allowed.get(by)
    kind = next((column.type for column in source.columns if column.name.lower() == by), "")
    return Scope(frozenset(map(str, values))) if values and _comparable(kind, values) else None


def _comparable(kind: str, values: Iterable[str | int]) -> bool:
    """Whether a column of the type equals a constant exactly if its text does: nothing is cast to compare the two."""
    if kind.upper() == "STRING":
        return all(isinstance(value, str) for value in values)
    return kind.upper() in INTEGRAL and all(isinstance(value, int) for value in values)


def _below(node: Node, child: Node, carried: Carried, allowed: Allowed) -> Allowed:
    """The values with which rows of a child can have an effect."""
    if isinstance(node, Join):
        return _across(child, node, allowed)
    found: Allowed = constants(node.condition) if isinstance(node, Filter) else {}
    for name, value in carried.items():
        if name in allowed and value.column is not None and (node.together is None or name in node.together):
            found = _both(found, {value.column.lower(): allowed[name]})
    return found


def _both(one: Allowed, other: Allowed) -> Allowed:
    return {**one, **other, **{column: one[column] & other[column] for column in one.keys() & other.keys()}}


def _within(allowed: Allowed, columns: Iterable[str]) -> Allowed:
    known = {column.lower() for column in columns}
    return {column: values for column, values in allowed.items() if column in known}


def _across(side: Node, join: Join, allowed: Allowed) -> Allowed:
    """What the other side of a join allows by the columns that it equates with this one."""
    found: Allowed = _within(allowed, names(side))
    for equality in join.equalities:
        mine, theirs = (equality.left, equality.right) if side is join.left else (equality.right, equality.left)
        other = join.right if side is join.left else join.left
        if mine.column is None or theirs.column is None or not _alike(equality):
            continue
        values = _both(_having(other), allowed).get(theirs.column.lower())
        if values is not None:
            found = _both(found, {mine.column.lower(): values})
    return found


def _alike(equality: Equality) -> bool:
    """Whether nothing is cast to compare the two."""
    return equality.left.type == equality.right.type != "UNKNOWN"


@lru_cache(maxsize=10_000)
def _having(node: Node) -> Allowed:
    """The values that columns of the node's rows can have, where selections below it say so."""
    if isinstance(node, Piped):
        return _having(node.child)
    sides = [_held_by(carried, _having(child)) for child, carried in zip(node.children, node.carried, strict=True)]
    if isinstance(node, Union):
        one, other = sides
        return {name: one[name] | other[name] for name in one.keys() & other.keys()}
    found: Allowed = constants(node.condition) if isinstance(node, Filter) else {}
    for side in sides:
        found = _both(found, side)
    return found


def _held_by(carried: Carried, having: Allowed) -> Allowed:
    """The values of those columns that are columns of the child."""
    known = {name: value.column.lower() for name, value in carried.items() if value.column is not None}
    return {name: having[column] for name, column in known.items() if column in having}


# whether every answer comes from one source


def by_groups(plan: Node, groups: Mapping[str, Groups]) -> tuple[Scopes, ...]:
    """What each part of a query sees that runs as one part for each group of sources; nothing if it cannot.

    `groups` are those of its streams. Streams that are read together must be grouped alike.
    """
    grouped = {source.name for source in sources(plan) if isinstance(source, Scan) and source.name in groups}
    if len({groups[stream] for stream in grouped}) != 1 or not apart(plan, grouped):
        return ()
    seen, parts = scopes(plan), []
    for group in groups[next(iter(grouped))].scopes():
        visible = {stream: group & seen.get(stream, EVERYTHING) for stream in grouped}
        if any(one != NOTHING for one in visible.values()):
            parts.append({**seen, **{stream: group if one == NOTHING else one for stream, one in visible.items()}})
    return tuple(parts) if len(parts) > 1 else ()


def apart(plan: Node, grouped: Collection[str]) -> bool:
    """Whether the plan can be run for each group of sources of these streams by itself, and the answers put
    together.
    """
    held = _held(plan, frozenset(grouped))
    if held is None or held is FREE:
        return False
    return bool(held) or is_stream(plan) or cast(Relation, plan).endless


FREE = frozenset({"*"})
"""Of a relation that comes from no grouped stream: it is the same for every group."""


@lru_cache(maxsize=10_000)
def _held(node: Node, grouped: frozenset[str]) -> frozenset[str] | None:
    """The columns, in lower case, that hold the source from which a row comes; None if rows may come from several."""
    if isinstance(node, Scan):
        if node.stream in grouped and node.by is not None:
            return frozenset({node.by.lower()})
        return FREE if _base(node.stream) not in grouped else None
    if isinstance(node, Piped):
        return _held(node.child, grouped)
    sides = [_held(child, grouped) for child in node.children]
    if isinstance(node, Join):
        return _joined(sides[0], sides[1], node.equalities)
    if isinstance(node, Union):
        return _united(node, sides[0], sides[1])
    return _kept(node, sides[0]) if sides else FREE


def _kept(node: Node, below: frozenset[str] | None) -> frozenset[str] | None:
    """The columns that hold the source of a row behind a node with one child.

    None if rows of several sources are computed together, or if the node looks at a whole stream beside its child.
    """
    if below is None or below is FREE:
        return below
    (carried,) = node.carried
    held = frozenset(name for name, value in carried.items() if (value.column or "").lower() in below)
    if node.watches or (node.together is not None and not held & node.together):
        return None
    return held


def _joined(
    left: frozenset[str] | None, right: frozenset[str] | None, equalities: Iterable[Equality]
) -> frozenset[str] | None:
    if left is None or right is None:
        return None
    if left is FREE or right is FREE:
        return right if left is FREE else left
    for equality in equalities:
        mine, theirs = equality.left.column, equality.right.column
        if (
            _alike(equality)
            and mine is not None
            and theirs is not None
            and mine.lower() in left
            and theirs.lower() in right
        ):
            return left | right
    return None


def _united(union: Union, left: frozenset[str] | None, right: frozenset[str] | None) -> frozenset[str] | None:
    if left is None or right is None or (left is FREE) != (right is FREE):
        return None
    if left is FREE:
        return FREE
    pairs = zip(names(union.left), names(union.right), strict=True)
    return frozenset(one.lower() for one, other in pairs if one.lower() in left and other.lower() in right)
