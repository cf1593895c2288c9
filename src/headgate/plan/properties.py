"""What can be proved of a relation from its plan, so that work can be left out: pure functions over nodes.

Every property is conservative: False, or None, means "not proved". The rules in `delta` rely on them for exactness, so
each says why it holds.
"""

from __future__ import annotations

from headgate.plan.nodes import (
    Aggregate,
    Distinct,
    Dstream,
    Exploded,
    Filter,
    Final,
    Istream,
    Join,
    Needed,
    Node,
    Now,
    Passed,
    Piped,
    Project,
    Range,
    Ranked,
    Relation,
    Rows,
    Rstream,
    Source,
    Stored,
    Stream,
    Unbounded,
    Union,
    Values,
    Weight,
    Window,
    children,
)
from headgate.ticks import Tick


def complete(node: Node) -> bool:
    """Every expression reads only columns of the node below it."""
    below = children(node)
    have = {column.name.lower() for child in below for column in child.columns}
    return all(read <= have for read in _reads(node)) and all(map(complete, below))


def _reads(node: Node) -> list[frozenset[str]]:
    """The columns that each expression of a node reads."""
    match node:
        case Filter(condition=expression) | Weight(factor=expression) | Exploded(generator=expression):
            return [expression.columns]
        case Project(items=items):
            return [item.expression.columns for item in items]
        case Ranked(items=items):
            return [item.expression.columns - {"_at"} for item in items]
        case Join(equalities=equalities, condition=condition):
            pairs = [side.columns for equality in equalities for side in (equality.left, equality.right)]
            return [*pairs, condition.columns] if condition is not None else pairs
        case Aggregate(keys=keys, calls=calls):
            return [*(key.expression.columns for key in keys), *(call.columns for call in calls)]
        case _:
            return []


def opens(node: Node) -> bool:
    """Whether there are rows before anything has come: of relations that never change, and of an aggregate over
    nothing.
    """
    match node:
        case Aggregate(row_when_empty=True) | Stored(domain=None):
            return True
        case _:
            return any(map(opens, children(node)))


def monotonic(node: Node) -> bool:
    """Rows are never taken away again (CQL's conservative test, for the defaults)."""
    match node:
        case Window(_, Unbounded()):
            return True
        case Stored(growing=growing):
            return growing
        case Filter(child) | Project(child) | Exploded(child) | Distinct(child) | Needed(child) | Piped(child):
            return monotonic(child)
        case Join(left, right) | Union(left, right):
            return monotonic(left) and monotonic(right)
        case _:
            return False


def endless(node: Relation) -> bool:
    """No element has an end or is taken back: there is nothing that Istream could net a row against."""
    match node:
        case Window(_, Unbounded()):
            return True
        case Filter(child) | Project(child) | Exploded(child) | Needed(child) | Piped(child):
            return endless(child)
        case Join(left, right) | Union(left, right):
            return endless(left) and endless(right)
        case Stored(growing=growing):
            return growing
        case Window() | Aggregate() | Distinct() | Weight() | Ranked():
            return False


def retracts(node: Relation) -> bool:
    """Some element may be taken back by one with a negative count; otherwise every count is 1."""
    match node:
        case Window(_, Rows() | Values()) | Weight():
            return True
        case Aggregate() | Distinct() | Ranked():
            return not momentary(node)
        case Window():
            return False
        case Stored(growing=growing):
            return not growing
        case Filter(child) | Project(child) | Exploded(child) | Needed(child) | Piped(child):
            return retracts(child)
        case Join(left, right) | Union(left, right):
            return retracts(left) or retracts(right)


def instantaneous(node: Relation) -> bool:
    """Every element lives for one instant. A join's pair lives no longer than either of its sides."""
    match node:
        case Window(_, Now() | Final() | Passed()):
            return True
        case Window(_, Range(length, None, closed)):
            return length == (0 if closed else 1)
        case Filter(child) | Project(child) | Exploded(child) | Needed(child):
            return instantaneous(child)
        case Aggregate() | Distinct() | Ranked():
            return momentary(node)
        case Join(left, right):
            return instantaneous(left) or instantaneous(right)
        case Union(left, right):
            return instantaneous(left) and instantaneous(right)
        case Weight(child):
            return instantaneous(child)
        case Piped(child):
            return instantaneous(child) and not retracts(child)
        case Window() | Stored():
            return False


def momentary(node: Aggregate | Distinct | Ranked) -> bool:
    """What is computed of rows that live for one instant lives for that instant: SQL with the instant as one more key
    does it.

    Not of an aggregate without keys, which has a row where there are none; nor of one in Python, which stands alone.
    """
    match node:
        case Aggregate(child, keys, calls):
            return bool(keys) and not any(call.outside for call in calls) and instantaneous(child)
        case Distinct(child) | Ranked(child):
            return instantaneous(child)


def stamped_by(node: Relation) -> frozenset[str] | None:
    """Columns from which the interval of a row follows; None if there are none.

    A time window's interval is a function of the timestamp, so a row that holds its timestamp determines it, and equal
    rows have equal intervals: none ends at the instant at which another begins. A pair of such rows determines both.
    """
    match node:
        case Window(stamp=str(column)) | Window(Source(timestamp=str(column))) if not isinstance(
            node.frame, Rows | Values | Final | Passed
        ):
            return frozenset({column.lower()})
        case Filter(child) | Exploded(child) | Needed(child) | Piped(child):
            return stamped_by(child)
        case Project(child, items):
            below = stamped_by(child)
            kept = {item.expression.column.lower(): item.name.lower() for item in items if item.expression.column}
            return frozenset(kept[name] for name in below) if below is not None and below <= kept.keys() else None
        case Join(left, right):
            first, second = stamped_by(left), stamped_by(right)
            return first | second if first is not None and second is not None else None
        case _:
            return None


