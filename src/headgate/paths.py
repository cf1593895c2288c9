"""Paths as users write them, and what they name: what is judged is what is opened.

    in, ./in, /data/in              a folder of this machine; a `~` or `%20` is part of the name
    file:/data/in, file:///data/in  the same, written as an address
    s3a://bucket/in                 on other storage

Everything else that begins with `file:` is refused, for programs do not agree on what it names: `file:in`,
`file://host/in`, `FILE:/in`. So is `..` in an address of other storage where it matters (`permissions`). In a path of
this machine `..` means what it means to the system: the folder above, after links have been followed. Spark takes it
out of the text before; so a path with `..` is given to it as the folder that it leads to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from headgate.errors import UserError

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
ADDRESS = re.compile(r"file:(?://)?(/(?!/).*)", re.DOTALL)
GLOB = re.compile(r"[*?\[\]{}\\,]")
"""What is a pattern to Spark's readers, or separates paths."""


def is_elsewhere(path: str) -> bool:
    """True if a path names other storage than this machine's file systems."""
    scheme = SCHEME.match(path)
    return scheme is not None and scheme.group().lower() != "file:"


def local(path: str) -> str:
    """Return the path of this machine that a text names, without a scheme; one that names none is an error."""
    address = ADDRESS.fullmatch(path)
    if SCHEME.match(path) is None and "\0" not in path:
        return path
    if address is None or "\0" in path:
        raise UserError(
            "bad-path",
            f'"{path}" names no folder of this machine',
            hint="Write /data/in, file:/data/in or file:///data/in.",
        )
    return address[1]


def real(path: str) -> str:
    """Return the folder or file of this machine that a text names, absolute, links followed."""
    return os.path.realpath(local(path))


def for_spark(path: str) -> str:
    """Return a path as Spark's readers and writers are to have it, so that they open what `real` says."""
    if is_elsewhere(path):
        return path
    plain = local(path)
    scheme = "file:" if plain != path else ""
    return f"{scheme}{real(plain) if '..' in plain.split('/') and not GLOB.search(plain) else plain}"


def opened(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a connector with a path in them as Spark is to have it."""
    return {option: for_spark(value) if option.lower() == "path" else value for option, value in options.items()}
