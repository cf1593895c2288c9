"""A small load with everything in it that must survive a crash, and a way to die at any step of it.

Steps are the moments at which an engine's directory or a sink changes: a file renamed or deleted, something made
durable. `Death` counts them and strikes before the one it was told; from then on nothing changes any more, as if the
process were gone. Sizes are turned down so that a load of a minute merges chunks, moves synopses, cuts epochs and
writes checkpoints many times.

The client that feeds the streams knows after a crash what it had sent only from what the engine says it took.

    PYTHONPATH=tests python -m tools.crashes DIRECTORY OUT FILES DIE_AT    plays it in a process of its own, which kills
    itself
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.deliver.sinks.files import read_commits
from headgate.engine import Engine
from headgate.execute import fragment
from headgate.log import journal, log

ROUNDS = 4
ROWS = 6
END = 10 * ROUNDS + 60

SCRIPT = """
SET epoch_rows = 16;
CREATE STREAM a (k STRING, v INT, at BIGINT) TIMESTAMP BY at;
CREATE STREAM b (k STRING, w INT, at BIGINT) TIMESTAMP BY at;
CREATE STREAM f (k STRING, u INT, at BIGINT) TIMESTAMP BY at FROM json OPTIONS ('path' = '{files}');
CREATE STREAM g (k STRING, u INT, at BIGINT) TIMESTAMP BY at FROM parquet OPTIONS ('path' = '{files}-parquet');
DISORDER OF a 8; DISORDER OF b 8; DISORDER OF f 8; DISORDER OF g 8;
CREATE QUERY sums AS SELECT k, SUM(v) AS total, COUNT(*) AS n FROM a [RANGE 20] GROUP BY k;
CREATE QUERY pairs AS SELECT ISTREAM(a.k, a.v, b.w) FROM a [NOW] AS a, b [PARTITION BY k ROWS 2] AS b WHERE a.k = b.k
  INTO parquet OPTIONS ('path' = '{out}/pairs');
CREATE QUERY both AS SELECT ISTREAM(*) FROM
  (SELECT k, v FROM a [RANGE 5] UNION ALL SELECT k, u FROM f [RANGE 5] UNION ALL SELECT k, u FROM g [RANGE 5]) AS x
  INTO json OPTIONS ('path' = '{out}/both', 'flush_rows' = '4');
"""


def batches(stream: str) -> list[list[tuple[str, int, int]]]:
    """What each round sends: timestamps up to eight ticks out of order."""
    random = Random(stream)
    return [
        [(random.choice("xyz"), random.randrange(10), 10 * number + random.randrange(8, 16)) for _ in range(ROWS)]
        for number in range(ROUNDS)
    ]


class Dead(BaseException):
    """The process is gone."""


class Death:
    """Strikes before the step it was told, or never."""

    def __init__(self, strike_at: int | None, strike: Callable[[], None]) -> None:
        self.strike_at = strike_at
        self.strike = strike
        self.steps = 0
        self.dead = False

    def step(self) -> None:
        self.steps += 1
        if self.dead or (self.strike_at is not None and self.steps >= self.strike_at):
            self.dead = True
            self.strike()


def _raise() -> None:
    raise Dead


class AtOnce(threading.Thread):
    """A thread that does its work when it is started: where it dies is where we say."""

    def start(self) -> None:
        self.run()

    def join(self, timeout: float | None = None) -> None:
        pass


@contextmanager
def mortal(strike_at: int | None, strike: Callable[[], None] = _raise) -> Iterator[Death]:
    """In here, everything that changes files is a step."""
    death = Death(strike_at, strike)

    def counted(do: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            death.step()
            return do(*arguments, **options)

        return step

    places: list[tuple[Any, str]] = [
        (Path, "rename"),
        (Path, "replace"),
        (Path, "unlink"),
        (Path, "write_text"),
        (os, "fsync"),
        (os, "truncate"),
        (os, "replace"),
        (os, "link"),
        (shutil, "rmtree"),
        (shutil, "copyfile"),
    ]
    small: list[tuple[Any, str, Any]] = [
        (journal, "CHECKPOINT_BYTES", 4_000),
        (log, "MERGE_AT", 4),
        (fragment, "MOVE_COST_ROWS", 20),
        (journal, "threading", SimpleNamespace(Thread=AtOnce, RLock=threading.RLock)),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name in places]
    before += [(owner, name, getattr(owner, name)) for owner, name, _ in small]
    for owner, name in places:
        setattr(owner, name, counted(getattr(owner, name)))
    for owner, name, value in small:
        setattr(owner, name, value)
    try:
        yield death
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def play(engine: Engine, files: Path) -> None:
    """Feed what the engine has not taken yet, and take it to the end."""
    sent = {stream: batches(stream) for stream in ("a", "b", "f", "g")}
    for number in range(ROUNDS):
        file = files / f"{number:03d}.json"
        if not file.exists():
            staged = files.parent / f"{number:03d}.staged"
            with staged.open("w") as out:
                out.writelines(
                    json.dumps(dict(zip(("k", "u", "at"), row, strict=True))) + "\n" for row in sent["f"][number]
                )
            staged.rename(file)
        file = files.with_name(f"{files.name}-parquet") / f"{number:03d}.parquet"
        if not file.exists():
            columns = [pa.array(values) for values in zip(*sent["g"][number], strict=True)]
            table = pa.table([columns[0], columns[1].cast(pa.int32()), columns[2]], ["k", "u", "at"])
            staged = files.parent / f"{number:03d}.staged"
            pq.write_table(table, staged)
            staged.rename(file)
        for stream in ("a", "b"):
            if engine.counts(stream)["taken"] <= number * ROWS:
                engine.push(stream, sent[stream][number])
        engine.poll()
        engine.step()
    engine.advance(END)
    while any(query.outbox.waiting for query in engine.queries()):  # a large epoch goes out a piece a turn
        engine.step()


def outcome(engine: Engine, out: Path) -> dict[str, Any]:
    """Everything that came out, instant by instant."""
    found: dict[str, Any] = {
        "sums": sorted(map(str, engine.query("sums").results())),
        "complete": engine.query("sums").complete,
    }
    found["taken"] = {stream: engine.counts(stream) for stream in ("a", "b", "f", "g")}
    for query in ("pairs", "both"):
        rows: list[str] = []
        last = 0
        for commit in read_commits(out / query):
            mine = [row for file in commit.files for row in _read(file)]
            times = [row["_time"] for row in mine]
            assert times == sorted(times), "within a delivery, rows are in order of time"
            assert not times or times[0] > last, "deliveries are in order of time"
            last = commit.complete
            rows += [json.dumps(row, sort_keys=True) for row in mine]
        found[query] = sorted(rows), last
    return found


def _read(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".parquet":
        return list(pq.read_table(file).to_pylist())
    return [json.loads(line) for line in file.read_text().splitlines()]


def started(spark: Any, directory: Path, out: Path, files: Path) -> Engine:
    files.with_name(f"{files.name}-parquet").mkdir(exist_ok=True)
    engine = Engine(spark, directory, partitions=1)
    try:
        engine.execute(SCRIPT.format(out=out, files=files))
    except BaseException:
        engine._core.lock.release()
        raise
    return engine


def main() -> None:
    directory, out, files, die_at = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    with mortal(die_at or None, lambda: os.killpg(0, signal.SIGKILL)) as death:
        engine = started(None, directory, out, files)
        play(engine, files)
        print(json.dumps({"steps": death.steps, "outcome": outcome(engine, out)}))
        death.strike_at = None
        engine.close()


if __name__ == "__main__":
    main()
