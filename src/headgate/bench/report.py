"""Times a small epoch, a replay, the time manager and durability, side by side in one process; ratios before seconds.

Small epochs: the tuples are there before the clock starts; then the time until the results are out and the state is in
order, against one micro-batch of the nearest query that Structured Streaming has, as its own progress reports it. Ours
answers at every change of the last 60 seconds, the native one when a window of 60 seconds closes, every 10 seconds.

Replay: from Parquet files to Parquet files, by headgate (from the CQL text to the last result, and the epoch alone,
without the ingest), by the same question as a batch query written by hand, and by Structured Streaming with all files
in one micro-batch. All have the same session settings: as many shuffle partitions as cores, no adaptive execution.
Results are compared as well.

Time: what it costs to know how far the sources of an arriving batch are complete, by declared bounds and by learnt
ones, beside the Spark job that carries such a batch: read it, write it to a log, and say of each source how many tuples
it sent, stamped when.

Durability: see `durability`.

Not measured: the time from a tuple's arrival to its answer, several queries at once, a cluster, other state stores
than Spark's default. Whatever else the machine does moves all the seconds, and the ratios less.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn
from rich.table import Table

from headgate.bench.durability import (
    LARGE_ROWS,
    LARGE_TURNS,
    SMALL_ROWS,
    SMALL_TURNS,
    WARM_UP,
    Durability,
    cost,
    durability,
)
from headgate.bench.start import FIRST, Step, first_answers
from headgate.catalog.declarations import Declarations, Grouping, Party
from headgate.catalog.entries import Stream
from headgate.catalog.skew import SkewBound
from headgate.engine import Engine
from headgate.heartbeat.arrivals import Arrivals, of_rows
from headgate.heartbeat.manager import Heartbeats
from headgate.sources.inlet import ticks
from headgate.spark.session import own_session, started
from headgate.ticks import TimeDomain

COLUMNS = "k STRING, v DOUBLE, at TIMESTAMP"
SCHEMA = pa.schema([("k", pa.string()), ("v", pa.float64()), ("at", pa.timestamp("us", "UTC"))])
START_US = ticks(datetime(2026, 1, 1, tzinfo=UTC))
SECOND_US = 1_000_000

EPOCH_ROWS = 200
EPOCH_KEYS = 100
WARM_UP_EPOCHS = 40
"""Epochs until the JVM has compiled what a small epoch runs."""

REPLAY_KEYS = 1_000
REPLAY_US = 600 * SECOND_US
REPLAY_FILES = 4
ROUNDS = 3
"""Rounds of which the best counts, after one more to warm up."""

BATCH_ROWS = 100_000
BATCHES = 9
"""Batches of each kind, of which the median counts; the first two warm up."""

MANAGED_SOURCES = (2, 100, 10_000, 100_000)
GROUPS = 16

Part: TypeAlias = Literal["start", "epochs", "replay", "time", "durability"]
PARTS: tuple[Part, ...] = ("start", "epochs", "replay", "time", "durability")
STARTS = 3

Way: TypeAlias = Literal["headgate", "epoch", "batch", "native"]
Seconds: TypeAlias = dict[Way, float]

INSTANTS: dict[Way, str] = {"headgate": "_time", "native": "at"}
"""The column with the instant of a result, for each engine that is compared with the batch query."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One question in CQL and in Spark SQL; the SQL serves both the batch query and Structured Streaming."""

    name: str
    cql: str
    sql: str
    streamable: bool
    """Whether Structured Streaming can express it: its windows are always groups."""


def windows(name: str, length: str, slide: str) -> Workload:
    """A workload that counts and averages in windows of this length and slide."""
    return Workload(
        name,
        "SET range = 'half-open'; CREATE QUERY q AS SELECT ISTREAM(k, COUNT(*) AS n, AVG(v) AS m) "
        f"FROM s [RANGE {length} SLIDE {slide}] GROUP BY k",
        f"SELECT k, window.end AS at, COUNT(*) AS n, AVG(v) AS m FROM s GROUP BY k, window(at, '{length}', '{slide}')",
        streamable=True,
    )


