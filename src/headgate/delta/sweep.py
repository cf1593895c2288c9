"""Sweeps: per group, the ends of intervals are events in time, and a running sum over them gives the value after each.

The result of a sweep is a *timeline*: the columns of the row, the group as `_k1`, `_k2`, ..., the instant `_t` from
which on the group has that row, and `_live`, false from when on the group has none. It begins with the state at
`since`, if there is any, and has one row for each group and instant of change after that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.plan.expressions import Named
from headgate.plan.nodes import Aggregate, Distinct, Filter, Project, Relation, names
from headgate.sql import NEVER, comma, listed, name, union

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def group(node: Relation) -> tuple[str, ...]:
    """The hidden columns of a timeline that hold the group."""
    match node:
        case Aggregate(keys=keys):
            return tuple(f"_k{number + 1}" for number in range(len(keys)))
        case Distinct(child):
            return tuple(f"_k{number + 1}" for number in range(len(child.columns)))
        case Filter(child) | Project(child):
            return group(child)
    raise AssertionError(node)  # nothing else has a timeline


def keys(node: Aggregate) -> str:
    """The keys of the node under their hidden names."""
    return ", ".join(f"{key.expression.sql} AS {hidden}" for key, hidden in zip(node.keys, group(node), strict=True))


def keys_again(node: Aggregate, table: str = "") -> str:
    """The hidden names under those of the keys again."""
    prefix = f"{table}." if table else ""
    return ", ".join(
        f"{prefix}{hidden} AS {name(key.name)}" for hidden, key in zip(group(node), node.keys, strict=True)
    )


def over(keys: tuple[str, ...]) -> str:
    """The window specification that walks through each group in time."""
    return f"({f'PARTITION BY {listed(keys)} ' if keys else ''}ORDER BY _t)"


def together(lowering: Lowering, hidden: tuple[str, ...], made: list[tuple[str, list[str]]]) -> str:
    """Several timelines of the same groups, each with the columns wanted of it, as one: `_p0`, `_p1`, ... hold at each
    instant of change the last that each said."""
    selects = []
    for position, (step, _) in enumerate(made):
        shown = []
        for other, (_, columns) in enumerate(made):
            mine = f"STRUCT({listed((*columns, '_live'))})" if other == position else "NULL"
            shown.append(f"{mine} AS _p{other}")
        selects.append(f"SELECT {comma(listed(hidden), '_t', *shown)} FROM {step}")
    gathered = lowering.step("gathered", union(*selects))
    by = listed((*hidden, "_t"))
    parts = ", ".join(f"ANY_VALUE(_p{number}) IGNORE NULLS AS _p{number}" for number in range(len(made)))
    at_once = lowering.step("at_once", f"SELECT {by}, {parts} FROM {gathered} GROUP BY {by}")
    last = ", ".join(
        f"LAST_VALUE(_p{number}) IGNORE NULLS OVER {over(hidden)} AS _p{number}" for number in range(len(made))
    )
    return lowering.step("known", f"SELECT {by}, {last} FROM {at_once}")


def carried(lowering: Lowering, node: Filter | Project, child: str) -> str:
    """A selection ends rows that fail it, a projection changes them. Dead rows are not evaluated: they have no
    values.
    """
    hidden = listed(group(node))
    match node:
        case Filter():
            columns, alive = (
                listed(names(node)),
                f"CASE WHEN _live THEN COALESCE({node.condition.sql}, FALSE) ELSE FALSE END",
            )
        case Project():
            columns = ", ".join(f"{_while_live(item)} AS {name(item.name)}" for item in node.items)
            alive = "_live"
    return lowering.step("timeline", f"SELECT {comma(columns, hidden)}, _t, {alive} AS _live FROM {child}")


def _while_live(item: Named) -> str:
    """An item of a projection; an expression is computed only where the group has a row."""
    return item.expression.sql if item.expression.column else f"CASE WHEN _live THEN {item.expression.sql} END"


def born(lowering: Lowering, node: Aggregate | Distinct) -> str:
    """Elements from a timeline: each row until the group's next; what lived at `since` was open and is taken back
    there.
    """
    timeline = lowering.timeline(node)
    assert timeline is not None
    columns = listed(names(node))
    spans = lowering.step(
        "spans", f"SELECT {comma(columns)}, _t, LEAD(_t) OVER {over(group(node))} AS _x, _live FROM {timeline}"
    )
    return lowering.step(
        "sweep",
        union(
            f"SELECT {columns}, _t, _x, CAST(1 AS BIGINT) AS _n FROM {spans} WHERE _live AND _t > :since",
            f"SELECT {columns}, _x AS _t, {NEVER} AS _x, CAST(-1 AS BIGINT) AS _n FROM {spans}\n"
            f"WHERE _live AND _t <= :since AND _x IS NOT NULL",
        ),
    )


def inserts(lowering: Lowering, node: Relation, timeline: str) -> str:
    """The rows of a timeline that differ from what the group had before."""
    stepped = steps(lowering, node, timeline)
    return lowering.step(
        "inserts",
        f"SELECT {listed(names(node))}, _t FROM {stepped}\nWHERE _t > :since AND _live AND NOT ({same(node)})",
    )


def deletes(lowering: Lowering, node: Relation, timeline: str) -> str:
    stepped = steps(lowering, node, timeline)
    old = ", ".join(f"_old.{name(column)} AS {name(column)}" for column in names(node))
    return lowering.step(
        "deletes", f"SELECT {old}, _t FROM {stepped}\nWHERE _t > :since AND _was AND NOT (_live AND {same(node)})"
    )


def same(node: Relation) -> str:
    return f"_was AND _old <=> STRUCT({listed(names(node))})"


def steps(lowering: Lowering, node: Relation, timeline: str) -> str:
    """The timeline with, beside each row, the row the group had before it."""

    def make() -> str:
        window = over(group(node))
        columns = listed(names(node))
        return lowering.step(
            "steps",
            f"SELECT {columns}, _t, _live,\n"
            f"  COALESCE(LAG(_live) OVER {window}, FALSE) AS _was, LAG(STRUCT({columns})) OVER {window} AS _old\n"
            f"FROM {timeline}",
        )

    return lowering.once("steps", node, make)
