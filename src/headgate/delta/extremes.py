"""The largest and smallest of a group, however rows come and go: a tree over the instants at which the group changes.

The instants of a group are numbered. A row that lives from one to another is written to the few nodes of a binary tree
that make up its stretch, at most two on each level; each node keeps its extreme; an instant looks at the nodes above
it, one on each level. So n rows cost n log n, where looking at all rows at each instant would cost their product. Rows
that are taken back are counted first: what matters is from when until when a value is there at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta import recomputed, sweep
from headgate.delta.running import EXTREMES, field, ranked
from headgate.plan.nodes import Aggregate
from headgate.sql import comma, listed, name, union

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def timeline(lowering: Lowering, node: Aggregate) -> str:
    hidden = sweep.group(node)
    values = [f"_v{number}" for number in range(len(node.calls))]
    selected = ", ".join(f"{ranked(call)} AS {value}" for call, value in zip(node.calls, values, strict=True))
    every = lowering.all_elements(node.child)
    elements = lowering.step("elements", f"SELECT {comma(sweep.keys(node), selected, '_t', '_x', '_n')} FROM {every}")
    moments = recomputed.moments_of(lowering, node, elements)
    by = f"PARTITION BY {listed(hidden)} " if hidden else ""
    count = f"ROW_NUMBER() OVER ({by}ORDER BY _at) - 1 AS _i, COUNT(*) OVER ({by.strip()}) AS _of"
    numbered = lowering.step("numbered", f"SELECT {comma(listed(hidden), '_at')}, {count} FROM {moments}")
    found = _looked_up(lowering, node, _stretches(lowering, node, elements, numbered, values), numbered, values)
    row = sweep.keys_again(node, "m")
    shown = ", ".join(f"f.{v}{field(call)} AS {name(call.name)}" for call, v in zip(node.calls, values, strict=True))
    living = "TRUE" if node.row_when_empty else "f._i IS NOT NULL"
    return lowering.step(
        "timeline",
        f"SELECT {comma(row, shown, listed(hidden, 'm'), 'm._at AS _t', f'{living} AS _live')}\n"
        f"FROM {numbered} AS m LEFT JOIN {found} AS f ON {_same(hidden, 'm', 'f')} AND m._i = f._i",
    )


def _same(hidden: tuple[str, ...], one: str, two: str) -> str:
    return " AND ".join(f"{one}.{key} <=> {two}.{key}" for key in hidden) or "TRUE"


def _stretches(lowering: Lowering, node: Aggregate, elements: str, numbered: str, values: list[str]) -> str:
    """From which number until which the values of a row are there."""
    hidden = sweep.group(node)
    by = listed((*hidden, *values))
    present = elements
    if node.child.retracts:
        events = union(
            f"SELECT {by}, GREATEST(_t, :since) AS _t, _n FROM {elements}",
            f"SELECT {by}, _x AS _t, -_n AS _n FROM {elements} WHERE _x <= :until",
        )
        counted = f"SELECT {by}, _t, SUM(_n) AS _n FROM (\n{events}\n) GROUP BY {by}, _t HAVING SUM(_n) <> 0"
        over = f"(PARTITION BY {by} ORDER BY _t)"
        running = f"SELECT {by}, _t, LEAD(_t) OVER {over} AS _x, SUM(_n) OVER {over} AS _n FROM (\n{counted}\n)"
        present = lowering.step("present", f"SELECT {by}, _t, _x FROM (\n{running}\n) WHERE _n > 0")
    return lowering.step(
        "stretches",
        f"SELECT {listed((*hidden, *values), 'p')}, b._i AS _l, COALESCE(e._i, b._of) AS _r FROM {present} AS p\n"
        f"JOIN {numbered} AS b ON {_same(hidden, 'p', 'b')} AND b._at = GREATEST(p._t, :since)\n"
        f"LEFT JOIN {numbered} AS e ON {_same(hidden, 'p', 'e')} AND e._at = p._x",
    )


def _looked_up(lowering: Lowering, node: Aggregate, stretches: str, numbered: str, values: list[str]) -> str:
    """Each stretch to its nodes, each instant to the nodes above it."""
    hidden = sweep.group(node)
    keys, carried = listed(hidden), listed((*hidden, *values))
    extremes = [EXTREMES[call.function] for call in node.calls]
    # Of the numbers in [l, r) a level has the whole nodes from l / 2^level, rounded up, to r / 2^level, rounded down;
    # those
    # at either edge that are not two halves of a node one level higher are the stretch's own.
    first = "SHIFTRIGHT(_l + SHIFTLEFT(CAST(1 AS BIGINT), _level) - 1, _level)"
    levels = f"SELECT * FROM {stretches} LATERAL VIEW EXPLODE(SEQUENCE(0, CAST(LOG2(_r - _l) AS INT))) e AS _level"
    edges = f"SELECT {carried}, _level, {first} AS _a, SHIFTRIGHT(_r, _level) AS _b FROM (\n{levels}\n)"
    own = "ARRAY(CASE WHEN _a % 2 = 1 THEN _a END, CASE WHEN _b % 2 = 1 THEN _b - 1 END)"
    placed = f"SELECT * FROM (\n{edges}\n) LATERAL VIEW EXPLODE({own}) e AS _node WHERE _a < _b AND _node IS NOT NULL"
    best = ", ".join(f"{extreme}({value}) AS {value}" for extreme, value in zip(extremes, values, strict=True))
    nodes = lowering.step(
        "nodes",
        f"SELECT {comma(keys, '_level', '_node', best)} FROM (\n{placed}\n) GROUP BY {comma(keys, '_level', '_node')}",
    )
    above = lowering.step(
        "above",
        f"SELECT {comma(keys, '_i', '_level', 'SHIFTRIGHT(_i, _level) AS _node')} FROM {numbered}\n"
        f"LATERAL VIEW EXPLODE(SEQUENCE(0, CAST(LOG2(_of) AS INT))) e AS _level",
    )
    best = ", ".join(f"{extreme}(n.{value}) AS {value}" for extreme, value in zip(extremes, values, strict=True))
    return lowering.step(
        "extreme",
        f"SELECT {comma(listed((*hidden, '_i'), 'a'), best)} FROM {above} AS a JOIN {nodes} AS n\n"
        f"  ON {_same(hidden, 'a', 'n')} AND a._level = n._level AND a._node = n._node\n"
        f"GROUP BY {listed((*hidden, '_i'), 'a')}",
    )
