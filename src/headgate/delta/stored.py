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
from headgate.delta.query import Table, select, union
from headgate.plan.nodes import Stored, names
from headgate.sql import NEVER, ONE, listed

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def born(lowering: Lowering, node: Stored) -> Table:
    """Born: the changes of the epoch. A relation that never changes is born at the first instant, with all its rows."""
    columns = listed(names(node))
    if node.key:
        return _replaced(lowering, node)
    if node.domain is not None:
        log = lowering.input(node.relation, Edge("since"), Edge("until"))
        return lowering.step("stored", select(f"{columns}, _t, {NEVER} AS _x, _n", log))
    first = f"CAST({lowering.origin} AS BIGINT)"
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
    carried = f"{columns}, _t, _s, _n"
    changes = lowering.step("changes", union(select(carried, held), select(carried, log)))
    over = f"PARTITION BY {listed(node.key)} ORDER BY _t, _s"
    replaced = lowering.step("replaced", select(f"{carried}, LEAD(_t) OVER ({over}) AS _x", changes))
    last = lowering.step("last", select(carried, replaced, where=("_x IS NULL", "_n = 1")))
    lowering.synopsis(held, last, lowering.step("arriving", select(carried, log)))
    put_in = select(f"{columns}, _t, _x, _n", replaced, where=("_t > :since", "_n = 1", "(_x IS NULL OR _x > _t)"))
    taken_back = select(
        f"{columns}, _x AS _t, {NEVER} AS _x, -_n AS _n", replaced, where=("_t <= :since", "_x IS NOT NULL")
    )
    return lowering.step("stored", union(put_in, taken_back))
