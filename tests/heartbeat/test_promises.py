"""The time manager against definitions written out naively: what is promised, who is waited for, whether a timeout is
needed.

Nothing here shares a computation with the manager. Bounds are kept pair by pair, every tuple is remembered, and every
question is answered by going through all of them: Figure 2, Theorem 3.3 and section 4 of the paper, and the rules of
silence, word for word.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from operator import or_
from typing import Literal

import numpy as np
import pytest

from headgate.catalog.catalog import Catalog
from headgate.catalog.declarations import Counter, Declarations, Enabling, Party, Sensors
from headgate.catalog.entries import Stream
from headgate.catalog.skew import Bounds, SkewBound, strongest
from headgate.cql.definitions import define
from headgate.heartbeat.arrivals import of_one
from headgate.heartbeat.manager import Heartbeats
from headgate.heartbeat.progress import missing_bound, progress
from headgate.ticks import Tick, TimeDomain

HOW: tuple[Literal["on demand", "every", "none"], ...] = ("on demand", "every", "none")
SETS = 100
"""How many random sets of declarations each test tries."""


def stream(name: str, many: bool = False, internal: bool = False) -> Stream:
    stamped = "internal" if internal else "external"
    return Stream(name, (), TimeDomain.TIMESTAMP, "at", stamped=stamped, source="who" if many else None)  # type: ignore[arg-type]


def levels(party: Party) -> list[Party]:
    return list(dict.fromkeys([party, Party(party.stream)]))


def manager(declared: Declarations, streams: Iterable[Stream], timeout_us: int | None = None) -> Heartbeats:
    heartbeats = Heartbeats(declared)
    heartbeats.model.clocks.estimating = False
    heartbeats.model.clocks.timeout_us = timeout_us
    heartbeats.model.clocks.generator.set_unit(1)
    for one in streams:
        heartbeats.define(one, now_us=0)
    return heartbeats


def say(heartbeats: Heartbeats, party: Party, stamp: Tick, now_us: int) -> None:
    heartbeats.arrived(party.stream, of_one(np.array([stamp]), party.source), now_us)


# what is drawn


def a_set(chance: random.Random, tuples: bool = True, most: int = 2) -> Bounds:
    found = []
    for _ in range(chance.randint(0, most)):
        within, delay = chance.choice([0, 0, 1, 3, 8]), chance.choice([0, 1, 2, 5])
        counted = tuples and delay and chance.random() < 0.4
        found.append(SkewBound(within, tuples=delay) if counted else SkewBound(within, after_us=delay))
    return strongest(found)


def drawn(chance: random.Random, parties: list[Party], tuples: bool = True, latencies: bool = True) -> Declarations:
    """Anything that can be declared of these streams and sources, often so much that no timeout is needed."""
    much = chance.random() < 0.6
    declared = Declarations()
    everyone = list(dict.fromkeys([*parties, *(Party(party.stream) for party in parties)]))
    for party in everyone:
        if chance.random() < (0.9 if much else 0.4):
            declared.disorders[party] = (SkewBound(0),) if much and chance.random() < 0.8 else a_set(chance, tuples)
        if latencies and chance.random() < 0.2:
            declared.latencies_us[party] = chance.randint(1, 4)
    for first, second in product(everyone, repeat=2):
        alone = first == second and (first.source is not None or first in parties)
        if not alone and chance.random() < (0.9 if much else 0.3):
            declared.skews[first, second] = (
                (SkewBound(0, after_us=3),) if much and chance.random() < 0.8 else a_set(chance, tuples)
            )
    environment = chance.random()
    for party in everyone if environment < (0.4 if tuples else 0.2) else ():
        if environment < 0.2:
            rate = chance.choice([None, Fraction(500_000), Fraction(3_000_000)])
            declared.sensors[party] = Sensors(chance.randint(0, 5), rate)
        else:
            least = chance.randint(0, 3)
            declared.counters[party] = Counter(least, least + chance.randint(0, 4))
    return declared


# whether a timeout is needed (Theorem 3.3)


def history_completes(declared: Declarations, streams: list[Stream], spoke: list[Party], last: Party) -> bool:
    """These sources speak, then one of them once more; then all pause for ever, and the clock is asked long after."""
    heartbeats = manager(declared, streams)
    heartbeats.enabling.set_date(0, 0)
    names = [one.name for one in streams]
    heartbeats.complete(names, 0)
    for turn, party in enumerate([*spoke, last]):
        now_us = 10 * turn
        internal = heartbeats.model.clocks[party.stream].stream.stamped == "internal"  # type: ignore[union-attr]
        say(heartbeats, party, heartbeats.enabling.stamp(now_us) if internal else turn and 100 + 50 * turn, now_us)
    largest = max(line.largest for line in heartbeats.model.clocks if line.largest is not None)
    later_us = 10**9
    for name in names:
        heartbeats.enabling.ask(name, later_us)
        heartbeats.enabling.beat(name, later_us)
    reached = heartbeats.complete(names, later_us)
    return reached is not None and reached >= largest


def test_a_timeout_is_called_needed_exactly_if_something_can_wait_for_ever() -> None:
    verdicts = {True: 0, False: 0}
    for seed in range(SETS):
        chance = random.Random(seed)
        streams = [stream("p"), stream("q", internal=chance.random() < 0.15), stream("s", many=True)]
        streams = chance.sample(streams, chance.randint(1, 3))
        parties = [Party(one.name) for one in streams if one.source is None and one.stamped == "external"]
        many = [one for one in streams if one.source is not None]
        named = [Party("s", source) for source in chance.sample("ab", chance.randint(0, 2))] if many else []
        declared = drawn(chance, [*parties, *named, *([Party("s")] if many and not named else [])])
        for one in streams:
            if chance.random() < 0.25:
                within = None if one.stamped == "internal" else chance.randint(0, 5)
                how = chance.choice(HOW)
                declared.enablings[one.name] = Enabling(how, 7, None if how == "none" else within)
            if one.stamped == "external" and chance.random() < 0.15:
                declared.calendar[one.name] = (SkewBound(3),)
        verdict = missing_bound(manager(declared, streams).model, [one.name for one in streams])
        unnamed = [Party("s", source) for source in "xy"] if many else []
        sources = [*(Party(one.name) for one in streams if one.source is None), *named, *unnamed]
        histories: list[tuple[list[Party], Party]] = [([], one) for one in sources]
        histories += [
            (chance.sample(sources, chance.randint(0, len(sources))), one) for one in sources for _ in range(3)
        ]
        histories += [([other, one], other) for one in sources for other in sources]
        completes = all(history_completes(declared, streams, spoke, last) for spoke, last in histories)
        assert (verdict is None) == completes, (seed, verdict)
        verdicts[completes] += 1
    assert min(verdicts.values()) > SETS // 12, verdicts


@pytest.mark.parametrize(
    "declared,missing",
    [
        (Declarations(disorders={Party("p"): (SkewBound(5), SkewBound(0, tuples=10))}), "p with itself"),
        (Declarations(disorders={Party("p"): (SkewBound(5), SkewBound(0, tuples=10), SkewBound(0, after_us=9))}), None),
    ],
)
def test_a_bound_after_so_many_tuples_never_takes_effect_once_all_pause(
    declared: Declarations, missing: str | None
) -> None:
    assert missing_bound(manager(declared, [stream("p")]).model, ["p"]) == missing


def test_the_clock_says_nothing_of_a_stream_that_has_never_spoken() -> None:
    declared = Declarations(disorders={Party("q"): (SkewBound(0),)}, enablings={"p": Enabling(within=5)})
    heartbeats = manager(declared, [stream("p"), stream("q")])
    assert missing_bound(heartbeats.model, ["p"]) is None
    assert missing_bound(heartbeats.model, ["p", "q"]) == "q to p"


# heartbeats


@dataclass
class Naive:
    """Every tuple that came, and everything that follows from it, pair by pair."""

    declared: Declarations
    streams: list[Stream]
    named_us: dict[Party, int]
    timeout_us: int | None
    came: list[tuple[int, Party, Tick]] = field(default_factory=list)
    said: list[tuple[int, Party, Tick]] = field(default_factory=list)

    def bounds(self, i: Party, j: Party) -> Bounds:
        """All that was declared of the pair."""
        known, found = self.declared, []
        if i == j:
            found += [bound for level in levels(j) for bound in known.disorders.get(level, ())]
        else:
            found += [bound for pair in product(levels(i), levels(j)) for bound in known.skews.get(pair, ())]
        one, other = ([known.sensors[level] for level in levels(party) if level in known.sensors] for party in (i, j))
        if one and other:
            ticks = one[0].deviation + other[0].deviation + 1
            found.append(SkewBound(ticks))
            if other[0].rate is not None:
                found.append(
                    SkewBound(0, after_us=-(-ticks * 1_000_000 * other[0].rate.denominator // other[0].rate.numerator))
                )
        first, second = (
            [known.counters[level] for level in levels(party) if level in known.counters] for party in (i, j)
        )
        if first and second:
            found += [SkewBound(0, after_us=max(second[0].most_us - first[0].least_us, 0)), SkewBound(0, tuples=1)]
            found += [SkewBound(0)] if i == j else []
        about = {
            party.stream
            for party in (*known.disorders, *known.sensors, *known.counters, *(to for _, to in known.skews))
        }
        if i == j and j.stream not in about:  # nothing is estimated here, so it counts as ordered
            found.append(SkewBound(1))
        return tuple(found)

    def latency_us(self, j: Party) -> int:
        known = self.declared.latencies_us
        return known.get(j, known.get(Party(j.stream), 0))

    def promised(self, j: Party, now_us: int) -> Tick | None:
        """Figure 2: up to when j is complete; None if nothing says so."""
        found = [upto for at_us, party, upto in self.said if party == j and at_us + self.latency_us(j) <= now_us]
        for position, (at_us, i, stamp) in enumerate(self.came):
            for bound in self.bounds(i, j):
                later = sum(party == j for _, party, _ in self.came[position + 1 :])
                assert not (bound.tuples and self.latency_us(j)), "a delay in tuples with a latency is not tried here"
                if later >= bound.tuples if bound.tuples else at_us + bound.after_us + self.latency_us(j) <= now_us:
                    found.append(stamp - bound.within)
        return max(found, default=None)

    def legal(self, j: Party, now_us: int) -> Tick | None:
        """The largest timestamp that j may not send any more so that it arrives now: it was sent as early as can be."""
        found = [upto for at_us, party, upto in self.said if party == j and at_us < now_us - self.latency_us(j)]
        for position, (at_us, i, stamp) in enumerate(self.came):
            for bound in self.bounds(i, j):
                later = sum(party == j for _, party, _ in self.came[position + 1 :])
                if later >= bound.tuples if bound.tuples else at_us + bound.after_us < now_us - self.latency_us(j):
                    found.append(stamp - bound.within)
        return max(found, default=None)

    def heard_us(self, j: Party) -> int | None:
        return max((at_us for at_us, party, _ in (*self.came, *self.said) if party == j), default=None)

    def known(self) -> list[Party]:
        """Who is waited for: streams of one source, sources that were named, and sources that have spoken."""
        alone = [Party(one.name) for one in self.streams if one.source is None]
        return list(dict.fromkeys([*alone, *self.named_us, *(party for _, party, _ in (*self.came, *self.said))]))

    def silent(self, j: Party, now_us: int) -> bool:
        heard_us = self.heard_us(j)
        last_us = self.named_us.get(j, 0) if heard_us is None else heard_us
        return self.timeout_us is not None and now_us - last_us >= self.timeout_us

    def told(self, j: Party, now_us: int) -> bool:
        """Whether another that speaks was declared to say in time how far j is."""
        speaking = [i for i in {party for _, party, _ in self.came} if i != j and not self.silent(i, now_us)]
        return any(not bound.tuples for i in speaking for bound in self.bounds(i, j))

    def heartbeat(self, now_us: int) -> Tick | None:
        known = self.known()
        units = [[j] for j in known]
        for (
            one
        ) in self.streams:  # until a source has spoken, unknown ones are waited for together with those that were named
            if one.source is not None and not any(party.stream == one.name for _, party, _ in (*self.came, *self.said)):
                units = [unit for unit in units if unit[0].stream != one.name]
                units.append([*(j for j in known if j.stream == one.name), Party(one.name, "somebody")])
        waiting = []
        for unit in units:
            promised = [self.promised(j, now_us) for j in unit]
            complete = None if None in promised else min(instant for instant in promised if instant is not None)
            told = [self.told(j, now_us) for j in unit]
            spoken_for = any(told) and all(map(or_, told, (instant is not None for instant in promised)))
            if spoken_for or not all(self.silent(j, now_us) for j in unit):
                waiting.append(complete)
        if not waiting:  # all are silent: everything that came is complete, and what everybody promised
            stamps = [stamp for _, _, stamp in self.came]
            promised = [self.promised(j, now_us) for j in known]
            if promised and None not in promised:
                stamps.append(min(instant for instant in promised if instant is not None))
            return max(stamps, default=None)
        return None if None in waiting else min(complete for complete in waiting if complete is not None)


def world(seed: int, timeout: bool, tuples: bool) -> tuple[random.Random, Heartbeats, Naive, list[Party]]:
    chance = random.Random(seed)
    streams = chance.sample([stream("p"), stream("q"), stream("s", many=True)], chance.randint(1, 3))
    many = any(one.source is not None for one in streams)
    alone = [Party(one.name) for one in streams if one.source is None]
    sources = [Party("s", source) for source in "abc"[: chance.randint(1, 3)]] if many else []
    named = [one for one in sources if not timeout or chance.random() < 0.5]
    declared = drawn(chance, [*alone, *named], tuples, latencies=not tuples)
    for one in named:  # so that it is named
        declared.disorders.setdefault(one, a_set(chance, tuples))
    timeout_us = chance.randint(4, 20) if timeout else None
    naive = Naive(declared, streams, dict.fromkeys(named, 0), timeout_us)
    return chance, manager(declared, streams, timeout_us), naive, [*alone, *sources]


@pytest.mark.parametrize("tuples", [False, True])
def test_heartbeats_of_many_streams_are_those_of_figure_2_and_of_the_rules_of_silence(tuples: bool) -> None:
    for seed in range(SETS):
        chance, heartbeats, naive, parties = world(seed, timeout=chance_of(seed), tuples=tuples)
        names = [one.name for one in naive.streams]
        assert heartbeats.complete(names, 0) == naive.heartbeat(0)
        now_us = 0
        for _ in range(14):
            now_us += chance.choice([1, 1, 2, 5, 11])
            party, stamp = chance.choice(parties), chance.randint(0, 60) + 2 * now_us
            if chance.random() < 0.8:
                naive.came.append((now_us, party, stamp))
                say(heartbeats, party, stamp, now_us)
            elif chance.random() < 0.5:
                naive.said.append((now_us, party, stamp))
                heartbeats.punctuated(party.stream, party.source, stamp, now_us)
            assert heartbeats.complete(names, now_us) == naive.heartbeat(now_us), (seed, now_us)


def chance_of(seed: int) -> bool:
    return seed % 3 > 0


@pytest.mark.parametrize("tuples", [False, True])
def test_a_tuple_that_keeps_to_the_bounds_is_never_late(tuples: bool) -> None:
    """Each tuple is the smallest that is allowed, or nearly. Nobody is silent, because there is no timeout."""
    checked = 0
    for seed in range(SETS):
        chance, heartbeats, naive, parties = world(seed, timeout=False, tuples=tuples)
        names = [one.name for one in naive.streams]
        now_us = 0
        for _ in range(16):
            now_us += chance.choice([1, 1, 2, 5])
            party = chance.choice(parties)
            limit = naive.legal(party, now_us)
            stamp = chance.randint(0, 40) if limit is None else limit + chance.choice([1, 1, 1, 2, 9, 30])
            given = heartbeats.stream(party.stream).promised()
            assert given is None or given < stamp, (seed, now_us, party)
            checked += given is not None
            naive.came.append((now_us, party, stamp))
            say(heartbeats, party, stamp, now_us)
            reached = heartbeats.complete(names, now_us)
            for name in names if reached is not None else ():
                heartbeats.promise(name, reached)  # type: ignore[arg-type]
    assert checked > 3 * SETS


# the example environments (section 4)


@pytest.mark.parametrize("rate", [None, Fraction(500_000), Fraction(3_000_000)])
def test_clocks_that_reach_their_deviation_are_never_late(rate: Fraction | None) -> None:
    """Clocks are put anywhere within their deviation at any time, mostly to its ends. With a rate the global one keeps
    to it.
    """
    moved = 0
    for seed in range(SETS):
        chance = random.Random(seed)
        parties = [Party("p"), Party("s", "a"), Party("s", "b")]
        declared = Declarations(sensors={party: Sensors(chance.randint(0, 6), rate) for party in parties})
        heartbeats = manager(declared, [stream("p"), stream("s", many=True)])
        now_us, shown = 0, Fraction(0)
        for _ in range(25):
            pause_us = chance.choice([0, 1, 1, 3, 9])
            now_us += pause_us
            least = pause_us * rate / 1_000_000 if rate is not None else Fraction(0)
            shown += least + chance.choice([0, 0, 1, 7])
            party = chance.choice(parties)
            deviation = declared.sensors[party].deviation
            stamp = int(shown // 1) + chance.choice([-deviation, deviation, chance.randint(-deviation, deviation)])
            given = heartbeats.stream(party.stream).promised()
            assert given is None or given < stamp, (seed, now_us, party, stamp, given)
            say(heartbeats, party, stamp, now_us)
            reached = heartbeats.complete(["p", "s"], now_us)
            for name in ("p", "s") if reached is not None else ():
                heartbeats.promise(name, reached)  # type: ignore[arg-type]
                moved += 1
    assert moved > 10 * SETS


def test_a_counters_tuples_are_never_late() -> None:
    for seed in range(SETS):
        chance = random.Random(seed)
        parties = [Party("p"), Party("q"), Party("s", "a"), Party("s", "b")]
        declared = Declarations()
        for party in parties:
            least = chance.randint(1, 4)
            declared.counters[party] = Counter(least, least + chance.randint(0, 9))
        sent, free_us = [], dict.fromkeys(parties, 0)
        for token in range(30):
            party = min(parties, key=lambda one: (free_us[one], one.stream, one.source or ""))
            counter = declared.counters[party]
            sent_us = free_us[party] + chance.choice([counter.least_us, counter.most_us])
            free_us[party] = sent_us
            sent.append((sent_us, token, party))
        heartbeats = manager(declared, [stream("p"), stream("q"), stream("s", many=True)])
        before_us = 0
        for sent_us, token, party in sorted(sent, key=lambda one: one[:2]):
            if sent_us > before_us and (reached := heartbeats.complete(["p", "q", "s"], sent_us - 1)) is not None:
                for name in "pqs":
                    heartbeats.promise(name, reached)
            before_us = sent_us
            given = heartbeats.stream(party.stream).promised()
            assert given is None or given < token, (seed, token)
            say(heartbeats, party, token, sent_us)


# silence between the sources of a stream


def test_a_silent_source_keeps_to_its_declared_skew() -> None:
    declared = Declarations(disorders={Party("s"): (SkewBound(1),)}, skews={(Party("s"), Party("s")): (SkewBound(95),)})
    heartbeats = manager(declared, [stream("s", many=True)], timeout_us=10)
    say(heartbeats, Party("s", "b"), 60, 0)
    say(heartbeats, Party("s", "a"), 100, 0)
    say(heartbeats, Party("s", "a"), 200, 11)
    assert heartbeats.complete(["s"], 11) == 105, "b may send 106, whatever its silence suggests"
    assert heartbeats.complete(["s"], 21) == 200, "unless all are silent"


def test_a_silent_stream_keeps_to_a_skew_that_has_not_taken_effect_yet() -> None:
    declared = Declarations(
        disorders={Party("p"): (SkewBound(1),)}, skews={(Party("p"), Party("q")): (SkewBound(0, after_us=20),)}
    )
    heartbeats = manager(declared, [stream("p"), stream("q")], timeout_us=10)
    assert heartbeats.complete(["p", "q"], 0) is None
    for now_us in range(0, 30, 2):
        say(heartbeats, Party("p"), 100 + now_us, now_us)
        expected = None if now_us < 20 else 100 + now_us - 20
        assert heartbeats.complete(["p", "q"], now_us) == expected, (
            "q may send 101 as long as p is declared to speak for it"
        )


def test_a_source_counts_from_the_statement_that_names_it() -> None:
    declared = Declarations(disorders={Party("s", "a"): (SkewBound(1),)})
    heartbeats = manager(declared, [stream("s", many=True)])
    say(heartbeats, Party("s", "a"), 50, 0)
    assert heartbeats.complete(["s"], 0) == 49
    declared.disorders[Party("s", "b")] = (SkewBound(1),)
    heartbeats.apply_declarations(5)
    say(heartbeats, Party("s", "a"), 100, 10)
    assert heartbeats.complete(["s"], 10) is None, "b is waited for"
    heartbeats.model.clocks.timeout_us = 10
    assert heartbeats.complete(["s"], 14) is None
    assert heartbeats.complete(["s"], 15) == 99, "it is silent since it was named"
    say(heartbeats, Party("s", "b"), 80, 16)
    assert heartbeats.complete(["s"], 16) == 79


def test_a_stream_that_the_engine_stamps_and_nobody_may_ask_about_is_named() -> None:
    catalog = Catalog()
    define(
        "CREATE STREAM i (v INT) TIMESTAMP INTERNAL; CREATE STREAM p (v INT, at TIMESTAMP) TIMESTAMP BY at;", catalog
    )
    define("DISORDER OF p (WITHIN 0);", catalog)
    assert str(progress(catalog, ["i"])).startswith("needs no timeout")
    assert "no bound within 0 is declared from i to p" in str(progress(catalog, ["i", "p"]))
    define("HEARTBEAT OF i NONE;", catalog)
    assert "only a later tuple of i says how far it is" in str(progress(catalog, ["i"]))
