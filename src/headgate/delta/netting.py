"""From elements to changes instant by instant, and what is kept of a relation between epochs.

    Istream(R)(t) = R(t) - R(t-1),  Dstream(R)(t) = R(t-1) - R(t)

At each instant the rows that begin are set off against equal rows that end. That is a grouping of everything by row and
instant, so it is left out where no equal row can end at the instant at which one begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta import sweep
from headgate.plan.nodes import Relation, names
from headgate.sql import NEVER, conjunction, listed, union

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def changes(lowering: Lowering, node: Relation) -> str:
    """The result of a query that gives a relation: its rows as they come (1) and go (-1)."""
    columns = listed(names(node))
    come, go = inserts(lowering, node), deletes(lowering, node)
    parts = [f"SELECT {columns}, _t, CAST(1 AS BIGINT) AS _n FROM {come}"]
    if go is not None:
        parts.append(f"SELECT {columns}, _t, CAST(-1 AS BIGINT) AS _n FROM {go}")
    return lowering.step("result", union(*parts))


def elements(lowering: Lowering, node: Relation) -> str:
    """The relation for another fragment to read, such that any cut of time gives the same elements.

    Where nothing is taken back, an element and its end follow from the input alone. Elsewhere the end of a row is known
    or not depending on where the epoch ends, so the rows are put out as they come and go."""
    if not node.retracts:
        return lowering.step("result", f"SELECT {listed(names(node))}, _t, _x, _n FROM {lowering.born(node)}")
    return lowering.step(
        "result", f"SELECT {listed(names(node))}, _t, {NEVER} AS _x, _n FROM {changes(lowering, node)}"
    )


def inserts(lowering: Lowering, node: Relation) -> str:
    """The rows that come, one by one: their columns and `_t`."""
    if node.group_key is not None and (timeline := lowering.timeline(node)):
        return sweep.inserts(lowering, node, timeline)
    if unmatched(node):
        return lowering.born(node)
    return repeated(lowering, node, f"SELECT {listed(names(node))}, _t, _n FROM {netted(lowering, node)} WHERE _n > 0")


def deletes(lowering: Lowering, node: Relation) -> str | None:
    """The rows that go, one by one."""
    columns = listed(names(node))
    if node.group_key is not None and (timeline := lowering.timeline(node)):
        return sweep.deletes(lowering, node, timeline)
    if node.endless:
        return None
    if unmatched(node):
        gone = [f"SELECT {columns}, _x AS _t FROM {lowering.born(node)} WHERE _x <= :until"]
        ends = lowering.ends(node)
        if ends is not None:
            gone.append(f"SELECT {columns}, _x AS _t FROM {ends}")
        return lowering.step("gone", union(*gone))
    return repeated(lowering, node, f"SELECT {columns}, _t, -_n AS _n FROM {netted(lowering, node)} WHERE _n < 0")


def unmatched(node: Relation) -> bool:
    """No equal row ends when one begins, and nothing is taken back: elements need no netting."""
    return not node.retracts and (node.endless or node.stamped_by is not None)


def netted(lowering: Lowering, node: Relation) -> str:
    def make() -> str:
        columns = listed(names(node))
        born = lowering.born(node)
        events = [
            f"SELECT {columns}, _t, _n FROM {born}",
            f"SELECT {columns}, _x AS _t, -_n AS _n FROM {born} WHERE _x <= :until",
        ]
        ends = lowering.ends(node)
        if ends is not None:
            events.append(f"SELECT {columns}, _x AS _t, -_n AS _n FROM {ends}")
        return lowering.step(
            "netted",
            f"SELECT {columns}, _t, SUM(_n) AS _n FROM (\n{union(*events)}\n)\nGROUP BY {columns}, _t HAVING SUM(_n) "
            "<> 0",
        )

    return lowering.once("netted", node, make)


def repeated(lowering: Lowering, node: Relation, counted: str) -> str:
    """Every row as often as its count says."""
    return lowering.step(
        "repeated",
        f"SELECT {listed(names(node))}, _t FROM (\n{counted}\n)\n"
        f"LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(_n AS BIGINT))) e AS _copy",
    )


def kept(lowering: Lowering, node: Relation, needed: str = "") -> str:
    """The live elements of a relation that no log holds: a synopsis of what outlives the epoch, net of what is taken
    back.

    With a condition, only those that are still needed after the epoch.
    """
    columns = listed(names(node))
    born = lowering.born(node)
    name = lowering.fresh("kept")
    lowering.timed |= not node.open_ended
    outlives = conjunction("(_x IS NULL OR _x > :until)", needed)
    both = union(
        f"SELECT {columns}, _x, _n FROM {name} WHERE {outlives}",
        f"SELECT {columns}, _x, _n FROM {born} WHERE {outlives}",
    )
    if node.retracts:
        both = f"SELECT {columns}, _x, SUM(_n) AS _n FROM (\n{both}\n)\nGROUP BY {columns}, _x HAVING SUM(_n) <> 0"
    shape = lowering.step("shape", f"SELECT {columns}, _x, _n FROM {born}")
    contents = lowering.step("keep", both)
    lowering.synopsis(name, contents, shape)
    return lowering.step("live", f"SELECT {columns}, CAST(:since AS BIGINT) AS _t, _x, _n FROM {name}")
