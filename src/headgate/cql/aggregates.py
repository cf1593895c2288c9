"""Aggregates in the form in which the rules know them: each function's meaning fixed, also where SQL leaves it open.

    FIRST(x), ANY_VALUE(x), LAST(x)   MIN_BY and MAX_BY in the order of the stream, or of the values where there is none
    MAX_BY(x, y), MIN_BY(x, y)        of the rows with the same y, the one with the largest or smallest x
    COLLECT_LIST(x), LISTAGG(x)       in that order too; COLLECT_SET(x) by value
    BOOL_AND(x), BOOL_OR(x)           MIN and MAX; COUNT_IF(x) is COUNT with a FILTER

An answer must not depend on how time was cut, so what is open in SQL cannot stay open here.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headgate.cql.trees import aggregate_calls, column_named, replaced_by

SYNONYMS = {"mean": exp.Avg, "std": exp.Stddev, "every": exp.Min, "some": exp.Max}


def canonical(tree: exp.Expression, order: Sequence[str]) -> exp.Expression:
    """Rewrites every aggregate of an expression to its canonical form; `order` names the columns with stream order."""

    def replaced(node: exp.Expression) -> exp.Expression | None:
        if isinstance(node, exp.Window | exp.Subquery | exp.Select):
            return node
        if aggregate_calls(node) == [node]:
            return _canonical(node, order)
        return None

    return replaced_by(tree.copy(), replaced)


def _canonical(call: exp.Expression, order: Sequence[str]) -> exp.Expression:
    condition = call.expression.this if isinstance(call, exp.Filter) else None
    inner = call.this if isinstance(call, exp.Filter) else call
    ignoring = isinstance(inner, exp.IgnoreNulls)
    function = inner.this if isinstance(inner, exp.IgnoreNulls | exp.RespectNulls) else inner
    match function:
        case exp.Anonymous() if function.name.lower() in SYNONYMS:
            return _filtered(SYNONYMS[function.name.lower()](this=function.expressions[0].copy()), condition)
        case exp.LogicalAnd():
            return _filtered(exp.Min(this=function.this.copy()), condition)
        case exp.LogicalOr():
            return _filtered(exp.Max(this=function.this.copy()), condition)
        case exp.CountIf():
            return _filtered(exp.Count(this=exp.Star()), _and(condition, function.this))
        case exp.First() | exp.FirstValue() | exp.AnyValue():
            return _filtered(
                exp.ArgMin(this=function.this.copy(), expression=_position(function.this, order, ignoring)), condition
            )
        case exp.Last() | exp.LastValue():
            return _filtered(
                exp.ArgMax(this=function.this.copy(), expression=_position(function.this, order, ignoring)), condition
            )
        case exp.ArgMax() | exp.ArgMin() if not isinstance(function.expression, exp.Case) and not function.args.get(
            "count"
        ):
            key = _unless_null(
                function.expression, exp.Struct(expressions=[function.expression.copy(), *_sort_keys(function.this)])
            )
            return _filtered(type(function)(this=function.this.copy(), expression=key), condition)
        case exp.ArrayAgg() if not isinstance(function.this, exp.Distinct | exp.Order):
            return _ordered_list(function.this, order, condition)
        case exp.ArrayUniqueAgg():
            return exp.Anonymous(this="SORT_ARRAY", expressions=[call.copy()])
        case exp.GroupConcat() if not isinstance(function.this, exp.Distinct | exp.Order):
            some = exp.GT(
                this=_filtered(exp.Count(this=function.this.copy()), condition), expression=exp.Literal.number(0)
            )
            separator = function.args.get("separator") or exp.Literal.string("")
            joined = exp.Anonymous(
                this="ARRAY_JOIN", expressions=[_ordered_list(function.this, order, condition), separator.copy()]
            )
            return exp.Case(ifs=[exp.If(this=some, true=joined)])
        case _:
            return call.copy()


def _filtered(call: exp.Expression, condition: exp.Expression | None) -> exp.Expression:
    return call if condition is None else exp.Filter(this=call, expression=exp.Where(this=condition.copy()))


def _and(one: exp.Expression | None, two: exp.Expression) -> exp.Expression:
    return two.copy() if one is None else exp.and_(one.copy(), two.copy())


def _sort_keys(tree: exp.Expression) -> list[exp.Expression]:
    """The sort keys of a value, by which null comes before all others on every engine."""
    return [exp.not_(exp.Is(this=tree.copy(), expression=exp.null())), tree.copy()]


def _position(tree: exp.Expression, order: Sequence[str], ignoring: bool) -> exp.Expression:
    """The position of a row in the order of the stream, then by value."""
    place = exp.Struct(expressions=[*(column_named(name) for name in order), *_sort_keys(tree)])
    return _unless_null(tree, place) if ignoring else place


def _unless_null(tree: exp.Expression, value: exp.Expression) -> exp.Expression:
    """The value if the tree is not null, otherwise null."""
    return exp.Case(ifs=[exp.If(this=exp.not_(exp.Is(this=tree.copy(), expression=exp.null())), true=value)])


def _ordered_list(tree: exp.Expression, order: Sequence[str], condition: exp.Expression | None) -> exp.Expression:
    given = _and(condition, exp.not_(exp.Is(this=tree.copy(), expression=exp.null())))
    if not order:
        return exp.Anonymous(this="SORT_ARRAY", expressions=[_filtered(exp.ArrayAgg(this=tree.copy()), given)])
    row = exp.Struct(expressions=[*(column_named(name) for name in order), exp.alias_(tree.copy(), "v")])
    rows = exp.Anonymous(this="SORT_ARRAY", expressions=[_filtered(exp.ArrayAgg(this=row), given)])
    field = exp.Dot(this=exp.to_identifier("e"), expression=exp.to_identifier("v"))
    return exp.Anonymous(
        this="TRANSFORM", expressions=[rows, exp.Lambda(this=field, expressions=[exp.to_identifier("e")])]
    )


def depends_on_order(tree: exp.Expression) -> bool:
    """Whether an aggregate of the query depends on the order of its rows, as FIRST or COLLECT_LIST do."""
    found = (exp.First, exp.FirstValue, exp.AnyValue, exp.Last, exp.LastValue, exp.ArrayAgg, exp.GroupConcat)
    return any(
        isinstance(call, found)
        for item in (*tree.expressions, tree.args.get("having"))
        if item
        for call in item.find_all(*found)
    )
