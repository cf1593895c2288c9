"""One side of a join by time: rows that cannot find a partner any more are not kept.

    live     the rows of the child that live at `since` and may still find a partner after it
    born     the rows of the child; an error for a row that breaks the order declared of its stream

A row goes at an instant that follows from its value, or when the tuples of the other side's stream have passed it. For
the latter, a synopsis of one row holds the furthest value of that stream. A row that is behind the furthest value of an
earlier timestamp breaks the declared order; its partners may be gone, so it is an error. Tuples at one timestamp may
come in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta.query import Alias, Joined, Subquery, Table, Text, select, union
from headgate.plan.limits import Limited
from headgate.plan.nodes import Compared, Needed, Ordered, names
from headgate.sql import Sql, listed, literal

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def conditions(lowering: Lowering, node: Needed) -> tuple[Text, ...]:
    """The conditions under which a row is needed after the epoch."""
    by_time = () if node.until is None else (f"{node.until.sql} > :until",)
    if node.behind is None:
        return by_time
    value, order = node.behind.value.sql, node.behind.order
    furthest = select(Sql("_far"), _as_of_until(lowering, order))
    still = Subquery(f"COALESCE({value} {'>=' if order.rises else '<='} ", furthest, Sql(", TRUE)"))
    return (*by_time, f"{value} IS NOT NULL", still)


def born(lowering: Lowering, node: Needed) -> Table:
    """Born: the child's rows, compared with the furthest value before them where an order was declared."""
    rows = lowering.born(node.child)
    return rows if node.checked is None else _checked(lowering, node, rows, node.checked)


def _checked(lowering: Lowering, node: Needed, rows: Table, compared: Compared) -> Table:
    """The rows, with an error in the place of one that is behind a value of an earlier timestamp."""
    order, value = compared.order, compared.value.sql
    pick, far, behind = _words(order)
    tuples = lowering.tuples(order.stream)
    over = Sql("(ORDER BY _t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)")
    marks = lowering.step(
        "marks", select(f"_t, {pick}({pick}({order.value})) OVER {over} AS _before", tuples, group_by=Sql("_t"))
    )
    known = select(f"{pick}(_far)", _as_of_since(lowering, order))
    row = f"{listed((*names(node), '_t', '_x', '_n'), Sql('e'))}, {value} AS _v"
    before = lowering.step(
        "before",
        select(
            Subquery(f"{row}, {far}(m._before, ", known, Sql(") AS _far")),
            Joined(Alias(rows, "e"), Alias(marks, "m"), (Sql("e._t = m._t"),), outer=True),
        ),
    )
    text = f'column "{order.column}" of stream "{order.stream.stream}" was declared so that {order.value} does not'
    way = "fall" if order.rises else "rise"
    said = f"{literal(f'{text} {way}, but ')}, CAST(_v AS STRING), ' came after ', CAST(_far AS STRING)"
    instant = f"CASE WHEN _v {behind} _far THEN CAST(RAISE_ERROR(CONCAT({said})) AS BIGINT) ELSE _t END AS _t"
    return lowering.step("checked", select(f"{listed(names(node))}, {instant}, _x, _n", before))


def _words(order: Ordered) -> tuple[Sql, Sql, Sql]:
    """Of an order: the aggregate and the function that give the furthest value, and the comparison for "behind"."""
    return (Sql("MAX"), Sql("GREATEST"), Sql("<")) if order.rises else (Sql("MIN"), Sql("LEAST"), Sql(">"))


def _as_of_since(lowering: Lowering, order: Ordered) -> Table:
    """The synopsis of the furthest value at `since`; asking for it makes sure that it is kept up to date."""
    _as_of_until(lowering, order)
    return _synopsis(lowering, order)


def _synopsis(lowering: Lowering, order: Ordered) -> Table:
    return lowering.once(f"furthest {order.value}", order.stream, lambda: lowering.fresh("furthest"))


def _as_of_until(lowering: Lowering, order: Ordered) -> Table:
    """The furthest value at `until`, in one row."""

    def make() -> Table:
        known, tuples, pick = _synopsis(lowering, order), lowering.tuples(order.stream), _words(order)[0]
        both = union(select(Sql("_far"), known), select(f"{order.value} AS _far", tuples))
        far = lowering.step("far", select(f"{pick}(_far) AS _far", both))
        shape = lowering.step("shape", select(f"{pick}({order.value}) AS _far", tuples))
        lowering.synopsis(known, far, shape, Limited("one row"))
        return far

    return lowering.once(f"far {order.value}", order.stream, make)
