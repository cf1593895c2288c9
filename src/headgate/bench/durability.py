"""Measures what durability costs, and how long recovery after a crash takes.

One load runs in two engines of one process, turn by turn: one with a directory (every batch and every epoch is made
durable, checkpoints are written in the background) and one without. Small turns are rows pushed from Python and one
epoch; large turns are files. Then the first engine is abandoned as a crash would leave it, and a new engine recovers
from its directory.

Not measured: disks that sync slower than this one; the start of the JVM, which a restart after a crash adds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console

from headgate.bench.layout import empty_table
from headgate.engine import Engine
from headgate.log import journal

SMALL_ROWS, LARGE_ROWS = 200, 100_000
KEYS = 100
SMALL_TURNS, LARGE_TURNS = 60, 12
WARM_UP = 10
CHECKPOINT_BYTES = 32 * 1024
"""Far smaller than the default, so that a short run has several checkpoints."""

SCRIPT = """
CREATE STREAM pushed (k STRING, v DOUBLE, at BIGINT) TIMESTAMP BY at;
CREATE STREAM filed (k STRING, v DOUBLE, at BIGINT) TIMESTAMP BY at FROM parquet OPTIONS ('path' = '{files}');
CREATE QUERY small AS SELECT k, AVG(v) AS mean, COUNT(*) AS n FROM pushed [RANGE 60] GROUP BY k;
CREATE QUERY large AS SELECT k, SUM(v) AS total FROM filed [RANGE 60 SLIDE 10] GROUP BY k;
"""


@dataclass(frozen=True, slots=True)
class Durability:
    """What was measured: seconds of each turn with and without a directory, checkpoints, and recovery."""

    small: dict[str, list[float]] = field(default_factory=lambda: {"remembers": [], "forgets": []})
    large: dict[str, list[float]] = field(default_factory=lambda: {"remembers": [], "forgets": []})
    checkpoints: list[float] = field(default_factory=list)
    """Seconds for which a checkpoint stopped the engine to collect its facts; writing goes on in the background."""

    checkpoint_bytes: int = 0
    recovery: float = 0
    again: float = 0
    """Seconds of the first epoch after `recovery`, which is from the first line of the journal to a running engine."""

    rows: int = 0
    files: int = 0


def durability(spark: SparkSession, folder: Path, done: Callable[[], None]) -> Durability:
    """Runs the load in both engines, then recovers; `done` is called after each turn."""
    folder.mkdir(parents=True)
    files = folder / "files"
    files.mkdir()
    random = np.random.default_rng(1)
    with patch.object(journal, "CHECKPOINT_BYTES", CHECKPOINT_BYTES):
        engines = {"remembers": Engine(spark, folder / "state"), "forgets": Engine(spark)}
        found = Durability()
        for engine in engines.values():
            engine.execute(SCRIPT.format(files=files))
        _timed_checkpoints(engines["remembers"], found.checkpoints)
        for turn in range(WARM_UP + SMALL_TURNS):
            rows = _rows(random, SMALL_ROWS, turn).to_pylist()
            for name in _alternating(engines, turn):
                seconds = _small(engines[name], rows, turn)
                if turn >= WARM_UP:
                    found.small[name].append(seconds)
            done()
        for turn in range(2 + LARGE_TURNS):
            pq.write_table(_rows(random, LARGE_ROWS, turn), files / f"{turn:03d}.parquet")
            for name in _alternating(engines, turn):
                seconds = _large(engines[name], turn)
                if turn >= 2:
                    found.large[name].append(seconds)
            done()
        engines["forgets"].close()
        remembers = engines["remembers"]
        remembers._core.journal.wait()
        remembers._core.lock.release()  # and nothing else, as after SIGKILL
        sizes = [file.stat().st_size for file in (folder / "state" / "journal").glob("*.checkpoint")]
        start = perf_counter()
        again = Engine(spark, folder / "state")
        recovery = perf_counter() - start
        start = perf_counter()
        _small(again, _rows(random, SMALL_ROWS, WARM_UP + SMALL_TURNS).to_pylist(), WARM_UP + SMALL_TURNS)
        first = perf_counter() - start
        taken = sum(again.counts(stream)["taken"] for stream in ("pushed", "filed"))
        count = sum(1 for file in (folder / "state").rglob("*") if file.is_file())
        again.close()
    return Durability(found.small, found.large, found.checkpoints, max(sizes, default=0), recovery, first, taken, count)


def _alternating(engines: dict[str, Engine], turn: int) -> list[str]:
    """The engines in an order that alternates from turn to turn, so that neither always goes first."""
    return sorted(engines, reverse=bool(turn % 2))


def _rows(random: np.random.Generator, count: int, turn: int) -> pa.Table:
    keys = pa.array([f"k{key}" for key in random.integers(0, KEYS, count)])
    at = np.sort(random.integers(10 * turn, 10 * turn + 10, count))
    return pa.table({"k": keys, "v": pa.array(random.random(count)), "at": pa.array(at, pa.int64())})


def _small(engine: Engine, rows: list[dict[str, object]], turn: int) -> float:
    start = perf_counter()
    engine.push("pushed", rows)
    engine._core.loop.take_all({"small": 10 * turn + 9})
    engine._running.tidy()
    return perf_counter() - start


def _large(engine: Engine, turn: int) -> float:
    start = perf_counter()
    engine.poll()
    engine._core.loop.take_all({"large": 10 * turn + 9})
    engine._running.tidy()
    return perf_counter() - start


def _timed_checkpoints(engine: Engine, seconds: list[float]) -> None:
    """Add to the list how long it takes to gather the facts of each checkpoint of the engine."""
    checkpoint = engine._core.journal.checkpoint

    def timed(facts: Callable[[], Iterable[journal.Fact]]) -> None:
        def gathered() -> list[journal.Fact]:
            start = perf_counter()
            found = list(facts())
            seconds.append(perf_counter() - start)
            return found

        checkpoint(gathered)

    engine._core.journal.checkpoint = timed  # type: ignore[method-assign]


def cost(seconds: dict[str, list[float]]) -> float:
    """How much longer a turn takes with a directory: the median over pairs of turns that follow each other, minus 1."""
    pairs = zip(seconds["remembers"], seconds["forgets"], strict=True)
    return median(remembers / forgets for remembers, forgets in pairs) - 1


def show_durability(console: Console, found: Durability) -> None:
    """Prints the cost of durability, checkpoints and recovery."""
    table = empty_table(
        "Durability: an engine with a directory beside one that forgets", "", "remembers", "forgets", "costs"
    )
    turns = (
        (f"{SMALL_ROWS} rows pushed, one epoch", found.small),
        (f"{LARGE_ROWS:,} rows from a file, one epoch", found.large),
    )
    for name, seconds in turns:
        medians = (f"{median(seconds[way]):.3f} s" for way in ("remembers", "forgets"))
        table.add_row(name, *medians, f"{cost(seconds):+.1%}")
    console.print(table)
    held_up = sum(found.checkpoints)
    share = held_up / sum(map(sum, (found.small["remembers"], found.large["remembers"])))
    checkpoints = (
        f"{len(found.checkpoints)} checkpoints of up to {found.checkpoint_bytes:,} bytes held it up for {held_up:.3f} s"
    )
    console.print(f"{checkpoints} in all, {share:.2%} of the time")
    console.print(
        f"recovery: {found.recovery:.2f} s for two queries, {found.rows:,} tuples taken before, {found.files} files; "
        f"the first small epoch after it {found.again:.2f} s\n"
    )
