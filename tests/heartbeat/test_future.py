"""The guard against the far future: one bad timestamp costs one dead letter, and time that really goes on costs nothing
or one.

Every case is played in numbers through the heartbeats, batch by batch, as an inlet does: what is beyond the limit is
set aside, the rest arrives. What is behind the heartbeat that was given out is late.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.catalog.entries import Stream
from headgate.heartbeat.arrivals import NEVER, of_rows
from headgate.heartbeat.future import KNOWN, TOPS, largest_of, together
from headgate.heartbeat.manager import Heartbeats
from headgate.ticks import TimeDomain

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
NOON = 1_767_268_800 * SECOND
"""A date."""


@dataclass
class Feed:
    domain: TimeDomain = TimeDomain.TIMESTAMP
    calendar: bool = True
    many: bool = False
    now_us: int = 0
    refused: int = 0
    late: int = 0
    heartbeats: Heartbeats = field(default_factory=Heartbeats)

    def __post_init__(self) -> None:
        self.heartbeats.model.clocks.estimating = False  # which is slow, and another matter
        self.heartbeats.define(Stream("s", (), self.domain, "at", source="who" if self.many else None), self.now_us)

    def arrive(self, stamps: Iterable[int], passed_us: int = 0, source: str | None = None) -> int:
        """A batch comes after so long; how many of it are set aside."""
        self.now_us += passed_us
        ticks = np.array(list(stamps), np.int64)
        date_us = NOON + self.now_us if self.calendar else None
        limit = self.heartbeats.future_limit("s", date_us, self.now_us)
        beyond = limit is not None and (ticks > limit).any()
        if beyond or (len(ticks) >= KNOWN and not self.heartbeats.admission("s").settled):
            limit = self.heartbeats.future_limit("s", date_us, self.now_us, largest_of(ticks))
        taken = ticks[ticks <= (2**62 if limit is None else limit)]
        closed = self.heartbeats.stream("s").promised()
        self.late += int((taken <= (NEVER if closed is None else closed)).sum())
        self.refused += len(ticks) - len(taken)
        if len(taken):
            self.heartbeats.arrived("s", of_rows([source], np.zeros(len(taken), np.intp), taken), self.now_us)
        reached = self.heartbeats.complete(["s"], self.now_us)
        if reached is not None:
            self.heartbeats.promise("s", reached)
        return len(ticks) - len(taken)


def live(feed: Feed, count: int = 300, every_us: int = SECOND, ahead_us: int = 0) -> None:
    """Tuples one by one, stamped when they are sent."""
    for _ in range(count):
        feed.arrive([NOON + feed.now_us + every_us + ahead_us], every_us)


@pytest.mark.parametrize("calendar,bad_us", [(True, 5 * MINUTE), (True, HOUR), (False, 20 * HOUR)])
def test_one_tuple_ahead_in_a_live_feed_costs_one_dead_letter(calendar: bool, bad_us: int) -> None:
    """As tried: 54,296 tuples, of which one is ahead. All others were late for as long."""
    chance = np.random.default_rng(1)
    feed, bad = Feed(calendar=calendar), 234
    for number in range(542):
        stamps = NOON + feed.now_us + np.sort(chance.integers(0, SECOND, 100))
        if number == bad:
            stamps[7] += bad_us
        feed.arrive(stamps, SECOND)
    assert (feed.refused, feed.late) == (1, 0)


def test_a_bad_tuple_alone_in_its_batch() -> None:
    feed = Feed()
    live(feed)
    assert feed.arrive([NOON + feed.now_us + HOUR], SECOND) == 1
    live(feed)
    assert (feed.refused, feed.late) == (1, 0)


@pytest.mark.parametrize("length_us", [8 * HOUR, 3 * DAY])
def test_a_live_feed_goes_on_after_a_pause(length_us: int) -> None:
    feed = Feed()
    live(feed)
    live(feed, 1, length_us)
    live(feed)
    assert feed.refused == 0


def test_nobody_knows_how_long_the_engine_was_away() -> None:
    feed = Feed()
    live(feed)
    feed.heartbeats.resume("s", feed.now_us)
    feed.arrive([NOON + 3 * DAY], SECOND)
    assert feed.refused == 1, "a day beyond the date stays the limit"
    feed.arrive([NOON + 20 * HOUR], SECOND)
    assert feed.refused == 1


def test_a_clock_that_is_set_costs_one_tuple() -> None:
    feed = Feed()
    live(feed)
    live(feed, ahead_us=HOUR)
    assert feed.refused == 1


def test_a_new_source_whose_clock_is_ahead_costs_one_tuple() -> None:
    feed = Feed(many=True)
    for number in range(600):
        feed.arrive([NOON + feed.now_us + SECOND], SECOND, "abc"[number % 3])
    for number in range(600):
        ahead = HOUR if number % 4 == 3 else 0
        feed.arrive([NOON + feed.now_us + SECOND + ahead], SECOND, "abcd"[number % 4])
    assert feed.refused == 1


@pytest.mark.parametrize(
    "domain,tick", [(TimeDomain.TIMESTAMP, SECOND), (TimeDomain.INTEGER, 1), (TimeDomain.INTEGER, 10**9)]
)
@pytest.mark.parametrize("calendar", [True, False])
def test_history_is_never_refused(domain: TimeDomain, tick: int, calendar: bool) -> None:
    """A row a minute or so, a year of it in batches, with nights and a month without any."""
    chance = np.random.default_rng(2)
    feed = Feed(domain, calendar)
    start = NOON - 500 * DAY if domain is TimeDomain.TIMESTAMP else 0
    for day in [*range(30), *range(60, 90)]:
        minutes = np.sort(chance.integers(0, 16 * 60, 960))
        feed.arrive(start + (day * 24 * 60 + minutes) * 60 * tick, SECOND)
    assert feed.refused == 0


def test_history_row_by_row_costs_a_tuple_or_two_at_its_first_nights() -> None:
    feed = Feed()
    for day in range(8):
        for minute in range(120):
            feed.arrive([NOON - 500 * DAY + day * DAY + minute * MINUTE], 1_000)
    assert feed.refused <= 2


def test_two_parts_of_history_in_turn() -> None:
    together_, alone = Feed(), Feed()
    for number in range(100):
        parts = [
            NOON - 300 * DAY + (50 * number + row) * SECOND + part * 20 * DAY for part in range(2) for row in range(50)
        ]
        together_.arrive(parts, 1_000)
    for number in range(600):
        parts = [NOON - 300 * DAY + number * SECOND + part * 20 * DAY for part in range(2 if number > 300 else 1)]
        for part in parts:
            alone.arrive([part], 1_000)
    assert together_.refused == 0
    assert alone.refused <= 2


@pytest.mark.parametrize("at", [0, 1, 30])
def test_a_bad_tuple_in_the_middle_of_a_batch_of_history(at: int) -> None:
    feed = Feed()
    for batch in range(31):
        stamps = NOON - 300 * DAY + (1_000 * batch + np.arange(1_000)) * SECOND
        if batch == at:
            stamps[500] += DAY
        feed.arrive(stamps, SECOND)
    assert (feed.refused, feed.late) == (1, 0)


def test_a_batch_that_comes_every_night() -> None:
    feed = Feed()
    for day in range(10):
        feed.arrive(NOON + day * DAY + np.arange(0, DAY, 5 * MINUTE), DAY)
    assert feed.refused == 0


def test_a_stream_that_becomes_sparse() -> None:
    feed = Feed(TimeDomain.INTEGER, calendar=False)
    for number in range(300):
        feed.arrive([number])
    for number in range(300):
        feed.arrive([300 + 5_000 * number])
    assert feed.refused <= 2


def test_little_is_known_at_first() -> None:
    for domain in (TimeDomain.TIMESTAMP, TimeDomain.INTEGER):
        feed = Feed(domain, calendar=False)
        for number in range(KNOWN // 2):
            feed.arrive([number * number * 1_000_000])
        assert feed.refused == 0


def test_integer_time_of_a_fine_unit_goes_on() -> None:
    """Nanoseconds: 2^31 of them are two seconds."""
    feed = Feed(TimeDomain.INTEGER, calendar=False)
    for number in range(20):
        feed.arrive([number * 10 * 10**9], 10 * SECOND)
    assert feed.refused <= 1


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 2.0), st.sampled_from([2, 7, 200]), st.sampled_from(list(TimeDomain)[:2]))
def test_irregular_time_is_hardly_ever_refused(seed: int, spread: float, batch: int, domain: TimeDomain) -> None:
    """Distances that differ by many times, without any help of the clock."""
    chance = np.random.default_rng(seed)
    stamps = np.cumsum(chance.lognormal(10, spread, 500)).astype(np.int64)
    feed = Feed(domain, calendar=False)
    for start in range(0, len(stamps), batch):
        feed.arrive(stamps[start : start + batch])
    assert feed.refused <= 2


def test_what_lies_together() -> None:
    assert together(np.array([100, 99]), 10) is None
    assert together(np.array([1_000, 100, 99, 98]), 10) == 100
    assert together(np.array([1_000, 995, 100, 99, 98]), 10) == 100
    assert together(np.array([1_000, 995, 990, 98]), 10) == 1_000
    assert together(np.array([5_000, 4_000, 3_000, 2_000]), 10) == 5_000
    assert largest_of(np.arange(3 * TOPS)).tolist() == list(range(3 * TOPS - 1, 2 * TOPS - 1, -1))
