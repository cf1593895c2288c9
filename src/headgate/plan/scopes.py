"""Which sources of its streams a plan can see, and whether each of its answers comes from one source alone.

A stream with SOURCE BY holds many sources, each with its own clock. `scopes` finds those of which tuples can have an
effect on the answer, where selections by constants on that column say so: a condition moves down as filters do (see
`rewrites.filters`), through renamings, keys and partitions, and from one side of a join to the other by its equalities.

`apart` finds plans that can be run for each group of sources by themselves: the rows of every relation on the way
follow from tuples of one source, and those of different sources never meet. That is so of selections and projections,
of aggregates whose keys hold the source, of analytic functions and row windows that partition by it, and of joins that
equate it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache, reduce
from typing import TypeAlias, cast

from headgate.plan.expressions import INTEGRAL, Expression
from headgate.plan.nodes import (
    Aggregate,
    Distinct,
    Dstream,
    Equality,
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
    is_stream,
    names,
    sources,
)
from headgate.plan.properties import endless
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
    match node:
        case Source(stream):
            seen.setdefault(_base(stream), []).append(_scope(node, allowed) if stream == _base(stream) else None)
        case Join(left, right):
            _look(left, _across(left, node, allowed), seen, known)
            _look(right, _across(right, node, allowed), seen, known)
        case Union(left, right):
            renamed = {one.lower(): other for one, other in zip(names(left), names(right), strict=True)}
            _look(left, _within(allowed, names(left)), seen, known)
            _look(
                right,
                {renamed[name].lower(): values for name, values in allowed.items() if name in renamed},
                seen,
                known,
            )
        case Needed(child, behind=behind, checked=checked):
            for compared in (behind, checked):
                if compared is not None:
                    seen.setdefault(compared.order.stream.name, []).append(None)
            _look(child, allowed, seen, known)
        case Piped(child):
            _look(child, allowed, seen, known)
        case Stored():
            pass
        case _:
            for below in children(node):
                _look(below, _below(node, allowed), seen, known)


def _base(stream: str) -> str:
    """Of dead letters, which are complete where their stream is, that stream."""
    return stream[len("late(") : -1] if stream.startswith("late(") else stream


def _scope(source: Source, allowed: Allowed) -> Scope | None:
    by = (source.by or "").lower()
    values = allowed.get(by)
    kind = next((column.type for column in source.columns if column.name.lower() == by), "")
    return Scope(frozenset(map(str, values))) if values and _comparable(kind, values) else None


def _comparable(kind: str, values: Iterable[str | int]) -> bool:
    """Whether a column of the type equals a constant exactly if its text does: nothing is cast to compare the two."""
    if kind.upper() == "STRING":
        return all(isinstance(value, str) for value in values)
    return kind.upper() in INTEGRAL and all(isinstance(value, int) for value in values)


def _below(node: Node, allowed: Allowed) -> Allowed:
    """The values with which rows of the node's only child can have an effect."""
    match node:
        case Filter(child, condition):
            return _both(allowed, constants(condition))
        case Project(_, items):
            return _named({item.name: item.expression for item in items}, allowed)
        case Aggregate(_, keys):
            return _named({key.name: key.expression for key in keys}, allowed)
        case Ranked(_, by) | Window(_, Rows(by=by)):
            return _within(allowed, by)
        case Window(_, Values() | Passed()):
            return {}
        case Window(child, Now() | Unbounded() | Range() | Final()) | Exploded(child) | Weight(child) | Distinct(child):
            return _within(allowed, names(child))
        case _:
            return allowed


def _both(one: Allowed, other: Allowed) -> Allowed:
    return {**one, **other, **{column: one[column] & other[column] for column in one.keys() & other.keys()}}


def _within(allowed: Allowed, columns: Iterable[str]) -> Allowed:
    known = {column.lower() for column in columns}
    return {column: values for column, values in allowed.items() if column in known}


