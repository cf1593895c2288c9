"""Subqueries in expressions, as joins.

    EXISTS, IN, = ANY        a semi-join: the rows that have a partner
    NOT EXISTS, NOT IN, ALL  an anti-join; a partner is whatever does not make the comparison true, unknown included
    a scalar                 one more column: a cross join with the one row, or a join by the outer columns it reads

A correlated scalar is grouped by the distinct values of those columns, and values without rows get what its aggregates
give over nothing. Where a predicate does not stand alone under WHERE it becomes a column of truth values first.

A subquery that is grouped or distinct, or that holds queries which read columns from further out, carries the distinct
values of the outer columns with its own rows (`Carried`), and is tied to the outer query by them alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from headgate.cql.grouping import grouped
from headgate.cql.inputs import From, Scope, from_clause, joins_as_written, scope_of
from headgate.cql.trees import (
    as_expression,
    column_named,
    conjunction,
    conjuncts,
    equalities,
    filtered,
    has_subquery,
    is_aggregate,
    is_predicate,
    marked_resolved,
    read_columns,
    replaced_by,
    types_of,
    unaliased,
)
from headgate.errors import NotYet, Place, UserError
from headgate.plan.derived import anti_join, column, constant, fresh, kept, minus, null, semi_join
from headgate.plan.expressions import Call, Expression, Named
from headgate.plan.nodes import Aggregate, Distinct, Equality, Join, Project, Relation, Union, names
from headgate.sql import BIGINT, BOOLEAN, Sql, literal

if TYPE_CHECKING:
    from headgate.cql.binder import Binder

COUNTS = frozenset({"count", "count_if", "approx_distinct", "approx_count_distinct", "regr_count"})
"""Aggregates that give 0 over no rows; all others give null."""


@dataclass(frozen=True, slots=True)
class SubqueryRows:
    """The rows of a subquery, without its select list, and the conditions that tie it to the outer query."""

    node: Relation
    scope: Scope
    ties: list[exp.Expression]


@dataclass(frozen=True, slots=True)
class Carried:
    """The distinct values of outer columns that a subquery carries with its rows; `copies`: outer name -> own name."""

    relation: Relation
    copies: dict[str, str]


class _FurtherOut(Exception):
    """Raised when a subquery reads columns that the query directly around it does not have."""

    def __init__(self, columns: set[str], place: Place) -> None:
        super().__init__()
        self.columns = columns
        self.place = place


def joined_and_filtered(binder: Binder, source: From, where: list[exp.Expression]) -> Relation:
    """Joins and filters the entries of FROM; conditions with subqueries come last."""
    tied = [condition for condition in source.conditions if has_subquery(condition)]
    if tied and any(entry.kind in ("RIGHT", "FULL") for entry in source.entries):
        raise NotYet("a subquery in ON beside a right or full join", place=binder.place(tied[0]))
    inner = binder.conditions([condition for condition in source.conditions if condition not in tied], source.scope)
    plain = binder.conditions([condition for condition in where if not has_subquery(condition)], source.scope)
    node = joins_as_written(binder, source, inner, plain)
    for condition in (*tied, *(condition for condition in where if has_subquery(condition))):
        node = filtered_by_subquery(binder, node, source.scope, condition)
        binder.refuse_large(node)
    return node


def filtered_by_subquery(binder: Binder, node: Relation, scope: Scope, condition: exp.Expression) -> Relation:
    """Keeps the rows for which a condition with subqueries is true."""
    predicate, negated = condition.unnest(), False
    while isinstance(predicate, exp.Not):
        predicate, negated = predicate.this.unnest(), not negated
    if is_predicate(predicate) and not has_subquery_beside(predicate):
        return _semi_or_anti_join(binder, node, scope, predicate, negated)
    lifted, (tree,) = lift_subqueries(binder, node, scope, [condition])
    return filtered(lifted, [binder.resolve(tree, scope)])


def has_subquery_beside(predicate: exp.Expression) -> bool:
    """Whether the outer side of a predicate, such as the left side of IN, has a subquery of its own."""
    outer = predicate.this if not isinstance(predicate, exp.Exists) else None
    return outer is not None and has_subquery(outer)


def _semi_or_anti_join(
    binder: Binder, node: Relation, scope: Scope, predicate: exp.Expression, negated: bool
) -> Relation:
    """Keep the rows for which the predicate, or its negation, is true."""
    query = _query_of(predicate)
    inner, items = bind_inner(binder, query, scope, node)
    ties, opposite = list(inner.ties), negated
    if not isinstance(predicate, exp.Exists):
        compared = _comparisons(binder, predicate, scope, items)
        if not isinstance(predicate, exp.In) and isinstance(predicate.expression, exp.All):
            # x >= ALL q means that there is no q for which x >= q is not true
            opposite = not negated
            compared = [exp.not_(conjunction(compared))]
        if opposite:  # UNKNOWN counts as a partner
            compared = [exp.Coalesce(this=exp.paren(conjunction(compared)), expressions=[exp.true()])]
        ties += compared
    pairs, used = equalities(node, inner.node, ties)
    rest = [tree for tree in ties if tree not in used]
    reach = {name.lower() for name in (*names(node), *names(inner.node))}
    beyond = {name for tree in rest for name in read_columns(tree)} - reach
    if beyond:
        raise _FurtherOut(beyond, binder.place(predicate))
    types = {**types_of(node), **types_of(inner.node)}
    residual = as_expression(conjunction(rest), types) if rest else None
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


def _comparisons(
    binder: Binder, predicate: exp.Expression, scope: Scope, items: list[exp.Expression]
) -> list[exp.Expression]:
    """The comparisons of the outer values with the subquery's columns, one by one."""
    outer = predicate.this.unnest()
    values = outer.expressions if isinstance(outer, exp.Tuple) else [outer]
    if len(values) != len(items):
        raise UserError(
            "columns-differ",
            f"{len(values)} values are compared with {len(items)} columns of a subquery",
            place=binder.place(predicate),
        )
    kind = exp.EQ if isinstance(predicate, exp.In) else type(predicate)
    return [
        kind(this=binder.resolve(value, scope), expression=item.copy())
        for value, item in zip(values, items, strict=True)
    ]