def fixed_span(node: Relation) -> Tick | None:
    """For how many instants every element lives, if that is the same for all and nothing is taken back."""
    match node:
        case Window(_, Now() | Final() | Passed()):
            return 1
        case Window(_, Range(slide=None) as frame):
            return frame.span or None
        case Filter(child) | Project(child) | Exploded(child) | Needed(child):
            return fixed_span(child)
        case Union(left, right):
            return fixed_span(left) if fixed_span(left) == fixed_span(right) else None
        case Piped(child):
            return fixed_span(child) if not retracts(child) else None
        case _:
            return None


def coarse(node: Relation) -> bool:
    """Many elements share both ends of their interval: grouping by them first makes a sweep cheap."""
    match node:
        case Window(_, Range(slide=int()) | Final() | Passed()):
            return True
        case Filter(child) | Project(child) | Exploded(child) | Needed(child):
            return coarse(child)
        case Union(left, right):
            return coarse(left) and coarse(right)
        case Piped(child):
            return coarse(child) and not retracts(child)
        case _:
            return False


def group_key(node: Relation) -> tuple[str, ...] | None:
    """Columns of `node` that tell its rows apart at every instant, where it is an aggregate under selections.

    None where the key is lost by a projection: then rows of different groups may be equal.
    """
    match node:
        case Aggregate(keys=keys):
            return tuple(key.name for key in keys)
        case Distinct(child):
            return tuple(column.name for column in child.columns)
        case Filter(child):
            return group_key(child)
        case Project(child, items):
            below = group_key(child)
            if below is None:
                return None
            kept = {item.expression.column.lower(): item.name for item in items if item.expression.column}
            return (
                tuple(kept[name.lower()] for name in below) if {name.lower() for name in below} <= kept.keys() else None
            )
        case _:
            return None


def straight(node: Stream) -> Stream | None:
    """The stream that `node` only selects and projects from, tuple by tuple and in its order; None if it does more.

    Istream over an unbounded window, and Rstream over [Now], give every tuple back at its own instant.
    """
    match node:
        case Istream(child):
            return _stream_below(child, Unbounded())
        case Rstream(child, None):
            return _stream_below(child, Now())
        case Source() | Dstream() | Rstream():
            return None


def _stream_below(node: Relation, frame: Unbounded | Now) -> Stream | None:
    match node:
        case Filter(child) | Project(child):
            return _stream_below(child, frame)
        case Window(child, found) if found == frame:
            return child
        case _:
            return None


def flowing(node: Node) -> bool:
    """Whether answers are tuples of base streams, each selected, projected and put out by itself, from leaf to root.

    Such a query can take tuples in any order (the order of its answers is that of its tuples), and the tuples of an
    instant need not wait for one another."""
    match node:
        case Source(stream):
            return not stream.startswith("late(")
        case Istream(child):
            return _flowing(child, Unbounded())
        case Rstream(child, None):
            return _flowing(child, Now())
        case _:
            return False


def _flowing(node: Relation, frame: Unbounded | Now) -> bool:
    match node:
        case Filter(child) | Project(child) | Exploded(child):
            return _flowing(child, frame)
        case Union(left, right):
            return _flowing(left, frame) and _flowing(right, frame)
        case Window(child, found):
            return found == frame and flowing(child)
        case _:
            return False


def arrival_ordered(node: Stream) -> bool:
    """Whether the tuples have an order of arrival; other streams order ties by their values."""
    if isinstance(node, Source):
        return True
    below = straight(node)
    return below is not None and arrival_ordered(below)


def in_logs(node: Relation) -> bool:
    """Whether the live elements can be read back from logs or a row window's tail, so that no synopsis is needed."""
    match node:
        case Window(_, Rows() | Values()) | Needed():
            return True
        case Window(_, Passed() | Final(delay=None)):
            return False
        case Window(Source()):
            return True
        case Stored(key=key):
            return bool(key)
        case Filter(child) | Project(child) | Weight(child) | Exploded(child):
            return in_logs(child)
        case Union(left, right):
            return in_logs(left) and in_logs(right)
        case _:
            return False


def picks(node: Relation) -> bool:
    """A projection that computes nothing: columns of its child, perhaps under other names."""
    return isinstance(node, Project) and all(item.expression.column is not None for item in node.items)


def renames(node: Relation) -> bool:
    """A projection that has every column of its child, perhaps under another name or in another place."""
    if not isinstance(node, Project) or not picks(node):
        return False
    read = {item.expression.column.lower() for item in node.items if item.expression.column is not None}
    return read == {column.name.lower() for column in node.child.columns}


def open_ended(node: Relation) -> bool:
    """No element that outlives its epoch has an end: it is taken back when that comes. A pair ends with one of its
    sides.
    """
    match node:
        case Aggregate() | Distinct() | Ranked():
            return not momentary(node)
        case Stored() | Window(_, Unbounded() | Rows(span=None) | Values()):
            return True
        case Filter(child) | Project(child) | Weight(child) | Exploded(child) | Needed(child):
            return open_ended(child)
        case Join(left, right) | Union(left, right):
            return open_ended(left) and open_ended(right)
        case Piped(child):
            return retracts(child) or open_ended(child)
        case Window():
            return False
