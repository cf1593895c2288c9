"""A large epoch runs beside the small ones of other queries, and holds up none of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from headgate import Engine
from headgate.errors import UserError
from headgate.schedule.beside import Beside

SECONDS = 6


@contextmanager
def running(engine: Engine, told: list[str]) -> Iterator[None]:
    thread = threading.Thread(target=lambda: engine.run(tell=told.append), daemon=True)
    thread.start()
    try:
        yield
    finally:
        engine.stop()
        thread.join(60)
        assert not thread.is_alive()


def wait_until(condition: object, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():  # type: ignore[operator]
            return
        time.sleep(0.02)
    raise AssertionError("it did not come about")


@pytest.fixture
def slow_and_fast(spark: SparkSession, tmp_path: Path) -> Iterator[Engine]:
    """Two queries over one stream, one of which takes long for every tuple."""

    @udf("bigint")
    def slowly(value):  # type: ignore[no-untyped-def]
        if value < 0:
            raise ValueError("below zero")
        time.sleep(SECONDS)
        return value

    with Engine(spark, tmp_path) as engine:
        engine.execute("CREATE STREAM s (t BIGINT, v BIGINT) TIMESTAMP BY t")
        engine.register_function("slowly", slowly)
        engine.execute("CREATE QUERY slow AS SELECT ISTREAM SLOWLY(v) AS v FROM s [NOW]")
        engine.execute("CREATE QUERY fast AS SELECT ISTREAM v FROM s [NOW]")
        yield engine


def test_small_epochs_go_on_while_a_large_one_runs(slow_and_fast: Engine) -> None:
    engine, told = slow_and_fast, list[str]()
    slow, fast = engine.query("slow"), engine.query("fast")
    with running(engine, told):
        engine.push("s", [(1, 1)])
        engine.punctuate("s", 1)
        wait_until(lambda: fast.complete == 1)
        engine.push("s", [(2, 2)])
        engine.punctuate("s", 2)
        wait_until(lambda: fast.complete == 2)
        assert not slow.count, "it is still in its first epoch"
        wait_until(lambda: slow.complete == 2)
    assert [result.row for result in slow.results()] == [{"v": 1}, {"v": 2}]
    assert not told


def test_an_epoch_that_fails_beside_is_told_of_and_the_others_go_on(slow_and_fast: Engine) -> None:
    engine, told = slow_and_fast, list[str]()
    slow, fast = engine.query("slow"), engine.query("fast")
    with running(engine, told):
        engine.push("s", [(1, -1)])
        engine.punctuate("s", 1)
        wait_until(lambda: slow.failed)
        engine.push("s", [(2, 2)])
        engine.punctuate("s", 2)
        wait_until(lambda: fast.complete == 2)
    assert any("below zero" in text for text in told)
    assert not slow.count


def test_a_query_that_is_dropped_while_its_epoch_runs_leaves_nothing(slow_and_fast: Engine) -> None:
    engine, told = slow_and_fast, list[str]()
    fast = engine.query("fast")
    with running(engine, told):
        engine.push("s", [(1, 1)])
        engine.punctuate("s", 1)
        wait_until(lambda: fast.complete == 1)
        engine.execute("DROP QUERY slow")
        engine.push("s", [(2, 2)])
        engine.punctuate("s", 2)
        wait_until(lambda: fast.complete == 2)
    assert [query.name for query in engine.queries()] == ["fast"]
    assert not told


def test_one_piece_of_work_at_a_time() -> None:
    woken = threading.Event()
    beside: Beside[str, int] = Beside(woken.set)
    assert beside.idle
    assert beside.taken() is None
    beside.begin("a", lambda: 7)
    assert not beside.idle
    assert beside.taken(wait=True) == ("a", 7)
    assert beside.idle
    assert woken.is_set()

    def fails() -> int:
        raise UserError("x", "it failed")

    beside.begin("b", fails)
    done = beside.taken(wait=True)
    assert done is not None
    assert isinstance(done[1], UserError)
