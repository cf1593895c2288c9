"""What was declared about the sources: bounds pair by pair, latencies, environments, how to estimate, how to group.

A party is a stream, or one source of a stream that holds many. What is said of a stream is said of each of its sources;
what is said of one source is said besides. Everything declared is true, so a pair's bounds are all of them together.
Nothing here grows with the square of the number of sources: environments are kept as the numbers they consist of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from headgate.catalog.skew import Bounds, SkewBound, strongest
from headgate.catalog.system import is_system
from headgate.scope import Groups

if TYPE_CHECKING:
    from headgate.ticks import Tick


@dataclass(frozen=True, slots=True)
class Party:
    """A stream, or one source of a stream that holds many."""

    stream: str
    source: str | None = None

    def __str__(self) -> str:
        return self.stream if self.source is None else f"{self.stream} SOURCE '{self.source}'"


@dataclass(frozen=True, slots=True)
class Sensors:
    """Clocks off a global one by at most `deviation`, ahead or behind; the global one advances by at least `rate` ticks
    a second.

    If i stamps a tuple τ, the global clock shows τ - d of i or more, and never less from then on. So j stamps what it
    sends after that with τ - d of i - d of j or more. A bound promises more than τ - within, so `within` is one tick
    larger than the sum.

    Of a source with itself the sum is 2 d: its clock may be d ahead and be set to d behind. The paper (4.2) takes d,
    for clocks that are only ever set to the right time; that is said by DISORDER besides.
    """

    deviation: Tick
    rate: Fraction | None = None

    def own(self) -> Bounds:
        """The bounds of such a source with itself."""
        return self.after(self)

    def after(self, other: Sensors) -> Bounds:
        """What a tuple of the other says about this one."""
        within = self.deviation + other.deviation + 1
        return strongest((SkewBound(within), *self._in_the_end(within)))

    @staticmethod
    def weakest(members: Iterable[Sensors]) -> Sensors:
        """What holds for each of them."""
        known = list(members)
        rates = [one.rate for one in known if one.rate is not None]
        return Sensors(max(one.deviation for one in known), min(rates) if len(rates) == len(known) else None)

    def _in_the_end(self, ticks: Tick) -> Bounds:
        return () if self.rate is None else (SkewBound(0, after_us=-int(-Fraction(ticks) * 1_000_000 // self.rate)),)


@dataclass(frozen=True, slots=True)
class Counter:
    """Timestamps drawn from one shared counter; a source needs between `least_us` and `most_us` from drawing to
    sending.
    """

    least_us: int
    most_us: int

    def own(self) -> Bounds:
        """The bounds of such a source with itself: the counter only grows."""
        return (SkewBound(0),)

    def after(self, other: Counter) -> Bounds:
        """What a tuple of the other source says about this one."""
        return strongest((SkewBound(0, after_us=max(self.most_us - other.least_us, 0)), SkewBound(0, tuples=1)))

    @staticmethod
    def weakest(members: Iterable[Counter]) -> Counter:
        """What holds for each of them."""
        known = list(members)
        return Counter(min(one.least_us for one in known), max(one.most_us for one in known))


@dataclass(frozen=True, slots=True)
class Estimation:
    """How bounds are learnt from what arrives: see `estimate`."""

    horizon_us: int = 0
    """The longest delay for which a bound is estimated."""

    window_us: int | None = 10_000_000
    window_tuples: int | None = None
    """How much must pass without a surprise before an estimate is lowered: so many tuples, or else so long; both None:
    never.
    """

    weight: float = 0.5
    """Of the old estimate, when it is lowered."""

    adaptive: bool = True
    """Whether the window itself adapts."""

    confidence: float | None = None
    """Instead of the largest skew seen: one that this part of the tuples keeps to."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Sources that share one heartbeat: sets given by the user, or so many formed by likeness."""

    count: int | None = None
    sets: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Enabling:
    """When the clock is asked how far a stream is, and how far behind the clock its source may be: see `enabling`."""

    how: Literal["on demand", "every", "none"] = "on demand"
    every_us: int = 0
    within: Tick | None = None
    """If its source stamps it: how far behind its largest timestamp, and the time since that came, a tuple may be."""

    tick_us: Fraction = Fraction(1)
    """How long a tick of the stream's time is on the engine's clock."""


