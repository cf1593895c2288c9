"""SQL as DuckDB understands it: the queries of the reference rewritten so that their answers are CQL's.

Aggregates of doubles are computed exactly (see `numbers`); aggregates that depend on an order get the order of the
stream, or of the values where there is none; ELEMENT_TIME becomes a column.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlglot import exp

from headgate.errors import UserError
from headgate.testing import numbers
from headgate.testing.cases import FUNCTIONS, Row
from headgate.testing.reference_windows import VaryingRelation

ORDERED = (
    exp.First,
    exp.Last,
    exp.FirstValue,
    exp.LastValue,
    exp.AnyValue,
    exp.ArrayAgg,
    exp.ArrayUniqueAgg,
    exp.ArgMax,
    exp.ArgMin,
)
"""Aggregates whose value depends on the order of the rows, or would if ties were left open."""


MACROS = (
    "ip_number(ip) AS list_reduce(CAST(string_split(CAST(ip AS VARCHAR), '.') AS BIGINT[]), "
    "lambda high_, low_: high_ * 256 + low_)",
    "ip_text(n) AS concat_ws('.', (n >> 24) & 255, (n >> 16) & 255, (n >> 8) & 255, n & 255)",
    "timestamp_micros(n) AS make_timestamp(n)",
)
"""Addresses as numbers and back, and timestamps, in DuckDB's own way."""


@cache
def shared_database(duckdb: Any) -> Any:
    """One database for all evaluations, because starting one takes longer than most of them."""
    database = duckdb.connect(":memory:")
    database.execute("SET threads = 1")
    for name, (parameter, body) in FUNCTIONS.items():
        database.execute(f"CREATE MACRO {name}({parameter}) AS {body}")
    for definition in MACROS:
        database.execute(f"CREATE MACRO {definition}")
    for name, function in numbers.AGGREGATES.items():
        lists = ["DOUBLE[]"] * (2 if name in numbers.OF_PAIRS else 1)
        database.create_function(f"exact_{name}", function, lists, "VARCHAR", null_handling="special")
    return database


def table_of(columns: list[tuple[str, str]], rows: list[Row]) -> str:
    """A query that yields these rows."""
    names = [f'"{name}"' for name, _ in columns]
    typed = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, (_, kind) in zip(names, columns, strict=True))
    lines = rows or [tuple(None for _ in columns)]
    listed = ", ".join(f"({', '.join(map(literal, row))})" for row in lines)
    return f"SELECT {typed} FROM (VALUES {listed}) AS given({', '.join(names)}){'' if rows else ' WHERE FALSE'}"


def literal(value: Any) -> str:
    """A value as a literal of DuckDB."""
    match value:
        case None:
            return "NULL"
        case bool() | int():
            return str(value)
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case list() | tuple():
            return f"[{', '.join(map(literal, value))}]"
        case _:
            return "'" + str(value).replace("'", "''") + "'"


def in_duckdb(node: exp.Expression) -> exp.Expression:
    """Replaces functions that have another name in DuckDB."""
    match node:
        case exp.Anonymous(expressions=[value]) if node.name.lower() in ("every", "some"):
            return exp.Anonymous(this="BOOL_AND" if node.name.lower() == "every" else "BOOL_OR", expressions=[value])
        case _:
            return node


def exact_aggregates(node: exp.Expression, others: set[str]) -> exp.Expression:
    """Replaces aggregates of doubles by exact ones over the list of all values; `others` are not doubles."""
    condition = node.expression.this if isinstance(node, exp.Filter) else None
    call = node.this if isinstance(node, exp.Filter) else node
    name = numbers.NAMES.get(type(call))
    if name is None or isinstance(node.parent, exp.Window):
        return node
    if all(column.name.lower() in others for column in call.find_all(exp.Column)):
        return node
    arguments = [call.this, call.expression] if name in numbers.OF_PAIRS else [call.this]
    found = exp.Anonymous(this=f"exact_{name}", expressions=[_values_of(argument, condition) for argument in arguments])
    return exp.cast(found, "DOUBLE")


def _values_of(argument: exp.Expression, condition: exp.Expression | None) -> exp.Expression:
    distinct = isinstance(argument, exp.Distinct)
    value = exp.cast((argument.expressions[0] if distinct else argument).copy(), "DOUBLE")
    values: exp.Expression = exp.Anonymous(
        this="LIST", expressions=[exp.Distinct(expressions=[value]) if distinct else value]
    )
    return values if condition is None else exp.Filter(this=values, expression=exp.Where(this=condition.copy()))


# what depends on the timestamps and the order of a window's tuples


def is_current_time(tree: exp.Expression) -> bool:
    """Whether the node is CURRENT_TIME."""
    return isinstance(tree, exp.CurrentTime) or (isinstance(tree, exp.Column) and tree.name.lower() == "current_time")


def is_element_time(tree: exp.Expression) -> bool:
    """Whether the node is ELEMENT_TIME."""
    return isinstance(tree, exp.Column) and tree.name.lower() == "element_time"


