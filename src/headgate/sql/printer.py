"""The one place where a user's expression becomes text for Spark.

It prints what `nodes` lists, and nothing else. What was printed is read again, and must be the tree that was meant: so
no name, text or unit can turn into a piece of SQL, however it is spelled.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

from sqlglot import exp

from headgate.errors import UserError
from headgate.sql import Sql, is_plain
from headgate.sql.dialect import SparkSql
from headgate.sql.nodes import PARAMETERS, TYPES, WORD, refusal
from headgate.sql.reading import SHORT, parsed


def printed(tree: exp.Expression) -> Sql:
    """The text of an expression, or of a type, as Spark will see it."""
    for node in tree.walk():
        reason = _refused(node)
        if reason is not None:
            raise UserError("foreign-construct", reason)
    if _is_simple(tree):
        return cast(Sql, tree.sql(SparkSql))
    text, is_type, meant = tree.sql(SparkSql), isinstance(tree, exp.DataType), shape(tree)
    if _shape_of(text, is_type) != meant:  # a name may be a word of SQL
        text = _with_quoted_columns(tree).sql(SparkSql)
    if _shape_of(text, is_type) != meant:
        raise UserError(
            "foreign-construct",
            "this expression has no safe form for Spark",
            detail=f"It would be written as {text[:200]}, which does not read as what was meant.",
            hint="Write it in another way: names in backquotes, one function inside another.",
        )
    return cast(Sql, text)


def printed_type(tree: exp.Expression) -> Sql:
    """The text of a type; an expression in its place is refused."""
    if not isinstance(tree, exp.DataType):
        raise UserError("foreign-construct", "a type is needed here")
    return printed(tree)


def _is_simple(tree: exp.Expression) -> bool:
    """Whether it is a column or a type that consists of one name: such a text can be read in one way only."""
    match tree:
        case exp.Column():
            return isinstance(tree.this, exp.Identifier) and len(tree.parts) == 1 and is_plain(tree.name)
        case exp.DataType():
            return tree.this in TYPES and not tree.expressions
        case _:
            return False


@lru_cache(maxsize=2_000)
def _shape_of_short(text: str, is_type: bool) -> Any:
    read = _type(text) if is_type else parsed(text)
    return None if read is None else shape(read)


def _shape_of(text: str, is_type: bool) -> Any:
    """What a text means, read again; None if it cannot be read."""
    return (_shape_of_short if len(text) <= SHORT else _shape_of_short.__wrapped__)(text, is_type)


def _with_quoted_columns(tree: exp.Expression) -> exp.Expression:
    """A copy in which all names of columns are in backquotes."""
    copy = tree.copy()
    for column in copy.find_all(exp.Column):
        for part in column.parts:
            part.set("quoted", True)
    return copy


def compared(tree: exp.Expression) -> str:
    """A text by which trees are compared. It is no Sql: it may hold anything."""
    return str(tree.sql(SparkSql))


def _refused(node: exp.Expression) -> str | None:
    match node:
        case exp.Placeholder() if node.name in PARAMETERS:
            return None
        case exp.Identifier() if not node.args.get("quoted") and not WORD.fullmatch(node.name):
            return f'the name "{node.name[:40]}" needs backquotes'
        case _:
            return refusal(node)


def _type(text: str) -> exp.Expression | None:
    read = parsed(f"CAST(NULL AS {text})")
    return read.to if isinstance(read, exp.Cast) else None


def is_type(text: str) -> bool:
    """Whether a text is a type of Spark's, and nothing else."""
    read = _type(text)
    return isinstance(read, exp.DataType) and not any(map(_refused, read.walk()))


# trees that mean one thing

ALIKE = {
    exp.DataType.Type.TIMESTAMP: exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.DATETIME: exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.VARBINARY: exp.DataType.Type.BINARY,
}
"""Types for which Spark has one name."""


def shape(tree: exp.Expression) -> Any:
    """What a tree means: its nodes without the differences that printing and reading makes between equal ones.

    Chains of AND, OR and || are flat, brackets around a whole are left out, CAST is TRY_CAST (Spark reads both as
    they were written), fields of a struct are named by what they are.
    """
    match tree:
        case exp.Paren():
            return shape(tree.this)
        case exp.And() | exp.Or() | exp.DPipe():
            return type(tree).__name__, *map(shape, _chain(tree))
        case exp.Add() if all(isinstance(part, exp.Interval) for part in _chain(tree)):
            return "intervals", *map(shape, _chain(tree))
        case exp.PropertyEQ():
            return shape(tree.expression)
        case exp.Alias():
            return shape(tree.this)
        case exp.Column() | exp.Dot():
            return "path", *_path(tree)
        case exp.Identifier():
            return "name", tree.name
        case exp.Literal():
            return tree.is_string, tree.name
        case exp.Anonymous():
            return tree.name.lower(), *map(shape, tree.expressions)
        case exp.DataType(this=exp.DataType.Type.VARCHAR) if not tree.expressions:
            return "type", exp.DataType.Type.TEXT
        case exp.DataType():
            kind = shape(tree.this) if isinstance(tree.this, exp.Expression) else ALIKE.get(tree.this, tree.this)
            return "type", kind, *map(shape, tree.expressions)
        case _:
            kind = "cast" if isinstance(tree, exp.Cast) else type(tree).__name__
            return tree.sql_name().lower() if isinstance(tree, exp.Func) and kind != "cast" else kind, *map(
                shape, tree.iter_expressions()
            )


def _path(tree: exp.Expression) -> list[Any]:
    """The steps of a path such as column.field.field: sqlglot takes its first steps for tables when it reads them."""
    if isinstance(tree, exp.Column):
        return [shape(part) for part in tree.parts]
    if isinstance(tree, exp.Dot):
        return [*_path(tree.this), *_path(tree.expression)]
    return [shape(tree)]


def _chain(tree: exp.Expression) -> list[exp.Expression]:
    """The operands of a chain of one associative operator."""
    operands, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        while isinstance(node, exp.Paren) and type(node.this) is type(tree):
            node = node.this
        if type(node) is type(tree):
            waiting += [node.expression, node.this]
        else:
            operands.append(node)
    return operands
