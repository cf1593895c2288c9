"""Which expressions cannot raise an error, whatever the row. What is not certain may fail.

Columns, literals, comparisons of values of one type, AND, OR, CASE and the like, casts into wider types, arithmetic of
doubles, and a few functions. Arithmetic of integers may overflow, and most functions may refuse a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from sqlglot import exp

from headgate.cql.trees import annotated, type_of
from headgate.sql import Sql
from headgate.sql.reading import parsed

INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
"""From the narrowest to the widest."""
FLOATING = ("FLOAT", "DOUBLE")
INSTANTS = ("DATE", "TIMESTAMP")

COMPARISONS = (exp.EQ, exp.NullSafeEQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
CHOICES = (exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least)
OF_TEXT = (exp.Upper, exp.Lower, exp.Length, exp.Concat, exp.Trim)
OF_INSTANTS = (exp.Hour, exp.Minute, exp.Second, exp.Year, exp.Month, exp.Day, exp.TimestampTrunc, exp.DateTrunc)


@lru_cache(maxsize=2_000)
def _cannot_fail(sql: str, types: tuple[tuple[str, Sql], ...]) -> bool:
    tree = parsed(sql)
    return tree is not None and _safe(annotated(tree, dict(types)))


def cannot_fail(sql: str, types: Mapping[str, Sql]) -> bool:
    """True if an expression over columns of these types gives a value for every row."""
    return _cannot_fail(sql, tuple(types.items()))


def _safe(tree: exp.Expression) -> bool:
    """Whether an expression, with types on every node, cannot fail. A sequence of ANDs may be longer than the stack."""
    if isinstance(tree, exp.And | exp.Or):
        return all(map(_safe, tree.flatten()))
    return _form_is_safe(tree) and all(map(_safe, _parts(tree)))


def _parts(tree: exp.Expression) -> list[exp.Expression]:
    if isinstance(tree, exp.Column | exp.Literal):
        return []
    return [one for one in tree.iter_expressions() if not isinstance(one, exp.DataType | exp.Var)]


def _form_is_safe(tree: exp.Expression) -> bool:
    match tree:
        case exp.Column() | exp.Literal() | exp.Null() | exp.Boolean() | exp.Identifier() | exp.If():
            return True
        case exp.Not() | exp.Paren() | exp.Is():
            return True
        case exp.Case():
            values = [one.args["true"] for one in tree.args["ifs"]]
            values += [tree.args["default"]] if tree.args.get("default") is not None else []
            return tree.this is None and _alike(values)
        case exp.In():
            return tree.args.get("query") is None and _alike([tree.this, *tree.expressions])
        case exp.Mod() | exp.IntDiv():
            return _kind(tree.this) in INTEGERS and _is_divisor(tree.expression)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() if {_kind(tree.this), _kind(tree.expression)} <= {*FLOATING}:
            return True
        case exp.Sub():
            return _is_rest(tree)
        case exp.TryCast():  # what Spark's CAST is for sqlglot, too
            return bool(tree.args.get("safe")) or _widens(_kind(tree.this), _kind(tree))
        case exp.Like():
            pattern = tree.expression
            return _kind(tree.this) == "STRING" and isinstance(pattern, exp.Literal) and "\\" not in pattern.name
        case exp.Struct() | exp.PropertyEQ() | exp.Alias():
            return True
    if isinstance(tree, COMPARISONS):
        return _alike(list(tree.iter_expressions()))
    if isinstance(tree, CHOICES):
        return _alike(list(tree.iter_expressions()))
    if isinstance(tree, OF_TEXT):
        return all(_kind(one) == "STRING" for one in tree.iter_expressions())
    if isinstance(tree, OF_INSTANTS):
        return _kind(tree.this) in INSTANTS
    return False


def _kind(tree: exp.Expression) -> str:
    return type_of(tree)


def _alike(values: list[exp.Expression]) -> bool:
    """Whether values can be compared, or stand for one another, without a cast that may fail."""
    return alike(_kind(one) for one in values if not isinstance(one.unnest(), exp.Null))


def alike(types: Iterable[str]) -> bool:
    """True if values of these types can be compared without a cast that may fail."""
    kinds = set(types)
    known = "UNKNOWN" not in kinds and "NULL" not in kinds
    return known and (len(kinds) <= 1 or kinds <= {*INTEGERS, *FLOATING} or kinds <= {*INSTANTS})


def _is_divisor(tree: exp.Expression) -> bool:
    """Whether no integer divided by it overflows: a whole number that is written down, and larger than 0."""
    number = tree.unnest()
    return isinstance(number, exp.Literal) and not number.is_string and number.name.isdigit() and int(number.name) > 0


def _is_rest(tree: exp.Sub) -> bool:
    """Whether it is x - x % n, which lies between 0 and x."""
    rest = tree.expression.unnest()
    return isinstance(rest, exp.Mod) and rest.this.unnest() == tree.this.unnest()


def _widens(before: str, after: str) -> bool:
    """Whether every value of one type has one of the other."""
    if before in INTEGERS:
        wider = after in INTEGERS and INTEGERS.index(before) <= INTEGERS.index(after)
        return wider or after in (*FLOATING, "STRING")
    return before != "UNKNOWN" and (after in (before, "STRING") or (before, after) in WIDER)


WIDER = (("FLOAT", "DOUBLE"), ("DATE", "TIMESTAMP"))
