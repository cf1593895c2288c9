"""Whether a query needs a timeout: if all its sources pause, do its last tuples wait for ever? (Theorem 3.3)"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Relation, Stream
from headgate.catalog.skew import Bounds, without_progress
from headgate.heartbeat.clocks import base
from headgate.heartbeat.groups import Kind
from headgate.heartbeat.model import TimeModel
from headgate.ticks import TimeDomain


@dataclass(frozen=True, slots=True)
class Progress:
    """Whether a query goes on once all of its sources pause, by what is declared."""

    needs_timeout: bool
    """True if nothing but a timeout, or a later tuple, lets it go on."""

    text: str

    def __str__(self) -> str:
        return self.text


def progress(catalog: Catalog, streams: Iterable[str]) -> Progress:
    """Find out whether a query over these streams needs a timeout, by what is declared."""
    model = TimeModel(catalog.declarations)
    known: list[Stream | Relation] = [*catalog.streams.values(), *catalog.relations.values(), *catalog.system.values()]
    for stream in known:
        model.add(stream, now_us=0)
    read = list(map(base, streams))
    forbidden = [name for name in read if model.enabling.is_forbidden(name)]
    if forbidden:
        return Progress(
            True,
            f"waits for ever once all sources pause: with HEARTBEAT NONE only a later tuple of {forbidden[0]} says "
            "how far it is",
        )
    missing = missing_bound(model, read)
    if missing is None:
        clock = ", or the clock does" if any(map(model.enabling.follows_clock, read)) else ""
        return Progress(False, f"needs no timeout: every source's tuples say in the end how far each source is{clock}")
    timeout_us = catalog.settings.timeout_us
    length = f"{timeout_us / 1e6:g} s" if timeout_us is not None else "none is set"
    return Progress(
        True, f"needs a timeout ({length}) once all sources pause: no bound within 0 is declared from {missing}"
    )


def missing_bound(model: TimeModel, streams: Iterable[str]) -> str | None:
    """Between whom a bound is missing, so that tuples can wait for ever once all sources pause; None if none is.

    Only what was declared counts: an estimate is no promise. A stream that the engine stamps says nothing of others,
    and only the clock says anything of it. With HEARTBEAT ... WITHIN the clock says nothing until the stream has
    spoken.
    """
    declarations, inputs = model.declarations, model.clocks.of(streams).values()
    going_on = [clock for clock in inputs if not clock.finished and clock.domain is not TimeDomain.ARRIVAL]
    found = [(clock, kind) for clock in going_on for kind in clock.table.all_kinds()]
    entries: dict[tuple[Kind, Kind | None], Bounds] = {}
    for clock, kind in found:
        if model.enabling.is_forbidden(clock.name):
            return f"the clock to {kind}, with HEARTBEAT NONE"
        if not clock.external:
            continue
        follows_clock = model.enabling.follows_clock(clock.name)
        if follows_clock and clock.name in declarations.calendar:
            continue
        if not follows_clock:
            entries[kind, None] = kind.own(declarations)
        for other, sender in found:
            if other is clock and follows_clock:
                continue  # once one of its sources has spoken, the clock speaks of all
            if kind != sender or (clock.many and not kind.alone):
                entries[kind, sender] = kind.after(sender, declarations) if other.external else ()
    pair = without_progress(entries)
    if pair is None:
        return None
    kind, sender_kind = pair
    if sender_kind is None:
        return f"{kind} with itself"
    return f"{sender_kind} to {kind}" if sender_kind != kind else f"one source of {kind} to another"
