"""A plain folder on this machine, which is listed and watched without Spark.

To list a few files takes Spark as long as all other work on them. So a folder that holds nothing but files with plain
names is listed here, once that has given the same files as Spark did. Everything else is left to Spark: patterns,
folders in it, options that choose files, names that Spark writes in its own way, other storage.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping

PLAIN_PATH = re.compile(r"(file:)?/[\w./-]*[\w.-]", re.ASCII)
PLAIN_NAME = re.compile(r"[\w.-]+", re.ASCII)

CHOOSING = {"pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter"}
"""Options of Spark's readers that choose among the files of a folder."""

TICK_NS = 50_000_000
"""A folder that has changed so shortly before it was listed may have changed again without another date."""


class Folder:
    """The folder that a path names, as far as it is a plain one."""

    def __init__(self, path: str, options: Mapping[str, str]) -> None:
        plain = PLAIN_PATH.fullmatch(path) is not None and CHOOSING.isdisjoint(map(str.lower, options))
        self.path = os.path.normpath(path.removeprefix("file:")) if plain else None
        self.trusted = False
        """True if a listing was once the same as Spark's."""
        self._dated_ns = 0
        """When files had last come or gone when it was listed; 0 if that was only just then."""

    def files(self) -> list[str] | None:
        """The files that are there, as Spark names them; None if Spark has to say."""
        if self.path is None:
            return None
        found = list[str]()
        try:
            dated_ns = os.stat(self.path).st_mtime_ns
            self._dated_ns = dated_ns if time.time_ns() - dated_ns > TICK_NS else 0
            with os.scandir(self.path) as entries:
                for entry in entries:
                    if entry.name.startswith((".", "_")):
                        if "=" in entry.name:
                            return None  # Spark takes some of these for parts of a table
                    elif PLAIN_NAME.fullmatch(entry.name) and entry.is_file():
                        found.append(f"file:{self.path}/{entry.name}")
                    else:
                        return None
        except OSError:
            return None
        return found

    def changed(self) -> bool:
        """True if files have come or gone since it was last listed, or may have."""
        if self.path is None:
            return False
        try:
            return os.stat(self.path).st_mtime_ns != self._dated_ns
        except OSError:
            return False
