"""Who writes: an identity for each query of an engine's directory, so that a sink knows its own deliveries again.

A new engine knows nothing of what an old one has put into the same folder or table. Were it to go on there without a
word, a script that is run twice would put everything out twice; were it to take the old one's deliveries for its own,
it would leave some out."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from zlib import crc32

from headgate.errors import UserError
from headgate.log.checksum import DAMAGED, synced, torn, writing


def known(directory: Path) -> bool:
    """Whether the query was there before, so that its sink was checked when it was made first."""
    return (directory / "writer").exists()


def identity(directory: Path) -> str:
    """Kept in the query's directory: the same after a restart, another for another query or engine."""
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
    staged = path.with_name(f".{path.name}.staged")
    staged.write_text(text, encoding="utf-8")
    settle_file(staged, path)
    synced(path.parent)


def settle_file(staged: Path, path: Path) -> None:
    """Put a file under its name; the folder is synchronized by whoever puts the last one there."""
    synced(staged)
    staged.replace(path)


def taken(what: str, by: str) -> UserError:
    return UserError(
        "sink-taken",
        f"{what} holds results of another run or query",
        detail=f'They are of query "{by}".',
        hint="Resume with that engine's --directory, choose another target, or say 'existing' = 'append' or 'replace'.",
    )
