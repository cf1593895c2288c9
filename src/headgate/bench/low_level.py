"""Measures what the low level saves on a stream of which queries need a tenth: rows and bytes written, and throughput.

Files of JSON lines are read by Spark's job, go to the stream's log, and are answered by two queries, with
`SET low_level` off and on in turns. Each query needs every twentieth tuple and a few of the eight columns. Bytes are
those of the log, and those that the ingest job writes: with the low level, it also writes the timestamps of tuples
that nobody needs, which the heartbeats read, to files that are deleted when the batch is in the log. Answers must be
the same.

Not measured: the start of Spark, a disk that is slower than memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from time import perf_counter
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from headgate.bench.finding import Finding, Grid
from headgate.bench.yardstick.processes import processor_s
from headgate.engine import Engine
from headgate.errors import UserError
from headgate.sources import judging
from headgate.spark.staging import write_parquet

NAME = "low-level"
ROWS, FILES, ROUNDS = 400_000, 4, 3
WAYS = ("off", "on")
START = datetime(2026, 1, 1)
SCRIPT = """
SET low_level = '{way}';
CREATE STREAM events (at TIMESTAMP, host STRING, service INT, kind INT, status INT, bytes BIGINT, path STRING,
    agent STRING)
  TIMESTAMP BY at FROM json OPTIONS ('path' = '{folder}');
CREATE QUERY errors AS
  SELECT ISTREAM(at, host, status) FROM events [RANGE 1 SECOND] WHERE status = 19;
CREATE QUERY traffic AS
  SELECT host, COUNT(*) AS requests, SUM(bytes) AS bytes FROM events [RANGE 1 MINUTE SLIDE 1 MINUTE]
  WHERE service = 7 GROUP BY host;
"""


@dataclass(slots=True)
class Way:
    """What was measured of one way, round by round."""

    seconds: list[float]
    worked: list[float]
    """Seconds of processor time, of Python and the JVM."""

    rows: int = 0
    log_bytes: int = 0
    job_bytes: int = 0
    """What the ingest job wrote."""

    answers: tuple[int, int] = (0, 0)


def steps() -> int:
    """How many steps the progress bar has: each round, and one to warm up."""
    return ROUNDS + 1


def measured(spark: SparkSession, folder: Path, rows: int, done: Callable[[], None]) -> dict[str, Way]:
    """Runs both ways in turns; an error if their answers differ."""
    write_events(folder / "events", rows)
    found = {way: Way([], []) for way in WAYS}
    for turn in range(steps()):
        for way in WAYS if turn % 2 else reversed(WAYS):
            one, used, start = found[way], processor_s(os.getpid()), perf_counter()
            _run(spark, folder, way, one)
            if turn:
                one.seconds.append(perf_counter() - start)
                one.worked.append(processor_s(os.getpid()) - used)
        if found["off"].answers != found["on"].answers or not all(found["on"].answers):
            raise UserError("wrong-answers", "the low level changed the answers")
        done()
    return found


def write_events(folder: Path, rows: int, seed: int = 1) -> None:
    """Writes requests to a few hundred hosts as files of JSON lines."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(seed)
    hosts, services, statuses = (chance.integers(0, most, rows) for most in (300, 20, 20))
    sizes, agents = chance.integers(100, 100_000, rows), chance.integers(0, 2**60, rows)
    for number, part in enumerate(np.array_split(np.arange(rows), FILES)):
        lines = [
            f'{{"at":"{START + timedelta(milliseconds=n):%Y-%m-%dT%H:%M:%S.%f}Z"'
            f',"host":"host-{hosts[n]}","service":{services[n]},"kind":{hosts[n] % 7},"status":{statuses[n]}'
            f',"bytes":{sizes[n]},"path":"/item/{n % 5_000}/{sizes[n]}","agent":"agent/{agents[n]:x}"}}'
            for n in part.tolist()
        ]
        (folder / f"{number}.json").write_text("\n".join(lines) + "\n")


def _run(spark: SparkSession, folder: Path, way: str, one: Way) -> None:
    one.job_bytes = 0

    def written(frame: DataFrame, staging: Path, *by: str) -> Path:
        sealed = write_parquet(frame, staging, *by)
        one.job_bytes += sum(file.stat().st_size for file in sealed.rglob("*.parquet"))
        return sealed

    with patch.object(judging, "write_parquet", written), Engine(spark) as engine:
        engine.execute(SCRIPT.format(way=way, folder=folder / "events"))
        engine.run_once()
        chunks = engine._core.inputs.inlets["events"].log.chunks
        one.rows, one.log_bytes = sum(chunk.rows for chunk in chunks), sum(chunk.size for chunk in chunks)
        tables = [pa.concat_tables(engine.query(name).result_tables()) for name in ("errors", "traffic")]
        one.answers = tables[0].num_rows, int(pa.compute.sum(tables[1]["bytes"]).as_py())


def finding(found: dict[str, Way], rows: int) -> Finding:
    """The table and the remarks."""
    off, on = (found[way] for way in WAYS)
    speeds = [f"{rows / median(one.seconds):,.0f}" for one in (off, on)]
    worked = [f"{median(one.worked) * 1_000_000 / rows:.1f}" for one in (off, on)]
    job = f"{on.job_bytes / off.job_bytes:.2f}"
    lines = [
        ("rows in the log", f"{off.rows:,}", f"{on.rows:,}", f"{on.rows / off.rows:.2f}"),
        ("bytes of the log", f"{off.log_bytes:,}", f"{on.log_bytes:,}", f"{on.log_bytes / off.log_bytes:.2f}"),
        ("bytes that the ingest job writes", f"{off.job_bytes:,}", f"{on.job_bytes:,}", job),
        ("tuples a second, files to answers", *speeds, f"{median(off.seconds) / median(on.seconds):.2f}"),
        ("seconds of processors for a million tuples", *worked, f"{median(on.worked) / median(off.worked):.2f}"),
    ]
    title = f"{rows:,} tuples, of which two queries need a tenth, the median of {ROUNDS}"
    return Finding(NAME, [Grid(title, ("", "off", "on", "on / off"), lines)], {}, [], "performance")


def show(console: Console, found: dict[str, Way], rows: int, docs: Path | None) -> None:
    """Prints what was found, and writes it into the page if a folder of documentation is given."""
    told = finding(found, rows)
    told.show(console)
    if docs is not None:
        told.write(docs)
