"""What WHY foretells comes true: whatever it says would release a query is done, and does; and nothing less would have.

Every check plays the same history to a new time manager, so nothing depends on the copies in which WHY tries things
itself.
"""

from __future__ import annotations

import random
from collections import Counter as Tally
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from heartbeat.test_promises import HOW, a_set, drawn, stream

from headgate.catalog.declarations import Declarations, Enabling, Grouping, Party
from headgate.catalog.entries import Stream
from headgate.catalog.skew import SkewBound
from headgate.heartbeat.arrivals import of_one, of_rows
from headgate.heartbeat.held import Held, held_back
from headgate.heartbeat.manager import Heartbeats
from headgate.heartbeat.releases import Release, releases
from headgate.scope import Scope, Scopes
from headgate.ticks import Tick, TimeDomain

WORLDS = 150
LONG_US = 10**9


@dataclass
class History:
    """What was declared and what happened, to be played as often as one likes."""

    declared: Declarations
    streams: list[Stream]
    timeout_us: int | None
    estimating: bool
    events: list[tuple[Any, ...]] = field(default_factory=list)
    now_us: int = 0
    scopes: Scopes = field(default_factory=dict)
    """The sources that the query can see, where these are not all."""

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.streams]

    def played(self) -> Heartbeats:
        heartbeats = Heartbeats(
            Declarations(**{name: dict(getattr(self.declared, name)) for name in Declarations.__slots__})
        )
        heartbeats.model.clocks.estimating, heartbeats.model.clocks.timeout_us = self.estimating, self.timeout_us
        heartbeats.model.clocks.generator.set_unit(1)
        for one in self.streams:
            heartbeats.define(one, now_us=0)
        heartbeats.enabling.set_date(0, 0)
        heartbeats.complete(self.names, 0)
        for what, *rest in self.events:
            getattr(self, f"_{what}")(heartbeats, *rest)
        return heartbeats

    def _tuple(self, heartbeats: Heartbeats, party: Party, stamp: Tick, now_us: int) -> None:
        heartbeats.arrived(party.stream, of_one(np.array([stamp]), party.source), now_us)

    def _promise(self, heartbeats: Heartbeats, party: Party, upto: Tick, now_us: int) -> None:
        heartbeats.punctuated(party.stream, party.source, upto, now_us)

    def _asked(self, heartbeats: Heartbeats, now_us: int) -> None:
        for name in self.names:
            heartbeats.enabling.ask(name, now_us)
            heartbeats.enabling.beat(name, now_us)

    def _given(self, heartbeats: Heartbeats, now_us: int) -> None:
        reached = heartbeats.complete(self.names, now_us, scopes=self.scopes)
        for name in self.names if reached is not None else ():
            heartbeats.promise(name, reached, self.scopes.get(name))  # type: ignore[arg-type]

    def _paused(self, heartbeats: Heartbeats, name: str, now_us: int) -> None:
        heartbeats.pause(name, now_us)


