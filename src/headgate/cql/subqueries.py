"""Subqueries in expressions, as joins.

    EXISTS, IN, = ANY        a semi-join: the rows that have a partner
    NOT EXISTS, NOT IN, ALL  an anti-join; a partner is whatever does not make the comparison true, unknown included
    a scalar                 one more column: a cross join with the one row, or a join by the outer columns it reads

A correlated scalar is grouped by the distinct values of those columns, and values without rows get what its aggregates give
over nothing. Where a predicate does not stand alone under WHERE it becomes a column of truth values first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from headgate.cql.grouping import grouped
from headgate.cql.trees import (
    as_expression,
    column_named,
    conjuncts,
    fresh,
    is_aggregate,
    read_columns,
    replaced_by,
    types_of,
    unaliased,
)
from headgate.errors import NotYet, UserError
from headgate.plan.derived import anti_join, column, constant, kept, null, semi_join
from headgate.plan.expressions import Call, Expression, Named
from headgate.plan.nodes import Aggregate, Distinct, Equality, Join, Project, Relation, Union, names

if TYPE_CHECKING:
    from headgate.cql.binder import Scope, _Binder

COUNTS = frozenset({"count", "count_if", "approx_distinct", "approx_count_distinct", "regr_count"})
"""Aggregates that give 0 over nothing; all others give null."""


@dataclass(frozen=True, slots=True)
class Inner:
    """A subquery without its select list: its rows, and the conditions that tie it to the outer query."""

    node: Relation
    scope: Scope
    ties: list[exp.Expression]


def has_subquery(tree: exp.Expression) -> bool:
    return tree.find(exp.Subquery, exp.Select, exp.Exists, exp.SetOperation) is not None


def filter_by(binder: _Binder, node: Relation, scope: Scope, condition: exp.Expression) -> Relation:
    """The rows of the node for which a condition with subqueries is true."""
    predicate, negated = condition.unnest(), False
    while isinstance(predicate, exp.Not):
        predicate, negated = predicate.this.unnest(), not negated
    if _is_predicate(predicate) and not has_subquery_beside(predicate):
        return _partnered(binder, node, scope, predicate, negated)
    lifted, (tree,) = lift(binder, node, scope, [condition])
    return binder.filtered_by(lifted, [binder.resolve(tree, scope)])


def has_subquery_beside(predicate: exp.Expression) -> bool:
    """Whether the outer side of a predicate has a subquery of its own."""
    outer = predicate.this if not isinstance(predicate, exp.Exists) else None
    return outer is not None and has_subquery(outer)


def _is_predicate(tree: exp.Expression) -> bool:
    match tree:
        case exp.Exists():
            return True
        case exp.In():
            return tree.args.get("query") is not None
        case exp.EQ() | exp.NEQ() | exp.GT() | exp.GTE() | exp.LT() | exp.LTE():
            return isinstance(tree.expression, exp.All | exp.Any)
        case _:
            return False


def _partnered(binder: _Binder, node: Relation, scope: Scope, predicate: exp.Expression, negated: bool) -> Relation:
    """The node's rows for which the predicate is true (or its negation is)."""
    query = _query_of(predicate)
    inner, items = bind_inner(binder, query, scope)
    ties, opposite = list(inner.ties), negated
    if not isinstance(predicate, exp.Exists):
        compared = _compared(binder, predicate, scope, items)
        if not isinstance(predicate, exp.In) and isinstance(
            predicate.expression, exp.All
        ):  # x >= ALL q: no q for which x >= q is not true
            opposite = not negated
            compared = [exp.not_(exp.and_(*compared, copy=True))]
        if opposite:  # what is unknown counts against it
            compared = [exp.Coalesce(this=exp.paren(exp.and_(*compared, copy=True)), expressions=[exp.true()])]
        ties += compared
    pairs, used = binder.equalities(node, inner.node, ties)
    rest = [tree for tree in ties if tree not in used]
    reach = {name.lower() for name in (*names(node), *names(inner.node))}
    if any(not read_columns(tree) <= reach for tree in rest):
        raise NotYet("a subquery that reads columns from two levels up", place=binder.place(predicate))
    types = {**types_of(node), **types_of(inner.node)}
    residual = as_expression(exp.and_(*rest, copy=True), types) if rest else None
    joined = anti_join if opposite else semi_join
    return joined(node, inner.node, tuple(pairs), residual)


def _query_of(predicate: exp.Expression) -> exp.Expression:
    match predicate:
        case exp.Exists():
            query = predicate.this
        case exp.In():
            query = predicate.args["query"]
        case _:
            query = predicate.expression.this
    return query.unnest() if isinstance(query, exp.Subquery) and not query.args.get("window") else query


