"""Twenty-four hours in miniature: thousands of epochs of a mixed load in one process. Memory, files and checkpoints
must level off.

    PYTHONPATH=tests python -m tools.endurance --epochs 2000

Four streams by a clock that is moved a second an epoch: orders and payments out of order within their bounds, readings
from files, and one that is silent most of the time. Four queries: a join, a windowed aggregate as a relation, a row
window, a union with the silent stream; a fifth comes and goes. Every so many epochs is measured, after both garbage
collectors have run:

    python MB   resident memory of this process         py4j     objects of the JVM that Python holds on to
    jvm MB      resident memory of the JVM              objects  Python objects that its collector knows
    heap MB     what is alive on its heap               files, journal KB, logs KB, state KB   in the engine's directory
    s/epoch     time of an epoch of all queries; it is printed and not judged, as the machine may have other work

A figure levels off if it grows by no more than a small share between the two halves of the last third. What sinks wrote
is the user's and not counted. The figures are also written as CSV and drawn as SVG.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from statistics import mean

import psutil
from py4j.finalizer import ThreadSafeFinalizer
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from headgate import Engine, ManualClock
from headgate.spark.session import started

SECOND_US = 1_000_000
MB = 2**20
KB = 2**10

SCRIPT = """TIMEOUT 5 SECONDS;
CREATE STREAM orders (id BIGINT, customer INT, amount BIGINT, at BIGINT) TIMESTAMP BY at;
CREATE STREAM payments (id BIGINT, amount BIGINT, at BIGINT) TIMESTAMP BY at;
CREATE STREAM quiet (word STRING, at BIGINT) TIMESTAMP BY at;
CREATE STREAM readings (sensor INT, value DOUBLE, at BIGINT) TIMESTAMP BY at FROM json OPTIONS ('path' = '{folder}/readings');
DISORDER OF orders 20; DISORDER OF payments 30; DISORDER OF readings 10;
CREATE QUERY matched AS SELECT ISTREAM(o.id, o.customer, p.amount) FROM orders [RANGE 100] AS o, payments [RANGE 100] AS p
  WHERE o.id = p.id INTO parquet OPTIONS ('path' = '{folder}/out/matched');
CREATE QUERY busy AS SELECT customer, SUM(amount) AS total, COUNT(*) AS orders, MAX(amount) AS most FROM orders [RANGE 200]
  GROUP BY customer INTO parquet OPTIONS ('path' = '{folder}/out/busy');
CREATE QUERY latest AS SELECT sensor, AVG(value) AS mean FROM readings [PARTITION BY sensor ROWS 3]
  GROUP BY sensor INTO parquet OPTIONS ('path' = '{folder}/out/latest');
CREATE QUERY said AS SELECT ISTREAM(word, at) FROM quiet [NOW] UNION ALL SELECT CAST(customer AS STRING) AS word, at FROM orders [NOW]
  WHERE amount > 990 INTO parquet OPTIONS ('path' = '{folder}/out/said');
"""
PASSING = """CREATE QUERY passing AS SELECT customer, COUNT(*) AS orders FROM orders [RANGE 50] GROUP BY customer
  INTO parquet OPTIONS ('path' = '{folder}/out/passing')"""
"""Comes and goes again and again."""

COMES_EVERY = 10
TICKS = 10
"""How many instants of the streams an epoch spans."""

SENSORS = 20
CUSTOMERS = 50
KEPT_FILES = 100
"""How many files of readings stay in their folder: whoever sends them clears up."""


@dataclass(frozen=True, slots=True)
class Sample:
    epoch: int
    python_mb: float
    jvm_mb: float
    heap_mb: float
    py4j: int
    objects: int
    files: int
    journal_kb: float
    logs_kb: float
    state_kb: float
    seconds: float


LIMITS = {
    "python_mb": (0.02, 2),
    "jvm_mb": (0.03, 15),
    "heap_mb": (0.03, 2),
    "py4j": (0.05, 20),
    "objects": (0.02, 500),
    "files": (0.1, 64),
    "journal_kb": (0.2, 1_100),
    "logs_kb": (0.2, 100),
    "state_kb": (0.2, 50),
}
"""The share by which a figure may grow between the two halves of the last third, and how much is no growth in any case:
a log merges its files sixteen at a time, so their number goes up and down by that for each stream, and a checkpoint
takes the journal's place when that has grown to a megabyte. """


