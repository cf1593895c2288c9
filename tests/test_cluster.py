"""The same script on a Spark standalone cluster: a worker that dies in an epoch is not seen in the output."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import cluster_program
import pytest
from pyspark.sql import SparkSession
from spark_cluster import Cluster, killed, waited_for

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
