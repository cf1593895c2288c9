"""What programs say about time: bounds between sources, how their clocks deviate, how far a stream is.

Bounds and latencies are declared by the statement of CQL that says the same, because that is simplest: one grammar
refuses the same nonsense with the same words, and the journal remembers them as it remembers every statement. What no
statement says is a fact of its own (`facts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, assert_never

from headgate.catalog.declarations import Party, Sensors
from headgate.catalog.skew import SkewBound
from headgate.engine.core import Core
from headgate.engine.facts import Finished, Paused, Punctuated, Resumed, SensorsDeclared, TimeFact
from headgate.engine.registry import Registry
from headgate.errors import UserError
from headgate.heartbeat import bound_text
from headgate.sources.inlet import ticks
from headgate.ticks import Tick, TimeDomain

# by statements


def declare_skew(registry: Registry, first: str | Party, second: str | Party, bounds: Iterable[SkewBound]) -> None:
    """Declare what a tuple of the first stream or source says about later ones of the second."""
    registry.execute(f"SKEW FROM {_named(first)} TO {_named(second)} {_written(registry.core, second, bounds)}")


def declare_disorder(registry: Registry, party: str | Party, bounds: Iterable[SkewBound]) -> None:
    """Declare what a tuple of a source says about its own later ones."""
    registry.execute(f"DISORDER OF {_named(party)} {_written(registry.core, party, bounds)}")


def declare_latency(registry: Registry, party: str | Party, most: timedelta) -> None:
    """Declare how long a tuple is under way at the most."""
    registry.execute(f"LATENCY OF {_named(party)} {most // timedelta(microseconds=1)} MICROSECONDS")


def drop_skew(registry: Registry, first: str | Party, second: str | Party) -> None:
    """Take back what was declared between two streams or sources."""
    registry.execute(f"DROP SKEW FROM {_named(first)} TO {_named(second)}")


def drop_disorder(registry: Registry, party: str | Party) -> None:
    """Take back what was declared of a source with itself."""
    registry.execute(f"DROP DISORDER OF {_named(party)}")


def drop_latency(registry: Registry, party: str | Party) -> None:
    """Take back how long a tuple is under way at the most."""
    registry.execute(f"DROP LATENCY OF {_named(party)}")


def drop_sensors(registry: Registry, party: str | Party) -> None:
    """Take back how far the clock of a source deviates; for a stream, of all its sources."""
    registry.execute(f"DROP ENVIRONMENT sensors OF {_named(party)}")


def _named(party: str | Party) -> str:
    """A stream or source as CQL names it."""
    return bound_text.named(Party(party) if isinstance(party, str) else party)


def _written(core: Core, receiver: str | Party, bounds: Iterable[SkewBound]) -> str:
    """Bounds in CQL, in the time of the stream that they are about."""
    name = (receiver if isinstance(receiver, str) else receiver.stream).lower()
    found = core.catalog.streams.get(name) or core.catalog.relations.get(name)
    domain = found.domain if found is not None and found.domain is not None else TimeDomain.INTEGER
    return bound_text.pairs(bounds, domain)


# by facts


def declare_sensors(
    core: Core, stream: str, deviations: Mapping[Any, Tick | timedelta], rate: Fraction | float | None
) -> None:
    """Declare how far each source's clock deviates from the common one, and how many ticks a second it advances at
    least.
    """
    found = core.catalog.stream(stream)
    if found.source is None:
        raise UserError("no-source-column", f'stream "{found.name}" holds one source', hint="SOURCE BY column")
    known = {
        str(source): one // timedelta(microseconds=1) if isinstance(one, timedelta) else one
        for source, one in deviations.items()
    }
    least = min(known.values(), default=0)
    if least < 0 or (rate is not None and rate <= 0):
        raise UserError(
            "bad-bound", "a deviation cannot be negative" if least < 0 else "a rate must be more than nothing"
        )
    fact = SensorsDeclared(found.name, known, None if rate is None else Fraction(rate))
    core.record(fact, then=lambda: apply_sensors(core, fact))


def apply_sensors(core: Core, fact: SensorsDeclared) -> None:
    """Let the declared deviations count from now on."""
    declared = core.catalog.declarations.sensors
    # earlier versions wrote down what was said of the whole stream under the source "None"
    whole = "None" if Party(fact.stream) in declared else None
    declared |= {
        Party(fact.stream, source): Sensors(deviation, fact.rate)
        for source, deviation in fact.deviations.items()
        if source != whole
    }
    core.heartbeats.apply_declarations(core.clock.now_us())


def pause(core: Core, stream: str) -> None:
    """Take note that the stream is not read for a while: it is not silent, and the pause makes no tuple late."""
    _record(core, Paused(core.catalog.stream(stream).name, core.clock.now_us()))


def resume(core: Core, stream: str) -> None:
    """Take note that the stream is read again, and that what was held back has been."""
    _record(core, Resumed(core.catalog.stream(stream).name, core.clock.now_us()))


def finish(core: Core, stream: str, source: Any) -> None:
    """Take note that nothing will come from the stream any more, or from one source of it."""
    _record(core, Finished(core.catalog.stream(stream).name, source, core.clock.now_us()))


def punctuate(core: Core, stream: str, to: Tick | datetime | str, source: Any) -> None:
    """Take a source's own heartbeat: it will send nothing stamped up to `to` any more."""
    upto = to if isinstance(to, int) else ticks(to)
    _record(core, Punctuated(core.catalog.stream(stream).name, source, upto, core.clock.now_us()))


def _record(core: Core, fact: TimeFact) -> None:
    core.record(fact, then=lambda: apply_time_fact(core, fact))


def apply_time_fact(core: Core, fact: TimeFact) -> None:
    """Let the time manager take a fact, as of when it became one."""
    match fact:
        case Paused(stream, now_us):
            core.heartbeats.pause(stream, now_us)
        case Resumed(stream, now_us):
            core.heartbeats.resume(stream, now_us)
        case Finished(stream, source, now_us):
            core.heartbeats.finish(stream, source, now_us)
        case Punctuated(stream, source, upto, now_us):
            core.heartbeats.punctuated(stream, source, upto, now_us)
        case _:
            assert_never(fact)


# by functions


def ask_function(core: Core, stream: str, function: Callable[[], Tick | datetime | str | None]) -> None:
    """Let a function of the program say, when something waits for the stream, up to when it is complete."""
    found = core.catalog.stream(stream)
    if found.stamped != "external":
        raise UserError("needs-no-bounds", f'stream "{found.name}" is stamped by the engine, which knows how far it is')
    if core.catalog.declarations.enabling(found.name).how == "none":
        raise UserError(
            "heartbeat-none",
            f'nobody is asked about stream "{found.name}"',
            detail="HEARTBEAT NONE was said.",
            hint=f"HEARTBEAT OF {found.name} ON DEMAND;",
        )

    def asked() -> Tick | None:
        to = function()
        return to if to is None or isinstance(to, int) else ticks(to)

    with core.journal.turn:
        core.asking.functions[found.name] = asked
