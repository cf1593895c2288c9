"""Files that are to be in another place as well, without copying what they hold where that can be done."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def link(source: Path, path: Path) -> None:
    """Make `path` a hard link to a file; where none can be made, the operating system copies the file."""
    path.unlink(missing_ok=True)
    source = source.resolve()
    try:
        os.link(source, path)
    except OSError:  # on another file system, or the system allows no link to it
        shutil.copyfile(source, path)
