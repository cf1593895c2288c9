"""FROM: which reader a stream or relation comes from, how its values are decoded, and which formats a script needs of Spark."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headgate.catalog import Catalog, Connector
from headgate.cql import dialect
from headgate.errors import Place, UserError, nearest, quoted

SOURCES = ("json", "csv", "parquet", "orc", "text", "avro", "xml", "memory", "kafka", "delta", "rate", "socket")
"""What is known by name; every other streaming source that Spark has, or that the user registered, can be named as well."""

PAYLOADS = ("json", "csv", "avro")


def read_from(
    tree: exp.Expression, streaming: bool, catalog: Catalog, place: Callable[[exp.Expression], Place | None]
) -> Connector | None:
    """Where FROM points: any reader that Spark has, and for what changes with time, any streaming one."""
    given, payload = tree.args.get("format"), tree.args.get("payload")
    if payload is not None and (given is None or given.name.lower() == "memory" or not streaming):
        raise UserError("no-source", "VALUE AS decodes the values of a streaming source, and there is none", place=place(payload))
    if given is None:
        return None
    name = given.name if given.name.lower() not in SOURCES else given.name.lower()
    if streaming and name.lower() == "jdbc":
        raise UserError(
            "no-such-source", "a table behind JDBC is no stream: Spark can only read it whole", place=place(given),
            hint="CREATE RELATION without TIMESTAMP BY reads it once.",
        )  # fmt: skip
    if catalog.permissions is not None:
        places = {entry.expressions[0].name.lower(): place(entry.expressions[1]) for entry in tree.args.get("options") or ()}
        catalog.permissions.check(name, "from", options(tree, "options"), places, place(given))
        catalog.permissions.check_payload(options(tree, "payload_options"), place(payload or given))
    if payload is None:
        return Connector(name, options(tree, "options"))
    if payload.name.lower() not in PAYLOADS:
        raise UserError(
            "no-such-format", f'values cannot be decoded as "{payload.name}"', place=place(payload),
            detail=f"There are {quoted(PAYLOADS)}.", hint=nearest(payload.name, PAYLOADS),
        )  # fmt: skip
    return Connector(name, options(tree, "options"), Connector(payload.name.lower(), options(tree, "payload_options")))


def options(tree: exp.Expression, which: str) -> dict[str, str]:
    return {entry.expressions[0].name: entry.expressions[1].name for entry in tree.args.get(which) or ()}


def formats(text: str, origin: str = "") -> set[str]:
    """The formats that a script reads and writes, without carrying it out: what Spark must have when it is started.

    Of the databases behind JDBC only PostgreSQL is known to us; the driver of another one is the user's affair.
    """
    found: set[str] = set()
    for tree in dialect.parse(text, origin):
        given = [tree.args.get(which) for which in ("format", "payload")]
        named = {one.name.lower() for one in given if isinstance(one, exp.Identifier)}
        if "jdbc" not in named or options(tree, "options").get("url", "").startswith("jdbc:postgresql:"):
            found |= named
    return found
