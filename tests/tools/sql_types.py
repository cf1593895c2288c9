"""A plugin of mypy: which text is `Sql`, so that nothing else reaches Spark.

    f"SELECT {one} LIMIT {number}"    is Sql where one hole at least is Sql, and the others are Sql or whole numbers
    ", ".join(parts)                  is Sql where all parts are, and what stands between them is a literal or Sql
    Sql("TRUE"), Sql(f"_k{number}")   takes a literal, or an f-string with whole numbers

A hole, or a part, may choose: `{limit if limited else ""}` counts as both of its sides, and a literal is as good as Sql.
Everything else is a plain `str`, which mypy refuses where `Sql` is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mypy.checker import TypeChecker
from mypy.nodes import (
    CallExpr,
    ConditionalExpr,
    Expression,
    GeneratorExpr,
    ListComprehension,
    ListExpr,
    MemberExpr,
    StarExpr,
    StrExpr,
    TupleExpr,
)
from mypy.plugin import FunctionContext, MethodContext, Plugin
from mypy.types import Instance, LiteralType, TupleType, Type, UnionType, get_proper_type

SQL = "headgate.sql.Sql"
NUMBERS = ("builtins.int", "builtins.bool")

NOT_SQL = "Sql is made of a literal, or of an f-string of numbers; other text is printed, quoted or put into a template"
ALREADY = "The f-string is Sql already"

Context = FunctionContext | MethodContext


class SqlPlugin(Plugin):
    """Gives f-strings and joins over Sql the type Sql."""

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        return joined if fullname in ("builtins.str.join", f"{SQL}.join") else None

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        return made if fullname == SQL else None


def joined(context: MethodContext) -> Type:
    """An f-string, which mypy reads as "".join(["SELECT ", "{:{}}".format(one, "")]), or a call of `join`."""
    match context.context:
        case CallExpr(callee=MemberExpr(expr=between), args=[parts]) if _is_safe(context, between):
            safe, sql = _judged(context, _each(parts))
            return sql if safe and sql is not None else context.default_return_type
        case _:
            return context.default_return_type


def made(context: FunctionContext) -> Type:
    """A call of `Sql`, which takes a literal or an f-string."""
    given = context.args[0][0]
    sql: Instance | None = None
    match given:
        case StrExpr():
            safe = True
        case CallExpr(callee=MemberExpr(expr=StrExpr(value=""), name="join"), args=[ListExpr(items=items)]):
            safe, sql = _judged(context, items)
        case CallExpr(callee=MemberExpr(expr=StrExpr(), name="format")):
            safe = _is_safe(context, given)
        case _:
            safe = False
    if not safe:
        context.api.fail(NOT_SQL, context.context)
    elif sql is not None:
        context.api.fail(ALREADY, context.context)
    return context.default_return_type


def _each(parts: Expression) -> list[Expression]:
    """The parts of what is joined, as far as they are written there; else the whole, as if it had a star."""
    match parts:
        case ListExpr(items=items) | TupleExpr(items=items):
            return items
        case GeneratorExpr(left_expr=each) | ListComprehension(generator=GeneratorExpr(left_expr=each)):
            return [each]
        case _:
            return [StarExpr(parts)]


def _is_safe(context: Context, part: Expression) -> bool:
    return _judged(context, [part])[0]


def _judged(context: Context, parts: Iterable[Expression]) -> tuple[bool, Instance | None]:
    """Whether all parts may stand in SQL, and the type Sql if one of them has it."""
    sql: Instance | None = None
    for part in parts:
        match _hole(part):
            case StrExpr():
                continue
            case ConditionalExpr(if_expr=one, else_expr=other) as either if sql_in(_type_of(context, either)) is None:
                safe, kind = _judged(context, [one, other])
            case CallExpr(callee=MemberExpr(expr=StrExpr(), name="join"), args=[ListExpr(items=within)]):
                safe, kind = _judged(context, within)
            case StarExpr(expr=ListExpr() | TupleExpr() | ListComprehension() | GeneratorExpr() as inside):
                safe, kind = _judged(context, _each(inside))
            case StarExpr(expr=ConditionalExpr(if_expr=one, else_expr=other)):
                safe, kind = _judged(context, [*_each(one), *_each(other)])
            case StarExpr(expr=inside):
                kind = _among(_type_of(context, inside))
                safe = kind is not None
            case hole:
                safe, kind = fitting(_type_of(context, hole))
        if not safe:
            return False, None
        sql = sql or kind
    return True, sql


def _among(kind: Type) -> Instance | None:
    """The type Sql, if the elements of something that can be joined are Sql."""
    match get_proper_type(kind):
        case TupleType(items=items):
            kinds = [sql_in(item) for item in items]
            return kinds[0] if kinds and None not in kinds else None
        case Instance(args=[each, *_]):
            return sql_in(each)
        case _:
            return None


def _type_of(context: Context, part: Expression) -> Type:
    """The type of an expression that has been checked already; what is wrong with it has been said."""
    checker = context.api
    assert isinstance(checker, TypeChecker)
    with checker.msg.filter_errors():
        return checker.get_expression_type(part)


def _hole(part: Expression) -> Expression:
    """What stands in a hole of an f-string; another expression as it is."""
    match part:
        case CallExpr(callee=MemberExpr(expr=StrExpr(value="{:{}}"), name="format"), args=[inside, StrExpr(value="")]):
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


def fitting(kind: Type) -> tuple[bool, Instance | None]:
    """Whether values of a type may stand in SQL, and the type Sql if some of them have it."""
    proper = get_proper_type(kind)
    items = proper.items if isinstance(proper, UnionType) else [proper]
    found = [sql_in(item) for item in items]
    safe = all(sql is not None or is_number(item) for item, sql in zip(items, found, strict=True))
    return safe, next(filter(None, found), None) if safe else None


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
