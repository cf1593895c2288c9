"""Times arrival to answer, beside the nearest query that Structured Streaming has: pushed tuples, and small files.

Pushed: 1,000 tuples a second, and a sliding aggregate of the last 10 seconds. Ours are pushed from Python to an engine
with a directory, and are durable before the push returns. Structured Streaming cannot be pushed to. Its socket source
comes nearest: it gets the same lines over loopback, and keeps nothing. Files: five small files of JSON a second, read
by both from a folder.

Ours answers at every change of the last 10 seconds. The native query updates windows of 10 seconds every 2 seconds, at
every micro-batch, and waits for no watermark. The age of an answer begins when its tuple is about to be pushed or sent,
or when its file is there. It ends when a function of Python has the results that count the tuple. The ways take turns,
each after a warm-up.
"""

from __future__ import annotations

import json
import socket
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import sleep, time

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from headgate.bench.finding import Finding, Grid
from headgate.engine import Engine
from headgate.observe.trace import PARTS
from headgate.observe.trace_table import AGE_WORDS
from headgate.spark.session import own_session

NAME = "answers"
PAGE = "performance"

PUSHES_A_SECOND = 50
FILES_A_SECOND = 5
TUPLES_A_SECOND = 1_000
KEYS = 100
SECONDS = 30.0
WARM_UP_EPOCHS = 40
"""Epochs until the JVM has compiled what a small epoch runs."""

WARM_UP_S = 8.0
"""How long a way is fed before it is measured."""

COLUMNS = "k STRING, v DOUBLE, at TIMESTAMP"
LAST_SECONDS = "CREATE QUERY q AS SELECT ISTREAM(k, COUNT(*) AS n, AVG(v) AS m) FROM s [RANGE 10 SECONDS] GROUP BY k;"
SLIDING = (
    "SELECT k, window.end AS until, COUNT(*) AS n, AVG(v) AS m, UNIX_MICROS(MAX(at)) AS upto FROM s "
    "GROUP BY k, window(at, '10 seconds', '2 seconds')"
)
QUANTILES = (0.5, 0.9, 0.99)


@dataclass(slots=True)
class Run:
    """What came and what was answered, in microseconds since 1970."""

    began_us: int = 0
    """From when on it counts."""

    sent: list[tuple[int, int]] = field(default_factory=list)
    """For each tuple: when it came, and its timestamp."""

    out: list[tuple[int, int]] = field(default_factory=list)
    """For each answer: when it was there, and up to which timestamp it counts."""

    parts: list[dict[str, int]] = field(default_factory=list)
    """What the ages of answers consist of, for those of headgate."""

    def ages(self) -> list[float]:
        """How old the first answer was that counts a tuple, in seconds, for each answered tuple behind the warm-up."""
        reached, best = list[int](), 0
        for _, upto in self.out:
            best = max(best, upto)
            reached.append(best)
        found = list[float]()
        for came_us, at_us in self.sent:
            place = bisect_left(reached, at_us)
            if came_us >= self.began_us and place < len(reached):
                found.append((self.out[place][0] - came_us) / 1e6)
        return found


def now_us() -> int:
    """Microseconds since 1970."""
    return int(time() * 1e6)


def rows(count: int, chance: np.random.Generator) -> list[tuple[str, float, int]]:
    """Tuples that end now: their keys, values and timestamps, one microsecond apart."""
    last_us, keys, values = now_us(), chance.integers(0, KEYS, count).tolist(), chance.random(count).tolist()
    return [
        (f"k{key}", value, last_us - count + 1 + place)
        for place, (key, value) in enumerate(zip(keys, values, strict=True))
    ]


