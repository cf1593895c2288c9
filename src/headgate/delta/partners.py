"""One side of a join by time: rows that cannot find a partner any more are not kept.

A row goes at an instant that follows from its value, or when the tuples of the other side's stream have gone beyond it:
of those the furthest value is known, in a synopsis of one row. A row that is behind the furthest value of an earlier
timestamp breaks the order that was declared of its stream; its partners may be gone, so it is an error. Tuples at one
timestamp may come in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta.program import Synopsis
from headgate.plan.limits import Limited
from headgate.plan.nodes import Compared, Needed, Ordered, names
from headgate.sql import conjunction, listed, union

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def condition(lowering: Lowering, node: Needed) -> str:
    """Of a row: whether it is needed after the epoch."""
    by_time = f"{node.until.sql} > :until" if node.until is not None else ""
    if node.behind is None:
        return by_time
    value, order = node.behind.value.sql, node.behind.order
    still = f"{value} {'>=' if order.rises else '<='} (SELECT _far FROM {_as_of_until(lowering, order)})"
    return conjunction(by_time, f"{value} IS NOT NULL", f"COALESCE({still}, TRUE)")


def born(lowering: Lowering, node: Needed) -> str:
    rows = lowering.born(node.child)
    return rows if node.checked is None else _checked(lowering, node, rows, node.checked)


def _checked(lowering: Lowering, node: Needed, rows: str, compared: Compared) -> str:
    order, value = compared.order, compared.value.sql
    pick, far, behind = _words(order)
    tuples = lowering.tuples(order.stream)
    over = "(ORDER BY _t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    marks = lowering.step(
        "marks", f"SELECT _t, {pick}({pick}({order.value})) OVER {over} AS _before FROM {tuples} GROUP BY _t"
    )
    known = f"(SELECT {pick}(_far) FROM {_as_of_since(lowering, order)})"
    before = lowering.step(
        "before",
        f"SELECT {listed((*names(node), '_t', '_x', '_n'), 'e')}, {value} AS _v, {far}(m._before, {known}) AS _far\n"
        f"FROM {rows} AS e LEFT JOIN {marks} AS m ON e._t = m._t",
    )
    text = f'column "{order.column}" of stream "{order.stream.stream}" was declared so that {order.value} does not'
    said = (
        f"'{text} {'fall' if order.rises else 'rise'}, but ', CAST(_v AS STRING), ' came after ', CAST(_far AS STRING)"
    )
    instant = f"CASE WHEN _v {behind} _far THEN CAST(RAISE_ERROR(CONCAT({said})) AS BIGINT) ELSE _t END AS _t"
    return lowering.step("checked", f"SELECT {listed(names(node))}, {instant}, _x, _n FROM {before}")


def _words(order: Ordered) -> tuple[str, str, str]:
    return ("MAX", "GREATEST", "<") if order.rises else ("MIN", "LEAST", ">")


def _as_of_since(lowering: Lowering, order: Ordered) -> str:
    """The synopsis of the furthest value; that there is one means that it is kept up to date."""
    _as_of_until(lowering, order)
    return _synopsis(lowering, order)


def _synopsis(lowering: Lowering, order: Ordered) -> str:
    return lowering.once(f"furthest {order.value}", order.stream, lambda: lowering.fresh("furthest"))


def _as_of_until(lowering: Lowering, order: Ordered) -> str:
    def make() -> str:
        known, tuples, pick = _synopsis(lowering, order), lowering.tuples(order.stream), _words(order)[0]
        both = union(f"SELECT _far FROM {known}", f"SELECT {order.value} AS _far FROM {tuples}")
        far = lowering.step("far", f"SELECT {pick}(_far) AS _far FROM (\n{both}\n)")
        shape = lowering.step("shape", f"SELECT {pick}({order.value}) AS _far FROM {tuples}")
        lowering.synopses.append(Synopsis(known, far, shape, Limited("one row")))
        return far

    return lowering.once(f"far {order.value}", order.stream, make)
