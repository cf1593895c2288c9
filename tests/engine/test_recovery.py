"""Crash anywhere and start again: the complete output is that of a run in which nothing happened.

Here an engine dies in this process, at every few steps of the load in `crashes`, and another goes on with its
directory: fast, and as good as SIGKILL for everything that headgate itself does with files. `make test-faults` kills
real processes.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tools import crashes
from tools.places import FIXTURES

from headgate import Bound, Engine, Party, read_commits
from headgate.errors import UserError
from headgate.execute import fragment
from headgate.heartbeat.clock import ManualClock
from headgate.log import journal, log

pytestmark = pytest.mark.spark


def survived(spark: SparkSession, where: Path, every: int | None) -> tuple[dict[str, Any], int, int]:
    """What came out of the load when the engine died at every so many steps; how often it did, and how many steps there
    were.
    """
    directory, out, files = where / "state", where / "out", where / "files"
    files.mkdir(parents=True)
    deaths = steps = 0
    while True:
        with crashes.mortal(every) as death:
            engine = None
            try:
                engine = crashes.started(spark, directory, out, files)
                crashes.play(engine, files)
                found = crashes.outcome(engine, out)
                death.strike_at = None
                engine.close()
                return found, deaths, steps + death.steps
            except crashes.Dead:
                if engine is not None:
                    engine._core.lock.release()
        deaths += 1
        steps += death.steps
        assert deaths < 200, "it gets nowhere"
        every = None if every is None else every + deaths % 5  # not always after the same number of steps


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found, deaths, _ = survived(spark, tmp_path_factory.mktemp("undisturbed"), None)
    assert not deaths
    assert found["taken"] == {stream: {"taken": crashes.ROUNDS * crashes.ROWS} for stream in ("a", "b", "f", "g")}
    assert all(len(rows) > 15 for rows in (found["pairs"][0], found["both"][0], found["sums"]))
    return found


def test_dying_every_few_steps_changes_nothing(
    spark: SparkSession, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    found, deaths, _ = survived(spark, tmp_path, 45)
    assert deaths >= 4
    assert found == undisturbed


def crashed(engine: Engine) -> None:
    """The process is gone; the operating system gives its lock back."""
    engine._core.lock.release()


def test_dying_before_the_first_epoch(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark, tmp_path) as engine:
        engine.execute("CREATE STREAM s (v INT, at TIMESTAMP) TIMESTAMP BY at; CREATE QUERY q AS SELECT v FROM s")
    with Engine(spark, tmp_path) as engine:
        assert engine.heartbeat("s") is None
        assert "no instant yet" in str(engine.query("q").why())


def test_a_torn_or_missing_chunk_is_named(spark: SparkSession, tmp_path: Path) -> None:
    engine = Engine(spark, tmp_path)
    engine.execute("CREATE STREAM s (v INT)")
    engine.push("s", [(1, (7,))])
    engine.push("s", [(2, (8,))])
    crashed(engine)
    chunk = tmp_path / "streams" / "s" / "000000000002.parquet"
    whole = chunk.read_bytes()
    for content, said in (
        (whole[:-5], f"torn: {len(whole) - 5} bytes of {len(whole)}"),
        (whole[:-4] + b"QAR1", "damaged"),
        (None, "missing"),
    ):
        chunk.unlink() if content is None else chunk.write_bytes(content)
        again = Engine(spark, tmp_path)
        why = again.troubles()["quarantine"]["stream s"]
        assert chunk.name in why
        assert said in why.lower()
        with pytest.raises(UserError, match="in-quarantine"):
            again.push("s", [(3, (9,))])
        crashed(again)
    chunk.write_bytes(whole)
    with Engine(spark, tmp_path) as again:
        assert again.counts("s") == {"taken": 2}


def test_queries_come_change_and_go_while_others_go_on(spark: SparkSession, tmp_path: Path) -> None:
    clock = ManualClock()
    engine = Engine(spark, tmp_path, clock=clock)
    engine.execute("CREATE STREAM s (v INT); CREATE QUERY sums AS SELECT SUM(v) AS total FROM s [RANGE 100]")
    engine.execute("CREATE RELATION names (v INT, name STRING)")
    engine.push("names", [(1, (2, "two")), (1, (3, "three"))])
    engine.push("s", [(1, (1,)), (2, (2,))])
    engine.advance(2)
    engine.execute("CREATE QUERY later AS SELECT ISTREAM(v) FROM s [NOW]")
    engine.execute("CREATE QUERY whole FROM BEGINNING AS SELECT ISTREAM(v) FROM s [NOW]")
    engine.execute("CREATE QUERY counts AS SELECT COUNT(*) AS n FROM s [RANGE 100]")
    engine.execute("CREATE QUERY named AS SELECT ISTREAM(name) FROM s [NOW], names WHERE s.v = names.v")
    engine.execute("ALTER STREAM s ADD COLUMN w INT")
    engine.push("s", [(3, {"v": 3, "w": 30})])
    engine.execute("CREATE QUERY wide FROM BEGINNING AS SELECT ISTREAM(v, w) FROM s [NOW]")
    engine.advance(3)
    with pytest.raises(UserError, match="does not exist"):
        engine.execute("ALTER QUERY later AS SELECT ISTREAM(nothing) FROM s [NOW]")
    engine.execute("ALTER QUERY later AS SELECT ISTREAM(v * 100 AS v) FROM s [NOW]; DROP QUERY wide")
    engine.push("s", [(4, (4, 40))])
    crashed(engine)

    engine = Engine(spark, tmp_path, clock=clock)
    engine.execute(
        "CREATE QUERY later AS SELECT ISTREAM(v) FROM s [NOW]"
    )  # as the script has it that registered it first
    engine.advance(4)
    shown = {
        query.name: [(result.at, *result.row.values()) for result in query.results()] for query in engine.queries()
    }
    assert shown == {
        "sums": [(0, None), (1, None), (1, 1), (2, 1), (2, 3), (3, 3), (3, 6), (4, 6), (4, 10)],
        "later": [(4, 400)],
        "counts": [(0, 0), (3, 0), (3, 1), (4, 1), (4, 2)],
        "named": [(3, "three")],
        "whole": [(1, 1), (2, 2), (3, 3), (4, 4)],
    }
    for query in list(shown):
        engine.execute(f"DROP QUERY {query}")
    engine.execute("DROP STREAM s; CREATE STREAM s (name STRING)")
    engine.step()
    assert sorted(folder.name for folder in (tmp_path / "streams").iterdir()) == ["names", "s.2"]
    assert not list((tmp_path / "queries").iterdir())
    crashed(engine)
    with Engine(spark, tmp_path) as engine:
        assert engine.catalog.stream("s").row_columns() == ("name",)


def test_queries_that_were_dropped_touch_no_sink_at_recovery(spark: SparkSession, tmp_path: Path) -> None:
    made = f"CREATE QUERY q AS SELECT ISTREAM(v) FROM s [NOW] INTO parquet OPTIONS ('path' = '{tmp_path}/out', 'existing' = 'replace')"
    engine = Engine(spark, tmp_path / "state", clock=ManualClock())
    engine.execute(f"CREATE STREAM s (v INT); {made}")
    engine.push("s", [(1, (1,))])
    engine.advance(1)
    engine.execute(made.replace("CREATE", "ALTER").replace("(v)", "(v + 10 AS v)"))
    engine.push("s", [(2, (2,))])
    engine.advance(2)
    engine.execute(
        f"CREATE QUERY once AS SELECT ISTREAM(v) FROM s [NOW] INTO parquet OPTIONS ('path' = '{tmp_path}/once')"
    )
    engine.push("s", [(3, (3,))])
    engine.advance(3)
    engine.execute("DROP QUERY once")
    engine.step()
    crashed(engine)
    engine = Engine(spark, tmp_path / "state", clock=ManualClock())
    engine.execute("DROP QUERY IF EXISTS q")
    engine.execute(made)
    assert [query.name for query in engine.queries()] == ["q"], "what was dropped is made anew"
    crashed(engine)
    assert [commit.rows for commit in read_commits(tmp_path / "once")] == [1]


DOWN: list[bool] = []
GOT: list[tuple[int, int]] = []


def unreliable(delivery: Any, batches: Any) -> None:
    if DOWN:
        raise ConnectionError("nobody answers")
    GOT.append((delivery.number, delivery.rows))


def test_a_sink_that_is_down_loses_nothing_and_holds_up_nobody(spark: SparkSession, tmp_path: Path) -> None:
    clock = ManualClock()
    script = """CREATE STREAM s (v INT); CREATE QUERY kept AS SELECT ISTREAM(v) FROM s [NOW];
        CREATE QUERY sent AS SELECT ISTREAM(v) FROM s [NOW] INTO callback OPTIONS ('function' = 'test_recovery:unreliable')"""
    engine = Engine(spark, tmp_path, clock=clock)
    engine.execute(script)
    told: list[str] = []
    engine._core.loop.tell = told.append
    DOWN.append(True)
    for at in (1, 2, 3):
        engine.push("s", [(at, (at,))])
        engine.advance(at)
    assert len(engine.query("kept").results()) == 3
    assert [text for text in told if "sent" in text and "nobody answers" in text] == told
    assert len(told) == 1, "it is said once"
    crashed(engine)

    engine = Engine(spark, tmp_path, clock=clock)
    engine.execute(script)
    engine.step()
    assert not GOT
    DOWN.clear()
    engine.step()
    assert not GOT, "it is not tried again at once"
    clock.move_by(1_000_000)
    engine.step()
    assert GOT == [(1, 1), (2, 1), (3, 1)]
    assert not list((tmp_path / "queries" / "sent" / "results").iterdir()), "what was delivered is not kept"
    engine.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """A disk of two megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], check=False, capture_output=True
    ).returncode:
        pytest.skip("a small file system cannot be mounted here: that takes the rights of root")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_full_disk_loses_nothing_that_was_acknowledged(spark: SparkSession, small_disk: Path) -> None:
    engine = Engine(spark, small_disk / "state", clock=ManualClock())
    engine.execute("CREATE STREAM s (v INT, text STRING); CREATE QUERY q AS SELECT ISTREAM(v) FROM s [NOW]")
    (small_disk / "filler").write_bytes(bytes(1_500_000))
    noise = random.Random(1).randbytes(40_000).hex()
    taken = 0

    def push_on() -> None:
        nonlocal taken
        while True:
            engine.push("s", [(taken + 1, (taken, noise))])
            taken += 1

    with pytest.raises(UserError) as error:
        push_on()
    assert error.value.code == "disk-failed"
    assert 0 < taken < 30
    (small_disk / "filler").unlink()
    engine.push("s", [(taken + 1, (taken, "small"))])
    engine.advance(taken + 1)
    crashed(engine)
    with Engine(spark, small_disk / "state") as engine:
        assert [result.row["v"] for result in engine.query("q").results()] == list(range(taken + 1))


