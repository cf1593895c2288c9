"""The default sink: results are kept to be asked for with `query.results()`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headgate.log.log import Log


class MemorySink:
    """Kept in files of the engine's directory, merged as they grow many; only asking brings them into memory."""

    def __init__(self, directory: Path) -> None:
        self.log = Log(directory)

    def deliver(self, files: list[Path], complete: Any) -> None:
        self.log.adopt_all(files)
        self.log.compact()
