"""Parquet files that are taken into the log as they are: everything comes out as if they had been copied."""

from __future__ import annotations

import math
import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sources.test_inlet import Notebook, a_stream, inlet_of, letters, logged

from headgate import Engine
from headgate.catalog.entries import Connector
from headgate.errors import UserError
from headgate.heartbeat.clock import ManualClock
from headgate.log import log as logs
from headgate.log.chunk import values
from headgate.log.statistics import Values
from headgate.sources.files import FileSource
from headgate.ticks import TimeDomain

pytestmark = pytest.mark.spark

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
INTEGERS = a_stream("k INT, w STRING, ts BIGINT", timestamp="ts")
INSTANTS = a_stream("k INT, w STRING, ts TIMESTAMP", TimeDomain.TIMESTAMP, timestamp="ts")
KINDS = {"BIGINT": pa.int64(), "INT": pa.int32(), "TIMESTAMP": pa.timestamp("us", tz="UTC")}


def rows(stamps: list[Any], kind: str = "BIGINT", first: int = 0) -> pa.Table:
    """A row for each timestamp."""
    keys = pa.array(range(first, first + len(stamps)), pa.int32())
    words = pa.array([f"w{number % 3}" for number in range(len(stamps))])
    return pa.table({"k": keys, "w": words, "ts": pa.array(stamps, KINDS[kind])})


def source_of(spark: SparkSession, where: Path, stream: Any = INTEGERS, **more: Any) -> FileSource:
    options = more.pop("options", {})
    inlet = inlet_of(stream, where / "log", Notebook(**more))
    (where / "in").mkdir(exist_ok=True)
    return FileSource(spark, inlet, Connector("parquet", {"path": str(where / "in"), **options}))


