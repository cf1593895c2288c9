"""An engine that runs in a thread of its own: it answers, it ends, and what ends it is not lost. No JVM."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from tools.duck_engine import without_spark
from tools.no_spark import NoSpark

from headgate import Engine, UserError


@pytest.fixture
def engine() -> Iterator[Engine]:
    with without_spark():
        made = Engine(NoSpark())  # type: ignore[arg-type]
        made.execute("CREATE STREAM s (k INT); CREATE QUERY q AS SELECT ISTREAM(k) FROM s [RANGE UNBOUNDED]")
        yield made


def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    end_s = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end_s, "it does not come"
        time.sleep(0.01)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "engine"]


def test_it_answers_while_the_program_goes_on(engine: Engine) -> None:
    engine.start()
    until(lambda: engine.running)
    assert repr(engine) == "Engine(1 stream, 1 query, running)"
    engine.push("s", [(1, (1,)), (2, (2,))])
    until(lambda: engine.query("q").complete == 1)
    engine.close()
    assert not threads()
    assert engine.query("q").complete == 1


def test_it_runs_once(engine: Engine) -> None:
    engine.start()
    with pytest.raises(UserError) as caught:
        engine.start()
    assert caught.value.code == "already-running"
    engine.close()


def test_it_can_be_stopped_and_started_again(engine: Engine) -> None:
    engine.start()
    engine.stop()
    engine.start()
    until(lambda: engine.running)
    engine.push("s", [(1, (1,)), (2, (2,))])
    until(lambda: engine.query("q").complete == 1)
    engine.stop()
    until(lambda: not engine.running)
    engine.push("s", [(3, (3,))])
    assert [epoch.until for epoch in engine.step()] == [2], "by hand again"
    engine.close()
    assert not threads()


def test_an_error_that_ends_it_is_told_and_raised_in_the_end(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def broken() -> None:
        raise UserError("spark-gone", "Spark has gone away")

    monkeypatch.setattr(engine._core.loop, "step", broken)
    monkeypatch.setattr("headgate.engine.running.concerns_all", lambda error: True)
    engine.start(told.append)
    until(lambda: bool(told) and not threads())
    assert told == ["spark-gone: Spark has gone away"]
    assert not engine.running
    with pytest.raises(UserError, match="spark-gone"):
        engine.close()
