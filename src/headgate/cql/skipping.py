"""ON ERROR SKIP: rows whose own evaluation fails are left out, by a rewrite of the plan.

Where an operator evaluates an expression that may raise an error, a projection below it evaluates it first, in a form
that gives null instead, and a filter keeps the rows for which that is not null. What stands above reads columns only:

    π[CAST(k AS INT) AS v] R   =   π[tried.e0 AS v] σ[tried IS NOT NULL] π[*, tried] R
                                   where tried = HEADGATE_TRY(STRUCT(CAST(k AS INT) AS e0))

The struct tells a value that is null from one that failed. So a row is left out or not by what it is, whatever comes
with it, and however time is cut into epochs. The rows that a filter leaves out are the stream ERRORS(q).

An operator above a join evaluates pairs, one above an aggregate the rows of groups: there, what is left out is a pair
or the row of a group. An expression that cannot fail stays as it is, so that all rules still know it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from headgate.cql.infallible import INTEGERS, alike, cannot_fail
from headgate.plan.derived import fresh, kept
from headgate.plan.expressions import Call, Expression, Named
from headgate.plan.left_out import LeftOut, failed, tried
from headgate.plan.nodes import (
    Aggregate,
    Equality,
    Exploded,
    Filter,
    Join,
    Node,
    Project,
    Ranked,
    Relation,
    names,
)
from headgate.plan.nodes.operator import column_of
from headgate.plan.rewrites.substitution import conjunction, conjuncts, reads
from headgate.plan.tree import everywhere
from headgate.sql import BIGINT, BOOLEAN, DOUBLE, UNKNOWN, Sql, spelled
from headgate.sql.printer import compared, printed
from headgate.sql.reading import parsed

WIDE = Sql("DECIMAL(20, 0)")
"""The sum of any number of BIGINT fits into Spark's sum of this type."""


@dataclass(frozen=True, slots=True)
class Skipping:
    """A plan that leaves out rows that cannot be evaluated, and what it leaves out."""

    plan: Node
    left_out: tuple[LeftOut, ...]
    """Nothing if nothing in the plan can fail."""


def skipping(plan: Node) -> Skipping:
    """The plan that answers as this one does, without the rows whose own evaluation fails."""
    rewriting = _Rewriting()
    found = everywhere(plan, rewriting.change)
    return Skipping(found, tuple(dict.fromkeys(rewriting.left_out)))


