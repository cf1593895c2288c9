"""Runs the papers' experiments one after the other, prints what they found, and writes it to the documentation."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, TypeAlias

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn

from headgate.bench.finding import Finding
from headgate.bench.papers import consistency, flexible, gigascope, native, stream, stream_mill
from headgate.spark.session import started

Experiment: TypeAlias = Literal["stream-mill", "gigascope", "flexible-time", "native", "consistency", "stream"]
PLOTS: dict[Experiment, tuple[str, ...]] = {
    "stream-mill": ("latency", "queue", "idle", "on-demand"),
    "gigascope": ("gigascope-merge", "gigascope-join"),
    "flexible-time": ("heartbeats-latency", "heartbeats-held"),
    "native": ("native",),
    "consistency": (
        "consistency-distances",
        "consistency-throughput",
        "consistency-latency",
        "consistency-inputs",
    ),
    "stream": stream.PLOTS,
}
"""The charts of each experiment; docs/papers.md shows all of them."""

EXPERIMENTS = tuple(PLOTS)

SECONDS = 36.0
"""How long Stream Mill's simulated streams flow; the lengths of the other experiments are in proportion to it."""


def report(
    console: Console, chosen: Iterable[Experiment] = EXPERIMENTS, seconds: float = SECONDS, docs: Path | None = None
) -> None:
    """Runs the experiments, prints what each found, and writes it to the folder `docs` if it is given."""
    err = Console(stderr=True)
    spark = started()
    with (
        tempfile.TemporaryDirectory(prefix="headgate-papers-") as directory,
        Progress(
            *Progress.get_default_columns(),
            TimeElapsedColumn(),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        ) as bar,
    ):
        for name in chosen:
            task = bar.add_task(name, total=turns(name, seconds))
            finding = run(name, spark, Path(directory), seconds, lambda task=task: bar.advance(task))  # type: ignore[misc]
            assert tuple(finding.charts) == PLOTS[name], "a plot that no page shows, or none where one is shown"
            finding.show(console)
            if docs is not None:
                finding.write(docs)


def run(name: Experiment, spark: SparkSession, folder: Path, seconds: float, done: Callable[[], None]) -> Finding:
    """Runs one experiment."""
    match name:
        case "stream-mill":
            return stream_mill.measure(spark, seconds, done)
        case "gigascope":
            return gigascope.measure(spark, gigascope_seconds(seconds), done)
        case "flexible-time":
            return flexible.measure(spark, rounds(seconds), done)
        case "native":
            return native.measure(spark, folder / name, native_seconds(seconds), done)
        case "consistency":
            return consistency.measure(spark, seconds, done)
        case "stream":
            return stream.measure(spark, seconds, done)


def turns(name: Experiment, seconds: float) -> int:
    """How many steps the progress bar of an experiment has."""
    match name:
        case "stream-mill":
            return stream_mill.turns(seconds)
        case "gigascope":
            return gigascope.turns()
        case "flexible-time":
            return flexible.turns(rounds(seconds))
        case "native":
            return len(native.WAYS)
        case "consistency":
            return consistency.turns(seconds)
        case "stream":
            return stream.turns()


def gigascope_seconds(seconds: float) -> float:
    """How long Gigascope's experiments run at least."""
    return max(10.0, seconds * 0.8)


def rounds(seconds: float) -> int:
    """How many rounds the experiment on flexible time has."""
    return max(3, round(seconds / 6))


def native_seconds(seconds: float) -> float:
    """How long each way beside Structured Streaming runs."""
    return max(8.0, seconds * 0.3)
