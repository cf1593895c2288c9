"""STREAM's sections 4.2, 4.3 and 5 (paper 002), for `headgate bench papers --only stream`: one module each.

A module has `PLOTS`, the names of its charts; `turns()`, how many steps its progress bar has; and `measure(spark,
seconds, done)`, which gives its findings. All findings stand in one section of the page, in the order of `PARTS`.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from headgate.bench.finding import Finding
from headgate.bench.papers.stream import errors, join_orders, scheduling, state

PARTS = (scheduling, join_orders, state, errors)

PLOTS: tuple[str, ...] = tuple(plot for part in PARTS for plot in part.PLOTS)
"""The charts of all parts."""


def turns() -> int:
    """How many steps the progress bar has."""
    return sum(part.turns() for part in PARTS)


def measure(spark: SparkSession, seconds: float, done: Callable[[], None]) -> Finding:
    """Runs all parts, one after the other."""
    whole = Finding("stream")
    for part in PARTS:
        found = part.measure(spark, seconds, done)
        whole.grids.extend(found.grids)
        whole.charts.update(found.charts)
        whole.remarks.extend(found.remarks)
    return whole
