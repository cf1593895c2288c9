"""Times a family of queries by the number of its members: what a second of its stream costs, and what memory it takes.

Members watch one of many symbols each, by a threshold that one tick in a hundred goes beyond. A second of the stream
has 10,000 ticks, at as many instants as there are milliseconds; it is pushed and answered as one epoch.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from time import clock_gettime, perf_counter, process_time

import numpy as np
from pyspark.sql import SparkSession
from rich.console import Console

from headgate.bench.finding import Finding, Grid
from headgate.engine import Engine

NAME = "families"
MEMBERS = (1, 10, 100, 1_000, 10_000, 100_000)
TICKS = 10_000
WARM_UP, TIMED = 6, 9
"""Seconds of the stream that are not timed and that are, for each number of members."""

REGISTERED = 10_000
"""Subscriptions that are put in at once."""

DEFINED = """
CREATE STREAM ticks (symbol STRING, price DOUBLE, at BIGINT) TIMESTAMP BY at;
CREATE RELATION subscribers (id INT, symbol STRING, threshold DOUBLE);
CREATE QUERIES alert FOR EACH ROW OF subscribers AS SELECT ISTREAM s.symbol, s.price FROM ticks [NOW] s
  WHERE s.symbol = subscribers.symbol AND s.price > subscribers.threshold
"""


@dataclass(frozen=True, slots=True)
class Point:
    """What a second of the stream costs with so many members."""

    members: int
    seconds: list[float]
    """Of each second of the stream: how long pushing and answering it takes."""

    processor_s: float
    """Of each of them, on average: how long the processors worked for it, in Python and in the JVM."""

    results: int
    """Results in all of these seconds."""

    peak_bytes: int
    """The most memory that this process and the JVM have taken so far."""


@dataclass(frozen=True, slots=True)
class Families:
    """Points by the number of members, and the seconds until new subscriptions have their first answers."""

    points: list[Point]
    registering_s: float


def families(spark: SparkSession, done: Callable[[], None]) -> Families:
    """Measures each number of members in an engine of its own, and registers more with the largest."""
    points, registering_s = [], 0.0
    for members in MEMBERS:
        with Engine(spark) as engine:
            engine.execute(DEFINED)
            engine.push("subscribers", [(0, row, "+") for row in _subscribers(0, members, members)])
            for number in range(WARM_UP):
                _second(engine, number, members, done)
            before = processor_s(spark)
            seconds = [_second(engine, number, members, done) for number in range(WARM_UP, WARM_UP + TIMED)]
            worked = (processor_s(spark) - before) / TIMED
            points.append(Point(members, seconds, worked, engine.query("alert").count, _peak_bytes(spark)))
            if members == MEMBERS[-1]:
                at = (WARM_UP + TIMED) * 1000 + 1
                rows = [(at, row, "+") for row in _subscribers(members, REGISTERED, members)]
                begun = perf_counter()
                engine.push("subscribers", rows)
                _second(engine, WARM_UP + TIMED, members, done)
                registering_s = perf_counter() - begun
    return Families(points, registering_s)


def steps() -> int:
    """How many seconds of the stream are run in all."""
    return len(MEMBERS) * (WARM_UP + TIMED) + 1


def _symbols(members: int) -> int:
    return max(1, members // 10)


def _subscribers(first: int, count: int, members: int) -> list[tuple[int, str, float]]:
    """Rows of the relation: ten members for each symbol, with thresholds from 98 to 100."""
    symbols = _symbols(members)
    return [(one, f"S{one % symbols}", 98.0 + 2 * ((one * 7919) % 1000) / 1000) for one in range(first, first + count)]


def _second(engine: Engine, number: int, members: int, done: Callable[[], None]) -> float:
    """Push and answer one second of the stream; returns how long that took."""
    chance = np.random.default_rng(number)
    symbols, prices = chance.integers(0, _symbols(members), TICKS), chance.random(TICKS) * 100
    instants = number * 1000 + 1 + np.sort(chance.integers(0, 1000, TICKS))
    rows = [
        (f"S{symbol}", price, at)
        for symbol, price, at in zip(symbols.tolist(), prices.tolist(), instants.tolist(), strict=True)
    ]
    begun = perf_counter()
    engine.push("ticks", rows)
    engine.advance((number + 1) * 1000)
    took = perf_counter() - begun
    done()
    return took


def processor_s(spark: SparkSession) -> float:
    """How long the processors have worked for this process and for the JVM of Spark's driver."""
    clock_of_driver = (~_driver(spark) << 3) | 2  # as clock_getcpuclockid makes it: finer than the ticks in /proc
    return process_time() + clock_gettime(clock_of_driver)


def _driver(spark: SparkSession) -> int:
    """The process of the JVM of Spark's driver."""
    return int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]


def _peak_bytes(spark: SparkSession) -> int:
    """The most memory that this process and the JVM of Spark's driver have had so far."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    for line in Path(f"/proc/{_driver(spark)}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return own + int(line.split()[1]) * 1024
    return own


def finding(measured: Families) -> Finding:
    """The table and the remarks, without the plot."""
    rows = [
        (
            f"{point.members:,}",
            f"{median(point.seconds):.2f}",
            f"{fmean(point.seconds):.2f}",
            f"{max(point.seconds):.2f}",
            f"{point.processor_s:.2f}",
            f"{point.results / (WARM_UP + TIMED):,.0f}",
            f"{point.peak_bytes / 2**20:,.0f} MB",
        )
        for point in measured.points
    ]
    headings = ("members", "median", "mean", "longest", "of processors", "results", "peak memory, Python and JVM")
    return Finding(
        NAME,
        [Grid(f"Seconds for a second of the stream, {TICKS:,} ticks", headings, rows)],
        {},
        [
            "The mean has what moving the state costs every few epochs; a family keeps up while it is below 1. Of "
            "processors: how long both cores together worked for it, which other work beside it changes less.",
            f"{REGISTERED:,} more subscriptions beside {MEMBERS[-1]:,}: {measured.registering_s:.1f} s from pushing "
            "their rows to their first answers.",
        ],
        "performance",
    )


def plots(measured: Families) -> dict[str, str]:
    """The cost against the number of members, as an SVG text; Matplotlib draws it."""
    from headgate.bench.charts import Axis, line_chart

    lines = {
        "median": [(float(point.members), median(point.seconds)) for point in measured.points],
        "mean": [(float(point.members), fmean(point.seconds)) for point in measured.points],
        "of processors": [(float(point.members), point.processor_s) for point in measured.points],
    }
    across = Axis("members", log=True, ticks=tuple(map(float, MEMBERS)))
    return {NAME: line_chart("A second of the stream, by members", across, Axis("seconds"), lines)}


def show(console: Console, measured: Families, docs: Path | None) -> None:
    """Prints what was found, and writes it into the page if a folder of documentation is given."""
    found = finding(measured)
    found.show(console)
    if docs is not None:
        found.charts.update(plots(measured))
        found.write(docs)
