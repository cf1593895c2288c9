"""The rows that can still be the largest or smallest of their group: all that MIN and MAX over a moving window keep.

    elements     the elements that live at some instant of the epoch, of those before it only the leaders

A row leads its group if no row that lives as long, or longer, is as extreme. A row that does not lead is never the
answer again: the row that beats it is there until it goes, and beyond. So of a window of n rows in no special order,
about ln n are kept for each group and call.

What lives at `since` is a synopsis, and the window is not read again in every epoch. Where logs hold the window, they
are kept as far back as it reaches: after a long epoch, its last part says who leads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta import sweep
from headgate.delta.accumulators import ranked
from headgate.delta.query import Table, select, union
from headgate.plan import bounds
from headgate.plan.expressions import Call
from headgate.plan.nodes import Aggregate
from headgate.sql import EMPTY, Sql, comma, listed

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

ORDERS = {"max": (Sql("MAX"), Sql("DESC"), Sql(">")), "min": (Sql("MIN"), Sql("ASC"), Sql("<"))}
"""By function: what it is in Spark, the order with the most extreme value first, and how that compares with others."""


def leads(call: Call) -> bool:
    """True if only leaders can be the answer of a call."""
    return call.function in ORDERS and len(call.arguments) == 1 and not call.outside


def elements(lowering: Lowering, node: Aggregate) -> Table:
    """The columns that the calls need and the keys of the groups, of all rows that can be an answer in the epoch."""
    lowering.has_leaders = True
    lowering.note_expiry(node.child)
    kept, born, alive = lowering.fresh("leaders"), lowering.born(node.child), lowering.alive(node.child)
    before = comma(listed((*sweep.group(node), *sweep.needed(node))), Sql("CAST(:since AS BIGINT) AS _t, _x, _n"))
    row = comma(sweep.keys(node), listed((*sweep.needed(node), "_t", "_x", "_n")))
    every = lowering.step("elements", union(select(before, kept), select(row, born)))
    lowering.synopsis(
        kept,
        _leading(lowering, node, every, Sql("_x > :until")),
        lowering.step("shape", select(comma(sweep.keys(node), listed((*sweep.needed(node), "_x", "_n"))), born)),
        bounds.leaders(node),
        _leading(lowering, node, lowering.step("living", select(row, alive))) if alive else None,
    )
    return every


def _kept(node: Aggregate) -> Sql:
    """The columns of the synopsis."""
    return listed((*sweep.group(node), *sweep.needed(node), "_x", "_n"))


def _leading(lowering: Lowering, node: Aggregate, rows: Table, where: Sql = EMPTY) -> Table:
    """The rows that lead by one of the calls. The row that lives longest stays in any case: the group is there."""
    hidden, ways = sweep.group(node), list(dict.fromkeys((call.function, ranked(call)) for call in node.calls))
    by = f"PARTITION BY {listed(hidden)} " if hidden else EMPTY
    found, leading = list[Sql](), list[Sql]()
    for number, (function, sql) in enumerate(ways):
        extreme, order, beats = ORDERS[function]
        over = f"({by}ORDER BY _x DESC, {sql} {order}"
        found += [
            f"ROW_NUMBER() OVER {over}) AS _place{number}",
            f"{sql} AS _v{number}",
            f"{extreme}({sql}) OVER {over} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _best{number}",
        ]
        better = f"COALESCE(_v{number} {beats} _best{number}, TRUE)"
        leading += [Sql(f"_place{number} = 1"), f"(_v{number} IS NOT NULL AND {better})"]
    in_order = lowering.step("ranked", select(comma(_kept(node), *found), rows, where=where))
    return lowering.step("leading", select(_kept(node), in_order, where=f"({' OR '.join(leading)})"))
