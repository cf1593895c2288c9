"""What would release a query that waits.

Nothing is guessed: waiting is tried on the heartbeats as they will be, anything else on a copy of the time manager.
What does not help there is not said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from headgate.catalog.declarations import Party
from headgate.catalog.skew import Bounds, SkewBound
from headgate.heartbeat.arrivals import of_rows
from headgate.heartbeat.enabling import last_beat_us
from headgate.heartbeat.held import FOREVER_US, Held
from headgate.heartbeat.instants import in_words
from headgate.heartbeat.model import TimeModel
from headgate.heartbeat.stream_clock import StreamClock
from headgate.ticks import UNLIMITED, Tick, TimeDomain

LISTED = 3
"""So many sources that hold a query back together are named."""


@dataclass(frozen=True, slots=True)
class Release:
    """What would release a query: an instant, if nothing comes until then; tuples; or a statement."""

    text: str
    at_us: int | None = None
    tuples: tuple[tuple[str, Any, Tick | None], ...] = ()
    """Stream, source and timestamp of each tuple; timestamp None: any."""

    statement: str = ""


def releases(held: Held) -> list[Release]:
    """All that is known to release it."""
    holder = held.holder()
    if holder is None:
        return []
    if holder.paused:
        return _read_again(held, holder)
    return [*_by_waiting(held, holder), *_by_tuples(held), *_by_statements(held, holder)]


def _read_again(held: Held, holder: StreamClock) -> list[Release]:
    """Reading a paused stream again, and what would still be needed then."""
    trial = held.model.fork()
    trial.resume(holder.name, held.now_us)
    if held.released(held.now_us, by=trial):
        return [Release("reading it again")]
    then = replace(
        held, model=trial, standings=trial.completeness.standings(held.names, held.now_us, held.now_us, {}, held.scopes)
    )
    return [replace(one, text=f"reading it again, and then {one.text}") for one in releases(then)]


def _by_waiting(held: Held, holder: StreamClock) -> list[Release]:
    """What happens first if nothing comes: a promise takes effect, or the timeout passes. Besides, the engine's clock
    if that may be sooner, which is not sure, because the clock counts from what has been read.
    """
    model, now_us = held.model, held.now_us
    promise_us = held.first(lambda us: held.released(us, silent_us=now_us))
    alone_us = held.first(held.released)
    clock_us = held.first(lambda us: held.released(us, answers=held.answers(us)))
    found = []
    if clock_us is not None and (alone_us is None or clock_us < alone_us):
        enabling = model.declarations.enabling(holder.name)
        read = ", if all that is there has been read by then" if holder.external else ""
        if clock_us == now_us:
            text = "the next step" + read
        elif enabling.how == "every" and clock_us == last_beat_us(now_us, enabling.every_us) + enabling.every_us:
            text = f"its next heartbeat, in {_seconds(clock_us - now_us)}{read}"
        else:
            text = f"the clock, in {_seconds(clock_us - now_us)}{read}"
        found.append(Release(text, clock_us))
    if alone_us is not None and alone_us == promise_us:
        found.append(Release(f"a promise that takes effect in {_seconds(alone_us - now_us)}", alone_us))
    elif alone_us is not None:
        found.append(Release(f"the timeout, in {_seconds(alone_us - now_us)} if nothing comes", alone_us))
    return found


def _by_tuples(held: Held) -> list[Release]:
    """Tuples of all sources that hold it back together, and the smallest timestamp that helps."""
    sources = [source for name in held.behind() for source in _holding(held, held.model.clocks[name])]
    if not sources:
        return []
    engines_own = [name for name, _ in sources if not held.model.clocks[name].external]
    if engines_own:
        none = held.model.declarations.enabling(engines_own[0]).how == "none"
        alone = len(sources) == 1 and none and held.released(held.now_us, by=_tried(held, sources, held.goal + 1))
        later = Release(f"a later tuple of {engines_own[0]}", tuples=((engines_own[0], None, held.goal + 1),))
        return [later] if alone else []
    alone_us = held.first(held.released)
    withins = {1, *(bound.within for bounds in _bounds(held, {name for name, _ in sources}) for bound in bounds)}
    stamps = [None, *sorted({held.goal + within for within in withins})]
    for stamp in stamps:
        if stamp is None and any(held.model.clocks.is_estimated(name) for name, _ in sources):
            continue
        effect_us = _effect(held, sources, stamp)
        if effect_us is not None and (alone_us is None or effect_us < alone_us):
            stamp = None if stamp is None else _smallest(held, sources, stamp, effect_us)
            return [_by_such_tuples(held, sources, stamp, effect_us)]
    return []


def _holding(held: Held, clock: StreamClock) -> list[tuple[str, Any]]:
    """The sources of a stream that are waited for and not complete up to the goal."""
    if not clock.many:
        return [(clock.name, None)]
    found = held.model.waiting.sources_behind(clock, held.goal, held.names, held.now_us, held.standings[clock.name].of)
    return [(clock.name, source) for source in found]


def _bounds(held: Held, names: Collection[str]) -> Iterator[Bounds]:
    """All bounds from sources of these streams, to themselves or to others."""
    model = held.model
    for clock in (model.clocks[name] for name in names):
        yield from (kind.own(model.declarations) for kind in clock.table.all_kinds())
        for number in clock.table.cohorts.values():
            yield model.clocks.generator.cohorts[number].own
            yield from (bounds.get(number, ()) for bounds in model.clocks.generator.towards.values())


def _tried(held: Held, sources: Iterable[tuple[str, Any]], stamp: Tick) -> TimeModel:
    """A copy of the time manager in which a tuple of each source came just now."""
    trial = held.model.fork()
    of_stream: dict[str, list[Any]] = {}
    for name, source in sources:
        of_stream.setdefault(name, []).append(source)
    for name, those in of_stream.items():
        trial.intake.arrived(name, of_rows(those, np.arange(len(those)), np.full(len(those), stamp)), held.now_us)
    return trial


def _effect(held: Held, sources: Sequence[tuple[str, Any]], stamp: Tick | None) -> int | None:
    """When the query is released if one tuple of each source comes now, all with this timestamp; None if it is not.
    Without a timestamp any will do, so one that is far behind is tried.
    """
    far_behind = held.goal - 2**50
    trial = _tried(held, sources, far_behind if stamp is None else stamp)
    return held.first(lambda us: held.released(us, silent_us=held.now_us, by=trial))


def _smallest(held: Held, sources: Sequence[tuple[str, Any]], stamp: Tick, effect_us: int) -> Tick:
    """The smallest timestamp that does as much as soon: where bounds are learnt, the tuple itself can change them."""

    def does(smaller: Tick) -> bool:
        found_us = _effect(held, sources, smaller)
        return found_us is not None and found_us <= effect_us

    step = 1
    while does(stamp - step):
        stamp, step = stamp - step, 2 * step
    while step > 1:
        step //= 2
        stamp = stamp - step if does(stamp - step) else stamp
    return stamp


def _by_such_tuples(held: Held, sources: Sequence[tuple[str, Any]], stamp: Tick | None, effect_us: int) -> Release:
    named = [_source(held.model.clocks[name], source) for name, source in islice(sources, LISTED)]
    whose = " and ".join(named) if len(sources) <= LISTED else f"{len(sources)} sources, such as {named[0]}"
    what = f"a tuple of {whose}" if len(sources) == 1 else f"a tuple of each of {whose}"
    when = "" if stamp is None else f" stamped {in_words(stamp, held.domain)} or later"
    later = "" if effect_us == held.now_us else f", {_seconds(effect_us - held.now_us)} after it came"
    return Release(what + when + later, effect_us, tuple((name, source, stamp) for name, source in sources))


def _source(clock: StreamClock, source: Any) -> str:
    return clock.name if source is None else f"{clock.name} SOURCE '{source}'"


def _by_statements(held: Held, holder: StreamClock) -> list[Release]:
    """Statements that would release it, if what they declare is true."""
    model, now_us, found = held.model, held.now_us, []
    if model.clocks.timeout_us is None:
        trial = model.fork()
        trial.clocks.timeout_us = 1
        if held.released(now_us + FOREVER_US, by=trial):
            found.append(Release("a TIMEOUT, which is not set", statement="TIMEOUT"))
    going_on = [clock for clock in held.clocks if clock.external and not clock.finished]
    for sender in going_on if holder.external else ():
        if sender is holder and not holder.many:
            continue
        pair = Party(sender.name), Party(holder.name)
        if pair in model.declarations.skews or (
            sender is not holder and model.bindings.between_streams(sender.name, holder.name)
        ):
            continue
        trial = model.fork()
        trial.declarations.skews[pair] = (SkewBound(0),)
        trial.bindings.apply_declarations(now_us)
        if held.released(now_us, by=trial):
            statement = f"SKEW FROM {sender.name} TO {holder.name} (WITHIN ...);"
            found.append(Release(f"a bound, if there is one: {statement}", statement=statement))
    found += _by_the_clock(held, holder)
    return found


def _by_the_clock(held: Held, holder: StreamClock) -> list[Release]:
    """A statement by which the engine's clock would say how far the stream is."""
    model, name = held.model, holder.name
    enabling = model.declarations.enabling(name)
    if not held.released(held.now_us, answers=held.answers(held.now_us) | {name: UNLIMITED - 1}):
        return []
    if model.enabling.can_answer(name):
        within = " ..." if holder.external else ""
        statement = f"HEARTBEAT OF {name} ON DEMAND{within};"
        known = not holder.external or holder.largest is not None or name in model.declarations.calendar
        useful = enabling.how == "none" and known
        return [Release(f"the clock: {statement}", statement=statement)] if useful else []
    statement = f"HEARTBEAT OF {name} ON DEMAND WITHIN ...;"
    if holder.largest is None:
        if holder.domain is not TimeDomain.TIMESTAMP or enabling.how == "none":
            return []
        statement = f"SKEW FROM CLOCK TO {name} (WITHIN ...);"
    return [Release(f"the clock, if it says something of it: {statement}", statement=statement)]


def _seconds(us: int) -> str:
    """A length of time in words, rounded up, so that what is foretold has happened by then."""
    return f"{-(-us // 100_000) / 10:.1f} s"
