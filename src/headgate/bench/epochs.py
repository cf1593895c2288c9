"""Times small epochs beside micro-batches of the nearest query that Structured Streaming has.

The tuples are there before the clock starts; then the time until the results are out and the state is in order, against
one micro-batch as its own progress reports it. Ours answers at every change of the last 60 seconds, the native one when
a window of 60 seconds closes, every 10 seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from rich.console import Console

from headgate.bench.layout import empty_table
from headgate.bench.tuples import COLUMNS, SECOND_US, tuples
from headgate.engine import Engine
from headgate.spark.session import own_session

EPOCH_ROWS = 200
EPOCH_KEYS = 100
WARM_UP_EPOCHS = 40
"""Epochs until the JVM has compiled what a small epoch runs."""

LAST_MINUTE = "CREATE QUERY q AS SELECT ISTREAM(k, COUNT(*) AS n, AVG(v) AS m) FROM s [RANGE 60 SECONDS] GROUP BY k"
SLIDING = (
    "SELECT k, window.end AS at, COUNT(*) AS n, AVG(v) AS m FROM s GROUP BY k, window(at, '60 SECONDS', '10 SECONDS')"
)


@dataclass(frozen=True, slots=True)
class SmallEpochs:
    """Seconds of small epochs and of Spark's micro-batches, and Spark jobs per epoch."""

    epochs: list[float]
    """Seconds of each epoch of headgate."""

    batches: list[float]
    """Seconds of each native micro-batch that had input."""

    jobs: list[int]
    """Spark jobs of each epoch of headgate."""


def streaming(session: SparkSession, source: Path, output: Path) -> DataStreamWriter:
    """The native streaming query, which reads one file per micro-batch."""
    arriving = session.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(source))
    arriving.withWatermark("at", "0 seconds").createOrReplaceTempView("s")
    writer = session.sql(SLIDING).writeStream.outputMode("append").format("parquet")
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
        engine.execute(f"CREATE STREAM s ({COLUMNS}) TIMESTAMP BY at; {LAST_MINUTE}")
        native = streaming(session, arriving, folder / "native").trigger(processingTime="0 seconds").start()
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
