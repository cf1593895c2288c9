"""Rows of chunks that Spark has: the rows of every slice, each chunk handed over once where that is possible."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StringType, StructType

from headgate.execute import rows_in_spark
from headgate.execute.rows_in_spark import RowsInSpark
from headgate.execute.workspace import Reading, Slice
from headgate.log.chunk import Chunk
from headgate.sql import Sql

SCHEMA = StructType().add("k", StringType()).add("_t", LongType())


class Sequence(list[dict[str, Any]]):
    """Stands for a sequence of Scala."""

    def slice(self, low: int, high: int) -> Sequence:
        return Sequence(self[low:high])


class Hands:
    """Notes how many rows it hands over."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def __call__(self, rows: pa.Table, schema: StructType) -> Any:
        self.counts.append(rows.num_rows)
        return Sequence(rows.to_pylist())


def chunk(folder: Path, times: list[int]) -> Chunk:
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(pa.table({"k": pa.array([str(time) for time in times]), "_t": pa.array(times, pa.int64())}), path)
    low, high = min(times, default=0), max(times, default=0)
    return Chunk(path, len(times), low, high, path.stat().st_size, checksum=crc32(path.read_bytes()))


def times_of(rows: RowsInSpark, *slices: Slice) -> list[int]:
    pieces: Any = rows.of(Reading("s", slices, SCHEMA))
    assert all(pieces), "an empty piece is left out"
    return [row["_t"] for piece in pieces for row in piece]


def test_a_chunk_in_order_is_handed_over_once_and_cut_by_number(tmp_path: Path) -> None:
    hands = Hands()
    rows, one = RowsInSpark(hands), chunk(tmp_path, [1, 2, 2, 3, 5])
    assert times_of(rows, Slice([one], 1, 3)) == [2, 2, 3]
    assert times_of(rows, Slice([one], None, 1)) == [1]
    assert times_of(rows, Slice([one], 3, None)) == [5]
    assert times_of(rows, Slice([one])) == [1, 2, 2, 3, 5]
    assert times_of(rows, Slice([one], 3, 4)) == []
    assert hands.counts == [5]


def test_a_piece_of_a_chunk_out_of_order_is_handed_over_by_itself_and_keeps_its_order(tmp_path: Path) -> None:
    hands = Hands()
    rows, one = RowsInSpark(hands), chunk(tmp_path, [4, 1, 3, 2])
    assert times_of(rows, Slice([one])) == [4, 1, 3, 2]
    assert times_of(rows, Slice([one], 1, 3)) == [3, 2]
    assert times_of(rows, Slice([one], 1, 3)) == [3, 2]
    assert hands.counts == [4, 2]


def test_of_a_large_chunk_only_what_is_read_is_handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_in_spark, "WHOLE_ROWS", 3)
    hands = Hands()
    rows, one = RowsInSpark(hands), chunk(tmp_path, [1, 2, 3, 4])
    assert times_of(rows, Slice([one], 2, 9)) == [3, 4]
    assert hands.counts == [2]
    assert times_of(rows, Slice([one], 0, 9)) == [1, 2, 3, 4]
    assert hands.counts == [2, 4]


def test_several_slices_and_chunks_come_in_their_order(tmp_path: Path) -> None:
    rows = RowsInSpark(Hands())
    first, second = chunk(tmp_path, [1, 2]), chunk(tmp_path, [3, 4])
    assert times_of(rows, Slice([second, first], 1, 3), Slice([], 0, 9)) == [3, 2]


def test_small_chunks_are_handed_over_together_and_known_one_by_one(tmp_path: Path) -> None:
    hands = Hands()
    rows, three = RowsInSpark(hands), [chunk(tmp_path, [first, first + 1]) for first in (1, 3, 5)]
    assert times_of(rows, Slice(three, 1, 5)) == [2, 3, 4, 5]
    assert times_of(rows, Slice([three[1]], 3, 9)) == [4]
    assert times_of(rows, Slice([*three, chunk(tmp_path, [8, 7])], 5, 9)) == [6, 8, 7]
    assert hands.counts == [6, 2]


def test_so_many_rows_stay_with_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_in_spark, "MOST_ROWS", 3)
    hands = Hands()
    rows, first, second = RowsInSpark(hands), chunk(tmp_path, [1, 2]), chunk(tmp_path, [3, 4])
    for one in (first, second, second, first):
        times_of(rows, Slice([one]))
    assert hands.counts == [2, 2, 2]


def test_what_spark_must_judge_is_not_handed_over(tmp_path: Path) -> None:
    rows, one = RowsInSpark(Hands()), chunk(tmp_path, [1, 2])
    assert rows.of(Reading("s", [Slice([one], seen=Sql("k = 'a'"))], SCHEMA)) is None
    refusing = RowsInSpark(lambda table, schema: None)
    assert refusing.of(Reading("s", [Slice([one])], SCHEMA)) is None
    without = Chunk(one.path, 2, 1, 2, one.size)
    assert rows.of(Reading("s", [Slice([without])], SCHEMA)) is None


def test_rows_that_were_computed_are_handed_over_as_they_are() -> None:
    rows = RowsInSpark(Hands())
    table = pa.table({"k": ["a"], "_t": pa.array([1], pa.int64())})
    assert rows.of(Reading("step", (), SCHEMA, table=table)) == [[{"k": "a", "_t": 1}]]
    assert rows.of(Reading("step", (), SCHEMA, table=table.slice(0, 0))) == []
