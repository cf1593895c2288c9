"""Streams from files, through Spark's own readers: any format that Spark reads by a name and options.

Files that have not been read yet become chunks of the stream's log in one Spark job. Their order of arrival is that of the
files' names, and within a file that of its rows. Rows that cannot be read, have no timestamp or are late go to the dead letters.
"""

from __future__ import annotations

import shutil

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast

from headgate.catalog import Connector, Relation, TimeDomain
from headgate.delta.sql import name
from headgate.errors import UserError
from headgate.runtime.session import own
from headgate.sources.inlet import SIGNS, Inlet

FILES = ("json", "csv", "parquet", "orc", "text", "avro", "xml")
CORRUPT = "_raw"
SEES_CORRUPT = ("json", "csv")
FILES_A_JOB = 1_000


class FileSource:
    def __init__(self, session: SparkSession, inlet: Inlet, connector: Connector) -> None:
        self.session = own(session)
        self.inlet = inlet
        self.connector = connector
        self.path = connector.options.get("path", "")
        self.seen: dict[str, int] = {}
        if not self.path:
            raise UserError(
                "no-path", f'stream "{inlet.stream.name}" is read from {connector.format} files but has no path',
                hint="OPTIONS ('path' = 'folder')",
            )  # fmt: skip

    def poll(self, now_us: int) -> int:
        """Read the files that are new; returns how many tuples went to the log."""
        new = sorted(file for file in self.listed() if file not in self.seen)
        taken = 0
        while new:
            batch, new = new[:FILES_A_JOB], new[FILES_A_JOB:]
            taken += self.ingest(batch, now_us)
        return taken

    def listed(self) -> list[str]:
        try:
            return list(self.read([self.path]).inputFiles())
        except AnalysisException as error:
            stream = self.inlet.stream.name
            if error.getCondition() == "PATH_NOT_FOUND":
                raise UserError("no-such-file", f'path "{self.path}" of stream "{stream}" does not exist') from None
            raise self.refused(error) from None
        except PySparkException as error:
            raise self.refused(error) from None

    def refused(self, error: PySparkException) -> UserError:
        said = str(error).splitlines()[0]
        return UserError("source-failed", f'Spark cannot read the files of stream "{self.inlet.stream.name}"', detail=said)

    def read(self, paths: list[str]) -> DataFrame:
        columns = ", ".join(f"{name(column.name)} {column.type}" for column in self.inlet.stream.columns)
        if self.connector.format in SEES_CORRUPT:
            columns += f", {CORRUPT} STRING"
        options = {key: value for key, value in self.connector.options.items() if key != "path"}
        reader = self.session.read.format(self.connector.format).options(**options).schema(columns)
        if self.connector.format in SEES_CORRUPT:
            reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
        return reader.load(paths)

    def ingest(self, files: list[str], now_us: int) -> int:
        ranks = {file: len(self.seen) + position for position, file in enumerate(files)}
        staging = self.inlet.log.directory / ".arriving"
        try:
            self.sorted_out(self.read(files), ranks).write.mode("overwrite").partitionBy("_dead").parquet(str(staging))
        except PySparkException as error:
            raise self.refused(error) from None
        self.seen |= ranks
        chunks = self.inlet.log.adopt(sorted(staging.glob("_dead=false/*.parquet")))
        self.inlet.bury(sorted(staging.glob("_dead=true/*.parquet")))
        shutil.rmtree(staging)
        return self.inlet.taken(chunks, now_us)

    def sorted_out(self, rows: DataFrame, ranks: dict[str, int]) -> DataFrame:
        """The rows as the log keeps them, with the reason why one is dead, if it is."""
        stream = self.inlet.stream
        raw = CORRUPT if self.connector.format in SEES_CORRUPT else "CAST(NULL AS STRING)"
        given = name(stream.timestamp) if stream.timestamp is not None else "0"  # a fixed relation: the instant does not matter
        instant = (
            f"UNIX_MICROS(CAST({given} AS TIMESTAMP))" if stream.domain is TimeDomain.TIMESTAMP else f"CAST({given} AS BIGINT)"
        )
        origin = (stream.domain or TimeDomain.INTEGER).origin
        limit = self.inlet.heartbeats.limit(stream.name)
        late = f"_t <= {limit}" if limit is not None else "FALSE"
        # Which file, which piece of it, which row of the piece: the order of arrival in 20, 10 and 33 bits.
        piece_bytes = str(self.session.conf.get("spark.sql.files.maxPartitionBytes")).rstrip("b")
        piece = f"CAST(_metadata.file_block_start DIV {piece_bytes} AS BIGINT)"
        within = f"(SHIFTLEFT({piece}, 33) | (MONOTONICALLY_INCREASING_ID() & 8589934591L))"
        columns = [name(column) for column in stream.row_columns()]
        sign = "CAST(1 AS BIGINT)"
        if isinstance(stream, Relation) and stream.change is not None:
            known = ", ".join(f"'{word}', {value}L" for word, value in SIGNS.items())
            sign = f"ELEMENT_AT(MAP({known}), LOWER(CAST({name(stream.change)} AS STRING)))"
        located = rows.selectExpr(
            *columns, f"{sign} AS _n", f"{raw} AS _raw", f"{instant} AS _t", f"{within} AS _within",
            "_metadata.file_path AS _file",
        )  # fmt: skip
        order = self.session.createDataFrame(list(ranks.items()), "_name STRING, _rank BIGINT")
        ranked = located.join(broadcast(order), located["_file"] == order["_name"], "left")
        judged = ranked.selectExpr(
            *columns, "_n", "_t", "SHIFTLEFT(COALESCE(_rank, 0L), 43) | _within AS _s", "_raw",
            f"CASE WHEN _raw IS NOT NULL OR _n IS NULL THEN 'malformed' WHEN _t IS NULL THEN 'no-timestamp' "
            f"WHEN _t < {origin} THEN 'before-origin' WHEN {late} THEN 'late' END AS _reason",
        )  # fmt: skip
        kept = [*columns, *(["_n"] if isinstance(stream, Relation) else []), "_t", "_s", "_reason"]
        return judged.selectExpr(
            *kept, f"CASE WHEN _reason = 'late' THEN {limit or 0} - _t END AS _behind",
            "_raw", "_reason IS NOT NULL AS _dead",
        )  # fmt: skip
