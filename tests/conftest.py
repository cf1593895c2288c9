"""One Spark session for the whole run; most tests need none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

settings.register_profile("headgate", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
settings.load_profile("headgate")

CASES = Path(__file__).parent / "cases"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `-n 2` one worker has Spark and the other the rest: two JVMs on two cores would only be in each other's way."""
    for item in items:
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from headgate.runtime.session import started

    session = started("local[2]")
    yield session
    session.stop()
