"""Which values of a stream or relation stop to occur, and from which instant on: pure functions over plans.

The timestamp of a stream's tuples rises, and so does every monotone function of it: once time has gone beyond a value,
no tuple can have it any more. This is followed through projections, selections, unions, joins that equate such values,
derived streams and groups. A column that was declared INCREASING or DECREASING has no clock: only the tuples themselves
tell.

Conservative like `properties`: None means "not proved".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import cast

from headgate.plan.chains import chain
from headgate.plan.distances import distances
from headgate.plan.expressions import Expression
from headgate.plan.frozen import frozen
from headgate.plan.monotone import (
    DAY,
    Chain,
    Closer,
    Floored,
    Steps,
    applied,
    as_number,
    closes,
    kind_of,
    plus,
    reach,
    rising,
    stretch,
)
from headgate.plan.nodes import (
    Aggregate,
    Closing,
    Compared,
    Final,
    Istream,
    Join,
    Node,
    Ordered,
    Passed,
    Relation,
    Scan,
    Stream,
    Unbounded,
    Window,
    children,
    is_stream,
)
from headgate.plan.spans import Span
from headgate.sql import BIGINT, Sql, spelled
from headgate.ticks import Tick

CLOCK = Sql("_t")
"""The column of a chain that is a function of the timestamp itself."""


@frozen
class Attribute:
    """An ordered column of a stream: its value in SQL as a number, over `_t` or the column."""

    value: Chain
    closers: frozenset[Closer]
    """Empty where only the tuples tell."""

    rises: bool

    def sql(self) -> Sql:
        column, kind = self.value.column, self.value.kind
        return applied(self.value.steps, CLOCK if column == CLOCK else as_number(spelled(column), kind))

    @property
    def reads(self) -> frozenset[str]:
        return frozenset() if self.value.column == CLOCK else frozenset({self.value.column})


def of(expression: Expression, node: Node) -> Chain | None:
    """The expression over the columns of the node as a chain."""
    return chain(expression.sql, types(node))


def types(node: Node) -> dict[str, Sql]:
    return {column.name.lower(): column.type for column in node.columns}


# windows


def attribute(window: Window, value: Chain) -> Attribute | None:
    """The temporal attribute that a function of a window's column is: of the timestamp, or of an ordered column.

    None if it is neither.
    """
    if window.stamp is not None and window.stamp.lower() == value.column:
        return _of_clock((), value)
    stream = window.child
    if stream.stamp_column is not None and stream.stamp_column.lower() == value.column:
        return _of_clock((Floored(DAY),) if types(window)[value.column] == "DATE" else (), value)
    closers = beginning(stream.starting, value) if stream.starting is not None else None
    if closers:
        return Attribute(_own(window, value), closers, _rises(closers))
    order = _declared(stream, value.column)
    return Attribute(_own(window, value), frozenset(), order == rising(value.steps)) if order is not None else None


def _of_clock(steps: Steps, value: Chain) -> Attribute:
    every = (*steps, *value.steps)
    return Attribute(Chain(CLOCK, every, value.kind), frozenset({Closer(every)}), rising(every))


def _own(window: Window, value: Chain) -> Chain:
    """The chain with the kind of its column, by which that becomes a number."""
    return Chain(value.column, value.steps, kind_of(types(window)[value.column]) or value.kind)


def _rises(closers: frozenset[Closer]) -> bool:
    return all(rising(closer.steps) for closer in closers)


def one_way(closers: Iterable[Closer]) -> bool:
    """Whether values all rise, or all fall: of a merge of both nothing is known."""
    return len({rising(closer.steps) for closer in closers}) == 1


def _declared(stream: Stream, column: str) -> bool | None:
    """Whether a column was declared to rise (or, if false, to fall); also behind selections and projections of the
    stream.
    """
    if stream.base is not None:
        order = next((found.order for found in stream.base.columns if found.name.lower() == column), None)
        return None if order is None else order == "increasing"
    below = stream.straight
    found: Chain | None = Chain(column, (), "integer")
    node: Node = stream
    while below is not None and node is not below and found is not None:
        found = _inside(node, 0, found)
        (node,) = node.children
    if below is None or found is None:
        return None
    order_below = _declared(below, found.column)
    return None if order_below is None else order_below == rising(found.steps)


# relations


def beginning(node: Relation, value: Chain) -> frozenset[Closer] | None:
    """When no row of the relation with the value can begin any more."""
    if isinstance(node, Window):
        return _beginning_of_window(node, value)
    if not node.starts_with_input:
        return None
    insides = _insides(node, value)
    sides = cast("tuple[Relation, ...]", node.children)
    if isinstance(node, Join):
        for side, inside in zip(sides, insides, strict=True):
            if side.instantaneous and inside is not None:
                return beginning(side, inside)
    found: frozenset[Closer] | None = frozenset()
    for side, inside in zip(sides, insides, strict=True):
        closers = beginning(side, inside) if inside is not None and found is not None else None
        found = found | closers if found is not None and closers else None
    return found if found and (isinstance(node, Join) or one_way(found) or len(sides) == 1) else None


def _beginning_of_window(node: Window, value: Chain) -> frozenset[Closer] | None:
    seen = attribute(node, value)
    if seen is None:
        return None
    if isinstance(node.frame, Final):
        for closing in node.frame.values:
            rest = seen.value.behind(closing.value)
            if rest is not None:
                return frozenset(closer.later(rest, 1) for closer in closing.closers)
        return None
    at_once = node.frame.interval_by_stamp and node.frame.spans[0] == Span()
    return seen.closers or None if at_once else None


def _insides(node: Relation, value: Chain) -> list[Chain | None]:
    """The value as each child has it; None where the child does not tell."""
    if isinstance(node, Join):
        return tied((node.left, node.right), _pairs(node), value)
    return [_inside(node, place, value) for place in range(len(node.children))]


def _inside(node: Node, place: int, value: Chain) -> Chain | None:
    """The value over the columns of one child."""
    expression = node.carried[place].get(value.column)
    if expression is None:
        return None
    if expression.column is not None:
        return replace(value, column=expression.column.lower())
    inside = of(expression, node.children[place])
    return Chain(inside.column, (*inside.steps, *value.steps), value.kind) if inside is not None else None


def _pairs(node: Join) -> list[tuple[Expression, Expression]]:
    return [(equality.left, equality.right) for equality in node.equalities]


def tied(sides: Sequence[Relation], pairs: Sequence[tuple[Expression, Expression]], value: Chain) -> list[Chain | None]:
    """The value as each side has it, as far as the pairs that are equal tell."""
    found = [value if value.column in types(side) else None for side in sides]
    known: list[tuple[int, Chain, int, Chain]] = []
    for pair in pairs:
        placed = [
            (place, of(one, side))
            for one in pair
            for place, side in enumerate(sides)
            if one.columns and one.columns <= types(side).keys()
        ]
        match placed:
            case [(one, Chain() as first), (other, Chain() as second)] if one != other and first.kind == second.kind:
                known += [(one, first, other, second), (other, second, one, first)]
    changed = True
    while changed:
        changed = False
        for one, first, other, second in known:
            here = found[one]
            rest = here.behind(first) if here is not None and found[other] is None else None
            if here is not None and rest is not None:
                found[other] = Chain(second.column, (*second.steps, *rest), here.kind)
                changed = True
    return found


# EMIT FINAL: every window shows its tuples when they are final


def windows(node: Node) -> list[Window]:
    """The windows of a relation, not those below the streams it reads."""
    if isinstance(node, Window):
        return [node]
    return [] if is_stream(node) else [window for child in children(node) for window in windows(child)]


def at_windows(
    node: Relation, values: tuple[Chain, ...], change: Callable[[Window, tuple[Chain, ...]], Window | None]
) -> Relation | None:
    """The relation with each window changed, which gets the values as functions of its own columns; None where they get
    lost.
    """

    if not windows(node):
        return node
    if isinstance(node, Window):
        stream = node.child
        again = node.plain_merge and isinstance(stream, Istream) and stream.child.plain_merge
        return at_windows(cast(Istream, stream).child, values, change) if again else change(node, values)
    if not node.linear:
        return None
    insides = [_insides(node, value) for value in values]
    below: list[Node] = []
    for place, child in enumerate(cast("tuple[Relation, ...]", node.children)):
        known = [inside[place] for inside in insides]
        own = tuple(one for one in known if one is not None)
        if windows(child) and len(own) < len(known):
            return None
        changed = at_windows(child, own, change)
        if changed is None:
            return None
        below.append(changed)
    return cast(Relation, node.over(tuple(below)))


def attributes(node: Relation, value: Chain) -> list[Attribute] | None:
    """What each window of the relation knows of the value; None if one knows nothing, or if it rises here and falls
    there.
    """
    found: list[Attribute] = []

    def noted(window: Window, values: tuple[Chain, ...]) -> Window | None:
        seen = attribute(window, values[0]) if isinstance(window.frame, Unbounded) else None
        found.extend([seen] if seen is not None else [])
        return window if seen is not None else None

    known = at_windows(node, (value,), noted) is not None
    return found if known and len({seen.rises for seen in found}) == 1 else None


def shown_when_final(node: Relation, values: tuple[Chain, ...], closers: tuple[frozenset[Closer], ...]) -> Relation:
    """The relation in which each tuple is there for one instant only: the first at which one of its values is
    closed.
    """

    def final(window: Window, own: tuple[Chain, ...]) -> Window:
        seen = [cast(Attribute, attribute(window, value)) for value in own]
        instants = sorted({closes(some, one.sql()) for one, some in zip(seen, closers, strict=True)})
        frame = Final(
            tuple(Closing(one.value, some) for one, some in zip(seen, closers, strict=True)),
            instants[0] if len(instants) == 1 else f"LEAST({', '.join(instants)})",
            frozenset[str]().union(*(one.reads for one in seen)),
            _delay(window, seen, closers),
        )
        return replace(window, frame=frame)

    changed = at_windows(node, values, final)
    assert changed is not None
    return changed


def shown_when_passed(node: Relation, value: Chain) -> Relation:
    """The relation with each tuple shown when a later tuple of its window has passed its value."""

    def passed(window: Window, own: tuple[Chain, ...]) -> Window:
        seen = cast(Attribute, attribute(window, own[0]))
        return replace(window, frame=Passed(seen.value.column, seen.sql(), seen.rises))

    changed = at_windows(node, (value,), passed)
    assert changed is not None
    return changed


def _delay(window: Window, seen: list[Attribute], closers: tuple[frozenset[Closer], ...]) -> Tick | None:
    """How long after a tuple of a base stream at the most one of its values is closed."""
    found: list[Tick] = []
    for one, some in zip(seen, closers, strict=True):
        reaches = [reach(one.value.steps, closer.steps) for closer in some]
        if one.value.column == CLOCK and isinstance(window.child, Scan) and None not in reaches:
            found.append(max(cast(Tick, far) + closer.lag for far, closer in zip(reaches, some, strict=True)))
    return min(found, default=None)


# state that can be dropped


def partner_until(join: Join, by_distance: bool = True) -> tuple[Expression | None, Expression | None]:
    """Until when a row of the left and one of the right side can still find a partner; None where that is not known.

    Without `by_distance`, only values that are equated count.
    """
    left: list[Expression] = []
    right: list[Expression] = []
    for known in _known(join, by_distance):
        least, most = known.least, known.most
        for found, side, value, own, first, last in (
            (left, join.right, known.other, known.left, _less(most), _less(least)),
            (right, join.left, known.one, known.right, least, most),
        ):
            closers = beginning(side, value)
            if not closers or not one_way(closers):
                continue
            offset = last if _rises(closers) else first  # which of the values that partners have occurs last
            if offset is not None:
                number = plus(_number(own, value.kind).sql, offset)
                found.append(Expression(closes(closers, number), BIGINT, own.columns))
    return _earliest(left), _earliest(right)


@frozen
class _Known:
    """A value of the left side and one of the right, as chains too, and the bounds of their difference."""

    left: Expression
    right: Expression
    one: Chain
    other: Chain
    least: int | None
    most: int | None


def _known(join: Join, by_distance: bool = True) -> Iterator[_Known]:
    """What a join says of values of its two sides: that they are equal, or how far apart they may lie."""
    equal = ((e.left, e.right, 0, 0) for e in join.equalities if not e.null_safe)
    apart = ((d.left, d.right, d.least, d.most) for d in (distances(join) if by_distance else ()))
    for left, right, least, most in (*equal, *apart):
        one, other = of(left, join.left), of(right, join.right)
        if one is not None and other is not None and one.kind == other.kind:
            yield _Known(left, right, one, other, least, most)


def _less(bound: int | None) -> int | None:
    return None if bound is None else -bound


def partners_outrun(join: Join) -> tuple[bool, bool]:
    """Whether rows of the left and of the right side wait ever longer for a partner, because the other side's values
    grow more slowly than their own.
    """
    left: list[bool] = []
    right: list[bool] = []
    for known in _known(join):
        mine, theirs = beginning(join.left, known.one), beginning(join.right, known.other)
        if theirs is not None:
            left.append(_longer(mine, theirs))
        if mine is not None:
            right.append(_longer(theirs, mine))
    return bool(left) and all(left), bool(right) and all(right)


def _longer(mine: frozenset[Closer] | None, theirs: frozenset[Closer]) -> bool:
    return any(stretch(there.steps, back.steps) > 1 for there in mine or () for back in theirs)


def partner_behind(
    join: Join,
) -> tuple[tuple[Compared | None, Compared | None], tuple[Compared | None, Compared | None]]:
    """What lets rows of each side of a join go, where the sides are compared by columns that were declared ordered.

    For each side: what its rows are compared with, and what the other side promises.
    """
    left: tuple[Compared | None, Compared | None] = (None, None)
    right: tuple[Compared | None, Compared | None] = (None, None)
    for equality in join.equalities:
        one, other = of(equality.left, join.left), of(equality.right, join.right)
        if one is None or other is None or one.kind != other.kind or equality.null_safe:
            continue
        mine, theirs = (_number(side, value.kind) for side, value in ((equality.left, one), (equality.right, other)))
        order = _order(join.right, other)
        left = left if order is None or left[0] else (Compared(mine, order), Compared(theirs, order))
        order = _order(join.left, one)
        right = right if order is None or right[0] else (Compared(theirs, order), Compared(mine, order))
    return left, right


def _number(value: Expression, kind: str) -> Expression:
    return Expression(as_number(f"({value.sql})" if value.column is None else value.sql, kind), BIGINT, value.columns)


def _order(side: Relation, value: Chain) -> Ordered | None:
    """The declared order of a value, if the side reads one base stream and has it from there."""
    known = attributes(side, value)
    reading = [window.child for window in windows(side)]
    if known is None or len(known) != 1 or known[0].closers or len(reading) != 1 or not isinstance(reading[0], Scan):
        return None
    (seen,) = known
    return Ordered(reading[0], seen.value.column, seen.sql(), seen.rises)


def _earliest(instants: list[Expression]) -> Expression | None:
    if len(instants) < 2:
        return instants[0] if instants else None
    read = frozenset[str]().union(*(instant.columns for instant in instants))
    return Expression(f"LEAST({', '.join(instant.sql for instant in instants)})", BIGINT, read)


def groups_until(node: Aggregate, hidden: Sequence[str]) -> Sql | None:
    """Until when a group can still change, over the names of its keys, where rows only ever come; None if that is not
    known.
    """
    instants = []
    for key, name in zip(node.keys, hidden, strict=True):
        value = of(key.expression, node.child) if node.child.endless else None
        closers = beginning(node.child, value) if value is not None else None
        if value is not None and closers is not None:
            instants.append(closes(closers, as_number(spelled(name), value.kind)))
    return f"LEAST({', '.join(instants)})" if len(instants) > 1 else instants[0] if instants else None
