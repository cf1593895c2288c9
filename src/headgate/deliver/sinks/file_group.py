"""Results of several queries as files, with one record for each delivery of all of them.

    out/board/accounts/000000000012-00000.parquet     the files of one query, as those of a query by itself
    out/board/total/000000000012-00000.parquet
    out/board/_commits/000000000012.json
      {"query": "board", "number": 12, "complete": ..., "until": ..., "files": ["accounts/000000000012-00000.parquet",
       ...], "rows": 4, "queries": {"accounts": {"folder": "accounts", "files": [...], "rows": 3}, ...}, "crc": ...}

The record is the commit: with it, the files of all queries count, and without it, those of none do.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.catalog.entries import Connector
from headgate.deliver.sinks.files import DATA, FileSink
from headgate.deliver.sinks.sink import Delivery


class FilesOfQuery(FileSink):
    """Writes the files of one query of a group, which the group commits."""

    def _open(self) -> None:
        with self._writable():
            self.folder.mkdir(parents=True, exist_ok=True)

    def recall(self, record: dict[str, Any] | None) -> None:
        """Take what the last record of the group says of the query."""
        self._last = record

    def put(self, delivery: Delivery) -> dict[str, Any]:
        """Write the files of a delivery; what the group's record is to say of them."""
        files, rows = self._written(delivery)
        return {"folder": self.folder.name, "files": files, "rows": rows, **self._besides(delivery, files)}


class FileGroupSink(FileSink):
    """Writes the results of each query into a folder of its own, and commits all of them by one record."""

    def __init__(
        self, group: str, connector: Connector, members: Mapping[str, Connector], session: SparkSession, directory: Path
    ) -> None:
        self.members: dict[str, FilesOfQuery] = {}
        self._put: dict[str, dict[str, Any]] = {}
        """What the next record says of each query."""
        super().__init__(group, connector, session, directory)
        self.members = {name: FilesOfQuery(name, one, session, directory) for name, one in members.items()}
        self._tell_members()

    def _tell_members(self) -> None:
        known = self._last.get("queries", {}) if self._last else {}
        for name, member in self.members.items():
            member.recall(known.get(name))

    def deliver_all(self, delivery: Delivery, parts: Mapping[str, Delivery]) -> None:
        """Write the files of all queries and commit them by a record, unless there is one."""
        if self._last and delivery.number <= self._last["number"]:
            return
        with self._writable():
            self._check_claim()
            self._sweep()
            self._swept = False
            self._put = put = {name: member.put(parts[name]) for name, member in self.members.items()}
            files = [f"{one['folder']}/{file}" for one in put.values() for file in one["files"]]
            self._commit(delivery, files, sum(one["rows"] for one in put.values()))
            self._tell_members()
            self._tidy()

    def _besides(self, delivery: Delivery, files: list[str]) -> dict[str, Any]:
        return {"queries": self._put}

    def _data(self) -> list[Path]:
        folders = [folder for folder in self.folder.iterdir() if folder.is_dir() and not folder.name.startswith("_")]
        return [file for folder in folders for file in folder.iterdir() if DATA.fullmatch(file.name)]

    def close(self) -> None:
        """Delete what is unfinished, and release Spark's sessions."""
        for member in self.members.values():
            member.close()
        super().close()
