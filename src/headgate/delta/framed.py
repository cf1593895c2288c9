"""Aggregates over a time window by Spark's own window frames.

    timeline     of a window of fixed length: the aggregate of one RANGE frame before each instant of change

In a window of fixed length the rows that live at an instant are those with timestamps in one frame before it. So the
rows of a group in order of time, and one mark at each instant at which something leaves, are walked through with RANGE
frames. Spark evaluates these on a tree of partial aggregates. Nothing is ever subtracted, so nothing drifts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headgate.delta import sweep
from headgate.delta.query import Select, Table, select, union
from headgate.plan.expressions import Call
from headgate.plan.nodes import Aggregate, domain
from headgate.sql import EMPTY, Sql, comma, listed, name
from headgate.ticks import Tick

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

FRAMED = {
    "min": Sql("MIN"),
    "max": Sql("MAX"),
    "arg_min": Sql("MIN_BY"),
    "arg_max": Sql("MAX_BY"),
    "skewness": Sql("SKEWNESS"),
    "kurtosis": Sql("KURTOSIS"),
    "bitwise_and_agg": Sql("BIT_AND"),
    "bitwise_or_agg": Sql("BIT_OR"),
    "bitwise_xor_agg": Sql("BIT_XOR"),
}
"""The functions that this rule computes, with their names in Spark."""


def framed(call: Call) -> bool:
    """True if this rule can compute the call."""
    return call.function in FRAMED and not call.distinct and bool(call.arguments)


def timeline(lowering: Lowering, node: Aggregate, span: Tick, leaders: Table | None = None) -> Table:
    """Timeline: the calls over frames of the window's length, at each row and at each mark.

    `leaders` are the rows that count, if they are not all of the child's.
    """
    hidden = sweep.group(node)
    every = lowering.all_elements(node.child) if leaders is None else leaders
    terms: dict[Sql, Sql] = {}

    def column(sql: Sql) -> Sql:
        return terms.setdefault(sql, Sql(f"_v{len(terms)}"))

    calls = {call.name: _over(call, column) for call in node.calls}
    values = list(terms.values())
    own = sweep.keys(node) if leaders is None else listed(hidden)
    rows = comma(own, Sql(f"_x - {span} AS _at"), *(f"{sql} AS {v}" for sql, v in terms.items()), Sql("1 AS _one"))
    elements = lowering.step("elements", select(f"{rows}, _x", every))
    nulls = ", ".join(f"NULL AS {v}" for v in (*values, Sql("_one")))
    origin = domain(node.child).origin

    def marks(instants: Select) -> Select:
        return select(comma(listed((*hidden, "_at")), nulls), instants)

    ends = select(f"DISTINCT {comma(listed(hidden), Sql('_x AS _at'))}", elements, where=Sql("_x <= :until"))
    since = comma(listed(hidden), Sql("CAST(:since AS BIGINT) AS _at"))
    parts = [
        select(listed((*hidden, "_at", *values, "_one")), elements),
        marks(ends),
        marks(select(f"DISTINCT {since}", elements, where=Sql(f":since >= {origin}"))),
    ]
    if node.row_when_empty:
        begun = (Sql(f"{origin} > :since"), Sql(f"{origin} <= :until"))
        parts.append(marks(select(Sql(f"CAST({origin} AS BIGINT) AS _at"), where=begun)))
    walked = lowering.step("walked", union(*parts))
    by = f"PARTITION BY {listed(hidden)} " if hidden else EMPTY
    over = f"({by}ORDER BY _at RANGE BETWEEN {span - 1} PRECEDING AND CURRENT ROW)"
    computed = ", ".join(f"{sql} OVER {over} AS {name(call)}" for call, sql in calls.items())
    found = comma(listed((*hidden, "_at")), computed)
    following = f"LEAD(_at) OVER ({by}ORDER BY _at) AS _next"
    swept = lowering.step("swept", select(f"{found}, COUNT(_one) OVER {over} AS _rows,\n  {following}", walked))
    living = Sql("TRUE") if node.row_when_empty else Sql("_rows > 0")
    row = comma(sweep.keys_again(node), listed(calls), listed(hidden), Sql("_at AS _t"), f"{living} AS _live")
    return lowering.step(
        "timeline", select(row, swept, where=(Sql("_at >= :since"), Sql("(_next IS NULL OR _next > _at)")))
    )


def _over(call: Call, column: Callable[[Sql], Sql]) -> Sql:
    """The call over columns that are null in the marks, and where its FILTER does not hold."""
    arguments = [
        column(f"CASE WHEN {call.condition} THEN {argument.sql} END" if call.condition else argument.sql)
        for argument in call.arguments
    ]
    return f"{FRAMED[call.function]}({', '.join(arguments)})"
