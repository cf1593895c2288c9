"""Sweeps: per group, the ends of intervals are events in time, and a running sum over them gives the value after each.

    timeline   the columns of the row, the group as `_k1`, `_k2`, ..., the instant `_t` from which on the group has that
               row, and `_live`, false from when on the group has none. It begins with the state at `since`, if there is
               any, and has one row for each group and instant of change after that.
    born       each row of the timeline until the group's next
    inserts, deletes     the rows of the timeline that differ from the group's row before them
    changes    both of these, in one walk

The rules of aggregates make timelines; the functions here read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headgate.delta.query import LateralView, Table, select, union
from headgate.plan.expressions import Named
from headgate.plan.nodes import Aggregate, Distinct, Filter, Project, Relation, names
from headgate.sql import EMPTY, NEVER, ONE, UNKNOWN, Sql, comma, listed, name
from headgate.ticks import Tick

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def group(node: Relation) -> tuple[Sql, ...]:
    """The hidden columns of a timeline that hold the group."""
    match node:
        case Aggregate(keys=keys):
            return tuple(Sql(f"_k{number + 1}") for number in range(len(keys)))
        case Distinct(child):
            return tuple(Sql(f"_k{number + 1}") for number in range(len(child.columns)))
        case Filter(child) | Project(child):
            return group(child)
    raise AssertionError(node)  # nothing else has a timeline


def walk(lowering: Lowering, node: Relation) -> tuple[Sql, ...]:
    """The hidden columns by which a timeline is walked: those of the group, or the range of time (`ranges`)."""
    match node:
        case Filter(child) | Project(child):
            return walk(lowering, child)
    return (Sql("_range"),) if node in lowering.ranged else group(node)


def keys(node: Aggregate) -> Sql:
    """The key expressions of the node under the hidden names."""
    return ", ".join(f"{key.expression.sql} AS {hidden}" for key, hidden in zip(node.keys, group(node), strict=True))


def needed(node: Aggregate) -> list[str]:
    """The columns of the child that the calls need, as the child spells them."""
    read = frozenset[str]().union(*(call.columns for call in node.calls))
    return sorted(column for column in names(node.child) if column.lower() in read)


def keys_again(node: Aggregate, table: Sql = EMPTY) -> Sql:
    """The hidden columns under the names of the keys, optionally of a table alias."""
    prefix = f"{table}." if table else EMPTY
    return ", ".join(
        f"{prefix}{hidden} AS {name(key.name)}" for hidden, key in zip(group(node), node.keys, strict=True)
    )


def over(keys: tuple[Sql, ...]) -> Sql:
    """The window specification that walks through each group in time."""
    return f"({f'PARTITION BY {listed(keys)} ' if keys else ''}ORDER BY _t)"


def together(lowering: Lowering, hidden: tuple[Sql, ...], made: Sequence[tuple[Table, Sequence[str]]]) -> Table:
    """Several timelines of the same groups, each with the columns wanted of it, as one.

    The columns `_p0`, `_p1`, ... hold at each instant of change the last row of each timeline, as a struct.
    """
    parts = []
    for position, (timeline, _) in enumerate(made):
        shown = []
        for other, (_, columns) in enumerate(made):
            mine = f"STRUCT({listed((*columns, '_live'))})" if other == position else Sql("NULL")
            shown.append(f"{mine} AS _p{other}")
        parts.append(select(comma(listed(hidden), Sql("_t"), *shown), timeline))
    gathered = lowering.step("gathered", union(*parts))
    by = listed((*hidden, "_t"))
    found = ", ".join(Sql(f"ANY_VALUE(_p{number}) IGNORE NULLS AS _p{number}") for number in range(len(made)))
    at_once = lowering.step("at_once", select(f"{by}, {found}", gathered, group_by=by))
    last = ", ".join(
        f"LAST_VALUE(_p{number}) IGNORE NULLS OVER {over(hidden)} AS _p{number}" for number in range(len(made))
    )
    return lowering.step("known", select(f"{by}, {last}", at_once))


def carried(lowering: Lowering, node: Filter | Project, child: Table) -> Table:
    """Timeline: a selection ends rows that fail it, a projection changes them.

    Expressions are computed only where the group has a row: elsewhere their columns hold nothing.
    """
    match node:
        case Filter():
            columns = listed(names(node))
            alive = f"CASE WHEN _live THEN COALESCE({node.condition.sql}, FALSE) ELSE FALSE END"
        case Project():
            columns = ", ".join(f"{_while_live(item)} AS {name(item.name)}" for item in node.items)
            alive = Sql("_live")
    return lowering.step(
        "timeline", select(f"{comma(columns, listed(walk(lowering, node)))}, _t, {alive} AS _live", child)
    )


def _while_live(item: Named) -> Sql:
    """An item of a projection; an expression is computed only where the group has a row."""
    return item.expression.sql if item.expression.column else f"CASE WHEN _live THEN {item.expression.sql} END"


def born(lowering: Lowering, node: Aggregate | Distinct) -> Table:
    """Born: each row of the timeline until the group's next; the row at `since` was open and is taken back there."""
    timeline = lowering.timeline(node)
    assert timeline is not None
    columns = listed(names(node))
    spans = lowering.step(
        "spans", select(f"{comma(columns)}, _t, LEAD(_t) OVER {over(walk(lowering, node))} AS _x, _live", timeline)
    )
    new = select(f"{columns}, _t, _x, {ONE} AS _n", spans, where=(Sql("_live"), Sql("_t > :since")))
    taken_back = select(
        f"{columns}, _x AS _t, {NEVER} AS _x, CAST(-1 AS BIGINT) AS _n",
        spans,
        where=(Sql("_live"), Sql("_t <= :since"), Sql("_x IS NOT NULL")),
    )
    return lowering.step("sweep", union(new, taken_back))


