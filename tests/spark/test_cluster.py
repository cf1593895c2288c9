"""One script on a Spark standalone cluster: a worker that dies in an epoch is not seen in the output."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tools import cluster_program
from tools.spark_cluster import Cluster, killed, waited_for

from headgate import Engine, UserError
from headgate.log import chunk
from headgate.log.folders import local_directory
from headgate.spark import staging as staging_module
from headgate.spark.session import check_master, settings_from
from headgate.spark.staging import OPTIONS, write_parquet

pytestmark = pytest.mark.spark

PATIENCE_S = 240


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What comes out on this machine without a cluster."""
    results = cluster_program.played(spark, tmp_path_factory.mktemp("undisturbed"))
    assert len(results["totals"]) > 100
    assert len(results["placed"]) > 100
    return results


@pytest.mark.cluster
def test_a_worker_killed_in_an_epoch_is_not_seen_in_the_output(
    cluster: Cluster, undisturbed: dict[str, list[str]], tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    command = [sys.executable, cluster_program.__file__, cluster.master, str(tmp_path), str(trap)]
    with (tmp_path / "driver.log").open("wb") as log:
        driver = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        waited_for(lambda: trap.exists() or driver.poll() is not None, "a task in the last epoch", PATIENCE_S)
        assert trap.exists(), (tmp_path / "driver.log").read_text()
        cluster.kill(cluster.worker_of(int(trap.read_text())))
        assert driver.wait(PATIENCE_S) == 0, (tmp_path / "driver.log").read_text()
    finally:
        if driver.poll() is None:
            killed(driver.pid)
            driver.wait()
    assert json.loads((tmp_path / "results.json").read_text()) == undisturbed


@pytest.mark.cluster
def test_a_spark_connect_session_gives_the_same(undisturbed: dict[str, list[str]], tmp_path: Path) -> None:
    """A process of its own: pyspark decides for the whole process whether its functions are those of Connect."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpc: pip install 'headgate[connect]'")
    command = [sys.executable, cluster_program.__file__, "connect:local[2]", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads((tmp_path / "results.json").read_text()) == undisturbed


def test_what_another_attempt_leaves_is_not_taken(spark: SparkSession, tmp_path: Path) -> None:
    """An executor that was given up goes on writing where it began: nobody looks there any more."""
    staging = tmp_path / ".results"
    assert OPTIONS["mapreduce.fileoutputcommitter.algorithm.version"] == "1"
    first = write_parquet(spark.range(10), staging)
    (left,) = [file for file in first.glob("*.parquet") if file.stat().st_size][:1]
    stray = staging / "0123" / left.name
    stray.parent.mkdir()
    left.rename(stray)
    again = write_parquet(spark.range(3), staging)
    assert not stray.exists()
    assert spark.read.parquet(str(again)).count() == 3


def test_rows_that_workers_wrote_elsewhere_are_missed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging_module, "elsewhere", lambda _: True)
    assert spark.read.parquet(str(write_parquet(spark.range(10, numPartitions=2), tmp_path / "a"))).count() == 10
    write_parquet(spark.range(0), tmp_path / "none")
    counted = chunk.count
    monkeypatch.setattr(chunk, "count", lambda file: counted(file) if "part-00000" in file.name else 0)
    with pytest.raises(UserError, match=r"rows-missing: Spark wrote 10 rows .* and 5 of them are there"):
        write_parquet(spark.range(10, numPartitions=2), tmp_path / "b")


def test_what_a_cluster_cannot_use_is_refused(spark: SparkSession) -> None:
    for directory in ("hdfs://name:8020/engine", Path("s3a://bucket/engine")):
        with pytest.raises(UserError, match="not-a-file-system"):
            Engine(spark, directory)
    assert local_directory("file:///srv/engine") == Path("/srv/engine")
    with pytest.raises(UserError, match="no-master"):
        check_master("spark://127.0.0.1:1")
    for master in ("spark://somewhere", "sc://somewhere"):
        with pytest.raises(UserError, match="bad-master"):
            check_master(master)
    assert settings_from(["spark.executor.memory = 4g", "spark.x=a=b"]) == {
        "spark.executor.memory": "4g",
        "spark.x": "a=b",
    }
    with pytest.raises(UserError, match="bad-setting"):
        settings_from(["spark.executor.memory"])
