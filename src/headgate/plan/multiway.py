"""Joins of several inputs as one group: what is joined and by which conditions, without any order.

    ((a ⋈ b) ⋈ c) ⋈ d        inputs a, b, c, d; every equality and every conjunct of the joins' conditions

A tree of inner joins says nothing of the order in which an epoch joins: the names of the inputs are disjoint, so a
condition can be judged as soon as all inputs that it reads are there. The columns that the joins in between leave out
are left out by whoever puts the group together again.

A join stays out of a group, and is an input of it like any other, if it has a rule of its own that is better than
pairing by values (it looks up a group, bounds how far apart rows begin, or pairs by buckets of values), if something
else reads it as well, or if its conditions must not be moved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import TypeAlias

from headgate.plan.distances import between_starts
from headgate.plan.expressions import Expression
from headgate.plan.frozen import frozen
from headgate.plan.nodes import Equality, Join, Node, Project, Relation, names, sources
from headgate.plan.rewrites.substitution import conjuncts, movable
from headgate.sql import BOOLEAN

MOST_INPUTS = 6
"""Of more inputs, a tree of joins stays as it is written: there would be too many orders to measure."""

Inputs: TypeAlias = frozenset[int]
"""Some inputs of a group, by their numbers in it."""


@frozen
class Group:
    """A join of three or more inputs."""

    node: Join
    """The tree of joins that it was found as. It has the columns of the result."""

    inputs: tuple[Relation, ...]
    equalities: tuple[Equality, ...]
    conditions: tuple[Expression, ...]
    inner: tuple[Inputs, ...]
    """The inputs of each join below the top, as it is written."""

    def columns_of(self, some: Inputs) -> frozenset[str]:
        """The columns of some inputs, in lower case."""
        return frozenset(name.lower() for one in some for name in names(self.inputs[one]))

    def reading(self, columns: frozenset[str]) -> Inputs:
        """The inputs that have some of these columns."""
        return frozenset(number for number in range(len(self.inputs)) if columns & self.columns_of(frozenset({number})))

    def connected(self, some: Inputs, others: Inputs) -> bool:
        """Whether something of these inputs is equated with something of the others."""
        return any(
            (left <= some and right <= others) or (left <= others and right <= some) for left, right in self._equated()
        )

    def holds_together(self, some: Inputs) -> bool:
        """Whether equalities connect all of these inputs with one another."""
        reached, waiting = frozenset[int](), frozenset({min(some)})
        while waiting:
            reached |= waiting
            waiting = frozenset(one for one in some - reached if self.connected(reached, frozenset({one})))
        return reached == some

    def _equated(self) -> list[tuple[Inputs, Inputs]]:
        return [(self.reading(one.left.columns), self.reading(one.right.columns)) for one in self.equalities]

    def joined(self, left: Relation, some: Inputs, right: Relation, others: Inputs) -> Join:
        """The join of some inputs, which `left` has, with others: every condition that can be judged with them."""
        before, theirs = self.columns_of(some), self.columns_of(others)
        both, on, rest = before | theirs, list[Equality](), list[Expression]()
        for one in self.equalities:
            read = one.left.columns | one.right.columns
            if not read <= both or read <= before or read <= theirs:
                continue
            if one.left.columns <= before and one.right.columns <= theirs:
                on.append(one)
            elif one.right.columns <= before and one.left.columns <= theirs:
                on.append(Equality(one.right, one.left, one.null_safe))
            else:
                rest.append(Expression(one.sql, BOOLEAN, read))
        rest += [
            one
            for one in self.conditions
            if one.columns <= both and not one.columns <= before and not one.columns <= theirs
        ]
        text = " AND ".join(f"({one.sql})" for one in rest)
        read_by_all = frozenset[str]().union(*(one.columns for one in rest))
        return Join(left, right, tuple(on), Expression(text, BOOLEAN, read_by_all) if rest else None)

    def needed(self, some: Inputs) -> frozenset[str]:
        """The columns of some inputs that the result has or that a condition with other inputs reads, in lower case."""
        have = self.columns_of(some)
        read = [one.left.columns | one.right.columns for one in self.equalities]
        read += [one.columns for one in self.conditions]
        later = frozenset[str]().union(*(columns for columns in read if not columns <= have))
        return have & (later | {name.lower() for name in names(self.node)})

    def lasting(self, some: Inputs) -> bool:
        """Whether rows of some inputs joined live for more than one instant, so that there is something to keep."""
        return not any(self.inputs[one].instantaneous for one in some)

    def ending(self, some: Inputs) -> bool:
        """Whether every row of these inputs has an end, so that rows that meet begin near each other."""
        return all(self.inputs[one].longest is not None for one in some)

    def name(self, number: int) -> str:
        """What an input is called: the stream or relation that it reads, or those that it reads."""
        return " and ".join(dict.fromkeys(source.name for source in sources(self.inputs[number])))


def group_of(node: Join, above: Mapping[Node, set[Node]], apart: Callable[[Join], bool]) -> Group | None:
    """The group that a join is the top of; None if it has fewer than three inputs or too many, or stays as it is.

    `apart` says which other joins have a rule that is better than pairing by values.
    """
    if not _joins_values(node) or apart(node):
        return None
    inputs, equalities, conditions = list[Relation](), list[Equality](), list[Expression]()

    inner: list[Inputs] = []

    def visit(one: Join) -> None:
        first = len(inputs)
        for side in (one.left, one.right):
            below = side.child if isinstance(side, Project) and _only_leaves_out(side) else side
            alone = all(len(above.get(over, ())) <= 1 for over in (side, below))
            if isinstance(below, Join) and alone and _joins_values(below) and not apart(below):
                visit(below)
            else:
                inputs.append(side)
        inner.append(frozenset(range(first, len(inputs))))
        equalities.extend(one.equalities)
        conditions.extend(conjuncts(one.condition) if one.condition is not None else ())

    visit(node)
    columns = [name.lower() for one in inputs for name in names(one)]
    if not 3 <= len(inputs) <= MOST_INPUTS or len(set(columns)) < len(columns):
        return None
    group = Group(node, tuple(inputs), _with_implied(inputs, equalities), tuple(conditions), tuple(inner[:-1]))
    compared = [one.columns for one in conditions]
    compared += [side.columns for one in equalities for side in (one.left, one.right)]
    if any(not read or not read <= set(columns) for read in compared):
        return None  # it reads nothing, or something that is no column
    return None if any(len(group.reading(one.columns)) < 2 for one in conditions) else group


def _joins_values(node: Join) -> bool:
    """Whether a join has no better rule than to pair rows whose values agree, and can be taken apart."""
    expressions = [one for e in node.equalities for one in (e.left, e.right)]
    expressions += [node.condition] if node.condition is not None else []
    if not node.equalities or not all(map(movable, expressions)):
        return False
    return node.lookup is None and between_starts(node) is None


def _only_leaves_out(node: Project) -> bool:
    """Whether a projection has columns of its child under their own names, and nothing else."""
    return all(item.expression.column == item.name for item in node.items)


def _with_implied(inputs: list[Relation], equalities: list[Equality]) -> tuple[Equality, ...]:
    """The equalities, and those that follow from them: columns of one type that equal a third equal each other.

    Otherwise a join could only follow the equalities in the order in which they happen to be written.
    """
    kinds = {column.name.lower(): column.type for one in inputs for column in one.columns}
    owner = {column.name.lower(): number for number, one in enumerate(inputs) for column in one.columns}
    classes: list[dict[str, Expression]] = []
    for one in equalities:
        pair = {side.column.lower(): side for side in (one.left, one.right) if side.column is not None}
        alike = {kinds.get(name, "UNKNOWN") for name in pair}
        if len(pair) == 2 and not one.null_safe and len(alike) == 1 and alike != {"UNKNOWN"}:
            merged = [known for known in classes if known.keys() & pair.keys()]
            classes = [known for known in classes if known not in merged]
            classes.append({name: side for known in [*merged, pair] for name, side in known.items()})
    written = {frozenset({one.left.sql, one.right.sql}) for one in equalities}
    implied = [
        Equality(known[left], known[right])
        for known in classes
        for left, right in combinations(sorted(known, key=lambda name: (owner[name], name)), 2)
        if owner[left] != owner[right] and frozenset({known[left].sql, known[right].sql}) not in written
    ]
    return (*equalities, *implied)
