"""Spark sessions: finding one, making one, and an own one for each query so that the user's settings stay untouched."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import warnings
from importlib import resources

from pyspark.sql import SparkSession

from headgate.errors import UserError

JAVA_NEEDED = 17

REMEMBERED: dict[str, bool | float | int | str | None] = {
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.ui.dagGraph.retainedRootRDDs": "20",
    "spark.sql.ui.retainedExecutions": "10",
}
"""How much Spark keeps to show in its web interface. It does so with the interface off, too: of each statement the whole plan."""


def java_version() -> int | None:
    """The major version of the Java that Spark would start; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not shutil.which(java):
        return None
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', answer)
    if found is None:
        return None
    return int(found[2] or 0) if found[1] == "1" else int(found[1])


def check_java() -> None:
    found = java_version()
    if found is None or found < JAVA_NEEDED:
        have = "no Java was found" if found is None else f"Java {found} was found"
        raise UserError(
            "no-java", f"Spark needs Java {JAVA_NEEDED} or newer, and {have}",
            hint="Install a JDK (Debian: apt-get install openjdk-17-jre-headless) or point JAVA_HOME at one.",
        )  # fmt: skip


def started(master: str | None = None) -> SparkSession:
    """The active Spark session, or a new one on this machine."""
    active = SparkSession.getActiveSession()
    if active is not None and master is None:
        return active
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    quiet = resources.files("headgate.runtime").joinpath("log4j2.properties")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    session = (
        SparkSession.builder.master(master or f"local[{cores}]")
        .appName("headgate")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config(map=REMEMBERED)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", os.environ.get("HEADGATE_DRIVER_MEMORY", "2g"))
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={quiet} -XX:+UseParallelGC")
        .getOrCreate()
    )
    logging.getLogger("py4j").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=ResourceWarning, module="py4j")
    return session


def own(session: SparkSession, partitions: int | None = None) -> SparkSession:
    """A session with our settings and with the functions and data sources the user registered; the user's stays as it is."""
    mine = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())
    logging.getLogger("SQLQueryContextLogger").disabled = True  # we report what Spark refuses, once and without a stack trace
    width = str(partitions or session.sparkContext.defaultParallelism)
    for key, value in {
        "spark.sql.shuffle.partitions": width,
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.window.segmentTree.enabled": "true",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.sql.files.openCostInBytes": "65536",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Every range of a log is listed once and never again; Spark would keep each listing until they take 250 MB.
        "spark.sql.hive.filesourcePartitionFileCacheSize": "0",
    }.items():
        mine.conf.set(key, value)
    return mine