@contextmanager
def flipped(path: Path) -> Iterator[None]:
    """In here a bit in the middle of a file is another one."""
    whole = path.read_bytes()
    at = len(whole) // 2
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
    yield
    path.write_bytes(whole)


def test_damage_while_it_runs_stops_those_who_read_it(spark: SparkSession, tmp_path: Path) -> None:
    """`test_damage` tries a thousand flips without Spark; these are read by Spark, after other reads in the same
    process.
    """
    clock = ManualClock()
    engine = Engine(spark, tmp_path, clock=clock)
    engine.execute("""CREATE STREAM s (k STRING, v INT); CREATE STREAM other (v INT); DISORDER OF s 0; DISORDER OF other 0;
        CREATE QUERY sums AS SELECT k, SUM(v) AS total FROM s [RANGE 100] GROUP BY k;
        CREATE QUERY rest AS SELECT ISTREAM(v) FROM other [NOW];
        CREATE QUERY sent AS SELECT ISTREAM(v) FROM other [NOW] INTO callback OPTIONS ('function' = 'test_recovery:unreliable')""")
    told: list[str] = []
    engine._core.loop.tell = told.append
    at = 0

    def more() -> None:
        nonlocal at
        at += 10
        engine.push("s", [(at, ("a", at)), (at + 1, ("b", 1))])
        engine.push("other", [(at, (at,))])

    def refused(path: Path) -> None:
        with flipped(path):
            more()
            with pytest.raises(UserError) as error:
                engine.advance(at)
            assert error.value.code == "torn-file"
            assert path.name in error.value.message
            assert engine.query("rest").complete == at, "others go on"
            assert engine.query("sums").complete == at - 10
        clock.move_by(1_000_000)
        engine.advance(at)
        assert engine.query("sums").complete == at, "it goes on when the file is back"

    more()
    engine.advance(at)
    refused(next((tmp_path / "streams" / "s").glob("*.parquet")))
    engine.query("sums").answer.move_state()
    refused(next((tmp_path / "queries" / "sums").glob("synopses/*/*/*.parquet")))
    shown = engine.query("sums").results()
    assert [(one.at, *one.row.values()) for one in shown if one.sign == "+"] == [
        (10, "a", 10),
        (11, "b", 1),
        (20, "a", 30),
        (21, "b", 2),
        (30, "a", 60),
    ]
    kept = next((tmp_path / "queries" / "rest" / "results").glob("*.parquet"))
    with flipped(kept), pytest.raises(UserError, match=kept.name):
        engine.query("rest").results()
    assert len(engine.query("rest").results()) == 3

    DOWN.append(True)
    GOT.clear()
    more()
    engine.advance(at)
    DOWN.clear()
    clock.move_by(1_000_000)
    waiting = next((tmp_path / "queries" / "sent" / "results").glob("*.parquet"))
    with flipped(waiting):
        engine.step()
        assert not GOT, "nothing is delivered from it"
        clock.move_by(60_000_000)
    engine.step()
    assert GOT == [(4, 1)]
    engine.close()


