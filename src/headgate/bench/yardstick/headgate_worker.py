"""A process in which headgate does the yardstick's jobs: from the CQL text to the last result in its sink."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from headgate.bench.yardstick.serve import Answer, Job, serve
from headgate.deliver.sinks.files import read_commits
from headgate.engine import Engine
from headgate.spark.session import started


def start() -> Callable[[Job], Answer]:
    """Starts Spark."""
    spark = started()

    def do(job: Job) -> Answer:
        begun = perf_counter()
        with Engine(spark, job["directory"]) as engine:
            engine.execute(job["script"])
            engine.run_once(close=False)
        seconds = perf_counter() - begun
        return {"seconds": seconds, "epochs": sum(1 for _ in read_commits(job["out"]))}

    return do


if __name__ == "__main__":
    serve(start)
