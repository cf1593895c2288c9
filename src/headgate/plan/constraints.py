"""Constraints on streams: how closely the arrival of tuples follows an order, and which state need not be kept then.

    CLUSTERED BY c WITHIN k        between a tuple and the next one with its value of c there are at most k tuples
    ORDERED BY c WITHIN k          a tuple that comes more than k tuples after another has no smaller value of c
    (x) REFERENCES o (y) WITHIN k  the one tuple of o with y = x comes at or before the instant of the tuple, or is
                                   among the next k tuples of o

Tuples are counted in the order of their timestamps, and those of one timestamp in the order of arrival. That order does
not depend on how time is cut into epochs, so neither does what is dropped, nor what is a violation. What holds for a
stream holds for a part of its tuples too, except for REFERENCES on the side that is referenced.

A group, a distinct row or a row of a join is dropped only if the constraint says that nothing can come for it any more.
Conservative: a plan in which a value does not come straight from a base stream without a window is left as it is.

Where k is detected, groups are those of lives (`plan.lives`), and a life that is over is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias, cast

from headgate.plan.frozen import frozen
from headgate.plan.nodes import (
    Aggregate,
    Constraint,
    Exploded,
    Filter,
    Join,
    Lives,
    Project,
    Relation,
    Scan,
    Unbounded,
    Weight,
    Window,
)

Side: TypeAlias = Literal["left", "right"]


@frozen
class Origin:
    """The column of a base stream that a column of a relation holds, tuple by tuple."""

    scan: Scan
    column: str
    """As the stream spells it."""

    whole: bool
    """True if the relation has every tuple of the stream."""

    lives: Lives | None = None
    """What tells the lives of the stream's tuples, if something does."""


@frozen
class Closed:
    """A value of which a constraint says from when on no tuple comes with it."""

    scan: Scan
    column: str
    constraint: Constraint
    place: int = 0
    """Which key of an aggregate holds the value."""

    lives: Lives | None = None
    """What tells lives, if k is detected."""

    life: int = 0
    """Which key holds the life then."""


@frozen
class Referenced:
    """A join in which each row of one side finds one partner on the other, within k tuples of that side's stream."""

    constraint: Constraint
    many: Side
    """The side whose rows refer to a row of the other."""

    x: str
    """The column of that side that refers to `y` of the other."""

    y: str
    scan: Scan
    """The stream of the many side."""

    other: Scan
    closed: tuple[Closed, ...]
    """What says that no row of the many side comes with a value any more."""


def origin(node: Relation, column: str) -> Origin | None:
    """The column of a base stream without a window that a column of a relation holds; None if there is none."""
    whole = True
    while isinstance(node, Filter | Project | Exploded | Weight):
        expression = node.carried[0].get(column.lower())
        if expression is None or expression.column is None:
            return None
        whole = whole and isinstance(node, Project)
        node, column = node.child, expression.column
    if not isinstance(node, Window) or not isinstance(node.frame, Unbounded):
        return None
    lives = node.child if isinstance(node.child, Lives) else None
    scan = node.child if lives is None else lives.child
    own = next((one.name for one in node.child.columns if one.name.lower() == column.lower()), None)
    return Origin(scan, own, whole, lives) if own is not None and isinstance(scan, Scan) else None


def closed_groups(node: Aggregate) -> tuple[Closed, ...]:
    """The constraints that say when a group of an aggregate cannot change any more."""
    return tuple(_closed_groups(node)) if node.child.endless else ()


def _closed_groups(node: Aggregate) -> Iterator[Closed]:
    columns = (key.expression.column for key in node.keys)
    found = [origin(node.child, column) if column is not None else None for column in columns]
    for place, one in enumerate(found):
        if one is not None and one.lives is None:
            yield from closed_values(one, place)
        elif one is not None and one.lives is not None and one.column.lower() in one.lives.deciding:
            lives = one.lives
            life = next((number for number, other in enumerate(found) if other and other.column == lives.life), None)
            if life is not None:
                yield Closed(one.scan, one.column, lives.constraint, place, lives, life)


def closed_values(found: Origin, place: int = 0) -> Iterator[Closed]:
    """The declared constraints that say when a value of a stream's column does not come any more."""
    for constraint in found.scan.constraints:
        about_values = constraint.kind != "references" and not constraint.detected
        if about_values and constraint.column.lower() == found.column.lower():
            yield Closed(found.scan, found.column, constraint, place)


def referenced(node: Join) -> Referenced | None:
    """How a constraint limits the rows that a join keeps; None if none does."""
    for equality in node.equalities:
        left, right = equality.left.column, equality.right.column
        if equality.null_safe or left is None or right is None or equality.left.type != equality.right.type:
            continue
        sides = origin(node.left, left), origin(node.right, right)
        if sides[0] is None or sides[1] is None:
            continue
        for number, many in enumerate(cast("tuple[Side, ...]", ("left", "right"))):
            here, there = cast(Origin, sides[number]), cast(Origin, sides[1 - number])
            constraint = next((one for one in here.scan.constraints if _refers(one, here, there)), None)
            if constraint is not None and there.whole:
                x, y = (left, right) if many == "left" else (right, left)
                closed = tuple(closed_values(here))
                return Referenced(constraint, many, x, y, here.scan, there.scan, closed)
    return None


def _refers(constraint: Constraint, here: Origin, there: Origin) -> bool:
    return (
        constraint.kind == "references"
        and constraint.column.lower() == here.column.lower()
        and constraint.other.lower() == there.scan.stream.lower()
        and constraint.other_column.lower() == there.column.lower()
    )


def in_words(closed: tuple[Closed, ...]) -> str:
    """What limits state, as `explain` says it."""
    return ", ".join(f"limited by {named(one.constraint)}" for one in closed)


def named(constraint: Constraint) -> str:
    """A constraint, as `explain` names it."""
    return f"constraint {constraint.name}{' (k is detected)' if constraint.detected else ''}"
