"""Grouped aggregation as a sweep.

Aggregates that can be added and subtracted (count, sum, avg) run on running sums over the events of a group; between
epochs only the sums are kept. All others run by the universal rule: for each group and instant of change, the SQL aggregate over
the rows that live then. It costs instants times live rows of the touched groups, and `explain` says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta import sweep
from headgate.delta.sql import ONE, alive, comma, listed, name, union
from headgate.plan.expressions import INTEGRAL, NUMERIC, Call
from headgate.plan.nodes import Aggregate, domain, names
from headgate.plan.properties import coarse, endless, retracts

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

ADDITIVE = frozenset({"count", "sum", "avg"})


def additive(call: Call) -> bool:
    if call.function not in ADDITIVE or call.distinct:
        return False
    return call.argument is None or call.function == "count" or call.argument.type.startswith(NUMERIC)


def timeline(lowering: Lowering, node: Aggregate) -> str:
    if all(additive(call) for call in node.calls):
        return _running(lowering, node)
    slow = [call.sql for call in node.calls if not additive(call)]
    lowering.fallback(f"aggregate {', '.join(slow)}: recomputed for each group and instant of change")
    return _recomputed(lowering, node)


class _Sums:
    """The accumulators of a set of calls: SQL over the input row -> name of the running sum, each one once."""

    def __init__(self) -> None:
        self.terms: dict[str, str] = {"_n": "_rows"}

    def term(self, sql: str) -> str:
        return self.terms.setdefault(sql, f"_a{len(self.terms)}")

    def value(self, call: Call) -> str:
        """The call's value from the sums; its accumulators are added where they are missing."""
        if call.argument is None:
            if call.condition is None:
                return "_rows"
            return self.term(f"CASE WHEN {call.condition} THEN _n ELSE 0 END")
        given = f"{call.argument.sql} IS NOT NULL"
        if call.condition is not None:
            given = f"{given} AND COALESCE({call.condition}, FALSE)"
        count = self.term(f"CASE WHEN {given} THEN _n ELSE 0 END")
        if call.function == "count":
            return count
        total = self.total(call.argument.sql, call.argument.type, given)
        quotient = total if call.function == "sum" else f"({total}) / {count}"
        return f"CASE WHEN {count} > 0 THEN {quotient} END"

    def total(self, argument: str, kind: str, given: str) -> str:
        if kind in INTEGRAL:
            return self.term(f"CASE WHEN {given} THEN {argument} * _n ELSE 0 END")
        if kind.startswith("DECIMAL"):
            return self.term(f"CASE WHEN {given} THEN {argument} * CAST(_n AS DECIMAL(10, 0)) ELSE 0 END")
        # A sum that once was infinite or not a number cannot be brought back by subtraction: count those apart. Not a
        # number counts as both infinities, whose sum it is.
        double, infinite = f"CAST({argument} AS DOUBLE)", "CAST('Infinity' AS DOUBLE)"
        finite = self.term(
            f"CASE WHEN {given} AND ABS({double}) < {infinite} AND NOT ISNAN({double}) THEN {double} * _n "
            f"ELSE CAST(0 AS DOUBLE) END"
        )
        high = self.term(f"CASE WHEN {given} AND (ISNAN({double}) OR {double} = {infinite}) THEN _n ELSE 0 END")
        low = self.term(f"CASE WHEN {given} AND (ISNAN({double}) OR {double} = -{infinite}) THEN _n ELSE 0 END")
        return (
            f"CASE WHEN {high} > 0 AND {low} > 0 THEN CAST('NaN' AS DOUBLE) WHEN {high} > 0 THEN {infinite} "
            f"WHEN {low} > 0 THEN -{infinite} ELSE {finite} END"
        )


def _running(lowering: Lowering, node: Aggregate) -> str:
    sums = _Sums()
    values = {call.name: sums.value(call) for call in node.calls}
    hidden = sweep.group(node)
    accumulators = list(sums.terms.values())
    terms = ", ".join(f"{sql} AS {accumulator}" for sql, accumulator in sums.terms.items())
    events = _events(lowering, node, terms, accumulators)

    state = lowering.fresh("sums")
    columns = listed((*hidden, "_t", *accumulators))
    held = f"SELECT {comma(listed(hidden), 'CAST(:since AS BIGINT) AS _t', listed(accumulators))} FROM {state}"
    moves = lowering.step("moves", union(held, f"SELECT {columns} FROM {events}"))
    totals = ", ".join(f"SUM({accumulator}) AS {accumulator}" for accumulator in accumulators)
    if hidden:
        grouped = f"SELECT {listed(hidden)}, {totals} FROM {moves} GROUP BY {listed(hidden)} HAVING SUM(_rows) <> 0"
        shape = f"SELECT {listed(hidden)}, {totals} FROM {events} GROUP BY {listed(hidden)}"
    else:
        grouped = f"SELECT {totals} FROM {moves} HAVING COUNT(*) > 0"
        shape = f"SELECT {totals} FROM {events}"
    lowering.synopsis(state, lowering.step("totals", grouped), lowering.step("shape", shape))

    over = sweep.over(hidden)
    running = ", ".join(f"SUM({accumulator}) OVER {over} AS {accumulator}" for accumulator in accumulators)
    swept = lowering.step(
        "swept", f"SELECT {comma(listed(hidden), '_t')}, LEAD(_t) OVER {over} AS _next,\n  {running}\nFROM {moves}"
    )
    row = comma(
        ", ".join(f"{key} AS {name(named.name)}" for key, named in zip(hidden, node.keys, strict=True)),
        ", ".join(f"{sql} AS {name(call)}" for call, sql in values.items()),
        listed(hidden),
    )
    living = "TRUE" if node.row_when_empty else "_rows > 0"
    return lowering.step(
        "timeline", f"SELECT {comma(row, '_t', f'{living} AS _live')} FROM {swept}\nWHERE _next IS NULL OR _next > _t"
    )