def drawn_history(seed: int) -> History:
    chance = random.Random(seed)
    streams = chance.sample(
        [stream("p"), stream("q"), stream("s", many=True), stream("i", internal=True)], chance.randint(1, 3)
    )
    if all(one.stamped == "internal" for one in streams):
        streams.append(stream("p"))
    outside = [one for one in streams if one.stamped == "external"]
    many = any(one.source is not None for one in outside)
    named = [Party("s", source) for source in "abc" if chance.random() < 0.3] if many else []
    alone = [Party(one.name) for one in outside if one.source is None]
    estimating = chance.random() < 0.3
    declared = Declarations() if estimating else drawn(chance, [*alone, *named])
    for one in streams:
        if chance.random() < 0.25:
            how = chance.choice(HOW)
            within = None if one.stamped == "internal" or how == "none" else chance.randint(0, 9)
            declared.enablings[one.name] = Enabling(how, 7 if how == "every" else 0, within)
        if one.stamped == "external" and chance.random() < 0.1:
            declared.calendar[one.name] = (SkewBound(chance.randint(0, 9)),)
    timeout_us = chance.choice([None, None, 10, 40])
    history = History(declared, streams, timeout_us, estimating)
    parties = [*alone, *(Party("s", source) for source in "abc" if many)]
    for _ in range(chance.randint(1, 12)):
        history.now_us += chance.choice([1, 1, 2, 5, 15])
        party, luck = (
            chance.choice([*parties, *(Party(one.name) for one in streams if one.stamped == "internal")]),
            chance.random(),
        )
        if party.stream == "i":
            history.events.append(("tuple", party, history.now_us, history.now_us))
        elif luck < 0.75:
            history.events.append(("tuple", party, chance.randint(0, 40) + history.now_us, history.now_us))
        elif luck < 0.8:
            history.events.append(("promise", party, chance.randint(0, 40) + history.now_us, history.now_us))
        elif luck < 0.9:
            history.events.append(("asked", history.now_us))
        else:
            history.events.append(("given", history.now_us))
    if chance.random() < 0.1 and outside:
        history.events.append(("paused", chance.choice(outside).name, history.now_us))
    history.now_us += chance.choice([0, 1, 4])
    if many and seed % 3:
        declared.groupings["s"] = Grouping(
            sets=chance.choice([(("a",), ("b",)), (("a", "b"),), (("a", "x"), ("c",)), (("x",),)])
        )
        history.scopes = {"s": Scope(frozenset(chance.choice(["a", "b", "ac", "x"])), chance.random() < 0.2)}
    return history


def reaches(heartbeats: Heartbeats, history: History, held: Held, at_us: int) -> bool:
    reached = heartbeats.complete(history.names, at_us, scopes=history.scopes)
    return reached is not None and reached >= held.goal


def by_waiting(history: History, held: Held, at_us: int, clock: bool) -> bool:
    heartbeats = history.played()
    if clock:
        history._asked(heartbeats, at_us)
    return reaches(heartbeats, history, held, at_us)


def by_tuples(history: History, held: Held, release: Release, less: int, at_us: int, chance: random.Random) -> bool:
    heartbeats = history.played()
    for name in history.names:
        those = [(source, stamp) for of, source, stamp in release.tuples if of == name]
        if those:
            stamps = [chance.randint(-500, 500) if stamp is None else stamp - less for _, stamp in those]
            arrivals = of_rows([source for source, _ in those], np.arange(len(those)), np.array(stamps))
            heartbeats.arrived(name, arrivals, history.now_us)
    return reaches(heartbeats, history, held, at_us)


def by_statement(history: History, held: Held, statement: str) -> bool:
    if statement == "TIMEOUT":
        return reaches(replace(history, timeout_us=9).played(), history, held, history.now_us + LONG_US)
    heartbeats = history.played()
    words = statement.split()
    if words[:2] == ["SKEW", "FROM"] and words[2] != "CLOCK":
        heartbeats.model.declarations.skews[Party(words[2]), Party(words[4])] = (SkewBound(0),)
        heartbeats.apply_declarations(history.now_us)
        return reaches(heartbeats, history, held, history.now_us)
    if words[0] == "SKEW":
        heartbeats.model.declarations.calendar[words[4]] = (SkewBound(0),)
    else:
        before = heartbeats.model.declarations.enabling(words[2])
        within = 0 if "WITHIN" in words else before.within
        heartbeats.model.declarations.enablings[words[2].rstrip(";")] = Enabling(within=within, tick_us=Fraction(1))
    heartbeats.apply_declarations(history.now_us)
    history._asked(heartbeats, history.now_us + LONG_US)
    return reaches(heartbeats, history, held, history.now_us + LONG_US)


def check(history: History, held: Held, release: Release, chance: random.Random) -> str:
    """Do what is foretold; the kind of sentence that it was."""
    now_us, text = history.now_us, release.text
    if release.tuples:
        at_us = now_us if release.at_us is None else release.at_us
        assert by_tuples(history, held, release, 0, at_us, chance), text
        assert not by_waiting(history, held, at_us, clock=False), f"without it as well: {text}"
        if release.tuples[0][2] is not None and at_us == now_us and "later tuple" not in text:
            assert not by_tuples(history, held, release, 1, at_us, chance), text
        return "tuples" if len(release.tuples) > 1 else "any tuple" if release.tuples[0][2] is None else "a tuple"
    if release.statement:
        assert by_statement(history, held, release.statement), text
        return release.statement.split()[0]
    assert release.at_us is not None
    clock = not text.startswith(("a promise", "the timeout"))
    assert by_waiting(history, held, release.at_us, clock), text
    if release.at_us > now_us:
        assert not by_waiting(history, held, release.at_us - 1, clock), text
    return text.split(", in")[0].split(" that")[0]