def test_what_spark_notes_of_a_source_is_compared(spark: SparkSession, tmp_path: Path) -> None:
    files = tmp_path / "in"
    files.mkdir()
    (files / "1.json").write_text('{"v": 1, "at": 1}\n')
    script = f"""CREATE STREAM s (v INT, at BIGINT) TIMESTAMP BY at FROM json OPTIONS ('path' = '{files}', 'maxFilesPerTrigger' = '1')"""
    with Engine(spark, tmp_path / "state") as engine:
        engine.execute(script)
        while not engine.poll():
            time.sleep(0.05)
    for noted in ("offsets/0", "sources/0/0"):
        with flipped(tmp_path / "state" / "sources" / "s" / noted), Engine(spark, tmp_path / "state") as engine:
            (files / "2.json").write_text('{"v": 2, "at": 2}\n')
            with pytest.raises(UserError) as error:
                engine.poll()
            assert error.value.code == "torn-file"
            assert f'"0" in "{tmp_path}/state/sources/s/{noted[:-2]}"' in error.value.message
    with Engine(spark, tmp_path / "state") as engine:
        assert polled(engine) == 1
        assert engine.counts("s") == {"taken": 2}


def polled(engine: Engine) -> int:
    """What the first poll takes that takes anything."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if taken := engine.poll():
            return taken
        time.sleep(0.05)
    raise AssertionError("nothing came")


def test_a_directory_that_cannot_be_used_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for unusable in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        with pytest.raises(UserError) as error:
            Engine(spark, unusable)
        assert error.value.code == "bad-directory"
        assert str(unusable) in error.value.message
    with Engine(spark, tmp_path / "state") as engine:
        for stream in ("s" * 254, "s" * 255):  # names are as long as those of folders may be
            engine.execute(f"CREATE STREAM {stream} (v INT)")
        engine.push("s" * 255, [(1, (1,))])
        (tmp_path / "state" / "lock").unlink()
        with pytest.raises(UserError, match="directory-in-use"):
            Engine(spark, tmp_path / "state")
    with Engine(spark, tmp_path / "state") as engine:
        assert [engine.counts("s" * length)["taken"] for length in (254, 255)] == [0, 1]


def filled(disk: Path, room: int) -> Path:
    """A file that leaves only so many bytes of a disk."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    os.truncate(filler, filler.stat().st_size - room)
    return filler


