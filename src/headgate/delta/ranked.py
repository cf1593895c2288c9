"""Analytic functions and first rows, by the universal rule: SQL over the rows of one instant, at each instant of
change.

Expand the rows that live to each moment at which their group changes, evaluate the functions with group and moment as
further partitioning columns, and let each result live until the group's next moment. What was valid at `since` was left
open and is taken back at the first moment after it. Costs moments times live rows of the groups that change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.plan.nodes import Ranked, names
from headgate.sql import NEVER, alive, comma, listed, name, union

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def born(lowering: Lowering, node: Ranked) -> str:
    shown = ", ".join(item.expression.sql.replace("_at, ", "").replace("_at ", "") for item in node.items)
    lowering.fallback(f"{shown}: recomputed for each instant of change")
    keys = [f"_k{position + 1}" for position in range(len(node.by))]
    columns = listed(names(node.child))
    grouped = comma(
        columns, ", ".join(f"{name(c)} AS {key}" for c, key in zip(node.by, keys, strict=True)), "_t", "_x", "_n"
    )
    elements = lowering.step("elements", f"SELECT {grouped} FROM {lowering.all_elements(node.child)}")
    changing = [f"SELECT {comma(listed(keys), '_t AS _at')} FROM {elements} WHERE _t > :since"]
    if not node.child.endless:
        changing.append(f"SELECT {comma(listed(keys), '_x AS _at')} FROM {elements} WHERE _x > :since AND _x <= :until")
    instants = lowering.step("instants", f"SELECT DISTINCT {comma(listed(keys), '_at')} FROM (\n{union(*changing)}\n)")
    before = f"SELECT DISTINCT {comma(listed(keys), 'CAST(:since AS BIGINT) AS _at')} FROM {instants}"
    moments = lowering.step("moments", union(f"SELECT {comma(listed(keys), '_at')} FROM {instants}", before))
    over = f"({f'PARTITION BY {listed(keys)} ' if keys else ''}ORDER BY _at)"
    spans = lowering.step(
        "spans", f"SELECT {comma(listed(keys), '_at')}, LEAD(_at) OVER {over} AS _next FROM {moments}"
    )

    on = " AND ".join([*(f"m.{key} <=> e.{key}" for key in keys), alive("e", "m._at")])
    row = comma(listed(names(node.child), "e"), "m._at", "m._next")
    living = (
        f"SELECT {row}, SUM(e._n) AS _n FROM {spans} AS m JOIN {elements} AS e ON {on}\nGROUP BY {row} HAVING "
        "SUM(e._n) > 0"
    )
    rows = lowering.step(
        "alive",
        f"SELECT {columns}, _at, _next FROM (\n{living}\n)\n"
        f"LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(_n AS BIGINT))) e AS _copy",
    )
    items = ", ".join(f"{item.expression.sql} AS {name(item.name)}" for item in node.items)
    computed = lowering.step("ranked", f"SELECT {columns}, {items}, _at, _next FROM {rows}")
    every = listed(names(node))
    return lowering.step(
        "ranked",
        union(
            f"SELECT {every}, _at AS _t, _next AS _x, CAST(1 AS BIGINT) AS _n FROM {computed} WHERE _at > :since",
            f"SELECT {every}, _next AS _t, {NEVER} AS _x, CAST(-1 AS BIGINT) AS _n FROM {computed}\n"
            f"WHERE _at <= :since AND _next IS NOT NULL",
        ),
    )