def linked(source: FileSource) -> list[bool]:
    """Of each chunk, whether it is a file of the source as it is."""
    return [chunk.timestamp is not None for chunk in source.inlet.log.chunks]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_linked_and_reads_like_a_copy(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    stream = a_stream(
        f"k INT, w STRING, ts {kind}",
        TimeDomain.TIMESTAMP if kind == "TIMESTAMP" else TimeDomain.INTEGER,
        timestamp="ts",
    )
    source = source_of(spark, tmp_path, stream, sampling=True)
    stamps = [30, 10, 20, 40]
    instants = [NOON + timedelta(microseconds=stamp) for stamp in stamps] if kind == "TIMESTAMP" else stamps
    file = tmp_path / "in" / "a b%20c.parquet"
    pq.write_table(rows(instants, kind), file, row_group_size=3)
    assert source.poll(ManualClock()) == 4
    (chunk,) = source.inlet.log.chunks
    assert chunk.path.stat().st_ino == file.stat().st_ino
    start = 0 if kind != "TIMESTAMP" else int(NOON.timestamp()) * 1_000_000
    assert (chunk.rows, chunk.low, chunk.high) == (4, start + 10, start + 40)
    found = [(k, start + stamp, k) for k, stamp in enumerate(stamps)]
    assert logged(source.inlet, "k", "_t", "_s") == found
    assert [row for part in chunk.parts() for row in part.to_pylist()] == chunk.table().to_pylist()
    assert chunk.table(["_s", "k"]).to_pylist() == [{"_s": k, "k": k} for k in range(4)]
    assert chunk.rows_after(start + 20) == 2
    (heard,) = source.inlet.heartbeats.batches  # type: ignore[attr-defined]
    assert (heard.total, heard.smallest.tolist(), heard.largest.tolist()) == (4, [start + 10], [start + 40])
    assert sorted(heard.sample[0].tolist())[-1] == start + 40
    file.unlink()
    assert logged(source.inlet, "k", "_t", "_s") == found, "what the user deletes is still in the log"
    assert source.poll(ManualClock()) == 0


def not_alike() -> dict[str, tuple[pa.Table, dict[str, Any], Any]]:
    """Files that cannot be taken as they are: their rows, how they are written, and the stream."""
    plain = rows([1, 2, 3])
    apart = a_stream("k INT, w STRING, ts BIGINT", timestamp="ts", source="w")
    moments = [NOON, NOON, NOON]
    return {
        "another column": (plain.append_column("more", pa.array([1, 2, 3])), {}, INTEGERS),
        "another type": (plain.set_column(0, "k", pa.array([1, 2, 3], pa.int64())), {}, INTEGERS),
        "another case": (plain.rename_columns(["K", "w", "ts"]), {}, INTEGERS),
        "sources of their own": (plain, {}, apart),
        "an old way to write instants": (
            rows(moments, "TIMESTAMP"),
            {"use_deprecated_int96_timestamps": True},
            INSTANTS,
        ),
        "milliseconds": (rows(moments, "TIMESTAMP"), {"coerce_timestamps": "ms"}, INSTANTS),
        "a codec that not every Spark has": (plain, {"compression": "brotli"}, INTEGERS),
        "an encoding that not every Spark has": (
            plain,
            {"use_dictionary": False, "column_encoding": {"ts": "BYTE_STREAM_SPLIT"}},
            INTEGERS,
        ),
    }


def test_what_is_known_of_the_numbers_in_a_linked_file_is_read_and_not_believed(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = source_of(spark, tmp_path, a_stream("k INT, v DOUBLE, ts BIGINT", timestamp="ts"))
    plain = pa.table({"k": pa.array([1, None], pa.int32()), "v": [2.5, -4.0], "ts": [1, 2]})
    pq.write_table(plain, tmp_path / "in" / "1.parquet", write_statistics=False)
    pq.write_table(plain.set_column(1, "v", [[math.inf, 1.0]]), tmp_path / "in" / "2.parquet")
    assert source.poll(ManualClock()) == 4
    first, second = source.inlet.log.chunks
    assert linked(source) == [True, True]
    assert values([first], "v") == Values(2, 0, -4.0, 2.5)
    assert values([first, second], "k") == Values(4, 2, 1, 1)
    assert values([first, second], "v") == Values(4, 0), "one is infinite"


def test_a_footer_that_passes_over_nan(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would leave its rows out by what the footer says, so it is copied."""
    rows = pa.table({"v": [1.0, math.nan], "ts": [1, 2]})
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(rows, folder / "1.parquet")
    spark.createDataFrame(rows).coalesce(1).write.parquet(str(tmp_path / "by_spark"))
    next((tmp_path / "by_spark").glob("*.parquet")).rename(folder / "2.parquet")
    source = source_of(spark, tmp_path, a_stream("v DOUBLE, ts BIGINT", timestamp="ts"))
    assert source.poll(ManualClock()) == 4
    assert sorted(linked(source)) == [False, True]
    files = [f"file:{chunk.path}" for chunk in source.inlet.log.chunks]
    assert spark.read.parquet(*files).where("v > 5").count() == 2
    assert values(source.inlet.log.chunks, "v") == Values(4, 0)


@pytest.mark.parametrize("case", not_alike())
def test_what_the_log_would_say_otherwise_is_judged_row_by_row(spark: SparkSession, tmp_path: Path, case: str) -> None:
    table, written, stream = not_alike()[case]
    source = source_of(spark, tmp_path, stream)
    pq.write_table(table, tmp_path / "in" / "1.parquet", **written)
    if "codec" in case:
        staged = source.as_they_are.staged({f"file:{tmp_path}/in/1.parquet": 0}, tmp_path / "staged")
        assert not staged
        return
    assert source.poll(ManualClock()) == 3
    assert linked(source) == [False]


def test_the_option_copy(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(spark, tmp_path, options={"Copy": "true"})
    pq.write_table(rows([1, 2, 3]), tmp_path / "in" / "1.parquet")
    assert source.poll(ManualClock()) == 3
    assert linked(source) == [False]
    with pytest.raises(UserError, match="bad-option: 'copy' = 'perhaps' of stream \"s\" is neither"):
        source_of(spark, tmp_path, options={"copy": "perhaps"})


def test_only_files_with_rows_that_are_no_tuples_are_copied(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(spark, tmp_path, closed=9, ahead=100)
    files: list[list[int | None]] = [[10, 100], [9, 11], [12, None], [13, 101], [99, 14], [15, -1]]
    for number, stamps in enumerate(files):
        pq.write_table(rows(stamps, first=2 * number), tmp_path / "in" / f"{number}.parquet")
    assert source.poll(ManualClock()) == 8
    assert sum(linked(source)) == 2
    assert [k for (k,) in logged(source.inlet, "k")] == [0, 1, 3, 4, 6, 8, 9, 10]
    assert [(row["k"], row["_reason"]) for row in letters(source.inlet)] == [
        (2, "late"),
        (5, "no-timestamp"),
        (7, "far-future"),
        (11, "before-origin"),
    ]
    told = source.inlet.heartbeats.told  # type: ignore[attr-defined]
    assert told == [("arrived", {None: (9, 9, 100)}), ("late", {None: 1})]


def test_a_damaged_file_is_set_aside_and_never_linked(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(spark, tmp_path)
    good, bad = tmp_path / "in" / "1.parquet", tmp_path / "in" / "2.parquet"
    pq.write_table(rows(list(range(1, 1000))), good)
    pq.write_table(rows(list(range(1, 1000))), bad, compression="gzip", write_page_checksum=True)
    content = bytearray(bad.read_bytes())
    at = pq.read_metadata(bad).row_group(0).column(2).data_page_offset + 60
    content[at : at + 16] = b"\xff" * 16
    bad.write_bytes(content)
    assert source.poll(ManualClock()) == 999
    assert linked(source) == [True]
    (note,) = source.notes
    assert note.code == "file-set-aside"
    assert "2.parquet" in note.message


def test_without_links_the_system_copies(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*paths: Path) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    source = source_of(spark, tmp_path)
    file = tmp_path / "in" / "1.parquet"
    pq.write_table(rows([1, 2, 3]), file)
    assert source.poll(ManualClock()) == 3
    (chunk,) = source.inlet.log.chunks
    assert linked(source) == [True]
    assert chunk.path.stat().st_ino != file.stat().st_ino
    chunk.check()


def test_many_small_files_become_few_chunks(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(spark, tmp_path)
    for number in range(logs.MERGE_AT):
        pq.write_table(rows([number]), tmp_path / "in" / f"{number:02d}.parquet")
    assert source.poll(ManualClock()) == logs.MERGE_AT
    assert not any(linked(source))
    for number in range(logs.MERGE_AT):
        pq.write_table(rows([50 - number], first=number), tmp_path / "in" / f"x{number:02d}.parquet")
        source.poll(ManualClock())
    before, log = logged(source.inlet, "k", "w", "ts", "_t", "_s"), source.inlet.log
    assert sum(linked(source)) == logs.MERGE_AT
    log.compact()
    assert not any(linked(source))
    assert len(log.chunks) < logs.MERGE_AT
    assert logged(source.inlet, "k", "w", "ts", "_t", "_s") == before


@pytest.mark.parametrize("same_size", [True, False])
def test_a_file_that_is_changed_in_place_is_found(spark: SparkSession, tmp_path: Path, same_size: bool) -> None:
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "1.parquet"
    pq.write_table(rows([1, 2, 3]), file)
    with Engine(spark) as engine:
        engine.execute(f"""CREATE STREAM s (k INT, w STRING, ts BIGINT) TIMESTAMP BY ts DISORDER 0
            FROM parquet OPTIONS ('path' = '{tmp_path}/in');
            CREATE QUERY q AS SELECT ISTREAM(k, ts) FROM s [ROWS 2]""")
        assert engine.poll() == 3
        content = file.read_bytes()
        with file.open("r+b") as opened:
            opened.write(content.replace(b"w1", b"x1") if same_size else content + b"PAR1")
        with pytest.raises(UserError, match="torn-file") as found:
            engine.run_once()
        assert "must not be changed in place" in found.value.detail


QUERIES = {
    "last": "SELECT ISTREAM(k, w, ts) FROM s [PARTITION BY w ROWS 2]",
    "sums": "SELECT ISTREAM(w, COUNT(*) AS n, SUM(v) AS total) FROM s [RANGE {five}] GROUP BY w",
    "some": "SELECT ISTREAM(k, v, ts) FROM s [NOW] WHERE k % 3 = 0",
}


def random_files(seed: int, in_time: bool) -> list[list[pa.Table]]:
    """Files of several polls. Some have late rows, rows without a timestamp, or one of the far future."""
    choose, polls, at, k = random.Random(seed), [], 1000, 0
    for _ in range(3):
        files = []
        for _ in range(choose.randint(1, 4)):
            size = choose.choice([1, 7, 40, 150])
            stamps: list[Any] = [at + number // 2 + choose.randint(-3, 3) for number in range(size)]
            at += size // 2 + 1
            if choose.random() < 0.3:
                stamps[choose.randrange(size)] = choose.choice([None, at - 200, at + 10**7])
            if in_time:
                stamps = [None if one is None else NOON + timedelta(milliseconds=one) for one in stamps]
            values = [choose.choice([None, choose.randint(-9, 9) / 4]) for _ in stamps]
            table = rows(stamps, "TIMESTAMP" if in_time else "BIGINT", k).append_column("v", pa.array(values))
            files.append(table)
            k += size
        polls.append(files)
    return polls


@pytest.mark.parametrize(("seed", "in_time", "disorder"), [(1, False, True), (2, True, True), (3, False, False)])
def test_random_files_give_what_copies_give(
    spark: SparkSession, tmp_path: Path, seed: int, in_time: bool, disorder: bool
) -> None:
    def outcome(where: Path, option: str) -> tuple[Any, ...]:
        folder, clock, chunks = where / "in", ManualClock(), 0
        folder.mkdir(parents=True)
        text = f"""CREATE STREAM s (k INT, w STRING, v DOUBLE, ts {"TIMESTAMP" if in_time else "BIGINT"}) TIMESTAMP BY ts
            FROM parquet OPTIONS ('path' = '{folder}'{option});"""
        text += f"DISORDER OF s {'10 MILLISECONDS' if in_time else 10};" if disorder else ""
        for name, query in QUERIES.items():
            text += f"CREATE QUERY {name} AS {query.format(five='5 MILLISECONDS' if in_time else 5)};"
        engine = Engine(spark, directory=where / "state", clock=clock)
        engine.execute(text)
        for number, files in enumerate(random_files(seed, in_time)):
            for place, table in enumerate(files):
                pq.write_table(table, folder / f"{number}-{place}.parquet", row_group_size=30)
            clock.move_by(1_000_000)
            engine.poll()
            if number == 1:  # between taking the files and using them
                engine.close()
                engine = Engine(spark, directory=where / "state", clock=clock)
            chunks += sum(chunk.timestamp is not None for chunk in engine._core.inputs.inlet("s").log.chunks)
            engine.step()
            (folder / f"{number}-0.parquet").unlink()
        engine.run_once()
        results = {name: sorted(map(repr, engine.query(name).results())) for name in QUERIES}
        letters = engine.dead_letters("s")
        if not disorder:  # a bound is learnt from runs of tuples, and files that are linked are shorter runs
            letters = [{**letter, "_t": None} for letter in letters]
        said = results, engine.counts("s"), letters, engine.heartbeat("s")
        engine.close()
        assert (chunks > 0) == (not option)
        return said

    assert outcome(tmp_path / "linked", "") == outcome(tmp_path / "copied", ", 'copy' = 'true'")


def test_rows_of_a_linked_chunk_have_their_places_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        table = rows([7] * 500, first=500 * number)
        pq.write_table(table.take(np.arange(500)[::-1]), tmp_path / "in" / f"{number}.parquet", row_group_size=90)
    with Engine(spark) as engine:
        engine.execute(f"""CREATE STREAM s (k INT, w STRING, ts BIGINT) TIMESTAMP BY ts DISORDER 0
            FROM parquet OPTIONS ('path' = '{tmp_path}/in');
            CREATE QUERY q AS SELECT RSTREAM(k) FROM s [ROWS 502]""")
        engine.run_once()
        found = {result.row["k"] for result in engine.query("q").results()}
    assert found == {*range(1000, 1500), 500, 501}
