"""Windows: tuples of a stream become elements of a relation, stamped with the interval in which they count.

A time window over a base stream keeps nothing: what comes into it in an epoch is one range of the log, what leaves it
another. A row window or a window over values keeps its tail (see `tail`). A time window over a derived stream keeps
what still lives, and what has yet to begin; so does a window that shows its tuples when they are final, where nobody
knows how long that takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from headgate.delta import passing, tail
from headgate.delta.instants import ceiling, floor, stamp
from headgate.delta.program import Edge
from headgate.plan.nodes import Final, Now, Passed, Range, Rows, Scan, Unbounded, Values, Window, names
from headgate.sql import NEVER, ONE, comma, conjunction, listed, union
from headgate.ticks import Tick

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def interval(frame: Now | Unbounded | Range | Final) -> tuple[str, str]:
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
        case Final():
            return frame.closes, f"{frame.closes} + 1"
        case _:
            assert_never(frame)


def delay(frame: Now | Unbounded | Range | Final) -> Tick | None:
    """By how much at most a tuple's interval begins after the tuple; None if that is not known."""
    match frame:
        case Final():
            return frame.delay
        case Range(slide=int(slide)):
            return slide - 1
        case _:
            return 0


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


def born(lowering: Lowering, node: Window) -> str:
    if isinstance(node.frame, Rows | Values):
        return tail.born(lowering, node, node.frame)
    if isinstance(node.frame, Passed):
        return passing.born(lowering, node, node.frame)
    longest = delay(node.frame)
    if isinstance(node.child, Scan) and longest is not None:
        low = Edge("since", -longest)
        return _stamped(
            lowering, node, lowering.input(node.child.stream, low, Edge("until")), "_t > :since AND _t <= :until"
        )
    tuples = lowering.tuples(node.child)
    if longest == 0:
        return _stamped(lowering, node, tuples, "")
    # A tuple may begin to count in a later epoch than its own: it waits in a synopsis.
    stamped = _stamped(lowering, node, tuples, "")
    waiting = lowering.fresh("waiting")
    lowering.timed = True
    columns = listed((*names(node), "_t", "_x", "_n"))
    every = lowering.step("stamped", union(f"SELECT {columns} FROM {waiting}", f"SELECT {columns} FROM {stamped}"))
    later = lowering.step("later", f"SELECT {columns} FROM {every} WHERE _t > :until")
    lowering.synopsis(waiting, later, stamped)
    return lowering.step("window", f"SELECT {columns} FROM {every} WHERE _t <= :until")


def live(lowering: Lowering, node: Window) -> str | None:
    """What a window over a base stream, or any that keeps its tail, holds at `since`."""
    match node.frame:
        case Rows() | Values():
            return tail.live(lowering, node, node.frame)
        case Unbounded():
            low = Edge(None)
        case Now() | Range() | Final():
            low = Edge("since", -reach(node.frame)[1])
        case Passed():
            raise AssertionError(node)
    assert isinstance(node.child, Scan)
    return _stamped(
        lowering, node, lowering.input(node.child.stream, low, Edge("since")), "_t <= :since AND _x > :since"
    )


def ends(lowering: Lowering, node: Window) -> str | None:
    """What a window over a base stream held at `since` and lets go by `until`: a range of the log, one window
    earlier.
    """
    match node.frame:
        case Rows() | Values() | Unbounded() | Passed():
            return None
        case Now() | Range() | Final():
            least, most = reach(node.frame)
    assert isinstance(node.child, Scan)
    log = lowering.input(node.child.stream, Edge("since", -most), Edge("until", -least), Edge("since"))
    return _stamped(lowering, node, log, "_t <= :since AND _x > :since AND _x <= :until")


def _stamped(lowering: Lowering, node: Window, tuples: str, condition: str) -> str:
    assert not isinstance(node.frame, Rows | Values | Passed)
    begin, end = interval(node.frame)
    own = comma(listed(names(node.child)), stamp(node))
    inner = f"SELECT {comma(own, f'{begin} AS _t', f'{end} AS _x', f'{ONE} AS _n')} FROM {tuples}"
    if isinstance(node.frame, Range) and (node.frame.slide or not node.frame.span):
        condition = conjunction(condition, "_t < _x")  # between two slides, or of no length: never seen
    if isinstance(node.frame, Unbounded):
        condition = condition.replace(" AND _x > :since", "")
    if not condition:
        return lowering.step("window", inner)
    return lowering.step("window", f"SELECT {listed(names(node))}, _t, _x, _n FROM (\n  {inner}\n) WHERE {condition}")
