"""How far apart synchronization tokens are: a fixed period, or one that adapts to what the user wants.

The nearer the tokens, the more often an answer is known to be consistent. But each token makes stages wait for one
another and run once more. An adaptive period is as short as its goal lets it be: it is doubled when the goal is missed,
and shortened by a little when it is kept.

    latency      a token should come out so soon after it was put in
    throughput   so many tuples a second should be taken, as long as there are any
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.settings import TokenPeriod

SHORTEST_US = 1_000
LONGEST_US = 60_000_000

LONGER = 2.0
SHORTER = 0.9
"""By what the period is multiplied when the goal is missed, and when it is kept."""

FIRST_US = 100_000
"""The adaptive period before anything is known."""


@dataclass(slots=True)
class TokenClock:
    """Says when the next token is due, and learns from those that have come out."""

    goal: TokenPeriod
    period_us: int = 0
    last_us: int | None = None
    """When the last token was put in."""

    put_in: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By token: when it was put in, and how many tuples had come by then."""

    came_out: tuple[int, int] | None = None
    """When the last token came out, and how many tuples were before it."""

    latency_us: int | None = None
    """How long the last token was under way."""

    def __post_init__(self) -> None:
        self.period_us = self.goal.every_us or FIRST_US

    def due_us(self) -> int:
        """Return when the next token is due."""
        return 0 if self.last_us is None else self.last_us + self.period_us

    def injected(self, token: int, now_us: int, came: Mapping[str, int]) -> None:
        """Take note of a token that was put in behind the tuples that have come."""
        self.last_us = now_us
        self.put_in[token] = now_us, sum(came.values())

    def arrived(self, token: int, now_us: int, waiting: int) -> None:
        """Take note of a token that came out, while so many tuples wait behind it; choose the period from now on."""
        since_us, tuples = self.put_in.pop(token)
        self.latency_us = now_us - since_us
        before, self.came_out = self.came_out, (now_us, tuples)
        if self.goal.every_us is not None:
            return
        if self.goal.latency_us is not None:
            missed = self.latency_us > self.goal.latency_us
        else:
            missed = waiting > 0 and before is not None and self._rate(before, now_us, tuples) < self._wanted()
        factor = LONGER if missed else SHORTER
        self.period_us = min(max(round(self.period_us * factor), SHORTEST_US), LONGEST_US)

    def forget(self) -> None:
        """Let the tokens that are under way be gone."""
        self.put_in.clear()

    def _wanted(self) -> float:
        return float(self.goal.throughput or 0)

    def _rate(self, before: tuple[int, int], now_us: int, tuples: int) -> float:
        """How many tuples a second were taken between two tokens."""
        then_us, earlier = before
        return (tuples - earlier) * 1e6 / max(now_us - then_us, 1)
