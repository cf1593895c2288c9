"""Windows that keep a tail: the last rows, per partition if one likes, and the rows near the largest value.

When a tuple comes in, nobody knows yet when it will have to go: later tuples displace it. So it is put out open, or
until its time is up where the window has a span, and is taken back when it is displaced. The synopsis holds the tuples
that are not yet displaced; together with the new ones they tell for each when it is.

    displaced   the instant of the tuple that displaces it; null while none has come from, to    the interval in which
    it is seen: with a slide, the multiples of the slide behind its coming and its going
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta.instants import ceiling, stamp
from headgate.plan.nodes import Rows, Values, Window, names
from headgate.sql import NEVER, ONE, comma, conjunction, listed, name, union

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def born(lowering: Lowering, node: Window, frame: Rows | Values) -> str:
    """What begins to be seen in this epoch, and what was seen before and is displaced in it.

    A tuple displaced at the instant at which it would be seen never was. Where tuples last for a span only, taking back
    concerns what is left of it.
    """
    if isinstance(frame, Rows) and frame.step is not None:
        return _stepping(lowering, node, frame, frame.step)
    tuples = _displaced(lowering, node, frame)
    begin, end, gone = _seen_from(frame), _expiry(frame), _slid("_x", frame)
    lasting = end != NEVER
    if lasting:
        ending, taken = (
            f"LEAST(CASE WHEN {gone} <= :until THEN {gone} END, {end})",
            f"{gone} < {end} AND {gone} <= :until",
        )
        seen = f"({gone} IS NULL OR {gone} > {begin}) AND {end} > {begin}"
    else:
        ending, taken = f"CASE WHEN {gone} <= :until THEN {gone} END", f"{gone} <= :until"
        seen = f"{gone} IS NULL OR {gone} > {begin}"
    before = f"{begin} <= :since"
    return lowering.step(
        "window",
        f"SELECT {comma(listed(names(node.child)), stamp(node))},\n"
        f"  CASE WHEN {before} THEN {gone} ELSE {begin} END AS _t,\n"
        f"  CASE WHEN {before} THEN {end} ELSE {ending} END AS _x,\n"
        f"  CAST(CASE WHEN {before} THEN -1 ELSE 1 END AS BIGINT) AS _n\n"
        f"FROM {tuples} WHERE {begin} <= :until AND CASE WHEN {before} THEN {taken} ELSE {seen} END",
    )


def live(lowering: Lowering, node: Window, frame: Rows | Values) -> str:
    """What is seen at `since`."""
    born(lowering, node, frame)
    held = _synopsis(lowering, node)
    begin, end = (
        ("_from", NEVER) if isinstance(frame, Rows) and frame.step is not None else (_seen_from(frame), _expiry(frame))
    )
    row = comma(listed(names(node.child)), stamp(node), f"{begin} AS _t", f"{end} AS _x", f"{ONE} AS _n")
    condition = conjunction(f"{begin} <= :since", f"{end} > :since" if end != NEVER else "")
    return lowering.step("held", f"SELECT {row} FROM {held} WHERE {condition}")


def _synopsis(lowering: Lowering, node: Window) -> str:
    return lowering.once("tail", node, lambda: lowering.fresh("tail"))


def _seen_from(frame: Rows | Values) -> str:
    return _slid("_t", frame)


def _expiry(frame: Rows | Values) -> str:
    """When a tuple goes by itself, if it does."""
    if isinstance(frame, Values) or frame.span is None:
        return NEVER
    return _slid(f"(_t + {frame.span})", frame)


def _slid(instant: str, frame: Rows | Values) -> str:
    return ceiling(instant, frame.slide) if isinstance(frame, Rows) and frame.slide else instant


def _order(node: Window) -> str:
    """Ties in time: by arrival where there is one, else by value."""
    return "_t, _s" if node.child.arrival_ordered else comma("_t", *(name(column) for column in names(node.child)))


def _carried(node: Window) -> str:
    return listed((*names(node.child), "_t", *(("_s",) if node.child.arrival_ordered else ())))


def _displaced(lowering: Lowering, node: Window, frame: Rows | Values) -> str:
    """Tail and new tuples, each with the instant at which it is displaced, as `_x`."""

    def make() -> str:
        held, tuples, columns = _synopsis(lowering, node), lowering.tuples(node.child), _carried(node)
        joined = lowering.step("rows", union(f"SELECT {columns} FROM {held}", f"SELECT {columns} FROM {tuples}"))
        if isinstance(frame, Rows):
            over = f"{f'PARTITION BY {listed(frame.by)} ' if frame.by else ''}ORDER BY {_order(node)}"
            found = f"SELECT *, LEAD(_t, {frame.count}) OVER ({over}) AS _x FROM {joined}"
        else:
            found = _overtaken(joined, columns, frame)
        displaced = lowering.step("displaced", found)
        gone, end = _slid("_x", frame), _expiry(frame)
        lowering.timed |= end != NEVER or gone != "_x"
        staying = conjunction(f"({gone} IS NULL OR {gone} > :until)", f"{end} > :until" if end != NEVER else "")
        contents = lowering.step("last", f"SELECT {columns} FROM {displaced} WHERE {staying}")
        lowering.synopsis(held, contents, lowering.step("arriving", f"SELECT {columns} FROM {tuples}"))
        return displaced

    return lowering.once("displaced", node, make)


def _overtaken(joined: str, columns: str, frame: Values) -> str:
    """The first instant of a value so large that this one is out of reach: all values in falling order, walked once."""
    given = f"FROM {joined} WHERE {name(frame.column)} IS NOT NULL"
    first = "_mark" if frame.closed else "_mark DESC"  # of equal ones: out of reach is what is larger, or as large
    return (
        f"SELECT * FROM (\n"
        f"  SELECT {columns}, _mark, MIN(CASE WHEN _mark THEN _t END) OVER (\n"
        f"    ORDER BY _v DESC, {first} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS _x\n"
        f"  FROM (\n"
        f"    SELECT {columns}, {frame.value} + {frame.length} AS _v, FALSE AS _mark {given}\n"
        f"    UNION ALL\n"
        f"    SELECT {columns}, {frame.value} AS _v, TRUE AS _mark {given}\n"
        f"  )\n"
        f") WHERE NOT _mark"
    )


def _stepping(lowering: Lowering, node: Window, frame: Rows, step: int) -> str:
    """A row window that moves after every `step`-th tuple: tuples are numbered, and the numbers are kept.

    Tuple i is seen from the first multiple of `step` from i on, until the first one from i + count on. Of the `step`
    numbers from i on exactly one is a multiple, so a frame of that many rows finds it."""

    def make() -> str:
        held, tuples, columns = _synopsis(lowering, node), lowering.tuples(node.child), _carried(node)
        by = listed(frame.by)
        within, group = (f"PARTITION BY {by} ", f"PARTITION BY {by}, ") if frame.by else ("", "PARTITION BY ")
        joined = lowering.step(
            "rows",
            union(
                f"SELECT {columns}, _i, _from FROM {held}",
                f"SELECT {columns}, CAST(NULL AS BIGINT) AS _i, {NEVER} AS _from FROM {tuples}",
            ),
        )
        count = f"ROW_NUMBER() OVER ({group}_i IS NULL ORDER BY {_order(node)})"
        last = f"COALESCE(MAX(_i) OVER ({within.strip()}), 0)"
        numbered = lowering.step(
            "numbered", f"SELECT {columns}, COALESCE(_i, {last} + {count}) AS _i, _from FROM {joined}"
        )

        def multiple(first: int) -> str:
            rows = f"ROWS BETWEEN {f'{first} FOLLOWING' if first else 'CURRENT ROW'} AND {first + step - 1} FOLLOWING"
            return f"MAX(CASE WHEN PMOD(_i, {step}) = 0 THEN _t END) OVER ({within}ORDER BY _i {rows})"

        found = (
            f"SELECT {columns}, _i, _from AS _was, COALESCE(_from, {multiple(0)}) AS _from, "
            f"{multiple(frame.count)} AS _x"
        )
        seen = lowering.step("seen", f"{found} FROM {numbered}")
        contents = lowering.step(
            "last", f"SELECT {columns}, CAST(_i AS BIGINT) AS _i, _from FROM {seen} WHERE _x IS NULL"
        )
        shape = f"SELECT {columns}, CAST(NULL AS BIGINT) AS _i, {NEVER} AS _from FROM {tuples}"
        lowering.synopsis(held, contents, lowering.step("arriving", shape))
        return lowering.step(
            "window",
            f"SELECT {comma(listed(names(node.child)), stamp(node))},\n"
            f"  CASE WHEN _was IS NULL THEN _from ELSE _x END AS _t, CASE WHEN _was IS NULL THEN _x END AS _x,\n"
            f"  CAST(CASE WHEN _was IS NULL THEN 1 ELSE -1 END AS BIGINT) AS _n\n"
            f"FROM {seen}\n"
            "WHERE CASE WHEN _was IS NULL THEN _from IS NOT NULL AND (_x IS NULL OR _x > _from) ELSE _x IS NOT NULL "
            "END",
        )

    return lowering.once("stepping", node, make)