def inserts(lowering: Lowering, node: Relation, timeline: Table, slot: Tick | None = None) -> Table:
    """Inserts: the rows of a timeline that differ from the row that the group had before."""
    rows = steps(lowering, node, timeline, slot)
    return lowering.step("inserts", select(f"{listed(names(node))}, _t", rows, where=_comes(node)))


def deletes(lowering: Lowering, node: Relation, timeline: Table, slot: Tick | None = None) -> Table:
    """Deletes: the rows that a group had before, where its next row differs or it has none."""
    rows = steps(lowering, node, timeline, slot)
    old = ", ".join(f"{before} AS {name(column)}" for column, before in _before(node).items())
    gone = [select(f"{old}, _t", rows, where=_goes(node))]
    if slot is not None:
        gone.append(select(f"{listed(names(node))}, _t + {slot} AS _t", rows, where=_ends(slot)))
    return lowering.step("deletes", union(*gone))


INEXACT = (Sql("FLOAT"), Sql("DOUBLE"), UNKNOWN)
"""Types, or parts of types, whose values can be equal and still differ."""

COMES, GOES, ENDS = 1, -1, 0
"""What can happen at a row of a timeline: it comes, the row before it goes, or it ends without a row behind it."""


def changes(lowering: Lowering, node: Relation, timeline: Table, slot: Tick | None = None) -> Table:
    """Inserts, counted 1, and deletes, counted -1, in one walk through the timeline."""
    happening = {COMES: _comes(node), GOES: _goes(node)} | ({ENDS: _ends(slot)} if slot is not None else {})
    rows = LateralView(
        steps(lowering, node, timeline, slot),
        f"EXPLODE(ARRAY({', '.join(Sql(f'{kind}') for kind in happening)})) e AS _kind",
    )
    columns = ", ".join(
        f"CASE WHEN _kind = {GOES} THEN {before} ELSE {name(column)} END AS {name(column)}"
        for column, before in _before(node).items()
    )
    at = Sql("_t") if slot is None else Sql(f"CASE WHEN _kind = {ENDS} THEN _t + {slot} ELSE _t END AS _t")
    count = Sql(f"CAST(CASE WHEN _kind = {COMES} THEN 1 ELSE -1 END AS BIGINT) AS _n")
    cases = " ".join(f"WHEN {kind} THEN {' AND '.join(conditions)}" for kind, conditions in happening.items())
    return lowering.step("changes", select(f"{columns}, {at}, {count}", rows, where=f"CASE _kind {cases} END"))


def _comes(node: Relation) -> tuple[Sql, ...]:
    return Sql("_t > :since"), Sql("_live"), f"NOT ({same(node)})"


def _goes(node: Relation) -> tuple[Sql, ...]:
    return Sql("_t > :since"), Sql("_was"), f"NOT (_live AND {same(node)})"


def _ends(slot: Tick) -> tuple[Sql, ...]:
    return Sql("_live"), Sql("_last"), Sql(f"_t + {slot} > :since"), Sql(f"_t + {slot} <= :until")


def same(node: Relation) -> Sql:
    """The condition that the group had an equal row before."""
    before = _before(node)
    changing = (f"{name(column)} <=> {before[column]}" for column in _changing(node))
    return " AND ".join(["_was", *changing])


def _before(node: Relation) -> dict[str, Sql]:
    """The columns that hold what the group had before, in `steps`, by the columns of the node."""
    changing = _changing(node)
    return {
        column: Sql(f"_old{number}") if column in changing else name(column)
        for number, column in enumerate(names(node), 1)
    }


def _changing(node: Relation) -> list[str]:
    """The columns that may differ within a group: all but its key. Of a key, equal doubles may differ: 0 and -0."""
    key = set(node.group_key or ())
    return [one.name for one in node.columns if one.name not in key or any(kind in one.type for kind in INEXACT)]


def steps(lowering: Lowering, node: Relation, timeline: Table, slot: Tick | None = None) -> Table:
    """The timeline with, beside each row, the row the group had before it.

    The rows of slots hold for the length of a slot: `_last` says that the group has no row behind this one.
    """

    def make() -> Table:
        window = over(walk(lowering, node))
        columns = listed(names(node))
        before = _before(node)
        old = [f"LAG({name(column)}) OVER {window} AS {before[column]}" for column in _changing(node)]
        if slot is None:
            was = [f"COALESCE(LAG(_live) OVER {window}, FALSE) AS _was"]
        else:
            was = [
                f"COALESCE(LAG(_live) OVER {window} AND LAG(_t) OVER {window} = _t - {slot}, FALSE) AS _was",
                f"COALESCE(LEAD(_t) OVER {window} > _t + {slot}, TRUE) AS _last",
            ]
        return lowering.step("steps", select(f"{columns}, _t, _live,\n  {comma(*was, *old)}", timeline))

    return lowering.once("steps", node, make)


def slot_of(node: Relation) -> Tick:
    """The length of the slots of a relation that has slots."""
    match node:
        case Aggregate(child) if child.slides is not None:
            return child.slides[0]
        case Filter(child) | Project(child):
            return slot_of(child)
    raise AssertionError(node)  # nothing else has slots
