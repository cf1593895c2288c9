"""Connectors for the one Spark session of the tests."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.errors import UserError
from headgate.spark import connectors


def add_jars(spark: SparkSession, connector: str) -> None:
    """Give the session a connector: fetched if need be, laid where the class loader of driver and tasks finds it."""
    try:
        files = connectors.jars([connector])
    except UserError as error:
        pytest.skip(f"no connector for {connector}: {error.message}. {error.detail}")
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for file in files:
        loader.addURL(jvm.java.io.File(str(file)).toURI().toURL())
