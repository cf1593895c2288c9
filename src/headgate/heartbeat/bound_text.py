"""Bounds, lengths of time and heartbeats as CQL writes them."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.catalog.declarations import Enabling, Party
from headgate.catalog.skew import Bounds, SkewBound
from headgate.sql import literal, name
from headgate.ticks import MICROSECONDS_PER_UNIT, Tick, TimeDomain


def when(enabling: Enabling) -> str:
    """When the clock says how far a stream is, in words."""
    return f"every {span(enabling.every_us, TimeDomain.TIMESTAMP).lower()}" if enabling.how == "every" else enabling.how


def beating(stream: str, enabling: Enabling, domain: TimeDomain) -> str:
    """The line of CQL that declares when the clock says how far a stream is."""
    within = "" if enabling.within is None else f" WITHIN {span(enabling.within, domain)}"
    return f"HEARTBEAT OF {name(stream)} {when(enabling).upper()}{within};"


def latency(party: Party, us: int) -> str:
    """The line of CQL that declares a latency."""
    return f"LATENCY OF {named(party)} {span(us, TimeDomain.TIMESTAMP)};"


def named(party: Party) -> str:
    """A stream or source as CQL names it."""
    return name(party.stream) if party.source is None else f"{name(party.stream)} SOURCE {literal(party.source)}"


def disorder(bounds: Bounds, domain: TimeDomain) -> str:
    """Bounds of a source with itself in CQL: one without a delay is how far a tuple may be behind."""
    if len(bounds) == 1 and not bounds[0].delay and bounds[0].within:
        return span(bounds[0].within - 1, domain)
    return pairs(bounds, domain)


def pairs(bounds: Iterable[SkewBound], domain: TimeDomain) -> str:
    """A set of bounds in CQL."""
    return ", ".join(f"({written(bound, domain)})" for bound in bounds)


def written(bound: SkewBound, domain: TimeDomain) -> str:
    """A bound in CQL."""
    within = f"WITHIN {span(bound.within, domain)}"
    if bound.tuples:
        return f"AFTER {bound.tuples} TUPLES {within}"
    return f"AFTER {span(bound.after_us, TimeDomain.TIMESTAMP)} {within}" if bound.after_us else within


def span(ticks: Tick, domain: TimeDomain) -> str:
    """A length of time in CQL, in the largest unit in which it is whole."""
    if domain is not TimeDomain.TIMESTAMP or not ticks:
        return str(ticks)
    unit, size = next((u, n) for u, n in reversed(MICROSECONDS_PER_UNIT.items()) if ticks % n == 0 and u != "WEEK")
    return f"{ticks // size} {unit}{'' if ticks == size else 'S'}"
