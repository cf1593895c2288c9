"""One Spark session a worker; most tests need none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession
from tools.jars import add_jars
from tools.postgres_server import Server, binaries, running

settings.register_profile("headgate", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
settings.load_profile("headgate")


LONG = ("test_laws.py", "test_epochs.py", "test_docs.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first, so that no worker is left with it in the end."""
    items.sort(key=lambda item: item.path.name not in LONG)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from headgate.spark.session import started

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
