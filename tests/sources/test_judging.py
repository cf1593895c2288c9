"""Rows that are judged while heartbeats are given: everything comes out as if they had been judged after that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sources.test_inlet import NOON, Notebook, a_stream, inlet_of, letters, logged, write

from headgate import Engine
from headgate.catalog.entries import Connector, Stream
from headgate.errors import UserError
from headgate.heartbeat.clock import ManualClock
from headgate.sources import files, judged_batch, judging
from headgate.sources.files import FileSource
from headgate.sources.rows import ticks
from headgate.ticks import TimeDomain

pytestmark = pytest.mark.spark


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Lets something happen between the judging and the taking of each batch of files."""
    original = judging.judged

    def set_up(happens: Callable[[], object]) -> None:
        def judged(*given: Any) -> Any:
            batch = original(*given)
            happens()
            return batch

        monkeypatch.setattr(files, "judged", judged)

    return set_up


INTEGERS = a_stream("k INT, at BIGINT", timestamp="at")
STREAMS = {
    "one source": INTEGERS,
    "many sources": a_stream("k INT, at BIGINT", timestamp="at", source="k"),
    "heartbeats beside tuples": a_stream("k INT, at BIGINT, upto BIGINT", timestamp="at", source="k", heartbeat="upto"),
    "late tuples dropped": replace(INTEGERS, late="drop"),
    "instants": a_stream("k INT, at TIMESTAMP", TimeDomain.TIMESTAMP, timestamp="at"),
}


def rows_of(stream: Stream) -> list[Any]:
    base = ticks(NOON) if stream.domain is TimeDomain.TIMESTAMP else 0
    stamps = [base + at for at in (1, 4, 2, 9, 5, 12, 5, 30)]
    in_time = [(NOON + timedelta(microseconds=at - base)).isoformat() if base else at for at in stamps]
    rows: list[Any] = [{"k": number % 3, "at": at} for number, at in enumerate(in_time)]
    if stream.heartbeat:
        rows = [{**row, "upto": row["at"] - 1} for row in rows]
    return [*rows, '{"k": "no number"', {"k": 7}]


def taken(spark: SparkSession, where: Path, stream: Stream, first: Notebook, then: Notebook | None, set_up: Any) -> Any:
    """What comes of a batch that is judged by the first heartbeats and taken by the others."""
    where.mkdir()
    inlet = inlet_of(stream, where / "engine", first)
    source = FileSource(spark, inlet, Connector("json", {"path": str(where / "in")}))
    write(where / "in", "1", *rows_of(stream)[:5])
    write(where / "in", "2", *rows_of(stream)[5:])
    set_up(lambda: setattr(inlet, "heartbeats", then or first))
    count = source.poll(ManualClock())
    heartbeats = inlet.heartbeats
    assert isinstance(heartbeats, Notebook)
    told = [(what, sorted(rest[0].items()) if isinstance(rest[0], dict) else rest) for what, *rest in heartbeats.told]
    return count, logged(inlet, "k", "_t", "_s"), letters(inlet), sorted(map(str, told)), dict(inlet.counts)


