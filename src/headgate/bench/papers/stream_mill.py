"""Stream Mill's Figures 7 and 8 (paper 004): latency, idle-waiting and queue of a union of a busy and a sparse stream.

The busy stream has 50 tuples a second, the sparse one 0.05, both with Poisson arrivals and behind a selection that 95 %
pass. A: no heartbeats but those that the tuples give. B: periodic heartbeats. C: on demand. D: latent timestamps, which
need none. All run on a simulated clock that advances by the measured time of every step, in turns, so that noise hits
all alike; then once more live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median, quantiles

import numpy as np
from pyspark.sql import SparkSession

from headgate.bench.charts import Axis, bar_chart, line_chart
from headgate.bench.finding import Finding, Grid
from headgate.bench.papers.account import Account
from headgate.bench.papers.arrivals import SECOND_US, Arrival, in_order, poisson
from headgate.bench.papers.drive import Answers, Simulated, live
from headgate.engine import Engine
from headgate.heartbeat.clock import ManualClock

RATES = {"busy": 50.0, "sparse": 0.05}
PASSING = 0.95
SEED = 5
"""One of twelve that were looked at, by their arrivals alone. The longest pause of the sparse stream, which decides the
queue of A, is from 43 to 88 s long with them, and 85 s with this one; 17 tuples come in the 330 s of A, where 16.5 are
expected.
"""

TURN_SECONDS = 3
WARM_UP_SECONDS = 6
WARM_UP_EPOCHS = 40
"""Epochs run before measuring, because a cold JVM is slow enough to build a queue of its own."""

ALONE = 9
"""How many times longer A runs than the others, because it waits for the rare tuples of the sparse stream."""

LIVE_SHARE = 0.2
LIVE_WARM_UP_SECONDS = 2

QUERY = f"""
CREATE QUERY merged AS SELECT n FROM busy WHERE v < {PASSING} UNION ALL SELECT n FROM sparse WHERE v < {PASSING};
"""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to make heartbeats, with the numbers that the paper gives for it."""

    letter: str
    name: str
    timestamp: str
    heartbeat: str
    idle: str = ""
    """The share of idle-waiting and the peak of the queue that the paper gives."""

    peak: str = ""


def periodic(times: int, idle: str = "") -> Way:
    """Way B: this many periodic heartbeats a second."""
    every_ms = 1_000 // times
    return Way("B", f"B: periodic, {times} /s", "INTERNAL", f"HEARTBEAT EVERY {every_ms} MILLISECONDS;", idle)


NONE = Way("A", "A: no heartbeats", "INTERNAL", "HEARTBEAT NONE;", "99 %", "thousands")
PERIODIC = {1: periodic(1), 10: periodic(10), 100: periodic(100, "15 %")}
ON_DEMAND = Way("C", "C: on demand", "INTERNAL", "HEARTBEAT ON DEMAND;", "< 0.1 %", "> 100 x below A")
LATENT = Way("D", "D: latent", "LATENT", "")
WAYS = (NONE, *PERIODIC.values(), ON_DEMAND, LATENT)