def bind_inner(
    binder: Binder, query: exp.Expression, scope: Scope, node: Relation
) -> tuple[SubqueryRows, list[exp.Expression]]:
    """Binds a subquery in an expression: its rows with its ties to the outer query, and its select list.

    `node` holds the rows of the outer query.
    """
    if isinstance(query, exp.Select) and not _has_further_clauses(query):
        inner = subquery_rows(binder, query, scope, node)
        expanded = binder.expand(query.expressions, inner.scope)
        return inner, [binder.resolve(unaliased(item), inner.scope) for item in expanded]
    carried = _carry_outer_columns(binder, query, scope, node) if isinstance(query, exp.Select) else None
    relation = binder.bind_within(scope, lambda: binder.relation(query))
    named, (rows,) = binder.bind_within(scope, lambda: scope_of(binder, [("", relation, names(relation))]))
    columns = list(names(rows))
    if carried is None:
        return SubqueryRows(rows, named, []), [column_named(name) for name in columns]
    shown = len(columns) - len(carried.copies)
    ties = [
        exp.NullSafeEQ(this=column_named(copy), expression=column_named(name))
        for copy, name in zip(columns[shown:], carried.copies, strict=True)
    ]
    return SubqueryRows(rows, named, ties), [column_named(name) for name in columns[:shown]]


def _has_further_clauses(query: exp.Select) -> bool:
    """Whether a select has more clauses than a select list, FROM and WHERE, or an aggregate."""
    parts = ("group", "having", "limit", "offset", "distinct", "with_", "qualify")
    return any(query.args.get(part) for part in parts) or _has_aggregate(query)