class _Rewriting:
    """Rewrites node by node, and notes what is left out."""

    def __init__(self) -> None:
        self.left_out: list[LeftOut] = []

    def change(self, node: Node) -> Node | None:
        """The node over rows that it can evaluate; None if it can evaluate all."""
        match node:
            case Filter():
                return self._filter(node)
            case Project():
                over, values = self._tried(node.child, [item.expression for item in node.items], "select list")
                items = zip(node.items, values, strict=True)
                return replace(node, child=over, items=tuple(Named(item.name, value) for item, value in items))
            case Join():
                return self._join(node)
            case Aggregate():
                return self._aggregate(node)
            case Ranked():
                texts = _in_windows([item.expression.sql for item in node.items], _types(node.child))
                return self._texts(node, texts, "OVER")
            case Exploded():
                texts = _arguments(node.generator.sql, _types(node.child))
                return self._texts(node, texts, "LATERAL VIEW")
        return None

    def _tried(
        self, child: Relation, expressions: Sequence[Expression], operator: str, taken: Iterable[str] = ()
    ) -> tuple[Relation, list[Expression]]:
        """The rows for which all expressions evaluate, and the expressions as columns where they may fail."""
        types = _types(child)
        risky = list(dict.fromkeys(one for one in expressions if not cannot_fail(one.sql, types)))
        if not risky:
            return child, list(expressions)
        own = tuple(Named(column.name, column_of(column.name, column.type)) for column in child.columns)
        name = fresh("tried", {*_lower(names(child)), *(one.lower() for one in taken)})
        every = Project(child, (*own, Named(name, tried(risky))))
        self.left_out.append(LeftOut(every, name, child.columns, tuple(risky), operator))
        evaluated = Filter(every, failed(name, is_so=False))
        values = {
            one: Expression(f"{spelled(name)}.e{number}", one.type, _lower([name])) for number, one in enumerate(risky)
        }
        return evaluated, [values.get(one, one) for one in expressions]

    def _as_columns(
        self, child: Relation, expressions: Sequence[Expression], operator: str, taken: Iterable[str] = ()
    ) -> tuple[Relation, list[Expression]]:
        """The same, each value that may have failed in a column of its own beside those of the child."""
        over, values = self._tried(child, expressions, operator, taken)
        if over is child:
            return child, values
        used, items = {*_lower(names(over)), *(one.lower() for one in taken)}, dict[Expression, Named]()
        for before, value in zip(expressions, values, strict=True):
            if value is not before and before not in items:
                items[before] = Named(fresh("value", used), value)
        own = (Named(column.name, column_of(column.name, column.type)) for column in child.columns)
        columns = {before: column_of(item.name, item.expression.type) for before, item in items.items()}
        return Project(over, (*own, *items.values())), [columns.get(one, one) for one in expressions]

    def _filter(self, node: Filter, operator: str = "WHERE") -> Relation | None:
        """Conditions that cannot fail come first: rows that they leave out are not evaluated any further."""
        types, parts = _types(node.child), conjuncts(node.condition)
        safe = [part for part in parts if cannot_fail(part.sql, types)]
        if len(safe) == len(parts):
            return None
        child = Filter(node.child, conjunction(safe)) if safe else node.child
        risky = conjunction([part for part in parts if part not in safe])
        over, (value,) = self._tried(child, [risky], operator)
        return kept(Filter(over, value), names(node))

    def _join(self, node: Join) -> Relation | None:
        """Each side without the rows whose own keys fail, then the pairs for which the condition evaluates."""
        compared = [_compared(one) for one in node.equalities]
        equal = [one for one in compared if isinstance(one, Equality)]
        parts = [one for one in compared if isinstance(one, Expression)]
        parts += [] if node.condition is None else conjuncts(node.condition)
        left, ours = self._as_columns(node.left, [one.left for one in equal], "ON", names(node.right))
        right, theirs = self._as_columns(node.right, [one.right for one in equal], "ON", names(left))
        sides = zip(equal, ours, theirs, strict=True)
        safe = [part for part in parts if cannot_fail(part.sql, _types(node))]
        join = replace(
            node,
            left=left,
            right=right,
            equalities=tuple(replace(one, left=mine, right=other) for one, mine, other in sides),
            condition=conjunction(safe) if safe else None,
        )
        if len(safe) == len(parts) and join == node:
            return None
        pairs = kept(join, names(node)) if names(join) != names(node) else join
        risky = [part for part in parts if part not in safe]
        return self._filter(Filter(pairs, conjunction(risky)), "ON") if risky else pairs

    def _aggregate(self, node: Aggregate) -> Relation | None:
        """Keys and arguments are evaluated below, and sums that could overflow in a wider type."""
        given = [key.expression for key in node.keys]
        for call in node.calls:
            given += _evaluated(call)
        over, values = self._as_columns(node.child, given, "GROUP BY", names(node))
        changed = dict(zip(given, values, strict=True))
        keys = tuple(Named(key.name, changed[key.expression]) for key in node.keys)
        calls = tuple(_reading(call, changed) for call in node.calls)
        grouped = replace(node, child=over, keys=keys, calls=calls)
        return self._without_overflow(grouped) or (None if grouped == node else grouped)

    def _without_overflow(self, node: Aggregate) -> Relation | None:
        """Sums of BIGINT in a type into which they fit; a group whose sum is no BIGINT is left out."""
        sums = [call for call in node.calls if call.function == "sum" and _overflows(call)]
        averages = [call for call in node.calls if call.function == "avg" and _overflows(call)]
        if not sums and not averages:
            return None
        taken, calls, items = {*_lower(names(node))}, list[Call](), dict[str, Expression]()
        for call in node.calls:
            if call not in sums and call not in averages:
                calls.append(call)
                continue
            (argument,) = call.arguments
            wide = f"CAST({argument.sql} AS {WIDE})"
            total = fresh(f"{call.name}_wide", taken)
            within = f"DISTINCT {wide}" if call.distinct else wide
            value = Expression(wide, WIDE, argument.columns)
            calls.append(
                replace(
                    call,
                    name=total,
                    function="sum",
                    sql=f"SUM({within})",
                    type=Sql("DECIMAL(30, 0)"),
                    arguments=(value,),
                )
            )
            total_column, read = spelled(total), _lower([total])
            if call in sums:
                items[call.name] = Expression(f"CAST({total_column} AS BIGINT)", BIGINT, read)
                continue
            count = fresh(f"{call.name}_count", taken)
            counted = f"DISTINCT {argument.sql}" if call.distinct else argument.sql
            calls.append(replace(call, name=count, function="count", sql=f"COUNT({counted})", type=BIGINT))
            quotient = f"CAST({total_column} AS DOUBLE) / NULLIF({spelled(count)}, 0)"
            items[call.name] = Expression(quotient, DOUBLE, read | _lower([count]))
        wider = replace(node, calls=tuple(calls))
        wanted = [items.get(column.name, column_of(column.name, column.type)) for column in node.columns]
        over, values = self._tried(wider, wanted, "SUM")
        return Project(over, tuple(map(Named, names(node), values)))

    def _texts(self, node: Ranked | Exploded, texts: Sequence[Sql], operator: str) -> Relation | None:
        """A node whose functions read, in place of these parts of their text, columns that were evaluated below."""
        if not texts:
            return None
        given = [Expression(text, UNKNOWN, reads(text) or frozenset()) for text in texts]
        over, values = self._as_columns(node.child, given, operator, names(node))
        columns = dict(zip(texts, values, strict=True))
        if isinstance(node, Ranked):
            items = tuple(Named(item.name, _with_columns(item.expression, columns)) for item in node.items)
            return kept(replace(node, child=over, items=items), names(node))
        return kept(replace(node, child=over, generator=_with_columns(node.generator, columns)), names(node))


