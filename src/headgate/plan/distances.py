"""How far apart the two rows of a pair may lie, by what a join says: bounds of the difference of two columns.

    abs(a.ts - b.ts) <= 1000                              -1000 <= a.ts - b.ts <= 1000
    b.at BETWEEN a.at AND a.at + INTERVAL 10 MINUTES      -600000000 <= a.at - b.at <= 0, in microseconds
    a.ts > b.ts - 5 AND a.ts <= b.ts                      -4 <= a.ts - b.ts <= 0

Read from comparisons of sums of columns, whole numbers and intervals. Whatever is not certain to be one says nothing:
the condition stays as it is and is judged for every pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from headgate.plan.chains import microseconds, whole
from headgate.plan.expressions import Expression
from headgate.plan.frozen import frozen
from headgate.plan.monotone import as_number, kind_of
from headgate.plan.nodes import Exploded, Filter, Join, Needed, Project, Relation, Window
from headgate.plan.nodes.operator import column_of
from headgate.plan.spans import Span
from headgate.sql.reading import parsed
from headgate.ticks import Tick


@frozen
class Distance:
    """A column of the left side less one of the right lies between `least` and `most`, where these are known."""

    left: Expression
    right: Expression
    kind: str
    """What the values count: a whole number or a TIMESTAMP, which counts microseconds."""

    least: int | None
    most: int | None

    @property
    def numbers(self) -> tuple[str, str]:
        """Both values as whole numbers in SQL."""
        return as_number(self.left.sql, self.kind), as_number(self.right.sql, self.kind)

    def __str__(self) -> str:
        difference = f"{self.left.sql} - {self.right.sql}"
        unit = " microseconds" if self.kind == "timestamp" else ""
        if self.least is None:
            return f"{difference} <= {self.most}{unit}"
        return f"{difference} >= {self.least}{unit}" if self.most is None else self._between(difference, unit)

    def _between(self, difference: str, unit: str) -> str:
        return f"{difference} from {self.least} to {self.most}{unit}"


def distances(join: Join) -> tuple[Distance, ...]:
    """What the condition of a join says of how far apart its rows may lie."""
    tree = parsed(join.condition.sql) if join.condition is not None else None
    if tree is None:
        return ()
    kinds = {column.name.lower(): (column.name, kind_of(column.type)) for column in join.columns}
    left = {column.name.lower() for column in join.left.columns}
    found: dict[tuple[str, str], tuple[int | None, int | None]] = {}
    for positive, negative, least, most in _bounds(tree, kinds):
        if (positive in left) == (negative in left) or kinds[positive][1] != kinds[negative][1]:
            continue
        if positive not in left:
            positive, negative = negative, positive
            least, most = _minus(most), _minus(least)
        before = found.get((positive, negative), (None, None))
        found[positive, negative] = _inner(max, before[0], least), _inner(min, before[1], most)
    return tuple(
        Distance(column_of(kinds[one][0]), column_of(kinds[other][0]), str(kinds[one][1]), least, most)
        for (one, other), (least, most) in found.items()
    )


def between_starts(join: Join) -> Distance | None:
    """How far apart the elements of a pair begin, bounded on both sides; None if that is not known."""
    known = [
        distance
        for distance in distances(join)
        if distance.least is not None
        and distance.most is not None
        and distance.least <= distance.most
        and begins_at(join.left, distance.left)
        and begins_at(join.right, distance.right)
    ]
    return min(known, key=lambda distance: (distance.most or 0) - (distance.least or 0), default=None)


def begins_at(node: Relation, value: Expression) -> bool:
    """Whether a column says when the row's element begins: the timestamp of a window that shows its tuples at once."""
    name = (value.column or "").lower()
    while isinstance(node, Filter | Project | Exploded | Needed):
        inside = node.carried[0].get(name)
        if inside is None or inside.column is None:
            return False
        node, name = node.child, inside.column.lower()
    if not isinstance(node, Window) or not node.frame.interval_by_stamp or node.frame.spans[0] != Span():
        return False
    stamped = {column.lower() for column in (node.stamp, node.child.stamp_column) if column is not None}
    kinds = {column.name.lower(): kind_of(column.type) for column in node.columns}
    return name in stamped and kinds[name] in ("integer", "timestamp")


def reach(join: Join) -> tuple[Tick | None, Tick | None]:
    """For how many instants, from its beginning, a row of the left and one of the right side can find partners that
    begin after it; None where that is not known.
    """
    distance = between_starts(join)
    if distance is None or distance.least is None or distance.most is None:
        return None, None
    return max(1 - distance.least, 1), max(distance.most + 1, 1)