def _has_aggregate(query: exp.Select) -> bool:
    return any(is_aggregate(node) for item in query.expressions for node in item.walk() if not _is_inside(node, item))


def _carry_outer_columns(binder: Binder, query: exp.Select, scope: Scope, node: Relation) -> Carried | None:
    """Let a grouped or distinct subquery carry the outer columns it reads; None if it reads none."""
    ties = subquery_rows(binder, query, scope, node).ties
    read = {name for tie in ties for name in read_columns(tie)}
    outer = [name for name in names(node) if name.lower() in read]
    if not outer:
        return None
    if (
        query.args.get("limit")
        or query.args.get("offset")
        or not (query.args.get("group") or query.args.get("distinct"))
    ):
        raise NotYet("a correlated subquery of this form", place=binder.place(query))
    carried = carried_columns(scope, node, outer)
    query.meta["carried"] = carried
    copies = [marked_resolved(column_named(copy)) for copy in carried.copies.values()]
    query.set("expressions", [*query.expressions, *(copy.copy() for copy in copies)])
    if query.args.get("group"):
        query.args["group"].set("expressions", [*query.args["group"].expressions, *(copy.copy() for copy in copies)])
    return carried


def carried_columns(scope: Scope, node: Relation, outer: list[str]) -> Carried:
    """The distinct values of some columns of the outer query, renamed so that a subquery can carry them."""
    taken = scope.inner_names() | {name.lower() for name in names(node)}
    copies = {name: fresh(f"of_{name}", taken) for name in outer}
    values = Project(node, tuple(Named(copy, column(node, name)) for name, copy in copies.items()))
    return Carried(Distinct(values), copies)


def _is_inside(node: exp.Expression, item: exp.Expression) -> bool:
    """Whether a node belongs to a query nested in the item."""
    parent = node.parent
    while parent is not None and parent is not item.parent:
        if isinstance(parent, exp.Select):
            return True
        parent = parent.parent
    return False


def subquery_rows(binder: Binder, query: exp.Select, scope: Scope, around: Relation) -> SubqueryRows:
    """Binds FROM and WHERE of a subquery; conditions that read outer columns are left as ties."""
    binder.refuse_unsupported(query)

    def bound() -> SubqueryRows:
        source = from_clause(binder, query)
        where = query.args.get("where")
        every = [
            *source.conditions,
            *(map(binder.with_relation_names_expanded, conjuncts(where.this)) if where else []),
        ]
        own = {name.lower() for entry in source.entries for name in names(entry.node)}
        own |= {name.lower() for lateral in source.laterals for name in lateral.columns}
        ties: list[exp.Expression] = []
        local: list[exp.Expression] = []
        for condition in every:
            if has_subquery(condition):
                local.append(condition)
                continue
            resolved = binder.resolve(condition, source.scope)
            (local if read_columns(resolved) <= own else ties).append(condition)
        if ties and any(entry.kind in ("RIGHT", "FULL") for entry in source.entries):
            raise NotYet("a correlated subquery with a right or full join", place=binder.place(query))
        source.conditions.clear()
        node = joined_and_filtered(binder, source, local)
        tied = [binder.resolve(tie, source.scope) for tie in ties]
        carried = query.meta.get("carried")
        for name, copy in carried.copies.items() if carried is not None else ():
            tied.append(exp.NullSafeEQ(this=column_named(copy), expression=column_named(name)))
        return SubqueryRows(node, source.scope, tied)

    try:
        return binder.bind_within(scope, bound)
    except _FurtherOut as further:
        outer = [name for name in names(around) if name.lower() in further.columns]
        if {name.lower() for name in outer} != further.columns or query.meta.get("carried") is not None:
            if scope.outer is None:
                raise NotYet("a subquery that reads these columns from further out", place=further.place) from None
            raise
        query.meta["carried"] = carried_columns(scope, around, outer)
        return binder.bind_within(scope, bound)


# subqueries as columns


