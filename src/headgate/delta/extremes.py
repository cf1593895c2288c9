"""The largest and smallest of a group, however rows come and go: a tree over the instants at which the group changes.

    timeline     for each group and instant of change, the extreme of the rows that live at that instant

The instants of a group are numbered. A row that lives from one to another is written to the few nodes of a binary tree
that make up its stretch, at most two on each level. Each node keeps its extreme, and an instant looks at the nodes
above it, one on each level. So n rows cost n log n, where looking at all rows at each instant would cost their product.
Rows that are taken back are counted first: what matters is from when until when a value is there at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta import recomputed, sweep
from headgate.delta.accumulators import field, ranked
from headgate.delta.query import Alias, Joined, LateralView, Table, select, union
from headgate.plan.nodes import Aggregate
from headgate.plan.sums import EXTREMES
from headgate.sql import ALL, EMPTY, Sql, comma, listed, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def timeline(lowering: Lowering, node: Aggregate, unchanged: bool = False) -> Table:
    """Timeline: at each instant of change, the extreme over the nodes of the tree above it.

    With `unchanged`, groups in which nothing changes are there too, as they are at `since`.
    """
    hidden = sweep.group(node)
    values = [Sql(f"_v{number}") for number in range(len(node.calls))]
    selected = ", ".join(f"{ranked(call)} AS {value}" for call, value in zip(node.calls, values, strict=True))
    every = lowering.all_elements(node.child)
    elements = lowering.step("elements", select(comma(sweep.keys(node), selected, Sql("_t, _x, _n")), every))
    moments = recomputed.moments_of(lowering, node, elements, unchanged)
    by = f"PARTITION BY {listed(hidden)}" if hidden else EMPTY
    count = f"ROW_NUMBER() OVER ({by}{' ' if by else ''}ORDER BY _at) - 1 AS _i, COUNT(*) OVER ({by}) AS _of"
    numbered = lowering.step("numbered", select(f"{comma(listed(hidden), Sql('_at'))}, {count}", moments))
    found = _looked_up(lowering, node, _stretches(lowering, node, elements, numbered, values), numbered, values)
    shown = ", ".join(f"f.{v}{field(call)} AS {name(call.name)}" for call, v in zip(node.calls, values, strict=True))
    living = Sql("TRUE") if node.row_when_empty else Sql("f._i IS NOT NULL")
    row = comma(
        sweep.keys_again(node, Sql("m")), shown, listed(hidden, Sql("m")), Sql("m._at AS _t"), f"{living} AS _live"
    )
    same = (*_same(hidden, Sql("m"), Sql("f")), Sql("m._i = f._i"))
    return lowering.step("timeline", select(row, Joined(Alias(numbered, "m"), Alias(found, "f"), same, outer=True)))


def _same(hidden: tuple[Sql, ...], one: Sql, two: Sql) -> tuple[Sql, ...]:
    """The conditions that two aliases are of the same group."""
    return tuple(f"{one}.{key} <=> {two}.{key}" for key in hidden) or (Sql("TRUE"),)


def _stretches(lowering: Lowering, node: Aggregate, elements: Table, numbered: Table, values: list[Sql]) -> Table:
    """From which number `_l` until which number `_r`, exclusive, the values of a row are there."""
    hidden = sweep.group(node)
    by = listed((*hidden, *values))
    present = elements
    if node.child.retracts:
        events = union(
            select(f"{by}, GREATEST(_t, :since) AS _t, _n", elements),
            select(f"{by}, _x AS _t, -_n AS _n", elements, where=Sql("_x <= :until")),
        )
        counted = select(f"{by}, _t, SUM(_n) AS _n", events, group_by=f"{by}, _t", having=Sql("SUM(_n) <> 0"))
        over = f"(PARTITION BY {by} ORDER BY _t)"
        running = select(f"{by}, _t, LEAD(_t) OVER {over} AS _x, SUM(_n) OVER {over} AS _n", counted)
        present = lowering.step("present", select(f"{by}, _t, _x", running, where=Sql("_n > 0")))
    begun = (*_same(hidden, Sql("p"), Sql("b")), Sql("b._at = GREATEST(p._t, :since)"))
    ended = (*_same(hidden, Sql("p"), Sql("e")), Sql("e._at = p._x"))
    bounded = Joined(Joined(Alias(present, "p"), Alias(numbered, "b"), begun), Alias(numbered, "e"), ended, outer=True)
    return lowering.step(
        "stretches", select(f"{listed((*hidden, *values), Sql('p'))}, b._i AS _l, COALESCE(e._i, b._of) AS _r", bounded)
    )


def _looked_up(lowering: Lowering, node: Aggregate, stretches: Table, numbered: Table, values: list[Sql]) -> Table:
    """For each group and number of an instant, the extremes: each stretch goes to its nodes, each instant asks those
    above it.
    """
    hidden = sweep.group(node)
    keys, carried = listed(hidden), listed((*hidden, *values))
    extremes = [EXTREMES[call.function] for call in node.calls]
    # Of the numbers in [l, r) a level has the whole nodes from l / 2^level, rounded up, to r / 2^level, rounded down.
    # Those at either edge that are not two halves of a node one level higher are the stretch's own.
    first = Sql("SHIFTRIGHT(_l + SHIFTLEFT(CAST(1 AS BIGINT), _level) - 1, _level)")
    levels = select(ALL, LateralView(stretches, Sql("EXPLODE(SEQUENCE(0, CAST(LOG2(_r - _l) AS INT))) e AS _level")))
    edges = select(f"{carried}, _level, {first} AS _a, SHIFTRIGHT(_r, _level) AS _b", levels)
    own = Sql("ARRAY(CASE WHEN _a % 2 = 1 THEN _a END, CASE WHEN _b % 2 = 1 THEN _b - 1 END)")
    placed = select(
        ALL, LateralView(edges, f"EXPLODE({own}) e AS _node"), where=(Sql("_a < _b"), Sql("_node IS NOT NULL"))
    )
    best = ", ".join(f"{extreme}({value}) AS {value}" for extreme, value in zip(extremes, values, strict=True))
    nodes = lowering.step(
        "nodes",
        select(comma(keys, Sql("_level, _node"), best), placed, group_by=comma(keys, Sql("_level, _node"))),
    )
    above = lowering.step(
        "above",
        select(
            comma(keys, Sql("_i, _level, SHIFTRIGHT(_i, _level) AS _node")),
            LateralView(numbered, Sql("EXPLODE(SEQUENCE(0, CAST(LOG2(_of) AS INT))) e AS _level")),
        ),
    )
    best = ", ".join(f"{extreme}(n.{value}) AS {value}" for extreme, value in zip(extremes, values, strict=True))
    same = (*_same(hidden, Sql("a"), Sql("n")), Sql("a._level = n._level"), Sql("a._node = n._node"))
    by = listed((*hidden, "_i"), Sql("a"))
    both = Joined(Alias(above, "a"), Alias(nodes, "n"), same)
    return lowering.step("extreme", select(comma(by, best), both, group_by=by))