class Feeder:
    """Feeds an engine that runs, file by file; some of them while the disk has only so much room, until that was told
    of.
    """

    ROOMS = (None, 0, 4_096, 16_384, 49_152, None)
    """Bytes. With 0 and 4,096 no tuple is answered; with more, it may be that only tidying meets with a full disk."""
    ROWS = 40

    def __init__(self, engine: Engine, files: Path, disk: Path) -> None:
        self.engine, self.files, self.disk = engine, files, disk
        self.fed = 0
        self.filler: Path | None = None
        self.told: list[str] = []
        self.turns = self.looks = 0
        self.began = time.monotonic()
        self.poll = engine._running.poll
        engine._running.poll = self.looked  # type: ignore[method-assign]

    def looked(self) -> int:
        """After each look at the files: how many tuples came."""
        try:
            return self.poll()
        finally:
            self.looks += 1

    def done(self) -> bool:
        """After each turn: whether everything is taken, answered and delivered."""
        assert time.monotonic() - self.began < 500, (self.fed, self.told)
        self.turns += 1
        full = len([text for text in self.told if "No space left on device" in text])
        if self.filler is not None and (min(self.turns, self.looks) > 3 or self.caught_up()):
            self.filler.unlink()
            self.filler = None
        if self.filler is not None or not self.caught_up():
            return False
        if self.fed == len(self.ROOMS):
            assert full >= 2, self.told
            return True
        room = self.ROOMS[self.fed]
        self.filler = None if room is None else filled(self.disk, room)
        self.turns = self.looks = 0
        rows = [{"k": f"k{row % 7}", "v": row, "at": 100 * self.fed + row} for row in range(self.ROWS)]
        staged = self.files.parent / "staged"
        staged.write_text("".join(json.dumps(row) + "\n" for row in rows))
        staged.rename(self.files / f"{self.fed:03d}.json")
        self.fed += 1
        return False

    def caught_up(self) -> bool:
        queries = self.engine.queries()
        last = 100 * (self.fed - 1) + self.ROWS - 2
        return not self.fed or (
            self.engine.counts("s")["taken"] == self.fed * self.ROWS
            and all((query.complete or -1) >= last and not query.outbox.waiting for query in queries)
        )


