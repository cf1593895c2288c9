"""Results as Parquet files in a folder of the user's, one or more an epoch, each there whole or not at all.

out/alerts/000000000001.parquet     _time, [_change,] and the columns of the query
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from headgate.catalog import Connector
from headgate.errors import UserError, quoted
from headgate.log.log import Log


class ParquetSink:
    def __init__(self, query: str, connector: Connector) -> None:
        unknown = sorted(set(connector.options) - {"path"})
        if unknown or "path" not in connector.options:
            raise UserError(
                "bad-option", f'the parquet sink of query "{query}" takes one option, "path"',
                detail=f"It has {quoted(connector.options)}." if connector.options else "It has none.",
                hint="INTO parquet OPTIONS ('path' = 'folder')",
            )  # fmt: skip
        self.log = Log(Path(connector.options["path"]))

    def deliver(self, files: list[Path], complete: Any) -> None:
        near = []
        for file in files:  # the folder may be on another disk: only a rename within it is atomic
            target = self.log.directory / f".{file.name}"
            shutil.move(file, target)
            near.append(target)
        self.log.adopt_all(near)
