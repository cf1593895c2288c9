"""The text of an expression as a chain of monotone steps over one column, if it is one.

Whatever is not certain to be one is none: arithmetic with anything but whole numbers that are written down, functions
that are not listed here, columns of other types.
"""

from __future__ import annotations

from sqlglot import exp

from headgate.plan.monotone import DAY, Calendar, Chain, Divided, Floored, Scale, Shift, Steps, Truncated, kind_of
from headgate.sql.reading import parsed
from headgate.ticks import MICROSECONDS_PER_UNIT

MONDAY = 4 * DAY
"""The first Monday since 1970."""


def chain(sql: str, types: dict[str, str]) -> Chain | None:
    """The text as a chain over one column; `types` are those of the columns, by name in lower case. None if it is
    none.
    """
    if "TRY_" in sql.upper():
        return None  # null where a value does not fit; the tree does not tell it from a cast that fails
    tree = parsed(sql)
    return None if tree is None else _chain(tree, types)


def columns_of(sql: str) -> set[str]:
    """The columns that an expression reads, in lower case; none if it cannot be read."""
    tree = parsed(sql)
    return set() if tree is None else {column.name.lower() for column in tree.find_all(exp.Column)}


def _chain(tree: exp.Expression, types: dict[str, str]) -> Chain | None:
    match tree:
        case exp.Paren():
            return _chain(tree.this, types)
        case exp.Column() if not tree.table:
            kind = kind_of(types.get(tree.name.lower(), ""))
            return Chain(tree.name.lower(), (), kind) if kind is not None else None
        case exp.Sub(expression=exp.Mod() | exp.Paren() as rest) if (by := _remainder_of(tree.this, rest)) is not None:
            return _then(_chain(tree.this, types), "integer", (Divided(by), Scale(by)))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.IntDiv() | exp.Neg():
            return _arithmetic(tree, types)
        case exp.BitwiseRightShift() if (bits := whole(tree.expression)) is not None and 0 <= bits < 32:
            return _then(_chain(tree.this, types), "integer", (Floored(2**bits),))
        case exp.Cast():
            return _cast(_chain(tree.this, types), kind_of(_type(tree.to)))
        case exp.Floor() | exp.Ceil() if not tree.args.get("decimals") and not tree.args.get("to"):
            return _then(_chain(tree.this, types), "integer", ())
        case _:
            return _function(tree, types)


def _function(tree: exp.Expression, types: dict[str, str]) -> Chain | None:
    argument: exp.Expression | None = tree.this
    match tree:
        case exp.UnixSeconds() | exp.StrToUnix():
            steps: Steps = (Floored(1_000_000),)
        case exp.UnixMillis():
            steps = (Floored(1_000),)
        case exp.UnixMicros():
            steps = ()
        case exp.TsOrDsToDate():
            return _cast(_chain(tree.this, types), "date")
        case exp.TimestampTrunc():
            return _then(_cast(_chain(tree.this, types), "timestamp"), "timestamp", _truncated(tree.args["unit"].name))
        case exp.DateTrunc():
            days = (
                _truncated(tree.args["unit"].name) if tree.args["unit"].name.upper() in (*MONTHS, "WEEK") else None
            )  # else null
            inside = _then(
                _cast(_chain(tree.this, types), "date"), "date", (Scale(DAY), *days) if days is not None else None
            )
            return _then(inside, "date", (Floored(DAY),))
        case exp.Anonymous(expressions=[argument]) if tree.name.upper() in MADE:
            found = _then(_chain(argument, types), "integer", (Scale(MADE[tree.name.upper()]),))
            return Chain(found.column, found.steps, "timestamp") if found is not None else None
        case _:
            return None
    found = _then(_chain(argument, types), "timestamp", steps) if argument is not None else None
    return Chain(found.column, found.steps, "integer") if found is not None else None


MADE = {"TIMESTAMP_SECONDS": 1_000_000, "TIMESTAMP_MILLIS": 1_000, "TIMESTAMP_MICROS": 1}
MONTHS = {
    "MONTH": "MONTH",
    "MON": "MONTH",
    "MM": "MONTH",
    "QUARTER": "QUARTER",
    "YEAR": "YEAR",
    "YYYY": "YEAR",
    "YY": "YEAR",
}


