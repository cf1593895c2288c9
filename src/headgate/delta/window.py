"""Windows: tuples of a stream become elements of a relation, stamped with the interval in which they count.

A time window over a base stream keeps nothing: what comes into it in an epoch is one range of the log, what leaves it another.
A row window keeps its tail. A time window over a derived stream keeps what still lives, and what has yet to begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from headgate.catalog import Tick
from headgate.delta.program import Edge
from headgate.delta.sql import NEVER, ONE, comma, listed, name, union
from headgate.plan.nodes import Now, Range, Rows, Source, Unbounded, Window, names
from headgate.plan.properties import arrival_ordered

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def floor(instant: str, slide: Tick) -> str:
    """The last multiple of `slide` up to the instant, also before 0."""
    return f"({instant} - PMOD({instant}, {slide}))"


def ceiling(instant: str, slide: Tick) -> str:
    return f"({instant} + PMOD(-{instant}, {slide}))"


def interval(frame: Now | Unbounded | Range) -> tuple[str, str]:
    """From when until when a tuple at `_t` counts."""
    match frame:
        case Now():
            return "_t", "_t + 1"
        case Unbounded():
            return "_t", NEVER
        case Range(length, slide, closed):
            if slide is None:
                return "_t", f"_t + {frame.span}"
            if closed:
                return ceiling("_t", slide), f"{floor(f'(_t + {length})', slide)} + {slide}"
            return ceiling("_t", slide), ceiling(f"(_t + {length})", slide)
        case _:
            assert_never(frame)


def delay(frame: Now | Unbounded | Range) -> Tick:
    """By how much at most a tuple's interval begins after the tuple."""
    return frame.slide - 1 if isinstance(frame, Range) and frame.slide else 0


def reach(frame: Now | Range) -> tuple[Tick, Tick]:
    """How long after the tuple its interval ends, at least and at most."""
    match frame:
        case Now():
            return 1, 1
        case Range():
            return frame.span, frame.span + (frame.slide or 1) - 1


def born(lowering: Lowering, node: Window) -> str:
    if isinstance(node.frame, Rows):
        return _rows_born(lowering, node, node.frame)
    if isinstance(node.child, Source):
        low = Edge("since", -delay(node.frame))
        return _stamped(lowering, node, lowering.input(node.child.stream, low, Edge("until")), "_t > :since AND _t <= :until")
    tuples = lowering.tuples(node.child)
    if not delay(node.frame):
        return _stamped(lowering, node, tuples, "")
    # A tuple of a derived stream may begin to count in a later epoch than its own: it waits in a synopsis.
    stamped = _stamped(lowering, node, tuples, "")
    waiting = lowering.fresh("waiting")
    columns = listed((*names(node), "_t", "_x", "_n"))
    every = lowering.step("stamped", union(f"SELECT {columns} FROM {waiting}", f"SELECT {columns} FROM {stamped}"))
    later = lowering.step("later", f"SELECT {columns} FROM {every} WHERE _t > :until")
    lowering.synopsis(waiting, later, stamped)
    return lowering.step("window", f"SELECT {columns} FROM {every} WHERE _t <= :until")


def live(lowering: Lowering, node: Window) -> str | None:
    """What a window over a base stream, or any row window, holds at `since`."""
    match node.frame:
        case Rows():
            tail = _tail(lowering, node, node.frame)
            held = f"SELECT {listed(names(node))}, _t, {_expiry(node.frame)} AS _x, {ONE} AS _n FROM {tail}"
            return lowering.step("held", held if node.frame.span is None else f"{held} WHERE {_expiry(node.frame)} > :since")
        case Unbounded():
            low = Edge(None)
        case Now() | Range():
            low = Edge("since", -reach(node.frame)[1])
    assert isinstance(node.child, Source)
    return _stamped(lowering, node, lowering.input(node.child.stream, low, Edge("since")), "_t <= :since AND _x > :since")


def ends(lowering: Lowering, node: Window) -> str | None:
    """What a window over a base stream held at `since` and lets go by `until`: a range of the log, one window earlier."""
    match node.frame:
        case Rows() | Unbounded():
            return None
        case Now() | Range():
            least, most = reach(node.frame)
    assert isinstance(node.child, Source)
    log = lowering.input(node.child.stream, Edge("since", -most), Edge("until", -least), Edge("since"))
    return _stamped(lowering, node, log, "_t <= :since AND _x > :since AND _x <= :until")


