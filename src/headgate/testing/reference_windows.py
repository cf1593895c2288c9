"""Windows and samples in the reference: which tuples of a stream they hold at every instant, by their definitions."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from sqlglot import exp

from headgate.cql.syntax import StreamWindow
from headgate.errors import UserError
from headgate.testing.cases import Case, Row

SECONDS: dict[str, Fraction] = {
    "NANOSECOND": Fraction(1, 10**9),
    "MICROSECOND": Fraction(1, 10**6),
    "MILLISECOND": Fraction(1, 1000),
    "SECOND": Fraction(1),
    "MINUTE": Fraction(60),
    "HOUR": Fraction(3600),
    "DAY": Fraction(86400),
    "WEEK": Fraction(604800),
}


Possible: TypeAlias = dict[str, dict[Any, int]]
"""Columns bound to time, such as ELEMENT_TIME: for each value the last instant at which it can occur, by lower name."""

FURTHEST = 20
"""How far beyond the horizon `Possible` looks."""


@dataclass(frozen=True)
class TupleStream:
    """A stream: all tuples up to the horizon, ordered by timestamp; ties are in the order of arrival."""

    columns: list[tuple[str, str]]
    tuples: list[tuple[int, Row]]
    possible: Possible = field(default_factory=dict)


@dataclass(frozen=True)
class VaryingRelation:
    """A relation: the bag of rows at each instant from 0 to the horizon.

    The rows of a window also have their timestamp and their place in the stream, in `stamps`.
    """

    columns: list[tuple[str, str]]
    bags: list[list[Row]]
    stamps: list[list[tuple[int, int]]] | None = None
    possible: Possible = field(default_factory=dict)


class Windows:
    """Turns the streams of one case into relations: a bag of tuples for every instant up to the horizon."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def unbounded(self, stream: TupleStream) -> VaryingRelation:
        """The window [RANGE UNBOUNDED]: all tuples so far."""
        return self.held(stream, lambda instant: self.until(stream, instant))

    def held(self, stream: TupleStream, places: Callable[[int], list[int]], slide: int = 1) -> VaryingRelation:
        """The relation that holds the tuples at `places` of the stream, as of each multiple of the slide."""
        chosen = [places(instant // slide * slide) for instant in range(self.case.horizon + 1)]
        bags = [[stream.tuples[place][1] for place in some] for some in chosen]
        stamps = [[(stream.tuples[place][0], place) for place in some] for some in chosen]
        return VaryingRelation(stream.columns, bags, stamps, self.occurring(stream))

    def until(self, stream: TupleStream, instant: int) -> list[int]:
        """The places of the tuples up to an instant."""
        return [place for place, (ts, _) in enumerate(stream.tuples) if ts <= instant]

    def window(self, stream: TupleStream, window: StreamWindow) -> VaryingRelation:
        """The relation that a window holds, whatever its kind."""
        given = window.args
        match given["kind"]:
            case "NOW":
                return self.held(stream, lambda instant: self.last(stream, instant, instant))
            case "UNBOUNDED":
                return self.unbounded(stream)
            case "RANGE" if given.get("on") is not None:
                (attribute,) = _places(stream, [given["on"]])
                below = Fraction(given["amount"])
                return self.held(stream, lambda instant: self.largest(stream, instant, attribute, below))
            case "RANGE":
                length = self.units(given["amount"], given.get("unit"))
                first = self.first_of
                return self.held(stream, lambda now: self.last(stream, first(now, length), now), self.slide(window))
            case _:
                count, by = int(given["amount"]), _places(stream, given.get("partition") or [])
                lasting = self.units(given["range"], given.get("range_unit")) if given.get("range") else None
                if given.get("slide") is None or slides_in_time(window):
                    return self.held(stream, lambda now: self.tail(stream, now, count, by, lasting), self.slide(window))
                step = int(given["slide"])
                return self.held(stream, lambda now: self.tail(stream, now, count, by, lasting, step))

    def slide(self, window: StreamWindow) -> int:
        """The slide of a window in time units; 1 if it slides with every instant."""
        return self.units(window.args["slide"], window.args.get("slide_unit")) if slides_in_time(window) else 1

    def last(self, stream: TupleStream, first: int, instant: int) -> list[int]:
        """The places of the tuples between two instants."""
        return [place for place in self.until(stream, instant) if first <= stream.tuples[place][0]]

    def largest(self, stream: TupleStream, instant: int, attribute: int, length: Fraction) -> list[int]:
        """For RANGE ON a column: the places of the tuples within a length below the largest value so far."""
        values = {place: stream.tuples[place][1][attribute] for place in self.until(stream, instant)}
        known = {place: value for place, value in values.items() if value is not None}
        lowest = max(known.values()) - length if known else 0
        closed = self.case.range == "closed"
        return [place for place, value in known.items() if value > lowest or (closed and value == lowest)]

    def tail(
        self, stream: TupleStream, instant: int, count: int, by: list[int], lasting: int | None = None, step: int = 1
    ) -> list[int]:
        """The last tuples of each partition; with a step, as of the last multiple of that many tuples."""
        partitions: dict[Row, list[int]] = {}
        for place in self.until(stream, instant):
            partitions.setdefault(tuple(stream.tuples[place][1][column] for column in by), []).append(place)
        seen = [places[: len(places) // step * step] for places in partitions.values()]
        last = [place for places in seen for place in (places[-count:] if count else [])]
        return [
            place for place in last if lasting is None or self.first_of(instant, lasting) <= stream.tuples[place][0]
        ]

    def first_of(self, instant: int, length: int) -> int:
        """The first instant that a window of this length includes."""
        return max(instant - length, 0) if self.case.range == "closed" else instant - length + 1

    def units(self, amount: str, unit: str | None) -> int:
        """A length of time in the time units of the case."""
        length = Fraction(amount)
        if unit is not None and unit != "TICK":
            length = length * SECONDS[unit] / self.case.unit_seconds
        if length.denominator != 1:
            raise UserError("not-whole-ticks", f"{amount} {unit} is not a whole number of time units")
        return int(length)

    def occurring(self, stream: TupleStream) -> Possible:
        """The columns bound to time in a window over a stream, ELEMENT_TIME among them."""
        return {
            **stream.possible,
            "element_time": {instant: instant for instant in range(self.case.horizon + FURTHEST)},
        }


def _places(stream: TupleStream, columns: list[exp.Expression]) -> list[int]:
    names = [name.lower() for name, _ in stream.columns]
    return [names.index(column.name.lower()) for column in columns]


def slides_in_time(window: StreamWindow) -> bool:
    """Whether a window slides by a length of time: behind RANGE, or with a unit; otherwise it slides by rows."""
    given = window.args
    by_time = given["kind"] == "RANGE" or given.get("range") is not None or given.get("slide_unit") is not None
    return given.get("slide") is not None and by_time


def sample_of(stream: TupleStream, tree: exp.Expression) -> TupleStream:
    """The tuples that SAMPLE draws from a stream: those whose MD5 lies in the given part of its range."""
    drawn = tree.args.get("drawn")
    if drawn is None:
        return stream
    limit = Fraction(drawn.args["percent"]) / 100 * 16**8
    kinds = [kind for _, kind in stream.columns]

    def lucky(ts: int, row: Row) -> bool:
        texts = [
            drawn.args["seed"],
            str(ts),
            *(_as_hashed(value, kind) for value, kind in zip(row, kinds, strict=True)),
        ]
        text = "|".join(one for one in texts if one is not None)
        return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:8], 16) < int(limit)

    return TupleStream(stream.columns, [(ts, row) for ts, row in stream.tuples if lucky(ts, row)], stream.possible)


def _as_hashed(value: Any, kind: str) -> str | None:
    """A value as the text that is hashed, on which all engines agree."""
    if value is None:
        return None
    if kind in ("FLOAT", "DOUBLE"):
        return str(int(math.fmod(value * 2**20, 2**31))) if abs(value) < 1e300 else None
    return str(value).lower() if isinstance(value, bool) else str(value)
