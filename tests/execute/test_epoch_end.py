"""How many rows an epoch takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import Engine
from headgate.execute.epoch_end import LEAST_ROWS, MOST_ROWS, epoch_end, rows_for_memory
from headgate.log.chunk import Chunk
from headgate.spark.session import task_memory

GIGABYTE = 2**30


def chunk(rows: int, low: int, high: int, size: int = 0) -> Chunk:
    return Chunk(Path("none"), rows, low, high, size)


def test_as_many_rows_as_fit_into_memory() -> None:
    narrow, wide = rows_for_memory(GIGABYTE, 5), rows_for_memory(GIGABYTE, 50)
    assert 4_000_000 < narrow < 6_000_000
    assert wide < narrow / 3
    assert rows_for_memory(2 * GIGABYTE, 5) == pytest.approx(2 * narrow, abs=2)


def test_rows_with_long_texts_are_fewer() -> None:
    texts = [chunk(1_000, 0, 10, size=1_000_000)]
    assert rows_for_memory(GIGABYTE, 5, texts) < rows_for_memory(GIGABYTE, 5) / 20


def test_never_too_few_nor_too_many() -> None:
    assert rows_for_memory(0, 5) == LEAST_ROWS
    assert rows_for_memory(1_000 * GIGABYTE, 5) == MOST_ROWS


def test_an_epoch_ends_where_enough_rows_lie_before() -> None:
    chunks = [chunk(1_000, 1, 100), chunk(1_000, 101, 200)]
    assert epoch_end(chunks, 0, 200, 2_000) == 200
    assert epoch_end(chunks, 0, 200, 1_000) == 100
    assert epoch_end(chunks, 0, 200, 1) == 1, "at least one instant"


@pytest.mark.spark
def test_the_user_can_say_it(spark: SparkSession) -> None:
    assert task_memory(spark) > 0
    with Engine(spark) as engine:
        engine.execute("SET epoch_rows = 2; CREATE STREAM s (k INT); CREATE QUERY q AS SELECT k FROM s [RANGE 2]")
        engine.push("s", [(instant, (instant,)) for instant in range(1, 9)])
        assert len(engine.advance(8)) == 4
        engine.execute("SET epoch_rows = 'auto'")
        engine.push("s", [(instant, (instant,)) for instant in range(9, 17)])
        assert len(engine.advance(16)) == 1