def with_stamps(tree: exp.Expression, inputs: dict[str, VaryingRelation]) -> exp.Expression:
    """Adds the timestamp and place in the stream to windows, for ELEMENT_TIME and aggregates that need an order."""
    for name, relation in inputs.items():
        if relation.stamps is not None:
            columns = [*relation.columns, (f"time_of_{name}", "BIGINT"), (f"place_of_{name}", "BIGINT")]
            pairs = zip(relation.bags, relation.stamps, strict=True)
            bags = [[(*row, *stamp) for row, stamp in zip(bag, stamps, strict=True)] for bag, stamps in pairs]
            inputs[name] = VaryingRelation(columns, bags, relation.stamps)
    selects = list(tree.find_all(exp.Select))
    windows = {id(select): _windows_of(select, inputs) for select in selects}
    for select in selects:
        for item in select.expressions:
            star = item.this if isinstance(item, exp.Column) else item
            if isinstance(star, exp.Star):
                own = [name for alias, name in windows[id(select)] if star is item or alias == item.table]
                hidden = [exp.to_identifier(f"{what}_of_{name}") for name in own for what in ("time", "place")]
                star.set("except_", hidden or None)
    for column in [column for column in tree.find_all(exp.Column) if is_element_time(column)]:
        around: exp.Expression | None = column
        found: list[tuple[str, str]] = []
        while around is not None and not found:
            around = around.parent
            found = [entry for entry in windows.get(id(around), []) if not column.table or column.table == entry[0]]
        if len(found) != 1:
            raise UserError("no-such-column", "ELEMENT_TIME belongs to one windowed stream in FROM")
        column.replace(exp.column(f"time_of_{found[0][1]}", table=found[0][0]))
    for call in [call for call in tree.find_all(*ORDERED) if not _is_analytic(call)]:
        select = call.find_ancestor(exp.Select)
        alone = len(windows[id(select)]) == 1 and not select.args.get("joins") and not select.args.get("laterals")
        place = exp.column(f"place_of_{windows[id(select)][0][1]}", table=windows[id(select)][0][0]) if alone else None
        _in_order(call, place)
    return tree


def _windows_of(select: exp.Select, inputs: dict[str, VaryingRelation]) -> list[tuple[str, str]]:
    """The windows in FROM: the alias of each, and its table."""
    from_ = select.args.get("from_")
    tables = [from_.this] if from_ is not None else []
    tables += [join.this for join in select.args.get("joins") or () if join.args.get("kind") not in ("SEMI", "ANTI")]
    named = [(table.alias, table.name) for table in tables if isinstance(table, exp.Table)]
    return [(alias, name) for alias, name in named if name in inputs and inputs[name].stamps is not None]


def _is_analytic(call: exp.Expression) -> bool:
    parent = call.parent
    while isinstance(parent, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        parent = parent.parent
    return isinstance(parent, exp.Window)


def _in_order(call: exp.Expression, place: exp.Expression | None) -> None:
    """Rewrites an aggregate that depends on order for DuckDB: by place in the stream, otherwise by value."""
    value, whole = call.this, call
    conditions = []
    while isinstance(whole.parent, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        whole = whole.parent
        if isinstance(whole, exp.IgnoreNulls):
            conditions.append(exp.Not(this=exp.Is(this=value.copy(), expression=exp.null())))
        if isinstance(whole, exp.Filter):
            conditions.append(whole.expression.this.copy())
    rising = [exp.Ordered(this=(place or value).copy(), nulls_first=True)]
    given: exp.Expression = value.copy()
    name = "LAST" if isinstance(call, exp.Last | exp.LastValue) else "FIRST"
    match call:
        case exp.ArrayAgg() | exp.ArrayUniqueAgg():
            name = "LIST"
            argument = value.expressions[0] if isinstance(value, exp.Distinct) else value
            conditions.append(exp.Not(this=exp.Is(this=argument.copy(), expression=exp.null())))
            if isinstance(call, exp.ArrayUniqueAgg) or isinstance(value, exp.Distinct):
                given = exp.Distinct(expressions=[argument.copy()])
                rising = [exp.Ordered(this=argument.copy(), nulls_first=True)]
        case exp.ArgMax() | exp.ArgMin():
            falling = isinstance(call, exp.ArgMax)
            keys = (call.expression, value)
            rising = [exp.Ordered(this=key.copy(), desc=falling, nulls_first=not falling) for key in keys]
            conditions.append(exp.Not(this=exp.Is(this=call.expression.copy(), expression=exp.null())))
    result: exp.Expression = exp.Anonymous(this=name, expressions=[exp.Order(this=given, expressions=rising)])
    if conditions:
        result = exp.Filter(this=result, expression=exp.Where(this=exp.and_(*conditions)))
    whole.replace(exp.Coalesce(this=result, expressions=[exp.Array(expressions=[])]) if name == "LIST" else result)


def has_aggregate(tree: exp.Expression | None) -> bool:
    """Whether the expression has an aggregate of the query itself, not only of a query inside it."""
    if tree is None or isinstance(tree, exp.Subquery | exp.Window):
        return False
    if isinstance(tree, exp.AggFunc | exp.Filter | exp.WithinGroup):
        return True
    return any(has_aggregate(child) for child in tree.iter_expressions())
