"""What chunks know of their numbers: nulls, the least and the largest value, and only what holds for every row."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headgate.log import statistics
from headgate.log.chunk import Chunk, described, values, write
from headgate.log.journal import Journal
from headgate.log.log import MERGE_AT, Log
from headgate.log.statistics import MOST_COLUMNS, Statistics, Values, merged, of_rows
from headgate.spark.staging import write_parquet

NAN, INFINITE = math.nan, math.inf


def table(v: list[Any], type: pa.DataType | None = None) -> pa.Table:
    return pa.table({"v": pa.array(v, type or pa.float64()), "_t": range(len(v)), "_s": range(len(v))})


DOUBLES = [
    pytest.param([1.5, -2.0, 0.25], Values(3, 0, -2.0, 1.5), 2, id="plain"),
    pytest.param([1.0, None, 3.0], Values(3, 1, 1.0, 3.0), 2, id="null"),
    pytest.param([None, None], Values(2, 2), 0, id="all null"),
    pytest.param([NAN, 1.0], Values(2, 0), None, id="NaN first"),
    pytest.param([1.0, NAN], Values(2, 0), None, id="NaN last"),
    pytest.param([NAN], Values(1, 0), None, id="NaN alone"),
    pytest.param([None, NAN], Values(2, 1), None, id="null and NaN"),
    pytest.param([1.0, INFINITE], Values(2, 0), None, id="infinite"),
    pytest.param([-INFINITE, None], Values(2, 1), None, id="minus infinite"),
    pytest.param([-0.0], Values(1, 0, 0.0, 0.0), 0, id="minus zero"),
    pytest.param([0.0, -0.0], Values(2, 0, 0.0, 0.0), 0, id="both zeros"),
    pytest.param([2.0**42], Values(1, 0, 2.0**42, 2.0**42), 43, id="power of two"),
    pytest.param([1e308, 5e-324], Values(2, 0, 5e-324, 1e308), 1024, id="largest and least"),
]


@pytest.mark.parametrize(("v", "known", "exponent"), DOUBLES)
def test_a_chunk_that_arrow_writes(v: list[Any], known: Values, exponent: int | None, tmp_path: Path) -> None:
    chunk = write(table(v), tmp_path / "1.parquet")
    assert chunk is not None
    found = values([chunk], "v")
    assert found == known
    assert found.exponent == exponent
    assert found.complete == (None not in v)
    if known.least == 0 == known.largest:
        assert math.copysign(1, found.least or 0) == 1, "the sign of a zero is not told"


@pytest.mark.spark
@pytest.mark.parametrize("type", ["DOUBLE", "FLOAT"])
def test_chunks_that_spark_writes(spark: SparkSession, type: str, tmp_path: Path) -> None:
    """If another version of Spark passes over NaN in its footers, this fails, and they can be believed no more."""
    for case in DOUBLES[:-1]:
        v: Any = case.values[0]
        known: Any = case.values[1]
        doubles = spark.createDataFrame([(one,) for one in v], "v DOUBLE")
        rows = doubles.selectExpr(f"CAST(v AS {type}) AS v", "1L AS _t")
        (file,) = write_parquet(rows.coalesce(1), tmp_path / "staged").glob("*.parquet")
        chunk = described(file)
        assert chunk is not None
        assert values([chunk], "v") == known, v


@pytest.mark.spark
def test_spark_finds_nan_in_chunks_that_arrow_wrote(spark: SparkSession, tmp_path: Path) -> None:
    """NaN is larger than every number, and a footer that passes over it would lead Spark to pass over the chunk."""
    rows = table([1.0, NAN]).append_column("n", pa.array([{"v": 1.0}, {"v": NAN}]))
    log = Log(tmp_path)
    for _ in range(MERGE_AT):
        log.append(rows)
    for _ in ("as written", "merged"):
        read = spark.read.parquet(*(f"file:{chunk.path}" for chunk in log.chunks))
        assert read.where("v > 5").count() == read.where("n.v > 5").count() == MERGE_AT
        log.compact()
    assert len(log.chunks) == 1


@pytest.mark.spark
def test_nan_in_any_page_and_any_file(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 400_000, 1, 2).selectExpr("IF(id = 150000, DOUBLE('NaN'), DOUBLE(id)) AS v", "id AS _t")
    chunks = [described(file) for file in sorted(write_parquet(rows, tmp_path / "staged").glob("*.parquet"))]
    with_nan, without = (chunk for chunk in chunks if chunk is not None)
    assert values([with_nan], "v") == Values(200_000, 0)
    assert values([without], "v") == Values(200_000, 0, 200_000.0, 399_999.0)
    assert values([with_nan, without], "v") == Values(400_000, 0)


@pytest.mark.parametrize("type", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
def test_whole_numbers(type: pa.DataType, tmp_path: Path) -> None:
    bits = type.bit_width
    chunk = write(table([-(2 ** (bits - 1)), None, 5], type), tmp_path / "1.parquet")
    found = described(tmp_path / "1.parquet")
    assert chunk is not None
    assert found is not None
    known = Values(3, 1, -(2 ** (bits - 1)), 5)
    assert values([chunk], "v") == values([found], "v") == known
    assert known.exponent == bits


def test_footers_of_arrow_are_not_believed_about_floating_point(tmp_path: Path) -> None:
    pq.write_table(table([1.0, NAN]).append_column("i", [[1, 2]]), tmp_path / "1.parquet")
    chunk = described(tmp_path / "1.parquet")
    assert chunk is not None
    assert values([chunk], "v") is None
    assert values([chunk], "i") == Values(2, 0, 1, 2)


def test_only_top_level_columns_of_numbers(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "a": pa.array([{"b": 1, "c": [2, 3]}] * 2),
            "a.b": pa.array([7, 8]),
            "text": ["x", "y"],
            "yes": [True, False],
            "at": pa.array([1, 2], pa.timestamp("us", tz="UTC")),
            "exact": pa.array([1, 2], pa.int32()).cast(pa.decimal128(12, 2)),
            "n": pa.array([4, 5], pa.int32()),
            "_t": [1, 2],
            "_s": [0, 1],
        }
    )
    pq.write_table(rows, tmp_path / "1.parquet")
    chunk = described(tmp_path / "1.parquet")
    assert chunk is not None
    assert chunk.statistics == Statistics(2, {"a.b": None, "n": Values(2, 0, 4, 5)})


def test_several_row_groups(tmp_path: Path) -> None:
    pq.write_table(table([1, None, 3, 9, None, None], pa.int64()), tmp_path / "1.parquet", row_group_size=2)
    chunk = described(tmp_path / "1.parquet")
    assert chunk is not None
    assert values([chunk], "v") == Values(6, 3, 1, 9)


def test_a_file_without_statistics_says_nothing(tmp_path: Path) -> None:
    pq.write_table(table([1, 2], pa.int64()), tmp_path / "1.parquet", write_statistics=["_t"])
    chunk = described(tmp_path / "1.parquet")
    assert chunk is not None
    assert values([chunk], "v") is None


def test_a_column_that_came_later_is_null_before(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.append(table([1.0, 2.0]))
    log.append(table([3.0]).append_column("w", [[7]]))
    assert values(log.chunks[:1], "w") == Values(2, 2)
    assert values(log.chunks, "w") == Values(3, 2, 7, 7)
    assert values(log.chunks, "v") == Values(3, 0, 1.0, 3.0)


def test_no_chunks_have_nothing_but_complete_and_small_values() -> None:
    found = values([], "v")
    assert found == Values(0, 0)
    assert found.complete
    assert found.exponent == 0


def test_one_chunk_without_statistics_and_nothing_is_known(tmp_path: Path) -> None:
    chunk = write(table([1.0]), tmp_path / "1.parquet")
    assert chunk is not None
    assert values([chunk, Chunk(tmp_path / "2.parquet", 1, 0, 0)], "v") is None


def test_too_many_columns() -> None:
    most = pa.table({f"c{column}": [1] for column in range(MOST_COLUMNS)})
    assert of_rows(most) is not None
    assert of_rows(most.append_column("more", [[1]])) is None
    assert merged([of_rows(most), of_rows(pa.table({"more": [1]}))]) is None
    assert of_rows(most.append_column("text", [["x"]])) is not None


def test_the_journal_remembers_them_and_merging_keeps_them(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.read()
    log = Log(tmp_path / "s", journal, "log s")
    for row in range(MERGE_AT):
        log.append(table([float(row), None]))
    log.append(table([-0.0, INFINITE]))
    journal.close()
    again = opened(tmp_path)
    assert [chunk.statistics for chunk in again.chunks] == [chunk.statistics for chunk in log.chunks]
    assert values(again.chunks[:MERGE_AT], "v") == Values(2 * MERGE_AT, MERGE_AT, 0.0, MERGE_AT - 1.0)
    again.compact()
    (whole,) = again.chunks
    again.journal.close()
    assert whole.statistics == Statistics(2 * MERGE_AT + 2, {"v": Values(2 * MERGE_AT + 2, MERGE_AT)})
    assert opened(tmp_path).chunks[0].statistics == whole.statistics


def opened(directory: Path) -> Log:
    journal = Journal(directory)
    journal.read()
    return Log(directory / "s", journal, "log s")


def test_lines_of_earlier_versions(tmp_path: Path) -> None:
    log = Log(tmp_path)
    old = [["1.parquet", 2, 5, 9], ["2.parquet", 2, 5, 9, 100, 4, 77], ["3.parquet", 2, 5, 9, 100, 6, 77, "ts"]]
    log.apply({"add": old})
    assert [chunk.statistics for chunk in log.chunks] == [None] * 3
    assert [(chunk.checksum, chunk.timestamp) for chunk in log.chunks] == [(None, None), (77, None), (77, "ts")]
    assert json.loads(json.dumps(log.state()))["add"][1:] == old[1:]


def test_what_is_written_is_json_that_everybody_reads() -> None:
    known = of_rows(table([1.0, INFINITE, NAN]).append_column("i", [[1, None, 2]]))
    assert known is not None
    text = json.dumps(known.written(), allow_nan=False)
    assert text == '{"v": [0], "i": [1, 1, 2]}'
    assert Statistics.read(3, json.loads(text)) == known


def test_sums_of_statistics_hold_for_any_grouping() -> None:
    parts = [of_rows(table(v)) for v in ([1.0, None], [None], [], [4.0], [-3.0, 2.0])]
    one_by_one = None
    for part in parts:
        one_by_one = part if one_by_one is None else merged([one_by_one, part])
    assert one_by_one == statistics.merged(parts)
    assert one_by_one is not None
    assert one_by_one.values("v") == Values(6, 2, -3.0, 4.0)


def test_what_is_counted_can_be_read(tmp_path: Path) -> None:
    """Readers look at the log while rows are added, without its turn."""
    log, seen = Log(tmp_path), list[bool]()

    class Watched(list[Chunk]):
        def append(self, chunk: Chunk) -> None:
            seen.append(log.rows <= sum(listed.rows for listed in self))
            super().append(chunk)

    log.chunks = Watched()
    for at in range(3):
        log.append(pa.table({"_t": pa.array([at], pa.int64()), "x": [at]}))
    assert seen == [True] * 3
    assert log.rows == 3
