"""Figure 5 of flexible time (paper 000, section 7): O1 joins S1 and S2, O2 joins the result with S3, which lags.

Query-level heartbeats let O1 wait for S3, so that both joins are still to do when S3 has caught up. Operator-level ones
let O1 run ahead and keep its results, which are many if it is proliferative. Memory-aware ones let it run ahead only if
it is selective.

In each round S1 and S2 speak for a while and what is held is counted; then S3 catches up, and the seconds until the
results are out are measured. All strategies take turns, each in an engine of its own, with the same tuples.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter

import numpy as np
from pyspark.sql import SparkSession

from headgate.bench.charts import Axis, bar_chart
from headgate.bench.finding import Finding, Grid
from headgate.bench.papers.held import Held, held
from headgate.engine import Engine
from headgate.heartbeat.clock import ManualClock

STRATEGIES = ("query", "operator", "memory-aware")
KEYS = {"selective": 5_000, "proliferative": 100}
"""The number of keys: with few keys each tuple finds many partners."""

ROWS = 5_000
LAGGING_ROWS = 100
SPAN = 1_000
"""Ticks of a round; a window is a tenth of it."""

WARM_UP_ROUNDS = 3

SCRIPT = """
SET estimation = 'off'; SET heartbeats = '{strategy}';
CREATE STREAM s1 (k INT, v INT, at BIGINT) TIMESTAMP BY at;
CREATE STREAM s2 (k INT, v INT, at BIGINT) TIMESTAMP BY at;
CREATE STREAM s3 (k INT, v INT, at BIGINT) TIMESTAMP BY at;
CREATE QUERY o2 AS SELECT ISTREAM(o1.k, o1.x, o1.y, s3.v AS z)
  FROM (SELECT s1.k, s1.v AS x, s2.v AS y FROM s1 [RANGE 100], s2 [RANGE 100] WHERE s1.k = s2.k) AS o1, s3 [RANGE 100]
  WHERE o1.k = s3.k;
"""


@dataclass(slots=True)
class StrategyResult:
    """What one strategy needed: seconds of each round, the most it held, and its number of results."""

    seconds: list[float] = field(default_factory=list)
    """Seconds of each round from the moment at which S3 has caught up until the results are out."""

    most: Held = field(default_factory=Held)
    results: int = 0


def turns(rounds: int) -> int:
    """How many steps the progress bar has."""
    return len(KEYS) * (WARM_UP_ROUNDS + rounds)


def measure(spark: SparkSession, rounds: int, done: Callable[[], None]) -> Finding:
    """Runs the experiment for both kinds of O1."""
    found = {kind: by_strategy(spark, kind, rounds, done) for kind in KEYS}
    rows = [
        (
            f"O1 {kind}, {strategy}",
            f"{median(one.seconds):.3f} s",
            f"{min(one.seconds):.3f} to {max(one.seconds):.3f} s",
            f"{one.most.rows:,}",
            f"{one.most.bytes:,}",
            f"{one.results:,}",
        )
        for kind, strategies in found.items()
        for strategy, one in strategies.items()
    ]
    headings = ("heartbeats", "latency, middle", "range", "rows held", "bytes held", "results")
    seconds = {strategy: [median(found[kind][strategy].seconds) for kind in KEYS] for strategy in STRATEGIES}
    most = {strategy: [float(found[kind][strategy].most.rows) for kind in KEYS] for strategy in STRATEGIES}
    groups = [f"O1 {kind}" for kind in KEYS]
    return Finding(
        "flexible-time",
        [Grid("From the moment at which S3 catches up to the results; held while it lags", headings, rows)],
        {
            "heartbeats-latency": bar_chart(
                "Latency once the lagging stream has caught up", Axis("seconds"), groups, seconds
            ),
            "heartbeats-held": bar_chart("Held while it lags", Axis("rows", log=True), groups, most),
        },
        [comparison(kind, strategies) for kind, strategies in found.items()],
    )


def by_strategy(spark: SparkSession, kind: str, rounds: int, done: Callable[[], None]) -> dict[str, StrategyResult]:
    """Runs all strategies in turn on the same tuples."""
    found = {strategy: StrategyResult() for strategy in STRATEGIES}
    chance = np.random.default_rng(5)
    with ExitStack() as stack:
        engines = {strategy: stack.enter_context(Engine(spark, clock=ManualClock())) for strategy in STRATEGIES}
        for strategy, engine in engines.items():
            engine.execute(SCRIPT.format(strategy=strategy))
        for turn in range(WARM_UP_ROUNDS + rounds):
            first = turn * SPAN
            tuples = {
                stream: random_tuples(chance, KEYS[kind], count, first)
                for stream, count in (("s1", ROWS), ("s2", ROWS), ("s3", LAGGING_ROWS))
            }
            for strategy in STRATEGIES if turn % 2 else reversed(STRATEGIES):
                most, seconds = one_round(engines[strategy], tuples, first + SPAN)
                if turn >= WARM_UP_ROUNDS:
                    found[strategy].seconds.append(seconds)
                    found[strategy].most = found[strategy].most.larger(most)
            done()
        for strategy, engine in engines.items():
            found[strategy].results = engine.query("o2").count
    return found


def random_tuples(chance: np.random.Generator, keys: int, count: int, first: int) -> list[tuple[int, int, int]]:
    """Random tuples of one round: key, number, timestamp."""
    at = np.sort(chance.integers(first + 1, first + SPAN, count)).tolist()
    return list(zip(chance.integers(0, keys, count).tolist(), range(count), at, strict=True))


def one_round(engine: Engine, tuples: dict[str, list[tuple[int, int, int]]], end: int) -> tuple[Held, float]:
    """Runs one round: S1 and S2 deliver, then S3 catches up.

    Returns what was held before S3 caught up, and the seconds from then to the results.
    """
    for stream in ("s1", "s2"):
        engine.push(stream, tuples[stream])
        engine.punctuate(stream, end)
    while engine.step():
        pass
    most = held(engine)
    engine.push("s3", tuples["s3"])
    begun = perf_counter()
    engine.punctuate("s3", end)
    while engine.query("o2").reached < end:
        engine.step()
    return most, perf_counter() - begun


def comparison(kind: str, found: dict[str, StrategyResult]) -> str:
    """A sentence that compares the strategies with query-level heartbeats."""
    query = found["query"]
    comparisons = []
    for strategy in STRATEGIES[1:]:
        one = found[strategy]
        seconds = median(mine / theirs for mine, theirs in zip(one.seconds, query.seconds, strict=True))
        comparisons.append(
            f"{strategy} {seconds:.2f} times the latency and {one.most.rows / max(query.most.rows, 1):.2f} times the "
            "rows"
        )
    agree = len({one.results for one in found.values()}) == 1
    return (
        f"O1 {kind}, against query-level: {', '.join(comparisons)}; "
        f"{'all with the same results' if agree else 'RESULTS DIFFER'}."
    )
