"""Permissions: which connectors and places the texts of one engine may use.

An operator's script may use every connector. An engine or a single call that was given `allow` takes texts from people
who may only ask: they reach the connectors and places that are named, and nothing else.

    parquet=/data/in,kafka        files below /data/in in Parquet, read and written; any Kafka broker
    from:csv=/data/in             only read
    webhook=https://example.org/hooks
    nothing                       no connector at all

Which functions a text may call is another matter, for it does not depend on who asks: see `sql.functions`. This module
decides; it reads no text and starts nothing.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from headgate.errors import Place, UserError, quoted

# connectors

Direction: TypeAlias = Literal["from", "into"]

FREE = ("memory", "console")
"""Connectors that touch nothing but the engine itself."""

READING = (
    "path",
    "header",
    "sep",
    "delimiter",
    "quote",
    "escape",
    "comment",
    "encoding",
    "charset",
    "lineSep",
    "nullValue",
    "nanValue",
    "emptyValue",
    "positiveInf",
    "negativeInf",
    "dateFormat",
    "timestampFormat",
    "timestampNTZFormat",
    "locale",
    "mode",
    "multiLine",
    "ignoreLeadingWhiteSpace",
    "ignoreTrailingWhiteSpace",
    "maxColumns",
    "maxCharsPerColumn",
    "allowComments",
    "primitivesAsString",
    "allowUnquotedFieldNames",
    "allowSingleQuotes",
    "allowNumericLeadingZeros",
    "pathGlobFilter",
    "recursiveFileLookup",
    "modifiedBefore",
    "modifiedAfter",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "latestFirst",
    "rowTag",
    "wholetext",
    "compression",
)
DELIVERING = ("deliver", "key", "flush_rows", "existing", "ordered", "reflects")
WRITING = (*DELIVERING, *READING, "ignoreNullFields", "quoteAll")
OPTIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("json", "csv", "parquet", "orc", "text", "avro", "xml", "delta"), (*READING, *WRITING)),
    "kafka": (
        *DELIVERING,
        "kafka.bootstrap.servers",
        "subscribe",
        "topic",
        "startingOffsets",
        "endingOffsets",
        "startingTimestamp",
        "failOnDataLoss",
        "maxOffsetsPerTrigger",
        "minOffsetsPerTrigger",
        "maxTriggerDelay",
        "minPartitions",
        "includeHeaders",
    ),
    "jdbc": (
        *DELIVERING,
        "url",
        "dbtable",
        "user",
        "password",
        "batchsize",
        "fetchsize",
        "queryTimeout",
        "partitionColumn",
        "lowerBound",
        "upperBound",
        "numPartitions",
    ),
    "webhook": (*DELIVERING, "url", "rows", "timeout"),
    "callback": (*DELIVERING, "function"),
    "rate": ("rowsPerSecond", "rampUpTime", "numPartitions"),
    "socket": ("host", "port", "includeTimestamp"),
    "pcap": ("path", "pathGlobFilter", "recursiveFileLookup", "modifiedBefore", "modifiedAfter"),
    "interface": ("interface", "snap_length", "promiscuous", "spool_bytes"),
}
"""What texts that are not trusted may say of each connector. Whatever can read or move other files, load classes or
run statements of a database is not among it. Other connectors take no options from such texts, for nobody has
looked at theirs."""

PAYLOAD_OPTIONS = tuple(option for option in READING if option not in ("path", "pathGlobFilter"))
HEADERS = ("authorization", "accept", "user-agent", "traceparent")
"""Headers of a webhook that such texts may set, beside those that begin with X-."""

ADDRESS = {
    **dict.fromkeys(("json", "csv", "parquet", "orc", "text", "avro", "xml", "delta", "pcap"), "path"),
    "interface": "interface",
    "kafka": "kafka.bootstrap.servers",
    "jdbc": "url",
    "webhook": "url",
    "callback": "function",
    "socket": "host",
}
"""The option that says where a connector reads or writes."""

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
GLOB = re.compile(r"[*?\[\]{}\\,]")
GRANT = re.compile(r"(?:(?P<way>from|into):)?(?P<connector>[A-Za-z_][\w.-]*)(?:=(?P<at>.+))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Grant:
    """One connector that may be used: in one direction or both, at one place or at any."""

    connector: str
    direction: Direction | None = None
    at: str | None = None

    def __str__(self) -> str:
        way = f"{self.direction}:" if self.direction else ""
        return f"{way}{self.connector}{'=' + self.at if self.at is not None else ''}"


@dataclass(frozen=True, slots=True)
class Permissions:
    """What texts may use. Without grants it is everything that an operator may use."""

    grants: tuple[Grant, ...] | None = None
    console: bool = True
    """Whether results may be printed where the engine runs, without a grant."""

    @property
    def restricted(self) -> bool:
        """True if only what was granted may be used."""
        return self.grants is not None

    def check(
        self,
        connector: str,
        direction: Direction,
        options: Mapping[str, str],
        places: Mapping[str, Place | None],
        place: Place | None,
    ) -> None:
        """Refuse a connector, an option of it or a place that the texts may not use.

        `places` are those of the options, by name in lower case.
        """
        if self.grants is None or (connector.lower() in FREE and (self.console or connector.lower() != "console")):
            return
        connector, word = connector.lower(), "read from" if direction == "from" else "write into"
        granted = [one for one in self.grants if one.connector == connector and one.direction in (None, direction)]
        if not granted:
            given = f"It may use {quoted(map(str, self.grants))}." if self.grants else "It may use no connector."
            raise UserError(
                "not-allowed", f"this text may not {word} {connector}", place=place, detail=given, hint=HINT
            )
        known = {option.lower() for option in OPTIONS.get(connector, ())}
        for option in options:
            header = (
                option.lower().removeprefix("header.")
                if connector == "webhook" and option.lower().startswith("header.")
                else None
            )
            if header is not None and (header in HEADERS or header.startswith("x-")):
                continue
            if option.lower() not in known:
                raise UserError(
                    "not-allowed",
                    f'this text may not set option "{option}" of {connector}',
                    place=places.get(option.lower(), place),
                    hint=HINT,
                )
        address = ADDRESS.get(connector)
        said = next((value for option, value in options.items() if option.lower() == address), None)
        if said is None and any(one.at is None for one in granted):
            return
        if not any(one.at is None or (said is not None and within(connector, said, one.at)) for one in granted):
            raise UserError(
                "not-allowed",
                f"this text may not {word} {connector} there",
                place=places.get(address or "", place),
                detail=f"It may use {quoted(str(one) for one in granted)}.",
                hint=_globbed(connector, said) or HINT,
            )

    def check_payload(self, options: Mapping[str, str], place: Place | None) -> None:
        """Refuse an option of VALUE AS that restricted texts may not set."""
        known = {option.lower() for option in PAYLOAD_OPTIONS}
        for option in options if self.restricted else ():
            if option.lower() not in known:
                raise UserError(
                    "not-allowed", f'this text may not set option "{option}" of VALUE AS', place=place, hint=HINT
                )


HINT = "The operator decides: Engine(allow=...), headgate run --allow, headgate serve --allow."
EVERYTHING = Permissions()


def permissions(allow: Iterable[str] | str | Permissions | None) -> Permissions:
    """From texts such as "parquet=/data/in,kafka"; None allows everything an operator may."""
    if allow is None:
        return EVERYTHING
    if isinstance(allow, Permissions):
        return allow
    said = [part.strip() for text in ([allow] if isinstance(allow, str) else allow) for part in text.split(",")]
    return Permissions(tuple(_grant(part) for part in said if part and part.lower() != "nothing"))


def _grant(text: str) -> Grant:
    found = GRANT.fullmatch(text)
    if found is None:
        raise UserError(
            "bad-permission",
            f'"{text}" does not say what is allowed',
            hint="parquet=/data/in, from:csv=/data/in, or kafka",
        )
    connector, at = found["connector"].lower(), found["at"]
    if at is not None and connector not in ADDRESS:
        raise UserError("bad-permission", f'"{connector}" has no place to name', hint=f"Write {connector} alone.")
    if at is not None and ADDRESS[connector] == "path" and (GLOB.search(at) or ".." in at.split("/")):
        raise UserError(
            "bad-permission",
            f'"{at}" is not the name of a folder',
            hint="Name a folder; what lies below it is allowed.",
        )
    way: Direction | None = found["way"]  # type: ignore[assignment]
    return Grant(connector, way, at)


def within(connector: str, said: str, granted: str) -> bool:
    """True if an address that a text names lies within a granted one."""
    match ADDRESS[connector]:
        case "path":
            place, limit = _resolved(said), _resolved(granted)
            return (
                place is not None
                and limit is not None
                and (place == limit or place.startswith(limit.rstrip("/") + "/"))
            )
        case "kafka.bootstrap.servers":
            named = {server.strip().lower() for server in said.split(",")}
            return bool(named) and named <= {server.strip().lower() for server in re.split(r"[;\s]+", granted)}
        case "url" if connector == "webhook":
            return _below(said, granted)
        case _:
            return said == granted  # a JDBC address, a function, a host: what stands behind it can change all of it


def _resolved(path: str) -> str | None:
    """The folder that a path leads to, links followed; None if the text alone does not say it."""
    if GLOB.search(path) or any(not letter.isprintable() for letter in path) or not path.strip():
        return None
    scheme = SCHEME.match(path)
    if scheme is None:
        return os.path.realpath(path)
    if scheme.group().lower() != "file:":
        rest = path[scheme.end() :]
        clean = posixpath.normpath(rest)
        same = rest.startswith("//") and ".." not in rest.split("/") and "%" not in rest
        return f"{scheme.group().lower()}//{clean.lstrip('/')}" if same else None
    rest = path[scheme.end() :]
    if rest.startswith("//") and not rest.startswith("///"):
        return None  # file://host/...: a host, not a folder
    return os.path.realpath("/" + rest.lstrip("/")) if rest.startswith("/") else None


def _below(said: str, granted: str) -> bool:
    """True if an HTTP address has the granted host and port, and the granted path or one below it."""
    try:
        one, other = urlsplit(said), urlsplit(granted if "//" in granted else f"//{granted}")
        if other.scheme and one.scheme.lower() != other.scheme.lower():
            return False
        standard = {"http": 80, "https": 443}.get(one.scheme.lower())
        if (
            one.username is not None
            or one.password is not None
            or "\\" in said
            or any(ord(letter) <= 32 for letter in said)
        ):
            return False
        ports = (one.port or standard, other.port or standard)
    except ValueError:
        return False
    path, limit = one.path or "/", (other.path or "/").rstrip("/")
    plain = ".." not in path.split("/") and "%" not in path and "//" not in path
    return (
        (one.hostname or "").lower() == (other.hostname or "").lower()
        and ports[0] == ports[1]
        and plain
        and (path == (other.path or "/") or path.startswith(limit + "/"))
    )


def _globbed(connector: str, said: str | None) -> str:
    if said is not None and ADDRESS[connector] == "path" and GLOB.search(said):
        return "Name the folder without *, ?, [], {}, commas or backslashes; 'pathGlobFilter' chooses among its files."
    return ""
