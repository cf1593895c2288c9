"""Common parts once: subplans that differ only in the names of their columns become one, renamed where it is used.

`Lowering` makes each form of a node once, so equal nodes cost one computation and one synopsis. Here two nodes are
compared in their anonymous form, in which every name that a query gave stands for its position. Order counts: row
windows over derived streams break ties by it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias, cast

from headgate.plan.derived import column, fresh
from headgate.plan.expressions import Call, Expression, Named
from headgate.plan.nodes import (
    Aggregate,
    Compared,
    Equality,
    Exploded,
    Filter,
    Final,
    Join,
    Needed,
    Node,
    Now,
    Passed,
    Project,
    Range,
    Ranked,
    Relation,
    Rows,
    Stored,
    Stream,
    Unbounded,
    Values,
    Weight,
    Window,
    children,
    is_stream,
    names,
)
from headgate.plan.rewrites.substitution import substituted, substituted_text
from headgate.plan.tree import everywhere, with_children

_Values: TypeAlias = dict[str, Expression]


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


class _Opaque(Exception):
    """An expression that cannot be read for certain: the node has no anonymous form but itself."""


def anonymous(node: Node, known: dict[int, tuple[Node, Node]]) -> Node:
    """The node with the names of base streams kept and all others made from positions; itself where that cannot be
    done.
    """
    if id(node) not in known:
        below = tuple(anonymous(child, known) for child in children(node))
        try:
            form = _over(node, below)
        except _Opaque:
            form = node
        known[id(node)] = (node, form)
    return known[id(node)][1]


def _over(node: Node, below: tuple[Node, ...]) -> Node:
    match node:
        case Filter(child, condition):
            return Filter(cast(Relation, below[0]), _read(condition, _places(child, below[0])))
        case Weight(child, factor):
            return Weight(cast(Relation, below[0]), _read(factor, _places(child, below[0])))
        case Project(child, items):
            return _project(cast(Relation, below[0]), items, _places(child, below[0]))
        case Join():
            return _join(node, *cast("tuple[Relation, Relation]", below))
        case Aggregate(child, keys, calls):
            values = _places(child, below[0])
            grouped = _named(keys, values, "k")
            taken = {key.name.lower() for key in grouped}
            counted = tuple(replace(_call(call, values), name=fresh(f"a{i}", taken)) for i, call in enumerate(calls))
            return replace(node, child=below[0], keys=grouped, calls=counted)  # type: ignore[arg-type]
        case Ranked(child, by, items):
            values = _places(child, below[0])
            taken = {name.lower() for name in names(below[0])}
            added = tuple(Named(fresh(f"r{i}", taken), _read(item.expression, values)) for i, item in enumerate(items))
            return Ranked(cast(Relation, below[0]), _columns(by, values), added)
        case Exploded(child, generator, _, made):
            taken = {name.lower() for name in names(below[0])}
            again = tuple(fresh(f"e{i}", taken) for i in range(len(made)))
            read = _read(generator, _places(child, below[0]))
            return replace(node, child=below[0], generator=read, made=again)  # type: ignore[arg-type]
        case Needed(child):
            return _needed(node, cast(Relation, below[0]), _places(child, below[0]))
        case Window(child):
            return _window(node, cast(Stream, below[0]), _places(child, below[0]))
        case _:
            return with_children(node, below)


def _needed(node: Needed, child: Relation, values: _Values) -> Relation:
    def read(compared: Compared | None) -> Compared | None:
        return None if compared is None else replace(compared, value=_read(compared.value, values))

    until = None if node.until is None else _read(node.until, values)
    return replace(node, child=child, until=until, behind=read(node.behind), checked=read(node.checked))


def _window(node: Window, child: Stream, values: _Values) -> Relation:
    taken = {name.lower() for name in names(child)}
    stamp = None if node.stamp is None else fresh("at", taken)
    arrival = None if node.arrival is None else fresh("nth", taken)
    frame = node.frame
    match frame:
        case Rows(by=by):
            frame = replace(frame, by=_columns(by, values))
        case Values(column=column) if column.lower() in values:  # its text reads the column under its name
            raise _Opaque
        case Passed(column=column) if column in values:
            raise _Opaque
        case Final(reads=reads) if reads & values.keys():
            raise _Opaque
        case Now() | Unbounded() | Range() | Values() | Final() | Passed():
            pass
    return replace(node, child=child, frame=frame, stamp=stamp, arrival=arrival)


def _places(node: Node, form: Node) -> _Values:
    """What each column of a node is in its anonymous form."""
    return {
        name.lower(): column(cast(Relation, form), other)
        for name, other in zip(names(node), names(form), strict=True)
        if name != other
    }


def _read(expression: Expression, values: _Values) -> Expression:
    if not expression.columns & values.keys():
        return expression
    found = substituted(expression, values)
    if found is None:
        raise _Opaque
    return found


def _columns(by: tuple[str, ...], values: _Values) -> tuple[str, ...]:
    return tuple(values[name.lower()].column or name if name.lower() in values else name for name in by)


def _named(items: Iterable[Named], values: _Values, hint: str) -> tuple[Named, ...]:
    """The items over the anonymous form; a column keeps its name there, anything else is named by its position."""
    taken: set[str] = set()
    result = []
    for position, item in enumerate(items):
        expression = _read(item.expression, values)
        own = expression.column if expression.column is not None and expression.column.lower() not in taken else None
        result.append(Named(fresh(own or f"{hint}{position}", taken), expression))
    return tuple(result)


def _project(child: Relation, items: tuple[Named, ...], values: _Values) -> Relation:
    named = _named(items, values, "c")
    same = tuple(item.expression.column for item in named) == names(child) == tuple(item.name for item in named)
    return child if same else Project(child, named)


def _join(node: Join, left: Relation, right: Relation) -> Relation:
    taken = {name.lower() for name in names(left)}
    apart = tuple(fresh(name, taken) for name in names(right))
    right = right if apart == names(right) else renamed(right, apart)
    first, second = _places(node.left, left), _places(node.right, right)
    return replace(
        node,
        left=left,
        right=right,
        equalities=tuple(Equality(_read(e.left, first), _read(e.right, second), e.null_safe) for e in node.equalities),
        condition=None if node.condition is None else _read(node.condition, {**first, **second}),
    )


def _call(call: Call, values: _Values) -> Call:
    if not call.columns & values.keys():
        return call
    condition = call.condition
    sql = substituted_text(call.sql, values)
    if sql is None or (condition is not None and (condition := substituted_text(condition, values)) is None):
        raise _Opaque
    arguments = tuple(_read(argument, values) for argument in call.arguments)
    columns = frozenset().union(*(values[name].columns if name in values else {name} for name in call.columns))
    return replace(call, sql=sql, arguments=arguments, condition=condition, columns=columns)
