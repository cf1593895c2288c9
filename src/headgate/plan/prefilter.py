"""Conditions that are cheap and cannot fail: the low level may evaluate them on every tuple that comes in.

They compare columns of a stream with constants, or with other columns of the same type, and are put together by AND, OR
and NOT. Nothing is computed or cast that could overflow or be refused, so no tuple makes them fail. Each has the same
value in Spark SQL and over Arrow (`holds`), except that `holds` also says yes where a number is NaN, which Spark orders
differently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from headgate.plan.expressions import INTEGRAL, Expression
from headgate.sql.reading import exactly

REAL = frozenset({"FLOAT", "DOUBLE"})
LARGEST = 2**63

COMPARED: dict[type[exp.Expression], Callable[[Any, Any], Any]] = {
    exp.EQ: pc.equal,
    exp.NEQ: pc.not_equal,
    exp.LT: pc.less,
    exp.LTE: pc.less_equal,
    exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
}


def is_cheap(condition: Expression, types: Mapping[str, str]) -> bool:
    """True if the condition is cheap and cannot fail, given the types of columns in lower case."""
    tree = exactly(condition.sql)
    return tree is not None and _is_cheap(tree, types)


def _is_cheap(tree: exp.Expression, types: Mapping[str, str]) -> bool:
    match tree:
        case exp.And() | exp.Or():
            return all(_is_cheap(part, types) for part in tree.flatten())
        case exp.Paren() | exp.Not():
            return _is_cheap(tree.this, types)
        case exp.Column():
            return _type(tree, types) == "BOOLEAN"
        case exp.Is():
            return _type(tree.this, types) is not None and isinstance(tree.expression, exp.Null)
        case exp.Between():
            return all(_comparable(tree.this, tree.args[end], types) for end in ("low", "high"))
        case exp.In():
            listed = tree.expressions and not tree.args.get("query")
            return bool(listed) and all(_comparable(tree.this, value, types) for value in tree.expressions)
        case _ if type(tree) in COMPARED:
            one, other = tree.this, tree.expression
            return _comparable(one, other, types) or _comparable(other, one, types)
        case _:
            return False


def _type(tree: exp.Expression, types: Mapping[str, str]) -> str | None:
    """The type of a column; None if it is none, or one inside another."""
    plain = isinstance(tree, exp.Column) and len(tree.parts) == 1
    return types.get(tree.name.lower()) if plain else None


def _comparable(column: exp.Expression, other: exp.Expression, types: Mapping[str, str]) -> bool:
    """True if a column is compared with a constant of its kind, or with a column of its type."""
    kind = _type(column, types)
    if kind is None:
        return False
    if isinstance(other, exp.Column):
        return kind in (*INTEGRAL, *REAL, "STRING", "BOOLEAN") and _type(other, types) == kind
    value = _constant(other)
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, str):
        return kind == "STRING"
    if isinstance(value, float):
        return kind in REAL
    return abs(value) < LARGEST and (kind in INTEGRAL or (kind in REAL and abs(value) < 2**53))


def _constant(tree: exp.Expression) -> str | int | float | None:
    """The value of a literal that every reader of SQL reads alike; None if it is none."""
    match tree:
        case exp.Paren():
            return _constant(tree.this)
        case exp.Neg():
            value = _constant(tree.this)
            return -value if isinstance(value, int | float) else None
        case exp.Literal() if tree.is_string:
            text = str(tree.this)
            return text if text.isprintable() and not set(text) & set("'\"\\") else None
        case exp.Literal() if tree.is_int:
            return int(tree.this)
        case exp.Literal():
            return float(tree.this) if str(tree.this).replace(".", "", 1).isdigit() else None
        case _:
            return None


# over rows in memory


def holds(sql: str, rows: pa.Table) -> pa.ChunkedArray:
    """For each row, whether a cheap condition holds; true where a number that it reads is NaN. Never null."""
    tree = exactly(sql)
    assert tree is not None
    spelled = {name.lower(): name for name in rows.column_names}
    found = pc.fill_null(_value(tree, rows, spelled), False)
    for column in {spelled[one.name.lower()] for one in tree.find_all(exp.Column)}:
        if pa.types.is_floating(rows[column].type):
            found = pc.or_(found, pc.fill_null(pc.is_nan(rows[column]), False))
    return found


def _value(tree: exp.Expression, rows: pa.Table, spelled: Mapping[str, str]) -> Any:
    def value(part: exp.Expression) -> Any:
        return _value(part, rows, spelled)

    match tree:
        case exp.And():
            return pc.and_kleene(value(tree.this), value(tree.expression))
        case exp.Or():
            return pc.or_kleene(value(tree.this), value(tree.expression))
        case exp.Not():
            return pc.invert(value(tree.this))
        case exp.Paren():
            return value(tree.this)
        case exp.Column():
            return _widened(rows[spelled[tree.name.lower()]])
        case exp.Is():
            return pc.is_null(value(tree.this))
        case exp.Between():
            own, low, high = value(tree.this), value(tree.args["low"]), value(tree.args["high"])
            return pc.and_kleene(pc.greater_equal(*_alike(own, low)), pc.less_equal(*_alike(own, high)))
        case exp.In():
            own = value(tree.this)
            listed = pa.array([_constant(one) for one in tree.expressions], own.type)
            return pc.if_else(pc.is_valid(own), pc.is_in(own, listed), None)
        case _ if type(tree) in COMPARED:
            one, other = value(tree.this), value(tree.expression)
            return COMPARED[type(tree)](*_alike(one, other))
        case _:
            return pa.scalar(_constant(tree))


def _widened(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers with all the digits that there are, as Spark compares them."""
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    return column.cast(pa.float64()) if pa.types.is_floating(column.type) else column


def _alike(one: Any, other: Any) -> tuple[Any, Any]:
    """Both sides of a comparison with one type, where a constant stands beside a column of real numbers."""
    if pa.types.is_floating(one.type) and not pa.types.is_floating(other.type):
        return one, other.cast(pa.float64())
    if pa.types.is_floating(other.type) and not pa.types.is_floating(one.type):
        return one.cast(pa.float64()), other
    return one, other