def _stamped(lowering: Lowering, node: Window, tuples: str, condition: str) -> str:
    assert not isinstance(node.frame, Rows)
    begin, end = interval(node.frame)
    columns = listed(names(node))
    inner = f"SELECT {comma(columns, f'{begin} AS _t', f'{end} AS _x', f'{ONE} AS _n')} FROM {tuples}"
    if isinstance(node.frame, Range) and (node.frame.slide or not node.frame.span):
        condition = conjunction(condition, "_t < _x")  # between two slides, or of no length: never seen
    if isinstance(node.frame, Unbounded):
        condition = condition.replace(" AND _x > :since", "")
    if not condition:
        return lowering.step("window", inner)
    return lowering.step("window", f"SELECT {columns}, _t, _x, _n FROM (\n  {inner}\n) WHERE {condition}")


def conjunction(*conditions: str) -> str:
    return " AND ".join(condition for condition in conditions if condition)


# row windows


def _order(node: Window) -> str:
    """Ties in time: by arrival where there is one, else by value."""
    return "_t, _s" if arrival_ordered(node.child) else comma("_t", *(name(column) for column in names(node)))


def _tail(lowering: Lowering, node: Window, frame: Rows) -> str:
    """The synopsis that holds the last rows of each partition."""
    _rows_ranked(lowering, node, frame)
    tail = lowering.once("tail", node, lambda: lowering.fresh("tail"))
    assert tail is not None
    return tail


def _rows_ranked(lowering: Lowering, node: Window, frame: Rows) -> str:
    """Tail and new tuples, each with the instant at which it is displaced by the `count`-th tuple after it."""

    def make() -> str:
        tail = lowering.once("tail", node, lambda: lowering.fresh("tail"))
        assert tail is not None
        tuples = lowering.tuples(node.child)
        order = ("_s",) if arrival_ordered(node.child) else ()
        columns = listed((*names(node), "_t", *order))
        over = f"{f'PARTITION BY {listed(frame.by)} ' if frame.by else ''}ORDER BY {_order(node)}"
        candidates = union(f"SELECT {columns}, TRUE AS _held FROM {tail}", f"SELECT {columns}, FALSE AS _held FROM {tuples}")
        joined = lowering.step("rows", candidates)
        ranked = lowering.step("ranked", f"SELECT *, LEAD(_t, {frame.count}) OVER ({over}) AS _x FROM {joined}")
        dead = "" if frame.span is None else f" AND {_expiry(frame)} > :until"
        contents = lowering.step("last", f"SELECT {columns} FROM {ranked} WHERE _x IS NULL{dead}")
        shape = lowering.step("arriving", f"SELECT {columns} FROM {tuples}")
        lowering.synopsis(tail, contents, shape)
        return ranked

    ranked = lowering.once("ranked", node, make)
    assert ranked is not None
    return ranked


def _rows_born(lowering: Lowering, node: Window, frame: Rows) -> str:
    """New tuples, open unless displaced in this epoch; and for a tuple of the tail that is displaced, its taking back.

    A tuple displaced at its own instant was never seen. Where tuples also last for a span only, they are not open but end with
    it, and taking back concerns what is left of it.
    """
    ranked = _rows_ranked(lowering, node, frame)
    expiry = _expiry(frame)
    displaced = "_x IS NOT NULL" if frame.span is None else f"_x < {expiry}"
    ending = "_x" if frame.span is None else f"LEAST(_x, {expiry})"
    seen = "_x IS NULL OR _x > _t" if frame.span is None else f"(_x IS NULL OR _x > _t) AND {expiry} > _t"
    return lowering.step(
        "window",
        f"SELECT {listed(names(node))},\n"
        f"  CASE WHEN _held THEN _x ELSE _t END AS _t,\n"
        f"  CASE WHEN _held THEN {expiry} ELSE {ending} END AS _x,\n"
        f"  CAST(CASE WHEN _held THEN -1 ELSE 1 END AS BIGINT) AS _n\n"
        f"FROM {ranked} WHERE CASE WHEN _held THEN {displaced} ELSE {seen} END",
    )


def _expiry(frame: Rows) -> str:
    """When a tuple of a row window goes by itself, if it does."""
    return NEVER if frame.span is None else f"_t + {frame.span}"