@pytest.mark.parametrize("case", STREAMS)
@pytest.mark.parametrize("by_spark", [False, True])
def test_a_promise_given_meanwhile_counts(
    spark: SparkSession, tmp_path: Path, case: str, by_spark: bool, meanwhile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_spark:
        monkeypatch.setattr(judged_batch, "SPELLED_ALIKE", ())
    stream = STREAMS[case]
    base = ticks(NOON) if stream.domain is TimeDomain.TIMESTAMP else 0
    apart = {"1": base + 9, "2": base + 2} if stream.source is not None else {}
    before, after = base + 1, base + 5
    expected = taken(
        spark, tmp_path / "after", stream, Notebook(closed=after, apart=dict(apart), ahead=base + 20), None, meanwhile
    )
    found = taken(
        spark,
        tmp_path / "moved",
        stream,
        Notebook(closed=before, ahead=base + 20),
        Notebook(closed=after, apart=dict(apart), ahead=base + 20),
        meanwhile,
    )
    for one in (found, expected):
        for letter in one[2]:
            if letter["_timestamp"] is not None and letter["_s"] == 0:
                assert letter.pop("_behind") in (0, 4), "of what was late before, it is told by the promise of then"
    assert found == expected
    assert found[-1]["late"] >= 4
    assert found[0] + sum(found[-1].values()) == 10, "no row is lost, and none is there twice"


def test_a_linked_file_with_rows_that_are_late_by_now_is_judged_row_by_row(
    spark: SparkSession, tmp_path: Path, meanwhile: Any
) -> None:
    heartbeats = Notebook(closed=0)
    inlet = inlet_of(INTEGERS, tmp_path / "engine", heartbeats)
    (tmp_path / "in").mkdir()
    for name, stamps in {"1": [1, 4, 2, 9], "2": [10, 12]}.items():
        table = pa.table({"k": pa.array(range(len(stamps)), pa.int32()), "at": stamps})
        pq.write_table(table, tmp_path / "in" / f"{name}.parquet", row_group_size=3)
    source = FileSource(spark, inlet, Connector("parquet", {"path": str(tmp_path / "in")}))
    meanwhile(lambda: setattr(heartbeats, "closed", 2))
    assert source.poll(ManualClock()) == 4
    assert sorted(chunk.timestamp is not None for chunk in inlet.log.chunks) == [False, True], "the other one is linked"
    assert [row[1] for row in logged(inlet, "k", "_t", "_s")] == [4, 9, 10, 12]
    found = [(row["_reason"], row["_behind"], row["_timestamp"], row["_t"], row["_s"]) for row in letters(inlet)]
    assert found == [("late", 1, 1, 3, 0), ("late", 0, 2, 3, 2)]
    assert heartbeats.told == [("arrived", {None: (6, 1, 12)}), ("late", {None: 2})]
    assert (tmp_path / "in" / "1.parquet").exists()


def test_a_batch_is_refused_by_a_promise_given_meanwhile(spark: SparkSession, tmp_path: Path, meanwhile: Any) -> None:
    heartbeats = Notebook(closed=0)
    inlet = inlet_of(replace(INTEGERS, late="fail"), tmp_path / "engine", heartbeats)
    source = FileSource(spark, inlet, Connector("json", {"path": str(tmp_path / "in")}))
    write(tmp_path / "in", "1", {"k": 1, "at": 3}, {"k": 2, "at": 9})
    meanwhile(lambda: setattr(heartbeats, "closed", 5))
    with pytest.raises(UserError, match="late-tuple"):
        source.poll(ManualClock())
    assert (inlet.log.rows, inlet.dead.rows, heartbeats.told, source.seen) == (0, 0, [], set())


@pytest.mark.parametrize("stamped", ["TIMESTAMP INTERNAL", "TIMESTAMP LATENT"])
def test_rows_that_the_engine_stamps_are_not_behind_an_epoch(
    spark: SparkSession, tmp_path: Path, stamped: str, meanwhile: Any
) -> None:
    """Judged before an epoch and taken after it: the epoch has answered for the instant at which they were judged."""
    write(tmp_path / "in", "1", {"k": 1})
    clock = ManualClock(date_us=ticks(NOON))
    with Engine(spark, tmp_path / "engine", clock=clock) as engine:
        path = tmp_path / "in"
        engine.execute(f"CREATE STREAM s (k INT) {stamped} FROM json OPTIONS ('path' = '{path}');")
        engine.execute("CREATE QUERY q AS SELECT ISTREAM(k) FROM s [NOW]")
        engine.poll()
        engine.step()

        def epoch() -> None:
            clock.move_by(1_000_000)
            engine.push("s", [{"k": 100}])
            clock.move_by(1_000_000)
            while engine.step():
                pass
            assert engine.query("q").count == 2

        meanwhile(epoch)
        write(tmp_path / "in", "2", {"k": 2}, {"k": 3})
        assert engine.poll() == 2
        clock.move_by(1_000_000)
        engine.step()
        assert sorted(result.row["k"] for result in engine.query("q").results()) == [1, 2, 3, 100]


def test_an_epoch_between_judging_and_taking_makes_late_what_it_has_answered_for(
    spark: SparkSession, tmp_path: Path, meanwhile: Any
) -> None:
    write(tmp_path / "in", "1", *({"k": at, "at": at} for at in (3, 5, 7, 9)), {"k": 0})
    with Engine(spark, tmp_path / "engine", clock=ManualClock()) as engine:
        engine.execute(
            f"CREATE STREAM s (k INT, at INT) TIMESTAMP BY at FROM json OPTIONS ('path' = '{tmp_path / 'in'}');"
            "CREATE QUERY q AS SELECT ISTREAM(k) FROM s [NOW];"
            "CREATE QUERY dead AS SELECT ISTREAM(_reason) FROM LATE(s) [NOW]"
        )
        meanwhile(lambda: engine.advance(5))
        assert engine.poll() == 2
        assert engine.counts("s") == {"taken": 2, "late": 2, "no-timestamp": 1}
        engine.advance(9)
        assert [result.row["k"] for result in engine.query("q").results()] == [7, 9]
        reasons = sorted(reason for result in engine.query("dead").results() for reason in result.row.values())
        assert reasons == ["late", "late", "no-timestamp"], "dead letters are not behind the epoch either"
    with Engine(spark, tmp_path / "engine", clock=ManualClock()) as engine:
        assert engine.poll() == 0
        assert engine.counts("s") == {"taken": 2, "late": 2, "no-timestamp": 1}


def test_a_stream_that_gets_a_column_while_its_files_are_judged(
    spark: SparkSession, tmp_path: Path, meanwhile: Any
) -> None:
    write(tmp_path / "in", "1", {"k": 1, "at": 1, "v": 5})
    with Engine(spark, tmp_path / "engine", clock=ManualClock()) as engine:
        engine.execute(
            f"CREATE STREAM s (k INT, at INT) TIMESTAMP BY at FROM json OPTIONS ('path' = '{tmp_path / 'in'}')"
        )
        statements = iter(["ALTER STREAM s ADD COLUMN v INT"])
        meanwhile(lambda: [engine.execute(said) for said in [next(statements, "")] if said])
        assert engine.poll() == 1
        engine.execute("CREATE QUERY q FROM BEGINNING AS SELECT ISTREAM(k, v) FROM s [NOW]")
        engine.advance(1)
        assert [result.row for result in engine.query("q").results()] == [{"k": 1, "v": 5}]


def test_a_stream_that_is_dropped_while_its_files_are_judged(
    spark: SparkSession, tmp_path: Path, meanwhile: Any
) -> None:
    write(tmp_path / "in", "1", {"k": 1, "at": 1})
    made = f"CREATE STREAM s (k INT, at INT) TIMESTAMP BY at FROM json OPTIONS ('path' = '{tmp_path / 'in'}');"
    with Engine(spark, tmp_path / "engine", clock=ManualClock()) as engine:
        engine.execute(made)
        statements = iter([f"DROP STREAM s; {made}"])
        meanwhile(lambda: [engine.execute(said) for said in [next(statements, "")] if said])
        assert engine.poll() == 0
        assert engine.counts("s") == {"taken": 0}, "what was read for the old one is not told to the new one"
        assert engine.poll() == 1
