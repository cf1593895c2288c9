"""One engine a directory: a lock that the operating system gives back when its owner ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from headgate.errors import UserError


class Lock:
    def __init__(self, directory: Path) -> None:
        self._file = (directory / "lock").open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            owner = self._file.read().strip() or "unknown"
            self._file.close()
            raise UserError(
                "directory-in-use", f'another engine works in directory "{directory}"',
                detail=f"It is process {owner}.", hint="Stop it first, or give each its own directory.",
            ) from None  # fmt: skip
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        self._file.close()
