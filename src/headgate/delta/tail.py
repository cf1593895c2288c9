"""Windows that keep a tail: the last rows, per partition if one likes, and the rows near the largest value.

    born     a tuple from when it is seen, open or until its span is over; -1 for a tuple that is displaced
    live     the tuples that are seen at `since`

When a tuple comes in, nobody knows yet when it will have to go: later tuples displace it. So it is put out open, or
until its time is up where the window has a span, and is taken back when it is displaced. The synopsis holds the tuples
that are not yet displaced. Together with the new ones they tell when each is displaced: at the instant of the tuple
that displaces it, or, with a slide, at the multiple of the slide behind that. Null means that none has come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta import ranges
from headgate.delta.instants import ceiling, stamp
from headgate.delta.query import LateralView, Select, Table, select, union
from headgate.plan.nodes import Rows, Values, Window, names
from headgate.sql import ALL, EMPTY, NEVER, ONE, Sql, comma, listed, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def born(lowering: Lowering, node: Window, frame: Rows | Values) -> Table:
    """Born: the tuples that begin to be seen in this epoch, and, counted -1, those that are displaced in it.

    A tuple that is displaced at the instant at which it would be seen is left out. Where tuples last for a span only,
    what is left of the span is taken back.
    """
    if isinstance(frame, Rows) and frame.step is not None:
        return _stepping(lowering, node, frame, frame.step)
    tuples = _displaced(lowering, node, frame)
    begin, end, gone = _seen_from(frame), _expiry(frame), _slid(Sql("_x"), frame)
    lasting = end != NEVER
    if lasting:
        ending = f"LEAST(CASE WHEN {gone} <= :until THEN {gone} END, {end})"
        taken = f"{gone} < {end} AND {gone} <= :until"
        seen = f"({gone} IS NULL OR {gone} > {begin}) AND {end} > {begin}"
    else:
        ending, taken = f"CASE WHEN {gone} <= :until THEN {gone} END", f"{gone} <= :until"
        seen = f"{gone} IS NULL OR {gone} > {begin}"
    before = f"{begin} <= :since"
    row = (
        f"{comma(listed(names(node.child)), stamp(node))},\n"
        f"  CASE WHEN {before} THEN {gone} ELSE {begin} END AS _t,\n"
        f"  CASE WHEN {before} THEN {end} ELSE {ending} END AS _x,\n"
        f"  CAST(CASE WHEN {before} THEN -1 ELSE 1 END AS BIGINT) AS _n"
    )
    changed = (f"{begin} <= :until", f"CASE WHEN {before} THEN {taken} ELSE {seen} END")
    return lowering.step("window", select(row, tuples, where=changed))


def live(lowering: Lowering, node: Window, frame: Rows | Values) -> Table:
    """Live: the tuples of the tail that are seen at `since`."""
    born(lowering, node, frame)
    held = _synopsis(lowering, node)
    begin, end = (
        (Sql("_from"), NEVER)
        if isinstance(frame, Rows) and frame.step is not None
        else (_seen_from(frame), _expiry(frame))
    )
    row = comma(listed(names(node.child)), stamp(node), f"{begin} AS _t", f"{end} AS _x", f"{ONE} AS _n")
    seen = (f"{begin} <= :since", f"{end} > :since" if end != NEVER else EMPTY)
    return lowering.step("held", select(row, held, where=seen))


def _synopsis(lowering: Lowering, node: Window) -> Table:
    return lowering.once("tail", node, lambda: lowering.fresh("tail"))


def _seen_from(frame: Rows | Values) -> Sql:
    """The instant from which on a tuple is seen."""
    return _slid(Sql("_t"), frame)


def _expiry(frame: Rows | Values) -> Sql:
    """The instant at which a tuple goes because its span is over; NEVER without a span."""
    if isinstance(frame, Values) or frame.span is None:
        return NEVER
    return _slid(Sql(f"(_t + {frame.span})"), frame)


def _slid(instant: Sql, frame: Rows | Values) -> Sql:
    """The instant, or with a slide the next multiple of it."""
    return ceiling(instant, frame.slide) if isinstance(frame, Rows) and frame.slide else instant


def _order(node: Window) -> Sql:
    """Ties in time: by arrival where there is one, else by value."""
    return (
        Sql("_t, _s")
        if node.child.arrival_ordered
        else comma(Sql("_t"), *(name(column) for column in names(node.child)))
    )


def _columns(node: Window) -> tuple[Sql, ...]:
    """The columns of the synopsis: those of a tuple, `_t`, and the order of arrival if there is one."""
    return (*names(node.child), "_t", *(("_s",) if node.child.arrival_ordered else ()))


def _carried(node: Window) -> Sql:
    """The columns of the synopsis with commas between them."""
    return listed(_columns(node))


def _displaced(lowering: Lowering, node: Window, frame: Rows | Values) -> Table:
    """The tail and the new tuples, each with the instant at which it is displaced, as `_x`."""

    def make() -> Table:
        held, tuples, columns = _synopsis(lowering, node), lowering.tuples(node.child), _carried(node)
        joined = lowering.step("rows", union(select(columns, held), select(columns, tuples)))
        if isinstance(frame, Rows):
            found = _followed(lowering, node, frame, joined)
        else:
            found = _overtaken(lowering, node, frame, joined)
        displaced = lowering.step("displaced", found)
        gone, end = _slid(Sql("_x"), frame), _expiry(frame)
        lowering.acts_without_input |= end != NEVER or gone != "_x"
        staying = (f"({gone} IS NULL OR {gone} > :until)", f"{end} > :until" if end != NEVER else EMPTY)
        contents = lowering.step("last", select(columns, displaced, where=staying))
        lowering.synopsis(held, contents, lowering.step("arriving", select(columns, tuples)))
        return displaced

    return lowering.once("displaced", node, make)


def _followed(lowering: Lowering, node: Window, frame: Rows, joined: Table) -> Select:
    """Each tuple with the instant of the one that comes so many tuples later, as `_x`."""
    cut = None if frame.by else lowering.cut(node.child)
    if cut is not None:
        return select(ALL, ranges.follower(lowering, cut, joined, _columns(node), _order(node), frame.count))
    over = f"{f'PARTITION BY {listed(frame.by)} ' if frame.by else ''}ORDER BY {_order(node)}"
    return select(f"*, LEAD(_t, {frame.count}) OVER ({over}) AS _x", joined)


def _overtaken(lowering: Lowering, node: Window, frame: Values, joined: Table) -> Select:
    """Each tuple with the first instant of a value so large that its own is out of reach, as `_x`.

    All values are walked once, in falling order: the tuples at their value plus the reach of the window, and the same
    tuples again as marks at their value. The smallest timestamp of the marks walked so far is the instant.
    """
    columns, given = _carried(node), f"{name(frame.column)} IS NOT NULL"
    first = (
        Sql("_mark") if frame.closed else Sql("_mark DESC")
    )  # of equal ones: out of reach is what is larger, or as large
    instant = Sql("CASE WHEN _mark THEN _t END")
    cut = lowering.cut(node.child)
    if cut is not None:
        both = LateralView(select(columns, joined, where=given), Sql("EXPLODE(ARRAY(TRUE, FALSE)) e AS _mark"))
        reach = f"{frame.value} + CASE WHEN _mark THEN 0 ELSE {frame.length} END AS _v"
        rows = lowering.step("walked", select(f"{columns}, {reach}, _mark", both))
        passed = ranges.least(
            lowering, cut, rows, (*_columns(node), Sql("_v"), Sql("_mark")), instant, Sql("_v"), first
        )
        return select(ALL, passed, where=Sql("NOT _mark"))
    walked = union(
        select(f"{columns}, {frame.value} + {frame.length} AS _v, FALSE AS _mark", joined, where=given),
        select(f"{columns}, {frame.value} AS _v, TRUE AS _mark", joined, where=given),
    )
    over = f"ORDER BY _v DESC, {first} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    found = select(f"{columns}, _mark, MIN({instant}) OVER (\n  {over}) AS _x", walked)
    return select(ALL, found, where=Sql("NOT _mark"))


def _stepping(lowering: Lowering, node: Window, frame: Rows, step: int) -> Table:
    """Born, of a row window that moves after every `step`-th tuple: tuples are numbered, and the numbers are kept.

    Tuple i is seen from the first multiple of `step` from i on, until the first one from i + count on. Of the `step`
    numbers from i on exactly one is a multiple, so a frame of that many rows finds it.
    """

    def make() -> Table:
        held, tuples, columns = _synopsis(lowering, node), lowering.tuples(node.child), _carried(node)
        by = listed(frame.by)
        within, group = (f"PARTITION BY {by}", f"PARTITION BY {by}, ") if frame.by else (EMPTY, Sql("PARTITION BY "))
        arriving = select(f"{columns}, CAST(NULL AS BIGINT) AS _i, {NEVER} AS _from", tuples)
        joined = lowering.step("rows", union(select(f"{columns}, _i, _from", held), arriving))
        count = f"ROW_NUMBER() OVER ({group}_i IS NULL ORDER BY {_order(node)})"
        last = f"COALESCE(MAX(_i) OVER ({within}), 0)"
        numbered = lowering.step("numbered", select(f"{columns}, COALESCE(_i, {last} + {count}) AS _i, _from", joined))

        def multiple(first: int) -> Sql:
            rows = Sql(
                f"ROWS BETWEEN {f'{first} FOLLOWING' if first else 'CURRENT ROW'} AND {first + step - 1} FOLLOWING"
            )
            over = f"{within}{' ' if within else ''}ORDER BY _i {rows}"
            return f"MAX(CASE WHEN PMOD(_i, {step}) = 0 THEN _t END) OVER ({over})"

        interval = f"COALESCE(_from, {multiple(0)}) AS _from, {multiple(frame.count)} AS _x"
        seen = lowering.step("seen", select(f"{columns}, _i, _from AS _was, {interval}", numbered))
        contents = lowering.step(
            "last", select(f"{columns}, CAST(_i AS BIGINT) AS _i, _from", seen, where=Sql("_x IS NULL"))
        )
        lowering.synopsis(held, contents, lowering.step("arriving", arriving))
        row = (
            f"{comma(listed(names(node.child)), stamp(node))},\n"
            f"  CASE WHEN _was IS NULL THEN _from ELSE _x END AS _t, CASE WHEN _was IS NULL THEN _x END AS _x,\n"
            f"  CAST(CASE WHEN _was IS NULL THEN 1 ELSE -1 END AS BIGINT) AS _n"
        )
        begins = Sql("_from IS NOT NULL AND (_x IS NULL OR _x > _from)")
        changed = f"CASE WHEN _was IS NULL THEN {begins} ELSE _x IS NOT NULL END"
        return lowering.step("window", select(row, seen, where=changed))

    return lowering.once("stepping", node, make)
