"""One Spark session a worker; most tests need none."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession
from tools.jars import add_jars
from tools.postgres_server import Server, binaries, running

from headgate.spark.session import SHORT_LIVED, started

settings.register_profile("headgate", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
settings.load_profile("headgate")


FOR_CHILDREN = " ".join(SHORT_LIVED)
"""Java's options for the JVMs of commands that tests start as processes: they end within seconds.

This hides nothing: Java's second compiler makes code faster and changes no result, and `headgate demo` and
`headgate run --once` over small files have these options anyway. The session of a worker, which lives for minutes, is
as users have it.
"""

SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable with which Spark starts a JVM. Unlike those of Java itself, nothing is printed because of it."""

os.environ.setdefault(SUBMIT_OPTIONS, FOR_CHILDREN)


LONG = ("test_laws.py", "test_epochs.py", "test_docs.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first, so that no worker is left with it in the end."""
    items.sort(key=lambda item: item.path.name not in LONG)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        if os.environ.get(SUBMIT_OPTIONS) == FOR_CHILDREN:
            patch.delenv(SUBMIT_OPTIONS)
        session = started("local[2]")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres(spark: SparkSession) -> Iterator[Server]:
    """A database server, and Spark's driver for it."""
    home = binaries()
    if home is None:
        pytest.skip("no PostgreSQL server on this machine: initdb, pg_ctl and psql were not found")
    add_jars(spark, "jdbc")
    with running(home) as server:
        yield server