def _truncated(unit: str) -> Steps | None:
    unit = unit.upper()
    if unit in MONTHS:
        return (Calendar(MONTHS[unit]),)
    if unit == "WEEK":
        return (Shift(-MONDAY), Truncated(MICROSECONDS_PER_UNIT[unit]), Shift(MONDAY))
    if unit in ("DD", "DAY"):
        return (Truncated(DAY),)
    return (Truncated(MICROSECONDS_PER_UNIT[unit]),) if unit in MICROSECONDS_PER_UNIT else None


def _then(inside: Chain | None, kind: str, steps: Steps | None) -> Chain | None:
    """The chain with more steps behind it, if its values are of that kind."""
    if inside is None or inside.kind != kind or steps is None:
        return None
    return Chain(inside.column, (*inside.steps, *steps), kind)


def _cast(inside: Chain | None, kind: str | None) -> Chain | None:
    if inside is None or kind is None:
        return None
    steps: dict[tuple[str, str], Steps] = {
        ("timestamp", "integer"): (Floored(1_000_000),),
        ("timestamp", "date"): (Floored(DAY),),
        ("date", "timestamp"): (Scale(DAY),),
        ("integer", "timestamp"): (Scale(1_000_000),),
    }
    more = () if inside.kind == kind else steps.get((inside.kind, kind))
    return Chain(inside.column, (*inside.steps, *more), kind) if more is not None else None


def _arithmetic(tree: exp.Expression, types: dict[str, str]) -> Chain | None:
    if isinstance(tree, exp.Neg):
        return _then(_chain(tree.this, types), "integer", (Scale(-1),))
    left, right = tree.this, tree.expression
    if isinstance(right, exp.Interval):
        length = microseconds(right)
        sign = {exp.Add: 1, exp.Sub: -1}.get(type(tree))
        return _then(_chain(left, types), "timestamp", (Shift(sign * length),)) if length is not None and sign else None
    constant, other = whole(right), left
    if constant is None and not isinstance(tree, exp.IntDiv):
        constant, other = whole(left), right
    if constant is None:
        return None
    match tree:
        case exp.Add():
            steps: Steps = (Shift(constant),)
        case exp.Sub():
            steps = (Shift(-constant),) if other is left else (Scale(-1), Shift(constant))
        case exp.Mul() if constant:
            steps = (Scale(constant),)
        case exp.IntDiv() if constant:
            steps = (Divided(constant),)
        case _:
            return None
    return _then(_chain(other, types), "integer", steps)


def _remainder_of(value: exp.Expression, rest: exp.Expression) -> int | None:
    """By which number `rest` is the remainder of `value`: x - x % 60 is x, less what is left over."""
    rest = rest.unnest()
    by = whole(rest.expression) if isinstance(rest, exp.Mod) and rest.this.unnest() == value.unnest() else None
    return by or None


def whole(tree: exp.Expression) -> int | None:
    """A whole number that was written down."""
    tree = tree.unnest()
    if isinstance(tree, exp.Nullif):  # as divisors are written that might be zero
        inside = whole(tree.this)
        return inside if inside != whole(tree.expression) else None
    if isinstance(tree, exp.Neg):
        inside = whole(tree.this)
        return -inside if inside is not None else None
    return int(tree.name) if isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdigit() else None


def microseconds(tree: exp.Interval) -> int | None:
    """The length of an interval that was written down, if all its units have one length."""
    amount, unit = tree.this, tree.args.get("unit")
    size = MICROSECONDS_PER_UNIT.get(unit.name.upper().removesuffix("S")) if isinstance(unit, exp.Var) else None
    number = amount.name if isinstance(amount, exp.Literal) else ""
    return int(number) * size if size is not None and number.removeprefix("-").isdigit() else None


def _type(tree: exp.Expression) -> str:
    return str(tree.sql("spark")).split("(")[0]
