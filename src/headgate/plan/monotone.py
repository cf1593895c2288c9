"""Monotone functions of whole numbers, step by step, and how far one must go for their value to change: pure text and
numbers.

A function such as `time / 60` or `DATE_TRUNC('minute', at)` is a chain of steps over one column. All values are whole
numbers here: a TIMESTAMP is counted in microseconds, a DATE in days, both in UTC. Each step never falls, or never
rises, so it can be undone as far as is needed: where its result lies beyond a value, its argument lies beyond another
one.

    y > v, y = x DIV 60    ⇔    x > (v + 1) * 60 - 1      (v >= 0)
    y > v, y = -x          ⇔    x < -v
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import prod
from typing import TypeAlias, assert_never

from headgate.plan.expressions import INTEGRAL
from headgate.plan.frozen import frozen
from headgate.sql import Sql
from headgate.ticks import MICROSECONDS_PER_UNIT

DAY = MICROSECONDS_PER_UNIT["DAY"]


@frozen
class Shift:
    """x + by"""

    by: int


@frozen
class Scale:
    """x * by"""

    by: int


@frozen
class Divided:
    """x DIV by: what is left over is dropped, towards zero."""

    by: int


@frozen
class Floored:
    """The whole number at or below x / by, for by > 0."""

    by: int


@frozen
class Truncated:
    """The last multiple of `by` at or below x, for by > 0."""

    by: int


@frozen
class Calendar:
    """The first instant of the month, quarter or year in which x lies, in microseconds."""

    unit: Sql

    @property
    def longest(self) -> int:
        return {"MONTH": 31, "QUARTER": 92, "YEAR": 366}[self.unit] * DAY


Step: TypeAlias = Shift | Scale | Divided | Floored | Truncated | Calendar
Steps: TypeAlias = tuple[Step, ...]


@frozen
class Chain:
    """A function of one column; `kind` is what its values are: a whole number, a TIMESTAMP or a DATE."""

    column: str
    steps: Steps
    kind: str

    def behind(self, earlier: Chain) -> Steps | None:
        """The steps that lead from an earlier function of the same column to this one; None if it is not on the way."""
        count = len(earlier.steps)
        return self.steps[count:] if self.column == earlier.column and self.steps[:count] == earlier.steps else None


@frozen
class Closer:
    """When a value stops to occur: `lag` instants after time, by these steps, has gone beyond it."""

    steps: Steps
    lag: int = 0

    def later(self, steps: Steps, lag: int = 0) -> Closer:
        return Closer((*self.steps, *steps), self.lag + lag)


def closes(closers: Iterable[Closer], value: Sql) -> Sql:
    """The first instant at which none of them lets the value occur any more."""
    instants = sorted({plus(passed(closer.steps, value), closer.lag) for closer in closers})
    return instants[0] if len(instants) == 1 else f"GREATEST({', '.join(instants)})"


# there and back, in SQL


def applied(steps: Steps, value: Sql) -> Sql:
    """The value of the function."""
    for step in steps:
        value = _forward(step, value)
    return value


def _forward(step: Step, x: Sql) -> Sql:
    match step:
        case Shift(by):
            return plus(x, by)
        case Scale(by):
            return f"({x} * {by})"
        case Divided(by):
            return f"({x} DIV {by})"
        case Floored(by):
            return f"(({x} - PMOD({x}, {by})) DIV {by})"
        case Truncated(by):
            return f"({x} - PMOD({x}, {by}))"
        case Calendar(unit):
            return f"UNIX_MICROS(DATE_TRUNC('{unit}', TIMESTAMP_MICROS({x})))"
        case _:
            assert_never(step)


def passed(steps: Steps, value: Sql) -> Sql:
    """The smallest x at which the function is beyond the value: larger, or smaller if it falls. From there on it stays
    so.
    """
    beyond, rises = _beyond(steps, value, rising(steps))
    assert rises
    return plus(beyond, 1)


def _beyond(steps: Steps, value: Sql, rises: bool) -> tuple[Sql, bool]:
    """What x must exceed (or, if the second is false, fall below) for the function to exceed (or fall below) the
    value.
    """
    for step in reversed(steps):
        value = _back(step, value, rises)
        rises = rises == _rising(step)
    return value, rises


def _back(step: Step, v: Sql, rises: bool) -> Sql:
    match step:
        case Shift(by):
            return plus(v, -by)
        case Scale(by):
            v = v if by > 0 else f"(-{v})"
            return _floor(v, abs(by)) if rises == (by > 0) else _ceiling(v, abs(by))
        case Divided(by):
            c = abs(by)
            v = v if by > 0 else f"(-{v})"
            if rises == (by > 0):
                return f"(CASE WHEN {v} < 0 THEN {v} * {c} ELSE ({v} + 1) * {c} - 1 END)"
            return f"(CASE WHEN {v} > 0 THEN {v} * {c} ELSE ({v} - 1) * {c} + 1 END)"
        case Floored(by):
            return f"(({v} + 1) * {by} - 1)" if rises else f"({v} * {by})"
        case Truncated(by):
            return f"({v} - PMOD({v}, {by}) + {by - 1})" if rises else f"({v} + PMOD(-{v}, {by}))"
        case Calendar(unit):
            begin = f"DATE_TRUNC('{unit}', TIMESTAMP_MICROS({v}))"
            length = {"MONTH": Sql("'1' MONTH"), "QUARTER": Sql("'3' MONTH"), "YEAR": Sql("'1' YEAR")}[unit]
            following = f"UNIX_MICROS({begin} + INTERVAL {length})"
            if rises:
                return f"({following} - 1)"
            return f"(CASE WHEN UNIX_MICROS({begin}) = {v} THEN {v} ELSE {following} END)"
        case _:
            assert_never(step)


def plus(x: Sql, by: int) -> Sql:
    """A number and a fixed one, in SQL."""
    return x if not by else f"({x} {'+' if by > 0 else '-'} {abs(by)})"


def _floor(v: Sql, by: int) -> Sql:
    return v if by == 1 else f"(({v} - PMOD({v}, {by})) DIV {by})"


def _ceiling(v: Sql, by: int) -> Sql:
    return v if by == 1 else f"(({v} + PMOD(-{v}, {by})) DIV {by})"


# which way, and how far


def rising(steps: Steps) -> bool:
    """Whether the function never falls while its argument rises; otherwise it never rises."""
    return sum(not _rising(step) for step in steps) % 2 == 0


def _rising(step: Step) -> bool:
    return not isinstance(step, Scale | Divided) or step.by > 0


def reach(there: Steps, back: Steps) -> int | None:
    """By how much at most `passed(back, applied(there, x))` exceeds x; None if that grows with x."""
    slope, low, high = Fraction(1), Fraction(0), Fraction(0)
    for step in there:
        factor, least, most = _forward_bounds(step)
        ends = (low * factor, high * factor)
        slope, low, high = slope * factor, min(ends) + least, max(ends) + most
    for step in reversed(back):
        factor, least, most = _back_bounds(step)
        ends = (low * factor, high * factor)
        slope, low, high = slope * factor, min(ends) + least, max(ends) + most
    return -int(-high // 1) + 1 if slope == 1 else None


def stretch(there: Steps, back: Steps) -> Fraction:
    """How many times as fast as x `passed(back, applied(there, x))` grows."""
    factors = (*(_forward_bounds(step)[0] for step in there), *(_back_bounds(step)[0] for step in back))
    return prod(factors, start=Fraction(1))


def _forward_bounds(step: Step) -> tuple[Fraction, Fraction, Fraction]:
    """By what a step multiplies, and between which numbers lies what it adds to that."""
    one, none = Fraction(1), Fraction(0)
    match step:
        case Shift(by):
            return one, Fraction(by), Fraction(by)
        case Scale(by):
            return Fraction(by), none, none
        case Divided(by):
            rest = Fraction(abs(by) - 1, abs(by))
            return Fraction(1, by), -rest, rest
        case Floored(by):
            return Fraction(1, by), -Fraction(by - 1, by), none
        case Truncated(by):
            return one, Fraction(1 - by), none
        case Calendar():
            return one, Fraction(1 - step.longest), none
        case _:
            assert_never(step)


def _back_bounds(step: Step) -> tuple[Fraction, Fraction, Fraction]:
    one, none = Fraction(1), Fraction(0)
    match step:
        case Shift(by):
            return one, Fraction(-by), Fraction(-by)
        case Scale(by):
            rest = Fraction(abs(by) - 1, abs(by))
            return Fraction(1, by), -rest, rest
        case Divided(by):
            return Fraction(by), Fraction(1 - abs(by)), Fraction(abs(by) - 1)
        case Floored(by):
            return Fraction(by), none, Fraction(by - 1)
        case Truncated(by):
            return one, none, Fraction(by - 1)
        case Calendar():
            return one, none, Fraction(step.longest)
        case _:
            assert_never(step)


# kinds of values


def kind_of(type_name: str) -> str | None:
    """What values of a type count: whole numbers, microseconds or days; None for types that are none of these."""
    if type_name in INTEGRAL:
        return "integer"
    if type_name.startswith("TIMESTAMP"):
        return "timestamp"
    return "date" if type_name == "DATE" else None


def as_number(sql: Sql, kind: str) -> Sql:
    """A value of that kind as a whole number."""
    match kind:
        case "timestamp":
            return f"UNIX_MICROS({sql})"
        case "date":
            return f"DATEDIFF({sql}, DATE '1970-01-01')"
        case _:
            return f"CAST({sql} AS BIGINT)"