def lift_subqueries(
    binder: Binder, node: Relation, scope: Scope, trees: list[exp.Expression]
) -> tuple[Relation, list[exp.Expression]]:
    """Replaces the subqueries in expressions by columns that hold their values."""
    current = node

    def replaced(tree: exp.Expression) -> exp.Expression | None:
        nonlocal current
        negated = isinstance(tree, exp.Not) and is_predicate(tree.this.unnest())
        predicate = tree.this.unnest() if negated else tree
        if is_predicate(predicate):
            if isinstance(predicate, exp.Exists) or _only_truth_matters(tree):
                current, name = _with_truth_column(binder, current, scope, predicate, negated)
                return marked_resolved(column_named(name))
            current, true = _with_truth_column(binder, current, scope, predicate, negated)
            current, false = _with_truth_column(binder, current, scope, predicate, not negated)
            return exp.Case(
                ifs=[
                    exp.If(this=marked_resolved(column_named(true)), true=exp.true()),
                    exp.If(this=marked_resolved(column_named(false)), true=exp.false()),
                ],
                default=exp.null(),
            )
        if isinstance(tree, exp.Subquery):
            current, name = _with_scalar_column(binder, current, scope, tree.unnest())
            return marked_resolved(column_named(name))
        return None

    lifted = [replaced_by(tree.copy(), replaced) for tree in trees]
    scope.types.update(types_of(current))
    return current, lifted


def _only_truth_matters(tree: exp.Expression) -> bool:
    """Whether UNKNOWN may count as FALSE here: in a condition, under nothing but AND and OR."""
    parent = tree.parent
    while isinstance(parent, exp.And | exp.Or | exp.Paren):
        parent = parent.parent
    return parent is None or isinstance(parent, exp.Where | exp.Having)


def _fresh_name(node: Relation, hint: str) -> str:
    return fresh(f"{hint}1", {name.lower() for name in names(node)})


def _with_truth_column(
    binder: Binder, node: Relation, scope: Scope, predicate: exp.Expression, negated: bool
) -> tuple[Relation, str]:
    """The node with one more column, which says whether the predicate is true, and that column's name."""
    name = _fresh_name(node, "holds")
    true = _semi_or_anti_join(binder, node, scope, predicate.copy(), negated)
    false = minus(node, true)
    return Union(_with(true, name, Sql("TRUE")), _with(false, name, Sql("FALSE"))), name


def _with(node: Relation, name: str, truth: Sql) -> Relation:
    return Project(
        node, (*(Named(own, column(node, own)) for own in names(node)), Named(name, constant(truth, BOOLEAN)))
    )


def _with_scalar_column(binder: Binder, node: Relation, scope: Scope, query: exp.Expression) -> tuple[Relation, str]:
    """The node with one more column, the value of a scalar subquery, and that column's name."""
    name = _fresh_name(node, "scalar")
    if isinstance(query, exp.Select) and (_is_total(query) or not _has_further_clauses(query)):
        inner = subquery_rows(binder, query, scope, node)
        if inner.ties:
            one = query if _is_total(query) else _as_one_row(query, inner, binder)
            return _correlated_total(binder, node, scope, one, inner, name), name
    value, _ = binder.bind_within(scope, lambda: scalar_row(binder, query, name))
    return Join(node, value, (), None), name


def scalar_row(binder: Binder, query: exp.Expression, name: str = "scalar1") -> tuple[Relation, str]:
    """The one row that a query for a single value has at every instant; null where the query has no row."""
    value = binder.relation(query)
    if len(value.columns) != 1:
        raise UserError(
            "columns-differ",
            f"a subquery that stands for a value has {len(value.columns)} columns",
            place=binder.place(query),
        )
    single = value if isinstance(query, exp.Select) and _is_total(query) else _at_most_one(value)
    return Project(single, (Named(name, column(single, names(single)[0])),)), name


MORE_THAN_ONE = "a subquery that stands for a value has more than one row"


