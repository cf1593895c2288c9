"""A process in which Spark does the yardstick's jobs: as a batch query, from JSON, or as Structured Streaming.

Sessions have the settings of headgate's own: as many shuffle partitions as cores, no adaptive execution.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter

from pyspark.sql import SparkSession

from headgate.bench.yardstick.data import COLUMNS
from headgate.bench.yardstick.serve import Answer, Job, serve
from headgate.spark.session import own_session, started


def batch(spark: SparkSession, job: Job) -> Answer:
    """Runs a query over Parquet files, and writes its results to Parquet files."""
    session = own_session(spark)
    begun = perf_counter()
    for name, folder in job["streams"].items():
        session.read.schema(COLUMNS).parquet(folder).createOrReplaceTempView(name)
    session.sql(job["sql"]).write.parquet(job["out"])
    return {"seconds": perf_counter() - begun}


def from_json(spark: SparkSession, job: Job) -> Answer:
    """Converts files of JSON to Parquet, then runs the query over these."""
    session = own_session(spark)
    begun = perf_counter()
    converted = {name: f"{job['out']}-{name}" for name in job["streams"]}
    for name, folder in job["streams"].items():
        session.read.schema(COLUMNS).json(folder).write.parquet(converted[name])
    seconds = perf_counter() - begun
    return {"seconds": seconds + batch(spark, {**job, "streams": converted})["seconds"]}


def native(spark: SparkSession, job: Job) -> Answer:
    """Runs a query of Structured Streaming over all files in one micro-batch."""
    session = own_session(spark)
    begun = perf_counter()
    for name, folder in job["streams"].items():
        arriving = session.readStream.schema(COLUMNS).parquet(folder)
        stamped = arriving.selectExpr("*", "TIMESTAMP_MILLIS(ts) AS et")
        stamped.withWatermark("et", f"{job['disorder_ms']} milliseconds").createOrReplaceTempView(name)
    writer = session.sql(job["sql"]).writeStream.outputMode("append").format("parquet").trigger(availableNow=True)
    writer.option("path", job["out"]).option(
        "checkpointLocation", f"{job['out']}-checkpoint"
    ).start().awaitTermination()
    return {"seconds": perf_counter() - begun}


WAYS = {"batch": batch, "from_json": from_json, "native": native}


def start() -> Callable[[Job], Answer]:
    """Starts Spark, for the way that the command names."""
    return partial(WAYS[sys.argv[1]], started())


if __name__ == "__main__":
    serve(start)
