"""Crash anywhere and start again: the complete output is that of a run in which nothing happened.

Here an engine dies in this process, at every few steps of the load in `crashes`, and another goes on with its directory: fast, and
as good as SIGKILL for everything that headgate itself does with files. `make test-faults` kills real processes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import crashes
import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def survived(spark: SparkSession, where: Path, every: int | None) -> tuple[dict[str, Any], int, int]:
    """What came out of the load when the engine died at every so many steps; how often it did, and how many steps there were."""
    directory, out, files = where / "state", where / "out", where / "files"
    files.mkdir(parents=True)
    deaths = steps = 0
    while True:
        with crashes.mortal(every) as death:
            engine = None
            try:
                engine = crashes.started(spark, directory, out, files)
                crashes.play(engine, files)
                found = crashes.outcome(engine, out)
                death.strike_at = None
                engine.close()
                return found, deaths, steps + death.steps
            except crashes.Dead:
                if engine is not None:
                    engine._lock.release()
        deaths += 1
        steps += death.steps
        assert deaths < 200, "it gets nowhere"
        every = None if every is None else every + deaths % 5  # not always after the same number of steps


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found, deaths, _ = survived(spark, tmp_path_factory.mktemp("undisturbed"), None)
    assert not deaths
    assert found["taken"] == {stream: {"taken": crashes.ROUNDS * crashes.ROWS} for stream in ("a", "b", "f")}
    assert all(len(rows) > 30 for rows in (found["pairs"][0], found["both"][0], found["sums"]))
    return found


def test_dying_every_few_steps_changes_nothing(spark: SparkSession, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    found, deaths, _ = survived(spark, tmp_path, 40)
    assert deaths >= 5
    assert found == undisturbed
