"""Joins in which a row that lives for one instant meets the row of its group at that instant.

    born     each such row beside its group's row, as both are at that instant

The join equates the whole key of an aggregate, so a row meets one row of it at the most. No pairs are made: the rows
are put among the events of their groups, and one walk through each group in time finds what they meet. This is the
rule for a tuple beside the statistics of its key. Where all calls of the aggregate are running sums, the rows lie among
the events that are added up (`running`); tuples that are summed themselves are such events already. Otherwise they lie
among the rows of its timeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headgate.delta import aggregate, linear, running, sweep
from headgate.delta.query import Alias, Joined, Select, Table, select, union
from headgate.plan.nodes import Aggregate, Filter, Join, Now, Project, Range, Relation, Scan, Window, names
from headgate.plan.nodes.pairs import Lookup
from headgate.sql import ALL, ONE, Sql, comma, listed, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def born(lowering: Lowering, node: Join, lookup: Lookup) -> Table:
    """Born: the rows of the side that looks up, each with what it finds; all live for one instant."""
    by_key = _equal_to_key(lookup)
    columns = [column for column in names(lookup.rows) if column not in by_key]
    carried = {column: Sql(f"_b{number}") for number, column in enumerate(columns, 1)}
    found = _among_events(lowering, lookup, carried)
    if found is None:
        found = _among_rows(
            lowering, lookup.groups, _looking(lowering, lookup, carried), (Sql("_b0"), *carried.values())
        )
    again = ", ".join(
        f"{carried.get(column, by_key.get(column, name(column)))} AS {name(column)}" for column in names(node)
    )
    met = lowering.step("met", select(f"{again}, _t, _t + 1 AS _x, _b0 AS _n", found))
    return lowering.step("beside", select(ALL, met, where=_conditions(node)))


def alive(lowering: Lowering, node: Join, lookup: Lookup) -> Table | None:
    """Alive: the rows that look up at `until`, with the groups as they are then; None if the logs do not tell."""
    below = _aggregate(lookup.groups)
    rows = lowering.alive(lookup.rows)
    if rows is None or below is None or not aggregate.all_running(lowering, below):
        return None
    found = running.living(lowering, below)
    if found is None:
        return None
    groups = _through(lowering, lookup.groups, below, found, Sql("_t"))
    both = Joined(Alias(rows, "l"), Alias(groups, "r"), tuple(_conditions(node)))
    return lowering.step("alive_beside", select(f"{listed(names(node))}, l._t AS _t, _x, _n", both))


def _looking(lowering: Lowering, lookup: Lookup, carried: Mapping[str, Sql]) -> Table:
    """The rows that look up, with the key of the group, and their columns and count under hidden names."""
    hidden = sweep.group(lookup.groups)
    keys = ", ".join(f"{key.sql} AS {column}" for key, column in zip(lookup.keys, hidden, strict=True))
    own = ", ".join(f"{name(column)} AS {alias}" for column, alias in carried.items())
    return lowering.step("looking", select(comma(keys, Sql("_t"), own, Sql("_n AS _b0")), lowering.born(lookup.rows)))


def _equal_to_key(lookup: Lookup) -> dict[str, Sql]:
    """The columns of the side that looks up which are the key of the group: they need not be carried along.

    Then Spark knows that the result is still grouped by them. Doubles that are equal may still differ: 0 and -0.
    """
    key = lookup.groups.group_key or ()
    return {
        ours.column: name(theirs)
        for ours, theirs in zip(lookup.keys, key, strict=True)
        if ours.column in names(lookup.rows) and ours.type not in ("FLOAT", "DOUBLE")
    }


def _conditions(node: Join) -> list[Sql]:
    """The condition of the join, which also leaves out what grouping takes for equal and `=` does not: nulls."""
    on = [e.sql for e in node.equalities]
    return [*on, *([f"({node.condition.sql})"] if node.condition is not None else [])]


def _among_events(lowering: Lowering, lookup: Lookup, carried: Mapping[str, Sql]) -> Table | None:
    """The rows with what they find in an aggregate of running sums; None if it is another aggregate."""
    groups = lookup.groups
    below = _aggregate(groups)
    if below is None or not aggregate.all_running(lowering, below):
        return None
    hidden = (Sql("_b0"), *carried.values())
    rows = _own_tuples(lookup, below, carried) or _looking(lowering, lookup, carried)
    swept = running.swept_beside(lowering, below, rows, hidden)
    return _through(lowering, groups, below, swept, comma(Sql("_t"), *hidden)) if swept else None


def _own_tuples(lookup: Lookup, below: Aggregate, carried: Mapping[str, Sql]) -> running.Carried | None:
    """The rows, where they are the tuples that are summed as well, selected and projected; None if they are others."""
    rows, columns, looks = lookup.rows, {column: name(column) for column in names(lookup.rows)}, Sql("TRUE")
    if isinstance(rows, Project):
        columns = {item.name: item.expression.sql for item in rows.items}
        rows = rows.child
    if isinstance(rows, Filter):
        looks, rows = rows.condition.sql, rows.child
    summed = below.child
    same = (
        isinstance(rows, Window)
        and isinstance(rows.frame, Now)
        and rows.stamp is None
        and rows.arrival is None
        and isinstance(summed, Window)
        and isinstance(summed.frame, Range)
        and summed.frame.slide is None
        and isinstance(rows.child, Scan)
        and rows.child == summed.child
    )
    keys = [columns.get(key.column or "") for key in lookup.keys]
    if not same or keys != [key.expression.sql for key in below.keys]:
        return None
    return running.Carried(looks, {Sql("_b0"): ONE, **{carried[column]: columns[column] for column in carried}})


def _through(lowering: Lowering, node: Relation, below: Aggregate, table: Table, carried: Sql) -> Table:
    """The rows of an aggregate through the selections and projections above it."""
    if node is below:
        return table
    assert isinstance(node, Filter | Project), node  # `Join.lookup` finds nothing else above the aggregate
    return linear.apply(lowering, node, _through(lowering, node.child, below, table, carried), carried)


def _among_rows(lowering: Lowering, groups: Relation, looking: Table, hidden: tuple[Sql, ...]) -> Table:
    """The rows with the last row of the timeline of their group, if the group has a row then."""
    timeline = lowering.timeline(groups)
    assert timeline is not None
    by = sweep.group(groups)
    row = f"STRUCT({listed((*names(groups), '_live'))})"
    nothing = ", ".join(f"NULL AS {column}" for column in hidden)
    walked: list[Select] = [
        select(comma(listed((*by, "_t")), f"{row} AS _row", Sql("FALSE AS _looks"), nothing), timeline),
        select(comma(listed((*by, "_t")), Sql("NULL AS _row, TRUE AS _looks"), listed(hidden)), looking),
    ]
    walk = lowering.step("walked", union(*walked))
    last = f"LAST_VALUE(_row) IGNORE NULLS OVER {sweep.over(by)} AS _row"
    seen = lowering.step("seen", select(comma(Sql("_t, _looks"), listed(hidden), last), walk))
    columns = ", ".join(f"_row.{name(column)} AS {name(column)}" for column in names(groups))
    return lowering.step(
        "found", select(comma(columns, Sql("_t"), *hidden), seen, where=(Sql("_looks"), Sql("_row._live")))
    )


def _aggregate(node: Relation) -> Aggregate | None:
    """The aggregate below selections and projections."""
    match node:
        case Aggregate():
            return node
        case Filter(child) | Project(child):
            return _aggregate(child)
    return None
