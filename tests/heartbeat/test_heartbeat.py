"""Heartbeats of streams and of sets of them: promises, silence, pauses, what is late; on a clock moved by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.catalog.declarations import Counter, Declarations, Estimation, Grouping, Party, Sensors
from headgate.catalog.entries import Relation, Stamped, Stream
from headgate.catalog.skew import Bounds, SkewBound
from headgate.heartbeat.arrivals import of_one, of_rows
from headgate.heartbeat.guard import AHEAD_UNITS, AHEAD_US
from headgate.heartbeat.manager import Heartbeats
from headgate.heartbeat.progress import missing_bound
from headgate.ticks import UNLIMITED, Tick, TimeDomain

SECOND = 1_000_000

FAST, SLOW = Party("fast"), Party("slow")


def stream(
    name: str,
    source: str | None = None,
    stamped: Stamped = "external",
    domain: TimeDomain = TimeDomain.INTEGER,
    ahead: Tick | None = None,
) -> Stream:
    return Stream(name, (), domain, "at", stamped=stamped, source=source, ahead=ahead)


def heartbeats_of(*streams: Stream, declared: Declarations | None = None, timeout_us: int | None = None) -> Heartbeats:
    """Nothing is estimated, so that what is promised is what was declared."""
    heartbeats = Heartbeats(declared)
    heartbeats.model.clocks.estimating = False
    heartbeats.model.clocks.timeout_us = timeout_us
    for one in streams:
        heartbeats.define(one, now_us=0)
    return heartbeats


def disorder(ticks: Tick) -> Bounds:
    """What DISORDER says: a tuple may be so far behind, so the instant that far back is still open."""
    return (SkewBound(ticks + 1),)


def two_streams(timeout_us: int | None = None, **declared: Any) -> Heartbeats:
    declarations = Declarations(**({"disorders": {SLOW: disorder(5)}} | declared))
    return heartbeats_of(stream("fast"), stream("slow"), declared=declarations, timeout_us=timeout_us)


def say(heartbeats: Heartbeats, name: str, *stamps: Tick, now_us: int, source: Any = None) -> None:
    heartbeats.arrived(name, of_one(np.array(stamps), source), now_us)


BOTH = ["fast", "slow"]


# promises


def test_nothing_is_complete_before_every_stream_has_spoken() -> None:
    heartbeats = two_streams()
    say(heartbeats, "fast", 100, now_us=0)
    assert heartbeats.complete(BOTH, now_us=0) is None
    assert heartbeats.complete(["fast"], now_us=0) == 99


def test_the_slowest_promise_counts() -> None:
    heartbeats = two_streams()
    say(heartbeats, "fast", 100, now_us=0)
    say(heartbeats, "slow", 50, now_us=0)
    assert heartbeats.complete(BOTH, now_us=0) == 44


def test_the_largest_timestamp_may_come_again() -> None:
    heartbeats = two_streams()
    say(heartbeats, "fast", 7, now_us=0)
    assert heartbeats.complete(["fast"], now_us=0) == 6


def test_a_latency_delays_what_a_stream_promises() -> None:
    for disorders, reached in (({}, 99), ({FAST: disorder(3)}, 96)):
        heartbeats = two_streams(disorders=disorders, latencies_us={FAST: 2 * SECOND})
        say(heartbeats, "fast", 100, now_us=SECOND)
        assert heartbeats.complete(["fast"], now_us=3 * SECOND - 1) is None
        assert heartbeats.complete(["fast"], now_us=3 * SECOND) == reached


def test_one_stream_speaks_for_another_that_never_did() -> None:
    """Section 3.3: with a bound between any two, no stream has to speak for the others to go on."""
    heartbeats = two_streams(skews={(FAST, SLOW): (SkewBound(10), SkewBound(0, after_us=SECOND))})
    say(heartbeats, "fast", 100, now_us=0)
    assert heartbeats.complete(BOTH, now_us=0) == 90
    assert heartbeats.complete(BOTH, now_us=SECOND) == 99
    assert heartbeats.complete(["slow"], now_us=SECOND) == 100


def test_a_source_sends_heartbeats_itself() -> None:
    heartbeats = two_streams(latencies_us={SLOW: SECOND})
    say(heartbeats, "fast", 100, now_us=0)
    heartbeats.punctuated("fast", None, 120, now_us=0)
    assert heartbeats.complete(["fast"], now_us=0) == 120
    heartbeats.punctuated("fast", None, 110, now_us=1)
    assert heartbeats.complete(["fast"], now_us=1) == 120
    heartbeats.punctuated("slow", None, 30, now_us=0)
    assert heartbeats.complete(["slow"], now_us=SECOND - 1) is None
    assert heartbeats.complete(["slow"], now_us=SECOND) == 30


def test_a_heartbeat_of_one_source_is_none_of_the_others() -> None:
    heartbeats = heartbeats_of(stream("s", source="who"))
    heartbeats.arrived("s", of_rows(["a", "b"], np.array([0, 1]), np.array([10, 20])), 0)
    assert heartbeats.complete(["s"], 0) == 9
    heartbeats.punctuated("s", "a", 15, 0)
    assert heartbeats.complete(["s"], 0) == 15
    heartbeats.punctuated("s", None, 50, 0)
    assert heartbeats.complete(["s"], 0) == 50


# silence


def test_a_silent_stream_follows_the_others() -> None:
    heartbeats = two_streams(timeout_us=2 * SECOND)
    say(heartbeats, "slow", 50, now_us=0)
    say(heartbeats, "fast", 100, now_us=1 * SECOND)
    assert heartbeats.complete(BOTH, now_us=2 * SECOND - 1) == 44
    assert heartbeats.complete(BOTH, now_us=2 * SECOND) == 99


def test_a_silent_source_follows_the_others() -> None:
    heartbeats = heartbeats_of(stream("s", source="who"), timeout_us=2 * SECOND)
    say(heartbeats, "s", 50, now_us=0, source="a")
    say(heartbeats, "s", 100, now_us=SECOND, source="b")
    assert heartbeats.complete(["s"], 2 * SECOND - 1) == 49
    assert heartbeats.model.waiting.standing("s", 2 * SECOND - 1).speaking == 2
    assert heartbeats.complete(["s"], 2 * SECOND) == 99
    assert heartbeats.model.waiting.standing("s", 2 * SECOND).speaking == 1
    say(heartbeats, "s", 60, now_us=2 * SECOND, source="a")
    assert heartbeats.model.waiting.standing("s", 2 * SECOND).complete == 59


def test_a_stream_that_never_spoke_is_silent_too() -> None:
    heartbeats = two_streams(timeout_us=2 * SECOND)
    assert heartbeats.complete(BOTH, now_us=1 * SECOND) is None
    say(heartbeats, "fast", 100, now_us=2 * SECOND)
    assert heartbeats.complete(BOTH, now_us=3 * SECOND - 1) is None
    assert heartbeats.complete(BOTH, now_us=3 * SECOND) == 99


@pytest.mark.parametrize("source", [None, "who"])
def test_without_a_timeout_nobody_is_ever_silent(source: str | None) -> None:
    heartbeats = heartbeats_of(stream("fast", source), stream("slow", source))
    say(heartbeats, "fast", 100, now_us=0, source=source)
    assert heartbeats.complete(BOTH, now_us=10**15) is None
    assert not any(heartbeats.stream(name).is_silent(10**15) for name in BOTH)


def test_when_all_are_silent_everything_that_came_is_complete() -> None:
    heartbeats = two_streams(timeout_us=SECOND)
    say(heartbeats, "slow", 50, now_us=0)
    say(heartbeats, "fast", 100, now_us=0)
    assert heartbeats.complete(BOTH, now_us=SECOND - 1) == 44
    assert heartbeats.complete(BOTH, now_us=SECOND) == 100


def test_a_late_tuple_is_a_sign_of_life() -> None:
    heartbeats = two_streams(timeout_us=SECOND)
    say(heartbeats, "slow", 50, now_us=0)
    say(heartbeats, "fast", 100, now_us=SECOND)
    say(heartbeats, "slow", 3, now_us=SECOND)
    assert heartbeats.complete(BOTH, now_us=SECOND) == 44


def test_a_heartbeat_is_a_sign_of_life() -> None:
    heartbeats = two_streams(timeout_us=SECOND)
    say(heartbeats, "slow", 50, now_us=0)
    say(heartbeats, "fast", 100, now_us=SECOND)
    heartbeats.punctuated("slow", None, 51, now_us=SECOND)
    assert heartbeats.complete(BOTH, now_us=SECOND) == 51


def test_a_finished_stream_holds_nobody_back_and_is_not_silent() -> None:
    heartbeats = two_streams(timeout_us=SECOND)
    say(heartbeats, "slow", 50, now_us=0)
    say(heartbeats, "fast", 100, now_us=0)
    heartbeats.finish("slow")
    assert heartbeats.complete(BOTH, now_us=0) == 99
    assert heartbeats.stream("slow").promised() is None
    heartbeats.finish("fast")
    assert heartbeats.complete(BOTH, now_us=0) == 100, "nothing can come behind what came last"


def test_what_comes_on_a_finished_stream_behind_what_was_given_is_late() -> None:
    heartbeats = two_streams()
    heartbeats.finish("slow")
    heartbeats.promise("slow", 70)
    assert heartbeats.stream("slow").promised() == 70


def test_a_finished_source_holds_nobody_back() -> None:
    heartbeats = heartbeats_of(stream("s", source="who"))
    say(heartbeats, "s", 50, now_us=0, source="a")
    say(heartbeats, "s", 100, now_us=0, source="b")
    heartbeats.finish("s", "a")
    assert heartbeats.complete(["s"], now_us=0) == 99
    heartbeats.model.declarations.latencies_us[Party("s")] = SECOND
    heartbeats.apply_declarations()
    heartbeats.complete(["s"], now_us=0)
    assert heartbeats.complete(["s"], now_us=SECOND) == 99, "what a source said stays true whatever is declared"
    heartbeats.finish("s", "b", now_us=SECOND)
    assert heartbeats.complete(["s"], now_us=2 * SECOND) == 100, "all have, so everything that came is complete"


def test_what_a_finished_stream_said_about_others_stays_true() -> None:
    heartbeats = two_streams(skews={(FAST, SLOW): (SkewBound(0),)})
    say(heartbeats, "fast", 100, now_us=0)
    heartbeats.finish("fast")
    heartbeats.apply_declarations()
    assert heartbeats.complete(["slow"], now_us=0) == 100


def test_a_fixed_relation_waits_for_nobody() -> None:
    heartbeats = two_streams()
    heartbeats.define(Relation("sites", (), None), now_us=0)
    say(heartbeats, "fast", 100, now_us=0)
    assert heartbeats.complete(["fast", "sites"], now_us=0) == 99


# pauses


def test_a_paused_stream_stands_still_and_is_never_silent() -> None:
    heartbeats = two_streams(timeout_us=SECOND, skews={(FAST, SLOW): (SkewBound(0),)})
    say(heartbeats, "slow", 50, now_us=0)
    say(heartbeats, "fast", 50, now_us=0)
    assert heartbeats.complete(BOTH, now_us=0) == 49
    heartbeats.pause("slow", now_us=0)
    for now_us in (SECOND, 2 * SECOND, 100 * SECOND):
        say(heartbeats, "fast", 50 + now_us // SECOND, now_us=now_us)
        assert not heartbeats.stream("slow").is_silent(now_us)
        assert heartbeats.complete(["slow"], now_us) == 50
        assert heartbeats.complete(BOTH, now_us) == 50
        heartbeats.promise("slow", 50)
    say(heartbeats, "slow", 51, 52, now_us=100 * SECOND)
    heartbeats.resume("slow", now_us=100 * SECOND)
    limit = heartbeats.stream("slow").promised()
    assert limit is not None
    assert limit < 51
    assert not heartbeats.stream("slow").is_silent(101 * SECOND - 1)
    assert heartbeats.stream("slow").is_silent(101 * SECOND)


def test_a_stream_can_be_paused_before_it_spoke() -> None:
    heartbeats = two_streams(timeout_us=SECOND)
    heartbeats.pause("slow", now_us=0)
    say(heartbeats, "fast", 100, now_us=9 * SECOND)
    assert heartbeats.complete(BOTH, now_us=9 * SECOND) is None
    heartbeats.resume("slow", now_us=9 * SECOND)
    assert heartbeats.complete(BOTH, now_us=10 * SECOND - 1) is None
    say(heartbeats, "fast", 101, now_us=10 * SECOND)
    assert heartbeats.complete(BOTH, now_us=10 * SECOND) == 100


# what is late, and what is too early


def test_what_was_given_is_the_limit_and_the_next_instant_is_open() -> None:
    heartbeats = two_streams()
    assert heartbeats.stream("fast").promised() is None
    assert heartbeats.admission("fast").first_open == 0
    heartbeats.promise("fast", 41)
    heartbeats.promise("fast", 40)
    assert heartbeats.stream("fast").promised() == 41
    assert heartbeats.admission("fast").first_open == 42
    heartbeats.define(stream("dated", domain=TimeDomain.TIMESTAMP), now_us=0)
    assert heartbeats.admission("dated").first_open == TimeDomain.TIMESTAMP.origin


def test_late_tuples_are_counted_by_source() -> None:
    heartbeats = heartbeats_of(stream("s", source="who"))
    heartbeats.arrived("s", of_rows(["a", "b"], np.array([0, 1]), np.array([10, 20])), 0)
    heartbeats.model.intake.late("s", ["b"], np.array([2]))
    heartbeats.model.intake.late("s", ["a", "b"], np.array([1, 3]))
    timeline = heartbeats.model.clocks["s"]
    assert {source: int(timeline.table.late[number]) for source, number in timeline.table.sources.items()} == {
        "a": 1,
        "b": 5,
    }


def test_dead_letters_are_complete_where_their_stream_is() -> None:
    heartbeats = two_streams()
    say(heartbeats, "fast", 100, now_us=0)
    assert heartbeats.complete(["late(fast)"], now_us=0) == 99
    heartbeats.promise("late(fast)", 99)
    assert heartbeats.stream("fast").promised() == 99


@pytest.mark.parametrize(
    "one,date_us,largest,limit",
    [
        (stream("s"), None, None, None),
        (stream("s"), None, 10, 10 + AHEAD_UNITS),
        (stream("s", ahead=5), None, 10, 15),
        (stream("s", ahead=UNLIMITED), None, 10, None),
        (stream("s", domain=TimeDomain.TIMESTAMP), 1_000, None, 1_000 + AHEAD_US),
        (stream("s", domain=TimeDomain.TIMESTAMP), 1_000, 3_000, 3_000 + AHEAD_US),
        (stream("s", domain=TimeDomain.TIMESTAMP), None, 3_000, None),
        (stream("s", domain=TimeDomain.TIMESTAMP, ahead=5), None, 3_000, 3_005),
        (stream("s", domain=TimeDomain.TIMESTAMP, stamped="internal"), 1_000, None, None),
    ],
)
def test_how_far_in_the_future_a_timestamp_may_lie(
    one: Stream, date_us: int | None, largest: Tick | None, limit: Tick
) -> None:
    heartbeats = heartbeats_of(one)
    if largest is not None:
        say(heartbeats, "s", largest, now_us=0)
    assert heartbeats.future_limit("s", date_us, now_us=0) == limit


# time that the engine gives out


def test_streams_that_the_engine_stamps_never_wait() -> None:
    heartbeats = heartbeats_of(
        stream("inside", stamped="internal", domain=TimeDomain.TIMESTAMP),
        stream("latent", stamped="latent", domain=TimeDomain.ARRIVAL),
    )
    heartbeats.enabling.set_date(5 * SECOND, now_us=0)
    assert heartbeats.enabling.stamp(now_us=SECOND) == 6 * SECOND
    assert heartbeats.enabling.ask("inside", now_us=SECOND)
    assert heartbeats.complete(["inside"], now_us=SECOND) == 6 * SECOND
    heartbeats.enabling.set_date(2 * SECOND, now_us=SECOND)
    assert heartbeats.enabling.stamp(now_us=SECOND) == 6 * SECOND, "a calendar that is put back takes no heartbeat back"
    heartbeats.enabling.set_date(3_600 * SECOND, now_us=SECOND)
    assert heartbeats.enabling.ask("inside", now_us=SECOND)
    assert heartbeats.complete(["inside"], now_us=SECOND) == 3_600 * SECOND, (
        "what was stamped by the calendar does not wait"
    )
    assert heartbeats.complete(["latent"], now_us=0) == 0
    assert heartbeats.order.reserve(3) == 1
    assert heartbeats.order.reserve(1) == 4
    say(heartbeats, "latent", 1, 2, 3, 4, now_us=0)
    assert heartbeats.complete(["latent"], now_us=0) == 4
    assert not heartbeats.stream("inside").is_silent(10**12)


# what is declared, changed in the middle


def test_declarations_are_heeded_in_the_middle() -> None:
    heartbeats = two_streams()
    say(heartbeats, "fast", 100, now_us=0)
    say(heartbeats, "slow", 50, now_us=0)
    heartbeats.model.declarations.disorders[SLOW] = disorder(9)
    heartbeats.apply_declarations()
    assert heartbeats.complete(BOTH, now_us=0) == 40
    heartbeats.model.declarations.skews[FAST, SLOW] = (SkewBound(20),)
    heartbeats.apply_declarations()
    assert heartbeats.complete(BOTH, now_us=0) == 80
    heartbeats.model.declarations.latencies_us[SLOW] = SECOND
    heartbeats.apply_declarations()
    assert heartbeats.complete(["slow"], now_us=SECOND) == 80
    heartbeats.model.declarations.forget("slow")
    heartbeats.apply_declarations()
    assert heartbeats.complete(["slow"], now_us=SECOND) == 49
    heartbeats.remove("slow")
    assert heartbeats.complete(["fast"], now_us=SECOND) == 99


def test_a_change_of_declarations_takes_back_no_heartbeat() -> None:
    heartbeats = two_streams()
    say(heartbeats, "slow", 50, now_us=0)
    heartbeats.promise("slow", 44)
    heartbeats.model.declarations.disorders[SLOW] = disorder(40)
    heartbeats.apply_declarations()
    assert heartbeats.model.waiting.standing("slow", 0).complete == 9
    assert heartbeats.complete(["slow"], now_us=0) == 44


def test_what_waits_still_waits_when_sources_are_put_together() -> None:
    """a was heard long ago, b just now. Together they must not say sooner what b said."""
    heartbeats = heartbeats_of(stream("s", source="who"), stream("other"))
    declared = heartbeats.model.declarations
    declared.skews[Party("s"), Party("other")] = (SkewBound(0, after_us=10 * SECOND),)
    for source in "ab":
        declared.disorders[Party("s", source)] = (SkewBound(1),)
    heartbeats.apply_declarations()
    say(heartbeats, "s", 1, now_us=0, source="b")
    say(heartbeats, "s", 5, now_us=0, source="a")
    say(heartbeats, "s", 9, now_us=9 * SECOND, source="b")
    declared.disorders.clear()
    heartbeats.apply_declarations()
    assert heartbeats.complete(["other"], 10 * SECOND) in (None, 5)
    assert heartbeats.complete(["other"], 19 * SECOND) == 9


def test_what_was_learnt_is_not_forgotten_when_other_groups_are_formed() -> None:
    heartbeats = heartbeats_of(stream("s", source="who"))
    heartbeats.model.declarations.estimations["s"] = Estimation()
    heartbeats.model.declarations.groupings["s"] = Grouping(count=2)
    heartbeats.apply_declarations()
    for number in range(999):
        say(heartbeats, "s", number - 50 * (number % 2), now_us=number, source=f"sensor{number % 7}")
    before = heartbeats.complete(["s"], 999)
    assert before is not None
    assert before < 999 - 50
    say(heartbeats, "s", 999, now_us=999, source="sensor0")
    assert heartbeats.model.clocks["s"].partition is not None
    after = heartbeats.complete(["s"], 999)
    assert after is not None
    assert after <= 999 - 50


# whether a timeout is needed


def progress_of(**declared: Any) -> str | None:
    heartbeats = heartbeats_of(
        stream("fast"), stream("slow"), stream("s", source="who"), declared=Declarations(**declared)
    )
    for source in "ab":
        say(heartbeats, "s", 1, now_us=0, source=source)
    return missing_bound(heartbeats.model, BOTH if Party("s") not in declared.get("sensors", {}) else ["s"])


def test_a_timeout_is_needed_unless_every_pair_has_a_bound_within_0() -> None:
    """Theorem 3.3."""
    in_the_end = (SkewBound(5), SkewBound(0, after_us=SECOND))
    whole = {(FAST, SLOW): in_the_end, (SLOW, FAST): in_the_end}
    own = {FAST: (SkewBound(0),), SLOW: in_the_end}
    assert progress_of(skews=whole, disorders=own) is None
    assert progress_of(skews=whole, disorders=own | {SLOW: (SkewBound(1),)}) == "slow with itself"
    assert progress_of(skews={(FAST, SLOW): in_the_end}, disorders=own) == "slow to fast"
    assert progress_of(skews=whole | {(FAST, SLOW): (SkewBound(5),)}, disorders=own) == "fast to slow"


def test_one_source_without_a_rate_is_not_hidden_by_the_others() -> None:
    rated, unrated = Sensors(5, 1), Sensors(3)  # type: ignore[arg-type]
    kinds = {Party("s"): rated, Party("s", "a"): unrated, Party("s", "b"): Sensors(4, 1)}  # type: ignore[arg-type]
    assert progress_of(sensors={Party("s"): rated}) is None
    assert progress_of(sensors=kinds) is not None


def test_a_global_counter_needs_no_timeout() -> None:
    counters = {FAST: Counter(0, SECOND), SLOW: Counter(0, 2 * SECOND)}
    assert progress_of(counters=counters) is None


# laws


EVENTS = st.tuples(
    st.sampled_from(["arrive", "arrive", "arrive", "punctuate", "pause", "resume", "declare", "finish"]),
    st.sampled_from(BOTH),
    st.integers(0, 200),
    st.integers(0, SECOND),
)


@settings(max_examples=100)
@given(st.lists(EVENTS, min_size=1, max_size=30), st.booleans(), st.booleans())
def test_heartbeats_never_go_back(events: list[tuple[str, str, int, int]], estimating: bool, skewed: bool) -> None:
    """Once given, whatever happens; and while a stream is paused, nothing of it becomes late."""
    heartbeats = two_streams(timeout_us=SECOND, skews={(FAST, SLOW): (SkewBound(3, after_us=1_000),)} if skewed else {})
    heartbeats.model.clocks.estimating = estimating
    now_us = 0
    given_: dict[str, Tick] = {}
    held: dict[str, Tick | None] = {}
    for what, name, number, pause_us in events:
        now_us += pause_us
        if what == "arrive" and name not in held:
            say(heartbeats, name, number, now_us=now_us)
        elif what == "punctuate":
            heartbeats.punctuated(name, None, number, now_us)
        elif what == "pause" and name not in held:
            heartbeats.pause(name, now_us)
            held[name] = heartbeats.stream(name).promised()
        elif what == "resume" and name in held:
            heartbeats.resume(name, now_us)
            del held[name]
        elif what == "declare":
            heartbeats.model.declarations.disorders[Party(name)] = disorder(number % 10)
            heartbeats.apply_declarations()
        elif what == "finish" and not held:
            heartbeats.finish(name)
        going_on = [one for one in BOTH if not heartbeats.model.clocks[one].finished]
        reached = heartbeats.complete(BOTH, now_us)
        if going_on and all(one in given_ for one in going_on):
            assert reached is not None
            assert reached >= min(given_[one] for one in going_on)
        if reached is not None:
            for one in going_on:
                heartbeats.promise(one, reached)
                given_[one] = max(reached, given_.get(one, reached))
        for one, limit in held.items():
            frozen = heartbeats.model.clocks[one].frozen
            now = heartbeats.stream(one).promised()
            assert (
                now == limit
                or frozen is None
                or now is None
                or now <= max(frozen, limit if limit is not None else frozen)
            )


def test_a_silent_stream_follows_by_its_bound_where_one_is_declared() -> None:
    declared = Declarations(disorders={FAST: disorder(0), SLOW: disorder(0)}, skews={(FAST, SLOW): (SkewBound(50),)})
    heartbeats = heartbeats_of(stream("fast"), stream("slow"), declared=declared, timeout_us=SECOND)
    heartbeats.arrived("slow", of_one(np.array([10])), now_us=0)
    heartbeats.arrived("fast", of_one(np.array([200])), now_us=2 * SECOND)
    assert heartbeats.stream("slow").is_silent(now_us=2 * SECOND)
    assert heartbeats.complete(["fast", "slow"], now_us=2 * SECOND) == 150, (
        "151 may still come, whatever silence suggests"
    )
    assert heartbeats.complete(["fast", "slow"], now_us=3 * SECOND) == 200, "unless all are silent"


def test_what_was_learnt_from_another_stream_counts_for_those_who_read_both() -> None:
    heartbeats = Heartbeats()
    for name in ("fast", "slow"):
        heartbeats.define(stream(name), now_us=0)
    for instant in range(150):
        for name in ("fast", "slow"):
            heartbeats.arrived(name, of_one(np.array([instant])), now_us=instant)
    heartbeats.arrived("fast", of_one(np.array([1_000])), now_us=200)
    assert heartbeats.complete(["slow"], now_us=200) == 148, "it has been down, and will send what it held back"
    assert heartbeats.complete(["fast", "slow"], now_us=200) == 150, (
        "one usual step ahead, and no further while it is silent"
    )


def test_a_stream_that_sends_heartbeats_is_not_guessed_at() -> None:
    heartbeats = Heartbeats()
    heartbeats.define(replace(stream("s"), heartbeat="mark"), now_us=0)
    heartbeats.arrived("s", of_one(np.array([5, 9])), now_us=0)
    assert heartbeats.complete(["s"], now_us=0) is None
    heartbeats.punctuated("s", None, 4, now_us=0)
    assert heartbeats.complete(["s"], now_us=0) == 4


def test_one_source_does_not_speak_for_its_group() -> None:
    heartbeats = heartbeats_of(
        stream("s", source="id"), declared=Declarations(groupings={"s": Grouping(sets=(("x", "y"),))})
    )
    heartbeats.arrived("s", of_rows(["x", "y"], np.array([0, 1]), np.array([5, 5])), now_us=0)
    before = heartbeats.complete(["s"], now_us=0)
    heartbeats.punctuated("s", "x", 100, now_us=0)
    assert heartbeats.complete(["s"], now_us=0) == before
    heartbeats.punctuated("s", "y", 90, now_us=0)
    assert heartbeats.complete(["s"], now_us=0) == 90, "but all of them do"
    heartbeats.punctuated("s", None, 100, now_us=0)
    assert heartbeats.complete(["s"], now_us=0) == 100


def test_one_stream_speaks_for_another_none_of_whose_sources_has_spoken() -> None:
    heartbeats = heartbeats_of(stream("fast"), stream("s", source="who"))
    heartbeats.model.declarations.skews[FAST, Party("s")] = (SkewBound(50), SkewBound(10, after_us=SECOND))
    heartbeats.apply_declarations()
    say(heartbeats, "fast", 100, now_us=0)
    assert heartbeats.complete(["fast", "s"], now_us=0) == 50
    assert heartbeats.complete(["fast", "s"], now_us=SECOND) == 90


def test_what_a_dropped_stream_said_of_others_is_forgotten() -> None:
    heartbeats = two_streams(disorders={}, skews={(FAST, SLOW): (SkewBound(3),)})
    heartbeats.model.declarations.forget("fast")
    heartbeats.remove("fast")
    say(heartbeats, "slow", 100, now_us=0)
    assert heartbeats.complete(["slow"], now_us=0) == 99, "nothing is declared of it any more, so it counts as ordered"


def test_a_source_known_by_name_is_there_before_it_speaks() -> None:
    """So nothing that the bounds allow it to send first is late. It is waited for from the statement that names it."""
    sensors = {Party("s", source): Sensors(5) for source in "ab"}
    heartbeats = heartbeats_of(stream("s", source="who"), declared=Declarations(sensors=sensors), timeout_us=9 * SECOND)
    assert heartbeats.complete(["s"], now_us=0) is None
    say(heartbeats, "s", 100, now_us=0, source="a")
    assert heartbeats.complete(["s"], now_us=0) == 89
    say(heartbeats, "s", 98, now_us=0, source="b")
    assert heartbeats.complete(["s"], now_us=0) == 89
    heartbeats.promise("s", 89)
    heartbeats.model.declarations.latencies_us[Party("s", "c")] = SECOND
    heartbeats.apply_declarations(SECOND)
    assert heartbeats.complete(["s"], now_us=SECOND) == 89
    assert heartbeats.model.waiting.standing("s", SECOND).complete is None
    for source in "ab":
        say(heartbeats, "s", 200, now_us=9 * SECOND, source=source)
    assert heartbeats.complete(["s"], now_us=10 * SECOND - 1) == 89
    assert heartbeats.complete(["s"], now_us=10 * SECOND) == 189, "it is silent"
    assert heartbeats.complete(["s"], now_us=18 * SECOND) == 200, "all are"


def test_what_is_taken_back_takes_no_heartbeat_back() -> None:
    """What was given out stands; from then on the stream is as if nothing had been declared."""
    heartbeats = two_streams(skews={(FAST, SLOW): (SkewBound(0),)}, timeout_us=SECOND)
    say(heartbeats, "slow", 50, now_us=0)
    say(heartbeats, "fast", 100, now_us=0)
    assert heartbeats.complete(BOTH, now_us=0) == 99
    for name in BOTH:
        heartbeats.promise(name, 99)
    del heartbeats.model.declarations.skews[FAST, SLOW]
    heartbeats.apply_declarations(0)
    assert heartbeats.model.waiting.standing("slow", 0).complete == 44
    assert heartbeats.complete(BOTH, now_us=0) == 99
    say(heartbeats, "fast", 200, now_us=SECOND)
    assert heartbeats.complete(BOTH, now_us=SECOND) == 199, "slow is silent"
    heartbeats.model.clocks.timeout_us = None
    assert heartbeats.complete(BOTH, now_us=SECOND) == 99, "without a timeout it is waited for again"
