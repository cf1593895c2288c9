"""The universal rule for aggregates, group by group: expand the live rows to each instant of change and aggregate
there.

It is right for every aggregate Spark has. It costs instants times live rows of the groups that change, and `explain`
says so. Aggregates in Python stand alone in a statement and take no FILTER, so each gets rows of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta import sweep
from headgate.plan.expressions import Call
from headgate.plan.nodes import Aggregate, domain, names
from headgate.sql import ONE, alive, comma, listed, name, union

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def timeline(lowering: Lowering, node: Aggregate, unchanged: bool = False) -> str:
    """With `unchanged`, groups in which nothing changes are there too, as they are at `since`."""
    hidden = sweep.group(node)
    needed = sorted({column for call in node.calls for column in _spelled(node, call.columns)})
    elements = lowering.step(
        "elements",
        f"SELECT {comma(sweep.keys(node), listed(needed), '_t', '_x', '_n')} FROM {lowering.all_elements(node.child)}",
    )
    moments = moments_of(lowering, node, elements, unchanged)
    rows = elements
    on = [f"m.{key} <=> e.{key}" for key in hidden]
    if node.child.retracts:
        rows = _netted_rows(lowering, node, elements, moments, needed)
        on.append("m._at = e._at")
    else:
        on.append(alive("e", "m._at"))
    if any(call.outside for call in node.calls):
        return _apart(lowering, node, moments, rows, on)
    calls = ", ".join(f"{_present(call)} AS {name(call.name)}" for call in node.calls)
    row = sweep.keys_again(node, "m")
    living = "TRUE" if node.row_when_empty else "COUNT(e._n) > 0"
    by = listed((*hidden, "_at"), "m")
    return lowering.step(
        "timeline",
        f"SELECT {comma(row, calls, listed(hidden, 'm'), 'm._at AS _t', f'{living} AS _live')}\n"
        f"FROM {moments} AS m LEFT JOIN {rows} AS e ON {' AND '.join(on)}\n"
        f"GROUP BY {by}",
    )


def moments_of(lowering: Lowering, node: Aggregate, elements: str, unchanged: bool = False) -> str:
    """The instants at which a group changes, and `since`."""
    hidden = sweep.group(node)
    starts = f"SELECT {comma(listed(hidden), '_t AS _at')} FROM {elements} WHERE _t > :since"
    ends = f"SELECT {comma(listed(hidden), '_x AS _at')} FROM {elements} WHERE _x > :since AND _x <= :until"
    changing = [starts] if node.child.endless else [starts, ends]
    origin = domain(node.child).origin
    if node.row_when_empty:
        changing.append(f"SELECT CAST({origin} AS BIGINT) AS _at WHERE {origin} > :since AND {origin} <= :until")
    instants = lowering.step(
        "instants", f"SELECT DISTINCT {comma(listed(hidden), '_at')} FROM (\n{union(*changing)}\n)"
    )
    groups = elements if unchanged else instants
    before = (
        f"SELECT DISTINCT {comma(listed(hidden), 'CAST(:since AS BIGINT) AS _at')} FROM {groups} WHERE :since "
        f">= {origin}"
    )
    return lowering.step("moments", union(f"SELECT {comma(listed(hidden), '_at')} FROM {instants}", before))


def _apart(lowering: Lowering, node: Aggregate, moments: str, rows: str, on: list[str]) -> str:
    """One aggregate from outside Spark: over the rows that are there, and null where none is."""
    hidden = sweep.group(node)
    (call,) = node.calls
    by = listed((*hidden, "_at"), "m")
    condition = f"\nWHERE {call.condition}" if call.condition else ""
    found = lowering.step(
        "apart",
        f"SELECT {comma(listed((*hidden, '_at'), 'm'), f'{call.sql} AS {name(call.name)}')}\n"
        f"FROM {moments} AS m JOIN {rows} AS e ON {' AND '.join(on)}{condition}\nGROUP BY {by}",
    )
    row = sweep.keys_again(node, "m")
    same = " AND ".join([*(f"m.{key} <=> f.{key}" for key in hidden), "m._at = f._at"])
    values = comma(
        row, f"f.{name(call.name)} AS {name(call.name)}", listed(hidden, "m"), "m._at AS _t", "TRUE AS _live"
    )
    return lowering.step("timeline", f"SELECT {values} FROM {moments} AS m LEFT JOIN {found} AS f ON {same}")


def _netted_rows(lowering: Lowering, node: Aggregate, elements: str, moments: str, needed: list[str]) -> str:
    """The rows that live at each moment, as often as they count, where elements may be taken back."""
    hidden = sweep.group(node)
    on = " AND ".join([*(f"m.{key} <=> e.{key}" for key in hidden), alive("e", "m._at")])
    row = comma(listed(hidden, "m"), "m._at", listed(needed, "e"))
    net = (
        f"SELECT {row}, SUM(e._n) AS _n FROM {moments} AS m JOIN {elements} AS e ON {on}\nGROUP BY {row} HAVING "
        "SUM(e._n) > 0"
    )
    return lowering.step(
        "alive",
        f"SELECT {comma(listed((*hidden, '_at')), listed(needed))}, {ONE} AS _n FROM (\n{net}\n) "
        f"LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(_n AS BIGINT))) e AS _copy",
    )


def _present(call: Call) -> str:
    """The call over the rows that are there: the left join gives a moment without rows one row of nulls."""
    condition = "e._n IS NOT NULL" if call.condition is None else f"e._n IS NOT NULL AND ({call.condition})"
    return f"{call.sql} FILTER (WHERE {condition})"


def _spelled(node: Aggregate, columns: frozenset[str]) -> list[str]:
    return [column for column in names(node.child) if column.lower() in columns]
