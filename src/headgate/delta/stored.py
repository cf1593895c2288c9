"""Base relations: a log of rows put in and taken out. A row put in stays until it is taken out, which is not known
before.

The log of a relation has `_n` beside `_t`: 1 for a row put in, -1 for one taken out. In a relation with a key a row
also goes when the next one with its key comes, whether that is put in or taken out; the rows that are there are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta.program import Edge
from headgate.plan.nodes import Stored, names
from headgate.sql import NEVER, ONE, listed, union

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def born(lowering: Lowering, node: Stored) -> str:
    columns = listed(names(node))
    if node.key:
        return _replaced(lowering, node)
    if node.domain is not None:
        log = lowering.input(node.relation, Edge("since"), Edge("until"))
        return lowering.step("stored", f"SELECT {columns}, _t, {NEVER} AS _x, _n FROM {log}")
    # A relation that never changes is there from the first instant on, whatever kind of time the query lives in.
    first = f"CAST({lowering.origin} AS BIGINT)"
    log = lowering.input(node.relation, Edge(None), Edge("until"))
    return lowering.step(
        "stored", f"SELECT {columns}, {first} AS _t, {NEVER} AS _x, _n FROM {log} WHERE {first} > :since"
    )


def live(lowering: Lowering, node: Stored) -> str:
    """The rows of a relation with a key that are there at `since`."""
    lowering.born(node)
    return lowering.step(
        "held", f"SELECT {listed(names(node))}, _t, {NEVER} AS _x, {ONE} AS _n FROM {_synopsis(lowering, node)}"
    )


def _synopsis(lowering: Lowering, node: Stored) -> str:
    return lowering.once("rows", node, lambda: lowering.fresh("rows"))


def _replaced(lowering: Lowering, node: Stored) -> str:
    """Rows put in, until the next change of their key; of a row that was there before, its taking back."""
    held, columns = _synopsis(lowering, node), listed(names(node))
    log = lowering.input(node.relation, Edge("since"), Edge("until"))
    carried = f"{columns}, _t, _s, _n"
    changes = lowering.step("changes", union(f"SELECT {carried} FROM {held}", f"SELECT {carried} FROM {log}"))
    over = f"PARTITION BY {listed(node.key)} ORDER BY _t, _s"
    replaced = lowering.step("replaced", f"SELECT {carried}, LEAD(_t) OVER ({over}) AS _x FROM {changes}")
    last = lowering.step("last", f"SELECT {carried} FROM {replaced} WHERE _x IS NULL AND _n = 1")
    lowering.synopsis(held, last, lowering.step("arriving", f"SELECT {carried} FROM {log}"))
    return lowering.step(
        "stored",
        union(
            f"SELECT {columns}, _t, _x, _n FROM {replaced} WHERE _t > :since AND _n = 1 AND (_x IS NULL OR _x > _t)",
            f"SELECT {columns}, _x AS _t, {NEVER} AS _x, -_n AS _n FROM {replaced} WHERE _t <= :since AND _x IS NOT "
            "NULL",
        ),
    )
