"""What goes out of a delivery, computed by Spark and in order of time: every change, or the last state of each key.

changes    _time, [_change,] columns    as they come
upserts    _time, _change, columns      the last change of each key: + it has this row now, - it has none any more

With 'reflects' = 'true' there is one more column, `_reflects`: the label of the delivery, as JSON. With 'partial' =
'true' there is `_partial`: whether the row belongs to an early answer.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by
from pyspark.sql.types import StructType

from headgate.catalog import sinks
from headgate.catalog.entries import Connector
from headgate.deliver.reflects import as_text
from headgate.deliver.sinks.sink import Delivery
from headgate.spark import staging
from headgate.spark.staging import address
from headgate.spark.statements import filtered, selected
from headgate.sql import ALL, Sql, listed, name, result_order

SMALL_ROWS = 50_000
"""Up to this many rows one task, or this process, does the work: more tasks would cost more than they save."""

PART_ROWS = 1_000_000
"""Larger deliveries are cut into parts of about this many rows, by time."""

REFLECTS = "_reflects"
"""The column with the label of a delivery."""

PARTIAL = "_partial"
"""The column that says whether a row belongs to an early answer."""

MICROSECONDS = Sql("yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")
"""Spark's writers of text leave out what is less than a millisecond unless told otherwise."""


def changes(session: SparkSession, delivery: Delivery) -> DataFrame:
    """The rows of a delivery, in any order."""
    return rows_of(session, delivery.files)


def rows_of(session: SparkSession, files: Sequence[Path]) -> DataFrame:
    """The rows of files that hold results, in any order."""
    return session.read.schema(_schema(session, files[0])).parquet(*map(address, files))


def _schema(session: SparkSession, file: Path) -> StructType:
    """The columns of a file as Spark noted them in it, without a job that looks for them."""
    noted = (pq.read_metadata(file).metadata or {}).get(b"org.apache.spark.sql.parquet.row.metadata")
    return StructType.fromJson(json.loads(noted)) if noted else session.read.parquet(address(file)).schema


def shaped(session: SparkSession, delivery: Delivery, connector: Connector) -> DataFrame:
    """The rows that go out by 'deliver' = 'changes' or 'upserts', in any order."""
    frame = changes(session, delivery)
    frame = upserts(frame, sinks.key(connector)) if sinks.mode(connector) == "upserts" else frame
    return labelled(frame, delivery, connector)


def labelled(frame: DataFrame, delivery: Delivery, connector: Connector) -> DataFrame:
    """The rows with the label of their delivery, and whether they are early, if the sink is to have it."""
    if sinks.reflects(connector):
        frame = frame.withColumn(REFLECTS, F.lit(as_text(delivery.reflects)).cast("string"))
    return frame.withColumn(PARTIAL, F.lit(delivery.partial)) if sinks.partial(connector) else frame


def upserts(frame: DataFrame, key: Sequence[str]) -> DataFrame:
    """The last change of each key.

    A key that tells rows apart has one row or none, so its changes alternate. Two changes of one kind in a row show
    that the key does not tell rows apart, and raise an error.
    """
    columns = listed(key)
    window = f"OVER (PARTITION BY {columns} ORDER BY _time, _change DESC)"
    wrong = f"'the key does not tell the rows of the relation apart: more than one has ' || TO_JSON(STRUCT({columns}))"
    last = f"IF(_before = _change, CAST(RAISE_ERROR({wrong}) AS BOOLEAN), _next IS NULL)"
    beside = selected(frame, ALL, f"LAG(_change) {window} AS _before", f"LEAD(_change) {window} AS _next")
    return filtered(beside, last).drop("_before", "_next")


def known_keys(frame: DataFrame, key: Sequence[str]) -> DataFrame:
    """The rows, checked while they are read: a null in a column of the key raises an error."""
    missing = " OR ".join(f"{name(column)} IS NULL" for column in key)
    return filtered(frame, f"IF({missing}, CAST(RAISE_ERROR('a column of the key is null') AS BOOLEAN), TRUE)")


def netted(before: DataFrame | None, frame: DataFrame) -> DataFrame:
    """How often each row is in the relation now, as `_n`; without `before`, how many of it came (+) or went (-)."""
    columns = row_columns(frame)
    counted = selected(frame, *map(name, columns), Sql("IF(_change = '+', 1L, -1L) AS _n"))
    if before is not None:
        counted = selected(before, *map(name, columns), Sql("1L AS _n")).unionAll(counted)
    total = counted.groupBy(*map(name, columns)).agg(F.sum("_n").alias("_n"))
    return filtered(total, Sql("_n <> 0"))


def repeated(frame: DataFrame) -> DataFrame:
    """Each row as often as `_n` says, whatever its sign, numbered by `_copy` from 1."""
    return selected(frame, ALL, Sql("EXPLODE(SEQUENCE(1L, ABS(_n))) AS _copy"))


def row_columns(frame: DataFrame) -> list[str]:
    """The columns of the query itself, without `_time` and `_change`."""
    return [column for column in frame.columns if column not in ("_time", "_change")]


def ordered(frame: DataFrame, rows: int) -> DataFrame:
    """The rows in order of time within each part and from part to part, deletions before insertions."""
    parts = -(-rows // PART_ROWS)
    cut = frame.coalesce(1) if parts <= 1 else frame.repartitionByRange(parts, "_time")
    return cut.sortWithinPartitions(*by_time(frame))


def by_time(frame: DataFrame) -> list[Column]:
    """The columns by which results are ordered."""
    return [F.desc(column) if way == "descending" else F.asc(column) for column, way in result_order(frame.columns)]


def write_parts(
    session: SparkSession,
    delivery: Delivery,
    connector: Connector,
    target: Path,
    file_format: str,
    options: Mapping[str, str] | None = None,
) -> tuple[list[Path], int]:
    """Write what goes out of a delivery into a new folder; its files in order of time, and how many rows they hold."""
    shutil.rmtree(target, ignore_errors=True)
    if not delivery.rows:
        return [], 0
    plain = sinks.mode(connector) == "changes"
    if file_format == "parquet" and plain and not options and delivery.rows <= SMALL_ROWS:
        return _write_few(delivery, connector, target), delivery.rows
    # in one task a sort needs no shuffle, and a window none that moves anything
    session.conf.set("spark.sql.shuffle.partitions", str(-(-delivery.rows // PART_ROWS)))
    frame = ordered(shaped(session, delivery, connector), delivery.rows)
    return write_files(frame, target, file_format, options)


def write_files(
    frame: DataFrame, target: Path, file_format: str, options: Mapping[str, str] | None = None
) -> tuple[list[Path], int]:
    """Write a frame into a folder, partition by partition; its files, and how many rows they hold."""
    exact = {"timestampFormat": MICROSECONDS} if file_format in ("json", "csv") else {}
    return staging.write_files(frame, target, file_format, {**exact, **(options or {})})


def _write_few(delivery: Delivery, connector: Connector, target: Path) -> list[Path]:
    """Sort and write a small delivery in this process: a Spark job would take ten times as long."""
    table = pa.concat_tables([pq.read_table(file) for file in delivery.files], promote_options="default")
    if sinks.reflects(connector):
        label = pa.scalar(as_text(delivery.reflects), pa.string())
        table = table.append_column(REFLECTS, pa.repeat(label, table.num_rows))
    if sinks.partial(connector):
        table = table.append_column(PARTIAL, pa.repeat(pa.scalar(delivery.partial), table.num_rows))
    target.mkdir(parents=True)
    path = target / "part-00000.parquet"
    pq.write_table(table.sort_by(result_order(table.column_names)), path)
    return [path]
