"""The behaviours of sources that estimation is held to: how many tuples are late, and how far heartbeats are behind.

`PYTHONPATH=src:tests python -m tools.behaviours --seeds 1` prints the table of docs/time.md. All is simulated: the
clock is a number, so a run gives the same result every time. What arrives is polled, as an engine does, every 0.2 to 20
s.

The oracle knows the largest skew that the run will show: of any source with itself (its largest timestamp so far, less
the timestamp of a tuple that arrives), and of any source with any other. Its heartbeats follow from these two as from
DISORDER OF and SKEW. Stragglers are left out: those are late, and no bound is to wait for them. The oracle has no late
tuples but those, and gives no source up. The lag of a heartbeat is the engine's clock less the heartbeat, averaged over
the polls at which something arrived, from the first poll on at which both heartbeats are known.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Stream
from headgate.heartbeat.arrivals import NEVER, of_rows
from headgate.heartbeat.manager import Heartbeats
from headgate.ticks import TimeDomain
from tools.simulation import SECOND, START_US

MINUTE, HOUR = 60 * SECOND, 3_600 * SECOND

Numbers = NDArray[np.int64]
Chance = np.random.Generator


@dataclass(frozen=True, slots=True)
class Sent:
    """What one source sends: when each tuple arrives, and how it is stamped."""

    at_us: Numbers
    stamps: Numbers
    straggles: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class Behaviour:
    name: str
    sources: Callable[[Chance, float], Sequence[Sent]]
    """By chance, and by how much shorter the run is to be than in full: 1 is all of it."""

    streams: bool = False
    """Whether each source is a stream of its own; otherwise one stream holds them all, by SOURCE BY if there are
    several.
    """

    poll_us: int = 200_000
    timeout_us: int | None = None
    restarts: int = 0


def poisson(chance: Chance, rate: float, length_us: float) -> Numbers:
    """Instants of sending, so many a second on average."""
    count = int(rate * length_us / SECOND)
    return np.sort(chance.integers(0, int(length_us), count))


def regular(chance: Chance, rate: float, length_us: float) -> Numbers:
    """A stream whose tuples come at even distances, but for a tenth of them."""
    every = SECOND / rate
    return np.sort(
        np.arange(int(length_us / every)) * every + chance.uniform(0, every / 10, int(length_us / every))
    ).astype(np.int64)


def sent(
    chance: Chance, when: Numbers, mean_us: float, off_us: float | Numbers = 0, extra_us: float | Numbers = 0
) -> Sent:
    """On its way for a time that is exponential: few take long. Its clock is off by so much, its way longer by so
    much.
    """
    under_way = chance.exponential(mean_us, len(when)) + mean_us / 10
    at_us = START_US + when + (under_way + extra_us).astype(np.int64)
    return Sent(at_us, START_US + when + np.asarray(off_us, np.int64))


def held(one: Sent, from_us: int, until_us: int) -> Sent:
    """Nothing of it arrives in this time; what would have comes right after it, in its order."""
    at_us = one.at_us.copy()
    stuck = (at_us >= START_US + from_us) & (at_us < START_US + until_us)
    order = np.argsort(one.stamps[stuck], kind="stable")
    places = np.flatnonzero(stuck)[order]
    at_us[places] = START_US + until_us + np.arange(len(places)) * 200
    after = ~stuck & (at_us >= START_US + until_us)
    at_us[after] = np.maximum(at_us[after], START_US + until_us + len(places) * 200)
    return Sent(at_us, one.stamps)


def ordinary(rate: float, length_us: float, mean_us: float, sources: int = 2) -> Callable[[Chance, float], list[Sent]]:
    def made(chance: Chance, part: float) -> list[Sent]:
        return [sent(chance, poisson(chance, rate, length_us * part), mean_us) for _ in range(sources)]

    return made


def one_behind(chance: Chance, part: float) -> list[Sent]:
    """Six sources, one of which is 20 s behind from the start: the first minute."""
    return [sent(chance, poisson(chance, 100, MINUTE), 20_000, -20 * SECOND if one == 5 else 0) for one in range(6)]


def hiccups(rate: float, hours: int = 4) -> Callable[[Chance, float], list[Sent]]:
    """Every hour nothing arrives of one source for 20 s, and then all at once."""

    def made(chance: Chance, part: float) -> list[Sent]:
        one, *others = ordinary(rate, hours * HOUR, 1e6 / rate, 3)(chance, part)
        for hour in range(hours):
            one = held(one, int((hour + 0.7) * HOUR * part), int((hour + 0.7) * HOUR * part) + 20 * SECOND)
        return [one, *others]

    return made


def outage(chance: Chance, part: float) -> list[Sent]:
    """One of three sources is away for two minutes of twenty, and comes back with all it has, in order."""
    one, *others = ordinary(5, 20 * MINUTE, 200_000, 3)(chance, 1)
    return [held(one, 10 * MINUTE, 12 * MINUTE), *others]


def straggler(rate: float, length_us: float) -> Callable[[Chance, float], list[Sent]]:
    """One tuple is an hour late."""

    def made(chance: Chance, part: float) -> list[Sent]:
        one = sent(chance, poisson(chance, rate, length_us * part), SECOND / rate)
        stamps, straggles = one.stamps.copy(), np.zeros(len(one.stamps), bool)
        straggles[len(stamps) // 2] = True
        stamps[straggles] -= HOUR
        return [Sent(one.at_us, stamps, straggles)]

    return made


def bursts(chance: Chance, part: float) -> list[Sent]:
    """A hundred tuples within a tenth of a second, then nothing for five seconds or so; and a steady source."""
    starts = np.cumsum(chance.uniform(3 * SECOND, 7 * SECOND, int(120 * part)))
    when = np.sort((starts[:, np.newaxis] + chance.uniform(0, SECOND / 10, (len(starts), 100))).ravel()).astype(
        np.int64
    )
    return [sent(chance, when, 20_000), sent(chance, poisson(chance, 10, float(when[-1])), 20_000)]


def drifting(chance: Chance, part: float) -> list[Sent]:
    """Clocks that run apart by up to a second in 5 minutes, then are set right."""
    found = []
    for number in range(4):
        when = poisson(chance, 5, 20 * MINUTE * part)
        since = (when + number * MINUTE) % (5 * MINUTE)
        found.append(sent(chance, when, 50_000, (-1) ** number * since / (5 * MINUTE) * SECOND))
    return found


def spikes(chance: Chance, part: float) -> list[Sent]:
    """Every five minutes the way is longer by 2 s, for 5 s."""
    when = poisson(chance, 20, 30 * MINUTE * part)
    return [sent(chance, when, 50_000, extra_us=np.where(when % (5 * MINUTE) > 5 * MINUTE - 5 * SECOND, 2 * SECOND, 0))]


def changing(chance: Chance, part: float) -> list[Sent]:
    """A hundred a second, then one a second, then a hundred again; the other stays at ten."""
    third = int(3 * MINUTE * part)
    rates = [poisson(chance, rate, third) + number * third for number, rate in enumerate((100, 1, 100))]
    return [sent(chance, np.concatenate(rates), 100_000), sent(chance, poisson(chance, 10, 3 * third), 100_000)]


def diurnal(chance: Chance, part: float) -> list[Sent]:
    """A day, at night a tuple every 80 s, at noon one every two seconds."""
    found = []
    for _ in range(2):
        when = poisson(chance, 0.5, 24 * HOUR * part)
        kept = chance.random(len(when)) < 0.025 + 0.975 * np.sin(np.pi * when / (24 * HOUR)) ** 2
        found.append(sent(chance, when[kept], 500_000))
    return found


def unlike(chance: Chance, part: float) -> list[Sent]:
    """Twenty a second, and a tuple every ten seconds."""
    length = 2 * HOUR * part
    return [sent(chance, poisson(chance, 20, length), 50_000), sent(chance, poisson(chance, 0.1, length), 50_000)]


def even(chance: Chance, part: float) -> list[Sent]:
    """Sent at even distances, on the way for up to 200 ms and no longer."""
    when = regular(chance, 50, 4 * MINUTE * part)
    return [Sent(START_US + when + chance.integers(0, 200_000, len(when)), START_US + when) for _ in range(2)]


BEHAVIOURS = [
    Behaviour("1,000 tuples a second", ordinary(500, MINUTE, 20_000)),
    Behaviour("100 a second", ordinary(50, 3 * MINUTE, 20_000)),
    Behaviour("10 a second", ordinary(5, 15 * MINUTE, 100_000), poll_us=500_000),
    Behaviour("1 a second", ordinary(0.5, 3 * HOUR, 1_000_000), poll_us=2_000_000),
    Behaviour("0.1 a second", ordinary(0.05, 30 * HOUR, 10_000_000), poll_us=20_000_000),
    Behaviour("even distances, disorder up to 200 ms", even),
    Behaviour("the first 60 s at 100 a second", ordinary(50, MINUTE, 20_000)),
    Behaviour("the first 60 s, one of six sources 20 s behind", one_behind),
    Behaviour("a hiccup of 20 s every hour, 12 a second", hiccups(4, 2), poll_us=2_000_000),
    Behaviour("a hiccup of 20 s every hour, 3 a second", hiccups(1, 4), poll_us=2_000_000),
    Behaviour("back from an outage of 2 min", outage, poll_us=500_000),
    Behaviour("back from an outage of 2 min, separate streams", outage, streams=True, poll_us=500_000),
    Behaviour("back from an outage of 2 min, TIMEOUT 5 minutes", outage, poll_us=500_000, timeout_us=5 * MINUTE),
    Behaviour("given up by TIMEOUT 30 seconds, then back", outage, poll_us=500_000, timeout_us=30 * SECOND),
    Behaviour("one straggler an hour late, 100 a second", straggler(100, 3 * MINUTE)),
    Behaviour("one straggler an hour late, 1 a second", straggler(1, 3 * HOUR), poll_us=2_000_000),
    Behaviour("bursts and pauses beside a steady source", bursts),
    Behaviour("drifting clocks", drifting, poll_us=500_000),
    Behaviour("spikes", spikes, poll_us=500_000),
    Behaviour("a stream that changes its rate", changing),
    Behaviour("day and night", diurnal, poll_us=10_000_000),
    Behaviour("a busy source and a quiet one", unlike, poll_us=2_000_000),
    Behaviour("a busy stream and a quiet one", unlike, streams=True, poll_us=2_000_000),
    Behaviour("200 sources of 0.1 a second", ordinary(0.1, 30 * MINUTE, 500_000, 200), poll_us=500_000),
    Behaviour("three streams of 5 a second", ordinary(5, 15 * MINUTE, 50_000, 3), streams=True, poll_us=500_000),
    Behaviour(
        "three streams of 5 a second, restarted six times",
        ordinary(5, 15 * MINUTE, 50_000, 3),
        streams=True,
        poll_us=500_000,
        restarts=6,
    ),
]


@dataclass(frozen=True, slots=True)
class Run:
    """All arrivals in their order."""

    at_us: Numbers
    source: Numbers
    stamps: Numbers
    straggles: NDArray[np.bool_]
    sources: int


def run_of(behaviour: Behaviour, seed: int, part: float) -> Run:
    sources = behaviour.sources(np.random.default_rng(seed), part)
    at_us, stamps = np.concatenate([one.at_us for one in sources]), np.concatenate([one.stamps for one in sources])
    source = np.repeat(np.arange(len(sources)), [len(one.at_us) for one in sources])
    late = [np.zeros(len(one.at_us), bool) if one.straggles is None else one.straggles for one in sources]
    order = np.argsort(at_us, kind="stable")
    return Run(at_us[order], source[order], stamps[order], np.concatenate(late)[order], len(sources))


def oracle(run: Run, ends: Numbers) -> Numbers:
    """The oracle's heartbeat after each poll, of which `ends` has the last tuple; NEVER until all sources have
    spoken.
    """
    here = ~run.straggles
    largest = np.full((run.sources, len(run.stamps)), NEVER)
    for source in range(run.sources):
        largest[source] = np.maximum.accumulate(np.where(here & (run.source == source), run.stamps, NEVER))
    before = np.roll(largest, 1, axis=1)
    before[:, 0] = NEVER
    mine = before[run.source, np.arange(len(run.stamps))]
    before[run.source, np.arange(len(run.stamps))] = NEVER
    others = before.max(axis=0)
    own_skew, others_skew = (int((seen - run.stamps)[here].max(initial=0)) + 1 for seen in (mine, others))
    now = largest[:, ends]
    two = np.sort(now, axis=0)[-2:]
    of_others = np.where(now == two[-1], two[0], two[-1]) if run.sources > 1 else np.full_like(now, NEVER)
    promised = np.maximum(now - own_skew, of_others - others_skew)
    heard = now > NEVER
    reached = np.where(heard, promised, 2**62).min(axis=0)
    return np.maximum.accumulate(np.where(heard.all(axis=0), reached, NEVER))


def streams_of(behaviour: Behaviour, run: Run) -> list[str]:
    return [f"s{source}" for source in range(run.sources)] if behaviour.streams else ["s"]


def played(behaviour: Behaviour, run: Run, polls: Numbers, starts: Numbers) -> tuple[float, dict[int, int]]:
    """Hand over what arrives poll by poll, and give out the heartbeat after each: the part that is late, and how far
    the heartbeat is behind the clock after each poll at which there is one.
    """
    names = streams_of(behaviour, run)
    defined = [
        Stream(name, (), TimeDomain.INTEGER, "at", source="who" if run.sources > len(names) else None) for name in names
    ]

    def begun() -> Heartbeats:
        heartbeats = Heartbeats()
        for stream in defined:
            heartbeats.define(stream, START_US)
        heartbeats.model.clocks.timeout_us = behaviour.timeout_us
        return heartbeats

    catalog, heartbeats = Catalog(), begun()
    catalog.streams = {stream.name: stream for stream in defined}
    late = np.zeros(len(polls), bool)
    behind: dict[int, int] = {}
    restarts = {len(starts) * number // (behaviour.restarts + 1) for number in range(1, behaviour.restarts + 1)}
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(polls)], strict=True)):
        now_us = int(polls[start]) * behaviour.poll_us
        if number in restarts:
            state, heartbeats = heartbeats.save(), begun()
            heartbeats.restore(state, catalog)
        source, stamps = run.source[start:end], run.stamps[start:end]
        for position, name in enumerate(names):
            mine = source == position if behaviour.streams else np.ones(end - start, bool)
            limit = heartbeats.stream(name).promised()
            late[start:end] |= mine & (stamps <= (NEVER if limit is None else limit))
            if mine.any():
                known, positions = np.unique(source[mine], return_inverse=True)
                who = [None] if defined[position].source is None else [f"n{one}" for one in known.tolist()]
                heartbeats.arrived(name, of_rows(who, positions.astype(np.intp), stamps[mine]), now_us)
        reached = heartbeats.complete(names, now_us)
        if reached is not None:
            behind[number] = now_us - reached
            for name in names:
                heartbeats.promise(name, reached)
    return float(late.mean()), behind


@dataclass(frozen=True, slots=True)
class Compared:
    late: float
    lag_us: float
    oracle_us: float


def compared(behaviour: Behaviour, seed: int, part: float = 1.0) -> Compared:
    run = run_of(behaviour, seed, part)
    polls = -(-run.at_us // behaviour.poll_us)
    starts = np.flatnonzero(np.diff(polls, prepend=-1))
    late, behind = played(behaviour, run, polls, starts)
    known = oracle(run, np.append(starts[1:], len(polls)) - 1)
    both = np.array([poll for poll in behind if known[poll] > NEVER // 2])
    oracle_us = polls[starts[both]] * behaviour.poll_us - known[both]
    return Compared(late, float(np.mean([behind[poll] for poll in both])), float(oracle_us.mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description="How well estimation does, behaviour by behaviour.")
    parser.add_argument(
        "numbers", nargs="*", type=int, default=range(len(BEHAVIOURS)), help="of the behaviours to run, from 0"
    )
    parser.add_argument("--seeds", type=int, default=3, help="how often each is run, by other chances")
    parser.add_argument("--part", type=float, default=1.0, help="how much of it is run")
    asked = parser.parse_args()
    print("| behaviour | late | heartbeat behind the clock | the oracle's |\n| --- | --- | --- | --- |")
    for behaviour in (BEHAVIOURS[number] for number in asked.numbers):
        runs = [compared(behaviour, seed, asked.part) for seed in range(asked.seeds)]
        late, lag_us, oracle_us = (
            float(np.mean([getattr(run, of) for run in runs])) for of in ("late", "lag_us", "oracle_us")
        )
        print(f"| {behaviour.name} | {late:.3%} | {lag_us / SECOND:.3g} s | {oracle_us / SECOND:.3g} s |", flush=True)


if __name__ == "__main__":
    main()
