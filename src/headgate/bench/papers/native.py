"""Live, beside Structured Streaming: a busy stream, and one that is silent for long and then sends old tuples.

The busy stream has 50 tuples a second.
A union, and a count of both in windows of a second. All read the same files, which are written while they run. A native
watermark is the smallest of the streams' (policy `min`), which stands still while one is silent, or the largest
(`max`), which drops what the silent one then sends; or there is one watermark for both. headgate asks the clock on
behalf of the silent stream, or has a timeout.

Latency: of the union from the moment a tuple's file is there, of the count from the end of the window, until the result
is out.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from time import sleep, time

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from headgate.bench.charts import Axis, bar_chart
from headgate.bench.finding import Finding, Grid
from headgate.deliver.sinks.sink import Result
from headgate.engine import Engine
from headgate.sources.inlet import ticks
from headgate.spark.session import own_session

RATE = 50
FILES_A_SECOND = 5
DELAY_S = 3.0
"""How late tuples of the quiet stream may be; they really are nearly as late."""

LATE_TUPLES = 6
WARM_UP_S = 6.0
SILENT_SHARE = 0.65
"""The part of the run after which the quiet stream sends its tuples."""

COLUMNS = "n BIGINT, at TIMESTAMP"
QUIET_FIRST = 1_000_000


@dataclass(slots=True)
class Run:
    """What was sent and what came out, with times in seconds since 1970."""

    sent: dict[int, tuple[float, float]] = field(default_factory=dict)
    """For each tuple by number: its timestamp, and when its file was there."""

    out: dict[int, float] = field(default_factory=dict)
    windows: dict[float, tuple[float, int, int]] = field(default_factory=dict)
    """For each window by its end: when its result was out, its count, and its count of quiet tuples."""

    began: float = 0
    ended: float = 0
    late: str = "none"


@dataclass(frozen=True, slots=True)
class Way:
    """One engine with its settings, and how to start it."""

    name: str
    counts: bool
    """Whether it counts in windows of a second; otherwise it is the union."""

    begin: Callable[[SparkSession, Path, Run], AbstractContextManager[None]]


def measure(spark: SparkSession, folder: Path, seconds: float, done: Callable[[], None]) -> Finding:
    """Runs every way in turn, and compares."""
    runs = {}
    for number, way in enumerate((WAYS[0], *WAYS[-2:])):
        run_way(spark, folder / f"warm-up-{number}", way, 0)
    for number, way in enumerate(WAYS):
        runs[way] = run_way(spark, folder / str(number), way, seconds)
        done()
    unions = {way: run for way, run in runs.items() if not way.counts}
    counts = {way: run for way, run in runs.items() if way.counts}
    names = [way.name.replace(", ", "\n") for way in counts]
    latencies = {"mean latency": [window_latency(run)[0] for run in counts.values()]}
    chart = bar_chart("Count in windows of a second, one stream silent", Axis("seconds, mean"), names, latencies)
    return Finding("native", [union_grid(unions), count_grid(counts)], {"native": chart}, [])


# feeding


def run_way(spark: SparkSession, folder: Path, way: Way, seconds: float) -> Run:
    """Runs a way while files are written: some to warm up, then for this many seconds."""
    run = Run()
    for stream in ("busy", "quiet"):
        (folder / stream).mkdir(parents=True)
    write(folder, "busy", run, [(0, time())])
    write(folder, "quiet", run, [(QUIET_FIRST, time())])
    with way.begin(spark, folder, run):
        feed(folder, run, seconds)
        run.ended = time()
    return run


def feed(folder: Path, run: Run, seconds: float) -> None:
    """Writes the files of both streams at their times."""
    chance = np.random.default_rng(3)
    begun, spoken = time(), False
    run.began = begun + WARM_UP_S
    number = 1
    for turn in range(int((seconds + WARM_UP_S) * FILES_A_SECOND)):
        sleep(max(0.0, begun + (turn + 1) / FILES_A_SECOND - time()))
        now = time()
        stamps = np.sort(now - chance.random(chance.poisson(RATE / FILES_A_SECOND)) / FILES_A_SECOND).tolist()
        write(folder, "busy", run, [(number + place, at) for place, at in enumerate(stamps)])
        number += len(stamps)
        if not spoken and now > run.began + SILENT_SHARE * seconds:
            spoken = True
            ages = DELAY_S - 0.5 - np.arange(LATE_TUPLES) * 0.05
            write(
                folder, "quiet", run, [(QUIET_FIRST + 1 + place, now - age) for place, age in enumerate(ages.tolist())]
            )


def write(folder: Path, stream: str, run: Run, tuples: Sequence[tuple[int, float]]) -> None:
    """Writes one file of a stream, and notes when it is there."""
    if not tuples:
        return
    lines = [json.dumps({"n": number, "at": datetime.fromtimestamp(at, UTC).isoformat()}) for number, at in tuples]
    staged = folder / "staged"
    staged.write_text("\n".join(lines) + "\n", encoding="utf-8")
    staged.rename(folder / stream / f"{tuples[0][0]:09d}.json")
    run.sent |= {number: (at, time()) for number, at in tuples}


# the ways


def native(name: str, counts: bool, policy: str, watermarks: dict[str, str]) -> Way:
    """A way by Structured Streaming; `watermarks` are the delays of the streams, or of both together."""

    @contextmanager
    def begin(spark: SparkSession, folder: Path, run: Run) -> Iterator[None]:
        session = own_session(spark)
        session.conf.set("spark.sql.streaming.multipleWatermarkPolicy", policy)
        session.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10000")

        def stream(name: str) -> DataFrame:
            rows = session.readStream.schema(COLUMNS).json(str(folder / name))
            return rows.withWatermark("at", watermarks[name]) if name in watermarks else rows

        rows = stream("busy").union(stream("quiet"))
        rows = rows.withWatermark("at", watermarks["both"]) if "both" in watermarks else rows
        rows.createOrReplaceTempView("merged")

        def take(batch: DataFrame, number: int) -> None:
            note_results(run, [tuple(row) for row in batch.collect()], counts)

        writer = (
            session.sql(NATIVE_COUNT if counts else NATIVE_UNION).writeStream.outputMode("append").foreachBatch(take)
        )
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        try:
            yield
            states = [state for progress in query.recentProgress for state in progress.stateOperators]
            dropped = sum(state.numRowsDroppedByWatermark for state in states)
            run.late = f"dropped, counted as {dropped}" if dropped else "none"
            query.processAllAvailable()  # stopped in the middle of a batch, it would complain
        finally:
            query.stop()

    return Way(name, counts, begin)


def headgate(name: str, counts: bool, timestamp: str, time_statements: str) -> Way:
    """A way by headgate, with these timestamps and declarations about time."""

    @contextmanager
    def begin(spark: SparkSession, folder: Path, run: Run) -> Iterator[None]:
        streams = "".join(
            f"CREATE STREAM {stream} ({COLUMNS}) TIMESTAMP {timestamp} FROM json OPTIONS ('path' = "
            f"'{folder / stream}');"
            for stream in ("busy", "quiet")
        )
        with Engine(spark) as engine:
            engine.execute(streams + time_statements + (COUNT if counts else UNION))

            def take(results: Sequence[Result]) -> None:
                rows = [(one.row["c"], one.row["q"], ticks(one.at)) if counts else (one.row["n"],) for one in results]
                note_results(run, rows, counts)

            engine.query("answers").on_change(take)
            ended = threading.Event()
            runner = threading.Thread(target=lambda: engine.run(until=ended.is_set), daemon=True)
            runner.start()
            try:
                yield
            finally:
                ended.set()
                runner.join()
            late = sum(sum(engine.late(stream).values()) for stream in ("busy", "quiet"))
            run.late = f"{late} in the dead letters" if late else "none"

    return Way(name, counts, begin)


def note_results(run: Run, rows: Sequence[tuple[int, ...]], counts: bool) -> None:
    """Notes that these results are out now."""
    now = time()
    for row in rows:
        if counts:
            count, of_quiet, end_us = row
            run.windows[end_us / 1e6] = now, count, of_quiet
        else:
            run.out.setdefault(row[0], now)


NATIVE_UNION = "SELECT n FROM merged"
NATIVE_COUNT = (
    f"SELECT COUNT(*) AS c, COUNT_IF(n >= {QUIET_FIRST}) AS q, UNIX_MICROS(window.end) AS us FROM merged "
    "GROUP BY window(at, '1 second')"
)
UNION = "CREATE QUERY answers AS SELECT n FROM busy UNION ALL SELECT n FROM quiet;"
COUNT = (
    "SET range = 'half-open'; CREATE QUERY answers AS "
    f"SELECT ISTREAM(COUNT(*) AS c, COUNT_IF(n >= {QUIET_FIRST}) AS q, MAX(n) AS m) "
    "FROM (SELECT n FROM busy [RANGE 1 SECOND SLIDE 1 SECOND] UNION ALL SELECT n FROM quiet [RANGE 1 SECOND SLIDE 1 "
    "SECOND]);"
)
"""COUNT also selects the largest number, so that no result equals the one before, which ISTREAM would leave out."""

DELAY = f"{DELAY_S:g} seconds"
WAYS = (
    native("native", False, "min", {}),
    headgate("headgate, on demand", False, "INTERNAL", "HEARTBEAT ON DEMAND;"),
    native("native, least watermark", True, "min", {"busy": "0 seconds", "quiet": DELAY}),
    native("native, largest watermark", True, "max", {"busy": "0 seconds", "quiet": DELAY}),
    native("native, one watermark", True, "min", {"both": DELAY}),
    headgate("headgate, timeout", True, "BY at", "TIMEOUT 500 MILLISECONDS;"),
    headgate("headgate, on demand", True, "BY at", f"SKEW FROM CLOCK TO quiet (WITHIN {DELAY});"),
)


# showing


def union_grid(runs: dict[Way, Run]) -> Grid:
    """The table of the union's latencies."""
    rows = []
    for way, run in runs.items():
        meant = {number: there for number, (_, there) in run.sent.items() if run.began <= there}
        known = [run.out[number] - there for number, there in meant.items() if number in run.out]
        rows.append((way.name, f"{fmean(known):.2f} s", f"{len(known):,} of {len(meant):,}"))
    return Grid("Union", ("", "mean latency", "tuples out"), rows)


def window_latency(run: Run) -> tuple[float, int, int]:
    """The mean latency of the windows that ended in the run, how many are out, and how many there were.

    A window that is not out counts up to the end of the run.
    """
    ends = [float(end) for end in range(int(run.began) + 1, int(run.ended))]
    out_at = {end: at for end, (at, _, _) in run.windows.items() if at <= run.ended}
    return fmean(out_at.get(end, run.ended) - end for end in ends), sum(end in out_at for end in ends), len(ends)


def count_grid(runs: dict[Way, Run]) -> Grid:
    """The table of the windows' latencies."""
    rows = []
    for way, run in runs.items():
        latency, known, of = window_latency(run)
        quiet = sum(of_quiet for end, (_, _, of_quiet) in run.windows.items() if end > run.began)
        shown_latency = f"{latency:.2f} s" if known == of else f"≥ {latency:.2f} s"
        rows.append((way.name, shown_latency, f"{known} of {of}", f"{quiet} of {LATE_TUPLES}", run.late))
    return Grid(
        "Count in windows of a second", ("", "mean latency", "windows out", "of the quiet stream counted", "late"), rows
    )
