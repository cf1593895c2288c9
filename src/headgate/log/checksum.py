"""Checksums: how a file is recognised as the one that was written, and what is said of one that is not.

Everything an engine keeps on disk has a CRC-32 that is compared when it is read. Where that stands depends on the file:

    data (Parquet)             in the journal, in the fact by which the file counts
    a line of the journal      in front of its text; it also covers all lines before it
    a checkpoint               in its last line
    a small file of JSON       in its member "crc"
    the identity of a writer   behind it
    what Spark itself notes    in Hadoop's file .name.crc beside it

A file that is missing, cut short, damaged or exchanged for another one is never read as if nothing had happened: `torn`
names it. This module knows nothing of what the files mean.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

from headgate.errors import UserError

BLOCK_BYTES = 2**18
"""How much of a file is in memory while its checksum is computed: small enough for a processor's cache."""

DAMAGED = "it is damaged: its checksum is not the one it was written with"


def of_file(path: Path) -> int:
    """The checksum of a file's content."""
    found, block = 0, memoryview(bytearray(BLOCK_BYTES))
    with path.open("rb", buffering=0) as file:
        while length := file.readinto(block):
            found = crc32(block[:length], found)
    return found


def agrees_with_hadoop(path: Path) -> bool:
    """Whether a file that Spark wrote is what the `.crc` file beside it says, if there is one that can be read.

    b"crc\\0", the number of bytes in a stretch, and the CRC-32 of each stretch of the file; all numbers big-endian.
    """
    try:
        noted, content = path.with_name(f".{path.name}.crc").read_bytes(), path.read_bytes()
    except FileNotFoundError:
        return True
    head, stretch, sums = noted[:4], int.from_bytes(noted[4:8], "big"), noted[8:]
    if head != b"crc\0" or not stretch:
        return True  # Spark does not sync it: it may not have survived a power failure
    return sums == b"".join(
        crc32(content[at : at + stretch]).to_bytes(4, "big") for at in range(0, len(content), stretch)
    )


def sealed(said: Mapping[str, Any]) -> str:
    """A JSON object with a checksum of its members."""
    return json.dumps({**said, "crc": _of_members(said)})


def unsealed(text: str | bytes, path: Path) -> dict[str, Any]:
    """The object that `sealed` wrote to a file. One without a checksum is of an older version and is taken as it is."""
    try:
        said = json.loads(text)
        given = said.pop("crc", None)
    except (ValueError, AttributeError):
        raise torn(path, "it is damaged: it is no JSON object") from None
    if given is not None and given != _of_members(said):
        raise torn(path, DAMAGED)
    return dict(said)


def _of_members(said: Mapping[str, Any]) -> str:
    return f"{crc32(json.dumps(said).encode()):08x}"


def torn(path: Path, what: str) -> UserError:
    return UserError(
        "torn-file",
        f'"{path.name}" in "{path.parent}" cannot be used',
        detail=f"{what[:1].upper()}{what[1:]}.",
        hint="Put the file back from a copy. Without it the engine cannot know what it had done.",
    )


def full_or_broken(error: OSError, directory: Path) -> UserError:
    return UserError(
        "disk-failed",
        f'nothing can be written to "{directory}"',
        detail=f"{error.strerror or error}. Nothing was acknowledged.",
        hint="Make room; what was not acknowledged can be sent again.",
    )


@contextmanager
def writing(directory: Path) -> Iterator[None]:
    """What the system refuses in here is raised as our error, which may pass: the disk is full, or not to be written
    to.
    """
    try:
        yield
    except OSError as error:
        raise full_or_broken(error, directory) from None


@contextmanager
def needs_no_room() -> Iterator[None]:
    """What a full disk keeps from being written in here can wait: it is done with the next statement."""
    try:
        yield
    except UserError as error:
        if error.code != "disk-failed":
            raise


def synced(path: Path) -> None:
    """What was written to a file, or renamed into a folder, survives a power failure."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
