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
    log = lowering.input(node.relation, Edge("since"), Edge("until"))
    return lowering.step("stored", f"SELECT {listed(names(node))}, _t, {NEVER} AS _x, _n FROM {log}")
