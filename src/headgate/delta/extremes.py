"""The largest and smallest of a group, however rows come and go: a tree over the instants at which the group changes.

The instants of a group are numbered. A row that lives from one to another is written to the few nodes of a binary tree that
make up its stretch, at most two on each level; each node keeps its extreme; an instant looks at the nodes above it, one on each
level. So n rows cost n log n, where looking at all rows at each instant would cost their product. Rows that are taken back are
counted first: what matters is from when until when a value is there at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta import recomputed, sweep
from headgate.delta.running import EXTREMES, field, ranked
from headgate.delta.sql import comma, listed, name, union
from headgate.plan.expressions import Call
from headgate.plan.nodes import Aggregate
from headgate.plan.properties import retracts

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def timeline(lowering: Lowering, node: Aggregate) -> str:
    hidden = sweep.group(node)
    values = {call.name: f"_v{number}" for number, call in enumerate(node.calls)}
    selected = ", ".join(f"{ranked(call)} AS {values[call.name]}" for call in node.calls)
    every = lowering.all_elements(node.child)
    elements = lowering.step("elements", f"SELECT {comma(sweep.keys(node), selected, '_t', '_x', '_n')} FROM {every}")
    moments = recomputed.moments_of(lowering, node, elements)
    over = f"({f'PARTITION BY {listed(hidden)} ' if hidden else ''}ORDER BY _at)"
    within = f"(PARTITION BY {listed(hidden)})" if hidden else "()"
    numbered = lowering.step(
        "numbered",
        f"SELECT {comma(listed(hidden), '_at')}, ROW_NUMBER() OVER {over} - 1 AS _i, COUNT(*) OVER {within} AS _of\n"
        f"FROM {moments}",
    )
    found = [_there(lowering, node, elements, numbered)]
    for call in node.calls:
        found.append(_extreme(lowering, node, elements, numbered, values[call.name], call))
    joins = "".join(
        f"\nLEFT JOIN {step} AS f{number} ON {_same(hidden, f'f{number}', 'm')} AND f{number}._i = m._i"
        for number, step in enumerate(found)
    )
    shown = ", ".join(f"f{number + 1}._v{field(call)} AS {name(call.name)}" for number, call in enumerate(node.calls))
    row = ", ".join(f"m.{key} AS {name(named.name)}" for key, named in zip(hidden, node.keys, strict=True))
    living = "TRUE" if node.row_when_empty else "COALESCE(f0._v, FALSE)"
    return lowering.step(
        "timeline",
        f"SELECT {comma(row, shown, listed(hidden, 'm'), 'm._at AS _t', f'{living} AS _live')} FROM {numbered} AS m{joins}",
    )


def _same(hidden: tuple[str, ...], one: str, two: str) -> str:
    return " AND ".join(f"{one}.{key} <=> {two}.{key}" for key in hidden) or "TRUE"


def _there(lowering: Lowering, node: Aggregate, elements: str, numbered: str) -> str:
    """At which instants a group has any row."""
    stretches = _stretches(lowering, node, elements, numbered, "TRUE")
    return _looked_up(lowering, node, stretches, numbered, "MAX")


def _extreme(lowering: Lowering, node: Aggregate, elements: str, numbered: str, value: str, call: Call) -> str:
    stretches = _stretches(lowering, node, elements, numbered, value)
    return _looked_up(lowering, node, stretches, numbered, EXTREMES[call.function])


def _stretches(lowering: Lowering, node: Aggregate, elements: str, numbered: str, value: str) -> str:
    """From which number until which a value is there."""
    hidden = sweep.group(node)
    given = "" if value == "TRUE" else f" WHERE {value} IS NOT NULL"
    columns = comma(listed(hidden), f"{value} AS _v")
    if not retracts(node.child):
        there = f"SELECT {columns}, _t, _x FROM {elements}{given}"
    else:
        ends = f" AND {value} IS NOT NULL" if given else ""
        by = listed((*hidden, "_v"))
        events = union(
            f"SELECT {columns}, GREATEST(_t, :since) AS _t, _n FROM {elements}{given}",
            f"SELECT {columns}, _x AS _t, -_n AS _n FROM {elements} WHERE _x <= :until{ends}",
        )
        counted = f"SELECT {by}, _t, SUM(_n) AS _n FROM (\n{events}\n) GROUP BY {by}, _t HAVING SUM(_n) <> 0"
        running = f"SELECT {by}, _t, SUM(_n) OVER (PARTITION BY {by} ORDER BY _t) AS _n FROM (\n{counted}\n)"
        spans = f"SELECT {by}, _t, LEAD(_t) OVER (PARTITION BY {by} ORDER BY _t) AS _x, _n FROM (\n{running}\n)"
        there = f"SELECT {by}, _t, _x FROM (\n{spans}\n) WHERE _n > 0"
    present = lowering.step("present", there)
    return lowering.step(
        "stretches",
        f"SELECT {comma(listed(hidden, 'p'), 'p._v', 'b._i AS _l', 'COALESCE(e._i, b._of) AS _r')} FROM {present} AS p\n"
        f"JOIN {numbered} AS b ON {_same(hidden, 'p', 'b')} AND b._at = GREATEST(p._t, :since)\n"
        f"LEFT JOIN {numbered} AS e ON {_same(hidden, 'p', 'e')} AND e._at = p._x",
    )


def _looked_up(lowering: Lowering, node: Aggregate, stretches: str, numbered: str, combine: str) -> str:
    """Each stretch to its nodes, each instant to the nodes above it."""
    hidden = sweep.group(node)
    keys = listed(hidden)
    first = "SHIFTRIGHT(_l + SHIFTLEFT(CAST(1 AS BIGINT), _level) - 1, _level)"
    last = "SHIFTRIGHT(_r, _level)"
    levels = f"SELECT * FROM {stretches} LATERAL VIEW EXPLODE(SEQUENCE(0, CAST(LOG2(_r - _l) AS INT))) e AS _level"
    edges = f"SELECT {comma(keys, '_v', '_level', f'{first} AS _a', f'{last} AS _b')} FROM (\n{levels}\n)"
    placed = lowering.step("placed", f"SELECT * FROM (\n{edges}\n) WHERE _a < _b AND (_a % 2 = 1 OR _b % 2 = 1)")
    nodes = lowering.step(
        "nodes",
        f"SELECT {comma(keys, '_level', '_node', f'{combine}(_v) AS _v')} FROM (\n"
        + union(
            f"SELECT {comma(keys, '_v', '_level', '_a AS _node')} FROM {placed} WHERE _a % 2 = 1",
            f"SELECT {comma(keys, '_v', '_level', '_b - 1 AS _node')} FROM {placed} WHERE _b % 2 = 1",
        )
        + f"\n) GROUP BY {comma(keys, '_level', '_node')}",
    )
    above = lowering.step(
        "above",
        f"SELECT {comma(keys, '_i', '_level', 'SHIFTRIGHT(_i, _level) AS _node')} FROM {numbered}\n"
        f"LATERAL VIEW EXPLODE(SEQUENCE(0, CAST(LOG2(_of) AS INT))) e AS _level",
    )
    return lowering.step(
        "extreme",
        f"SELECT {comma(listed((*hidden, '_i'), 'a'), f'{combine}(n._v) AS _v')} FROM {above} AS a JOIN {nodes} AS n\n"
        f"  ON {_same(hidden, 'a', 'n')} AND a._level = n._level AND a._node = n._node\n"
        f"GROUP BY {listed((*hidden, '_i'), 'a')}",
    )
