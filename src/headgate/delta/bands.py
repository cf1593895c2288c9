"""Sums of doubles that do not fit: whole numbers by band, and over the few bands of a group the universal rule.

    rows with such a double  →  by group and band, scaled so that they fit: exact running sums
                             →  by group: the list of its bands, in their order, put together with the sums of those
                                that fit

Bands are put together in doubles, always in the same order. So the answer depends on the rows that are there and on
nothing else. This module makes plans and expressions; `running` makes the steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.delta import exact
from headgate.plan.derived import column
from headgate.plan.expressions import Call, Expression, Named
from headgate.plan.nodes import Aggregate, Filter, Project, Relation
from headgate.sql import BIGINT, BOOLEAN, UNKNOWN, Sql, spelled

FITTING = Sql("DOUBLE FITTING")
"""The type of a double that is known to fit."""

NAN = Sql("CAST('NaN' AS DOUBLE)")


def by_group(node: Aggregate, call: Call, given: Sql, name: str, spread: bool) -> Aggregate:
    """The plan that gives, for each group of the node, the list of bands of the doubles that a call takes."""
    values = [f"CAST({argument.sql} AS DOUBLE)" for argument in call.arguments]
    condition = f"{given} AND NOT ({' AND '.join(map(exact.fits, values))})"
    rows: Relation = Filter(node.child, Expression(condition, BOOLEAN, call.columns))
    keys = [Named(f"k{number}", key.expression) for number, key in enumerate(node.keys, 1)]
    sides = range(1, len(values) + 1)
    taken = [Named(f"v{i}", Expression(sql, Sql("DOUBLE"), call.columns)) for i, sql in zip(sides, values, strict=True)]
    rows = Project(rows, (*keys, *taken))
    rows = _extended(rows, [Named(f"b{i}", _over(exact.band(Sql(f"v{i}")), Sql("INT"), f"v{i}")) for i in sides])
    rows = _extended(
        rows,
        [Named(f"z{i}", _over(exact.scaled(Sql(f"v{i}"), Sql(f"b{i}")), FITTING, f"v{i}", f"b{i}")) for i in sides],
    )
    groups = tuple(Named(key, column(rows, key)) for key in (*(key.name for key in keys), *(f"b{i}" for i in sides)))
    calls = [_call(rows, "n", "count", "z1"), _call(rows, "s", "sum", "z1")]
    if spread:
        calls += [_call(rows, f"m{i}", "avg", f"z{i}") for i in sides]
        calls += [_call(rows, f"q{i}", "variance_pop", f"z{i}") for i in sides]
        calls += [_call(rows, "q", "covar_pop", "z1", "z2")] if len(values) > 1 else []
    inner = Aggregate(rows, groups, tuple(calls), row_when_empty=False)
    listed = f"COLLECT_LIST(STRUCT({', '.join(_fields(len(values), spread))}))"
    names = frozenset(one.name for one in inner.columns)
    outer = Call(name, "array_agg", listed, UNKNOWN, (), False, None, names)
    return Aggregate(
        inner, tuple(Named(key.name, column(inner, key.name)) for key in keys), (outer,), row_when_empty=False
    )


def _fields(sides: int, spread: bool) -> list[Sql]:
    """The fields of a band: its number, how many doubles it holds, their sum; for spreads also the means and the sums
    of squares about them.
    """
    infinite = Sql("CAST('Infinity' AS DOUBLE)")
    special = (
        f"WHEN {exact.INFINITE} THEN {infinite} WHEN {exact.MINUS_INFINITE} THEN -{infinite} WHEN "
        f"{exact.NOT_A_NUMBER} THEN {NAN}"
    )
    fields = [Sql(f"b{i} AS b{i}") for i in range(1, sides + 1)]
    fields += [Sql("n AS n"), f"CASE b1 {special} ELSE {exact.restored(Sql('s'), Sql('b1'))} END AS s"]
    if not spread:
        return fields
    nowhere = " OR ".join(Sql(f"b{i} >= {exact.INFINITE}") for i in range(1, sides + 1))

    def finite(sql: Sql) -> Sql:
        return f"CASE WHEN {nowhere} THEN {NAN} ELSE {sql} END"

    fields += [f"{finite(exact.restored(Sql(f'm{i}'), Sql(f'b{i}')))} AS m{i}" for i in range(1, sides + 1)]
    fields += [
        f"{finite(exact.restored(Sql(f'q{i}'), Sql(f'b{i}'), Sql(f'b{i}')))} AS q{i}" for i in range(1, sides + 1)
    ]
    return [*fields, f"{finite(exact.restored(Sql('q'), Sql('b1'), Sql('b2')))} AS q"] if sides > 1 else fields


def _extended(rows: Relation, items: Sequence[Named]) -> Project:
    return Project(rows, (*(Named(one.name, column(rows, one.name)) for one in rows.columns), *items))


def _over(sql: Sql, kind: Sql, *columns: str) -> Expression:
    return Expression(sql, kind, frozenset(columns))


def _call(rows: Relation, name: str, function: str, *columns: str) -> Call:
    arguments = tuple(_over(spelled(one), FITTING, one) for one in columns)
    kind = BIGINT if function == "count" else Sql("DOUBLE")
    return Call(
        name,
        function,
        f"{spelled(function)}({', '.join(map(spelled, columns))})",
        kind,
        arguments,
        False,
        None,
        frozenset(columns),
    )


# put together with the doubles that fit


def total(fitting: Sql, bands: Sql) -> Sql:
    """The sum of all doubles, from that of the ones that fit and those of the bands."""
    return f"CASE WHEN {bands} IS NULL THEN {fitting} ELSE {_folded(bands, fitting, Sql('e.s'))} END"


def fitting_count(count: Sql, bands: Sql) -> Sql:
    """How many of the doubles fit, as a whole number."""
    return f"({count} - COALESCE(AGGREGATE({bands}, CAST(0 AS BIGINT), (a, e) -> a + e.n), 0))"


def mean(bands: Sql, count: Sql, fitting: Sql, fitting_mean: Sql, side: int) -> Sql:
    """The mean of all doubles, from the count and mean of the ones that fit and those of the bands."""
    return _folded(bands, f"{fitting_mean} * ({fitting} / {count})", f"e.m{side} * (e.n / {count})")


def squares(bands: Sql, fitting: Sql, within: Sql, sides: Sequence[tuple[int, Sql, Sql]], field: Sql) -> Sql:
    """The sum of squares or products about the mean, of all doubles: within each band, and between the bands.

    `sides` holds for each side its number, the mean of the doubles that fit, and the mean of all.
    """
    ours = " * ".join(f"({fitting_mean} - {every})" for _, fitting_mean, every in sides)
    theirs = " * ".join(f"(e.m{side} - {every})" for side, _, every in sides)
    folded = _folded(bands, f"{within} + {fitting} * {ours}", f"(e.{field} * e.n + e.n * {theirs})")
    return f"CASE WHEN {bands} IS NULL THEN {within} ELSE {folded} END"


def _folded(bands: Sql, start: Sql, each: Sql) -> Sql:
    return f"AGGREGATE(SORT_ARRAY({bands}), {start}, (a, e) -> a + {each})"