def _compared(binder: _Binder, predicate: exp.Expression, scope: Scope, items: list[exp.Expression]) -> list[exp.Expression]:
    """The comparison of the outer values with the subquery's, value by value."""
    outer = predicate.this.unnest()
    values = outer.expressions if isinstance(outer, exp.Tuple) else [outer]
    if len(values) != len(items):
        raise UserError(
            "columns-differ",
            f"{len(values)} values are compared with {len(items)} columns of a subquery",
            place=binder.place(predicate),
        )
    kind = exp.EQ if isinstance(predicate, exp.In) else type(predicate)
    return [kind(this=binder.resolve(value, scope), expression=item.copy()) for value, item in zip(values, items, strict=True)]


def bind_inner(binder: _Binder, query: exp.Expression, scope: Scope) -> tuple[Inner, list[exp.Expression]]:
    """A subquery's rows, its ties to the outer query, and its select list over those rows."""
    plain = isinstance(query, exp.Select) and not any(
        query.args.get(part) for part in ("group", "having", "limit", "offset", "distinct", "with_", "qualify")
    )
    if plain and not any(is_aggregate(node) for item in query.expressions for node in item.walk() if not _inside(node, item)):
        inner = rows_of(binder, query, scope)
        expanded = binder.expand(query.expressions, inner.scope)
        return inner, [binder.resolve(unaliased(item), inner.scope) for item in expanded]
    relation = binder.within(scope, lambda: binder.relation(query))
    named = binder.within(scope, lambda: binder.scope([("", relation, names(relation))]))
    node = named.items[0].node
    return Inner(node, named, []), [column_named(name) for name in names(node)]


def _inside(node: exp.Expression, item: exp.Expression) -> bool:
    """Whether a node belongs to a query inside the item."""
    parent = node.parent
    while parent is not None and parent is not item.parent:
        if isinstance(parent, exp.Select):
            return True
        parent = parent.parent
    return False


def rows_of(binder: _Binder, query: exp.Select, scope: Scope) -> Inner:
    """FROM and WHERE of a subquery; conditions that read outer columns are left as ties."""
    binder.refuse(query)

    def bound() -> Inner:
        inner_scope, conditions, outer = binder.from_clause(query)
        where = query.args.get("where")
        every = [*conditions, *(conjuncts(where.this) if where else [])]
        own = {name.lower() for item in inner_scope.items for name in names(item.node)}
        ties: list[exp.Expression] = []
        local: list[exp.Expression] = []
        for condition in every:
            if has_subquery(condition):
                local.append(condition)
                continue
            resolved = binder.resolve(condition, inner_scope)
            (local if read_columns(resolved) <= own else ties).append(condition)
        if any(outer) and ties:
            raise NotYet("a correlated subquery with an outer join", place=binder.place(query))
        node = binder.inputs(inner_scope, [], outer, local)
        return Inner(node, inner_scope, [binder.resolve(tie, inner_scope) for tie in ties])

    return binder.within(scope, bound)


# subqueries as columns


def lift(binder: _Binder, node: Relation, scope: Scope, trees: list[exp.Expression]) -> tuple[Relation, list[exp.Expression]]:
    """The node with a column for each subquery in the trees, and the trees reading those columns."""
    current = node

    def replaced(tree: exp.Expression) -> exp.Expression | None:
        nonlocal current
        negated = isinstance(tree, exp.Not) and _is_predicate(tree.this.unnest())
        predicate = tree.this.unnest() if negated else tree
        if _is_predicate(predicate):
            if isinstance(predicate, exp.Exists) or _only_truth_matters(tree):
                current, name = _marked(binder, current, scope, predicate, negated)
                return _ready(name)
            current, true = _marked(binder, current, scope, predicate, negated)
            current, false = _marked(binder, current, scope, predicate, not negated)
            return exp.Case(
                ifs=[exp.If(this=_ready(true), true=exp.true()), exp.If(this=_ready(false), true=exp.false())], default=exp.null()
            )
        if isinstance(tree, exp.Subquery):
            current, name = _scalar(binder, current, scope, tree.unnest())
            return _ready(name)
        return None

    lifted = [replaced_by(tree.copy(), replaced) for tree in trees]
    scope.types.update(types_of(current))
    return current, lifted


def _only_truth_matters(tree: exp.Expression) -> bool:
    """Whether unknown may be taken for false here: under nothing but AND and OR of a condition."""
    parent = tree.parent
    while isinstance(parent, exp.And | exp.Or | exp.Paren):
        parent = parent.parent
    return parent is None or isinstance(parent, exp.Where | exp.Having)


def _ready(name: str) -> exp.Column:
    ready = column_named(name)
    ready.meta["resolved"] = True
    return ready


