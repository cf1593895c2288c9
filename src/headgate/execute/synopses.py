"""The synopses of a fragment on disk: the state that it keeps between epochs.

    queries/totals/synopses/000000000017/_synopsis=sums/part-00000-....parquet

Each version has a folder of its own, with all synopses as of one instant. The journal says which version counts; the
others are deleted.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headgate.execute.workspace import Slice, Workspace
from headgate.log.checksum import synced, torn, writing
from headgate.log.chunk import Chunk, count, sized
from headgate.log.links import link
from headgate.log.tail import TAIL
from headgate.spark.staging import write_arrow, write_parquet

Listed: TypeAlias = dict[str, dict[str, list[int | None]]]
"""By synopsis and file: size and checksum."""


class SynopsisStore:
    """The synopses of one fragment: the files of the version that counts, and how the next one is written."""

    def __init__(self, directory: Path, durable: bool = False) -> None:
        self.directory = directory
        self.durable = durable
        """Whether a version must survive the loss of power before it counts."""
        self.schemas: dict[str, StructType] = {}
        self.files: dict[str, list[Chunk]] = {}
        self.rows = 0
        self.counts: dict[str, int] = {}
        """How many rows each of them has, as far as that was written down."""
        self.version = 0
        """0 before the first one: all synopses are empty."""

    def folder(self, version: int) -> Path:
        """Return where a version lies."""
        return self.directory / "synopses" / f"{version:012d}"

    def shapes(self) -> dict[str, str]:
        """Return the columns of each synopsis, as the journal has them."""
        return {name: schema.simpleString() for name, schema in self.schemas.items()}

    # what the journal knows of it

    def apply(self, fact: Mapping[str, Any]) -> None:
        """Take a version that the journal says counts."""
        TAIL.drop(chain.from_iterable(self.files.values()))
        self.version, self.rows = fact["version"], fact["synopsis_rows"]
        self.counts = dict(fact.get("counts", {}))
        self.files = read_synopses(self.folder(self.version), fact["synopses"])

    def state(self) -> dict[str, Any]:
        """Return the fact that `apply` takes; nothing before the first version."""
        return self._fact(self.version, self.files, self.rows, self.counts) if self.version else {}

    def _fact(
        self, version: int, files: Mapping[str, list[Chunk]], rows: int, counts: Mapping[str, int]
    ) -> dict[str, Any]:
        listed = listed_synopses(self.folder(version), files)
        fact = {"version": version, "synopses": listed, "synopsis_rows": rows, "shapes": self.shapes()}
        return fact | ({"counts": dict(counts)} if counts else {})

    # reading and writing

    def lay(self, workspace: Workspace) -> None:
        """Put each synopsis under its name."""
        for name, schema in self.schemas.items():
            workspace.lay(name, self.slices(name), schema, within=name)

    def slices(self, name: str) -> list[Slice]:
        """Return the rows of a synopsis; none before the first version."""
        return [Slice(self.files[name])] if self.files.get(name) else []

    def numbers(self, name: str, column: str) -> list[int]:
        """Return the numbers in a column of a synopsis of few rows, as of the version that counts."""
        tables = (ParquetFile(chunk.path).read() for chunk in self.files.get(name, ()))
        columns = (pc.struct_field(table[name], column).to_pylist() for table in tables)
        return [number for numbers in columns for number in numbers if number is not None]

    def write(
        self, contents: DataFrame | pa.Table | None, names: Sequence[str], workspace: Workspace, same: Iterable[str]
    ) -> dict[str, Any]:
        """Write the next version and return the fact that makes it count.

        `contents` are the rows of the named synopses, of `statement.state_text`: computed, or to be computed by one
        Spark job. Synopses that are the same as in this version are not written: their files are linked.
        """
        version = self.version + 1
        folder = self.folder(version)
        self.discard_next()  # an earlier attempt may have left something
        staging = self.directory / ".synopses"
        if contents is not None:
            sealed = self._staged(contents, names, workspace, staging)
        with writing(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            if contents is not None:
                sealed.rename(folder)
            for chunk in chain.from_iterable(self.files[name] for name in same):
                target = folder / chunk.path.relative_to(self.folder(self.version))
                target.parent.mkdir(parents=True, exist_ok=True)
                link(chunk.path, target)
            folder.mkdir(exist_ok=True)
        written = {name: self._written(folder / f"_synopsis={name}") for name in (*names, *same)}
        if self.durable:
            files = [chunk.path for chunk in chain.from_iterable(written.values())]
            with writing(folder):
                for path in (*files, *{file.parent for file in files}, folder, folder.parent):
                    synced(path)
        counts = {name: sum(chunk.rows for chunk in chunks) for name, chunks in written.items()}
        return self._fact(version, written, sum(counts.values()), counts)

    def _staged(
        self, contents: DataFrame | pa.Table, names: Sequence[str], workspace: Workspace, staging: Path
    ) -> Path:
        """Compute the synopses if need be, and return the folder that holds their files."""
        rows = contents if isinstance(contents, pa.Table) else workspace.collected(contents)
        if rows is None:
            return write_parquet(contents, staging, "_synopsis")
        by_name = {name: rows.filter(pc.field("_synopsis") == name).select([name]) for name in names}
        return write_arrow({f"_synopsis={name}": some for name, some in by_name.items()}, staging)

    def _written(self, folder: Path) -> list[Chunk]:
        return [sized(Chunk(file, count(file), 0, 0)) for file in sorted(folder.glob("*.parquet"))]

    # files

    def check(self) -> None:
        """Raise an error that names the first file that is missing or cut short."""
        for chunk in chain.from_iterable(self.files.values()):
            if problem := chunk.problem():
                raise torn(chunk.path, problem)

    def discard_next(self) -> None:
        """Delete the next version, which does not count."""
        shutil.rmtree(self.folder(self.version + 1), ignore_errors=True)

    def delete_others(self) -> None:
        """Delete all versions but the one that counts."""
        folder = self.folder(self.version)
        for other in folder.parent.iterdir() if folder.parent.exists() else ():
            if other != folder:
                shutil.rmtree(other)


def listed_synopses(folder: Path, synopses: Mapping[str, list[Chunk]]) -> Listed:
    """Return the files of each synopsis for the journal, with their sizes and checksums."""
    return {
        name: {str(chunk.path.relative_to(folder)): [chunk.size, chunk.checksum] for chunk in chunks}
        for name, chunks in synopses.items()
    }


def read_synopses(folder: Path, listed: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Chunk]]:
    """Return the files that `listed_synopses` wrote down. Before there were checksums, it wrote the sizes alone."""
    found: dict[str, list[Chunk]] = {}
    for name, files in listed.items():
        known = {file: (said, None) if isinstance(said, int) else said for file, said in files.items()}
        found[name] = [
            Chunk(folder / file, 0, 0, 0, size, checksum=checksum) for file, (size, checksum) in known.items()
        ]
    return found
