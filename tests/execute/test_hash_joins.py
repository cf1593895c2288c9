"""Joins by time make hash tables of their smaller side in large epochs, and sort instead where memory does not do."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.delta.lower import lower
from headgate.delta.program import FEW_ROWS, Program
from headgate.engine import Engine
from headgate.execute.statement import Statement

STREAMS = "CREATE STREAM s (k INT, v INT); CREATE STREAM t (k INT, w INT);"
QUERY = "CREATE QUERY q AS ISTREAM(SELECT x.k, v, w FROM s [RANGE 3] x, t [RANGE 3] y WHERE x.k = y.k);"


def program() -> Program:
    catalog = Catalog()
    define(STREAMS + QUERY, catalog)
    return lower(catalog.query("q").plan)


def hints(left: int, right: int, most: int) -> set[str]:
    """Return the sides of which hash tables are made, if the epoch has so many rows of each stream."""
    made = program().with_hash_joins(lambda name: {"log_s_1": left, "log_t_1": right}.get(name, 0), most)
    return {side for side in ("l", "r") if f"SHUFFLE_HASH({side})" in made.output()}


def test_the_smaller_side_goes_into_hash_tables() -> None:
    assert hints(2 * FEW_ROWS, 9 * FEW_ROWS, most=10 * FEW_ROWS) == {"l"}
    assert hints(9 * FEW_ROWS, 2 * FEW_ROWS, most=10 * FEW_ROWS) == {"r"}


def test_spark_decides_about_a_side_that_is_very_small_or_too_large() -> None:
    assert hints(FEW_ROWS, 9 * FEW_ROWS, most=10 * FEW_ROWS) == set()
    assert hints(9 * FEW_ROWS, 9 * FEW_ROWS, most=8 * FEW_ROWS) == set()


def test_other_joins_are_left_alone() -> None:
    made = program()
    assert made.hashes(in_one_task=False)
    catalog = Catalog()
    define(STREAMS + QUERY.replace("[RANGE 3]", "[RANGE UNBOUNDED]"), catalog)
    endless = lower(catalog.query("q").plan)
    assert not endless.hashes(in_one_task=False)
    assert "SHUFFLE_HASH" not in endless.with_hash_joins(lambda name: 9 * FEW_ROWS, 10 * FEW_ROWS).output()


@pytest.mark.spark
def test_an_epoch_whose_hash_tables_do_not_fit_sorts_instead(spark: SparkSession, tmp_path: Path) -> None:
    attempts: list[bool] = []
    write = Statement.write_results

    def fails_with_hash_tables(statement: Statement) -> list[Path]:
        attempts.append("SHUFFLE_HASH" in statement.program.output())
        if attempts[-1]:
            raise PySparkException("Can not acquire 99 bytes memory to build hash relation, got 1 bytes")
        return write(statement)

    with (
        Engine(spark, tmp_path) as engine,
        patch("headgate.delta.program.FEW_ROWS", 1),
        patch("headgate.execute.programs.SINGLE_TASK_ROWS", 1),
        patch("headgate.execute.programs.TINY_ROWS", 0),
        patch.object(Statement, "write_results", fails_with_hash_tables),
    ):
        engine.execute(STREAMS + QUERY)
        for stream, column in (("s", "v"), ("t", "w")):
            engine.push(stream, [(at, {"k": 1, column: at}) for at in (1, 2, 9)])
        engine.advance(5)
        engine.advance(20)
        found = sorted(tuple(result.row.values()) for result in engine.query("q").results())
    assert found == [(1, 1, 1), (1, 1, 2), (1, 2, 1), (1, 2, 2), (1, 9, 9)]
    assert attempts == [True, False, False], "once in vain, then without hash tables"
