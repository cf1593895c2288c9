"""Columns inside the text of expressions: which are read, and other expressions put in their place.

Text that cannot be moved with certainty is not: what sqlglot does not give back letter by letter, functions whose value
may differ from call to call, functions it does not know (they may be such, or raise an error on purpose), and lambdas,
whose parameters could catch a column of the same name. For all of these `substituted` says None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, reduce
from typing import TypeAlias

from sqlglot import exp

from headgate.plan.expressions import Expression
from headgate.sql.reading import parsed

IMMOVABLE = (
    exp.Anonymous,
    exp.Lambda,
    exp.Rand,
    exp.Randn,
    exp.Randstr,
    exp.Uniform,
    exp.Uuid,
    exp.Shuffle,
    exp.CurrentTimestamp,
    exp.CurrentDate,
    exp.CurrentTime,
    exp.Localtimestamp,
)


@cache
def _parsed(sql: str) -> exp.Expression | None:
    """The tree of a text, if nothing is lost on the way there and back; never to be changed, it is shared."""
    tree = parsed(sql)
    return tree if tree is not None and tree.sql("spark") == sql else None


@cache
def _movable(sql: str) -> bool:
    tree = _parsed(sql)
    return tree is not None and tree.find(*IMMOVABLE) is None


def movable(expression: Expression) -> bool:
    """Whether it has the same value wherever, and however often, it is evaluated."""
    return expression.column is not None or _movable(expression.sql)


def reads(sql: str) -> frozenset[str] | None:
    """The columns a text reads, in lower case; None if that cannot be said."""
    tree = _parsed(sql)
    return None if tree is None else frozenset(_root(column).name.lower() for column in tree.find_all(exp.Column))


def occurrences(expression: Expression) -> Counter[str]:
    """How often each column stands in the expression."""
    if expression.column is not None:
        return Counter([expression.column.lower()])
    tree = _parsed(expression.sql)
    assert tree is not None
    return Counter(_root(column).name.lower() for column in tree.find_all(exp.Column))


def _root(column: exp.Column) -> exp.Expression:
    """The column itself: in the plan no column has a table, so what stands before a dot is a column and what follows a
    field.
    """
    return column.parts[0]


def substituted(expression: Expression, values: Mapping[str, Expression]) -> Expression | None:
    """The expression with the values in place of the columns of those names (in lower case); None if it cannot be
    moved.
    """
    if expression.column is not None:
        value = values.get(expression.column.lower(), expression)
        return value if movable(value) else None
    used = [value for name, value in values.items() if name in expression.columns]
    if not movable(expression) or not all(map(movable, used)):
        return None
    sql = _replaced(expression.sql, {name: value.sql for name, value in values.items() if name in expression.columns})
    if sql is None:
        return None
    columns = frozenset().union(*(values[name].columns if name in values else {name} for name in expression.columns))
    return Expression(sql, expression.type, columns)


def substituted_text(sql: str, values: Mapping[str, Expression]) -> str | None:
    """A text, such as an aggregate call, with values in place of columns; None if one of them must not be moved.

    The text may read other columns too, which stay.
    """
    if not _movable(sql) or not all(map(movable, values.values())):
        return None
    return _replaced(sql, {name: value.sql for name, value in values.items()})


def _replaced(sql: str, values: Mapping[str, str]) -> str | None:
    tree = _parsed(sql)
    assert tree is not None
    holder = exp.Paren(this=tree.copy())
    for column in list(holder.find_all(exp.Column)):
        root = _root(column)
        if root.name.lower() not in values:
            continue
        value = _parsed(values[root.name.lower()])
        if value is None:
            return None
        new: exp.Expression = value.copy()
        if not isinstance(value, exp.Column | exp.Literal | exp.Func | exp.Paren) or isinstance(
            value, exp.Connector | exp.Case
        ):
            new = exp.paren(new, copy=False)
        for field in column.parts[1:]:
            new = exp.Dot(this=new, expression=field.copy())
        column.replace(new)
    return holder.this.sql("spark")


# conditions


def conjuncts(condition: Expression) -> list[Expression]:
    """The parts of a condition that must all hold, in their order; the condition itself if it cannot be taken apart."""
    tree = _parsed(condition.sql)
    if tree is None:
        return [condition]
    waiting, found = [tree], []
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.And):
            waiting += [part.expression, part.this]
        elif isinstance(part, exp.Paren) and isinstance(part.this, exp.And):
            waiting.append(part.this)
        else:
            found.append(part.sql("spark"))
    return [Expression(sql, "BOOLEAN", reads(sql) or frozenset()) if len(found) > 1 else condition for sql in found]


def conjunction(conditions: Iterable[Expression]) -> Expression:
    """All of the conditions together, each once."""
    different = list({condition.sql: condition for condition in conditions}.values())
    if len(different) == 1:
        return different[0]
    parts = []
    for condition in different:
        tree = _parsed(condition.sql)
        loose = tree is None or isinstance(tree, exp.Or | exp.Xor)
        parts.append(f"({condition.sql})" if loose else condition.sql)
    return Expression(
        " AND ".join(parts), "BOOLEAN", frozenset().union(*(condition.columns for condition in different))
    )


def equated(condition: Expression) -> tuple[str, str] | None:
    """The two sides of a condition that is an equality."""
    tree = _parsed(condition.sql)
    return (tree.this.sql("spark"), tree.expression.sql("spark")) if isinstance(tree, exp.EQ) else None


def always_true(condition: Expression) -> bool:
    """TRUE, or a literal equal to itself."""
    tree = _parsed(condition.sql)
    if isinstance(tree, exp.EQ):
        return isinstance(tree.this, exp.Literal) and tree.this == tree.expression
    return isinstance(tree, exp.Boolean) and bool(tree.this)


Constants: TypeAlias = dict[str, frozenset[str | int]]


def constants(condition: Expression) -> Constants:
    """The columns, in lower case, that can have only these values where the condition holds: by =, IN, AND and OR."""
    tree = _parsed(condition.sql)
    return {} if tree is None else _constants(tree)


def _both(one: Constants, other: Constants) -> Constants:
    return {**one, **other, **{column: one[column] & other[column] for column in one.keys() & other.keys()}}


def _either(one: Constants, other: Constants) -> Constants:
    return {column: one[column] | other[column] for column in one.keys() & other.keys()}


def _constants(tree: exp.Expression) -> Constants:
    match tree:
        case exp.Paren():
            return _constants(tree.this)
        case exp.And():  # a chain as a whole: it may be longer than Python recurses
            return reduce(_both, map(_constants, tree.flatten()))
        case exp.Or():
            return reduce(_either, map(_constants, tree.flatten()))
        case exp.EQ() | exp.NullSafeEQ():
            for side, other in ((tree.this, tree.expression), (tree.expression, tree.this)):
                value = _constant(other)
                if _plain(side) and value is not None:
                    return {side.name.lower(): frozenset([value])}
        case exp.In() if _plain(tree.this) and tree.expressions:
            values = list(map(_constant, tree.expressions))
            known = frozenset(value for value in values if value is not None)
            return {tree.this.name.lower(): known} if None not in values else {}
    return {}


def _plain(tree: exp.Expression) -> bool:
    """Whether it is nothing but a column."""
    return isinstance(tree, exp.Column) and len(tree.parts) == 1


def _constant(tree: exp.Expression) -> str | int | None:
    match tree:
        case exp.Paren():
            return _constant(tree.this)
        case exp.Literal() if tree.is_string:
            return str(tree.this)
        case exp.Literal() if tree.is_int:
            return int(tree.this)
        case exp.Neg() if isinstance(tree.this, exp.Literal) and tree.this.is_int:
            return -int(tree.this.this)
    return None
