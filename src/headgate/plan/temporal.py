"""Which values of a stream or relation stop to occur, and from which instant on: pure functions over plans.

The timestamp of a stream's tuples rises, and so does every monotone function of it: once time has gone beyond a value,
no tuple can have it any more. This is followed through projections, selections, unions, joins that equate such values,
derived streams and groups. A column that was declared INCREASING or DECREASING has no clock: only the tuples themselves
tell.

Conservative like `properties`: None means "not proved".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import cast

from headgate.plan.chains import chain
from headgate.plan.expressions import Expression, Named
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
    reach,
    rising,
    stretch,
)
from headgate.plan.nodes import (
    Aggregate,
    Closing,
    Compared,
    Distinct,
    Exploded,
    Filter,
    Final,
    Istream,
    Join,
    Needed,
    Node,
    Now,
    Ordered,
    Passed,
    Project,
    Range,
    Relation,
    Rstream,
    Source,
    Stream,
    Unbounded,
    Union,
    Weight,
    Window,
    children,
    is_stream,
    names,
)
from headgate.plan.properties import endless, instantaneous, straight
from headgate.sql import spelled
from headgate.ticks import Tick

CLOCK = "_t"
"""The column of a chain that is a function of the timestamp itself."""


@frozen
class Attribute:
    """An ordered column of a stream: its value in SQL as a number, over `_t` or the column."""

    value: Chain
    closers: frozenset[Closer]
    """Empty where only the tuples tell."""

    rises: bool

    def sql(self) -> str:
        column, kind = self.value.column, self.value.kind
        return applied(self.value.steps, CLOCK if column == CLOCK else as_number(spelled(column), kind))

    @property
    def reads(self) -> frozenset[str]:
        return frozenset() if self.value.column == CLOCK else frozenset({self.value.column})


def of(expression: Expression, node: Node) -> Chain | None:
    """The expression over the columns of the node as a chain."""
    return chain(expression.sql, types(node))


def types(node: Node) -> dict[str, str]:
    return {column.name.lower(): column.type for column in node.columns}


# windows


def attribute(window: Window, value: Chain) -> Attribute | None:
    """What is known of a function of a column of a window: as one of the timestamp, if it is, or of an ordered
    column.
    """
    if window.stamp is not None and window.stamp.lower() == value.column:
        return _of_clock((), value)
    match window.child:
        case Source(timestamp=str(timestamp)) if timestamp.lower() == value.column:
            return _of_clock((Floored(DAY),) if types(window)[value.column] == "DATE" else (), value)
        case Istream(child) | Rstream(child, None) as stream if closers := _closers(stream, child, value):
            return Attribute(_own(window, value), closers, _rises(closers))
        case stream:
            order = _declared(stream, value.column)
            return (
                Attribute(_own(window, value), frozenset(), order == rising(value.steps)) if order is not None else None
            )


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
    if isinstance(stream, Source):
        order = next((found.order for found in stream.columns if found.name.lower() == column), None)
        return None if order is None else order == "increasing"
    below = straight(stream)
    if below is None or isinstance(stream, Source):
        return None
    found = _at_window(stream.child, Chain(column, (), "integer"))
    order_below = _declared(below, found.column) if found is not None else None
    return None if order_below is None or found is None else order_below == rising(found.steps)


def _at_window(node: Relation, value: Chain) -> Chain | None:
    """The value as the window has it from which the node only selects and projects."""
    match node:
        case Filter(child):
            return _at_window(child, value)
        case Project(child):
            inside = _computed(node.items, child, value)
            return _at_window(child, inside) if inside is not None else None
        case _:
            return value


# relations


def _closers(stream: Istream | Rstream, child: Relation, value: Chain) -> frozenset[Closer] | None:
    """When the values of a derived stream's column stop to occur."""
    if isinstance(stream, Istream):
        return beginning(child, value) if endless(child) else None
    return beginning(child, value) if instantaneous(child) else None


def beginning(node: Relation, value: Chain) -> frozenset[Closer] | None:
    """When no row of the relation with the value can begin any more."""
    match node:
        case Window(_, Unbounded() | Now() | Range(slide=None)):
            found = attribute(node, value)
            return found.closers or None if found is not None else None
        case Window(_, Final(values)):
            seen = attribute(node, value)
            for closing in values if seen is not None else ():
                rest = seen.value.behind(closing.value) if seen is not None else None
                if rest is not None:
                    return frozenset(closer.later(rest, 1) for closer in closing.closers)
            return None
        case Filter(child) | Exploded(child) | Weight(child) | Needed(child):
            return beginning(child, value)
        case Distinct(child) if endless(child) or instantaneous(child):  # elsewhere what ends is taken back later
            return beginning(child, value)
        case Project(child, items):
            inside = _computed(items, child, value)
            return beginning(child, inside) if inside is not None else None
        case Aggregate(child, keys) if instantaneous(node):
            inside = _computed(keys, child, value)
            return beginning(child, inside) if inside is not None else None
        case Union(left, right):
            merged = _both(beginning(left, value), beginning(right, _beside(node, value)))
            return merged if merged is not None and one_way(merged) else None
        case Join(left, right):
            one, other = tied((left, right), _pairs(node), value)
            if instantaneous(left) and one is not None:
                return beginning(left, one)
            if instantaneous(right) and other is not None:
                return beginning(right, other)
            if one is None or other is None:
                return None
            return _both(beginning(left, one), beginning(right, other))
        case _:
            return None


