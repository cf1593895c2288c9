"""Windows that show each tuple when a declared order has gone beyond its value: tuples of the value that is still open
wait.

The first tuple with a larger value (a smaller one, if it falls) closes all that wait, at its own timestamp. Tuples at
one timestamp may come in any order. One that is behind a value of an earlier timestamp breaks what was declared, and so
does one that has none: the query stops there and says so, because its group has been put out or never will be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta.instants import stamp
from headgate.plan.nodes import Passed, Scan, Window, names
from headgate.sql import ONE, comma, listed, union

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def born(lowering: Lowering, node: Window, frame: Passed) -> str:
    tuples, waiting = lowering.tuples(node.child), lowering.fresh("waiting")
    own = (*names(node.child), "_t", *(("_s",) if node.child.arrival_ordered else ()))
    columns = listed((*own, "_v"))
    arriving = lowering.step("arriving", f"SELECT {listed(own)}, {frame.value} AS _v FROM {tuples}")
    every = lowering.step("open", union(f"SELECT {columns} FROM {waiting}", f"SELECT {columns} FROM {arriving}"))
    values = lowering.step("values", f"SELECT _v, MIN(_t) AS _first, MAX(_t) AS _last FROM {every} GROUP BY _v")
    over = f"(ORDER BY _v{'' if frame.rises else ' DESC'})"
    following = lowering.step(
        "following", f"SELECT _v, _last, LEAD(_v) OVER {over} AS _by, LEAD(_first) OVER {over} AS _at FROM {values}"
    )
    broken = f"CAST(RAISE_ERROR(CONCAT({_said(node, frame)})) AS BIGINT)"
    passed = lowering.step(
        "passed", f"SELECT _v, CASE WHEN _v IS NULL OR _at < _last THEN {broken} ELSE _at END AS _at FROM {following}"
    )
    closed = lowering.step(
        "closed", f"SELECT {listed((*own, '_v'), 'e')}, p._at FROM {every} AS e JOIN {passed} AS p ON e._v <=> p._v"
    )
    lowering.synopsis(waiting, lowering.step("later", f"SELECT {columns} FROM {closed} WHERE _at IS NULL"), arriving)
    row = comma(listed(names(node.child)), stamp(node), "_at AS _t", "_at + 1 AS _x", f"{ONE} AS _n")
    return lowering.step("window", f"SELECT {row} FROM {closed} WHERE _at IS NOT NULL")


def _said(node: Window, frame: Passed) -> str:
    """What is wrong, as the arguments of CONCAT."""
    stream = f'stream "{node.child.stream}"' if isinstance(node.child, Scan) else "the query it comes from"
    way = "fall" if frame.rises else "rise"
    text = f'column "{frame.column}" of {stream} was declared so that {frame.value} does not {way}, but '
    return (
        f"'{text}', COALESCE(CAST(_v AS STRING), 'null'), ' came after ', COALESCE(CAST(_by AS STRING), 'other values')"
    )