def _keys(node: Aggregate, hidden: tuple[str, ...]) -> str:
    return ", ".join(f"{key.expression.sql} AS {column}" for key, column in zip(node.keys, hidden, strict=True))


def _events(lowering: Lowering, node: Aggregate, terms: str, accumulators: list[str]) -> str:
    """The group, the instant and what is added there: every start in the epoch, and every end, negated."""
    hidden = sweep.group(node)
    selected = comma(_keys(node, hidden), "_t", "_x", terms)
    born, ends = lowering.born(node.child), lowering.ends(node.child)
    touched = union(*(f"SELECT {selected} FROM {form}" for form in (born, ends) if form))
    moved = lowering.step("touched", touched)
    if coarse(node.child):
        ends_by = listed((*hidden, "_t", "_x"))
        totals = ", ".join(f"SUM({accumulator}) AS {accumulator}" for accumulator in accumulators)
        moved = lowering.step("panes", f"SELECT {ends_by}, {totals} FROM {moved} GROUP BY {ends_by}")
    if endless(node.child):
        events = f"SELECT {listed((*hidden, '_t', *accumulators))} FROM {moved}"
    else:
        signed = ", ".join(f"{accumulator} * _side AS {accumulator}" for accumulator in accumulators)
        events = (
            f"SELECT {listed((*hidden, '_t', *accumulators))} FROM (\n"
            f"  SELECT {comma(listed(hidden), 'CASE WHEN _side = 1 THEN _t ELSE _x END AS _t', signed)}\n"
            f"  FROM {moved} LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side\n"
            f") WHERE _t > :since AND _t <= :until"
        )
    if node.row_when_empty:  # the row over nothing is there from the first instant on
        zeros = ", ".join(f"0 AS {accumulator}" for accumulator in accumulators)
        origin = domain(node.child).origin
        events = union(events, f"SELECT CAST({origin} AS BIGINT) AS _t, {zeros} WHERE {origin} > :since AND {origin} <= :until")
    return lowering.step("events", events)


def _recomputed(lowering: Lowering, node: Aggregate) -> str:
    """The universal rule, group by group: expand the live rows to each instant of change and aggregate there."""
    hidden = sweep.group(node)
    every = lowering.all_elements(node.child)
    needed = sorted({column for call in node.calls for column in _spelled(node, call.columns)})
    selected = comma(_keys(node, hidden), listed(needed), "_t", "_x", "_n")
    elements = lowering.step("elements", f"SELECT {selected} FROM {every}")
    starts = f"SELECT {comma(listed(hidden), '_t AS _at')} FROM {elements} WHERE _t > :since"
    ends = f"SELECT {comma(listed(hidden), '_x AS _at')} FROM {elements} WHERE _x > :since AND _x <= :until"
    changing = [starts] if endless(node.child) else [starts, ends]
    origin = domain(node.child).origin
    if node.row_when_empty:
        changing.append(f"SELECT CAST({origin} AS BIGINT) AS _at WHERE {origin} > :since AND {origin} <= :until")
    instants = lowering.step("instants", f"SELECT DISTINCT {comma(listed(hidden), '_at')} FROM (\n{union(*changing)}\n)")
    before = f"SELECT DISTINCT {comma(listed(hidden), 'CAST(:since AS BIGINT) AS _at')} FROM {instants} WHERE :since >= {origin}"
    moments = lowering.step("moments", union(f"SELECT {comma(listed(hidden), '_at')} FROM {instants}", before))
    rows = elements
    on = [f"m.{key} <=> e.{key}" for key in hidden]
    if retracts(node.child):
        rows = _netted_rows(lowering, node, elements, moments, needed)
        on.append("m._at = e._at")
    else:
        on.append(alive("e", "m._at"))
    calls = ", ".join(f"{_present(call)} AS {name(call.name)}" for call in node.calls)
    row = ", ".join(f"m.{key} AS {name(named.name)}" for key, named in zip(hidden, node.keys, strict=True))
    living = "TRUE" if node.row_when_empty else "COUNT(e._n) > 0"
    by = listed((*hidden, "_at"), "m")
    return lowering.step(
        "timeline",
        f"SELECT {comma(row, calls, listed(hidden, 'm'), 'm._at AS _t', f'{living} AS _live')}\n"
        f"FROM {moments} AS m LEFT JOIN {rows} AS e ON {' AND '.join(on)}\n"
        f"GROUP BY {by}",
    )


def _netted_rows(lowering: Lowering, node: Aggregate, elements: str, moments: str, needed: list[str]) -> str:
    """The rows that live at each moment, as often as they count, where elements may be taken back."""
    hidden = sweep.group(node)
    on = " AND ".join([*(f"m.{key} <=> e.{key}" for key in hidden), alive("e", "m._at")])
    row = comma(listed(hidden, "m"), "m._at", listed(needed, "e"))
    net = f"SELECT {row}, SUM(e._n) AS _n FROM {moments} AS m JOIN {elements} AS e ON {on}\nGROUP BY {row} HAVING SUM(e._n) > 0"
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
