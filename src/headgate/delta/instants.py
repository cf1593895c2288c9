"""Instants in SQL: multiples of a slide, and the timestamp of a tuple as a column."""

from __future__ import annotations

from headgate.plan.nodes import Window, domain
from headgate.sql import EMPTY, Sql, comma, name
from headgate.ticks import Tick, TimeDomain


def floor(instant: Sql, slide: Tick) -> Sql:
    """The last multiple of `slide` up to the instant, also before 0."""
    return f"({instant} - PMOD({instant}, {slide}))"


def ceiling(instant: Sql, slide: Tick) -> Sql:
    """The first multiple of `slide` from the instant on, also before 0."""
    return f"({instant} + PMOD(-{instant}, {slide}))"


def stamp(node: Window) -> Sql:
    """The timestamp of the tuple and its order of arrival as columns, where the window has them."""
    value = Sql("TIMESTAMP_MICROS(_t)") if domain(node.child) is TimeDomain.TIMESTAMP else Sql("_t")
    stamped = f"{value} AS {name(node.stamp)}" if node.stamp is not None else EMPTY
    arrived = Sql("_s") if node.child.arrival_ordered else Sql("CAST(NULL AS BIGINT)")
    return comma(stamped, f"{arrived} AS {name(node.arrival)}" if node.arrival is not None else EMPTY)
