"""What counts as failed: epochs that do not end, streams that stand still while others go on; and that only the one is
interrupted.
"""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr, udf

from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define, shown
from headgate.errors import UserError
from headgate.heartbeat.clock import SystemClock
from headgate.observe import watch as watch_module
from headgate.observe.watch import Finding, GoesOn, Hung, Stopped, Watch, watching
from headgate.spark.session import own_session
from headgate.ticks import UNLIMITED

MINUTE = 60_000_000


class Case:
    """A watch with a minute's patience, what it reported and what it interrupted."""

    def __init__(self, most_us: int | None = MINUTE) -> None:
        self.most_us = most_us
        self.reported: list[Finding] = []
        self.interrupted: list[str] = []
        self.watch = Watch(lambda: self.most_us, self.reported.append)

    def began(self, fragment: str, now_us: int) -> None:
        self.watch.began(fragment, now_us, lambda: self.interrupted.append(fragment))


def test_an_epoch_that_does_not_end_is_told_once_and_interrupted_until_it_does() -> None:
    case = Case()
    case.began("slow", 0)
    case.began("quick", 30_000_000)
    assert case.watch.check(MINUTE - 1) == []
    assert case.watch.check(MINUTE) == [Hung("slow", MINUTE)] == case.reported
    assert case.watch.check(MINUTE + 5) == []
    assert case.interrupted == ["slow", "slow"]
    assert case.watch.ended("slow")
    assert not case.watch.ended("quick")
    case.began("slow", 2 * MINUTE)
    assert case.watch.check(2 * MINUTE + 5) == []
    assert not case.watch.ended("slow"), "the next epoch is another"


def test_nothing_is_too_long_unless_it_is_set_and_a_setting_counts_at_once() -> None:
    case = Case(None)
    case.began("slow", 0)
    assert case.watch.check(10 * MINUTE) == []
    case.most_us = MINUTE
    assert case.watch.check(10 * MINUTE) == [Hung("slow", 10 * MINUTE)]


def test_a_stream_has_stopped_when_others_move_after_it_stood_still_for_so_long() -> None:
    case = Case()
    watch = case.watch
    for second in range(0, 130, 10):
        watch.looked({"a": second, "b": min(second, 40), "done": UNLIMITED}, second * 1_000_000)
        found = watch.check(second * 1_000_000)
        assert found == ([Stopped("b", MINUTE)] if second == 100 else [])
    watch.looked({"a": 130, "b": 50, "done": UNLIMITED}, 130_000_000)
    assert watch.check(130_000_000) == [GoesOn("b")]
    assert case.reported == [Stopped("b", MINUTE), GoesOn("b")]


def test_if_all_stand_still_none_has_failed() -> None:
    watch = Case().watch
    for minute in range(5):
        watch.looked({"a": min(minute, 1), "b": 0}, minute * MINUTE // 2)
        assert watch.check(minute * MINUTE // 2) == []


def test_a_stream_that_never_spoke_stands_still_too_and_one_that_is_paused_does_not() -> None:
    watch = Case().watch
    watch.looked({"a": 1, "never": None, "paused": 1}, 0)
    watch.looked({"a": 2, "never": None}, MINUTE)
    assert watch.check(MINUTE) == [Stopped("never", MINUTE)]
    watch.looked({"a": 3, "never": None, "paused": 1}, 2 * MINUTE)
    assert watch.check(2 * MINUTE) == []


def test_what_was_not_interrupted_fails_by_its_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    case, clock, none = Case(), SystemClock(), cast("SparkSession", None)
    monkeypatch.setattr(watch_module, "tagged", lambda session, tag: nullcontext())

    def fail() -> None:
        with case.watch.over("q", [none], clock):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with case.watch.over("q", [none], clock):
        pass
    assert not case.watch.check(clock.now_us() + 2 * MINUTE), "nothing runs any more"


def test_the_setting() -> None:
    catalog = Catalog()
    assert [row[:2] for row in shown("SETTINGS", catalog).rows][-2:] == [
        ("flush_rows", "none"),
        ("failed_after", "none"),
    ]
    define("SET failed_after = '1 minute'; SET flush_rows = 1000", catalog)
    assert catalog.settings.failed_after_us == MINUTE
    assert [row[:2] for row in shown("SETTINGS", catalog).rows][-2:] == [
        ("flush_rows", "1000"),
        ("failed_after", "60 seconds"),
    ]
    define("SET failed_after = 'none'", catalog)
    assert catalog.settings.failed_after_us is None
    with pytest.raises(UserError, match="not a length of time"):
        define("SET failed_after = 'soon'", catalog)


@pytest.mark.spark
def test_a_job_that_hangs_is_interrupted_and_no_other(spark: SparkSession, tmp_path: Path) -> None:
    """The other runs in a session of its own, from another thread, at the same time."""
    case, clock = Case(2_000_000), SystemClock()
    hanging, other = own_session(spark), own_session(spark)

    @udf("bigint")
    def slept(seconds):  # type: ignore[no-untyped-def]
        time.sleep(seconds)
        return seconds

    done: list[int] = []
    beside = threading.Thread(
        target=lambda: done.extend(row[0] for row in other.range(6, 7, 1, 1).select(slept("id")).collect())
    )
    beside.start()
    began = time.monotonic()
    for number, column in enumerate((slept("id"), expr("REFLECT('java.lang.Thread', 'sleep', id * 1000) AS slept"))):
        with (
            watching(case.watch, clock),
            pytest.raises(UserError, match="epoch-hung"),
            case.watch.over("q", [hanging], clock),
        ):
            hanging.range(60, 61, 1, 1).select(column).write.parquet(str(tmp_path / str(number)))
    with case.watch.over("q", [hanging], clock):
        assert hanging.range(0, 4, 1, 2).select(slept("id")).count() == 4, "the next runs as if nothing had been"
    assert time.monotonic() - began < 40
    beside.join(60)
    assert done == [6], "it was not touched"
    assert [type(finding) for finding in case.reported] == [Hung, Hung]
    assert spark.sparkContext.getLocalProperty("spark.job.interruptOnCancel") is None
