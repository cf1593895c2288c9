"""Engines that ask for heartbeats: when something waits they go on at once, when nothing does they do nothing, and they
remember.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate import Engine, ManualClock, UserError

pytestmark = pytest.mark.spark

SECOND = 1_000_000
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_US = int(NOON.timestamp()) * SECOND
INSIDE = "CREATE STREAM inside (v INT) TIMESTAMP INTERNAL;"
OUTSIDE = "CREATE STREAM outside (v INT, at TIMESTAMP) TIMESTAMP BY at;"
UNION = "CREATE QUERY q AS SELECT v FROM inside UNION ALL SELECT v FROM outside;"


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def found(engine: Engine) -> list[tuple[Any, str, Any]]:
    return [(result.at, result.sign, *result.row.values()) for result in engine.query("q").results()]


def test_an_engine_runs_an_epoch_only_when_something_can_happen(spark: SparkSession) -> None:
    clock = ManualClock(date_us=NOON_US)
    with Engine(spark, clock=clock) as engine:
        engine.execute(INSIDE + "CREATE QUERY q AS SELECT v FROM inside [RANGE 10 SECONDS]")
        turns = count()
        engine.run(until=lambda: next(turns) == 3)
        assert engine.query("q").epochs == 0, "nothing ever came"
        engine.push("inside", [(1,)])
        assert len(engine.step()) == 1, "what came is answered at once, whatever the clock shows"
        for _ in range(20):
            clock.move_by(SECOND // 2)
            assert engine.step() == [], "the window holds it, and nothing waits"
        assert engine._core.asking.next_us == clock.now_us() + 1, "that is when the window lets go"
        clock.move_by(SECOND)
        assert len(engine.step()) == 1
        assert found(engine) == [(at(0), "+", 1), (at(10) + timedelta(microseconds=1), "-", 1)]
        clock.move_by(3_600 * SECOND)
        engine.run(until=lambda: next(turns) == 6)
        assert engine.query("q").epochs == 2


def test_a_quiet_stream_is_asked_when_another_waits_for_it(spark: SparkSession, tmp_path: Path) -> None:
    clock = ManualClock(date_us=NOON_US)
    with Engine(spark, tmp_path, clock=clock) as engine:
        engine.execute(INSIDE + OUTSIDE + "HEARTBEAT OF outside ON DEMAND WITHIN 2 SECONDS;" + UNION)
        engine.push("outside", [(5, at(-1))])
        clock.move_by(SECOND)
        engine.push("inside", [(1,)])
        clock.move_by(SECOND // 2)
        assert engine.step() == [], "nothing of what waits could be answered"
        assert abs((engine._core.asking.next_us or 0) - 2 * SECOND) <= 1
        clock.move_by(SECOND // 2)
        engine.step()
        assert found(engine) == [(at(-1), "+", 5)], "others of that instant may still come, but nothing before it"
        assert "held back by outside" in str(engine.query("q").why())
        assert "released by the clock, in 2.0 s, if all" in str(engine.query("q").why())
        clock.move_by(2 * SECOND)
        engine.step()
        assert found(engine) == [(at(-1), "+", 5), (at(1), "+", 1)]
    with Engine(spark, tmp_path, clock=ManualClock(date_us=NOON_US + 3_600 * SECOND)) as engine:
        assert engine.push("outside", [(6, at(1))]) == 0, "it was promised that nothing of that instant comes"
        assert engine.push("outside", [(7, at(2))]) == 1
        assert engine.late("outside") == {None: 1}
        assert [letter["v"] for letter in engine.dead_letters("outside")] == [6]


def test_a_function_is_asked_and_a_tuple_that_belies_it_is_late(spark: SparkSession) -> None:
    with Engine(spark, clock=ManualClock()) as engine:
        engine.execute("CREATE STREAM a (v INT); CREATE STREAM b (v INT); SET estimation = 'off';" + INSIDE)
        engine.execute("CREATE QUERY q AS SELECT v FROM a UNION ALL SELECT v FROM b")
        with pytest.raises(UserError, match="stamped by the engine"):
            engine.ask("inside", lambda: 1)
        engine.push("a", [(7, (1,)), (8, (2,))])
        assert engine.step() == []
        engine.ask("b", lambda: 7)
        engine.step()
        assert found(engine) == [(7, "+", 1), (8, "+", 2)], "nothing before 8 can still come"
        assert engine.push("b", [(7, (3,)), (8, (4,))]) == 1
        assert engine.counts("b") == {"taken": 1, "late": 1}


def test_files_are_read_up_to_the_last_look_that_left_nothing(spark: SparkSession, tmp_path: Path) -> None:
    clock, folder = ManualClock(date_us=NOON_US), tmp_path / "in"
    folder.mkdir()

    def write(name: str, v: int, seconds: float) -> None:
        folder.joinpath(name).write_text(json.dumps({"v": v, "at": at(seconds).isoformat()}))

    with Engine(spark, clock=clock) as engine:
        engine.execute(
            "CREATE STREAM outside (v INT, at TIMESTAMP) TIMESTAMP BY at HEARTBEAT ON DEMAND WITHIN 1 SECOND "
            f"FROM json OPTIONS ('path' = '{folder}');" + INSIDE + UNION
        )
        write("a.json", 5, 0)
        engine.poll()
        clock.move_by(2 * SECOND)
        engine.push("inside", [(1,)])
        write("b.json", 6, 0.5)
        clock.move_by(60 * SECOND)
        engine.step()
        assert found(engine) == [], "the reader has not looked for a minute"
        engine.poll()
        engine.step()
        clock.move_by(3 * SECOND)
        engine.poll()
        engine.step()
        assert [row for *_, row in found(engine)] == [5, 6, 1]
        assert engine.late("outside") == {}
