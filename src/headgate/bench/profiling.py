"""Measures what the profiler costs: small epochs with `SET profile` on and off in turns, in one run.

Two figures: the ratio of the medians of epochs, which the noise of the machine moves, and the share of the time of
epochs that is spent in the profiler itself, which it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from unittest.mock import patch

from pyspark.sql import SparkSession
from rich.console import Console

from headgate.bench.layout import empty_table
from headgate.engine import Engine
from headgate.execute.prepared import Written
from headgate.heartbeat.clock import ManualClock
from headgate.observe.trace import Work
from headgate.schedule.profiler import Profiler

ROWS = 200
WARM_UP_EPOCHS = 40
SCRIPT = """
CREATE STREAM s (k INT, v INT, w DOUBLE);
CREATE QUERY sums AS SELECT k, SUM(v) AS v, COUNT(*) AS n FROM s [RANGE 60] GROUP BY k;
CREATE QUERY large AS SELECT ISTREAM(k, v) FROM s [NOW] WHERE v > 900;
CREATE QUERY pairs AS SELECT ISTREAM(a.k, b.v) FROM s [NOW] AS a, s [RANGE 2] AS b WHERE a.k = b.k AND a.v > 990;
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of turns without and with the profiler, and those spent in it."""

    off: Sequence[float]
    on: Sequence[float]
    profiling: float

    @property
    def ratio(self) -> float:
        """The median turn with the profiler against the median one without."""
        return median(self.on) / median(self.off)

    @property
    def share(self) -> float:
        """The share of the time with the profiler that is spent in it."""
        return self.profiling / sum(self.on)


def measured(spark: SparkSession, epochs: int, done: Callable[[], None]) -> Cost:
    """Runs small epochs of three queries, every other turn with the profiler."""
    seconds: dict[str, list[float]] = {"off": [], "on": []}
    spent = 0.0
    record = Profiler.committed

    def timed(self: Profiler, committed: Sequence[tuple[Written, int]], work: Work, now_us: int) -> None:
        nonlocal spent
        began = perf_counter()
        record(self, committed, work, now_us)
        spent += perf_counter() - began

    with Engine(spark, clock=ManualClock()) as engine, patch.object(Profiler, "committed", timed):
        engine.execute(SCRIPT)
        for turn in range(WARM_UP_EPOCHS + 2 * epochs):
            way = "on" if turn % 2 else "off"
            engine.execute(f"SET profile = '{way}'")
            rows = [(turn, (row % 50, (row * 7919 + turn) % 1_000, row / 3)) for row in range(ROWS)]
            engine.push("s", rows)
            if turn == WARM_UP_EPOCHS:
                spent = 0.0
            began = perf_counter()
            engine.advance(turn)
            if turn >= WARM_UP_EPOCHS:
                seconds[way].append(perf_counter() - began)
            done()
    return Cost(seconds["off"], seconds["on"], spent)


def steps(epochs: int) -> int:
    """How many steps the progress bar has."""
    return WARM_UP_EPOCHS + 2 * epochs


def show(console: Console, cost: Cost) -> None:
    """Prints what was measured."""
    table = empty_table(f"Profiler: turns of three queries over {ROWS} tuples", "", "median turn", "against off")
    table.add_row("profile off", f"{median(cost.off) * 1e3:.1f} ms", "1.000")
    table.add_row("profile on", f"{median(cost.on) * 1e3:.1f} ms", f"{cost.ratio:.3f}")
    console.print(table)
    console.print(f"in the profiler itself: {cost.share:.2%} of the time of turns, {len(cost.on)} turns each")