TUMBLING = windows("tumbling 10 s", "10 SECONDS", "10 SECONDS")
SLIDING = windows("sliding 60 s by 10 s", "60 SECONDS", "10 SECONDS")
LAST_MINUTE = Workload(
    "last 60 s, per tuple",
    "CREATE QUERY q AS SELECT ISTREAM(k, COUNT(*) AS n, AVG(v) AS m) FROM s [RANGE 60 SECONDS] GROUP BY k",
    "SELECT k, at, COUNT(*) OVER w AS n, AVG(v) OVER w AS m FROM s "
    "WINDOW w AS (PARTITION BY k ORDER BY at RANGE BETWEEN INTERVAL 60 SECONDS PRECEDING AND CURRENT ROW)",
    streamable=False,
)
WORKLOADS = (TUMBLING, SLIDING, LAST_MINUTE)


@dataclass(frozen=True, slots=True)
class SmallEpochs:
    """Seconds of small epochs and of Spark's micro-batches, and Spark jobs per epoch."""

    epochs: list[float]
    """Seconds of each epoch of headgate."""

    batches: list[float]
    """Seconds of each native micro-batch that had input."""

    jobs: list[int]
    """Spark jobs of each epoch of headgate."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many results equal the batch query's in key, instant, count, and average up to rounding."""

    alike: int
    repeated: int
    """Results that only the batch query has, equal to the key's result before, which ISTREAM leaves out."""

    found: int
    closed: int
    """Results of the batch query up to the last timestamp of the input."""

    open: int
    """Results of the batch query for windows that end later; the others hold them back as not final."""

    @property
    def complete(self) -> bool:
        """Whether every closed result of the batch query was found."""
        return self.alike + self.repeated == self.closed


@dataclass(frozen=True, slots=True)
class ManagerCost:
    """Seconds that the time manager takes for an arriving batch, by kind of bound, and those of its Spark job."""

    sources: int
    rows: int
    seconds: dict[str, float]
    job: float | None
    """Seconds of the Spark job; None for rows pushed from Python, which need no job."""


def report(console: Console, rows: int = 1_000_000, epochs: int = 40, parts: Iterable[Part] = PARTS) -> None:
    """Runs the chosen measurements, and prints a table and a line or two for each."""
    parts = list(parts)
    if "start" in parts:
        with tempfile.TemporaryDirectory(prefix="headgate-bench-") as directory:
            show_starts(console, first_answers(Path(directory), STARTS))
    if parts == ["start"]:
        return
    spark = started()
    err = Console(stderr=True)
    columns = (*Progress.get_default_columns(), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(prefix="headgate-bench-") as directory,
        Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar,
    ):
        live, history = Path(directory, "live"), Path(directory, "replay")
        if "epochs" in parts:
            task = bar.add_task("small epochs", total=WARM_UP_EPOCHS + epochs)
            show_small_epochs(console, small_epochs(spark, live, epochs, lambda: bar.advance(task)))
        if "replay" in parts:
            task = bar.add_task("replay", total=(1 + ROUNDS) * len(WORKLOADS))
            best = replays(spark, history, rows, lambda: bar.advance(task))
            show_replays(console, rows, best)
            for workload, seconds in best.items():
                show_agreements(console, workload, agreements(spark, history, workload, seconds))
        if "time" in parts:
            task = bar.add_task("time", total=1 + len(MANAGED_SOURCES))
            show_managed(console, manager_costs(spark, Path(directory, "time"), lambda: bar.advance(task)))
        if "durability" in parts:
            task = bar.add_task("durability", total=WARM_UP + SMALL_TURNS + 2 + LARGE_TURNS)
            show_durability(console, durability(spark, Path(directory, "durability"), lambda: bar.advance(task)))


