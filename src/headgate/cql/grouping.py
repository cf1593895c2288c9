"""GROUP BY, HAVING and aggregate calls: the select list over the groups of a relation.

Grouping sets, rollup and cube are a union of one aggregate for each set, with nulls for the keys that are not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from sqlglot import exp

from headgate.cql.aggregates import canonical
from headgate.cql.inputs import Item, Scope
from headgate.cql.trees import (
    aggregate_calls,
    as_expression,
    call_name,
    column_named,
    has_subquery,
    marked_resolved,
    read_columns,
    replaced_by,
    replaced_outside_subquery,
    types_of,
    unaliased,
    unique,
    with_safe_division,
)
from headgate.errors import NotYet, UserError
from headgate.plan.derived import column, constant, fresh, null
from headgate.plan.expressions import Call, Named
from headgate.plan.nodes import Aggregate, Project, Relation, Union, names
from headgate.sql import Sql
from headgate.sql.printer import compared, printed

if TYPE_CHECKING:
    from headgate.cql.binder import Binder


def grouped(
    binder: Binder,
    child: Relation,
    scope: Scope,
    projections: list[exp.Expression],
    group: exp.Expression | None,
    having: exp.Expression | None,
) -> tuple[Relation, list[exp.Expression]]:
    """Groups a relation: the aggregate node, and the select list (then HAVING, if there is one) over its columns.

    Subqueries in either stay as they are; they are bound in the scope that `scope_of_groups` gives.
    """
    written, sets = grouping_sets(binder, group)
    key_trees = [binder.resolve(tree, scope) for tree in keys_of_groups(binder, written, group, projections, scope)]
    key_names = unique(
        [tree.name if isinstance(tree, exp.Column) else f"key{i + 1}" for i, tree in enumerate(key_trees)]
    )
    keys = {compared(tree): name for tree, name in zip(key_trees, key_names, strict=True)}
    calls: dict[str, Call] = {}
    taken = {name.lower() for name in key_names}

    def replaced(node: exp.Expression) -> exp.Expression | None:
        if has_subquery(node):
            return replaced_outside_subquery(node, replaced)
        if node.meta.get("resolved") and isinstance(node, exp.Column) and node.name not in scope.copies.values():
            return node
        text = compared(node)
        if text in keys:
            return marked_resolved(column_named(keys[text], node))
        if isinstance(node, exp.Grouping) and len(node.expressions) == 1 and compared(node.expressions[0]) in keys:
            return column_named(_flag(keys[compared(node.expressions[0])])) if len(sets) > 1 else exp.Literal.number(0)
        if aggregate_calls(node) == [node] and not (isinstance(node.parent, exp.Window) and node.arg_key == "this"):
            if text not in calls:
                for inner in node.iter_expressions():
                    if aggregate_calls(inner):
                        if isinstance(node, exp.Filter | exp.WithinGroup) and inner is node.this:
                            continue
                        raise UserError(
                            "nested-aggregate", "an aggregate cannot stand in an aggregate", place=binder.place(inner)
                        )
                calls[text] = _call(node, scope.types, fresh(call_name(node), taken))
            return marked_resolved(column_named(calls[text].name, node))
        if isinstance(node, exp.Column):
            raise UserError(
                "not-grouped",
                f'column "{node.meta.get("written", node.name)}" is neither grouped nor in an aggregate',
                place=binder.place(node),
                hint="Add it to GROUP BY, or put it in an aggregate.",
            )
        return None

    wanted = [unaliased(item) for item in projections]
    if having is not None:
        wanted.append(with_aliases(having.this, projections, scope))
    resolved = [canonical(binder.resolve(tree, scope, nested=True), scope.order) for tree in wanted]
    trees = [replaced_by(tree, replaced) for tree in resolved]
    types = types_of(child)
    named = tuple(Named(name, as_expression(tree, types)) for tree, name in zip(key_trees, key_names, strict=True))
    node = _over_sets(binder, child, named, tuple(calls.values()), sets)
    below = types_of(node)
    return node, [with_safe_division(tree, below) for tree in trees]


def scope_of_groups(scope: Scope, node: Relation) -> Scope:
    """The scope above the groups: only columns that are grouped by still have a meaning there."""
    own = {name.lower(): name for name in names(node)}
    items = [
        Item(
            item.alias,
            {seen: own[inner.lower()] for seen, inner in item.inner.items() if inner.lower() in own},
            item.visible,
        )
        for item in scope.items
    ]
    return Scope(items, types_of(node), scope.outer, copies=scope.copies)


def named_keys(group: exp.Expression | None, scope: Scope) -> dict[str, exp.Expression]:
    """The names that `GROUP BY time / 60 AS tb` gives to its keys, where no column has that name already."""
    visible = {name for item in scope.items for name in item.inner}
    keys = group.expressions if group is not None else []
    return {
        key.alias.lower(): key.this for key in keys if isinstance(key, exp.Alias) and key.alias.lower() not in visible
    }


def with_keys_named(tree: exp.Expression, keys: dict[str, exp.Expression]) -> exp.Expression:
    """Replaces the names that GROUP BY gave to its keys by the keys."""

    def replaced(node: exp.Expression) -> exp.Expression | None:
        known = isinstance(node, exp.Column) and not node.table and node.name.lower() in keys
        return exp.paren(keys[node.name.lower()].copy(), copy=False) if known else None

    if isinstance(tree, exp.Column) and not tree.table and tree.name.lower() in keys:
        return exp.Alias(this=keys[tree.name.lower()].copy(), alias=tree.this.copy())
    return replaced_by(tree.copy(), replaced) if keys else tree


def common_keys(
    binder: Binder, group: exp.Expression | None, projections: list[exp.Expression], scope: Scope
) -> list[exp.Expression]:
    """The keys that every grouping set has."""
    written, sets = grouping_sets(binder, group)
    keys = [binder.resolve(tree, scope) for tree in keys_of_groups(binder, written, group, projections, scope)]
    return [key for position, key in enumerate(keys) if all(position in some for some in sets)]


MOST_SETS = 64
"""So many grouping sets may a query have. Each is an aggregate of its own."""


def grouping_sets(binder: Binder, group: exp.Expression | None) -> tuple[list[exp.Expression], list[frozenset[int]]]:
    """The distinct expressions of GROUP BY, and the grouping sets as sets of their positions."""
    if group is None:
        return [], [frozenset()]
    if group.args.get("totals") or group.args.get("all"):
        raise NotYet("GROUP BY ALL", place=binder.place(group))
    keys: list[exp.Expression] = []

    def position(tree: exp.Expression) -> int:
        tree = unaliased(tree).unnest()
        if tree not in keys:
            keys.append(tree)
        return keys.index(tree)

    def together(tree: exp.Expression) -> frozenset[int]:
        return frozenset(map(position, tree.expressions if isinstance(tree, exp.Tuple) else [tree]))

    _refuse_many_sets(binder, group)
    choices: list[list[frozenset[int]]] = []
    for tree in group.expressions:
        parts = (
            [together(part) for part in tree.expressions]
            if isinstance(tree, exp.Rollup | exp.Cube | exp.GroupingSets)
            else []
        )
        match tree:
            case exp.Rollup():
                choices.append([frozenset().union(*parts[:count]) for count in range(len(parts), -1, -1)])
            case exp.Cube():
                kept = product([True, False], repeat=len(parts))
                choices.append(
                    [frozenset().union(*(p for p, k in zip(parts, some, strict=True) if k)) for some in kept]
                )
            case exp.GroupingSets():
                choices.append(parts)
            case _:
                choices.append([frozenset({position(tree)})])
    sets = [frozenset[int]().union(*chosen) for chosen in product(*choices)]
    everything = frozenset(range(len(keys)))
    if group.args.get("rollup"):
        sets = [frozenset(range(count)) for count in range(len(keys), -1, -1)]
    elif group.args.get("cube"):
        sets = [frozenset(i for i in everything if mask >> i & 1) for mask in range(2 ** len(keys) - 1, -1, -1)]
    elif group.args.get("grouping_sets"):
        raise NotYet("GROUPING SETS behind the keys", place=binder.place(group))
    return keys, sets


def _refuse_many_sets(binder: Binder, group: exp.Expression) -> None:
    """Count the grouping sets before any is made."""
    counts = [1]
    for tree in group.expressions:
        match tree:
            case exp.Rollup():
                counts.append(len(tree.expressions) + 1)
            case exp.Cube():
                counts.append(2 ** len(tree.expressions))
            case exp.GroupingSets():
                counts.append(len(tree.expressions))
    if group.args.get("rollup"):
        counts = [len(group.expressions) + 1]
    elif group.args.get("cube"):
        counts = [2 ** len(group.expressions)]
    if prod(counts) > MOST_SETS and not binder.remembered:
        raise UserError(
            "too-large",
            f"this makes more than {MOST_SETS} grouping sets",
            place=binder.place(group),
            detail="CUBE of n keys makes 2 to the power of n, ROLLUP n + 1, and several of them are multiplied.",
            hint="List those that are needed: GROUPING SETS ((a, b), (a), ()).",
        )


def _over_sets(
    binder: Binder, child: Relation, keys: tuple[Named, ...], calls: tuple[Call, ...], sets: list[frozenset[int]]
) -> Relation:
    """The union of one aggregate for each grouping set."""
    always = binder.catalog.settings.empty_aggregate == "row"
    if sets == [frozenset(range(len(keys)))]:
        return Aggregate(child, keys, calls, row_when_empty=not keys and always)
    parts: list[Relation] = []
    for chosen in sets:
        some = tuple(key for position, key in enumerate(keys) if position in chosen)
        part = Aggregate(child, some, calls, row_when_empty=not some and always)
        shown = [
            Named(k.name, column(part, k.name) if i in chosen else null(k.expression.type)) for i, k in enumerate(keys)
        ]
        flags = [
            Named(_flag(k.name), constant(Sql("0") if i in chosen else Sql("1"), Sql("INT")))
            for i, k in enumerate(keys)
        ]
        parts.append(Project(part, (*shown, *(Named(call.name, column(part, call.name)) for call in calls), *flags)))
    result = parts[0]
    for part_node in parts[1:]:
        result = Union(result, part_node)
    return result


def _flag(key: str) -> str:
    return f"grouping_{key}"


def keys_of_groups(
    binder: Binder,
    written: list[exp.Expression],
    group: exp.Expression | None,
    projections: list[exp.Expression],
    scope: Scope,
) -> list[exp.Expression]:
    """The keys of GROUP BY, with positions and aliases of the select list replaced by their expressions."""
    keys = []
    for tree in written:
        if isinstance(tree, exp.Literal) and not tree.is_string:
            position = int(tree.name) if tree.name.isdigit() else 0
            if not 1 <= position <= len(projections):
                raise UserError(
                    "bad-position",
                    f"GROUP BY {tree.name} is not a position of the select list",
                    place=binder.place(group),
                )
            tree = unaliased(projections[position - 1])
        tree = with_aliases(tree, projections, scope)
        if aggregate_calls(tree):
            raise UserError("aggregate-in-group", "an aggregate cannot be grouped by", place=binder.place(tree))
        keys.append(tree)
    return keys


def with_aliases(tree: exp.Expression, projections: list[exp.Expression], scope: Scope) -> exp.Expression:
    """Replaces aliases of the select list by their expressions, where no column has that name."""
    aliases = {item.alias.lower(): item.this for item in projections if isinstance(item, exp.Alias)}
    visible = {name for item in scope.items for name in item.inner}

    def replaced(node: exp.Expression) -> exp.Expression | None:
        if isinstance(node, exp.Column) and not node.table and node.name.lower() not in visible:
            meant = aliases.get(node.name.lower())
            return meant.copy() if meant is not None else None
        return None

    return replaced_by(tree.copy(), replaced)


def _call(node: exp.Expression, types: Mapping[str, Sql], name: str) -> Call:
    condition = None
    tree = node
    if isinstance(tree, exp.Filter):
        condition = printed(tree.expression.this)
        tree = tree.this
    inner = tree
    while isinstance(inner, exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        inner = inner.this
    function = inner.name.lower() if isinstance(inner, exp.Anonymous) else inner.sql_name().lower()
    given = list(inner.iter_expressions())
    distinct = any(isinstance(argument, exp.Distinct) for argument in given)
    if distinct:
        given = [part for argument in given for part in argument.expressions or [argument]]
    arguments = tuple(as_expression(argument, types) for argument in given if not isinstance(argument, exp.Star))
    whole = as_expression(tree, types)
    read = whole.columns | (read_columns(node.expression) if isinstance(node, exp.Filter) else frozenset())
    outside = bool(inner.meta.get("aggregate"))
    return Call(name, function, whole.sql, whole.type, arguments, distinct, condition, read, outside)