def _fresh_name(node: Relation, hint: str) -> str:
    return fresh(f"{hint}1", {name.lower() for name in names(node)})


def _marked(binder: _Binder, node: Relation, scope: Scope, predicate: exp.Expression, negated: bool) -> tuple[Relation, str]:
    """The node with a column that says whether the predicate is true."""
    name = _fresh_name(node, "holds")
    true = _partnered(binder, node, scope, predicate, negated)
    false = Union(node, binder.taken_away(true))
    return Union(_with(true, name, "TRUE"), _with(false, name, "FALSE")), name


def _with(node: Relation, name: str, truth: str) -> Relation:
    return Project(node, (*(Named(own, column(node, own)) for own in names(node)), Named(name, constant(truth, "BOOLEAN"))))


def _scalar(binder: _Binder, node: Relation, scope: Scope, query: exp.Expression) -> tuple[Relation, str]:
    """The node with a column that holds the value of a scalar subquery."""
    name = _fresh_name(node, "scalar")
    if isinstance(query, exp.Select) and _is_total(query):
        inner = rows_of(binder, query, scope)
        if inner.ties:
            return _correlated_total(binder, node, scope, query, inner, name), name
    value = binder.within(scope, lambda: binder.relation(query))
    if len(value.columns) != 1:
        raise UserError(
            "columns-differ", f"a subquery that stands for a value has {len(value.columns)} columns", place=binder.place(query)
        )
    single = value if isinstance(query, exp.Select) and _is_total(query) else _at_most_one(value)
    one = Project(single, (Named(name, column(single, names(single)[0])),))
    return Join(node, one, (), None), name


def _is_total(query: exp.Select) -> bool:
    """Whether the query is an aggregate without GROUP BY: it always has one row."""
    if query.args.get("group") or query.args.get("having"):
        return False
    return any(is_aggregate(node) for item in query.expressions for node in item.walk() if not _inside(node, item))


def _at_most_one(value: Relation) -> Relation:
    """The one row of a relation, null if it has none; more than one is an error when it happens, as in SQL."""
    (name,) = names(value)
    own = column(value, name)
    counted = Aggregate(
        value,
        (),
        (
            Call("rows", "count", "COUNT(*)", "BIGINT", None, False, None, frozenset()),
            Call("one", "any_value", f"MAX({own.sql})", own.type, own, False, None, own.columns),
        ),
        row_when_empty=True,
    )
    checked = "CASE WHEN rows > 1 THEN RAISE_ERROR('a subquery that stands for a value has more than one row') ELSE one END"
    return Project(counted, (Named(name, Expression(checked, own.type, frozenset({"rows", "one"}))),))


def _correlated_total(binder: _Binder, node: Relation, scope: Scope, query: exp.Select, inner: Inner, name: str) -> Relation:
    """One value for each combination of the outer columns the subquery reads."""
    read = {column for tie in inner.ties for column in read_columns(tie)} - {own.lower() for own in names(inner.node)}
    outer = tuple(own for own in names(node) if own.lower() in read)
    if {own.lower() for own in outer} != read:
        raise NotYet("a subquery that reads columns from two levels up", place=binder.place(query))
    given = Distinct(kept(node, outer))
    pairs, used = binder.equalities(given, inner.node, inner.ties)
    rest = [tie for tie in inner.ties if tie not in used]
    types = {**types_of(given), **types_of(inner.node)}
    matched = Join(given, inner.node, tuple(pairs), as_expression(exp.and_(*rest, copy=True), types) if rest else None)
    total, items = binder.within(scope, lambda: grouped(binder, matched, inner.scope, query.expressions, None, None))
    assert isinstance(total, Aggregate)
    keys = tuple(Named(own, column(given, own)) for own in outer)
    by_key = Aggregate(matched, keys, total.calls, row_when_empty=False)
    same = tuple(Equality(column(given, own), column(by_key, own), null_safe=True) for own in outer)
    without = anti_join(given, by_key, same, None)
    nothing = tuple(
        Named(call.name, constant("0", "BIGINT") if call.function in COUNTS else null(call.type)) for call in total.calls
    )
    complete = Union(by_key, Project(without, (*keys, *nothing)))
    (value, _), *more = items
    if more:
        raise UserError(
            "columns-differ", "a subquery that stands for a value has more than one column", place=binder.place(query)
        )
    renamed = tuple(Named(f"of_{own}", column(complete, own)) for own in outer)
    values = Project(complete, (*renamed, Named(name, as_expression(value, types_of(complete)))))
    tied = tuple(Equality(column(node, own), column(values, f"of_{own}"), null_safe=True) for own in outer)
    return kept(Join(node, values, tied, None), (*names(node), name))
