"""FROM: checks the reader of a stream or relation and how its values are decoded, and finds what a script reads.

What is known of each reader stands in its row of `catalog.readers`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from sqlglot import exp

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Connector
from headgate.catalog.readers import STREAMED, reader
from headgate.cql.languages import trees
from headgate.cql.syntax import CreateRelation, CreateStream
from headgate.errors import Place, UserError, nearest, quoted

PATTERN = "*?[{"
"""Letters that make a path a pattern of several."""

PAYLOADS = ("json", "csv", "avro")
"""What VALUE AS can decode."""


def read_from(
    tree: exp.Expression, streaming: bool, catalog: Catalog, place: Callable[[exp.Expression], Place | None]
) -> Connector | None:
    """The reader that FROM names, with its options; None if there is no FROM.

    It may be any reader that Spark has; for what changes with time (`streaming`), any that Spark's streaming has.
    """
    given, payload = tree.args.get("format"), tree.args.get("payload")
    if payload is not None and (given is None or given.name.lower() == "memory" or not streaming):
        raise UserError(
            "no-source", "VALUE AS decodes the values of a streaming source, and there is none", place=place(payload)
        )
    if given is None:
        return None
    kind = reader(given.name)
    name = kind.name if kind.name in STREAMED else given.name
    if streaming and kind.no_stream:
        raise UserError(
            "no-such-source",
            kind.no_stream,
            place=place(given),
            hint="CREATE RELATION without TIMESTAMP BY reads it once.",
        )
    if catalog.permissions is not None:
        places = {
            entry.expressions[0].name.lower(): place(entry.expressions[1]) for entry in tree.args.get("options") or ()
        }
        catalog.permissions.check(name, "from", options(tree, "options"), places, place(given))
        catalog.permissions.check_payload(options(tree, "payload_options"), place(payload or given))
    if payload is None:
        return Connector(name, options(tree, "options"))
    if payload.name.lower() not in PAYLOADS:
        raise UserError(
            "no-such-format",
            f'values cannot be decoded as "{payload.name}"',
            place=place(payload),
            detail=f"There are {quoted(PAYLOADS)}.",
            hint=nearest(payload.name, PAYLOADS),
        )
    return Connector(name, options(tree, "options"), Connector(payload.name.lower(), options(tree, "payload_options")))


def check_columns(
    columns: Iterable[exp.Expression], connector: Connector | None, place: Callable[[exp.Expression], Place | None]
) -> None:
    """Refuse a column that a reader with fields of its own does not have."""
    kind = reader(connector.format if connector is not None else "memory")
    for column in columns if kind.fields else ():
        if column.name.lower() not in kind.fields:
            raise UserError(
                "no-such-column",
                f'{kind.name} has no field "{column.name}"',
                place=place(column.this),
                detail=f"Its fields are {', '.join(kind.fields)}.",
                hint=nearest(column.name.lower(), kind.fields),
            )


def options(tree: exp.Expression, which: str) -> dict[str, str]:
    """The options of a clause as they were written: "options" of FROM or INTO, "payload_options" of VALUE AS."""
    return {entry.expressions[0].name: entry.expressions[1].name for entry in tree.args.get(which) or ()}


def formats(text: str, origin: str = "") -> set[str]:
    """The formats that a script reads and writes: Spark must have their connectors when it is started.

    The script is not carried out. Of the databases behind JDBC only PostgreSQL's driver is fetched; that of another
    one is the user's affair.
    """
    found: set[str] = set()
    for tree in trees(text, origin):
        given = [tree.args.get(which) for which in ("format", "payload")]
        named = {one.name.lower() for one in given if isinstance(one, exp.Identifier)}
        if "jdbc" not in named or options(tree, "options").get("url", "").startswith("jdbc:postgresql:"):
            found |= named
    return found


@dataclass(frozen=True, slots=True)
class Files:
    """A path on this machine from which a stream or relation of a script is read."""

    stream: str
    path: str
    place: Place | None

    @property
    def local(self) -> Path:
        """The path without the scheme that it may be written with."""
        return Path(self.path.removeprefix("file://").removeprefix("file:"))

    def size(self) -> int:
        """How many bytes the files hold."""
        files = [self.local] if self.local.is_file() else self.local.rglob("*")
        return sum(file.stat().st_size for file in files if file.is_file())


def files_read(text: str, origin: str = "") -> tuple[list[Files], bool]:
    """The paths on this machine that a script reads, and whether it reads nothing else. Patterns are left out."""
    found, alone = [], True
    for tree in trees(text, origin):
        given = tree.args.get("format")
        if not isinstance(tree, CreateStream | CreateRelation) or given is None:
            continue
        path = next((value for key, value in options(tree, "options").items() if key.lower() == "path"), "")
        start = text.find(f"'{path}'", tree.meta["start"])
        one = Files(tree.name, path, Place(text, start, start + len(path) + 2, origin) if start >= 0 else None)
        elsewhere = re.match("[A-Za-z][A-Za-z0-9+.-]+:", str(one.local)) is not None
        if reader(given.name).way == "files" and path and not elsewhere and not set(PATTERN) & set(path):
            found.append(one)
        else:
            alone = False
    return found, alone


def check_paths(files: Iterable[Files]) -> None:
    """Raise an error for the first path that does not exist."""
    for one in files:
        if not one.local.exists():
            raise no_such_path(one.path, one.stream, one.place)


def no_such_path(path: str, stream: str, place: Place | None = None) -> UserError:
    """The error for a path that does not exist."""
    return UserError(
        "no-such-file",
        f'path "{path}" of stream "{stream}" does not exist',
        place=place,
        detail="" if ":" in path or Path(path).is_absolute() else f'It is looked for in "{Path.cwd()}".',
        hint="A folder may be empty, but must be there: make it, or mend 'path' among the OPTIONS.",
    )