@dataclass(slots=True)
class Declarations:
    """Everything that was declared about the time of streams and their sources."""

    skews: dict[tuple[Party, Party], Bounds] = field(default_factory=dict)
    """Bounds from one party to another. From a stream to itself: between any two different sources of it."""

    disorders: dict[Party, Bounds] = field(default_factory=dict)
    """Bounds of a source with itself."""

    latencies_us: dict[Party, int] = field(default_factory=dict)
    sensors: dict[Party, Sensors] = field(default_factory=dict)
    counters: dict[Party, Counter] = field(default_factory=dict)
    estimations: dict[str, Estimation] = field(default_factory=dict)
    groupings: dict[str, Grouping] = field(default_factory=dict)
    enablings: dict[str | None, Enabling] = field(default_factory=dict)
    """By stream; None: of all that have none of their own."""

    calendar: dict[str, Bounds] = field(default_factory=dict)
    """What the date on the engine's clock says about the timestamps of a stream, as if the clock were a source."""

    def copied(self) -> Declarations:
        """The same declarations in dictionaries of their own; what these hold is frozen."""
        return replace(self, **{one.name: getattr(self, one.name).copy() for one in fields(self)})

    def become(self, others: Declarations) -> None:
        """Declare what others declare, and nothing else."""
        for one in fields(self):
            setattr(self, one.name, getattr(others, one.name).copy())

    def about(self, stream: str) -> bool:
        """True if a bound, an environment or the clock was declared for the stream; if not, its bounds are learnt."""
        for known in (self.disorders, self.sensors, self.counters):
            for party in known:
                if party.stream == stream:
                    return True
        return self.by_clock(stream) or any(second.stream == stream for _, second in self.skews)

    def enabling(self, stream: str) -> Enabling:
        """When the clock is asked how far the stream is. What is said of all streams leaves out system streams."""
        if is_system(stream):
            return Enabling()
        return self.enablings.get(stream) or self.enablings.get(None) or Enabling()

    def by_clock(self, stream: str) -> bool:
        """True if it was declared how far behind the engine's clock a stream is that its source stamps."""
        return stream in self.calendar or self.enabling(stream).within is not None

    def singled_out(self, stream: str) -> list[str]:
        """The sources of the stream that a bound or a latency names."""
        parties = [*self.disorders, *self.latencies_us, *(party for pair in self.skews for party in pair)]
        return sorted({party.source for party in parties if party.stream == stream and party.source is not None})

    def named(self, stream: str) -> set[str]:
        """The sources of the stream that a bound, a latency or an environment names. Groups do not count."""
        parties = (*self.sensors, *self.counters)
        environments = {party.source for party in parties if party.stream == stream and party.source is not None}
        return environments | {*self.singled_out(stream)}

    def own(self, party: Party) -> Bounds:
        """The declared bounds of a source with itself, without those of its environment."""
        return strongest(bound for one in levels(party) for bound in self.disorders.get(one, ()))

    def between(self, first: Party, second: Party) -> Bounds:
        """The declared bounds from one source to another, without those of their environment."""
        pairs = [(one, other) for one in levels(first) for other in levels(second)]
        return strongest(bound for pair in pairs for bound in self.skews.get(pair, ()))

    def latency_us(self, party: Party) -> int:
        """How long a tuple of the party is under way at the most."""
        return next((self.latencies_us[one] for one in levels(party) if one in self.latencies_us), 0)

    def sensor(self, party: Party) -> Sensors | None:
        """The sensor environment of the party, if it has one."""
        return next((self.sensors[one] for one in levels(party) if one in self.sensors), None)

    def counter(self, party: Party) -> Counter | None:
        """The counter environment of the party, if it has one."""
        return next((self.counters[one] for one in levels(party) if one in self.counters), None)

    def groups(self) -> dict[str, Groups]:
        """The groups of each stream for which they were listed."""
        named = {stream: grouping.sets for stream, grouping in self.groupings.items() if grouping.sets}
        return {stream: Groups(tuple(map(frozenset, sets))) for stream, sets in named.items()}

    def forget(self, stream: str) -> None:
        """Forget what was declared about a stream that is gone."""
        self.skews = {
            pair: bounds for pair, bounds in self.skews.items() if stream not in (pair[0].stream, pair[1].stream)
        }
        for known in (self.disorders, self.latencies_us, self.sensors, self.counters):
            for party in [party for party in known if party.stream == stream]:
                del known[party]
        self.estimations.pop(stream, None)
        self.groupings.pop(stream, None)
        self.enablings.pop(stream, None)
        self.calendar.pop(stream, None)


def levels(party: Party) -> tuple[Party, ...]:
    """The party and the stream it belongs to, the more particular first."""
    return (party,) if party.source is None else (party, Party(party.stream))
