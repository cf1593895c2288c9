"""A session for engines that run no query on Spark: it knows the types of columns, and nothing else."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, ClassVar

from pyspark.sql import types as kinds

KINDS: dict[str, kinds.DataType] = {
    "STRING": kinds.StringType(),
    "INT": kinds.IntegerType(),
    "BIGINT": kinds.LongType(),
    "DOUBLE": kinds.DoubleType(),
    "BOOLEAN": kinds.BooleanType(),
    "TIMESTAMP": kinds.TimestampType(),
    "DATE": kinds.DateType(),
    "BINARY": kinds.BinaryType(),
    "DECIMAL(10, 2)": kinds.DecimalType(10, 2),
    "ARRAY<DOUBLE>": kinds.ArrayType(kinds.DoubleType()),
}


class NoSpark:
    """Knows the types of columns, and nothing else."""

    conf: ClassVar = {"spark.sql.session.timeZone": "UTC"}

    def createDataFrame(self, rows: list[Any], columns: str) -> Any:  # noqa: N802
        named = re.findall(r"`?(\w+)`? ([A-Z]+(?:\(.*?\)|<.*?>)?)(?:, |$)", columns)
        return SimpleNamespace(schema=kinds.StructType([kinds.StructField(name, KINDS[kind]) for name, kind in named]))