class Feed:
    """What arrives in an epoch, by a seed: rows with timestamps out of order within the bounds that were declared."""

    def __init__(self, folder: Path, seed: int, rows: int) -> None:
        self.chance = random.Random(seed)
        self.folder = folder / "readings"
        self.folder.mkdir(parents=True)
        self.rows = rows
        self.number = 0

    def epoch(self, engine: Engine, epoch: int) -> None:
        chance, base = self.chance, 1_000 + epoch * TICKS
        orders, payments = [], []
        for _ in range(self.rows):
            self.number += 1
            at = base + chance.randrange(TICKS)
            amount = chance.randrange(1_000)
            orders.append((self.number, chance.randrange(CUSTOMERS), amount, at - chance.randrange(10)))
            payments.append((self.number - chance.randrange(self.rows), amount, at - chance.randrange(20)))
        engine.push("orders", orders)
        engine.push("payments", payments)
        if epoch % 97 == 5:
            engine.push("quiet", [("still here", base + TICKS)])
        lines = (
            json.dumps(
                {"sensor": chance.randrange(SENSORS), "value": chance.random(), "at": base + chance.randrange(TICKS)}
            )
            for _ in range(self.rows)
        )
        staged = self.folder / f".{epoch:09d}.json"
        staged.write_text("\n".join(lines), encoding="utf-8")
        staged.rename(self.folder / f"{epoch:09d}.json")
        (self.folder / f"{epoch - KEPT_FILES:09d}.json").unlink(missing_ok=True)


class Gauge:
    """Measures this process, its JVM and the engine's directory."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.python = psutil.Process()
        self.jvm = next(child for child in self.python.children(recursive=True) if "java" in child.name())
        self.runtime = spark._jvm.java.lang.Runtime.getRuntime()  # type: ignore[union-attr]
        self.system = spark._jvm.java.lang.System  # type: ignore[union-attr]
        self.directory = directory

    def sample(self, epoch: int, seconds: float) -> Sample:
        gc.collect()
        alive = self.alive()
        while (less := self.alive()) < alive - MB:  # Spark clears up behind the collector, in a thread of its own
            alive = less
        sizes = dict(self.sizes())

        def kilobytes(*folders: str) -> float:
            return round(sum(size for path, size in sizes.items() if path.parts[0] in folders) / KB, 1)

        return Sample(
            epoch,
            python_mb=round(self.python.memory_info().rss / MB, 1),
            jvm_mb=round(self.jvm.memory_info().rss / MB, 1),
            heap_mb=round(alive / MB, 1),
            py4j=len(ThreadSafeFinalizer.finalizers),
            objects=len(gc.get_objects()),
            files=len(sizes),
            journal_kb=kilobytes("journal"),
            logs_kb=kilobytes("streams", "dead"),
            state_kb=kilobytes("queries"),
            seconds=round(seconds, 3),
        )

    def alive(self) -> int:
        self.system.gc()
        time.sleep(0.2)
        return int(self.runtime.totalMemory() - self.runtime.freeMemory())

    def sizes(self) -> Iterator[tuple[Path, int]]:
        for path in self.directory.rglob("*"):
            try:
                if path.is_file():
                    yield path.relative_to(self.directory), path.stat().st_size
            except FileNotFoundError:
                pass  # a checkpoint is written beside us

    def histogram(self) -> dict[str, int]:
        """Bytes alive on the heap by class, if the JDK's tool for it is there."""
        if shutil.which("jcmd") is None:
            return {}
        said = subprocess.run(
            ["jcmd", str(self.jvm.pid), "GC.class_histogram"], capture_output=True, text=True, check=False
        ).stdout
        lines = (line.split() for line in said.splitlines())
        return {words[3]: int(words[2]) for words in lines if len(words) >= 4 and words[0].endswith(":")}


