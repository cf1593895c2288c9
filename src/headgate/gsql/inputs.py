"""What the tables of a GSQL query stand for: streams of protocols on interfaces, other queries, streams and views."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Relation, Stream, View
from headgate.catalog.protocols import Protocol
from headgate.errors import Place, UserError, nearest, quoted
from headgate.gsql.parser import joined_name
from headgate.gsql.syntax import Table
from headgate.gsql.types import gsql_type
from headgate.plan.monotone import Chain, kind_of
from headgate.plan.nodes import Node, Scan, Unbounded, Window, is_stream
from headgate.plan.temporal import attribute
from headgate.sql import name as sql_name


@dataclass(frozen=True, slots=True)
class Source:
    """A table of FROM: its alias, the streams or views that it merges, and the GSQL types of its attributes."""

    alias: str
    names: tuple[str, ...]
    kinds: dict[str, tuple[str, str]]
    """By attribute in lower case: its name as it was first written, and its type."""

    plans: tuple[Node, ...]
    stamp: str | None
    """The attribute that is the time of a tuple; None if it has no name."""

    @property
    def attributes(self) -> list[str]:
        """The names of its attributes."""
        return [name for name, _ in self.kinds.values()]

    def ordered_in_time(self, attribute_name: str) -> bool:
        """Whether time itself tells when a value of the attribute is past, in each of the streams."""
        return all(_follows_time(plan, attribute_name.lower()) for plan in self.plans)


def named(identifier: str) -> str:
    """A name as it stands in CQL."""
    return identifier if identifier.lower() == "time" else sql_name(identifier)


def _follows_time(plan: Node, column: str) -> bool:
    if not is_stream(plan):
        return False
    kind = next((kind_of(one.type) for one in plan.columns if one.name.lower() == column), None)
    found = attribute(Window(plan, Unbounded()), Chain(column, (), kind)) if kind is not None else None
    return found is not None and bool(found.closers)


def source(table: Table, catalog: Catalog, place: Place) -> Source:
    """The source that a table of FROM names; an error if there is none."""
    names = _streams(table, catalog, place)
    entries = [catalog.source(name, place) for name in names]
    plans: tuple[Node, ...] = tuple(plan for entry in entries if (plan := _plan(entry)) is not None)
    for name, entry in zip(names, entries, strict=True):
        plan = _plan(entry)
        if plan is None or not is_stream(plan):
            raise UserError(
                "wrong-kind",
                f'"{name}" is a relation, and GSQL reads streams',
                place=place,
                hint=f"CREATE VIEW {name}_stream AS ISTREAM(SELECT * FROM {name}), in CQL, and read that.",
            )
    protocol = catalog.protocols.get(table.name.lower())
    stamp = plans[0].timestamp if isinstance(plans[0], Scan) else None
    return Source(table.alias, tuple(names), _kinds(entries[0], plans[0], protocol), plans, stamp)


def _streams(table: Table, catalog: Catalog, place: Place) -> list[str]:
    """The names of the streams that a table stands for."""
    if table.interface is None:
        if catalog.has_source(table.name) or table.name.lower() not in catalog.protocols:
            return [table.name]
        found = [stream.name for stream in catalog.streams.values() if stream.protocol == table.name.lower()]
        if found:
            return found
        raise UserError(
            "no-such-stream",
            f'no stream has protocol "{table.name}"',
            place=place,
            hint=f"CREATE STREAM eth0.{table.name} FROM csv OPTIONS ('path' = 'folder').",
        )
    members: tuple[str, ...] = (table.interface,)
    known = catalog.interface_sets.get(table.interface.lower())
    if known is not None and (table.is_set or not catalog.has_source(joined_name([table.interface, table.name]))):
        members = known.interfaces
    for member in members:
        if not catalog.has_source(joined_name([member, table.name])):
            raise _no_interface(table, member, catalog, place)
    return [joined_name([member, table.name]) for member in members]


def _no_interface(table: Table, interface: str, catalog: Catalog, place: Place) -> UserError:
    if table.name.lower() not in catalog.protocols:
        known = [one.name for one in catalog.protocols.values()]
        detail = f"There are {quoted(known)}." if known else "No protocol is defined."
        hint = nearest(table.name, known)
        return UserError(
            "no-such-protocol", f'protocol "{table.name}" does not exist', place=place, detail=detail, hint=hint
        )
    ending = f"_{table.name.lower()}"
    known = [stream.name[: -len(ending)] for stream in catalog.streams.values() if stream.name.lower().endswith(ending)]
    return UserError(
        "no-such-interface",
        f'interface "{interface}" has no stream of protocol "{table.name}"',
        place=place,
        detail=f"Interfaces that have one are {quoted(known)}." if known else "No interface has one.",
        hint=nearest(interface, known)
        or f"CREATE STREAM {interface}.{table.name} FROM csv OPTIONS ('path' = 'folder').",
    )


def _plan(entry: Stream | Relation | View) -> Node | None:
    match entry:
        case Stream():
            return Scan(entry.name, entry.columns, entry.domain, entry.timestamp, entry.source)
        case View():
            return entry.plan
        case Relation():
            return None


def _kinds(entry: Stream | Relation | View, plan: Node, protocol: Protocol | None) -> dict[str, tuple[str, str]]:
    """The attributes of a table with their GSQL types: those of the protocol or of the GSQL query, else by SQL type."""
    known: dict[str, str] = {}
    if isinstance(entry, View) and entry.gsql is not None:
        known = dict(entry.gsql.kinds)
    elif protocol is not None and isinstance(entry, Stream) and entry.protocol == protocol.name.lower():
        known = {one.name.lower(): one.kind for one in protocol.attributes}
    return {
        column.name.lower(): (column.name, known.get(column.name.lower()) or gsql_type(column.type))
        for column in plan.columns
    }
