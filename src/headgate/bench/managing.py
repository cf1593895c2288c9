"""Times the time manager: what it costs to know how far the sources of an arriving batch are complete.

Bounds are declared or learnt. Beside it, the Spark job that carries such a batch: read it, write it to a log, and say
of each source how many tuples it sent, stamped when.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console

from headgate.bench.layout import empty_table
from headgate.bench.tuples import COLUMNS, SECOND_US, START_US, tuples
from headgate.catalog.declarations import Declarations, Grouping, Party
from headgate.catalog.entries import Stream
from headgate.catalog.skew import SkewBound
from headgate.heartbeat.arrivals import Arrivals, of_rows
from headgate.heartbeat.manager import Heartbeats
from headgate.spark.session import own_session
from headgate.ticks import TimeDomain

BATCH_ROWS = 100_000
BATCHES = 9
"""Batches of each kind, of which the median counts; the first two warm up."""

MANAGED_SOURCES = (2, 100, 10_000, 100_000)
GROUPS = 16


@dataclass(frozen=True, slots=True)
class ManagerCost:
    """Seconds that the time manager takes for an arriving batch, by kind of bound, and those of its Spark job."""

    sources: int
    rows: int
    seconds: dict[str, float]
    job: float | None
    """Seconds of the Spark job; None for rows pushed from Python, which need no job."""


def manager_costs(spark: SparkSession, folder: Path, done: Callable[[], None]) -> list[ManagerCost]:
    """Measures the time manager: for batches that Spark summarises, and for single tuples pushed from Python."""
    found = [ManagerCost(2, 1, manager_seconds(2, 1), None)]
    done()
    for sources in MANAGED_SOURCES:
        found.append(
            ManagerCost(
                sources,
                BATCH_ROWS,
                manager_seconds(sources, BATCH_ROWS),
                ingest_seconds(spark, folder / str(sources), sources),
            )
        )
        done()
    return found


def manager_seconds(sources: int, rows: int) -> dict[str, float]:
    """Seconds from a batch's summary to the heartbeat after it, by kind of bound; the sources are known before."""
    names = [f"device {number}" for number in range(sources)]
    times = {way: (heartbeats, list[float]()) for way, heartbeats in managers(names).items()}
    for turn in range(BATCHES if rows > 1 else 100 * BATCHES):
        batch = arriving_batch(names, rows, turn)
        for heartbeats, seconds in times.values():
            begun = perf_counter()
            heartbeats.arrived("s", batch, turn * SECOND_US)
            heartbeats.complete(["s"], turn * SECOND_US)
            seconds.append(perf_counter() - begun)
    return {way: median(seconds[2:]) for way, (_, seconds) in times.items()}


def managers(names: list[str]) -> dict[str, Heartbeats]:
    """A time manager for each kind of bound: declared or learnt, each also with sources in groups if there are many."""
    s = Party("s")
    bounds = (SkewBound(2 * SECOND_US), SkewBound(0, after_us=3 * SECOND_US))
    declared = Declarations(skews={(s, s): bounds}, disorders={s: bounds}, latencies_us={s: SECOND_US // 2})
    ways = {"declared": declared, "learnt": Declarations()}
    if len(names) > GROUPS:
        groupings = {"s": Grouping(sets=tuple(tuple(names[first::GROUPS]) for first in range(GROUPS)))}
        ways |= {f"{way}, grouped": replace(known, groupings=groupings) for way, known in ways.items()}
    found = {way: Heartbeats(known) for way, known in ways.items()}
    for heartbeats in found.values():
        heartbeats.define(Stream("s", (), TimeDomain.TIMESTAMP, "at", source="k"), 0)
    return found


def arriving_batch(names: list[str], rows: int, turn: int) -> Arrivals:
    """A batch with tuples of all sources in turn, out of order by up to half a second.

    Of more than one tuple only the summary is known, as Spark computes it.
    """
    chance = np.random.default_rng(turn)
    ticks = START_US + turn * SECOND_US + chance.integers(0, SECOND_US // 2, rows)
    if rows == 1:
        return of_rows([names[turn % len(names)]], np.zeros(1, np.intp), ticks)
    return replace(of_rows(names, np.arange(rows) % len(names), ticks), rows=None)


def ingest_seconds(spark: SparkSession, folder: Path, sources: int) -> float:
    """Seconds of the Spark job that takes in a staged batch."""
    folder.mkdir(parents=True)
    session = own_session(spark)
    seconds = []
    for turn in range(BATCHES):
        staged, log = folder / f"{turn}.parquet", folder / f"log-{turn}"
        pq.write_table(tuples(BATCH_ROWS, sources, turn * SECOND_US, SECOND_US), staged)
        begun = perf_counter()
        session.read.schema(COLUMNS).parquet(str(staged)).write.parquet(str(log))
        kept = session.read.schema(COLUMNS).parquet(str(log))
        kept.createOrReplaceTempView("arrived")
        session.sql("SELECT k, COUNT(*) AS n, MIN(at) AS first, MAX(at) AS last FROM arrived GROUP BY k").toArrow()
        seconds.append(perf_counter() - begun)
    return median(seconds[2:])


def show_managed(console: Console, found: list[ManagerCost]) -> None:
    """Prints the seconds of the time manager beside those of the Spark job."""
    ways = max((one.seconds for one in found), key=len)
    title = (
        "Time: microseconds a tuple, from a batch's numbers to the heartbeat;\n"
        f"in {GROUPS} groups; the Spark job that carries the batch, and the largest ratio to it"
    )
    table = empty_table(title, "sources", "tuples", *(way.replace(", ", ",\n") for way in ways), "job", "ratio")
    for one in found:
        costs = (f"{one.seconds[way] / one.rows * 1e6:,.3f}" if way in one.seconds else "" for way in ways)
        job = ("", "") if one.job is None else (f"{one.job:.2f} s", f"{max(one.seconds.values()) / one.job:.3f}")
        table.add_row(f"{one.sources:,}", f"{one.rows:,}", *costs, *job)
    console.print(table)
