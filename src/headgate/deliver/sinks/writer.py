"""The identity of a writer: one for each query of an engine's directory, so that a sink knows its own deliveries again.

A new engine knows nothing of what an old one has put into a folder or table. If it went on there, a script that is run
twice would put everything out twice. If it took the old one's deliveries for its own, it would leave some out.
"""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from zlib import crc32

from headgate.errors import UserError
from headgate.log.checksum import DAMAGED, synced, torn, writing


def known(directory: Path) -> bool:
    """True if the query has an identity: its sink was opened and checked when the query was created."""
    return (directory / "writer").exists()


def identity(directory: Path) -> str:
    """The identity of a query, made at the first call and kept in the query's folder.

    It stays over restarts; another query or engine has another one.
    """
    path = directory / "writer"
    if not path.exists():
        new = uuid.uuid4().hex
        with writing(directory):
            directory.mkdir(parents=True, exist_ok=True)
            settle(path, f"{new} {crc32(new.encode()):08x}\n")
    found, _, checksum = path.read_bytes().partition(b" ")
    old = not checksum and re.fullmatch(rb"[0-9a-f]{32}", found)  # it was written before there were checksums
    if not old and checksum != b"%08x\n" % crc32(found):
        raise torn(path, DAMAGED)
    return found.decode()


def settle(path: Path, text: str) -> None:
    """Write a small file so that it is there whole or not at all, and stays if the power goes."""
    unfinished = path.with_name(f".{path.name}.staged")
    unfinished.write_text(text, encoding="utf-8")
    settle_file(unfinished, path)
    synced(path.parent)


def settle_file(written: Path, path: Path) -> None:
    """Move a file to its final name. The caller synchronizes the folder after the last one."""
    synced(written)
    written.replace(path)


def owned_by_another(what: str, by: str) -> UserError:
    """The error for a folder or table that holds results of another query."""
    return UserError(
        "sink-taken",
        f"{what} holds results of another run or query",
        detail=f'They are of query "{by}".',
        hint="Resume with that engine's --directory, choose another target, or say 'existing' = 'append' or 'replace'.",
    )
