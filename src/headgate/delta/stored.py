"""Base relations: a log of rows put in and taken out.

    born     a row put in, open: nobody knows yet when it will be taken out. A row taken out counts -1.
    live     of a relation with a key, the rows that are there at `since`

The log of a relation has `_n` beside `_t`: 1 for a row put in, -1 for one taken out. In a relation with a key a row
also goes when the next one with its key comes, whether that is put in or taken out. So the rows that are there are
kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta.program import Edge
from headgate.delta.query import Alias, Joined, Table, select, union
from headgate.plan.nodes import Node, Stored, names, sources
from headgate.sql import NEVER, ONE, Sql, listed, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def at_rest(node: Node) -> bool:
    """True if a relation is made of base relations alone: most of it stays as it is from epoch to epoch."""
    return all(isinstance(source, Stored) for source in sources(node))


def born(lowering: Lowering, node: Stored) -> Table:
    """Born: the changes of the epoch. A relation that never changes is born at the first instant, with all its rows."""
    columns = listed(names(node))
    if node.key:
        return _replaced(lowering, node)
    if node.domain is not None:
        log = lowering.input(node.relation, Edge("since"), Edge("until"))
        return lowering.step("stored", select(f"{columns}, _t, {NEVER} AS _x, _n", log))
    first = Sql(f"CAST({lowering.origin} AS BIGINT)")
    log = lowering.input(node.relation, Edge(None), Edge("until"))
    stamps = f"{first} AS _t, {NEVER} AS _x, _n"
    return lowering.step("stored", select(f"{columns}, {stamps}", log, where=f"{first} > :since"))


def live(lowering: Lowering, node: Stored) -> Table:
    """Live: the rows of a relation with a key that are there at `since`."""
    lowering.born(node)
    stamps = f"_t, {NEVER} AS _x, {ONE} AS _n"
    return lowering.step("held", select(f"{listed(names(node))}, {stamps}", _synopsis(lowering, node)))


def _synopsis(lowering: Lowering, node: Stored) -> Table:
    return lowering.once("rows", node, lambda: lowering.fresh("rows"))


def _replaced(lowering: Lowering, node: Stored) -> Table:
    """Rows put in, until the next change of their key; of a row that was there before, its taking back."""
    held, columns = _synopsis(lowering, node), listed(names(node))
    log = lowering.input(node.relation, Edge("since"), Edge("until"))
    carried, key = f"{columns}, _t, _s, _n", listed(node.key)
    over = f"PARTITION BY {key} ORDER BY _t, _s"
    until_next = f"{carried}, LEAD(_t) OVER ({over}) AS _x"
    every = lowering.step("every", union(select(carried, held), select(carried, log)))
    in_order = lowering.step("in_order", select(until_next, every))
    last = lowering.step("last", select(carried, in_order, where=(Sql("_x IS NULL"), Sql("_n = 1"))))
    lowering.synopsis(held, last, lowering.step("arriving", select(carried, log)))
    # Only rows whose key comes again can change. If none comes, Spark plans nothing at all.
    coming = lowering.step("coming", select(key, log, group_by=key))
    same = tuple(f"h.{name(one)} <=> c.{name(one)}" for one in node.key)
    again = select(
        listed((*names(node), "_t", "_s", "_n"), Sql("h")), Joined(Alias(held, "h"), Alias(coming, "c"), same)
    )
    changes = lowering.step("changes", union(again, select(carried, log)))
    replaced = lowering.step("replaced", select(until_next, changes))
    put_in = select(
        f"{columns}, _t, _x, _n", replaced, where=(Sql("_t > :since"), Sql("_n = 1"), Sql("(_x IS NULL OR _x > _t)"))
    )
    taken_back = select(
        f"{columns}, _x AS _t, {NEVER} AS _x, -_n AS _n", replaced, where=(Sql("_t <= :since"), Sql("_x IS NOT NULL"))
    )
    return lowering.step("stored", union(put_in, taken_back))
