"""Crash anywhere and start again: the complete output is that of a run in which nothing happened.

Here an engine dies in this process, at every few steps of the load in `crashes`, and another goes on with its directory: fast, and
as good as SIGKILL for everything that headgate itself does with files. `make test-faults` kills real processes.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import crashes
import pytest
from pyspark.sql import SparkSession

from headgate import Bound, Engine, Party, read_commits
from headgate.errors import UserError
from headgate.heartbeat.clock import ManualClock

pytestmark = pytest.mark.spark


def survived(spark: SparkSession, where: Path, every: int | None) -> tuple[dict[str, Any], int, int]:
    """What came out of the load when the engine died at every so many steps; how often it did, and how many steps there were."""
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
                    engine._lock.release()
        deaths += 1
        steps += death.steps
        assert deaths < 200, "it gets nowhere"
        every = None if every is None else every + deaths % 5  # not always after the same number of steps


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found, deaths, _ = survived(spark, tmp_path_factory.mktemp("undisturbed"), None)
    assert not deaths
    assert found["taken"] == {stream: {"taken": crashes.ROUNDS * crashes.ROWS} for stream in ("a", "b", "f")}
    assert all(len(rows) > 15 for rows in (found["pairs"][0], found["both"][0], found["sums"]))
    return found


def test_dying_every_few_steps_changes_nothing(spark: SparkSession, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    found, deaths, _ = survived(spark, tmp_path, 45)
    assert deaths >= 4
    assert found == undisturbed


def crashed(engine: Engine) -> None:
    """The process is gone; the operating system gives its lock back."""
    engine._lock.release()


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
        with pytest.raises(UserError) as error:
            Engine(spark, tmp_path)
        assert error.value.code == "torn-file"
        assert chunk.name in error.value.message
        assert said in error.value.detail
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
    engine.execute("CREATE QUERY later AS SELECT ISTREAM(v) FROM s [NOW]")  # as the script has it that registered it first
    engine.advance(4)
    shown = {query.name: [(result.at, *result.row.values()) for result in query.results()] for query in engine.queries()}
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
    engine.execute(f"CREATE QUERY once AS SELECT ISTREAM(v) FROM s [NOW] INTO parquet OPTIONS ('path' = '{tmp_path}/once')")
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
    engine._loop.tell = told.append
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
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], check=False, capture_output=True).returncode:
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


KEPT = Path(__file__).parent / "fixtures" / "directory-1"
"""What format 1 looks like: a checkpoint, lines behind it, chunks, synopses, results. Later versions must go on from it.

`python tests/test_recovery.py` wrote it, and must not do so again unless the format's number has changed."""

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
        if query.executor.fragment.program.synopses:
            query.executor.move()
    engine._journal.checkpoint(engine._facts)
    engine._journal.wait()
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
        assert [str(result) for result in engine.query("larger").results()] == ["2 + k=b, v=2", "4 + k=a, v=3", "8 + k=b, v=4"]
        assert [str(result) for result in engine.query("sums").results()] == [
            "1 + k=a, total=1", "2 + k=b, total=2", "4 - k=a, total=1", "4 + k=a, total=4", "8 - k=b, total=2", "8 + k=b, total=6",
            "11 - k=a, total=4", "11 + k=a, total=3", "12 - k=b, total=6", "12 + k=b, total=4", "14 - k=a, total=3",
            "18 - k=b, total=4",
        ]  # fmt: skip


if __name__ == "__main__":
    from headgate.runtime.session import started

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
    engine.execute("DROP DISORDER OF s; DROP TIMEOUT; DROP HEARTBEAT; DROP ENVIRONMENT sensors OF s SOURCE 'x'; DISORDER OF n 1")
    engine.drop_skew("s", "n")
    engine.drop_latency("n")
    declared, settings = engine.catalog.declarations, engine.catalog.settings
    assert [*declared.sensors] == [Party("n"), Party("s", "y")]
    assert (declared.disorders, declared.skews, declared.latencies_us) == ({Party("n"): (Bound(2),)}, {}, {})
    if crash:
        engine._journal.close()
        engine._lock.release()
    else:
        engine.close()
    for _ in range(2):
        with Engine(spark, tmp_path, clock=ManualClock()) as again:
            assert again.catalog.declarations == declared
            assert again.catalog.settings == settings