def test_a_full_disk_is_waited_out(
    spark: SparkSession, small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In ingest, epochs, moves of synopses, merges, deliveries and checkpoints, whichever meets with it first."""
    monkeypatch.setattr(journal, "CHECKPOINT_BYTES", 3_000)
    monkeypatch.setattr(log, "MERGE_AT", 4)
    monkeypatch.setattr(fragment, "MOVE_COST_ROWS", 20)
    files, out = tmp_path / "in", small_disk / "out"
    files.mkdir()
    script = f"""CREATE STREAM s (k STRING, v INT, at BIGINT) TIMESTAMP BY at FROM json OPTIONS ('path' = '{files}');
        DISORDER OF s 0; CREATE QUERY sums AS SELECT k, COUNT(*) AS n FROM s [RANGE 1000] GROUP BY k;
        CREATE QUERY all_rows AS SELECT ISTREAM(k, v) FROM s [NOW] INTO parquet OPTIONS ('path' = '{out}')"""
    engine = Engine(spark, small_disk / "state")
    engine.execute(script)
    feeder = Feeder(engine, files, small_disk)
    engine.run(until=feeder.done, tell=feeder.told.append)
    assert any(text.startswith("it goes on") for text in feeder.told)
    assert len(feeder.told) < 40, "it is not told over and over"
    crashed(engine)
    with Engine(spark, small_disk / "state") as again:
        assert again.counts("s") == {"taken": len(Feeder.ROOMS) * Feeder.ROWS}
        counts = [result.row["n"] for result in again.query("sums").results() if result.sign == "+"]
    delivered = [
        row["v"] for commit in read_commits(out) for file in commit.files for row in pq.read_table(file).to_pylist()
    ]
    complete = Feeder.ROWS * len(Feeder.ROOMS) - 1  # the last instant is still open
    assert delivered == [row for _ in Feeder.ROOMS for row in range(Feeder.ROWS)][:complete]
    assert len(counts) == complete


KEPT = FIXTURES / "directory-1"
"""What format 1 looks like: a checkpoint, lines behind it, chunks, synopses, results. Later versions must go on from
it.

`PYTHONPATH=tests python tests/engine/test_recovery.py` wrote it, and must not do so again unless the format's number
has changed."""

KEPT_SCRIPT = """
SET range = 'half-open';
CREATE STREAM s (k STRING, v INT, at BIGINT) TIMESTAMP BY at SOURCE BY k;
CREATE STREAM t (w INT);
DISORDER OF s 5;
CREATE VIEW large AS SELECT * FROM s [RANGE 10] WHERE v > 1;
CREATE QUERY sums AS SELECT k, SUM(v) AS total FROM s [RANGE 10] GROUP BY k;
CREATE QUERY larger AS SELECT ISTREAM(k, v) FROM large;
CREATE QUERY gone AS SELECT ISTREAM(w) FROM t [NOW];
DROP QUERY gone;
"""


def write_kept(spark: SparkSession) -> None:
    engine = Engine(spark, KEPT, clock=ManualClock())
    engine.execute(KEPT_SCRIPT)
    engine.push("s", [("a", 1, 1), ("b", 2, 2), ("a", None, None)])
    engine.advance(3)
    for query in engine.queries():
        if query.answer.program.synopses:
            query.answer.move_state()
    engine._running.checkpoint()
    engine._core.journal.wait()
    engine.push("s", [("a", 3, 4), ("c", 4, 2), ("b", 4, 8)])
    engine.punctuate("s", 6)
    engine.step()
    crashed(engine)


def test_a_directory_of_format_1_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    shutil.copytree(KEPT, tmp_path / "state")
    with Engine(spark, tmp_path / "state", clock=ManualClock()) as engine:
        assert engine.resumed
        assert engine.counts("s") == {"taken": 4, "no-timestamp": 1, "late": 1}
        assert engine.late("s") == {"c": 1}
        assert [query.name for query in engine.queries()] == ["sums", "larger"]
        engine.execute("CREATE QUERY counted FROM BEGINNING AS SELECT COUNT(*) AS n FROM large")
        engine.advance(30)
        assert [str(result) for result in engine.query("larger").results()] == [
            "2 + k=b, v=2",
            "4 + k=a, v=3",
            "8 + k=b, v=4",
        ]
        assert [str(result) for result in engine.query("sums").results()] == [
            "1 + k=a, total=1",
            "2 + k=b, total=2",
            "4 - k=a, total=1",
            "4 + k=a, total=4",
            "8 - k=b, total=2",
            "8 + k=b, total=6",
            "11 - k=a, total=4",
            "11 + k=a, total=3",
            "12 - k=b, total=6",
            "12 + k=b, total=4",
            "14 - k=a, total=3",
            "18 - k=b, total=4",
        ]


if __name__ == "__main__":
    from headgate.spark.session import started

    write_kept(started())


@pytest.mark.parametrize("crash", [True, False])
def test_what_was_taken_back_stays_so(spark: SparkSession, tmp_path: Path, crash: bool) -> None:
    """Also if it was declared from Python, which is remembered apart from the statements."""
    engine = Engine(spark, tmp_path, clock=ManualClock())
    engine.execute(
        "CREATE STREAM s (id STRING, v INT) SOURCE BY id; CREATE STREAM n (v INT); ENVIRONMENT sensors (DEVIATION 9) OF n"
    )
    engine.execute("DISORDER OF s 5; LATENCY OF n 3; TIMEOUT 5; SKEW FROM s TO n (WITHIN 5); HEARTBEAT EVERY 5")
    engine.sensors("s", {"x": 5, "y": 6})
    engine.execute(
        "DROP DISORDER OF s; DROP TIMEOUT; DROP HEARTBEAT; DROP ENVIRONMENT sensors OF s SOURCE 'x'; DISORDER OF n 1"
    )
    engine.drop_skew("s", "n")
    engine.drop_latency("n")
    declared, settings = engine.catalog.declarations, engine.catalog.settings
    assert [*declared.sensors] == [Party("n"), Party("s", "y")]
    assert (declared.disorders, declared.skews, declared.latencies_us) == ({Party("n"): (Bound(2),)}, {}, {})
    if crash:
        engine._core.journal.close()
        engine._core.lock.release()
    else:
        engine.close()
    for _ in range(2):
        with Engine(spark, tmp_path, clock=ManualClock()) as again:
            assert again.catalog.declarations == declared
            assert again.catalog.settings == settings
