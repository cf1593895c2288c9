"""Windows: tuples of a stream become elements of a relation, stamped with the interval in which they count.

A time window over a base stream keeps nothing: the tuples that come into it in an epoch are one range of the log, and
those that leave it are another. A row window or a window over values keeps its tail (see `tail`). A time window over a
derived stream keeps the tuples that live and those whose interval has yet to begin. So does a window that shows its
tuples when they are final, if the delay has no bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from headgate.delta import passing, tail
from headgate.delta.instants import ceiling, floor, stamp
from headgate.delta.program import Edge
from headgate.delta.query import Table, select, union
from headgate.plan.nodes import Final, Now, Passed, Range, Rows, Scan, Unbounded, Values, Window, names
from headgate.sql import NEVER, ONE, Sql, comma, listed
from headgate.ticks import Tick

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def interval(frame: Now | Unbounded | Range | Final) -> tuple[Sql, Sql]:
    """The instants from which and until which a tuple at `_t` counts, as SQL."""
    match frame:
        case Now():
            return Sql("_t"), Sql("_t + 1")
        case Unbounded():
            return Sql("_t"), NEVER
        case Range(length, slide, closed):
            if slide is None:
                return Sql("_t"), Sql(f"_t + {frame.span}")
            if closed:
                return ceiling(Sql("_t"), slide), f"{floor(Sql(f'(_t + {length})'), slide)} + {slide}"
            return ceiling(Sql("_t"), slide), ceiling(Sql(f"(_t + {length})"), slide)
        case Final():
            return frame.closes, f"{frame.closes} + 1"
        case _:
            assert_never(frame)


def delay(frame: Now | Unbounded | Range | Final) -> Tick | None:
    """By how much at most a tuple's interval begins after the tuple; None if that is not known."""
    match frame:
        case Final():
            return frame.delay
        case Range():
            return frame.slide - 1 if frame.slide is not None else 0
        case Now() | Unbounded():
            return 0
        case _:
            assert_never(frame)


def reach(frame: Now | Range | Final) -> tuple[Tick, Tick]:
    """How long after the tuple its interval ends, at least and at most."""
    match frame:
        case Now():
            return 1, 1
        case Range():
            return frame.span, frame.span + (frame.slide or 1) - 1
        case Final():
            assert frame.delay is not None
            return 1, frame.delay + 1


def born(lowering: Lowering, node: Window) -> Table:
    """Born: the tuples whose interval begins in the epoch.

    Over a base stream these are one range of its log. Over a derived stream, a tuple whose interval begins in a later
    epoch than its own waits in a synopsis.
    """
    if isinstance(node.frame, Rows | Values):
        return tail.born(lowering, node, node.frame)
    if isinstance(node.frame, Passed):
        return passing.born(lowering, node, node.frame)
    longest = delay(node.frame)
    if isinstance(node.child, Scan) and longest is not None:
        log = lowering.input(node.child.stream, Edge("since", -longest), Edge("until"))
        return _stamped(lowering, node, log, Sql("_t > :since"), Sql("_t <= :until"))
    stamped = _stamped(lowering, node, lowering.tuples(node.child))
    if longest == 0:
        return stamped
    waiting = lowering.fresh("waiting")
    lowering.acts_without_input = True
    columns = listed((*names(node), "_t", "_x", "_n"))
    every = lowering.step("stamped", union(select(columns, waiting), select(columns, stamped)))
    later = lowering.step("later", select(columns, every, where=Sql("_t > :until")))
    lowering.synopsis(waiting, later, stamped)
    return lowering.step("window", select(columns, every, where=Sql("_t <= :until")))


def live(lowering: Lowering, node: Window) -> Table | None:
    """Live: the tuples of a base stream whose interval contains `since`; of a window with a tail, the rows of that."""
    conditions: tuple[Sql, ...] = (Sql("_t <= :since"),)
    match node.frame:
        case Rows() | Values():
            return tail.live(lowering, node, node.frame)
        case Unbounded():
            low = Edge(None)
        case Now() | Range() | Final():
            low = Edge("since", -reach(node.frame)[1])
            conditions = (*conditions, Sql("_x > :since"))
        case Passed():
            raise AssertionError(node)
        case _:
            assert_never(node.frame)
    assert isinstance(node.child, Scan)
    return _stamped(lowering, node, lowering.input(node.child.stream, low, Edge("since")), *conditions)


def alive(lowering: Lowering, node: Window) -> Table:
    """Alive: the tuples of a base stream whose interval contains `until`."""
    assert isinstance(node.child, Scan)
    assert isinstance(node.frame, Now | Range | Final)
    log = lowering.input(node.child.stream, Edge("until", -reach(node.frame)[1]), Edge("until"))
    return _stamped(lowering, node, log, Sql("_t <= :until"), Sql("_x > :until"))


def ends(lowering: Lowering, node: Window) -> Table | None:
    """Ends: the tuples of a base stream whose interval contains `since` and ends by `until`.

    These are a range of the log, too: that of the epoch, one window earlier.
    """
    match node.frame:
        case Rows() | Values() | Unbounded() | Passed():
            return None
        case Now() | Range() | Final():
            least, most = reach(node.frame)
        case _:
            assert_never(node.frame)
    assert isinstance(node.child, Scan)
    log = lowering.input(node.child.stream, Edge("since", -most), Edge("until", -least), Edge("since"))
    return _stamped(lowering, node, log, Sql("_t <= :since"), Sql("_x > :since"), Sql("_x <= :until"))


def _stamped(lowering: Lowering, node: Window, tuples: Table, *conditions: Sql) -> Table:
    """The tuples as elements with their interval, where all the conditions on it hold."""
    assert not isinstance(node.frame, Rows | Values | Passed)
    begin, end = interval(node.frame)
    own = comma(listed(names(node.child)), stamp(node))
    elements = select(comma(own, f"{begin} AS _t", f"{end} AS _x", f"{ONE} AS _n"), tuples)
    if isinstance(node.frame, Range) and (node.frame.slide or not node.frame.span):
        conditions = (*conditions, Sql("_t < _x"))  # between two slides, or of no length: never seen
    if not conditions:
        return lowering.step("window", elements)
    return lowering.step("window", select(f"{listed(names(node))}, _t, _x, _n", elements, where=conditions))
