"""Filters pushed down: rows that do not matter go before they are joined, grouped or kept.

A condition moves part by part (what stands between its ANDs), each as far as it may:

    σ π R       = π σ' R              σ' reads what the projection computes
    σ (L ⋈ R)   = σ L ⋈ σ R           each part to the side it reads; what reads both becomes part of the join
    σ (L + R)   = σ L + σ R           where both sides have the same type in the columns read
    σ (n · R)   = n · σ R             a weight changes how often a row counts, not the row
    σ ε R       = ε σ R               if it reads nothing that a lateral view makes
    σ N R       = N σ R               how long a row is needed follows from the row alone
    σ δ R       = δ σ R               equal rows agree on every condition
    σ γ R       = γ σ R               if it reads only group keys: whole groups go. Without keys there is always a row
    σ ρ R       = ρ σ R               if it reads only columns by which every analytic function partitions
    σ W Istream R = W Istream σ R     for time windows, and Dstream, Rstream: how often a row comes or goes at an
                                      instant follows from how often it is there
    σ W S       = W σ S               for a row window only if it reads nothing but the partition: other parts decide
                                      which tuples are among the last, or how large the largest value is

All of it follows from two answers of a node: what its columns are below it (`carried`), and on which of them rows agree
that are computed together (`together`).

A node that others stand on as well is not opened: its work would be done twice, once for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import cast

from headgate.plan.derived import column
from headgate.plan.expressions import Expression
from headgate.plan.nodes import (
    Dstream,
    Equality,
    Filter,
    Istream,
    Join,
    Node,
    Project,
    Relation,
    Rows,
    Rstream,
    Scan,
    Unbounded,
    Union,
    Window,
    names,
)
from headgate.plan.rewrites.substitution import conjunction, conjuncts, equated, movable, reads, substituted
from headgate.plan.tree import everywhere, parents
from headgate.sql import UNKNOWN, Sql, unquoted

Moved = Callable[[Expression], Expression | None]
"""A part of a condition as it must read further down; None if it has to stay."""


def pushed_down(plan: Node) -> Node:
    above = parents(plan)

    def change(node: Node) -> Node | None:
        if isinstance(node, Join):
            return _spread(node)
        if not isinstance(node, Filter):
            return None
        alone = isinstance(node.child, Project | Filter) or above.get(node.child) == {node}
        return _pushed(node) if alone else None

    return everywhere(plan, change)


def _pushed(node: Filter) -> Relation | None:
    below = node.child
    if isinstance(below, Filter):
        return Filter(below.child, conjunction([*conjuncts(below.condition), *conjuncts(node.condition)]))
    if isinstance(below, Join):
        return _split(node, _within(names(below)), lambda down: _conditioned(below, [down]))
    if isinstance(below, Union):
        return _below_union(node, below)
    if isinstance(below, Window):
        return _below_window(node, below)
    if not below.children:
        return None
    (child,) = cast("tuple[Relation]", below.children)
    return _split(node, _through(below), lambda down: cast(Relation, below.over((Filter(child, down),))))


def _through(node: Relation) -> Moved:
    """A part that reads only columns by which the node may be selected from, over what these are below it."""
    (carried,) = node.carried
    values = {name: value for name, value in carried.items() if node.together is None or name in node.together}
    computed = {name: value for name, value in values.items() if (value.column or "").lower() != name}

    def moved(part: Expression) -> Expression | None:
        if not part.columns <= values.keys() or not (part.columns or isinstance(node, Project)):
            return None
        return substituted(part, computed) if part.columns & computed.keys() else part

    return moved


def _below_union(node: Filter, union: Union) -> Relation | None:
    theirs = _alike(union.left, union.right)

    def to_both(down: Expression) -> Relation:
        other = substituted(down, theirs)
        assert other is not None
        return replace(union, left=Filter(union.left, down), right=Filter(union.right, other))

    return _split(node, _within(theirs), to_both)


def _below_window(node: Filter, window: Window) -> Relation | None:
    """A selection of a relation goes below the stream of it; one of any other stream becomes a stream of its own."""
    stream = window.child
    if isinstance(stream, Scan) and not isinstance(window.frame, Rows):
        return None  # the log is read through the filter
    if not isinstance(stream, Istream | Dstream | Rstream) and window.frame == Unbounded():
        return None  # it would come back

    def below(down: Expression) -> Relation:
        if isinstance(stream, Istream | Dstream | Rstream):
            return replace(window, child=replace(stream, child=Filter(stream.child, down)))
        # a selection of a stream keeps its order of arrival
        return replace(window, child=Istream(Filter(Window(stream, Unbounded()), down)))

    return _split(node, _through(window), below)


def _split(node: Filter, moved: Moved, build: Callable[[Expression], Relation]) -> Relation | None:
    """The parts that can move below the child, in their order, and the others where they were."""
    parts = [(part, moved(part) if movable(part) else None) for part in conjuncts(node.condition)]
    down = [new for _, new in parts if new is not None]
    if not down:
        return None
    built = build(conjunction(down))
    stay = [part for part, new in parts if new is None]
    return Filter(built, conjunction(stay)) if stay else built


def _within(columns: Iterable[str]) -> Moved:
    """A part that reads some of these columns, and no others, moves as it is."""
    allowed = {name.lower() for name in columns}
    return lambda part: part if part.columns and part.columns <= allowed else None


def _alike(left: Relation, right: Relation) -> dict[str, Expression]:
    """The columns of a union that have one known type on both sides, and what they are on the right side."""
    pairs = zip(left.columns, right.columns, strict=True)
    return {one.name.lower(): column(right, other.name) for one, other in pairs if one.type == other.type != "UNKNOWN"}


def _spread(join: Join) -> Relation | None:
    """The parts of a join's own condition that read one side only, or are equalities, put where they belong."""
    if join.condition is None:
        return None
    spread = _conditioned(replace(join, condition=None), [join.condition])
    return spread if spread != join else None


def _conditioned(join: Join, parts: Iterable[Expression]) -> Join:
    """The join with further conditions: those of one side on that side, equalities between both, the rest on the
    pairs.
    """
    left, right = ({name.lower() for name in names(side)} for side in (join.left, join.right))
    on_left, on_right, on_pairs = [], [], conjuncts(join.condition) if join.condition is not None else []
    equalities = list(join.equalities)
    for part in (one for given in parts for one in conjuncts(given)):
        if movable(part) and part.columns and part.columns <= left:
            on_left.append(part)
        elif movable(part) and part.columns and part.columns <= right:
            on_right.append(part)
        elif movable(part) and (equality := _equality(join, part, left, right)) is not None:
            equalities.append(equality)
        else:
            on_pairs.append(part)
    return replace(
        join,
        left=Filter(join.left, conjunction(on_left)) if on_left else join.left,
        right=Filter(join.right, conjunction(on_right)) if on_right else join.right,
        equalities=tuple(dict.fromkeys(equalities)),
        condition=conjunction(on_pairs) if on_pairs else None,
    )


def _equality(join: Join, part: Expression, left: set[str], right: set[str]) -> Equality | None:
    sides = equated(part)
    if sides is None:
        return None
    one, other = (_side(join, sql) for sql in sides)
    if one.columns <= right and other.columns <= left:
        one, other = other, one
    if one.columns and other.columns and one.columns <= left and other.columns <= right:
        return Equality(one, other)
    return None


def _side(join: Join, sql: Sql) -> Expression:
    known = next((found for found in join.columns if found.name == unquoted(sql)), None)
    if known is not None:
        return column(join, known.name)
    return Expression(sql, UNKNOWN, reads(sql) or frozenset())
