"""Slow flush: a large epoch goes out in pieces, one a turn, in order of time, each once; heartbeats wait for the
last.
"""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headgate import Engine, read_commits
from headgate.catalog import sinks
from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Connector
from headgate.cql.definitions import define
from headgate.deliver import flush
from headgate.deliver.outbox import Outbox
from headgate.deliver.sinks.sink import Delivery
from headgate.errors import UserError
from headgate.heartbeat.clock import ManualClock
from headgate.log.journal import Journal
from headgate.ticks import TimeDomain


class Taken:
    """A sink that takes what it gets, unless it is told to fail."""

    guarantee = "exactly once"
    wants_empty = True

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.failing = False

    def deliver(self, delivery: Delivery) -> None:
        if self.failing:
            raise ConnectionError("nobody answers")
        self.deliveries.append(delivery)

    def delivered(self) -> int | None:
        return self.deliveries[-1].number if self.deliveries else 0

    def close(self) -> None:
        pass

    @property
    def numbers(self) -> list[int]:
        return [delivery.number for delivery in self.deliveries]


class Box:
    """An outbox over hand-made pieces."""

    def __init__(self, where: Path, sink: Taken, domain: TimeDomain = TimeDomain.INTEGER) -> None:
        self.where, self.sink, self.clock = where, sink, ManualClock()
        self.journal = Journal(where)
        where.mkdir(exist_ok=True)
        self.outbox = Outbox("q", domain, sink, where / "q", self.journal)
        self.journal.read()

    def put(self, after: int, until: int, *pieces: list[int]) -> None:
        files = []
        for number, times in enumerate(pieces):
            files.append([self.where / f"{after}-{number}.parquet"])
            kind = pa.timestamp("us", "UTC") if self.outbox.domain is TimeDomain.TIMESTAMP else pa.int64()
            pq.write_table(pa.table({"_time": pa.array(times, kind), "v": times}), files[-1][0])
        self.outbox.put(files or [[]], after, until)

    def turn(self, pieces: int | None = 1) -> list[int]:
        """What went out."""
        before = len(self.sink.deliveries)
        self.outbox.deliver(self.clock, lambda text: None, pieces)
        return self.sink.numbers[before:]


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path / "state", Taken())


def test_pieces_go_out_one_a_turn_and_the_heartbeat_follows_what_is_out(box: Box) -> None:
    box.put(0, 9, [1, 1], [1, 4], [6, 6], [8])
    spans = [(one.number, one.after, one.until, one.complete, one.rows, one.left) for one in box.outbox.waiting]
    assert spans == [(1, 0, 0, 0, 2, 3), (2, 0, 5, 5, 2, 2), (3, 5, 7, 7, 2, 1), (4, 7, 9, 9, 1, 0)]
    went = []
    for _ in range(5):
        went.append((box.turn(), box.outbox.delivered(9)))
    assert went == [([1], 0), ([2], 5), ([3], 7), ([4], 9), ([], 9)], "an instant counts when all of it is out"
    assert not list((box.where / "q" / "results").iterdir()), "what is out is not kept"


def test_a_step_hands_over_one_piece_though_it_asks_twice(box: Box) -> None:
    box.put(0, 3, [1], [2], [3])
    assert [(box.turn(pieces=0), box.turn(pieces=1)) for _ in range(3)] == [([], [1]), ([], [2]), ([3], [])]


def test_what_comes_behind_a_flush_waits_for_it_and_small_epochs_do_not_hurry_it(box: Box) -> None:
    box.put(0, 3, [1], [2], [3])
    assert box.turn() == [1]
    box.put(3, 4, [4])
    box.put(4, 5)
    assert box.turn() == [2]
    assert box.outbox.delivered(5) == 2
    assert box.turn() == [3, 4, 5]
    assert box.outbox.delivered(5) == 5


def test_a_second_large_epoch_sends_what_is_left_of_the_first_at_once(box: Box) -> None:
    box.put(0, 3, [1], [2], [3])
    assert box.turn() == [1]
    box.put(3, 6, [4], [5], [6])
    assert box.turn() == [2, 3, 4]
    assert box.turn() == [5]


def test_everything_can_be_asked_for(box: Box) -> None:
    box.put(0, 3, [1], [2], [3])
    assert box.outbox.can_deliver(0)
    assert box.turn(pieces=None) == [1, 2, 3]
    assert not box.outbox.can_deliver(0)


