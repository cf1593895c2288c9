"""The engine's directory and the folders in it: where it may be, and what the folder of a stream or query is called."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from headgate.errors import UserError

NAME_LETTERS = 150
"""The folder of a long name has its first letters only: file systems take 255 bytes at most."""


def local_directory(directory: str | Path) -> Path:
    """The engine's directory as an absolute path.

    Files in it are locked, renamed and listed, so it must be on a file system, local or mounted.
    """
    text = str(directory)
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "file" and rest.startswith("/"):
        return Path("/" + rest.lstrip("/"))
    if colon and len(scheme) > 1 and rest.startswith("/"):
        raise UserError(
            "not-a-file-system",
            f'directory "{text}" is not on a file system',
            detail=f'Logs and state are kept on a local disk or a mounted one, and "{scheme}:" is neither.',
            hint="Give a folder that the driver and all workers have mounted under the same path, for example by NFS.",
        )
    return Path(directory).absolute()


def fresh_folder(parent: Path, name: str) -> str:
    """A folder's name for a new stream or query: never one that an earlier stream or query of that name has."""
    plain = quote(name.lower(), safe="").replace(".", "%2E")
    folder, number = plain[:NAME_LETTERS], 1
    while (parent / folder).exists():
        number += 1
        folder = f"{plain[:NAME_LETTERS]}.{number}"
    return folder
