"""Analytic functions and first rows, by the universal rule: SQL over the rows of an instant, at each instant of change.

    born     the rows of each moment, until the group's next moment; -1 for what was valid at `since`, at the next one

The rows that live are repeated for each moment at which their group changes, and the functions are evaluated with group
and moment as further partitioning columns. What was valid at `since` was left open and is taken back at the first
moment after it. This costs moments times live rows of the groups that change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta.netting import COPIES
from headgate.delta.query import Alias, Joined, LateralView, Table, select, union
from headgate.plan.nodes import Ranked, names
from headgate.sql import NEVER, ONE, Sql, alive, comma, listed, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def born(lowering: Lowering, node: Ranked) -> Table:
    """Born: the rows with their functions computed, from each moment of their group until the next."""
    functions = ", ".join(_shown(item.expression.sql) for item in node.items)
    lowering.fallback(f"{functions}: recomputed for each instant of change")
    keys = [Sql(f"_k{position + 1}") for position in range(len(node.by))]
    columns = listed(names(node.child))
    grouped = comma(
        columns,
        ", ".join(f"{name(c)} AS {key}" for c, key in zip(node.by, keys, strict=True)),
        Sql("_t, _x, _n"),
    )
    elements = lowering.step("elements", select(grouped, lowering.all_elements(node.child)))
    changing = [select(comma(listed(keys), Sql("_t AS _at")), elements, where=Sql("_t > :since"))]
    if not node.child.endless:
        changing.append(
            select(comma(listed(keys), Sql("_x AS _at")), elements, where=(Sql("_x > :since"), Sql("_x <= :until")))
        )
    moment = comma(listed(keys), Sql("_at"))
    instants = lowering.step("instants", select(f"DISTINCT {moment}", union(*changing)))
    before = select(f"DISTINCT {comma(listed(keys), Sql('CAST(:since AS BIGINT) AS _at'))}", instants)
    moments = lowering.step("moments", union(select(moment, instants), before))
    over = f"({f'PARTITION BY {listed(keys)} ' if keys else ''}ORDER BY _at)"
    spans = lowering.step("spans", select(f"{moment}, LEAD(_at) OVER {over} AS _next", moments))

    on = (*(f"m.{key} <=> e.{key}" for key in keys), alive(Sql("e"), Sql("m._at")))
    row = comma(listed(names(node.child), Sql("e")), Sql("m._at, m._next"))
    living = select(
        f"{row}, SUM(e._n) AS _n",
        Joined(Alias(spans, "m"), Alias(elements, "e"), on),
        group_by=row,
        having=Sql("SUM(e._n) > 0"),
    )
    rows = lowering.step("alive", select(f"{columns}, _at, _next", LateralView(living, COPIES)))
    items = ", ".join(f"{item.expression.sql} AS {name(item.name)}" for item in node.items)
    computed = lowering.step("ranked", select(f"{columns}, {items}, _at, _next", rows))
    every = listed(names(node))
    new = select(f"{every}, _at AS _t, _next AS _x, {ONE} AS _n", computed, where=Sql("_at > :since"))
    taken_back = select(
        f"{every}, _next AS _t, {NEVER} AS _x, CAST(-1 AS BIGINT) AS _n",
        computed,
        where=(Sql("_at <= :since"), Sql("_next IS NOT NULL")),
    )
    return lowering.step("ranked", union(new, taken_back))


def _shown(sql: Sql) -> str:
    """A function for a reader: without the instant, which the binder puts first among the partitioning columns."""
    plain = sql.replace("PARTITION BY _at, ", "PARTITION BY ")
    return plain.replace("PARTITION BY _at ", "").replace("PARTITION BY _at)", ")")
