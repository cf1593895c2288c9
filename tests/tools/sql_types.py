"""A plugin of mypy: which text is `Sql`, so that nothing else reaches Spark.

    f"SELECT {one} LIMIT {number}"    is Sql where one hole at least is Sql, and the others are Sql or whole numbers
    ", ".join(parts)                  is Sql where all parts are
    Sql("TRUE")                       takes a literal and nothing else

Everything else is a plain `str`, which mypy refuses where `Sql` is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mypy.checker import TypeChecker
from mypy.nodes import CallExpr, Expression, GeneratorExpr, ListComprehension, ListExpr, MemberExpr, StrExpr
from mypy.plugin import FunctionContext, MethodContext, Plugin
from mypy.types import Instance, LiteralType, Type, UnionType, get_proper_type

SQL = "headgate.sql.Sql"
NUMBERS = ("builtins.int", "builtins.bool")


class SqlPlugin(Plugin):
    """Gives f-strings and joins over Sql the type Sql."""

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        return joined if fullname == "builtins.str.join" else None

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        return made if fullname == SQL else None


def joined(context: MethodContext) -> Type:
    """An f-string, which mypy reads as "".join(["SELECT ", "{:{}}".format(one, "")]), or a call of `join`."""
    match context.args[0][0]:
        case ListExpr(items=items):
            kind = _of_all(context, items)
        case GeneratorExpr(left_expr=each) | ListComprehension(generator=GeneratorExpr(left_expr=each)):
            kind = _of_all(context, [each])
        case _:
            among = get_proper_type(context.arg_types[0][0])
            kind = sql_in(among.args[0]) if isinstance(among, Instance) and among.args else None
    return kind if kind is not None else context.default_return_type


def made(context: FunctionContext) -> Type:
    """A call of `Sql`, which takes a literal."""
    if not isinstance(context.args[0][0], StrExpr):
        context.api.fail(
            "Sql is made of a literal; other text is printed, quoted or put into a template", context.context
        )
    return context.default_return_type


def _of_all(context: MethodContext, parts: Iterable[Expression]) -> Instance | None:
    """Sql if one of the parts is, and the others may stand beside it."""
    found = None
    for part in parts:
        if isinstance(part, StrExpr):
            continue
        kind = _type_of(context, _hole(part))
        sql = sql_in(kind)
        if sql is None and not is_number(kind):
            return None
        found = found or sql
    return found


def _type_of(context: MethodContext, part: Expression) -> Type:
    """The type of an expression that has been checked already; what is wrong with it has been said."""
    checker = context.api
    assert isinstance(checker, TypeChecker)
    with checker.msg.filter_errors():
        return checker.get_expression_type(part)


def _hole(part: Expression) -> Expression:
    """What stands in a hole of an f-string; another expression as it is."""
    match part:
        case CallExpr(callee=MemberExpr(expr=StrExpr(), name="format"), args=[inside, StrExpr(value="")]):
            return inside
        case _:
            return part


def sql_in(kind: Type) -> Instance | None:
    """The type Sql, if values of a type are Sql."""
    match get_proper_type(kind):
        case LiteralType(fallback=inner):
            return sql_in(inner)
        case UnionType(items=items):
            kinds = [sql_in(item) for item in items]
            return kinds[0] if None not in kinds else None
        case Instance() as known if known.type.fullname == SQL:
            return known
        case _:
            return None


def is_number(kind: Type) -> bool:
    """Whether values of a type are whole numbers, which may stand in SQL as they are."""
    match get_proper_type(kind):
        case LiteralType(fallback=inner):
            return is_number(inner)
        case UnionType(items=items):
            return all(map(is_number, items))
        case Instance() as known:
            return known.type.fullname in NUMBERS
        case _:
            return False


def plugin(version: str) -> type[Plugin]:
    """Where mypy begins."""
    return SqlPlugin
