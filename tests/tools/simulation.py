"""Simulated sources: clocks that drift, tuples that jitter, burst, pause, overtake each other en route or get lost.

In: what a source is like. Out: what arrives, in the order of arrival, the same for the same seed; and the bounds that
hold by construction. The global application clock is the wall clock, in microseconds, so a heartbeat's lag can be read
off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

import numpy as np

from headgate.catalog.declarations import Counter, Declarations, Party, Sensors
from headgate.catalog.entries import Stream
from headgate.heartbeat.arrivals import of_rows
from headgate.heartbeat.manager import Heartbeats
from headgate.ticks import TimeDomain

SECOND = 1_000_000
START_US = 1_000 * SECOND


class Arrived(NamedTuple):
    at_us: int
    stream: str
    source: str | None
    stamp: int


class Spike(NamedTuple):
    """Tuples sent in this time take longer by as much."""

    from_us: int
    to_us: int
    extra_us: int


@dataclass(frozen=True, slots=True)
class Sensor:
    """A source with a clock of its own. It runs ahead of the global one, or behind, until it is set right again."""

    stream: str = "s"
    source: str | None = None
    every_us: int = 10_000
    """Between two tuples, on average."""

    deviation_us: int = 0
    ahead: bool = True
    set_right_us: int = SECOND
    usual_us: int = 0
    """How long a tuple is under way on average; some take far longer."""

    latency_us: int = 0
    """And at the most."""

    bursts: float = 0.0
    pauses: float = 0.0
    loss: float = 0.0
    """The part of the tuples after which come many at once or none for long; and that never arrive."""

    spikes: tuple[Spike, ...] = ()

    @property
    def party(self) -> Party:
        return Party(self.stream, self.source)

    def sent(self, until_us: int, chance: np.random.Generator) -> Iterator[Arrived]:
        """With two instants the same source never sends at once."""
        now_us = START_US + int(chance.integers(self.every_us))
        while now_us < START_US + until_us:
            if chance.random() >= self.loss:
                yield Arrived(
                    now_us + self._under_way(now_us - START_US, chance), self.stream, self.source, self._clock(now_us)
                )
            luck = chance.random()
            if luck < self.bursts:
                now_us += 1
            elif luck < self.bursts + self.pauses:
                now_us += int(chance.integers(20, 60) * self.every_us)
            else:
                now_us += 1 + int(chance.integers(self.every_us // 2, 3 * self.every_us // 2))

    def _clock(self, now_us: int) -> int:
        """Off by more and more, then right again: never set back by more than the deviation."""
        since = now_us % self.set_right_us
        off = self.deviation_us * since // self.set_right_us
        return now_us + (off if self.ahead else -off)

    def _under_way(self, after_us: int, chance: np.random.Generator) -> int:
        usual = int(chance.exponential(self.usual_us)) if self.usual_us else 0
        extra = sum(spike.extra_us for spike in self.spikes if spike.from_us <= after_us < spike.to_us)
        return min(usual + extra, self.latency_us)


def sensed(sensors: Iterable[Sensor], until_us: int, seed: int) -> list[Arrived]:
    chance = np.random.default_rng(seed)
    return sorted(arrived for sensor in sensors for arrived in sensor.sent(until_us, chance))


def true_of_sensors(sensors: Sequence[Sensor], poll_us: int = 0) -> Declarations:
    """What holds by construction; to wait for the next poll is to be under way."""
    return Declarations(
        sensors={sensor.party: Sensors(max(sensor.deviation_us, 1), Fraction(SECOND)) for sensor in sensors},
        latencies_us={sensor.party: sensor.latency_us + poll_us for sensor in sensors},
    )


@dataclass(frozen=True, slots=True)
class Worker:
    """A source that draws numbers from a shared counter and needs some time for each."""

    stream: str
    least_us: int
    most_us: int
    latency_us: int = 0


def counted(workers: Sequence[Worker], until_us: int, seed: int) -> list[Arrived]:
    chance = np.random.default_rng(seed)
    free_us = {worker: START_US + int(chance.integers(1_000)) for worker in workers}
    result: list[Arrived] = []
    for token in range(1, 10**9):
        worker = min(workers, key=lambda one: (free_us[one], one.stream))
        drawn_us = free_us[worker]
        if drawn_us >= START_US + until_us:
            return sorted(result)
        sent_us = drawn_us + int(chance.integers(worker.least_us, worker.most_us + 1))
        free_us[worker] = sent_us + 1
        result.append(Arrived(sent_us + int(chance.integers(worker.latency_us + 1)), worker.stream, None, token))
    raise AssertionError


def true_of_workers(workers: Sequence[Worker], poll_us: int = 0) -> Declarations:
    return Declarations(
        counters={Party(worker.stream): Counter(worker.least_us, worker.most_us) for worker in workers},
        latencies_us={Party(worker.stream): worker.latency_us + poll_us for worker in workers},
    )


@dataclass(slots=True)
class Watched:
    """What became of it: of every tuple whether it was late, and at every poll how far the heartbeat was behind the
    clock.
    """

    late: list[bool] = field(default_factory=list)
    lags: list[int] = field(default_factory=list)
    last: int | None = None

    def late_fraction(self, warm_up: int = 0) -> float:
        return float(np.mean(self.late[warm_up:]))

    def lag(self, warm_up: int = 0) -> float:
        return float(np.mean(self.lags[warm_up:]))


def heartbeats_for(arrivals: Sequence[Arrived], declared: Declarations) -> Heartbeats:
    heartbeats = Heartbeats(declared)
    for name in sorted({arrived.stream for arrived in arrivals}):
        many = any(arrived.source is not None for arrived in arrivals if arrived.stream == name)
        heartbeats.define(Stream(name, (), TimeDomain.INTEGER, "at", source="who" if many else None), START_US)
    return heartbeats


def watched(arrivals: Sequence[Arrived], heartbeats: Heartbeats, poll_us: int = 1) -> Watched:
    """Hand over what arrives, poll by poll, and give out the heartbeat after each."""
    result = Watched()
    names = list(heartbeats.model.clocks.by_name)
    for poll, together in groupby(arrivals, key=lambda arrived: -(-arrived.at_us // poll_us)):
        now_us = poll * poll_us
        by_stream: dict[str, list[Arrived]] = {}
        for arrived in together:
            limit = heartbeats.stream(arrived.stream).promised()
            result.late.append(limit is not None and arrived.stamp <= limit)
            by_stream.setdefault(arrived.stream, []).append(arrived)
        for name, those in by_stream.items():
            sources = list(dict.fromkeys(arrived.source for arrived in those))
            positions = np.array([sources.index(arrived.source) for arrived in those])
            heartbeats.arrived(
                name, of_rows(sources, positions, np.array([arrived.stamp for arrived in those])), now_us
            )
        result.last = heartbeats.complete(names, now_us)
        if result.last is not None:
            result.lags.append(now_us - result.last)
            for name in names:
                heartbeats.promise(name, result.last)
    return result