def show_starts(console: Console, starts: list[list[Step]]) -> None:
    """Prints the steps of the fastest start."""
    best = min(starts, key=lambda steps: next(step.clock_s for step in steps if step.name == FIRST))
    table = Table("from the command to", "seconds", "of processor time", title=f"Start, the best of {len(starts)}")
    for step in best:
        table.add_row(step.name, f"{step.clock_s:.1f}", f"{step.processor_s:.1f}")
    console.print(table)


# measuring


def tuples(rows: int, keys: int, first_us: int, span_us: int) -> pa.Table:
    """Random tuples in order of time; timestamps are odd, so that none falls on the border of two windows."""
    chance = np.random.default_rng(first_us)
    instants = START_US + first_us + 2 * np.sort(chance.integers(0, span_us // 2, rows)) + 1
    names = [f"k{key}" for key in chance.integers(0, keys, rows)]
    return pa.table([names, chance.random(rows), instants.astype("datetime64[us]")], schema=SCHEMA)


def streaming(
    session: SparkSession, workload: Workload, source: Path, batch_files: int, output: Path
) -> DataStreamWriter:
    """The workload as a native streaming query that reads this many files per micro-batch."""
    arriving = session.readStream.schema(COLUMNS).option("maxFilesPerTrigger", batch_files).parquet(str(source))
    arriving.withWatermark("at", "0 seconds").createOrReplaceTempView("s")
    writer = session.sql(workload.sql).writeStream.outputMode("append").format("parquet")
    return writer.option("path", str(output)).option("checkpointLocation", f"{output}-checkpoint")


def small_epochs(spark: SparkSession, folder: Path, epochs: int, done: Callable[[], None]) -> SmallEpochs:
    """Runs an epoch of headgate and a micro-batch of Spark in turn over the same tuples, after a warm-up."""
    arriving, staged = folder / "arriving", folder / "staged"
    arriving.mkdir(parents=True)
    session = own_session(spark)
    session.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(4 * (WARM_UP_EPOCHS + epochs)))
    session.conf.set("spark.sql.streaming.pollingDelay", "100ms")  # looking for files in our turn, it would disturb us
    context = spark.sparkContext
    groups = [f"headgate-epoch-{epoch}" for epoch in range(WARM_UP_EPOCHS + epochs)]
    seconds, jobs = [], []
    with Engine(spark, folder / "engine") as engine, ExitStack() as stack:
        engine.execute(f"CREATE STREAM s ({COLUMNS}) TIMESTAMP BY at; {LAST_MINUTE.cql}")
        native = streaming(session, SLIDING, arriving, 1, folder / "native").trigger(processingTime="0 seconds").start()
        stack.callback(native.stop)
        for epoch, group in enumerate(groups):
            new = tuples(EPOCH_ROWS, EPOCH_KEYS, epoch * SECOND_US, SECOND_US)
            engine.push("s", new.to_pylist())
            context.setJobGroup(group, "")
            begun = perf_counter()
            engine.step()
            seconds.append(perf_counter() - begun)
            jobs.append(len(context.statusTracker().getJobIdsForGroup(group)))  # Spark does not remember them for long
            pq.write_table(new, staged)
            staged.rename(arriving / f"{epoch:06d}.parquet")
            native.processAllAvailable()
            done()
        batches = [
            progress.durationMs["triggerExecution"] / 1000
            for progress in native.recentProgress
            if progress.numInputRows
        ]
    return SmallEpochs(seconds[WARM_UP_EPOCHS:], batches[WARM_UP_EPOCHS:], jobs[WARM_UP_EPOCHS:])


def replays(spark: SparkSession, folder: Path, rows: int, done: Callable[[], None]) -> dict[Workload, Seconds]:
    """The best seconds of each workload and engine; an engine that cannot express the workload is left out."""
    source = folder / "in"
    source.mkdir(parents=True)
    history = tuples(rows, REPLAY_KEYS, 0, REPLAY_US)
    size = -(-rows // REPLAY_FILES)
    for number in range(REPLAY_FILES):
        pq.write_table(history.slice(number * size, size), source / f"{number}.parquet")
    best: dict[Workload, Seconds] = {workload: {} for workload in WORKLOADS}
    for turn in range(1 + ROUNDS):
        for workload, seconds in best.items():
            output = folder / workload.name
            shutil.rmtree(output, ignore_errors=True)
            for replay in (by_headgate, by_batch, by_native):
                measured = replay(spark, workload, source, output)
                seconds |= {way: min(measured[way], seconds.get(way, measured[way])) for way in measured if turn}
            done()
    return best


def by_headgate(spark: SparkSession, workload: Workload, source: Path, output: Path) -> Seconds:
    """Seconds of a replay by headgate: from the CQL text to the last result, and of the epoch alone."""
    with Engine(spark) as engine:
        begun = perf_counter()
        engine.execute(
            f"CREATE STREAM s ({COLUMNS}) TIMESTAMP BY at FROM parquet OPTIONS ('path' = '{source}'); "
            f"{workload.cql} INTO parquet OPTIONS ('path' = '{output / 'headgate'}')"
        )
        engine.poll()
        kept = perf_counter()
        engine.run_once(close=False)
        ended = perf_counter()
    return {"headgate": ended - begun, "epoch": ended - kept}


def by_batch(spark: SparkSession, workload: Workload, source: Path, output: Path) -> Seconds:
    """Seconds of a replay by a batch query of Spark."""
    session = own_session(spark)
    begun = perf_counter()
    session.read.schema(COLUMNS).parquet(str(source)).createOrReplaceTempView("s")
    session.sql(workload.sql).write.parquet(str(output / "batch"))
    return {"batch": perf_counter() - begun}


def by_native(spark: SparkSession, workload: Workload, source: Path, output: Path) -> Seconds:
    """Seconds of a replay by Structured Streaming; none if it cannot express the workload."""
    if not workload.streamable:
        return {}
    session = own_session(spark)
    begun = perf_counter()
    streaming(session, workload, source, REPLAY_FILES, output / "native").trigger(
        availableNow=True
    ).start().awaitTermination()
    return {"native": perf_counter() - begun}


def agreements(spark: SparkSession, folder: Path, workload: Workload, ways: Iterable[Way]) -> dict[Way, Agreement]:
    """Compares the results of the last round with those of the batch query.

    The batch query has a row for each of several equal tuples; they count once.
    """
    session, output = own_session(spark), folder / workload.name
    session.read.parquet(str(folder / "in")).createOrReplaceTempView("s")
    session.read.parquet(str(output / "batch")).distinct().createOrReplaceTempView("distinct_batch")
    again = "COALESCE(n = LAG(n) OVER w AND ABS(m - LAG(m) OVER w) < 1e-9, FALSE)"
    session.sql(
        f"SELECT *, {again} AS again FROM distinct_batch WINDOW w AS (PARTITION BY k ORDER BY at)"
    ).createOrReplaceTempView("batch")
    compared: dict[Way, Agreement] = {}
    for way in ways:
        if way in INSTANTS:
            results = session.read.parquet(str(output / way))
            results.withColumnRenamed(INSTANTS[way], "at").createOrReplaceTempView("other")
            row = session.sql(
                "SELECT COUNT_IF(other.n = batch.n AND ABS(other.m - batch.m) < 1e-9), "
                "COUNT_IF(other.n IS NULL AND batch.again AND batch.at <= last), COUNT(other.n), "
                "COUNT_IF(batch.at <= last), COUNT_IF(batch.at > last) "
                "FROM other FULL JOIN batch USING (k, at) CROSS JOIN (SELECT MAX(at) AS last FROM s)"
            ).collect()[0]
            compared[way] = Agreement(*row)
    return compared


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


# saying it


def empty_table(title: str, *headings: str) -> Table:
    """An empty table in the style of the report."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="right" if position else "left", no_wrap=True)
    return table


def show_small_epochs(console: Console, timed: SmallEpochs) -> None:
    """Prints the seconds of small epochs beside those of micro-batches."""
    table = empty_table(
        f"Small epochs: {EPOCH_ROWS} new tuples, {EPOCH_KEYS} keys, the last 60 s", "", "median", "p90", "Spark jobs"
    )
    jobs = f"{median(timed.jobs):.0f}, at most {max(timed.jobs)}"
    for name, seconds, count in (("headgate epoch", timed.epochs, jobs), ("native micro-batch", timed.batches, "")):
        table.add_row(name, f"{median(seconds):.3f} s", f"{np.quantile(seconds, 0.9):.3f} s", count)
    console.print(table)
    ours, theirs = median(timed.epochs), median(timed.batches)
    console.print(f"small epoch: {ours / theirs:.2f} x a native micro-batch in time: {ours:.3f} s to {theirs:.3f} s\n")


def show_replays(console: Console, rows: int, best: dict[Workload, Seconds]) -> None:
    """Prints the seconds of the replays, and their ratios to the batch query."""
    title = (
        f"Replay of {rows:,} tuples, {REPLAY_KEYS:,} keys, {REPLAY_US // SECOND_US} s: tuples a second, best of "
        f"{ROUNDS}"
    )
    headings: dict[Way, str] = {"batch": "batch", "headgate": "headgate", "epoch": "epoch alone", "native": "native"}
    table = empty_table(title, "", *headings.values())
    for workload, seconds in best.items():
        speeds = (f"{rows / seconds[way]:,.0f}" if way in seconds else "not expressible" for way in headings)
        table.add_row(workload.name, *speeds)
    console.print(table)
    for workload, seconds in best.items():
        batch, whole, epoch = seconds["batch"], seconds["headgate"], seconds["epoch"]
        native = f"{seconds['native'] / whole:.1f} x native" if "native" in seconds else "native cannot"
        console.print(
            f"{workload.name}: {batch / whole:.2f} x batch in speed, epoch alone {batch / epoch:.2f} x, {native}: "
            f"{whole:.2f} s, epoch alone {epoch:.2f} s, to {batch:.2f} s"
        )
    console.print()


def show_agreements(console: Console, workload: Workload, compared: dict[Way, Agreement]) -> None:
    """Prints how many results agree with the batch query's."""
    for way, results in compared.items():
        remarks = [f"{results.alike:,} of {results.closed:,} results as in batch"]
        if results.repeated:
            remarks.append(f"{results.repeated:,} not repeated")
        if results.found > results.alike:
            remarks.append(f"{results.found - results.alike:,} more when a tuple leaves the window")
        if results.open:
            remarks.append(f"in batch {results.open:,} more of windows still open")
        console.print(f"{workload.name}: {way} {'agrees' if results.complete else 'DIFFERS'}: {', '.join(remarks)}")


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


def show_durability(console: Console, found: Durability) -> None:
    """Prints the cost of durability, checkpoints and recovery."""
    table = empty_table(
        "Durability: an engine with a directory beside one that forgets", "", "remembers", "forgets", "costs"
    )
    turns = (
        (f"{SMALL_ROWS} rows pushed, one epoch", found.small),
        (f"{LARGE_ROWS:,} rows from a file, one epoch", found.large),
    )
    for name, seconds in turns:
        medians = (f"{median(seconds[way]):.3f} s" for way in ("remembers", "forgets"))
        table.add_row(name, *medians, f"{cost(seconds):+.1%}")
    console.print(table)
    held_up = sum(found.checkpoints)
    share = held_up / sum(map(sum, (found.small["remembers"], found.large["remembers"])))
    checkpoints = (
        f"{len(found.checkpoints)} checkpoints of up to {found.checkpoint_bytes:,} bytes held it up for {held_up:.3f} s"
    )
    console.print(f"{checkpoints} in all, {share:.2%} of the time")
    console.print(
        f"recovery: {found.recovery:.2f} s for two queries, {found.rows:,} tuples taken before, {found.files} files; "
        f"the first small epoch after it {found.again:.2f} s\n"
    )