def _minus(bound: int | None) -> int | None:
    return None if bound is None else -bound


def _inner(pick: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else pick(one, other)


# read from text

Kinds: TypeAlias = Mapping[str, tuple[str, str | None]]
"""Columns by their names in lower case: as they are written, and what their values count."""

Bound: TypeAlias = tuple[str, str, int | None, int | None]
"""The first column less the second lies between two numbers."""


@dataclass(frozen=True, slots=True)
class _Sum:
    """Columns with factors, and a number; the values of an interval are microseconds."""

    factors: Mapping[str, int]
    number: int
    kind: str

    def plus(self, other: _Sum, sign: int, kind: str) -> _Sum:
        names = self.factors.keys() | other.factors.keys()
        factors = {name: self.factors.get(name, 0) + sign * other.factors.get(name, 0) for name in names}
        return _Sum(
            {name: factor for name, factor in factors.items() if factor}, self.number + sign * other.number, kind
        )


def _bounds(tree: exp.Expression, kinds: Kinds) -> Iterator[Bound]:
    """What a condition says of differences of two columns."""
    match tree:
        case exp.Paren():
            yield from _bounds(tree.this, kinds)
        case exp.And():
            yield from _bounds(tree.this, kinds)
            yield from _bounds(tree.expression, kinds)
        case exp.Between() if not tree.args.get("symmetric"):
            yield from _less(tree.args["low"], tree.this, kinds)
            yield from _less(tree.this, tree.args["high"], kinds)
        case exp.LTE():
            yield from _less(tree.this, tree.expression, kinds)
        case exp.GTE():
            yield from _less(tree.expression, tree.this, kinds)
        case exp.LT():
            yield from _less(tree.this, tree.expression, kinds, 1)
        case exp.GT():
            yield from _less(tree.expression, tree.this, kinds, 1)
        case _:
            return


def _less(one: exp.Expression, other: exp.Expression, kinds: Kinds, by: int = 0) -> Iterator[Bound]:
    """What follows from one value being less than the other by that much at least."""
    one = one.unnest()
    if isinstance(one, exp.Abs):
        yield from _less(one.this, other, kinds, by)
        yield from _less(exp.Neg(this=one.this.copy()), other, kinds, by)
        return
    first, second = _sum(one, kinds), _sum(other, kinds)
    if first is None or second is None or first.kind != second.kind:
        return
    rest = first.plus(second, -1, first.kind)
    match sorted(rest.factors.items(), key=lambda item: item[1]):
        case [(negative, -1), (positive, 1)]:
            yield positive, negative, None, -rest.number - by


def _sum(tree: exp.Expression, kinds: Kinds) -> _Sum | None:
    match tree:
        case exp.Paren():
            return _sum(tree.this, kinds)
        case exp.Column() if not tree.table:
            _, kind = kinds.get(tree.name.lower(), ("", None))
            return _Sum({tree.name.lower(): 1}, 0, kind) if kind in ("integer", "timestamp") else None
        case exp.Interval():
            length = microseconds(tree)
            return None if length is None else _Sum({}, length, "interval")
        case exp.Neg():
            inside = _sum(tree.this, kinds)
            return (
                None
                if inside is None or inside.kind == "timestamp"
                else _Sum({}, 0, inside.kind).plus(inside, -1, inside.kind)
            )
        case exp.Add() | exp.Sub():
            return _added(_sum(tree.this, kinds), _sum(tree.expression, kinds), -1 if isinstance(tree, exp.Sub) else 1)
        case exp.UnixMicros():
            inside = _sum(tree.this, kinds)
            return (
                None if inside is None or inside.kind != "timestamp" else _Sum(inside.factors, inside.number, "integer")
            )
        case _:
            number = whole(tree)
            return None if number is None else _Sum({}, number, "integer")


def _added(one: _Sum | None, other: _Sum | None, sign: int) -> _Sum | None:
    if one is None or other is None:
        return None
    made = {
        ("integer", "integer", 1): "integer",
        ("integer", "integer", -1): "integer",
        ("interval", "interval", 1): "interval",
        ("interval", "interval", -1): "interval",
        ("timestamp", "interval", 1): "timestamp",
        ("timestamp", "interval", -1): "timestamp",
        ("interval", "timestamp", 1): "timestamp",
        ("timestamp", "timestamp", -1): "interval",
    }.get((one.kind, other.kind, sign))
    return None if made is None else one.plus(other, sign, made)
