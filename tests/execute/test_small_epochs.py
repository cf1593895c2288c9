"""Small epochs through memory: the same answers and the same files as through files, whatever is in memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tools.as_sql import sql as as_sql

from headgate import Engine
from headgate.errors import UserError
from headgate.execute import fragment as fragments
from headgate.execute import workspace as workspaces
from headgate.execute.workspace import Slice, values_in
from headgate.log.tail import Tail

QUERY = "SELECT k, COUNT(*) AS n, AVG(v) AS m FROM s [RANGE 4] GROUP BY k"
TYPES = (
    "b BOOLEAN, i1 TINYINT, i2 SMALLINT, i4 INT, i8 BIGINT, f FLOAT, d DOUBLE, n DECIMAL(20, 3), small DECIMAL(7, 2), "
    "x STRING, y BINARY, day DATE, at TIMESTAMP, l ARRAY<INT>, m MAP<STRING, DOUBLE>, r STRUCT<a: INT, b: ARRAY<STRING>>"
)
VALUES: list[tuple[Any, ...]] = [
    (
        *(
            True,
            -128,
            32_767,
            -1,
            2**62,
            0.5,
            -0.1,
            Decimal("12345678901234567.891"),
            Decimal("-1.50"),
            "ä\n'",
            b"\0\xff",
        ),
        *(
            date(1600, 2, 29),
            datetime(2026, 1, 1, 12, 0, 0, 123_456, UTC),
            [1, None, 3],
            {"a": 1.5},
            {"a": 1, "b": ["x"]},
        ),
    ),
    (None,) * 16,
    (
        *(False, 0, 0, 0, 0, float("nan"), float("inf"), Decimal(0), Decimal(0), "", b""),
        *(date(9999, 12, 31), datetime(1900, 1, 1, tzinfo=UTC), [], {}, {"a": None, "b": None}),
    ),
]


def test_parameters_become_values_and_texts_stay() -> None:
    text = "SELECT ':since', `:until`, \"it's :after\", v:since, 'it\\'s :since' WHERE _t > :since AND _t <= :until"
    said = "".join(values_in(as_sql(text), {"since": -5, "until": 7, "after": 6}))
    assert said == text.replace("> :since", "> (-5L)").replace("<= :until", "<= (7L)")


def test_the_bounds_of_a_slice_are_the_same_in_sql_and_in_arrow() -> None:
    rows = pa.table({"_t": [1, 2, 3, 4]})
    for low, high, sql, left in (
        (None, None, "", [1, 2, 3, 4]),
        (1, None, "_t > 1", [2, 3, 4]),
        (None, 2, "_t <= 2", [1, 2]),
        (1, 3, "_t > 1 AND _t <= 3", [2, 3]),
    ):
        some = Slice([], low, high)
        assert (some.condition, some.in_time(rows)["_t"].to_pylist()) == (sql, left)
    assert Slice([], 1, None, as_sql("k IN ('a')")).condition == "_t > 1 AND k IN ('a')"


def through_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be handed to Spark or taken from it in memory."""
    monkeypatch.setattr(workspaces, "arrow_schema", lambda schema: None)


def run(spark: SparkSession, folder: Path, midway: Callable[[int], None]) -> list[str]:
    with Engine(spark, folder) as engine:
        engine.execute(f"CREATE STREAM s (k INT, v DOUBLE); CREATE QUERY q AS {QUERY}")
        for instant in range(1, 9):
            engine.push("s", [(instant, (instant % 5, float(instant))), (instant, (instant % 3, 1.0))])
            midway(instant)
            engine.advance(instant)
        return list(map(str, engine.query("q").results()))


@pytest.mark.spark
def test_answers_do_not_depend_on_what_is_in_memory(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fragments, "MOVE_COST_ROWS", 20)  # so that synopses move as well
    tail = Tail()
    monkeypatch.setattr(workspaces, "TAIL", tail)

    def evict(instant: int) -> None:
        tail.most_bytes = 0 if instant % 3 == 0 else 2_000

    kept = run(spark, tmp_path / "kept", lambda _: None)
    assert tail.bytes
    evicted = run(spark, tmp_path / "evicted", evict)
    monkeypatch.setattr(workspaces, "TAKEN_ROWS", 2)
    many = run(spark, tmp_path / "many", lambda _: None)
    through_files(monkeypatch)
    files = run(spark, tmp_path / "files", lambda _: None)
    assert len(files) > 20
    assert kept == files
    assert evicted == files
    assert many == files


@pytest.mark.spark
def test_values_and_files_are_those_that_spark_would_write(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, tuple[list[str], list[pa.Table]]] = {}
    for way in ("memory", "files"):
        if way == "files":
            through_files(monkeypatch)
        with Engine(spark, tmp_path / way) as engine:
            engine.execute(f"CREATE STREAM s ({TYPES}); CREATE QUERY q AS SELECT * FROM s [RANGE 5]")
            for instant, values in enumerate(VALUES, 1):
                engine.push("s", [(instant, values)])
                engine.advance(instant)
            engine.advance(20)
            query = engine.query("q")
            found[way] = list(map(str, query.results())), [chunk.table() for chunk in query.outbox.log.chunks]
    (memory, ours), (files, theirs) = found["memory"], found["files"]
    assert memory == files
    assert len(memory) == 2 * len(VALUES)
    for one, other in zip(ours, theirs, strict=True):
        assert one.schema.equals(other.schema, check_metadata=False)
    spark_reads = [spark.read.parquet(str(tmp_path / way / "queries" / "q" / "results")).schema for way in found]
    assert spark_reads[0] == spark_reads[1]


@pytest.mark.spark
def test_a_damaged_chunk_is_named_when_it_is_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspaces, "TAIL", Tail())
    with Engine(spark, tmp_path) as engine:
        engine.execute("CREATE STREAM s (k INT); CREATE QUERY q AS SELECT k FROM s [RANGE 5]")
        engine.push("s", [(1, (1,))])
        (chunk,) = (tmp_path / "streams" / "s").glob("*.parquet")
        content = bytearray(chunk.read_bytes())
        content[len(content) // 2] ^= 1
        chunk.write_bytes(content)
        with pytest.raises(UserError, match=chunk.name):
            engine.advance(1)


@pytest.mark.parametrize("text", ["SELECT * FROM s", "SELECT ISTREAM * FROM s [NOW]", QUERY])
def test_no_row_is_lost_behind_chunks_of_which_nothing_is_read(spark: SparkSession, text: str) -> None:
    """Spark takes two empty pieces of an Arrow table for its end."""
    with Engine(spark) as engine:
        engine.execute("CREATE STREAM s (k STRING, v DOUBLE)")
        engine.execute("CREATE QUERY held AS SELECT COUNT(*) AS n FROM s [RANGE 100]")
        for _ in range(4):
            engine.push("s", [(1, ("a", 1.0)), (9, ("a", 9.0))])
        engine.advance(3)
        engine.execute(f"CREATE QUERY q AS {text}")
        engine.push("s", [(5, ("b", 5.0))])
        engine.advance(6)
        assert [one.at for one in engine.query("q").results() if one.row["k"] == "b"] == [5]