def test_what_is_foretold_comes_true_and_nothing_less_would_do() -> None:
    said: Tally[str] = Tally()
    for seed in range(WORLDS):
        history, chance = drawn_history(seed), random.Random(seed)
        heartbeats = history.played()
        held = held_back(heartbeats.model, history.names, history.now_us, history.scopes)
        if held is None or held.holder() is None:
            continue
        reached = heartbeats.complete(history.names, history.now_us, scopes=history.scopes)
        assert reached is None or reached < held.goal
        holder = held.holder()
        assert holder is not None
        standing = heartbeats.model.waiting.standing(
            holder.name, history.now_us, history.names, scope=history.scopes.get(holder.name)
        )
        assert standing.complete is None or standing.complete < held.goal, "the holder does hold it back"
        found = releases(held)
        waited_for = {name: one.of for name, one in held.standings.items() if one.of is not None}
        sources = [(name, source) for release in found for name, source, _ in release.tuples if name in waited_for]
        assert all(source in waited_for[name] for name, source in sources), "other groups are not asked for anything"
        if holder.paused:
            assert all(release.text.startswith("reading it again") for release in found)
            continue
        try:
            said.update(check(history, held, release, chance) for release in found)
        except AssertionError as error:
            raise AssertionError(f"in world {seed}") from error
        waits = by_waiting(history, held, history.now_us + LONG_US, clock=False)
        foretold = any(not release.tuples and not release.statement for release in found)
        assert foretold or not waits, f"in world {seed} waiting helps, and it is not said"
        again = heartbeats.complete(history.names, history.now_us, scopes=history.scopes)
        assert again == reached, "nothing is changed by asking"
    assert {"a promise", "the timeout", "a tuple", "tuples", "the clock", "TIMEOUT", "SKEW", "HEARTBEAT"} <= {*said}, (
        said
    )


def test_any_tuple_helps_where_a_bound_waits_for_one() -> None:
    history = History(Declarations(disorders={Party("p"): (SkewBound(0, tuples=1),)}), [stream("p")], None, False)
    history.events = [("tuple", Party("p"), 100, 0)]
    held = held_back(history.played().model, ["p"], 0, {})
    assert held is not None
    (release,) = (one for one in releases(held) if one.tuples)
    assert release.text == "a tuple of p"
    assert check(history, held, release, random.Random(1)) == "any tuple"


def test_a_paused_stream_is_released_by_reading_it_again_and_by_what_then_helps() -> None:
    history = History(
        Declarations(disorders={Party("p"): a_set(random.Random(1)) or (SkewBound(1),)}), [stream("p")], None, False
    )
    history.events = [("tuple", Party("p"), 100, 0), ("paused", "p", 0)]
    heartbeats = history.played()
    held = held_back(heartbeats.model, ["p"], 5, {})
    assert held is not None
    assert [one.text.split(",")[0] for one in releases(held)][:1] == ["reading it again"]


ENDS = {
    "year 1": -62_135_596_800_000_000,
    "year 9999": 253_402_300_799_999_999,
}


@pytest.mark.parametrize("end", ENDS)
def test_the_ends_of_timestamp_have_words(end: str) -> None:
    declared = Declarations(
        disorders={Party("p"): (SkewBound(86_400_000_001),), Party("q"): (SkewBound(86_400_000_001),)}
    )
    for first in (ENDS[end], ENDS[end] // 2):
        history = History(declared, [stream("p"), stream("q")], None, False)
        history.events = [("tuple", Party("p"), first, 0), ("tuple", Party("q"), ENDS[end], 0)]
        text = str(history.played().explain("q", ["p", "q"], None, {"p": 1, "q": 1}, 0))
        assert "held back by p" in text or "held back by q" in text
    assert TimeDomain.TIMESTAMP.moment(ENDS[end]).year in (1, 9999)
