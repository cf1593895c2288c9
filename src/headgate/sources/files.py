"""Streams from files, through Spark's own readers: any format that Spark reads by a name and options.

Files that have not been read yet become chunks of the stream's log in one Spark job, which also gives each row its
verdict. Parquet files that the log can hold as they are get there by a link, and need no job (see `as_they_are`), nor
do a few small files (see `small_files`). The order of arrival is that of the files' names, and within a file that of
its rows. Files count as read when their rows are in the log, so a read that fails before that can be tried again.

If a job fails by the fault of a file, halves of the files are tried, down to the one whose fault it is. A stream sets a
file that cannot be read aside: it is named, kept as a dead letter, and tried again when it has changed and after a
restart. A relation without some of its rows would be wrong, so it waits until the file is mended or taken away. A file
without a declared column stays unread and is an error that names it; the others are read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headgate.catalog.entries import Connector, Relation
from headgate.catalog.readers import FILES_AT_ONCE
from headgate.cql.readers import no_such_path
from headgate.errors import UserError
from headgate.heartbeat.clock import Clock
from headgate.log.chunk import Chunk
from headgate.packets.records import NotACapture
from headgate.paths import for_spark
from headgate.sources.as_they_are import AsTheyAre
from headgate.sources.captures import Captures
from headgate.sources.folder import Folder
from headgate.sources.inlet import Inlet
from headgate.sources.judging import arriving_folder, judged
from headgate.sources.low_part import Reduced
from headgate.sources.payload import CORRUPT, ROW
from headgate.sources.reading import LOCAL, FileReader, pattern
from headgate.sources.small_files import SmallFiles
from headgate.spark.back_off import BackOff
from headgate.spark.failures import condition, failure, reason_of, sentence
from headgate.spark.session import own_session
from headgate.spark.statements import selected
from headgate.sql import Sql, literal, name

FEW_FILES = 8
"""Up to here their order is written into the statement; a join would take longer than all the rest of a small batch."""

PIECE_BYTES = 2**20
"""No file is cut into pieces smaller than this, so that where a piece begins tells its number apart from all
others'.
"""

HURRIES = 3
"""After so many reads in a row that had to be done again, files of JSON are all read as text."""

RANK_SHIFT, LAST_RANK = 43, 2**20 - 1
"""Where the number of the file stands in the order of arrival of a row, and how large it becomes."""

NO_SCHEMA = (
    "UNABLE_TO_INFER_SCHEMA",
    "PARQUET_TYPE_NOT_SUPPORTED",
    "PARQUET_TYPE_ILLEGAL",
    "PARQUET_TYPE_NOT_RECOGNIZED",
)
"""How Spark says that a file holds nothing that it could read."""


class FileSource:
    """Reads the files of a path into the log of a stream or relation, each once, and remembers which it has read."""

    def __init__(self, session: SparkSession, inlet: Inlet, connector: Connector) -> None:
        self.session = own_session(session)
        self.session.conf.set("spark.sql.files.openCostInBytes", str(PIECE_BYTES))  # also the least size of a piece
        self.session.conf.set("spark.sql.files.maxPartitionBytes", "128MB")  # the user's could be less than that
        self.inlet = inlet
        self.connector = connector
        self.path = next((value for key, value in connector.options.items() if key.lower() == "path"), "")
        self.opened = for_spark(self.path)
        """The path as Spark is to have it."""
        self.reader = FileReader(self.session, inlet, connector)
        self.as_they_are = AsTheyAre(inlet, connector.format, connector.options)
        self.folder = Folder(self.opened, connector.options)
        self.captures = Captures(self.session, inlet, connector)
        self.small = SmallFiles(inlet, connector, self.as_they_are)
        self.hurried_in_vain = 0
        """How many reads in a row found that files of JSON are not as plain as they look."""
        self.seen: set[str] = set()
        """The files that have been read and are still there."""
        self.read_before = 0
        """How many files have been read, all in all."""
        self.aside: dict[str, str] = {}
        """Files that cannot be read, each with its size and date."""
        self.unfit: list[UserError] = []
        """Why files of this poll stay unread: a declared column is not there."""
        self.notes: list[UserError] = []
        self._look_again = BackOff()
        self._begun = False
        self.looked_us: int | None = None
        """When the folder was last looked at, if all that was there has been read."""
        self.subject = f"files {inlet.folder}"
        inlet.journal.introduce(self.subject, self.apply)
        if not self.path:
            raise UserError(
                "no-path",
                f'stream "{inlet.stream.name}" is read from {connector.format} files but has no path',
                hint="OPTIONS ('path' = 'folder')",
            )

    def apply(self, what: dict[str, Any]) -> None:
        """Apply a fact of the journal: files that were read, set aside or taken away. A new file of an old name is read
        again.
        """
        read, gone = set(what.get("read", ())), set(what.get("gone", ()))
        self.seen = (self.seen | read) - gone
        known = {**self.aside, **what.get("aside", {})}
        self.aside = {file: stamp for file, stamp in known.items() if file not in read | gone}
        self.read_before = what["before"]

    def state(self) -> dict[str, Any]:
        """All that `apply` has learnt, as one fact."""
        return {"read": sorted(self.seen), "before": self.read_before, "aside": dict(self.aside)}

    def poll(self, clock: Clock) -> int:
        """Read the files that are new; how many tuples went to the log."""
        began_us, self.looked_us = clock.now_us(), None
        there = self.listed()
        gone = sorted((self.seen | self.aside.keys()).difference(there))
        if gone and there:  # a folder that is empty all at once is more likely not mounted
            self.inlet.journal.record(self.subject, {"gone": gone, "before": self.read_before})
        left = self.aside.keys() - self.changed(clock)
        new = sorted((file for file in there if file not in self.seen and file not in left), key=unquote)
        taken, self.unfit = 0, []
        for first in range(0, len(new), FILES_AT_ONCE):
            taken += self.ingest(new[first : first + FILES_AT_ONCE], clock)
        if self.unfit:
            raise self.unfit[0]
        self.looked_us = began_us
        return taken

    def progress(self, clock: Clock) -> int | None:
        """When the folder was last looked at, if all that was there has been read; None otherwise."""
        return self.looked_us

    def stirred(self) -> bool:
        """True if files have come to the folder since it was last looked at, as far as that can be seen at a glance."""
        return self.folder.changed()

    def drain(self, clock: Clock) -> int:
        """Read all files that are there: a poll does so."""
        return self.poll(clock)

    starting = False

    def reshape(self) -> None:
        """Nothing to do: the columns are asked for at each poll."""

    def stop(self) -> None:
        """Nothing to do: nothing is held between polls."""

    def check(self) -> None:
        """Refuse a path that is a wrong pattern. One that leads nowhere is accepted: files may come."""
        if not re.search(r"[{\[]", self.path):
            return
        try:
            self.listed()
        except UserError as error:
            if error.code != "no-such-file":
                raise

    def listed(self) -> list[str]:
        """The files that are there now, as Spark names them."""
        plain = self.folder.files()
        if plain is not None and self.folder.trusted:
            return plain
        try:
            found = self.reader.listed(self.opened)
            self.folder.trusted = plain is not None and bool(found) and set(found) == set(plain)
            return found
        except Exception as error:
            stream = self.inlet.stream.name
            if condition(error) == "PATH_NOT_FOUND":
                raise no_such_path(self.path, stream) from None
            if "Illegal file pattern" in reason_of(error):
                raise UserError(
                    "bad-path",
                    f'path "{self.path}" of stream "{stream}" is no pattern of files',
                    detail=sentence(error),
                    hint="In a path, { } [ ] * ? are a pattern; a backslash before one takes it as it is.",
                ) from None
            raise self.refused(error) from error

    def refused(self, error: Exception) -> UserError:
        """An error of Spark as one of ours."""
        return failure(error, "source-failed", f'Spark cannot read the files of stream "{self.inlet.stream.name}"')

    def ingest(self, files: list[str], clock: Clock) -> int:
        """Read files in one job, or in several if one of them cannot be read; how many of their rows are tuples."""
        shape = self.inlet.rows
        try:
            return self.take(files, clock)
        except Reduced:
            return self.take(files, clock, reduced=False)
        except Exception as error:
            if self.inlet.rows is not shape:  # the stream got another column while they were read
                return self.ingest(files, clock)
            if not of_a_file(error):
                raise self.refused(error) from error
            if len(files) > 1:
                half = len(files) // 2
                return self.ingest(files[:half], clock) + self.ingest(files[half:], clock)
            if isinstance(error, UserError):
                self.unfit.append(error)
            else:
                self.set_aside(files[0], error, clock)
            return 0

    def take(self, files: list[str], clock: Clock, reduced: bool = True) -> int:
        """Read files in one job and put their rows into the log; how many are tuples. Unless `reduced`, the log keeps
        all of the tuples.
        """
        began_us = clock.now_us()
        ranks = {file: self.read_before + position for position, file in enumerate(files)}
        plain = self.reader.plain(map(unquote, files)) if self.hurried_in_vain < HURRIES else set()
        before = len(plain)

        def others(whole: Mapping[str, Chunk]) -> DataFrame | None:
            left = {file: rank for file, rank in ranks.items() if file not in whole}
            return self.in_order(self.reader.rows([unquote(file) for file in left], plain), left) if left else None

        def look_closer(unclear: Collection[int]) -> bool:
            again = {place >> RANK_SHIFT for place in unclear}
            plain.difference_update(unquote(file) for file, rank in ranks.items() if rank & LAST_RANK in again)
            return bool(again)

        places = {file: (rank & LAST_RANK) << RANK_SHIFT for file, rank in ranks.items()}

        def at_hand(whole: Mapping[str, Chunk]) -> list[pa.Table] | None:
            return self.small.rows({file: place for file, place in places.items() if file not in whole})

        with arriving_folder(self.inlet) as folder:
            staged = self.as_they_are.staged(places, folder / "whole")
            batch = judged(
                self.session,
                self.inlet,
                others,
                folder,
                clock,
                staged,
                look_closer,
                at_hand,
                lambda limits, low, staging: self.captures.written(places, limits, low, staging),
                reduced,
            )
            with self.inlet.together():
                self.inlet.began_us = began_us
                taken = batch.take(clock)
                self.inlet.journal.record(self.subject, {"read": files, "before": self.read_before + len(files)})
        if before:
            self.hurried_in_vain = 0 if len(plain) == before else self.hurried_in_vain + 1
        return taken

    def unread(self) -> DataFrame:
        """The rows of all unread files, with their order of arrival. The files count as read at once."""
        files = sorted((file for file in self.listed() if file not in self.seen), key=unquote)
        ranks = {file: self.read_before + position for position, file in enumerate(files)}
        self.apply({"read": files, "before": self.read_before + len(files)})
        return self.in_order(self.reader.rows([unquote(file) for file in files]), ranks)

    # files that cannot be read

    def set_aside(self, file: str, error: Exception, clock: Clock) -> None:
        """Go on without a file until it has changed: name it and keep it as a dead letter. For a relation: an error."""
        named, stream = unquote(file).removeprefix("file:"), self.inlet.stream
        if isinstance(stream, Relation):
            raise UserError(
                "source-failed",
                f'file "{named}" of relation "{stream.name}" cannot be read',
                detail=sentence(error),
                hint="Mend it or take it away: the relation would be wrong without its rows.",
            )
        with self.inlet.together():
            if file not in self.aside:
                self.inlet.unreadable(f"{named}: {reason_of(error)}", clock)
            what = {"aside": {file: self.stamps([file]).get(file, "")}, "before": self.read_before}
            self.inlet.journal.record(self.subject, what)
        note = UserError(
            "file-set-aside",
            f'file "{named}" of stream "{stream.name}" cannot be read and is set aside',
            detail=sentence(error),
            hint="It is read as soon as it has changed.",
        )
        self.notes.append(note)

    def changed(self, clock: Clock) -> set[str]:
        """The files that were set aside and have another size or date now. It is looked from time to time.

        After a restart all of them are tried once more: the storage may have been what was damaged.
        """
        if not self._begun:
            self._begun = True
            return set(self.aside)
        if not self.aside or not self._look_again.ready(clock.now_us()):
            return set()
        self._look_again.failed(clock.now_us())
        now = self.stamps(list(self.aside))
        found = {file for file, stamp in self.aside.items() if now.get(file, stamp) != stamp}
        if found:
            self._look_again.succeeded()
        return found

    def stamps(self, files: list[str]) -> dict[str, str]:
        """The sizes and dates of files, on whatever storage they are, without reading them."""
        try:
            found = self.session.read.format("binaryFile").load([pattern(unquote(file)) for file in files])
            rows = selected(found, Sql("path"), Sql("CONCAT(length, ' ', modificationTime)")).collect()
        except Exception:  # one is being taken away: the next look will tell
            return {}
        return {re.sub(LOCAL, "file:/", path): stamp for path, stamp in rows}

    def in_order(self, rows: DataFrame, ranks: dict[str, int]) -> DataFrame:
        """The rows with their order of arrival in `_s`: 20 bits for the file, 15 for its piece, 28 for the row in the
        piece.
        """
        row = Sql(f"(MONOTONICALLY_INCREASING_ID() & {(1 << 28) - 1}L)")
        within = f"(SHIFTLEFT(CAST(_start DIV {PIECE_BYTES} AS BIGINT), 28) | {row})"
        columns = [name(column) for column in (*self.inlet.stream.row_columns(), CORRUPT, ROW)]
        located = selected(rows, *columns, f"{within} AS _within", Sql("_file"))
        unlisted = Sql("CAST(RAISE_ERROR(CONCAT('a file that was not listed: ', _file)) AS BIGINT)")
        spelled = {name: rank for file, rank in ranks.items() for name in spellings(file)}
        if len(ranks) <= FEW_FILES:
            cases = " ".join(f"WHEN _file = {literal(file)} THEN {rank}L" for file, rank in spelled.items())
            ranked, rank = located, f"CASE {cases} ELSE {unlisted} END" if ranks else unlisted
        else:
            order = self.session.createDataFrame(list(spelled.items()), Sql("_name STRING, _rank BIGINT"))
            ranked = located.join(order.hint("broadcast"), located["_file"] == order["_name"], "left")
            rank = f"COALESCE(_rank, {unlisted})"
        return selected(ranked, *columns, f"SHIFTLEFT({rank} & {LAST_RANK}L, {RANK_SHIFT}) | _within AS _s")


def spellings(file: str) -> list[str]:
    """How Spark may name a file beside its rows, likeliest first.

    That is known before, because to change the name in each row would take longer than to compare it.
    """
    return list(dict.fromkeys([re.sub(LOCAL, "file:///", file), file, unquote(file)]))


def of_a_file(error: Exception) -> bool:
    """True if an error is the fault of a single file that is still there."""
    if isinstance(error, UserError):
        return error.code == "no-such-column"
    if isinstance(error, NotACapture):
        return True
    known_as = condition(error)
    missing = known_as == "FAILED_READ_FILE.FILE_NOT_EXIST"
    return known_as in NO_SCHEMA or (known_as.startswith("FAILED_READ_FILE") and not missing)
