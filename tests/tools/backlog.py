"""A backlog of ten million tuples, worked off by `headgate run --once` in a process of its own, with its memory
watched.

    make test-backlog
    PYTHONPATH=tests python -m tools.backlog --rows 2000000 --memory 1g

Files are written beforehand; a windowed aggregate and a filter read them. What comes out is compared with NumPy's
answer. The figures: epochs, the longest pause between two, peak memory of the driver's Python and of its JVM, which is
the executor too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from headgate import read_commits
from tools.places import ROOT

FILES = 20
KEYS = 1_000

SCRIPT = """
CREATE STREAM s (k INT, v INT, at BIGINT) TIMESTAMP BY at FROM parquet OPTIONS ('path' = '{folder}/in');
SET range = 'half-open';
CREATE QUERY sums AS SELECT RSTREAM(k, SUM(v) AS total, COUNT(*) AS n) FROM s [RANGE 100 SLIDE 100] GROUP BY k EMIT AT SLIDE
  INTO parquet OPTIONS ('path' = '{folder}/sums');
CREATE QUERY few AS SELECT RSTREAM(k, v) FROM s [NOW] WHERE v = 999 INTO parquet OPTIONS ('path' = '{folder}/few');
"""


def written(folder: Path, rows: int) -> tuple[int, int]:
    """The input, a little out of order within each file; how many tuples the filter passes, and how many windows close
    on.
    """
    random = np.random.default_rng(7)
    (folder / "in").mkdir()
    passing = 0
    instants = []
    for number in range(FILES):
        count = rows // FILES
        at = np.arange(count) // 1_000 + number * (count // 1_000) + random.integers(0, 5, count)
        values = random.integers(0, 1_000, count)
        passing += int((values == 999).sum())
        columns = {"k": random.integers(0, KEYS, count).astype(np.int32), "v": values.astype(np.int32), "at": at}
        instants.append(at)
        pq.write_table(pa.table(columns), folder / "in" / f"{number:03d}.parquet")
    every = np.concatenate(instants)
    return passing, int((every <= every.max() // 100 * 100).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--memory", default="1g", help="Of the JVM, driver and executor in one.")
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(prefix="headgate-backlog-") as name:
        folder = Path(name)
        passing, closed = written(folder, options.rows)
        (folder / "script.cql").write_text(SCRIPT.format(folder=folder))
        paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        start = time.perf_counter()
        arguments = ["run", str(folder / "script.cql"), "--once", "--directory", str(folder / "state")]
        process = subprocess.Popen(
            [sys.executable, "-c", "from headgate.cli import main; main()", *arguments],
            env={**os.environ, "PYTHONPATH": paths, "HEADGATE_DRIVER_MEMORY": options.memory},
        )
        peak = {"python": 0, "java": 0}
        while process.poll() is None:
            for one in _family(process.pid):
                kind = "java" if "java" in one[0] else "python"
                peak[kind] = max(peak[kind], one[1])
            time.sleep(0.2)
        seconds = time.perf_counter() - start
        assert process.returncode == 0, "it did not come to its end"
        commits = {query: list(read_commits(folder / query)) for query in ("sums", "few")}
        few = sum(commit.rows for commit in commits["few"])
        assert few == passing, f"{few} tuples passed the filter instead of {passing}"
        counted = 0
        for commit in commits["sums"]:
            for file in commit.files:
                counted += sum(pq.read_table(file, columns=["n"])["n"].to_pylist())
        assert counted == closed, f"{counted} tuples were summed instead of {closed}"
        megabytes = {kind: round(size / 2**20) for kind, size in peak.items()}
        epochs = {query: len(found) for query, found in commits.items()}
        figures = {
            "rows": options.rows,
            "seconds": round(seconds, 1),
            "epochs": epochs,
            "peak MB": megabytes,
            "heap": options.memory,
        }
        console.print_json(json.dumps(figures))


def _family(pid: int) -> list[tuple[str, int]]:
    found = []
    try:
        for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
            found.append((process.name(), process.memory_info().rss))
    except psutil.Error:
        pass
    return found


if __name__ == "__main__":
    main()