def growth(values: Sequence[float]) -> tuple[float, float]:
    """The means of the two halves of the last third."""
    third = values[-max(2, len(values) // 3) :]
    middle = len(third) // 2
    return mean(third[:middle]), mean(third[middle:])


def verdicts(samples: Sequence[Sample]) -> dict[str, str]:
    """For each figure that still grows, by how much."""
    found = {}
    for name, (share, floor) in LIMITS.items():
        before, after = growth([getattr(sample, name) for sample in samples])
        if after - before > max(share * before, floor):
            found[name] = f"{name} grows: {before:.1f} to {after:.1f} within the last third"
    return found


def drawn(samples: Sequence[Sample]) -> str:
    """One small picture a figure, from zero, one below the other."""
    width, height, names = 640, 70, [field.name for field in fields(Sample)][1:]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 180}" height="{height * len(names)}" font-family="sans-serif" font-size="12">'
    ]
    last = max(sample.epoch for sample in samples) or 1
    for row, name in enumerate(names):
        values = [getattr(sample, name) for sample in samples]
        top, base = max(*values, 1e-9), (row + 1) * height - 10
        points = " ".join(
            f"{sample.epoch / last * width:.1f},{base - value / top * (height - 25):.1f}"
            for sample, value in zip(samples, values, strict=True)
        )
        parts.append(
            f'<path d="M0 {base}H{width}" stroke="#bbb"/><polyline points="{points}" fill="none" stroke="#1565c0" stroke-width="1.5"/>'
        )
        parts.append(
            f'<text x="{width + 10}" y="{base - 20}">{name}</text><text x="{width + 10}" y="{base - 4}" fill="#666">{values[-1]:g}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


def played(
    epochs: int, every: int, rows: int, seed: int, folder: Path, console: Console, histogram: bool
) -> list[Sample]:
    spark = started("local[2]")
    clock = ManualClock()
    samples: list[Sample] = []
    bar = Progress(
        "[progress.description]{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    with Engine(spark, folder / "state", clock=clock) as engine, bar:
        feed = Feed(folder, seed, rows)
        engine.execute(SCRIPT.format(folder=folder))
        gauge = Gauge(spark, folder / "state")
        task = bar.add_task("epochs", total=epochs)
        halfway: dict[str, int] = {}
        began = time.monotonic()
        for epoch in range(1, epochs + 1):
            feed.epoch(engine, epoch)
            if epoch % COMES_EVERY == 0:
                engine.execute(PASSING.format(folder=folder))
            elif epoch % COMES_EVERY == 2 and epoch > COMES_EVERY:
                engine.execute("DROP QUERY passing")
            clock.move_by(SECOND_US)
            engine.poll()
            engine.step()
            bar.advance(task)
            if epoch % every == 0:
                samples.append(gauge.sample(epoch, (time.monotonic() - began) / every))
                console.print(
                    " ".join(f"{value:>10g}" for value in astuple(samples[-1])), markup=False, highlight=False
                )
                began = time.monotonic()
            if histogram and epoch in (epochs // 2, epochs):
                halfway, before = gauge.histogram(), halfway
        if histogram:
            more = {name: size - before.get(name, 0) for name, size in halfway.items()}
            for name in sorted(more, key=lambda one: -more[one])[:40]:
                console.print(f"{more[name] / KB:10.1f} KB more of {name}", markup=False, highlight=False)
        for query in engine.queries():
            console.print(
                f"query {query.name}: {query.epochs} epochs, {query.count} results, complete up to {query.complete}"
            )
            if query.epochs < epochs // 2 and query.name != "passing":
                sys.exit(f"query {query.name} did not keep up: {query.why()}")
    return samples


def main() -> None:
    options = argparse.ArgumentParser(
        description="Many epochs of a mixed load: memory, files and checkpoints level off."
    )
    options.add_argument("--epochs", type=int, default=2_000)
    options.add_argument("--every", type=int, default=50, help="measure so often")
    options.add_argument("--rows", type=int, default=40, help="tuples of each stream an epoch")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument(
        "--figures", type=Path, default=Path("endurance.csv"), help="written as CSV, and beside it as SVG"
    )
    options.add_argument(
        "--histogram", action="store_true", help="what of the JVM's heap grew in the second half, by class"
    )
    given = options.parse_args()
    os.environ.setdefault(
        "HEADGATE_DRIVER_MEMORY", "512m"
    )  # a heap that is small fills soon: then it levels off or it does not
    console = Console(soft_wrap=True)
    names = [field.name for field in fields(Sample)]
    console.print(" ".join(f"{name:>10}" for name in names), highlight=False)
    with tempfile.TemporaryDirectory(prefix="endurance-") as folder:
        samples = played(given.epochs, given.every, given.rows, given.seed, Path(folder), console, given.histogram)
    with given.figures.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(map(astuple, samples))
    given.figures.with_suffix(".svg").write_text(drawn(samples), encoding="utf-8")
    if len(samples) < 6:
        sys.exit("too few samples to say whether anything levels off")
    growing = verdicts(samples)
    table = Table(title="the two halves of the last third")
    for heading in ("figure", "first", "second", "may grow by", "verdict"):
        table.add_column(heading, justify="left" if heading in ("figure", "verdict") else "right")
    for name, (share, floor) in LIMITS.items():
        before, after = growth([getattr(sample, name) for sample in samples])
        table.add_row(
            name,
            f"{before:.1f}",
            f"{after:.1f}",
            f"{max(share * before, floor):.1f}",
            "grows" if name in growing else "level",
        )
    console.print(table)
    if growing:
        sys.exit("; ".join(growing.values()))
    console.print(f"nothing grows in the last third of {given.epochs} epochs")


if __name__ == "__main__":
    main()