def test_a_crash_in_the_middle_of_a_flush_goes_on_with_the_next_piece(tmp_path: Path) -> None:
    sink = Taken()
    first = Box(tmp_path / "state", sink)
    first.put(0, 4, [1], [2], [2], [4])
    assert first.turn() == [1]
    sink.deliver(first.outbox.waiting[0])  # it arrives, and before that is noted the process is gone
    again = Box(tmp_path / "state", sink)
    assert [one.number for one in again.outbox.waiting] == [2, 3, 4]
    assert again.turn() == [3]
    assert again.outbox.delivered(4) == 3
    again.put(4, 5, [5])
    assert again.turn() == [4, 5]
    assert sink.numbers == [1, 2, 3, 4, 5]
    again.journal.checkpoint(
        lambda: [(again.outbox.log.subject, again.outbox.log.state()), (again.outbox.subject, again.outbox.state())]
    )
    again.journal.close()
    assert Box(tmp_path / "state", sink).outbox.number == 5


def test_a_sink_that_fails_gets_the_same_piece_again_and_is_not_asked_at_the_end(box: Box) -> None:
    box.put(0, 3, [1], [2], [3])
    assert box.turn() == [1]
    box.sink.failing = True
    assert box.turn() == []
    assert not box.outbox.can_deliver(box.clock.now_us())
    box.sink.failing = False
    box.clock.move_by(1_000_000)
    box.outbox.finish(box.clock, lambda text: None)
    assert box.sink.numbers == [1], "it was in trouble"
    assert box.turn() == [2]
    box.outbox.finish(box.clock, lambda text: None)
    assert box.sink.numbers == [1, 2, 3]


def test_a_piece_that_ends_within_the_first_instant_there_is_completes_none(tmp_path: Path) -> None:
    origin = TimeDomain.TIMESTAMP.origin
    box = Box(tmp_path / "state", Taken(), TimeDomain.TIMESTAMP)
    box.put(origin - 1, 0, [origin, origin], [origin], [-5])
    assert [one.complete for one in box.outbox.waiting][:2] == [None, TimeDomain.TIMESTAMP.moment(-6)]


# what is said in CQL


def test_how_much_goes_out_at_once_is_set_for_all_or_said_of_a_sink() -> None:
    catalog = Catalog()
    define("CREATE STREAM s (k STRING, v INT); SET flush_rows = 500", catalog)
    assert catalog.settings.flush_rows == 500
    define("SET flush_rows = 'none'", catalog)
    assert catalog.settings.flush_rows is None
    with pytest.raises(UserError, match="not a number of results"):
        define("SET flush_rows = 0", catalog)
    define(
        """CREATE QUERY a AS SELECT * FROM s [NOW] INTO console OPTIONS ('flush_rows' = '7');
        CREATE QUERY b AS SELECT * FROM s [NOW] INTO console;
        CREATE QUERY c AS SELECT * FROM s [PARTITION BY k ROWS 1] INTO parquet OPTIONS ('path' = 'out', 'deliver' = 'current')""",
        catalog,
    )
    connectors = [catalog.query(name).connector for name in "abc"]
    assert [sinks.flush_rows(connector, 500) for connector in connectors] == [7, 500, None]
    assert sinks.flush_rows(None, 500) == 500
    assert sinks.flush_rows(Connector("console"), None) is None
    options = "'path' = 'out', 'deliver' = 'upserts', 'key' = 'k', 'flush_rows' = '9'"
    with pytest.raises(UserError, match="upserts cannot be cut into pieces"):
        define(f"CREATE QUERY d AS SELECT * FROM s [PARTITION BY k ROWS 1] INTO parquet OPTIONS ({options})", catalog)


# on Spark


@pytest.mark.spark
@pytest.mark.parametrize("tasks", ["1", "2"])
def test_results_are_cut_in_order_of_time_into_no_more_rows_than_wanted(
    spark: SparkSession, tmp_path: Path, tasks: str
) -> None:
    times = [(37 * n) % 11 for n in range(100)]
    files = [tmp_path / name for name in ("one.parquet", "two.parquet")]
    for part, file in enumerate(files):
        mine = times[part::2]
        change = ["+-"[n % 2] for n in range(len(mine))]
        pq.write_table(
            pa.table({"_time": mine, "_change": change, "v": [part * 100 + n for n in range(len(mine))]}), file
        )
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", tasks)
    session.conf.set("spark.sql.adaptive.enabled", "false")
    pieces = [pq.read_table(file) for file in flush.split(session, files, 7, tmp_path / "pieces")]
    assert max(map(len, pieces)) == 7
    assert len(pieces) <= 16 + int(tasks) - 1
    rows = [(row["_time"], row["_change"] == "+") for piece in pieces for row in piece.to_pylist()]
    assert rows == sorted(rows)
    assert sorted(row[0] for row in rows) == sorted(times)
    assert len({value for piece in pieces for value in piece["v"].to_pylist()}) == 100
    assert not any(file.exists() for file in files)