def feed(run: Run, seconds: float, batches_a_second: int, put: Callable[[list[tuple[str, float, int]]], None]) -> None:
    """Hand over batches at their times, first some to warm up."""
    chance, begun = np.random.default_rng(7), time()
    run.began_us = now_us() + int(WARM_UP_S * 1e6)
    for number in range(int((WARM_UP_S + seconds) * batches_a_second)):
        sleep(max(0.0, begun + number / batches_a_second - time()))
        batch = rows(TUPLES_A_SECOND // batches_a_second, chance)
        came_us = now_us()
        put(batch)
        run.sent += [(came_us, at_us) for _, _, at_us in batch]


# headgate


@contextmanager
def running(spark: SparkSession, folder: Path, run: Run, source: str = "") -> Iterator[Engine]:
    """An engine with a directory and the query, which runs in a thread."""
    with Engine(spark, folder / "engine") as engine:
        engine.execute(f"CREATE STREAM s ({COLUMNS}) TIMESTAMP BY at {source}; {LAST_SECONDS}")
        query, ended = engine.query("q"), threading.Event()
        query.on_change(lambda _: run.out.append((now_us(), round(query.complete.timestamp() * 1e6))))
        runner = threading.Thread(target=lambda: engine.run(until=ended.is_set), daemon=True)
        runner.start()
        try:
            yield engine
        finally:
            ended.set()
            engine.wake()
            runner.join()
        run.parts = query.traces.ages()


def warm_up(spark: SparkSession, folder: Path) -> None:
    """Lets the JVM compile what small epochs run, in an engine that is not measured."""
    chance = np.random.default_rng(1)
    with Engine(spark, folder) as engine:
        engine.execute(f"CREATE STREAM s ({COLUMNS}) TIMESTAMP BY at; {LAST_SECONDS}")
        for _ in range(WARM_UP_EPOCHS):
            engine.push("s", [(key, value, moment(at_us)) for key, value, at_us in rows(200, chance)])
            engine.step()


def moment(at_us: int) -> datetime:
    """An instant for Python."""
    return datetime.fromtimestamp(at_us // 1_000_000, UTC).replace(microsecond=at_us % 1_000_000)


def pushed(spark: SparkSession, folder: Path, seconds: float) -> Run:
    """Pushes tuples to headgate."""
    run = Run()
    with running(spark, folder, run) as engine:

        def push(batch: list[tuple[str, float, int]]) -> None:
            engine.push("s", [(key, value, moment(at)) for key, value, at in batch])

        feed(run, seconds, PUSHES_A_SECOND, push)
        sleep(1)
    return run


def from_files(spark: SparkSession, folder: Path, seconds: float) -> Run:
    """Writes small files for headgate."""
    run, arriving = Run(), folder / "arriving"
    arriving.mkdir(parents=True)
    with running(spark, folder, run, f"FROM json OPTIONS ('path' = '{arriving}')"):
        feed(run, seconds, FILES_A_SECOND, writer(arriving))
        sleep(1)
    return run


def writer(arriving: Path) -> Callable[[Sequence[tuple[str, float, int]]], None]:
    """Writes each batch as one file of JSON, which is there at once."""

    def write(batch: Sequence[tuple[str, float, int]]) -> None:
        lines = [json.dumps({"k": key, "v": value, "at": moment(at).isoformat()}) for key, value, at in batch]
        staged = arriving.parent / "staged"
        staged.write_text("\n".join(lines) + "\n", encoding="utf-8")
        staged.rename(arriving / f"{batch[-1][2]}.json")

    return write


# Structured Streaming


@contextmanager
def streaming(arriving: DataFrame, folder: Path, run: Run) -> Iterator[None]:
    """The native query over a stream of the columns, whose results go to a function of Python."""
    arriving.createOrReplaceTempView("s")

    def take(batch: DataFrame, number: int) -> None:
        found = batch.collect()
        if found:
            run.out.append((now_us(), max(row["upto"] for row in found)))

    query = (
        arriving.sparkSession.sql(SLIDING)
        .writeStream.outputMode("update")
        .foreachBatch(take)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    try:
        yield
        query.processAllAvailable()  # stopped in the middle of a batch, it would complain
    finally:
        query.stop()


def native_session(spark: SparkSession) -> SparkSession:
    """A session with as many partitions of state as there are cores: the 200 of the default would be unfair."""
    session = own_session(spark)
    session.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    return session


def native_pushed(spark: SparkSession, folder: Path, seconds: float) -> Run:
    """Sends tuples to Structured Streaming over a socket."""
    run = Run()
    with socket.create_server(("127.0.0.1", 0)) as server:
        lines = (
            native_session(spark)
            .readStream.format("socket")
            .options(host="127.0.0.1", port=str(server.getsockname()[1]))
            .load()
        )
        columns = "FROM_CSV(value, 'k STRING, v DOUBLE, us BIGINT') AS row"
        stream = lines.selectExpr(columns).selectExpr("row.k AS k", "row.v AS v", "TIMESTAMP_MICROS(row.us) AS at")
        with streaming(stream.withWatermark("at", "0 seconds"), folder, run):
            connection, _ = server.accept()
            with connection:
                feed(
                    run,
                    seconds,
                    PUSHES_A_SECOND,
                    lambda batch: connection.sendall("".join(f"{k},{v!r},{at}\n" for k, v, at in batch).encode()),
                )
                sleep(1)
    return run


def native_files(spark: SparkSession, folder: Path, seconds: float) -> Run:
    """Writes small files for Structured Streaming."""
    run, arriving = Run(), folder / "arriving"
    arriving.mkdir(parents=True)
    stream = native_session(spark).readStream.schema(COLUMNS).json(str(arriving)).withWatermark("at", "0 seconds")
    with streaming(stream, folder, run):
        feed(run, seconds, FILES_A_SECOND, writer(arriving))
        sleep(1)
    return run


# measuring and showing

WAYS: dict[tuple[str, str], Callable[[SparkSession, Path, float], Run]] = {
    ("pushed", "headgate"): pushed,
    ("pushed", "native"): native_pushed,
    ("files", "headgate"): from_files,
    ("files", "native"): native_files,
}
FED = {
    "pushed": f"{TUPLES_A_SECOND:,} tuples a second, {PUSHES_A_SECOND} pushes",
    "files": f"{TUPLES_A_SECOND:,} tuples a second, {FILES_A_SECOND} files of JSON",
}


def measure(spark: SparkSession, folder: Path, seconds: float, done: Callable[[], None]) -> Finding:
    """Feeds each way for so many seconds, one after the other."""
    warm_up(spark, folder / "warm-up")
    done()
    runs = dict[tuple[str, str], Run]()
    for (fed, way), feeding in WAYS.items():
        runs[fed, way] = feeding(spark, folder / f"{fed}-{way}", seconds)
        done()
    return Finding(NAME, [latencies(runs), breakdown(runs)], {}, remarks(runs), PAGE)


def steps() -> int:
    """How many steps the progress bar has."""
    return 1 + len(WAYS)


def quantiles(run: Run) -> list[float]:
    """The ages of answers at the quantiles; nothing counts as endless."""
    ages = run.ages()
    return [float(found) for found in np.quantile(ages, QUANTILES)] if ages else [float("inf")] * len(QUANTILES)


def latencies(runs: dict[tuple[str, str], Run]) -> Grid:
    """The table of arrival to answer."""
    found = {key: quantiles(run) for key, run in runs.items()}
    lines = []
    for (fed, way), run in runs.items():
        answered, of = len(run.ages()), sum(came_us >= run.began_us for came_us, _ in run.sent)
        ratio = f"{found[fed, way][0] / found[fed, 'native'][0]:.2f}" if way != "native" else ""
        cells = (f"{age:.3f} s" for age in found[fed, way])
        lines.append((f"{FED[fed]}: {way}", *cells, ratio, f"{answered:,} of {of:,}"))
    headings = ("", *(f"p{quantile * 100:.0f}" for quantile in QUANTILES), "p50 / native", "tuples answered")
    return Grid("Arrival to answer", headings, lines)


def breakdown(runs: dict[tuple[str, str], Run]) -> Grid:
    """The table of what the ages consist of, the mean over the last heartbeats."""
    ours = {FED[fed]: run.parts for (fed, way), run in runs.items() if way == "headgate" and run.parts}
    lines = [
        (AGE_WORDS[part], *(f"{np.mean([age[part] for age in parts]) / 1e3:,.0f} ms" for parts in ours.values()))
        for part in PARTS
    ]
    return Grid("What the age of an answer of headgate consists of, by its traces", ("", *ours), lines)


def remarks(runs: dict[tuple[str, str], Run]) -> list[str]:
    """Sentences that compare the ways with the aims."""
    half, _, worst = quantiles(runs["pushed", "headgate"])
    files, theirs = (quantiles(runs["files", way])[0] for way in ("headgate", "native"))
    return [
        f"Pushed: half of the tuples are answered within {half:.3f} s, 99 of 100 within {worst:.3f} s. "
        "The aims on two cores with nothing else running: 0.25 s and 0.6 s.",
        f"Small files: {files / theirs:.2f} times the native latency. The aim: at most 1.2.",
    ]


def plots(finding: Finding) -> dict[str, str]:
    """A plot of the ages, as SVG text; Matplotlib draws it."""
    from headgate.bench.charts import Axis, bar_chart

    shown = finding.grids[0].rows
    series = {
        f"p{quantile * 100:.0f}": [_seconds(row[1 + place]) for row in shown]
        for place, quantile in enumerate(QUANTILES)
    }
    names = [f"{row[0].split(', ')[1].rpartition(': ')[0]}\n{row[0].rpartition(': ')[2]}" for row in shown]
    return {"answers": bar_chart("From arrival to answer", Axis("seconds"), names, series)}


def _seconds(cell: str) -> float:
    return float(cell.removesuffix(" s"))


def show(console: Console, finding: Finding, docs: Path | None) -> None:
    """Prints what was found, and writes it to the documentation if that is wanted."""
    finding.show(console)
    if docs is not None:
        finding.charts.update(plots(finding))
        finding.write(docs)