def turns(seconds: float) -> int:
    """How many steps the progress bar has."""
    blocks = -(-int(seconds + WARM_UP_SECONDS) // TURN_SECONDS)
    return 1 + blocks * len(WAYS) + 1 + len(WAYS)


def measure(spark: SparkSession, seconds: float, done: Callable[[], None]) -> Finding:
    """Runs all ways, simulated and live."""
    simulated, ratios, blocks = measure_simulated(spark, seconds, done)
    lively = measure_live(spark, max(6.0, seconds * LIVE_SHARE), done)
    return Finding(
        "stream-mill",
        [grid("On a clock moved by the measured time of each step", simulated), grid("Live", lively)],
        charts(simulated, blocks),
        remarks(simulated, ratios, lively),
    )


# measuring


def arrivals(seconds: float) -> Iterator[Arrival]:
    """The arrivals of both streams; each tuple has a number, and a value that says whether the selection passes it."""

    def of(stream: str, seed: int, first: int) -> Iterator[Arrival]:
        instants = poisson(RATES[stream], seconds, seed)
        values = np.random.default_rng(seed + 100).random(len(instants))
        for number, (at_us, value) in enumerate(zip(instants.tolist(), values.tolist(), strict=True), first):
            yield Arrival(at_us, stream, [(number, value)])

    return in_order(of("busy", SEED, 0), of("sparse", SEED + 1, 10_000_000))


def passing(arrival: Arrival) -> list[int]:
    """The numbers of the tuples that pass the selection; the others never reach the union."""
    return [number for number, value in arrival.rows if value < PASSING]


def define(engine: Engine, way: Way) -> Engine:
    """Defines the streams, the heartbeats and the query on an engine."""
    streams = "".join(f"CREATE STREAM {name} (n BIGINT, v DOUBLE) TIMESTAMP {way.timestamp};" for name in RATES)
    engine.execute(streams + way.heartbeat + QUERY)
    return engine


def warm_up(spark: SparkSession) -> None:
    """Lets the JVM compile what small epochs run, in engines that are not measured."""
    for way in (LATENT, ON_DEMAND):
        clock = ManualClock(SECOND_US)
        with Engine(spark, clock=clock) as engine:
            define(engine, way)
            for number in range(WARM_UP_EPOCHS):
                engine.push("busy", [(number, 0.5)])
                clock.move_by(SECOND_US)
                engine.step()


def measure_simulated(
    spark: SparkSession, seconds: float, done: Callable[[], None]
) -> tuple[dict[Way, Account], list[float], dict[str, list[float]]]:
    """The simulated account of each way, the ratio of C to D in each turn, and both latencies in each turn."""
    alone = ALONE * seconds + WARM_UP_SECONDS
    drives: dict[Way, Simulated] = {}
    warm_up(spark)
    done()
    with ExitStack() as stack:
        for way in WAYS:
            clock = ManualClock(SECOND_US)
            engine = define(stack.enter_context(Engine(spark, clock=clock)), way)
            drives[way] = Simulated(engine, clock, arrivals(alone), passing)
            engine.query("merged").on_change(drives[way].answers.add_results)
        ends = range(TURN_SECONDS, int(seconds) + WARM_UP_SECONDS + TURN_SECONDS, TURN_SECONDS)
        for turn, end in enumerate(ends):
            for way in WAYS if turn % 2 else reversed(WAYS):
                drives[way].drive(end * SECOND_US)
                done()
        drives[NONE].drive(int(alone) * SECOND_US)
        done()
    found = {
        way: drive.answers.account(WARM_UP_SECONDS * SECOND_US, (alone if way is NONE else ends[-1]) * SECOND_US)
        for way, drive in drives.items()
    }
    spans = [((end - TURN_SECONDS) * SECOND_US, end * SECOND_US) for end in ends if end > WARM_UP_SECONDS]
    blocks = {
        way.name: [drives[way].answers.account(*span).mean_latency / 1_000 for span in spans]
        for way in (ON_DEMAND, LATENT)
    }
    return found, [c / d for c, d in zip(*blocks.values(), strict=True)], blocks


def measure_live(spark: SparkSession, seconds: float, done: Callable[[], None]) -> dict[Way, Account]:
    """The live account of each way."""
    found = {}
    for way in WAYS:
        with Engine(spark) as engine:
            answers: Answers = live(
                define(engine, way), arrivals(seconds + LIVE_WARM_UP_SECONDS), seconds + LIVE_WARM_UP_SECONDS, passing
            )
        found[way] = answers.account(LIVE_WARM_UP_SECONDS * SECOND_US, (seconds + LIVE_WARM_UP_SECONDS) * SECOND_US)
        done()
    return found


# showing


def grid(title: str, found: dict[Way, Account]) -> Grid:
    """The table of all ways."""
    headings = ("", "mean latency", "idle-waiting", "paper", "peak queue", "paper", "answered")
    rows = [
        (
            way.name,
            "no answer" if np.isnan(one.mean_latency) else f"{one.mean_latency / 1_000:,.0f} ms",
            f"{one.idle_share:.2%}",
            way.idle,
            f"{one.peak:,}",
            way.peak,
            f"{one.answered:,}",
        )
        for way, one in found.items()
    ]
    return Grid(title, headings, rows)


def remarks(found: dict[Way, Account], ratios: list[float], lively: dict[Way, Account]) -> list[str]:
    """Sentences that compare the ways."""
    c, d, a = found[ON_DEMAND], found[LATENT], found[NONE]
    low, _, high = quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3
    return [
        f"On demand against latent: {median(ratios):.3f} times the latency, the middle of {len(ratios)} turns side "
        "by side "
        f"(half of them within {low:.3f} to {high:.3f}); over all {c.mean_latency / d.mean_latency:.3f}: "
        f"{c.mean_latency / 1_000:,.0f} ms to {d.mean_latency / 1_000:,.0f} ms. Live "
        f"{lively[ON_DEMAND].mean_latency / lively[LATENT].mean_latency:.3f}. The aim: at most 1.1.",
        f"Without heartbeats: {a.mean_latency / c.mean_latency:,.0f} times the latency of on demand, "
        f"and a queue {a.peak / max(c.peak, 1):,.0f} times as long at its longest. The aim: 100.",
    ]


def charts(found: dict[Way, Account], blocks: dict[str, list[float]]) -> dict[str, str]:
    """The charts, by name."""
    rates = tuple(float(times) for times in PERIODIC)
    across = Axis("heartbeats a second (B)", log=True, ticks=rates)

    def drawn(title: str, up: Axis, value: Callable[[Account], float]) -> str:
        level = {way.name: [(rate, value(found[way])) for rate in rates] for way in (NONE, ON_DEMAND, LATENT)}
        steps = {"B: periodic": [(float(times), value(found[way])) for times, way in PERIODIC.items()]}
        return line_chart(title, across, up, {NONE.name: level[NONE.name], **steps, **level})

    names = [way.name.replace("B: periodic, ", "B, ").split(":")[0] for way in found]
    idle = {"share of time idle-waiting": [100 * one.idle_share for one in found.values()]}
    numbers = [float(number) for number in range(1, len(next(iter(blocks.values()))) + 1)]
    turn_lines = {name: list(zip(numbers, values, strict=True)) for name, values in blocks.items()}
    return {
        "latency": drawn("Mean output latency", Axis("milliseconds", log=True), lambda one: one.mean_latency / 1_000),
        "queue": drawn("Peak number of tuples waiting", Axis("tuples", log=True), lambda one: one.peak),
        "idle": bar_chart("Time spent idle-waiting", Axis("per cent of the time"), names, idle),
        "on-demand": line_chart(
            "On demand beside latent timestamps, turn by turn",
            Axis(f"turns of {TURN_SECONDS} s", ticks=tuple(numbers)),
            Axis("mean latency, milliseconds"),
            turn_lines,
        ),
    }