def _both(one: frozenset[Closer] | None, other: frozenset[Closer] | None) -> frozenset[Closer] | None:
    return one | other if one and other else None


def _computed(items: Sequence[Named], child: Relation, value: Chain) -> Chain | None:
    """A value over what a projection or a group computes, over the columns below it."""
    item = next((item for item in items if item.name.lower() == value.column), None)
    inside = of(item.expression, child) if item is not None else None
    return Chain(inside.column, (*inside.steps, *value.steps), value.kind) if inside is not None else None


def _beside(node: Union, value: Chain) -> Chain:
    """The value as the right side of a union has it."""
    place = [name.lower() for name in names(node.left)].index(value.column)
    return replace(value, column=names(node.right)[place].lower())


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

    def below(child: Relation, inside: Sequence[Chain | None]) -> Relation | None:
        known = [one for one in inside if one is not None]
        return at_windows(child, tuple(known), change) if len(known) == len(inside) else None

    if not windows(node):
        return node
    match node:
        case Window(Istream(child), Unbounded(), None, None) if _merged(child):
            return at_windows(child, values, change)
        case Window():
            return change(node, values)
        case Filter(child) | Exploded(child):
            under = below(child, values)
            return replace(node, child=under) if under is not None else None
        case Project(child, items):
            under = below(child, [_computed(items, child, value) for value in values])
            return replace(node, child=under) if under is not None else None
        case Union(left, right):
            one, other = below(left, values), below(right, [_beside(node, value) for value in values])
            return replace(node, left=one, right=other) if one is not None and other is not None else None
        case Join(left, right):
            both = [tied((left, right), _pairs(node), value) for value in values]
            one = below(left, [pair[0] for pair in both]) if windows(left) else left
            other = below(right, [pair[1] for pair in both]) if windows(right) else right
            return replace(node, left=one, right=other) if one is not None and other is not None else None
        case _:
            return None


def _merged(node: Relation) -> bool:
    """Whether the relation is a merge of streams: ISTREAM makes a stream of it, and [RANGE UNBOUNDED] the same relation
    again.
    """
    match node:
        case Window(_, Unbounded(), None, None):
            return True
        case Filter(child) | Project(child):
            return _merged(child)
        case Union(left, right):
            return _merged(left) and _merged(right)
        case _:
            return False


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
    """The same for a value that only the tuples of the one window tell."""

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
        if one.value.column == CLOCK and isinstance(window.child, Source) and None not in reaches:
            found.append(max(cast(Tick, far) + closer.lag for far, closer in zip(reaches, some, strict=True)))
    return min(found, default=None)


# state that can be dropped


def partner_until(join: Join) -> tuple[Expression | None, Expression | None]:
    """Until when a row of the left and one of the right side can still find a partner; None where that is not known."""
    left: list[Expression] = []
    right: list[Expression] = []
    for equality in join.equalities:
        one, other = of(equality.left, join.left), of(equality.right, join.right)
        if one is None or other is None or one.kind != other.kind or equality.null_safe:
            continue
        for found, side, value, known in (
            (left, join.right, other, equality.left),
            (right, join.left, one, equality.right),
        ):
            closers = beginning(side, value)
            if closers is not None:
                found.append(Expression(closes(closers, _number(known, value.kind).sql), "BIGINT", known.columns))
    return _earliest(left), _earliest(right)


def partners_outrun(join: Join) -> tuple[bool, bool]:
    """Whether rows of the left and of the right side wait ever longer for a partner, because the other side's values
    grow more slowly than their own."""
    left: list[bool] = []
    right: list[bool] = []
    for equality in join.equalities:
        one, other = of(equality.left, join.left), of(equality.right, join.right)
        if one is None or other is None or one.kind != other.kind or equality.null_safe:
            continue
        mine, theirs = beginning(join.left, one), beginning(join.right, other)
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
    """The same by declared orders: what rows of the left side are compared with, the right side's promise; and turned
    around.
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
    return Expression(as_number(f"({value.sql})" if value.column is None else value.sql, kind), "BIGINT", value.columns)


def _order(side: Relation, value: Chain) -> Ordered | None:
    """The declared order of a value, if the side reads one base stream and has it from there."""
    known = attributes(side, value)
    reading = [window.child for window in windows(side)]
    match known, reading:
        case [Attribute(closers=closers) as seen], [Source() as source] if not closers:
            return Ordered(source, seen.value.column, seen.sql(), seen.rises)
        case _:
            return None


def _earliest(instants: list[Expression]) -> Expression | None:
    if len(instants) < 2:
        return instants[0] if instants else None
    read = frozenset[str]().union(*(instant.columns for instant in instants))
    return Expression(f"LEAST({', '.join(instant.sql for instant in instants)})", "BIGINT", read)


def groups_until(node: Aggregate, hidden: Sequence[str]) -> str | None:
    """Until when a group can still change, over the names of its keys, where rows only ever come; None if that is not
    known.
    """
    instants = []
    for key, name in zip(node.keys, hidden, strict=True):
        value = of(key.expression, node.child) if endless(node.child) else None
        closers = beginning(node.child, value) if value is not None else None
        if value is not None and closers is not None:
            instants.append(closes(closers, as_number(name, value.kind)))
    return f"LEAST({', '.join(instants)})" if len(instants) > 1 else instants[0] if instants else None
