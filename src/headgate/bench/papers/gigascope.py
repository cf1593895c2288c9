"""Gigascope's sections 7.1 to 7.3 (paper 001): flows in buckets of ten seconds, one of three interfaces nearly silent.

7.1 and 7.2: the most that a merge, and a merge with a full outer join, hold back, against the interval between
heartbeats and with timestamps on demand. 7.3: what heartbeats every second cost where they are not needed, with two
busy interfaces, as processor time of Python and the JVM.

The low level is on: of the nine columns of a packet the logs keep the five that the query reads. What it does to what
is held back is measured beside runs without it; also where all packets of the silent interface fail the prefilter, and
there are no heartbeats but what they tell (4.2).

On a clock moved by hand, by the measured time of every step; see `held` for what counts as held back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from time import thread_time
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from headgate.bench.charts import Axis, line_chart
from headgate.bench.finding import Finding, Grid
from headgate.bench.papers.arrivals import SECOND_US, Arrival, in_order
from headgate.bench.papers.drive import Simulated
from headgate.bench.papers.held import Held, Peak
from headgate.bench.yardstick.processes import processor_s
from headgate.engine import Engine
from headgate.heartbeat.clock import ManualClock

INTERVALS_S = (1, 5, 10, 20, 30, 60)
BUSY = ("main1", "main2")
SILENT = "control"
RATE = 1_000
"""Packets per second of a busy interface; the silent one sends one packet at the beginning."""

PUSHES = 4
"""How many times per second packets are pushed."""

FLOWS = 400

TURNS = 40
TURN_ROWS = 5_000
WARM_UP_TURNS = 8

COLUMNS = (
    "protocol INT, srcip INT, destip INT, srcport INT, destport INT, ttl INT, flags INT, length INT, payload STRING"
)
FLOW = "protocol, srcip, destip, srcport, destport"
BUCKET_US = 10 * SECOND_US
PHASE_US = BUCKET_US - SECOND_US // 2
"""How far timestamps are ahead of the engine's clock: periodic heartbeats fall half a second before a bucket ends, so
that they tell of it a whole interval later. Where they fall together, an interval shorter than a bucket makes no
difference.
"""

TIME_BUCKET = "UNIX_SECONDS(ELEMENT_TIME) DIV 10 AS tb"


def flows(*interfaces: str, where: str = "") -> str:
    """The query: packets of each flow in each bucket over some interfaces, put out when the bucket is closed."""
    merged = " UNION ALL ".join(f"SELECT {TIME_BUCKET}, {FLOW} FROM {interface} {where}" for interface in interfaces)
    return f"SELECT tb, {FLOW}, COUNT(*) AS cnt FROM ({merged}) GROUP BY tb, {FLOW} EMIT FINAL"


MERGE = f"CREATE QUERY flows AS {flows(*BUSY, SILENT)};"
JOIN = (
    f"SET heartbeats = 'operator'; CREATE VIEW flow1 AS {flows('main1', SILENT)}; CREATE VIEW flow2 AS "
    f"{flows('main2')}; "
    f"CREATE QUERY full_flow AS SELECT tb, {FLOW}, flow1.cnt AS cnt1, flow2.cnt AS cnt2 "
    f"FROM flow1 FULL JOIN flow2 USING (tb, {FLOW}) EMIT FINAL;"
)
FILTERED = f"CREATE QUERY flows AS {flows(*BUSY, SILENT, where='WHERE protocol IN (6, 17)')};"
BUSY_MERGE = f"CREATE QUERY flows AS {flows(*BUSY)};"

LOW_LEVEL_S = 10
"""How far apart heartbeats are where the low level is compared with none."""

PAPER = {"merge": {30: "420 MB"}, "merge and full outer join": {60: "520 MB"}}


def turns() -> int:
    """How many steps the progress bar has."""
    return 2 * (len(INTERVALS_S) + 1) + 4 + WARM_UP_TURNS + TURNS


def measure(spark: SparkSession, seconds: float, done: Callable[[], None]) -> Finding:
    """Runs the experiments; each interval runs for `seconds`, or longer if two intervals and a bucket need it."""
    peaks = {
        "merge": memory(spark, MERGE, seconds, done),
        "merge and full outer join": memory(spark, JOIN, seconds, done),
    }
    grids = [grid(peaks), low_level_grid(low_level(spark, seconds, done))]
    spent = overhead(spark, done)
    remarks = [*(fit_sentence(name, found) for name, found in peaks.items()), cost_sentence(spent)]
    return Finding(
        "gigascope",
        grids,
        {f"gigascope-{name.split()[-1]}": chart(name, found) for name, found in peaks.items()},
        remarks,
    )


# measuring


def packets(stream: str, seconds: float, seed: int) -> Iterator[Arrival]:
    """The packets of a busy interface, which arrive a few times a second."""
    chance = np.random.default_rng(seed)
    for push in range(1, int(seconds * PUSHES) + 1):
        yield Arrival(push * SECOND_US // PUSHES, stream, packet_rows(chance, RATE // PUSHES))


def packet_rows(chance: np.random.Generator, count: int) -> list[tuple[Any, ...]]:
    """Random packets of the flows."""
    chosen = chance.integers(0, FLOWS, count).tolist()
    return [
        (
            6 if flow % 3 else 17,
            flow // 8,
            flow % 8,
            1024 + flow,
            443,
            64,
            16,
            66 + flow,
            f"{flow * 2_654_435_761:064x}",
        )
        for flow in chosen
    ]


def control_rows() -> list[tuple[Any, ...]]:
    """A packet of the silent interface that no query asks for."""
    return [(1, 0, 0, 0, 0, 64, 0, 98, "")]


def define(engine: Engine, heartbeat: str, query: str, low_level: str = "on") -> Engine:
    """Defines the streams, the heartbeats and the query on an engine."""
    engine.execute(f"SET low_level = '{low_level}'")
    streams = "".join(f"CREATE STREAM {name} ({COLUMNS}) TIMESTAMP INTERNAL;" for name in (*BUSY, SILENT))
    engine.execute(f"{streams} {heartbeat}; {query}")
    return engine


def memory(spark: SparkSession, query: str, seconds: float, done: Callable[[], None]) -> dict[int | None, Held]:
    """The most that was held back, by the interval between heartbeats in seconds; None stands for on demand."""
    found: dict[int | None, Held] = {}
    for interval in (None, *INTERVALS_S):
        heartbeat = "HEARTBEAT ON DEMAND" if interval is None else f"HEARTBEAT EVERY {interval} SECONDS"
        length = seconds if interval is None else max(seconds, 2.0 * interval + 10)
        first = [Arrival(1, SILENT, packet_rows(np.random.default_rng(0), 1))]
        found[interval] = held_back(spark, heartbeat, query, length, first)
        done()
    return found


def held_back(
    spark: SparkSession, heartbeat: str, query: str, seconds: float, silent: list[Arrival], low_level: str = "on"
) -> Held:
    """The most that was held back, with these packets of the silent interface."""
    clock = ManualClock(SECOND_US, SECOND_US + PHASE_US)
    with Engine(spark, clock=clock) as engine:
        define(engine, heartbeat, query, low_level)
        arriving = in_order(silent, *(packets(name, seconds, seed) for seed, name in enumerate(BUSY)))
        peak = Peak(engine, BUCKET_US)
        Simulated(engine, clock, arriving, look=peak.look).drive(round(seconds * SECOND_US))
        return peak.most


def low_level(spark: SparkSession, seconds: float, done: Callable[[], None]) -> dict[str, dict[str, Held]]:
    """The most that a merge holds back with the low level and without, by where its heartbeats come from."""
    seconds = max(seconds, 2.0 * LOW_LEVEL_S + 10)
    first = [Arrival(1, SILENT, packet_rows(np.random.default_rng(0), 1))]
    each_second = [Arrival(second * SECOND_US, SILENT, control_rows()) for second in range(1, int(seconds))]
    cases = {
        f"heartbeats every {LOW_LEVEL_S} s": (f"HEARTBEAT EVERY {LOW_LEVEL_S} SECONDS", MERGE, first),
        "none; the silent interface sends a packet a second, which no query needs": (
            "HEARTBEAT NONE",
            FILTERED,
            each_second,
        ),
    }
    found: dict[str, dict[str, Held]] = {}
    for name, (heartbeat, query, silent) in cases.items():
        found[name] = {}
        for way in ("off", "on"):
            found[name][way] = held_back(spark, heartbeat, query, seconds, silent, way)
            done()
    return found


def overhead(spark: SparkSession, done: Callable[[], None]) -> dict[str, list[float]]:
    """Seconds of processor time of each turn by how heartbeats are made, and the part of them that went into
    heartbeats.
    """
    spent: dict[str, list[float]] = {"EVERY 1 SECOND": [], "NONE": [], "thinking": []}
    ways = ("EVERY 1 SECOND", "NONE")
    with ExitStack() as stack:
        clocks = {way: ManualClock(SECOND_US) for way in ways}
        engines = {
            way: define(stack.enter_context(Engine(spark, clock=clocks[way])), f"HEARTBEAT {way}", BUSY_MERGE)
            for way in ways
        }
        thinking = _seconds_on_heartbeats(engines["EVERY 1 SECOND"])
        rows = packet_rows(np.random.default_rng(1), TURN_ROWS)
        for turn in range(WARM_UP_TURNS + TURNS):
            for way in ways if turn % 2 else reversed(ways):
                clocks[way].move_by(SECOND_US // 2)
                before, begun = thinking[0], processor_s(os.getpid())
                for interface in BUSY:
                    engines[way].push(interface, rows)
                clocks[way].move_by(SECOND_US // 2)
                engines[way].step()
                if turn >= WARM_UP_TURNS:
                    spent[way].append(processor_s(os.getpid()) - begun)
                    if way != "NONE":
                        spent["thinking"].append(thinking[0] - before)
            done()
    return spent


def _seconds_on_heartbeats(engine: Engine) -> list[float]:
    """A list whose only element adds up the seconds of its thread that the engine spends on heartbeats."""
    spent = [0.0]

    def timed(part: object, name: str) -> None:
        method = getattr(part, name)

        def watched(*arguments: object, **named: object) -> object:
            begun = thread_time()
            try:
                return method(*arguments, **named)
            finally:
                spent[0] += thread_time() - begun

        setattr(part, name, watched)

    timed(engine._core.heartbeats, "complete")
    timed(engine._core.asking, "beat")
    return spent


# showing


def grid(peaks: dict[str, dict[int | None, Held]]) -> Grid:
    """The table of what was held back."""
    headings = [
        "heartbeats",
        *(f"{name}: {what}" for name in ("merge", "with join") for what in ("rows", "bytes", "paper")),
    ]
    rows = []
    for interval in (None, *INTERVALS_S):
        cells = ["on demand" if interval is None else f"every {interval} s"]
        for name, found in peaks.items():
            most = found[interval]
            cells += [f"{most.rows:,}", f"{most.bytes:,}", PAPER[name].get(interval or 0, "")]
        rows.append(tuple(cells))
    return Grid("The most that is held back at any time", tuple(headings), rows)


def low_level_grid(found: dict[str, dict[str, Held]]) -> Grid:
    """The table of what is held back with the low level and without."""
    rows = [
        (name, *(f"{number:,}" for way in ("off", "on") for number in (ways[way].rows, ways[way].bytes)))
        for name, ways in found.items()
    ]
    headings = ("heartbeats", "without low level: rows", "bytes", "with it: rows", "bytes")
    return Grid("The most that a merge holds back, with the low level and without", headings, rows)


def fit_sentence(name: str, found: dict[int | None, Held]) -> str:
    """A sentence on how well a straight line fits, and where on demand lies."""
    rows = [found[interval].rows for interval in INTERVALS_S]
    slope, level = np.polyfit(INTERVALS_S, rows, 1)
    fit = np.corrcoef(INTERVALS_S, rows)[0, 1] ** 2
    lowest = min(rows)
    return (
        f"{name.capitalize()}: {slope:,.0f} rows for each second of the interval, and {level:,.0f} (R² {fit:.4f}); "
        f"{RATE * len(BUSY):,} a second arrive. "
        f"On demand {found[None].rows:,}, {found[None].rows / max(lowest, 1):.2f} times the least of the others."
    )


def cost_sentence(spent: dict[str, list[float]]) -> str:
    """A sentence on what heartbeats cost."""
    with_, without = sum(spent["EVERY 1 SECOND"]), sum(spent["NONE"])
    turns = len(spent["NONE"])
    halves = [
        sum(spent["EVERY 1 SECOND"][half::2]) / sum(spent["NONE"][half::2]) for half in (0, 1)
    ]  # which of them came first in a turn
    return (
        f"7.3, two busy interfaces: {with_ / turns * 1_000:,.0f} ms of processor time (Python and JVM) for a turn of "
        f"{len(BUSY) * TURN_ROWS:,} packets with heartbeats every second, {without / turns * 1_000:,.0f} ms without: a "
        f"factor of {with_ / without:.3f} over {turns} turns side by side ({min(halves):.3f} and {max(halves):.3f} in "
        f"the two halves of them). Finding out the heartbeats took {sum(spent['thinking']) / with_:.3%} of it. "
        "The paper: 37.5 % CPU load to 37.3 %, a factor of 1.005."
    )


def chart(name: str, found: dict[int | None, Held]) -> str:
    """The chart of what was held back against the interval."""
    periodic = [(float(interval), found[interval].rows / 1_000) for interval in INTERVALS_S]
    level = [(float(interval), found[None].rows / 1_000) for interval in (INTERVALS_S[0], INTERVALS_S[-1])]
    ticks = tuple(float(interval) for interval in (0, 10, 20, 30, 40, 50, 60))
    return line_chart(
        f"Held back by {name}",
        Axis("seconds between heartbeats", ticks=ticks),
        Axis("thousand rows, at most"),
        {"periodic": periodic, "on demand": level},
    )
