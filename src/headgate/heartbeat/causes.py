"""Why a stream is not complete further than it is, in words."""

from __future__ import annotations

from collections.abc import Collection

from headgate.catalog.skew import SkewBound
from headgate.heartbeat.arrivals import NEVER
from headgate.heartbeat.bound_text import span, when
from headgate.heartbeat.instants import in_words
from headgate.heartbeat.model import TimeModel
from headgate.heartbeat.stream_clock import StreamClock
from headgate.heartbeat.waiting import Standing
from headgate.ticks import Tick, TimeDomain

UNREAD_US = 1_000_000
"""If what was sent in the last so long is not known to be read, the text says so."""


def cause_of(
    model: TimeModel, clock: StreamClock, standing: Standing, names: Collection[str], domain: TimeDomain, now_us: int
) -> str:
    """Why a stream that stands like this is not complete further, read together with the named streams."""
    if clock.paused:
        return "it is paused: what it sends meanwhile is not read, and must not be late"
    if by_clock := _cause_by_clock(model, clock, standing, domain, now_us):
        return by_clock
    if standing.silent:
        others = [name for name in names if name != clock.name and not model.clocks[name].finished]
        if any(not model.waiting.standing(name, now_us).silent for name in others):
            return "it is silent, and what others' tuples are declared to say of it goes no further"
        return "all streams are silent"
    if not clock.external:
        return "the engine stamps it, and has not gone on since"
    if clock.table.forgotten and standing.cohort is None and standing.complete is not None:
        return (
            "a source of it that has long been silent may still send, and what others are declared to say of it "
            "goes no further"
        )
    if standing.cohort is None or standing.member is None:
        if standing.complete is None:
            return "nothing ever came from it, and no SKEW to it is declared that another stream's tuples could use"
        return "nothing ever came from it, and other streams' tuples say no more of it"
    if standing.heard_us is None and standing.complete is None:
        return "it was named and has not spoken yet, and no SKEW to it is declared that others' tuples could use"
    said = int(model.clocks.generator.cohorts[standing.cohort].punctuations.at(now_us)[standing.member])
    if said > NEVER and said == standing.complete:
        return f"it said itself that nothing up to {in_words(said, domain)} will still come, and nothing beyond"
    if not clock.tuples and standing.complete is None:
        return "nothing ever came from it, and no SKEW to it is declared that another stream's tuples could use"
    if model.silence.is_settling(clock, now_us, standing.of):
        return "it has just begun: sources of it that were not heard of yet may be behind those that were"
    senders = model.bindings.senders_among(clock.name, names)
    if _away(model, standing.cohort, standing.member, standing.complete, senders, now_us):
        return (
            "it has been silent for longer than usual: it may be behind, and what was learnt about it from others' "
            "tuples does not count meanwhile"
        )
    found = _strongest(model, standing.cohort, standing.member, senders, now_us)
    if found is None:
        if model.declarations.about(clock.name):
            return f"no bound says anything about it: neither DISORDER OF {clock.name} nor a SKEW TO it is declared"
        return "too little came from it yet"
    sender, bound, origin = found
    stamped = in_words((standing.complete or 0) + bound.within, domain)
    who = "its" if sender is None else f"{sender}'s"
    return (
        f"{who} last tuple that counts is stamped {stamped}, and {_still(bound, sender, domain)} "
        f"({origin}{_delay(bound)})"
    )


