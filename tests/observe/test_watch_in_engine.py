"""An engine that traces its heartbeats and watches its epochs, from one end to the other."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import Engine, read_commits
from headgate.observe import status
from headgate.observe.trace import LOOP, SINK


@pytest.mark.spark
def test_an_epoch_that_hangs_is_taken_again_and_the_others_go_on(spark: SparkSession, tmp_path: Path) -> None:
    mark = tmp_path / "slept"

    def sleeps_once(value):  # type: ignore[no-untyped-def]
        if value == 2 and not mark.exists():
            mark.touch()
            time.sleep(120)
        return value

    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        if "It is restarted" in text:
            engine.execute("SET failed_after = 'none'")  # on a busy machine an epoch may take as long without hanging

    with Engine(spark, tmp_path / "state") as engine:
        engine.register_function("sleeps_once", sleeps_once, "int")
        engine.execute(
            f"""SET failed_after = '3 seconds'; CREATE STREAM s (v INT);
            CREATE QUERY hangs AS SELECT ISTREAM(sleeps_once(v) AS v) FROM s [NOW] INTO parquet OPTIONS ('path' = '{tmp_path}/out');
            CREATE QUERY goes_on AS SELECT ISTREAM(v) FROM s [NOW]"""
        )
        engine.push("s", [(at, (at,)) for at in (1, 2, 3)])
        engine.punctuate("s", 3)
        began = time.monotonic()
        engine.run(until=lambda: engine.query("hangs").delivered == 3 or time.monotonic() - began > 60, tell=tell)
        engine.step()  # which sees that the sink's thread has delivered
        engine._running.write_status()
        assert [result.row["v"] for result in engine.query("goes_on").results()] == [1, 2, 3]
    assert time.monotonic() - began < 60
    assert mark.exists()
    assert 'an epoch of query "hangs" has not ended' in told[0]
    assert [commit.rows for commit in read_commits(tmp_path / "out")] == [3]
    traces, _ = status.read_traces(tmp_path / "state", "hangs")
    (row,) = traces.rows()
    assert row["stops"]["hangs"]["rows"] == 3
    assert list(row["stops"]) == ["s", LOOP, "hangs", SINK]