def _lower(columns: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in columns)


def _types(node: Relation) -> dict[str, Sql]:
    return {column.name: column.type for column in node.columns}


def _compared(equality: Equality) -> Equality | Expression:
    """An equality whose sides can be compared; one that has to be evaluated pair by pair as a condition.

    Spark casts a text that is compared with a whole number.
    """
    kinds = equality.left.type, equality.right.type
    if alike(kinds) or "UNKNOWN" in kinds:
        return equality
    if "STRING" in kinds and not {*INTEGERS}.isdisjoint(kinds):
        return replace(equality, left=_as_number(equality.left), right=_as_number(equality.right))
    return Expression(equality.sql, BOOLEAN, equality.left.columns | equality.right.columns)


def _as_number(side: Expression) -> Expression:
    return side if side.type != "STRING" else Expression(f"CAST({side.sql} AS BIGINT)", BIGINT, side.columns)


def _evaluated(call: Call) -> list[Expression]:
    """What an aggregate evaluates of each row: its condition, and its arguments where that holds."""
    condition = _condition(call)
    return [*map(_where(condition), call.arguments), *([condition] if condition is not None else [])]


def _condition(call: Call) -> Expression | None:
    return None if call.condition is None else Expression(call.condition, BOOLEAN, reads(call.condition) or frozenset())


def _where(condition: Expression | None) -> Callable[[Expression], Expression]:
    """An argument as it is evaluated: only where the condition of its call holds."""

    def where(argument: Expression) -> Expression:
        if condition is None or argument.column is not None:
            return argument
        sql = f"CASE WHEN {condition.sql} THEN {argument.sql} END"
        return Expression(sql, argument.type, argument.columns | condition.columns)

    return where


def _reading(call: Call, changed: dict[Expression, Expression]) -> Call:
    """A call that reads columns in place of what was evaluated below."""
    condition = _condition(call)
    ways = {one.sql: (one, changed[_where(condition)(one)]) for one in call.arguments}
    arguments = {sql: new for sql, (one, new) in ways.items() if new is not _where(condition)(one)}
    given = condition if condition is None else changed[condition]
    if not arguments and given == condition:
        return call
    whole = _with_columns(Expression(call.sql, call.type, call.columns), arguments)
    read = frozenset[str]().union(*(changed[one].columns for one in _evaluated(call)))
    return replace(
        call,
        sql=whole.sql,
        arguments=tuple(arguments.get(one.sql, one) for one in call.arguments),
        condition=None if given is None else given.sql,
        columns=whole.columns | read,
    )


def _with_columns(expression: Expression, columns: Mapping[Sql, Expression]) -> Expression:
    """An expression that reads columns in place of these parts of its text."""
    if not columns:
        return expression
    tree = parsed(expression.sql)
    assert tree is not None
    holder = exp.Paren(this=tree.copy())
    by_text = {str(text): column for text, column in columns.items()}
    parts = [one for one in holder.walk() if one is not holder and not isinstance(one, exp.Ordered)]
    for part in [one for one in parts if compared(one) in by_text]:
        if part.root() is holder:
            column = parsed(by_text[compared(part)].sql)
            assert column is not None
            part.replace(column.copy())
    sql = printed(holder.this)
    return Expression(sql, expression.type, reads(sql) or expression.columns, None)


def _in_windows(texts: Sequence[str], types: Mapping[str, Sql]) -> list[Sql]:
    """The parts of analytic functions that may fail: arguments, and what is partitioned and ordered by."""
    found: dict[Sql, None] = {}
    for text in texts:
        tree = parsed(text)
        for window in tree.find_all(exp.Window) if tree is not None else ():
            function = window.this
            while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
                function = function.this
            order = window.args.get("order")
            parts = [*function.iter_expressions(), *(window.args.get("partition_by") or [])]
            parts += [one.this for one in (order.expressions if order is not None else ())]
            found |= dict.fromkeys(text for text in map(printed, parts) if not cannot_fail(text, types))
    return list(found)


def _arguments(text: str, types: Mapping[str, Sql]) -> list[Sql]:
    """The arguments of a function that may fail."""
    tree = parsed(text)
    arguments = list(map(printed, tree.iter_expressions())) if tree is not None else []
    return [one for one in dict.fromkeys(arguments) if not cannot_fail(one, types)]


def _overflows(call: Call) -> bool:
    return call.arguments[0].type == "BIGINT"
