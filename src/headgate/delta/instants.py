"""Instants in SQL: multiples of a slide, and the timestamp of a tuple as a column."""

from __future__ import annotations

from headgate.catalog import Tick, TimeDomain
from headgate.delta.sql import name
from headgate.plan.nodes import Window, domain


def floor(instant: str, slide: Tick) -> str:
    """The last multiple of `slide` up to the instant, also before 0."""
    return f"({instant} - PMOD({instant}, {slide}))"


def ceiling(instant: str, slide: Tick) -> str:
    return f"({instant} + PMOD(-{instant}, {slide}))"


def stamp(node: Window) -> str:
    """The timestamp of the tuple as a column, where the window has one."""
    if node.stamp is None:
        return ""
    value = "_t" if domain(node.child) is TimeDomain.INTEGER else "TIMESTAMP_MICROS(_t)"
    return f"{value} AS {name(node.stamp)}"