def _named(values: Mapping[str, Expression], allowed: Allowed) -> Allowed:
    """The allowed values of those computed columns that are columns of the child under another name."""
    known = {name.lower(): value.column for name, value in values.items() if value.column is not None}
    found: Allowed = {}
    for name, column in known.items():
        found = _both(found, {column.lower(): allowed[name]} if name in allowed else {})
    return found


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
    match node:
        case Filter(child, condition):
            return _both(_having(child), constants(condition))
        case Project(child, items):
            return _renamed({item.name: item.expression for item in items}, _having(child))
        case Aggregate(child, keys):
            return _renamed({key.name: key.expression for key in keys}, _having(child))
        case Join(left, right):
            return {**_having(left), **_having(right)}
        case Union(left, right):
            one, other = _having(left), _having(right)
            pairs = [(first.lower(), second.lower()) for first, second in zip(names(left), names(right), strict=True)]
            return {first: one[first] | other[second] for first, second in pairs if first in one and second in other}
        case Source() | Stored():
            return {}
        case Piped(child) | Window(child) | Istream(child) | Dstream(child) | Rstream(child):
            return _having(child)
        case Weight(child) | Exploded(child) | Ranked(child) | Distinct(child) | Needed(child):
            return _having(child)


def _renamed(values: Mapping[str, Expression], having: Allowed) -> Allowed:
    known = {name.lower(): value.column for name, value in values.items() if value.column is not None}
    return {name: having[column.lower()] for name, column in known.items() if column.lower() in having}


# whether every answer comes from one source


def by_groups(plan: Node, groups: Mapping[str, Groups]) -> tuple[Scopes, ...]:
    """What each part of a query sees that runs as one part for each group of sources; nothing if it cannot.

    `groups` are those of its streams. Streams that are read together must be grouped alike.
    """
    grouped = {source.name for source in sources(plan) if isinstance(source, Source) and source.name in groups}
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
    return bool(held) or is_stream(plan) or endless(cast(Relation, plan))


FREE = frozenset({"*"})
"""Of a relation that comes from no grouped stream: it is the same for every group."""


@lru_cache(maxsize=10_000)
def _held(node: Node, grouped: frozenset[str]) -> frozenset[str] | None:
    """The columns, in lower case, that hold the source from which a row comes; None if rows may come from several."""
    match node:
        case Source(stream):
            if stream in grouped and node.by is not None:
                return frozenset({node.by.lower()})
            return FREE if _base(stream) not in grouped else None
        case Stored():
            return FREE
        case Join(left, right, equalities):
            return _joined(_held(left, grouped), _held(right, grouped), equalities)
        case Union(left, right):
            return _united(node, _held(left, grouped), _held(right, grouped))
        case Piped(child):
            return _held(child, grouped)
        case _:
            below = _held(children(node)[0], grouped)
            return below if below is None or below is FREE else _kept(node, below)


def _kept(node: Node, below: frozenset[str]) -> frozenset[str] | None:
    """The allowed values below a node with one child."""
    match node:
        case Filter() | Weight() | Exploded():
            return below
        case Project(_, items):
            return _still({item.name: item.expression for item in items}, below)
        case Aggregate(_, keys):
            return _still({key.name: key.expression for key in keys}, below) or None
        case Ranked(_, by) | Window(_, Rows(by=by)):
            return below if below & {column.lower() for column in by} else None
        case Window(_, Now() | Unbounded() | Range() | Final()):
            return below
        case Distinct():
            return below or None
        case Needed(behind=behind, checked=checked):
            return below if behind is None and checked is None else None
        case Istream(child) | Dstream(child):  # equal rows of different sources must not be netted against one another
            return below if below or endless(child) else None
        case Rstream():
            return below
        case _:
            return None


def _still(values: Mapping[str, Expression], below: frozenset[str]) -> frozenset[str]:
    return frozenset(name.lower() for name, value in values.items() if (value.column or "").lower() in below)


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
