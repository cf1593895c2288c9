"""Packets for a stream: the options of `pcap` and `interface`, and Spark's frames of the declared fields.

Both are data sources of our own (see `headgate.packets.sources`), registered with the session that reads them. They are
asked for the fields that the stream declares and for no others, in the fields' own types; `payload.by_name` casts them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from headgate.catalog.entries import Connector, Relation, Stream
from headgate.catalog.readers import OF_FILE_STREAMS
from headgate.errors import UserError, nearest, quoted
from headgate.packets import ring
from headgate.packets.fields import FIELDS, Depth, depth
from headgate.packets.records import check
from headgate.packets.sources import FILES, PROMISCUOUS, SNAP_LENGTH, SPOOL, SPOOL_BYTES, Interface, Pcap, local
from headgate.sources.inlet import Inlet
from headgate.sql import BIGINT, STRING, Column, Sql, checked_type, ddl

CHOOSING = ("path", "pathGlobFilter", "recursiveFileLookup", "modifiedBefore", "modifiedAfter")
"""The options of capture files: which of them are read."""

OF_INTERFACES = ("interface", SNAP_LENGTH, PROMISCUOUS, SPOOL_BYTES)
LEAST_SNAP_LENGTH = 64


def capture_rows(session: SparkSession, inlet: Inlet, paths: list[str]) -> DataFrame:
    """All packets of capture files, with the declared fields, `_raw`, `_file` and `_start`.

    A file that is no capture is refused before a job begins.
    """
    for path in paths:
        check(local(path))
    session.dataSource.register(Pcap)
    schema = fields_of(inlet, Column("_file", STRING), Column("_start", BIGINT))
    return session.read.format("pcap").schema(schema).option(FILES, json.dumps(paths)).load()


def check_capture_options(connector: Connector) -> None:
    """Refuse options that capture files do not have."""
    _check_known(connector, (*CHOOSING, *OF_FILE_STREAMS))


def interface_rows(session: SparkSession, inlet: Inlet, connector: Connector, spool: Path) -> DataFrame:
    """The packets of a live interface as a streaming frame, with the declared fields and `_raw`."""
    _check_known(connector, OF_INTERFACES)
    said = {key.lower(): value for key, value in connector.options.items()}
    if "interface" not in said:
        raise UserError(
            "bad-option",
            f'stream "{inlet.stream.name}" does not say from which interface it is read',
            hint="OPTIONS ('interface' = 'eth0')",
        )
    _check_number(said, SNAP_LENGTH, LEAST_SNAP_LENGTH)
    _check_number(said, SPOOL_BYTES, ring.BLOCK_BYTES)
    if said.get(PROMISCUOUS, "false").lower() not in ("true", "false"):
        raise UserError("bad-option", f"'{PROMISCUOUS}' = '{said[PROMISCUOUS]}' is neither 'true' nor 'false'")
    ring.check(said["interface"])
    session.dataSource.register(Interface)
    reader = session.readStream.format("interface").schema(fields_of(inlet)).options(**said)
    return reader.option(SPOOL, str(spool)).load()


def fields_of(inlet: Inlet, *others: Column) -> Sql:
    """The declared fields with their own types, `_raw`, and other columns, for Spark."""
    wanted = [FIELDS[column.name.lower()] for column in inlet.stream.columns if column.name.lower() in FIELDS]
    check_dns(inlet.stream)
    return ddl([*(Column(field.name, checked_type(field.type)) for field in wanted), Column("_raw", STRING), *others])


def check_dns(stream: Stream | Relation) -> None:
    """Refuse a stream with fields of DNS if the library that decodes them is not there."""
    fields = [column.name.lower() for column in stream.columns if column.name.lower() in FIELDS]
    if depth(fields) is not Depth.DNS:
        return
    try:
        import dpkt  # noqa: F401
    except ImportError:
        raise UserError(
            "no-connector",
            f'stream "{stream.name}" has fields of DNS, and these are decoded by dpkt, which is not installed',
            hint="pip install headgate[packets]",
        ) from None


def _check_known(connector: Connector, known: Collection[str]) -> None:
    for option in connector.options:
        if option.lower() not in {one.lower() for one in known}:
            raise UserError(
                "bad-option",
                f'option "{option}" of {connector.format} is not known',
                detail=f"There are {quoted(known)}.",
                hint=nearest(option, known),
            )


def _check_number(said: Mapping[str, str], option: str, least: int) -> None:
    value = said.get(option, str(least))
    if not value.isdigit() or int(value) < least:
        raise UserError("bad-option", f"'{option}' = '{value}' is no number from {least:,} on")
