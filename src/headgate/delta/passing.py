"""Windows that show each tuple when a declared order has passed its value.

    born     the tuples whose value is passed in the epoch, for the one instant at which that happens

Tuples of the value that is still open wait in a synopsis. The first tuple with a larger value (a smaller one, if the
order falls) closes all that wait, at its own timestamp. Tuples at one timestamp may come in any order. A tuple that is
behind a value of an earlier timestamp breaks the declaration, and so does one without a value: the query stops there
with an error, because the group of that tuple has been put out, or never will be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta.instants import stamp
from headgate.delta.query import Alias, Joined, Table, select, union
from headgate.plan.nodes import Passed, Scan, Window, names
from headgate.sql import ONE, Sql, comma, listed, literal

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def born(lowering: Lowering, node: Window, frame: Passed) -> Table:
    """Born: each tuple at the timestamp of the first tuple that passes its value."""
    tuples, waiting = lowering.tuples(node.child), lowering.fresh("waiting")
    own = (*names(node.child), "_t", *(("_s",) if node.child.arrival_ordered else ()))
    columns = listed((*own, "_v"))
    arriving = lowering.step("arriving", select(f"{listed(own)}, {frame.value} AS _v", tuples))
    every = lowering.step("open", union(select(columns, waiting), select(columns, arriving)))
    values = lowering.step("values", select(Sql("_v, MIN(_t) AS _first, MAX(_t) AS _last"), every, group_by=Sql("_v")))
    over = Sql(f"(ORDER BY _v{'' if frame.rises else ' DESC'})")
    following = lowering.step(
        "following", select(f"_v, _last, LEAD(_v) OVER {over} AS _by, LEAD(_first) OVER {over} AS _at", values)
    )
    broken = f"CAST(RAISE_ERROR(CONCAT({_message(node, frame)})) AS BIGINT)"
    passed = lowering.step(
        "passed", select(f"_v, CASE WHEN _v IS NULL OR _at < _last THEN {broken} ELSE _at END AS _at", following)
    )
    both = Joined(Alias(every, "e"), Alias(passed, "p"), (Sql("e._v <=> p._v"),))
    closed = lowering.step("closed", select(f"{listed((*own, '_v'), Sql('e'))}, p._at", both))
    lowering.synopsis(waiting, lowering.step("later", select(columns, closed, where=Sql("_at IS NULL"))), arriving)
    row = comma(listed(names(node.child)), stamp(node), Sql("_at AS _t, _at + 1 AS _x"), f"{ONE} AS _n")
    return lowering.step("window", select(row, closed, where=Sql("_at IS NOT NULL")))


def _message(node: Window, frame: Passed) -> Sql:
    """The text of the error, as the arguments of CONCAT."""
    stream = f'stream "{node.child.stream}"' if isinstance(node.child, Scan) else "the query it comes from"
    way = "fall" if frame.rises else "rise"
    text = f'column "{frame.column}" of {stream} was declared so that {frame.value} does not {way}, but '
    values = Sql("COALESCE(CAST(_v AS STRING), 'null'), ' came after ', COALESCE(CAST(_by AS STRING), 'other values')")
    return f"{literal(text)}, {values}"
