"""Hands each delivery to a Python function, `function(delivery, batches)`: its rows are Arrow record batches in order
of time.

    def alert(delivery, batches):
        for batch in batches:
            print(delivery.number, batch.to_pylist())

If it raises, it is called again with the same delivery.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from headgate.catalog import sinks
from headgate.catalog.entries import Connector
from headgate.deliver.sinks import shape
from headgate.deliver.sinks.sink import Delivery
from headgate.errors import UserError
from headgate.spark.failures import called, sentence
from headgate.spark.session import let_go, own_session


class CallbackSink:
    """Calls a Python function with each delivery and its rows as Arrow record batches."""

    guarantee = sinks.SINKS["callback"].guarantee
    wants_empty = True

    def __init__(self, query: str, connector: Connector, session: SparkSession, directory: Path) -> None:
        self.connector = connector
        self.session = own_session(session)
        self.staging = directory / ".callback"
        self.function = named(connector.options["function"])

    def deliver(self, delivery: Delivery) -> None:
        """Call the function; whatever it raises is a failure of this sink."""
        files, _ = shape.write_parts(self.session, delivery, self.connector, self.staging, "parquet")
        name = self.connector.options["function"]
        called(self.function, delivery, _batches(files), code="sink-failed", message=f'function "{name}" has failed')

    def delivered(self) -> int | None:
        """Unknown: the function keeps no account."""
        return None

    def close(self) -> None:
        """Release Spark's session."""
        let_go(self.session)


def named(function: str) -> Callable[[Delivery, Iterator[pa.RecordBatch]], Any]:
    """The function that "module:name" names; an error if it cannot be imported or called."""
    module, _, name = function.partition(":")
    try:
        found = reduce(getattr, name.split("."), importlib.import_module(module))
    except Exception as error:  # a module may raise anything while it is imported
        raise UserError(
            "no-such-function",
            f'function "{function}" cannot be found',
            detail=sentence(error),
            hint="Its module must be one that Python can import from where the engine runs.",
        ) from error
    if not callable(found):
        raise UserError(
            "no-such-function", f'"{function}" is not a function', detail=f"It is of type {type(found).__name__}."
        )
    return found


def _batches(files: list[Path]) -> Iterator[pa.RecordBatch]:
    for file in files:
        yield from pq.ParquetFile(file).iter_batches()
