"""Streams from files, through Spark's own readers: any format that Spark reads by a name and options.

Files that have not been read yet become chunks of the stream's log in one Spark job, which also gives each row its verdict. Their
order of arrival is that of the files' names, and within a file that of its rows. Files count as read when their rows are in the
log: what fails before can be tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from headgate.catalog import Connector
from headgate.cql.readers import no_such_path
from headgate.delta.sql import literal, name
from headgate.errors import UserError
from headgate.heartbeat.clock import Clock
from headgate.runtime.session import own
from headgate.sources.inlet import Inlet
from headgate.sources.judging import staged, staging
from headgate.sources.payload import CORRUPT, ROW
from headgate.sources.reading import FileReader

FILES_A_JOB = 1_000
FEW_FILES = 8
"""Up to here their order is written into the statement; a join would take longer than all the rest of a small batch."""

PIECE_BYTES = 2**20
"""No file is cut into pieces smaller than this, so that where a piece begins tells its number apart from all others'."""

OF_A_FILE = ("source-failed", "no-such-column")
"""What one file can cause without the others."""


class FileSource:
    def __init__(self, session: SparkSession, inlet: Inlet, connector: Connector) -> None:
        self.session = own(session)
        self.session.conf.set("spark.sql.files.openCostInBytes", str(PIECE_BYTES))  # also the least size of a piece
        self.session.conf.set("spark.sql.files.maxPartitionBytes", "128MB")  # the user's could be less than that
        self.inlet = inlet
        self.connector = connector
        self.path = next((value for key, value in connector.options.items() if key.lower() == "path"), "")
        self.reader = FileReader(self.session, inlet, connector)
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
        taken, failed = 0, None
        for first in range(0, len(new), FILES_A_JOB):
            rows, error = self.ingest_each(new[first : first + FILES_A_JOB], clock)
            taken, failed = taken + rows, failed or error
        if failed is not None:
            raise failed
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
            return self.reader.listed(self.path)
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                raise no_such_path(self.path, self.inlet.stream.name) from None
            raise self.refused(error) from None
        except (PySparkException, Py4JError) as error:
            raise self.refused(error) from None

    def refused(self, error: Exception, files: Sequence[str] = ()) -> UserError:
        stream, said = self.inlet.stream.name, str(error).splitlines()[0]
        if len(files) == 1:
            return UserError(
                "source-failed", f'file "{unquote(files[0])}" of stream "{stream}" cannot be read', detail=said,
                hint="Mend it or take it away; the others are read.",
            )  # fmt: skip
        return UserError("source-failed", f'Spark cannot read the files of stream "{stream}"', detail=said)

    def ingest_each(self, files: list[str], clock: Clock) -> tuple[int, UserError | None]:
        """Read files together, or, if one of them cannot be read, each by itself: it holds up no other."""
        try:
            return self.ingest(files, clock), None
        except UserError as error:
            if error.code not in OF_A_FILE or len(files) == 1:
                return 0, error
        taken, failed = 0, None
        for file in files:
            rows, problem = self.ingest_each([file], clock)
            taken, failed = taken + rows, failed or problem
        return taken, failed

    def ingest(self, files: list[str], clock: Clock) -> int:
        ranks = {file: self.read_before + position for position, file in enumerate(files)}
        try:
            with staging(self.inlet) as folder, self.inlet.together():
                rows = self.in_order(self.reader.rows([unquote(file) for file in files]), ranks)
                taken = staged(self.session, self.inlet, rows, folder, clock).take(clock)
                read = {"read": files, "before": self.read_before + len(files)}
                self.inlet.journal.record(self.subject, read)
        except (PySparkException, Py4JError) as error:
            raise self.refused(error, files) from None
        return taken

    def unread(self) -> DataFrame:
        """All files that have not been read, with the order of arrival of their rows. They count as read at once."""
        files = sorted((file for file in self.listed() if file not in self.seen), key=unquote)
        ranks = {file: self.read_before + position for position, file in enumerate(files)}
        self.apply({"read": files, "before": self.read_before + len(files)})
        return self.in_order(self.reader.rows([unquote(file) for file in files]), ranks)

    def in_order(self, rows: DataFrame, ranks: dict[str, int]) -> DataFrame:
        """The rows with their order of arrival: which file, which piece of it, which row of the piece, in 20, 15 and 28 bits."""
        within = f"(SHIFTLEFT(CAST(_start DIV {PIECE_BYTES} AS BIGINT), 28) | (MONOTONICALLY_INCREASING_ID() & {2**28 - 1}L))"
        columns = [*(name(column) for column in self.inlet.stream.row_columns()), CORRUPT, ROW]
        located = rows.selectExpr(*columns, f"{within} AS _within", "_file")
        unlisted = "CAST(RAISE_ERROR(CONCAT('a file that was not listed: ', _file)) AS BIGINT)"
        if len(ranks) <= FEW_FILES:
            ranked, rank = located, " ".join(f"WHEN _file = {literal(file)} THEN {rank}L" for file, rank in ranks.items())
            rank = f"CASE {rank} ELSE {unlisted} END" if ranks else unlisted
        else:
            order = self.session.createDataFrame(list(ranks.items()), "_name STRING, _rank BIGINT")
            ranked = located.join(order.hint("broadcast"), located["_file"] == order["_name"], "left")
            rank = f"COALESCE(_rank, {unlisted})"
        return ranked.selectExpr(*columns, f"SHIFTLEFT({rank} & {2**20 - 1}L, 43) | _within AS _s")
