"""The period of tokens: fixed, or as short as the goal lets it be."""

from __future__ import annotations

from headgate.consistency.tokens import FIRST_US, LONGEST_US, SHORTEST_US, TokenClock
from headgate.settings import TokenPeriod


def run(clock: TokenClock, latency_us: int, tokens: int, step_us: int = 0, tuples: int = 10, waiting: int = 0) -> None:
    """Let tokens come out, each so long after it was put in; `step_us` apart, so many tuples between them."""
    now_us = 0
    for number in range(1, tokens + 1):
        now_us = max(now_us + step_us, clock.due_us())
        clock.injected(number, now_us, {"s": number * tuples})
        clock.arrived(number, now_us + latency_us, waiting)


def test_a_fixed_period_stays() -> None:
    clock = TokenClock(TokenPeriod(every_us=250_000, latency_us=None))
    assert clock.due_us() == 0
    run(clock, 10**9, 5)
    assert clock.period_us == 250_000
    assert clock.last_us is not None
    assert clock.due_us() == clock.last_us + 250_000


def test_a_period_grows_while_tokens_are_too_slow_and_shrinks_when_they_are_not() -> None:
    clock = TokenClock(TokenPeriod(latency_us=100_000))
    run(clock, 200_000, 3)
    assert clock.period_us == 8 * FIRST_US
    run(clock, 50_000, 200)
    assert clock.period_us == SHORTEST_US
    run(clock, 200_000, 50)
    assert clock.period_us == LONGEST_US


def test_a_period_that_costs_too_much_is_found_and_left() -> None:
    """A load in which the latency is 400 ms divided by the period in units of 100 ms: 200 ms are reached at 200 ms."""
    clock, periods = TokenClock(TokenPeriod(latency_us=200_000)), []
    for number in range(1, 200):
        now_us = clock.due_us()
        clock.injected(number, now_us, {"s": number})
        clock.arrived(number, now_us + 40_000_000_000 // clock.period_us, 0)
        periods.append(clock.period_us)
    settled = periods[50:]
    assert 150_000 < sum(settled) / len(settled) < 400_000


def test_a_period_keeps_to_a_throughput_only_while_tuples_wait() -> None:
    slow = TokenClock(TokenPeriod(latency_us=None, throughput=1_000))
    run(slow, 1_000, 5, step_us=100_000, tuples=10, waiting=50)
    assert slow.period_us > FIRST_US
    idle = TokenClock(TokenPeriod(latency_us=None, throughput=1_000))
    run(idle, 1_000, 5, step_us=100_000, tuples=10, waiting=0)
    assert idle.period_us < FIRST_US, "nothing more was there to be taken"