def _as_one_row(query: exp.Select, inner: SubqueryRows, binder: Binder) -> exp.Select:
    """The query as an aggregate over its rows, which fails if there is more than one."""
    items = binder.expand(query.expressions, inner.scope)
    if len(items) != 1:
        raise UserError(
            "columns-differ", f"a subquery that stands for a value has {len(items)} columns", place=binder.place(query)
        )
    complaint: exp.Expression = exp.Anonymous(this="RAISE_ERROR", expressions=[exp.Literal.string(MORE_THAN_ONE)])
    kind = as_expression(binder.resolve(unaliased(items[0]), inner.scope), inner.scope.types).type
    if kind != "UNKNOWN":  # the value has the type of the column, which division must know
        complaint = exp.cast(complaint, kind)
    several = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
    value = exp.Case(ifs=[exp.If(this=several, true=complaint)], default=exp.Max(this=unaliased(items[0]).copy()))
    return exp.Select(expressions=[value])


def _is_total(query: exp.Select) -> bool:
    """Whether the query is an aggregate without GROUP BY: it always has one row."""
    if query.args.get("group") or query.args.get("having"):
        return False
    return _has_aggregate(query)


def _at_most_one(value: Relation) -> Relation:
    """The only row of a relation, or nulls if it has none; several rows are an error at run time, as in SQL."""
    (name,) = names(value)
    own = column(value, name)
    counted = Aggregate(
        value,
        (),
        (
            Call("rows", "count", Sql("COUNT(*)"), BIGINT, (), False, None, frozenset()),
            Call("one", "max", f"MAX({own.sql})", own.type, (own,), False, None, own.columns),
        ),
        row_when_empty=True,
    )
    checked = f"CASE WHEN rows > 1 THEN RAISE_ERROR({literal(MORE_THAN_ONE)}) ELSE one END"
    return Project(counted, (Named(name, Expression(checked, own.type, frozenset({"rows", "one"}))),))


def _correlated_total(
    binder: Binder, node: Relation, scope: Scope, query: exp.Select, inner: SubqueryRows, name: str
) -> Relation:
    """The node with one value for each combination of the outer columns that the subquery reads."""
    read = {column for tie in inner.ties for column in read_columns(tie)} - {own.lower() for own in names(inner.node)}
    outer = tuple(own for own in names(node) if own.lower() in read)
    if {own.lower() for own in outer} != read:
        raise _FurtherOut(read - {own.lower() for own in outer}, binder.place(query))
    given = Distinct(kept(node, outer))
    pairs, used = equalities(given, inner.node, inner.ties)
    rest = [tie for tie in inner.ties if tie not in used]
    types = {**types_of(given), **types_of(inner.node)}
    matched = Join(given, inner.node, tuple(pairs), as_expression(conjunction(rest), types) if rest else None)
    total, items = binder.bind_within(
        scope, lambda: grouped(binder, matched, inner.scope, query.expressions, None, None)
    )
    if not isinstance(total, Aggregate):
        raise NotYet("a subquery in a correlated subquery's select list", place=binder.place(query))
    keys = tuple(Named(own, column(given, own)) for own in outer)
    by_key = Aggregate(matched, keys, total.calls, row_when_empty=False)
    same = tuple(Equality(column(given, own), column(by_key, own), null_safe=True) for own in outer)
    without = anti_join(given, by_key, same, None)
    nothing = tuple(
        Named(call.name, constant(Sql("0"), BIGINT) if call.function in COUNTS else null(call.type))
        for call in total.calls
    )
    complete = Union(by_key, Project(without, (*keys, *nothing)))
    value, *more = items
    if more:
        raise UserError(
            "columns-differ", "a subquery that stands for a value has more than one column", place=binder.place(query)
        )
    renamed = tuple(Named(f"of_{own}", column(complete, own)) for own in outer)
    values = Project(complete, (*renamed, Named(name, as_expression(value, types_of(complete)))))
    tied = tuple(Equality(column(node, own), column(values, f"of_{own}"), null_safe=True) for own in outer)
    return kept(Join(node, values, tied, None), (*names(node), name))
