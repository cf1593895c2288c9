"""Common parts once: subplans that differ only in the names of their columns become one, renamed where it is used.

`Lowering` makes each form of a node once, so equal nodes cost one computation and one synopsis. Here two nodes are
compared in their anonymous form, in which every name that a query gave stands for its position. Order counts: row
windows over derived streams break ties by it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from headgate.plan.derived import column, fresh
from headgate.plan.expressions import Call, Expression, Named
from headgate.plan.nodes import Join, Node, Project, Relation, Stored, is_stream, names
from headgate.plan.nodes.operator import Change, T
from headgate.plan.nodes.windows import Unreadable
from headgate.plan.rewrites.substitution import substituted, substituted_text
from headgate.plan.tree import everywhere


def once(plan: Node) -> Node:
    """Each part that stands in the plan more than once, under whatever names, in the form in which it stands there
    first.
    """
    first: dict[Node, Relation] = {}
    forms: dict[int, tuple[Node, Node]] = {}

    def change(node: Node) -> Node | None:
        if is_stream(node) or isinstance(node, Stored | Project):  # a projection is as cheap as the renaming would be
            return None
        known = first.setdefault(anonymous(node, forms), cast(Relation, node))
        return known if names(known) == names(node) else renamed(known, names(node))

    return everywhere(plan, change)


def renamed(node: Relation, wanted: tuple[str, ...]) -> Relation:
    return Project(node, tuple(Named(new, column(node, old)) for new, old in zip(wanted, names(node), strict=True)))


def anonymous(node: Node, known: dict[int, tuple[Node, Node]]) -> Node:
    """The node with the names of base streams kept and all others made from positions.

    The node itself where an expression cannot be changed with certainty.
    """
    if id(node) not in known:
        below = tuple(anonymous(child, known) for child in node.children)
        try:
            form = _over(node, below)
        except Unreadable:
            form = node
        known[id(node)] = (node, form)
    return known[id(node)][1]


def _over(node: Node, below: tuple[Node, ...]) -> Node:
    below = _apart(below) if isinstance(node, Join) else below
    values: dict[str, Expression] = {}
    for child, form in zip(node.children, below, strict=True):
        values |= _places(child, form)
    form = node.reading(_Renaming(values)).over(below)
    form = form.with_own_names(_own_names(form))
    if isinstance(form, Project):
        same = names(form.child) == names(form) == tuple(item.expression.column for item in form.items)
        return form.child if same else form
    return form


def _apart(below: tuple[Node, ...]) -> tuple[Node, ...]:
    """The sides of a join, the right one renamed where the two have names in common."""
    left, right = cast("tuple[Relation, Relation]", below)
    taken = {name.lower() for name in names(left)}
    new = tuple(fresh(name, taken) for name in names(right))
    return left, right if new == names(right) else renamed(right, new)


def _own_names(node: Node) -> tuple[str, ...]:
    """Names for the columns that the node makes: a column's own where it is nothing else, otherwise by position."""
    own = len(node.own_names)  # they are its last columns
    taken = {name.lower() for name in names(node)[: len(names(node)) - own]}
    values = node.carried[0] if own else {}
    columns = [value.column if (value := values.get(name.lower())) is not None else None for name in node.own_names]
    return tuple(
        fresh(column if column is not None and column.lower() not in taken else f"c{position}", taken)
        for position, column in enumerate(columns)
    )


def _places(node: Node, form: Node) -> dict[str, Expression]:
    """What each column of a node is in its anonymous form."""
    return {
        name.lower(): column(cast(Relation, form), other)
        for name, other in zip(names(node), names(form), strict=True)
        if name != other
    }


class _Renaming(Change):
    """Other columns in place of those of the query."""

    def __init__(self, values: dict[str, Expression]) -> None:
        self.values = values

    def __call__(self, value: T) -> T:
        if not value.columns & self.values.keys():
            return value
        if isinstance(value, Call):
            return self._call(value)  # type: ignore[return-value]
        found = substituted(value, self.values)
        if found is None:
            raise Unreadable
        return found

    def _call(self, call: Call) -> Call:
        condition = call.condition
        sql = substituted_text(call.sql, self.values)
        if sql is None or (condition is not None and (condition := substituted_text(condition, self.values)) is None):
            raise Unreadable
        arguments = tuple(map(self, call.arguments))
        read = (self.values[name].columns if name in self.values else {name} for name in call.columns)
        return replace(call, sql=sql, arguments=arguments, condition=condition, columns=frozenset().union(*read))
