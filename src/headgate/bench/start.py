"""Measures the time from the command to the first result: five queries over two small folders of files.

Each start is a process of its own, which reports when each step was finished; `started_at` is when the process was
requested. Processor time is that of Python and the JVM together: on a busy machine it says more than the clock.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

ROWS = 2_000
FIRST = "first answer"
SCRIPT = """
CREATE STREAM temperature (sensor STRING, celsius DOUBLE, at TIMESTAMP) TIMESTAMP BY at
  FROM json OPTIONS ('path' = '{0}/temperature');
CREATE STREAM pressure (sensor STRING, hpa DOUBLE, at TIMESTAMP) TIMESTAMP BY at
  FROM csv OPTIONS ('path' = '{0}/pressure', 'header' = 'true');
CREATE QUERY hot AS SELECT ISTREAM(t.sensor, t.celsius, p.hpa)
  FROM temperature [NOW] AS t, pressure [RANGE 1 MINUTE] AS p WHERE t.sensor = p.sensor AND t.celsius > 30;
CREATE QUERY mean AS SELECT sensor, AVG(celsius) AS celsius, COUNT(*) AS n
  FROM temperature [RANGE 1 MINUTE SLIDE 20 SECONDS] GROUP BY sensor;
CREATE QUERY latest AS SELECT sensor, celsius FROM temperature [PARTITION BY sensor ROWS 1];
CREATE QUERY top AS SELECT sensor, MAX(hpa) AS hpa FROM pressure [RANGE 5 MINUTES] GROUP BY sensor;
CREATE QUERY minutely AS SELECT DATE_TRUNC('minute', at) AS minute, COUNT(*) AS n FROM pressure
  GROUP BY DATE_TRUNC('minute', at) EMIT FINAL;
"""


@dataclass(frozen=True, slots=True)
class Step:
    """A finished step of a start: seconds since the process was requested, and seconds of processor time."""

    name: str
    clock_s: float
    processor_s: float


def first_answers(folder: Path, rounds: int) -> list[list[Step]]:
    """The steps of several starts, one after another."""
    write(folder)
    found = []
    for _ in range(rounds):
        command = [sys.executable, "-m", "headgate.bench.start", str(folder), repr(time.time())]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found.append([Step(*step) for step in json.loads(output.splitlines()[-1])])
    return found


def write(folder: Path) -> None:
    """Writes the input files and the script."""
    chance, start = Random(1), datetime(2026, 1, 1, tzinfo=UTC)
    rows = [(f"s{n % 7}", (start + timedelta(seconds=n / 4)).isoformat()) for n in range(ROWS)]
    for name in ("temperature", "pressure"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"sensor": sensor, "celsius": round(chance.gauss(20, 5), 2), "at": at}) for sensor, at in rows]
    (folder / "temperature" / "1.json").write_text("\n".join(lines))
    table = ["sensor,hpa,at", *(f"{sensor},{chance.gauss(1000, 5):.2f},{at}" for sensor, at in rows)]
    (folder / "pressure" / "1.csv").write_text("\n".join(table))
    (folder / "script.cql").write_text(SCRIPT.format(folder))


def main(folder: Path, started_at: float) -> None:
    """Runs one start, and prints its steps as JSON."""
    steps: list[tuple[str, float, float]] = []
    jvm: Any = None

    def through(name: str) -> None:
        used = os.times()
        java_s = 0.0
        if jvm is not None:
            java_s = jvm.java.lang.ProcessHandle.current().info().totalCpuDuration().get().toMillis() / 1_000
        steps.append((name, time.time() - started_at, used.user + used.system + java_s))

    from headgate.engine import Engine
    from headgate.spark.session import SHORT_LIVED, started

    through("Python and its modules")
    spark = started(java=SHORT_LIVED)
    jvm = spark.sparkContext._jvm
    through("JVM and Spark")
    with Engine(spark) as engine:
        engine.execute((folder / "script.cql").read_text())
        through("streams and queries registered")
        for query in engine.queries():
            query.on_change(lambda results: None if any(name == FIRST for name, _, _ in steps) else through(FIRST))
        engine.poll()
        through("files read")
        engine.run_once()
        through("all answers")
    print(json.dumps(steps))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
