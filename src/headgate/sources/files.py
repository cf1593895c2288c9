"""Streams from files, through Spark's own readers: any format that Spark reads by a name and options.

Files that have not been read yet become chunks of the stream's log in one Spark job, which also gives each row its verdict. Their
order of arrival is that of the files' names, and within a file that of its rows. Files count as read when their rows are in the
log: what fails before can be tried again.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from headgate.catalog import Connector
from headgate.delta.sql import name
from headgate.errors import UserError
from headgate.heartbeat.clock import Clock
from headgate.runtime.session import own
from headgate.sources.inlet import Inlet
from headgate.sources.judging import staged, staging

FILES = ("json", "csv", "parquet", "orc", "text", "avro", "xml")
CORRUPT = "_raw"
SEES_CORRUPT = ("json", "csv")
FILES_A_JOB = 1_000
PIECE_BYTES = 2**20
"""No file is cut into pieces smaller than this, so that where a piece begins tells its number apart from all others'."""

LOCAL = "^file:/+"
"""Spark writes local files with one slash in one place and with three in another."""


class FileSource:
    def __init__(self, session: SparkSession, inlet: Inlet, connector: Connector) -> None:
        self.session = own(session)
        self.session.conf.set("spark.sql.files.openCostInBytes", str(PIECE_BYTES))  # also the least size of a piece
        self.session.conf.set("spark.sql.files.maxPartitionBytes", "128MB")  # the user's could be less than that
        self.inlet = inlet
        self.connector = connector
        self.path = connector.options.get("path", "")
        self.seen: set[str] = set()
        """The files that have been read and are still there."""
        self.read_before = 0
        """How many files have been read, all in all."""
        self.looked_us: int | None = None
        """When the folder was last looked at, if all that was there has been read."""
        self.subject = f"files {inlet.folder}"
        inlet.journal.introduce(self.subject, self.apply)
        if not self.path:
            raise UserError(
                "no-path", f'stream "{inlet.stream.name}" is read from {connector.format} files but has no path',
                hint="OPTIONS ('path' = 'folder')",
            )  # fmt: skip

    def apply(self, what: dict[str, Any]) -> None:
        """Files that were read, and files that have been taken away: one of the same name would be a new one."""
        self.seen = (self.seen | set(what.get("read", ()))) - set(what.get("gone", ()))
        self.read_before = what["before"]

    def state(self) -> dict[str, Any]:
        return {"read": sorted(self.seen), "before": self.read_before}

    def poll(self, clock: Clock) -> int:
        """Read the files that are new; returns how many tuples went to the log."""
        began_us, self.looked_us = clock.now_us(), None
        there = self.listed()
        gone = sorted(self.seen.difference(there))
        if gone and there:  # a folder that is empty all at once is more likely not mounted
            self.inlet.journal.record(self.subject, {"gone": gone, "before": self.read_before})
        new = sorted((file for file in there if file not in self.seen), key=unquote)
        taken = 0
        while new:
            batch, new = new[:FILES_A_JOB], new[FILES_A_JOB:]
            taken += self.ingest(batch, clock)
        self.looked_us = began_us
        return taken

    def progress(self, clock: Clock) -> int | None:
        return self.looked_us

    def drain(self, clock: Clock) -> int:
        return self.poll(clock)

    starting = False

    def reshape(self) -> None:
        """The columns are asked for at each poll."""

    def stop(self) -> None:
        """Nothing is held between polls."""

    def listed(self) -> list[str]:
        try:
            return [re.sub(LOCAL, "file:/", file) for file in self.read([self.path]).inputFiles()]
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

    def ingest(self, files: list[str], clock: Clock) -> int:
        ranks = {file: self.read_before + position for position, file in enumerate(files)}
        try:
            with staging(self.inlet) as folder, self.inlet.together():
                rows = self.in_order(self.read([pattern(file) for file in files]), ranks)
                taken = staged(self.session, self.inlet, rows, folder, clock).take(clock)
                read = {"read": files, "before": self.read_before + len(files)}
                self.inlet.journal.record(self.subject, read)
        except PySparkException as error:
            raise self.refused(error) from None
        return taken

    def in_order(self, rows: DataFrame, ranks: dict[str, int]) -> DataFrame:
        """The rows with their order of arrival: which file, which piece of it, which row of the piece, in 20, 15 and 28 bits."""
        raw = CORRUPT if self.connector.format in SEES_CORRUPT else "CAST(NULL AS STRING)"
        piece = f"CAST(_metadata.file_block_start DIV {PIECE_BYTES} AS BIGINT)"
        within = f"(SHIFTLEFT({piece}, 28) | (MONOTONICALLY_INCREASING_ID() & {2**28 - 1}L))"
        columns = [name(column) for column in self.inlet.stream.row_columns()]
        located = rows.selectExpr(
            *columns, f"{raw} AS _raw", f"{within} AS _within",
            f"REGEXP_REPLACE(_metadata.file_path, '{LOCAL}', 'file:/') AS _file",
        )  # fmt: skip
        order = self.session.createDataFrame(list(ranks.items()), "_name STRING, _rank BIGINT")
        ranked = located.join(order.hint("broadcast"), located["_file"] == order["_name"], "left")
        rank = "COALESCE(_rank, CAST(RAISE_ERROR(CONCAT('a file that was not listed: ', _file)) AS BIGINT))"
        return ranked.selectExpr(*columns, "_raw", f"SHIFTLEFT({rank} & {2**20 - 1}L, 43) | _within AS _s")


def pattern(file: str) -> str:
    """A file as Spark lists it, in the way in which Spark reads this one and no other."""
    return re.sub(r"([{}\[\]*?\\])", r"\\\1", unquote(file))
