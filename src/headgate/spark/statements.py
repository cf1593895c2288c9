"""The border to Spark: text becomes a statement, a condition or an expression here and nowhere else.

mypy lets nothing but `Sql` in; `tests/test_layers.py` looks that no other module hands texts to Spark.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from headgate.sql import Sql


def run(session: SparkSession, text: Sql, **frames: DataFrame) -> DataFrame:
    """What a statement gives; in its text, `{name}` stands for the frame of that name."""
    return session.sql(text, None, **frames)


def selected(frame: DataFrame, *columns: Sql) -> DataFrame:
    """A frame with these columns."""
    return frame.selectExpr(*columns)


def filtered(frame: DataFrame, condition: Sql) -> DataFrame:
    """The rows of a frame for which a condition holds."""
    return frame.where(condition)
