"""Results as files in a folder of the user's, each delivery there whole or not at all, with a record that readers can
follow.

    out/alerts/000000000012-00000.parquet     _time, [_change,] and the columns of the query, in order of time in a file
    out/alerts/_commits/000000000012.json
      {"query": "alerts", "number": 12, "complete": "2026-11-01T12:00:05+00:00", "until": 1793534405000000,
       "files": ["000000000012-00000.parquet"], "rows": 3, "crc": "0badc0de"}
    out/alerts/_commits/000000001000.folded.json     one such record a line: the first thousand
    out/alerts/_commits/writer.json                  {"writer": "5f3a...", "query": "alerts", "crc": "5f0d0a2e"}

Results that are Parquet in order already are linked into the folder as they are; everything else is written by a job.
Files get their names first, the record makes them count. A crash between the two leaves files that no record lists;
they go when the delivery comes again. Spark's readers pass over folders that begin with an underscore, so the folder
can be read as it is, too; then what a crash left is seen until the restart.

By 'deliver' = 'current' a record lists files that together are the relation as of `complete`, without `_time` and
`_change`. They are written anew when something has changed; those of the delivery before stay for readers that are at
it, older ones go. Since the next delivery reads them back, the record has their checksums, too.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.catalog import sinks
from headgate.catalog.entries import Connector
from headgate.deliver.sinks import as_they_are, shape
from headgate.deliver.sinks.sink import Delivery
from headgate.deliver.sinks.writer import identity, owned_by_another, settle, settle_file
from headgate.errors import UserError
from headgate.log.checksum import DAMAGED, of_file, sealed, synced, torn, unsealed
from headgate.paths import real
from headgate.spark.failures import sentence
from headgate.spark.session import let_go, own_session
from headgate.spark.staging import address
from headgate.spark.statements import filtered
from headgate.sql import Sql

FOLD_AT = 1_000
"""How many records are folded into one file."""

ABSENT = Sql("CAST(RAISE_ERROR('a row left the relation that is not in the files') AS BOOLEAN)")
DATA = re.compile(r"(\d{12,})-\d{5,}\.\w+(\.\w+)?")
RECORD = re.compile(r"(\d{12,})(\.folded)?\.json")


@dataclass(frozen=True, slots=True)
class Commit:
    """A delivery as a reader sees it: with all before it, everything up to `complete` is there."""

    number: int
    complete: Any
    files: tuple[Path, ...]
    rows: int
    by_query: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """Of a group, the files of each query."""


def read_commits(path: str | Path, after: int = 0) -> Iterator[Commit]:
    """The deliveries in a folder behind number `after`, in order: all that are there now.

    Ask again with the last number that was seen. Of current rows there is only the last one.
    """
    folder = Path(path)
    for record in _records(folder, after):
        complete = record["complete"]
        at = datetime.fromisoformat(complete) if isinstance(complete, str) else complete
        files = tuple(folder / file for file in record["files"])
        yield Commit(record["number"], at, files, record["rows"], _by_query(folder, record))


def _by_query(folder: Path, record: dict[str, Any]) -> dict[str, tuple[Path, ...]]:
    """The files of each query, in a record of a group."""
    parts = record.get("queries", {}).items()
    return {query: tuple(folder / part["folder"] / file for file in part["files"]) for query, part in parts}


def _records(folder: Path, after: int) -> Iterator[dict[str, Any]]:
    while True:
        for file in _listed(folder):
            if _number(file) <= after:
                continue
            try:
                found = _read(file)
            except FileNotFoundError:
                break  # folded meanwhile: it is in another file now
            for record in found:
                if record["number"] > after:
                    after = record["number"]
                    yield record
        else:
            return


def _read(file: Path) -> list[dict[str, Any]]:
    """The records in a file; one or, in a folded file, many. The last is the one that the file is named after."""
    records = [unsealed(line, file) for line in file.read_bytes().removesuffix(b"\n").split(b"\n")]
    if records[-1].get("number") != _number(file):
        raise torn(file, "it does not have the record that it is named after")
    return records


def _listed(folder: Path) -> list[Path]:
    """The files of records, folded ones first: what is left of the others then comes after them.

    A listing made while records are folded may lack both the old files and the new one; two that agree do not.
    """
    before: list[Path] | None = None
    while True:
        now = [file for file in (folder / "_commits").glob("*.json") if RECORD.fullmatch(file.name)]
        now.sort(key=lambda file: (not _folded(file), _number(file)))
        if now == before:
            return now
        before = now


def _number(file: Path) -> int:
    """The number of the last delivery that the file tells of."""
    return int(file.name.partition(".")[0])


def _folded(file: Path) -> bool:
    return file.name.endswith(".folded.json")


class FileSink:
    """Writes each delivery as files into a folder, and commits it by a record that lists them."""

    guarantee = sinks.SINKS["parquet"].guarantee
    wants_empty = True

    def __init__(self, query: str, connector: Connector, session: SparkSession, directory: Path) -> None:
        self.query = query
        self.connector = connector
        self.session = own_session(session)
        self.folder = Path(real(connector.options["path"]))
        self.commits = self.folder / "_commits"
        self.staging = self.folder / "_staging"
        self.mode = sinks.mode(connector)
        passed = sinks.FILES[connector.format]
        self.options = {name: value for name, value in connector.options.items() if name in passed}
        self.linked = sinks.linked(connector)
        self.ordered = sinks.ordered(connector)
        self.writer = identity(directory)
        self._last: dict[str, Any] | None = None
        self._singles: list[int] = []
        self._swept = False
        self._open()

    def _open(self) -> None:
        with self._writable():
            self._claim()
            self._recall()

    @contextmanager
    def _writable(self) -> Iterator[None]:
        """Turn what the file system refuses, and files that were changed by others, into an error of this sink."""
        try:
            yield
        except (OSError, ValueError, KeyError) as error:
            cause = f"{error.strerror}." if isinstance(error, OSError) and error.strerror else sentence(error)
            raise UserError(
                "sink-failed",
                f'folder "{self.connector.options["path"]}" cannot be written',
                detail=cause,
                hint="'path' is a folder that the engine may write to, or one that it can make.",
            ) from error

    def _claim(self) -> None:
        """Put our name on the folder, unless another query has put results there."""
        claim = self.commits / "writer.json"
        owner = unsealed(claim.read_bytes(), claim) if claim.exists() else None
        if owner is not None and owner["writer"] == self.writer:
            return
        if owner is not None and _listed(self.folder):
            existing = self.connector.options.get("existing", "refuse")
            if existing == "refuse":
                raise owned_by_another(f'folder "{self.connector.options["path"]}"', owner["query"])
            if existing == "replace":
                for file in self._data():
                    file.unlink()
                shutil.rmtree(self.commits)
        self.commits.mkdir(parents=True, exist_ok=True)
        settle(claim, sealed({"writer": self.writer, "query": self.query}))

    def _check_claim(self) -> None:
        """Raise an error if another query has claimed the folder since: two cannot write to it."""
        claim = self.commits / "writer.json"
        owner = unsealed(claim.read_bytes(), claim)
        if owner["writer"] != self.writer:
            raise owned_by_another(f'folder "{self.connector.options["path"]}"', owner["query"])

    def _recall(self) -> None:
        """Read what was committed before the restart, and finish a fold that was cut short."""
        files = _listed(self.folder)
        folded = max((_number(file) for file in files if _folded(file)), default=0)
        for file in files:
            if not _folded(file) and _number(file) <= folded:
                file.unlink()
            elif not _folded(file):
                self._singles.append(_number(file))
        if files:
            newest = max((file for file in files if file.exists()), key=_number)
            self._last = _read(newest)[-1]

    def delivered(self) -> int | None:
        """The number in the last record."""
        return self._last["number"] if self._last else 0

    def deliver(self, delivery: Delivery) -> None:
        """Write the files of a delivery and commit them by a record. One that has a record is not written again."""
        if self._last and delivery.number <= self._last["number"]:
            return
        with self._writable():
            self._deliver(delivery)

    def _deliver(self, delivery: Delivery) -> None:
        self._check_claim()
        self._sweep()
        self._commit(delivery, *self._written(delivery))
        self._tidy()

    def _written(self, delivery: Delivery) -> tuple[list[str], int]:
        """Put the files of a delivery into the folder; their names, and how many rows they hold. Current rows that have
        not changed are in the files of the last commit.
        """
        if self.mode != "current":
            return self._placed(delivery, *self._parts(delivery))
        if delivery.rows:
            return self._placed(delivery, *self._current(delivery))
        return (self._last["files"], self._last["rows"]) if self._last else ([], 0)

    def _tidy(self) -> None:
        """Delete or fold what a commit has made superfluous."""
        self._swept = True
        if self.mode == "current":
            self._forget()
        elif len(self._singles) >= FOLD_AT:
            self._fold()

    def close(self) -> None:
        """Delete what is unfinished, and release Spark's session."""
        shutil.rmtree(self.staging, ignore_errors=True)
        let_go(self.session)

    def _parts(self, delivery: Delivery) -> tuple[list[Path], int]:
        if self.linked and delivery.files:
            found = as_they_are.linked(delivery, self.staging, self.ordered)
            if found is not None:
                return found, delivery.rows
        return shape.write_parts(
            self.session, delivery, self.connector, self.staging, self.connector.format, self.options
        )

    def _current(self, delivery: Delivery) -> tuple[list[Path], int]:
        """The relation as it is now, from the files of the last commit and the changes since."""
        frame, before, count = shape.changes(self.session, delivery), None, delivery.rows
        if self._last and self._last["files"]:
            schema = frame.drop("_time", "_change").schema
            files = [self.folder / file for file in self._last["files"]]
            for file, checksum in zip(files, self._last["checksums"], strict=True) if "checksums" in self._last else ():
                if not file.exists() or of_file(file) != checksum:
                    raise torn(file, DAMAGED if file.exists() else "it is missing")
            before = self.session.read.format(self.connector.format).schema(schema).load(list(map(address, files)))
            count += self._last["rows"]
        self.session.conf.set("spark.sql.shuffle.partitions", str(-(-count // shape.PART_ROWS)))
        now = filtered(shape.netted(before, frame), f"IF(_n < 0, {ABSENT}, TRUE)")
        rows = shape.labelled(shape.repeated(now).drop("_n", "_copy"), delivery, self.connector)
        return shape.write_files(rows, self.staging, self.connector.format, self.options)

    def _placed(self, delivery: Delivery, written: list[Path], rows: int) -> tuple[list[str], int]:
        """Give the files their names, by which they are replaced if the delivery comes again."""
        self._swept = False
        names = []
        for part, file in enumerate(written):
            packed = "" if file.suffix == f".{self.connector.format}" else file.suffix  # as in .json.gz
            names.append(f"{delivery.number:012d}-{part:05d}.{self.connector.format}{packed}")
            settle_file(file, self.folder / names[-1])
        synced(self.folder)
        return names, rows

    def _commit(self, delivery: Delivery, files: list[str], rows: int) -> None:
        complete = delivery.complete.isoformat() if isinstance(delivery.complete, datetime) else delivery.complete
        record = {
            "query": delivery.query,
            "number": delivery.number,
            "complete": complete,
            "until": delivery.until,
            "files": files,
            "rows": rows,
        }
        record |= self._besides(delivery, files)
        settle(self.commits / f"{delivery.number:012d}.json", sealed(record) + "\n")
        self._last = record
        self._singles.append(delivery.number)

    def _besides(self, delivery: Delivery, files: list[str]) -> dict[str, Any]:
        """What else stands in the record: the checksums of current rows, those of before if nothing has changed."""
        if self.mode == "current" and delivery.rows:
            return {"checksums": [of_file(self.folder / file) for file in files]}
        return {"checksums": self._last["checksums"]} if self._last and "checksums" in self._last else {}

    def _data(self) -> list[Path]:
        """The files of results in the folder, committed or not."""
        return [file for file in self.folder.iterdir() if DATA.fullmatch(file.name)]

    def _sweep(self) -> None:
        """Remove what was left by a delivery that was not committed: it may be cut into other parts the next time."""
        if self._swept:
            return
        last = self._last["number"] if self._last else 0
        for file in self._data():
            if int(file.name.partition("-")[0]) > last:
                file.unlink()
        self._swept = True

    def _fold(self) -> None:
        """Put the records so far into one file. A reader that misses a record finds it there."""
        numbers = sorted(self._singles)
        texts = [(self.commits / f"{number:012d}.json").read_text(encoding="utf-8") for number in numbers]
        settle(self.commits / f"{numbers[-1]:012d}.folded.json", "".join(texts))
        for number in numbers:
            (self.commits / f"{number:012d}.json").unlink()
        self._singles = []

    def _forget(self) -> None:
        """Delete all commits of current rows but the last two, and the files that those do not list."""
        kept = sorted(self._singles)[-2:]
        records = [_read(self.commits / f"{number:012d}.json")[-1] for number in kept]
        listed = {file for record in records for file in record["files"]}
        for number in sorted(self._singles)[:-2]:
            (self.commits / f"{number:012d}.json").unlink()
        self._singles = kept
        for file in self._data():
            if file.relative_to(self.folder).as_posix() not in listed:
                file.unlink()