@pytest.mark.spark
def test_a_large_close_reaches_the_folder_piece_by_piece_also_across_a_crash(
    spark: SparkSession, tmp_path: Path
) -> None:
    script = f"""SET flush_rows = 4; CREATE STREAM s (v INT);
        CREATE QUERY q AS SELECT ISTREAM(v, COUNT(*) AS n) FROM s [RANGE 10 SLIDE 10] GROUP BY v
          INTO parquet OPTIONS ('path' = '{tmp_path}/out');
        CREATE QUERY kept AS SELECT ISTREAM(v) FROM s [NOW]"""
    engine = Engine(spark, tmp_path / "state", clock=ManualClock())
    engine.execute(script)
    engine.push("s", [(at % 8 + 1, (at,)) for at in range(15)])
    engine.advance(10)  # an epoch in one turn, and one in which nothing is left to do

    def out() -> list[tuple[int, int, int]]:
        return [(commit.number, commit.complete, commit.rows) for commit in read_commits(tmp_path / "out")]

    assert out() == [(1, 9, 4), (2, 9, 4)], "the close of instant 10 is not out"
    assert (engine.query("q").complete, engine.query("q").delivered) == (10, 9)
    assert engine.query("kept").delivered == 10
    engine._core.lock.release()  # the process is gone

    engine = Engine(spark, tmp_path / "state", clock=ManualClock())
    engine.step()
    assert out() == [(1, 9, 4), (2, 9, 4), (3, 9, 4)]
    engine.close()
    assert out() == [(1, 9, 4), (2, 9, 4), (3, 9, 4), (4, 10, 3)], "an engine that is closed hands over the rest"
    found = [
        row
        for commit in read_commits(tmp_path / "out")
        for file in commit.files
        for row in pq.read_table(file).to_pylist()
    ]
    assert sorted(row["v"] for row in found) == list(range(15))


@pytest.mark.spark
def test_a_replay_and_a_run_hand_over_everything_in_pieces(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark, clock=ManualClock()) as engine:
        engine.execute("SET flush_rows = 2; CREATE STREAM s (v INT)")
        engine.execute(
            f"CREATE QUERY q AS SELECT ISTREAM(v) FROM s [NOW] INTO json OPTIONS ('path' = '{tmp_path}/out')"
        )
        engine.push("s", [(at, (at,)) for at in range(1, 8)])
        engine.run_once()
        assert [commit.complete for commit in read_commits(tmp_path / "out")] == [2, 4, 6, 7]
        assert engine.query("q").delivered == engine.query("q").complete == 7
        engine.push("s", [(at, (at,)) for at in range(11, 18)])
        engine.finish("s")
        end = time.monotonic() + 60
        engine.run(until=lambda: engine.query("q").delivered == 17 or time.monotonic() > end)
    assert [commit.complete for commit in read_commits(tmp_path / "out")] == [2, 4, 6, 7, 12, 14, 16, 17]


@pytest.mark.spark
def test_kept_results_are_put_in_order(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process and by Spark alike, and files that are in order stay as they are."""
    times, changes = [3, 1, 2, 1, 3, 2], ["+", "+", "-", "-", "-", "+"]
    table = pa.table({"_time": pa.array(times, pa.int64()), "_change": changes, "v": pa.array(range(6), pa.int64())})
    expected = [(1, "-", 3), (1, "+", 1), (2, "-", 2), (2, "+", 5), (3, "-", 4), (3, "+", 0)]

    def files() -> list[Path]:
        paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
        for path, part in zip(paths, (table.slice(0, 4), table.slice(4)), strict=True):
            pq.write_table(part, path)
        return paths

    for most in (100, 2):
        monkeypatch.setattr(flush, "IN_MEMORY_ROWS", most)
        ordered = flush.in_order(spark, files(), tmp_path / ".pieces")
        rows = [tuple(row.values()) for file in ordered for row in pq.read_table(file).to_pylist()]
        assert rows == expected
        assert not (tmp_path / "a.parquet").exists()
    monkeypatch.setattr(flush, "IN_MEMORY_ROWS", 100)
    pq.write_table(table.sort_by([("_time", "ascending"), ("_change", "descending")]), tmp_path / "c.parquet")
    assert flush.in_order(spark, [tmp_path / "c.parquet"], tmp_path / ".pieces") == [tmp_path / "c.parquet"]
    assert flush.in_order(spark, [], tmp_path / ".pieces") == []
