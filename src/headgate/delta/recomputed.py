"""The universal rule for aggregates: the live rows of a group are repeated for each instant of change and aggregated.

    timeline     for each group and instant of change, the aggregate of the rows that live at that instant

This is right for every aggregate that Spark has. It costs instants times live rows of the groups that change, and
`explain` says so. Aggregates in Python stand alone in a statement and take no FILTER, so each gets rows of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta import sweep
from headgate.delta.netting import COPIES
from headgate.delta.query import Alias, Joined, LateralView, Table, select, union
from headgate.plan.expressions import Call
from headgate.plan.nodes import Aggregate, domain
from headgate.sql import EMPTY, ONE, Sql, alive, comma, listed, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def timeline(lowering: Lowering, node: Aggregate, unchanged: bool = False, elements: Table | None = None) -> Table:
    """Timeline: every call computed anew at each instant of change.

    With `unchanged`, groups in which nothing changes are there too, as they are at `since`. `elements` are those that
    count, if they are not all of the child's.
    """
    hidden, needed = sweep.group(node), sweep.needed(node)
    if elements is None:
        columns = comma(sweep.keys(node), listed(needed), Sql("_t, _x, _n"))
        elements = lowering.step("elements", select(columns, lowering.all_elements(node.child)))
    moments = moments_of(lowering, node, elements, unchanged)
    rows = elements
    on = [f"m.{key} <=> e.{key}" for key in hidden]
    if node.child.retracts:
        rows = _netted_rows(lowering, node, elements, moments, needed)
        on.append(Sql("m._at = e._at"))
    else:
        on.append(alive(Sql("e"), Sql("m._at")))
    if any(call.outside for call in node.calls):
        return _apart(lowering, node, moments, rows, tuple(on))
    calls = ", ".join(f"{_present(call)} AS {name(call.name)}" for call in node.calls)
    living = Sql("TRUE") if node.row_when_empty else Sql("COUNT(e._n) > 0")
    row = comma(
        sweep.keys_again(node, Sql("m")), calls, listed(hidden, Sql("m")), Sql("m._at AS _t"), f"{living} AS _live"
    )
    return lowering.step(
        "timeline",
        select(
            row,
            Joined(Alias(moments, "m"), Alias(rows, "e"), tuple(on), outer=True),
            group_by=listed((*hidden, "_at"), Sql("m")),
        ),
    )


def moments_of(lowering: Lowering, node: Aggregate, elements: Table, unchanged: bool = False) -> Table:
    """The instants at which a group changes, and `since`; with `unchanged`, `since` for every group."""
    hidden = sweep.group(node)
    starts = select(comma(listed(hidden), Sql("_t AS _at")), elements, where=Sql("_t > :since"))
    ends = select(comma(listed(hidden), Sql("_x AS _at")), elements, where=(Sql("_x > :since"), Sql("_x <= :until")))
    changing = [starts] if node.child.endless else [starts, ends]
    origin = domain(node.child).origin
    if node.row_when_empty:
        begun = (Sql(f"{origin} > :since"), Sql(f"{origin} <= :until"))
        changing.append(select(Sql(f"CAST({origin} AS BIGINT) AS _at"), where=begun))
    moment = comma(listed(hidden), Sql("_at"))
    instants = lowering.step("instants", select(f"DISTINCT {moment}", union(*changing)))
    before = select(
        f"DISTINCT {comma(listed(hidden), Sql('CAST(:since AS BIGINT) AS _at'))}",
        elements if unchanged else instants,
        where=Sql(f":since >= {origin}"),
    )
    return lowering.step("moments", union(select(moment, instants), before))


def _apart(lowering: Lowering, node: Aggregate, moments: Table, rows: Table, on: tuple[Sql, ...]) -> Table:
    """Timeline of one aggregate from outside Spark: over the rows that are there, and null where none is."""
    hidden = sweep.group(node)
    (call,) = node.calls
    by = listed((*hidden, "_at"), Sql("m"))
    found = lowering.step(
        "apart",
        select(
            comma(by, f"{call.sql} AS {name(call.name)}"),
            Joined(Alias(moments, "m"), Alias(rows, "e"), on),
            where=call.condition or EMPTY,
            group_by=by,
        ),
    )
    same = (*(f"m.{key} <=> f.{key}" for key in hidden), Sql("m._at = f._at"))
    value = f"f.{name(call.name)} AS {name(call.name)}"
    row = comma(sweep.keys_again(node, Sql("m")), value, listed(hidden, Sql("m")), Sql("m._at AS _t, TRUE AS _live"))
    both = Joined(Alias(moments, "m"), Alias(found, "f"), same, outer=True)
    return lowering.step("timeline", select(row, both))


def _netted_rows(lowering: Lowering, node: Aggregate, elements: Table, moments: Table, needed: list[str]) -> Table:
    """The rows that live at each moment, as often as they count, where elements may be taken back."""
    hidden = sweep.group(node)
    on = (*(f"m.{key} <=> e.{key}" for key in hidden), alive(Sql("e"), Sql("m._at")))
    row = comma(listed(hidden, Sql("m")), Sql("m._at"), listed(needed, Sql("e")))
    net = select(
        f"{row}, SUM(e._n) AS _n",
        Joined(Alias(moments, "m"), Alias(elements, "e"), on),
        group_by=row,
        having=Sql("SUM(e._n) > 0"),
    )
    columns = comma(listed((*hidden, "_at")), listed(needed))
    return lowering.step("alive", select(f"{columns}, {ONE} AS _n", LateralView(net, COPIES)))


def _present(call: Call) -> Sql:
    """The call over the rows that are there: the left join gives a moment without rows one row of nulls."""
    condition = Sql("e._n IS NOT NULL") if call.condition is None else f"e._n IS NOT NULL AND ({call.condition})"
    return f"{call.sql} FILTER (WHERE {condition})"