def _cause_by_clock(model: TimeModel, clock: StreamClock, standing: Standing, domain: TimeDomain, now_us: int) -> str:
    """Why the engine's clock has not said more of a stream; empty if more is known without the clock."""
    if not model.enabling.can_answer(clock.name):
        return ""
    enabling = model.declarations.enabling(clock.name)
    stamped = "" if clock.external else "the engine stamps it, and "
    if enabling.how == "none":
        more = "a later tuple of it says" if not clock.external else "its tuples and others' say"
        return f"{stamped}with HEARTBEAT NONE the clock says nothing of it: only {more} how far it is"
    if not clock.external:
        asked = (
            f"was last asked at {in_words(clock.enabled, domain)}"
            if clock.enabled is not None
            else "has not been asked yet"
        )
        return f"{stamped}its heartbeat comes from the clock {when(enabling)}, which {asked}"
    answer = model.enabling.answer(clock.name, now_us, clock.read_us)
    if answer is None or (standing.complete is not None and standing.complete > answer):
        return ""
    far = []
    if enabling.within is not None:
        far.append(f"within {span(enabling.within, domain).lower()} of its largest timestamp and the time since")
    if clock.name in model.declarations.calendar:
        far.append("behind the date by what SKEW FROM CLOCK says")
    lag = ", and it is not known yet whether everything that it was sent has been read" if clock.read_us is None else ""
    if clock.read_us is not None and now_us - clock.read_us > UNREAD_US:
        lag = f", and what it was sent in the last {(now_us - clock.read_us) / 1e6:.1f} s is not known to be read"
    return f"its heartbeat comes from the clock {when(enabling)}, {' or '.join(far)}{lag}"


def _still(bound: SkewBound, sender: str | None, domain: TimeDomain) -> str:
    """What may still come by a bound, in words."""
    if bound.within > 1:
        far = f"up to {span(bound.within - 1, domain).lower()} behind"
        return f"tuples {far} it may still come" if sender is None else f"it may be {far}"
    return "tuples of that instant may still come" if bound.within else "nothing up to there can still come"


def _delay(bound: SkewBound) -> str:
    """The delay of a bound in words; empty if it has none."""
    if not bound.delay:
        return ""
    return (
        f" after {bound.tuples} tuples"
        if bound.tuples
        else f" after {span(bound.after_us, TimeDomain.TIMESTAMP).lower()}"
    )


def _strongest(
    model: TimeModel, cohort: int, member: int, senders: Collection[int] | None, now_us: int
) -> tuple[str | None, SkewBound, str] | None:
    """The bound from which a source's heartbeat follows: the stream that it is from (None: the source itself), the
    bound, and whether it was declared or estimated.
    """
    generator = model.clocks.generator
    candidates: list[tuple[int, str | None, SkewBound, str]] = []
    learnt = model.bindings.learnt(cohort, None)
    for bound in generator.cohorts[cohort].own:
        value = int(generator.by_itself(cohort, bound, now_us)[member])
        candidates.append((value, None, bound, "estimated" if bound in learnt else "declared"))
    for first, bounds in generator.towards[cohort].items():
        for bound in bounds if senders is None or first in senders else ():
            value = int(generator.by_others(first, cohort, bound, now_us)[member])
            candidates.append((value, model.clocks.owner(first).name, bound, "declared"))
    for first, bounds in generator.guessed[cohort].items():
        for bound in bounds if senders is None or first in senders else ():
            value = int(generator.by_others(first, cohort, bound, now_us)[member])
            if value <= int(generator.cohorts[cohort].relied_on()[member]):
                candidates.append((value, model.clocks.owner(first).name, bound, "estimated"))
    best = max(candidates, key=lambda one: one[0], default=None)
    return None if best is None or best[0] < NEVER // 2 else best[1:]


def _away(
    model: TimeModel,
    number: int,
    member: int,
    complete: Tick | None,
    senders: Collection[int] | None,
    now_us: int,
) -> bool:
    """True if what was learnt from others would let a source go further, had it not been silent for so long."""
    generator = model.clocks.generator
    heard = [
        (first, bounds) for first, bounds in generator.guessed[number].items() if senders is None or first in senders
    ]
    said = [
        int(generator.by_others(first, number, bound, now_us)[member]) for first, bounds in heard for bound in bounds
    ]
    return complete is not None and max(said, default=NEVER) > complete
