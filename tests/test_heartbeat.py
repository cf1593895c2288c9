"""Heartbeats from arrivals, promises and silence, on a clock moved by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.heartbeat.generator import Heartbeats

SECOND = 1_000_000


def two_streams(timeout_us: int | None = None) -> Heartbeats:
    heartbeats = Heartbeats()
    heartbeats.timeout_us = timeout_us
    heartbeats.add("fast", disorder_ticks=0, now_us=0)
    heartbeats.add("slow", disorder_ticks=5, now_us=0)
    return heartbeats


def test_nothing_is_complete_before_every_stream_has_spoken() -> None:
    heartbeats = two_streams()
    heartbeats.arrived("fast", 100, now_us=0)
    assert heartbeats.heartbeat(["fast", "slow"], now_us=0) is None
    assert heartbeats.heartbeat(["fast"], now_us=0) == 99


def test_the_slowest_promise_counts() -> None:
    heartbeats = two_streams()
    heartbeats.arrived("fast", 100, now_us=0)
    heartbeats.arrived("slow", 50, now_us=0)
    assert heartbeats.heartbeat(["fast", "slow"], now_us=0) == 44


def test_the_largest_timestamp_may_come_again() -> None:
    heartbeats = two_streams()
    heartbeats.arrived("fast", 7, now_us=0)
    assert heartbeats.heartbeat(["fast"], now_us=0) == 6


def test_a_silent_stream_follows_the_others() -> None:
    heartbeats = two_streams(timeout_us=2 * SECOND)
    heartbeats.arrived("slow", 50, now_us=0)
    heartbeats.arrived("fast", 100, now_us=1 * SECOND)
    assert heartbeats.heartbeat(["fast", "slow"], now_us=2 * SECOND - 1) == 44
    assert heartbeats.heartbeat(["fast", "slow"], now_us=2 * SECOND) == 99


def test_a_stream_that_never_spoke_is_silent_too() -> None:
    heartbeats = two_streams(timeout_us=2 * SECOND)
    assert heartbeats.heartbeat(["fast", "slow"], now_us=1 * SECOND) is None
    heartbeats.arrived("fast", 100, now_us=2 * SECOND)
    assert heartbeats.heartbeat(["fast", "slow"], now_us=3 * SECOND - 1) is None
    assert heartbeats.heartbeat(["fast", "slow"], now_us=3 * SECOND) == 99


def test_when_all_are_silent_everything_that_came_is_complete() -> None:
    heartbeats = two_streams(timeout_us=SECOND)
    heartbeats.arrived("slow", 50, now_us=0)
    heartbeats.arrived("fast", 100, now_us=0)
    assert heartbeats.heartbeat(["fast", "slow"], now_us=SECOND) == 100


def test_a_late_tuple_is_a_sign_of_life() -> None:
    heartbeats = two_streams(timeout_us=SECOND)
    heartbeats.arrived("slow", 50, now_us=0)
    heartbeats.arrived("fast", 100, now_us=SECOND)
    heartbeats.heard("slow", now_us=SECOND)
    assert heartbeats.heartbeat(["fast", "slow"], now_us=SECOND) == 44


@given(
    st.lists(st.tuples(st.sampled_from(["fast", "slow"]), st.integers(0, 200), st.integers(0, SECOND)), min_size=1, max_size=40)
)
def test_heartbeats_never_go_back(arrivals: list[tuple[str, int, int]]) -> None:
    heartbeats = two_streams(timeout_us=SECOND)
    now_us, last = 0, None
    for stream, timestamp, pause_us in arrivals:
        now_us += pause_us
        limit = heartbeats.limit(stream)
        if limit is None or timestamp > limit:
            heartbeats.arrived(stream, timestamp, now_us)
        reached = heartbeats.heartbeat(["fast", "slow"], now_us)
        if last is not None:
            assert reached is not None
            assert reached >= last
        if reached is not None:
            for name in ("fast", "slow"):
                heartbeats.give(name, reached)
        last = reached
