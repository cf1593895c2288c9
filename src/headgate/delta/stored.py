"""Base relations: a log of rows put in and taken out. A row put in stays until it is taken out, which is not known before.

The log of a relation has `_n` beside `_t`: 1 for a row put in, -1 for one taken out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta.program import Edge
from headgate.delta.sql import NEVER, listed
from headgate.plan.nodes import Stored, names

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def born(lowering: Lowering, node: Stored) -> str:
    columns = listed(names(node))
    if node.domain is not None:
        log = lowering.input(node.relation, Edge("since"), Edge("until"))
        return lowering.step("stored", f"SELECT {columns}, _t, {NEVER} AS _x, _n FROM {log}")
    # A relation that never changes is there from the first instant on, whatever kind of time the query lives in.
    first = f"CAST({lowering.origin} AS BIGINT)"
    log = lowering.input(node.relation, Edge(None), Edge("until"))
    return lowering.step("stored", f"SELECT {columns}, {first} AS _t, {NEVER} AS _x, _n FROM {log} WHERE {first} > :since")
