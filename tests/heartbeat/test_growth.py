"""What the time manager keeps does not grow for as long as it runs: counted in entries, not timed."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest
from heartbeat.test_promises import manager, say, stream

from headgate.catalog.catalog import Catalog
from headgate.catalog.declarations import Declarations, Grouping, Party
from headgate.catalog.entries import Stream
from headgate.catalog.skew import SkewBound
from headgate.heartbeat.arrivals import of_rows
from headgate.heartbeat.intake import FORGOTTEN_AFTER
from headgate.heartbeat.manager import Heartbeats
from headgate.heartbeat.stream_clock import FEW_SOURCES
from headgate.scope import Scope

MANY = Party("s")


def entries(heartbeats: Heartbeats) -> int:
    """How many numbers of sources and of delays are kept."""
    cohorts = heartbeats.model.clocks.generator.cohorts.values()
    lines = heartbeats.model.clocks
    waiting = sum(
        len(delayed) for cohort in cohorts for delayed in (*cohort._delayed.values(), *cohort.promised_by_count())
    )
    arrays = sum(len(cohort._delayed) + len(cohort._counted) + 1 for cohort in cohorts)
    return sum(len(line.table.sources) for line in lines) + waiting + sum(cohort.size for cohort in cohorts) * arrays


def seen(heartbeats: Heartbeats, first: int, count: int, now_us: int) -> None:
    heartbeats.arrived(
        "s",
        of_rows([f"d{n}" for n in range(first, first + count)], np.arange(count), np.arange(count) + now_us),
        now_us,
    )


BOUNDS = {
    "nothing": Declarations(disorders={MANY: (SkewBound(5),)}),
    "time": Declarations(disorders={MANY: (SkewBound(5), SkewBound(0, after_us=30))}, latencies_us={MANY: 3}),
    "tuples": Declarations(disorders={MANY: (SkewBound(5), SkewBound(0, tuples=2))}),
    "others": Declarations(
        disorders={MANY: (SkewBound(5),)}, skews={(MANY, MANY): (SkewBound(50), SkewBound(9, after_us=20))}
    ),
}


@pytest.mark.parametrize("bounds", BOUNDS)
def test_a_hundred_thousand_sources_that_come_and_go_are_forgotten(bounds: str) -> None:
    heartbeats = manager(BOUNDS[bounds], [stream("s", many=True)], timeout_us=10)
    most = 0
    for turn in range(100):
        seen(heartbeats, 1_000 * turn, 1_000, 100 * turn)
        heartbeats.complete(["s"], 100 * turn)
        most = max(most, entries(heartbeats))
    line = heartbeats.model.clocks["s"]
    assert line.table.forgotten + len(line.table.sources) == 100_000
    assert len(line.table.sources) < 5_000
    assert most < 60_000
    assert len(json.dumps(heartbeats.save())) < 400_000


def test_without_a_timeout_a_source_that_spoke_is_waited_for() -> None:
    heartbeats = manager(BOUNDS["nothing"], [stream("s", many=True)])
    for turn in range(5):
        seen(heartbeats, 1_000 * turn, 1_000, 100 * turn)
    assert len(heartbeats.model.clocks["s"].table.sources) == 5_000
    assert heartbeats.complete(["s"], 10**6) == -5, "d0 is still at 0"


def test_finished_sources_are_forgotten_and_named_ones_are_not() -> None:
    declared = Declarations(disorders={MANY: (SkewBound(5),), Party("s", "d7"): (SkewBound(9),)})
    heartbeats = manager(declared, [stream("s", many=True)])
    for turn in range(10):
        seen(heartbeats, 1_000 * turn, 1_000, 100 * turn)
        heartbeats.model.intake.punctuated(
            "s", {f"d{n}": 2**62 for n in range(1_000 * turn, 1_000 * turn + 1_000)}, 100 * turn
        )
    line = heartbeats.model.clocks["s"]
    assert len(line.table.sources) < 4 * FEW_SOURCES
    assert "d7" in line.table.sources


def test_sources_that_only_send_heartbeats_are_forgotten_too() -> None:
    heartbeats = manager(BOUNDS["nothing"], [stream("s", many=True)], timeout_us=10)
    for turn in range(20):
        heartbeats.model.intake.punctuated(
            "s", {f"d{n}": turn for n in range(1_000 * turn, 1_000 * turn + 1_000)}, 200 * turn
        )
    assert len(heartbeats.model.clocks["s"].table.sources) < 4 * FEW_SOURCES


@pytest.mark.parametrize("bounds", BOUNDS)
def test_forgetting_changes_no_heartbeat_until_a_source_comes_back_and_then_only_holds_it_back(bounds: str) -> None:
    forgot = 0
    for seed in range(40):
        chance = random.Random(seed)
        remembering, forgetting = (manager(BOUNDS[bounds], [stream("s", many=True)], timeout_us=10) for _ in range(2))
        now_us, came_back, fresh = 0, False, 0
        known: dict[str, int] = {}
        for _ in range(60):
            now_us += chance.choice([1, 3, 8, 30])
            alive = [name for name, heard_us in known.items() if now_us - heard_us < 10 * FORGOTTEN_AFTER]
            name = chance.choice(alive) if alive and chance.random() < 0.8 else f"d{fresh}"
            if chance.random() < 0.02 and known:
                name = chance.choice(list(known))
            came_back |= name in known and name not in alive
            fresh += name == f"d{fresh}"
            known[name] = now_us
            stamp = now_us + chance.randint(0, 5)
            for heartbeats in (remembering, forgetting):
                say(heartbeats, Party("s", name), stamp, now_us)
            forgetting.model.clocks["s"].forget_at = 1
            before, after = remembering.complete(["s"], now_us), forgetting.complete(["s"], now_us)
            if came_back:
                assert after is None or (before is not None and after <= before), seed
            else:
                assert after == before, (seed, now_us)
        forgot += forgetting.model.clocks["s"].table.forgotten
    assert forgot > 100


@pytest.mark.parametrize("bounds", BOUNDS)
def test_forgetting_keeps_no_reader_of_a_group_waiting(bounds: str) -> None:
    """For readers of groups that are named it changes nothing. The rest, from which all may be gone, then follows the
    stream.
    """
    readers = [
        Scope(frozenset(some), others)
        for some, others in ((("d0",), False), (("d2",), False), (("d0", "d1", "d2"), True))
    ]
    forgot = 0
    for seed in range(20):
        chance = random.Random(seed)
        declared = [replace(BOUNDS[bounds], groupings={"s": Grouping(sets=(("d0", "d1"), ("d2",)))}) for _ in range(2)]
        timeout_us = 10 if seed % 2 else None
        remembering, forgetting = (manager(one, [stream("s", many=True)], timeout_us=timeout_us) for one in declared)
        now_us, finished = 0, set[str]()
        for turn in range(80):
            now_us += chance.choice([1, 3, 8])
            name = chance.choice([f"d{turn // 8 + chance.randrange(4)}", f"d{chance.randrange(3)}"])
            done = chance.random() < 0.1
            for heartbeats in (remembering, forgetting) if name not in finished else ():
                say(heartbeats, Party("s", name), now_us + turn % 5, now_us)
                if done:
                    heartbeats.punctuated("s", name, 2**62, now_us)
            finished |= {name} if done else set()
            forgetting.model.clocks["s"].forget_at = 1
            for reader in readers:
                found = [one.complete(["s"], now_us, scopes={"s": reader}) for one in (remembering, forgetting)]
                if not reader.others:
                    assert found[0] == found[1], (seed, turn, reader)
                elif found[0] is not None:
                    assert found[1] is not None, (seed, turn, reader)
                for heartbeats, reached in zip((remembering, forgetting), found, strict=True):
                    if reached is not None:
                        heartbeats.promise("s", reached, reader)
        forgot += forgetting.model.clocks["s"].table.forgotten
    assert forgot > 50


def test_who_is_forgotten_leaves_a_group_that_was_formed_by_likeness() -> None:
    heartbeats = manager(Declarations(groupings={"s": Grouping(count=2)}), [stream("s", many=True)])
    heartbeats.model.clocks.estimating = True
    for turn in range(600):
        say(heartbeats, Party("s", "ab"[turn % 2]), 1_000 + turn, turn)
        say(heartbeats, Party("s", "xy"[turn % 2]), turn, turn)
    line, reader = heartbeats.model.clocks["s"], Scope(frozenset("x"))
    assert line.waited_for(reader) == Scope(frozenset("xy"))
    for source in "xy":
        heartbeats.finish("s", source, 600)
    line.forget_at = 1
    say(heartbeats, Party("s", "a"), 2_000, 700)
    assert {*line.table.sources} == {"a", "b"}
    assert heartbeats.complete(["s"], 700, scopes={"s": reader}) is not None


def test_delays_that_no_bound_needs_any_more_are_not_kept() -> None:
    heartbeats = manager(Declarations(), [stream("p"), stream("q")])
    declared = heartbeats.model.declarations
    kept = []
    for number in range(1, 200):
        declared.disorders[Party("p")] = (SkewBound(5), SkewBound(0, after_us=10 * number), SkewBound(1, tuples=number))
        declared.skews[Party("q"), Party("p")] = (
            SkewBound(5),
            SkewBound(0, tuples=number),
            SkewBound(1, after_us=7 * number),
        )
        heartbeats.apply_declarations(number)
        for name in "pq":
            say(heartbeats, Party(name), number, number)
        heartbeats.complete(["p", "q"], number)
        kept.append(
            sum(
                len(cohort._delayed) + len(cohort._counted)
                for cohort in heartbeats.model.clocks.generator.cohorts.values()
            )
        )
    assert max(kept) <= 4
    declared.disorders.clear()
    declared.skews.clear()
    heartbeats.apply_declarations(200)
    assert not any(
        cohort._delayed or cohort._counted or cohort.maxima.horizon_us
        for cohort in heartbeats.model.clocks.generator.cohorts.values()
    )


def test_named_sources_are_bound_to_those_that_were_declared_and_to_nobody_else() -> None:
    """So a statement costs as much as there are sources, not as there are pairs of them."""
    declared = Declarations(disorders={Party("s", f"d{number}"): (SkewBound(number + 1),) for number in range(60)})
    declared.skews[Party("s", "d1"), Party("s", "d2")] = (SkewBound(3),)
    heartbeats = manager(declared, [stream("s", many=True), stream("p")])
    asked: list[int] = []
    bindings = heartbeats.model.bindings
    between = bindings._between
    bindings._between = lambda first, clock, number: asked.append(first) or between(first, clock, number)  # type: ignore
    heartbeats.apply_declarations(1)
    assert len(asked) == 1
    generator = heartbeats.model.clocks.generator
    assert len(generator.between) == 1
    declared.skews[Party("s"), Party("s")] = (SkewBound(9),)
    asked.clear()
    heartbeats.apply_declarations(2)
    cohorts = len(heartbeats.model.clocks["s"].table.cohorts)
    assert len(asked) == 2 * cohorts, (
        "what all sources say is found once for d2, which a SKEW names, and once for the others"
    )
    assert len(generator.between) == cohorts**2


def test_what_was_forgotten_stays_so_in_a_saved_state() -> None:
    catalog = Catalog()
    catalog.streams["s"] = one = stream("s", many=True)
    heartbeats = manager(BOUNDS["others"], [one], timeout_us=10)
    for turn in range(4):
        seen(heartbeats, 1_000 * turn, 1_000, 200 * turn)
    again = manager(BOUNDS["others"], [one], timeout_us=10)
    again.restore(json.loads(json.dumps(heartbeats.save())), catalog)
    assert again.model.clocks["s"].table.forgotten == heartbeats.model.clocks["s"].table.forgotten > 0
    for us in (600, 605, 700, 10_000):
        assert again.complete(["s"], us) == heartbeats.complete(["s"], us)
    assert isinstance(again.model.clocks["s"].stream, Stream)
