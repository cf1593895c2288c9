"""The readers that FROM knows by name: one row for each, with the way in which its rows come.

Every other reader that Spark has, or that the user registered with Spark, can be named as well: Spark's streaming reads
it, or it is read whole for a relation that never changes. `READERS` feeds the checks of FROM, the error texts,
the shell's completion and `sources.inputs`, which connects a stream to its source. A new reader is a row here; one that
comes in a way of its own is also a `Way` and a class in `sources`.

This module imports no Spark, so that FROM is checked without a JVM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from headgate.catalog.entries import Connector, Relation, Stream
from headgate.packets.fields import FIELDS

Way: TypeAlias = Literal["push", "files", "stream", "whole"]
"""How rows come: handed over by the program, from files that the engine lists, by Spark's streaming, or read once."""

FILES_AT_ONCE = 1_000
"""How many files one job reads."""

ROWS_A_BATCH = 500_000
"""How many records of Kafka a micro-batch takes."""

OF_FILE_STREAMS = (
    "maxfilespertrigger",
    "maxbytespertrigger",
    "latestfirst",
    "maxfileage",
    "cleansource",
    "sourcearchivedir",
    "filenameonly",
    "maxcachedfiles",
    "discardcachedinputratio",
)
"""Options that only Spark's own stream of files has: naming one of them asks for that stream."""


@dataclass(frozen=True, slots=True)
class ReaderKind:
    """A reader: its name, how its rows come, and the options that it gets unless the user says otherwise."""

    name: str
    way: Way = "stream"
    defaults: Mapping[str, str] = field(default_factory=dict)
    no_stream: str = ""
    """Why a stream cannot be read from it; nothing if it can."""

    fields: tuple[str, ...] = ()
    """The names that its columns can have, if they are known beforehand."""


READERS: dict[str, ReaderKind] = {
    kind.name: kind
    for kind in (
        *(
            ReaderKind(name, "files", {"maxFilesPerTrigger": str(FILES_AT_ONCE)})
            for name in ("json", "csv", "parquet", "orc", "text", "avro", "xml")
        ),
        ReaderKind("pcap", "files", {"maxFilesPerTrigger": str(FILES_AT_ONCE)}, fields=tuple(FIELDS)),
        ReaderKind("interface", fields=tuple(FIELDS)),
        ReaderKind("memory", "push"),
        # all that is there, and a backlog in pieces
        ReaderKind("kafka", defaults={"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(ROWS_A_BATCH)}),
        ReaderKind("delta"),
        ReaderKind("rate"),
        ReaderKind("socket"),
        ReaderKind("jdbc", "whole", no_stream="a table behind JDBC is no stream: Spark can only read it whole"),
    )
}

STREAMED = tuple(kind.name for kind in READERS.values() if not kind.no_stream)
"""The readers that a stream can name, as hints and the shell offer them."""


def reader(format: str) -> ReaderKind:
    """The row of a reader. One without a row is read by Spark's streaming."""
    return READERS.get(format.lower()) or ReaderKind(format)


def way(stream: Stream | Relation) -> Way:
    """How the rows of a stream or relation come."""
    if stream.connector is None:
        return "push"
    own = reader(stream.connector.format).way
    fixed = stream.domain is None
    if own == "files":
        return "stream" if not fixed and asks_for_file_stream(stream.connector) else "files"
    if own == "push":
        return "push"
    return "whole" if fixed else "stream"


def asks_for_file_stream(connector: Connector) -> bool:
    """True if an option asks for Spark's own stream of files instead of the engine's list of them."""
    return any(option.lower() in OF_FILE_STREAMS for option in connector.options)
