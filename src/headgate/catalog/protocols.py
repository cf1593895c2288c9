"""What GSQL adds to a catalog: protocols, sets of interfaces, and parameters of queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from headgate.sql import Sql
from headgate.ticks import Tick


@dataclass(frozen=True, slots=True)
class ProtocolAttribute:
    """A field of a protocol: its GSQL type, its order, and by how much that may be violated."""

    name: str
    kind: str
    order: Literal["increasing", "decreasing"] | None = None
    band: int | None = None
    """By how much a value may lie behind the largest before it; None if it may not."""

    access: str = ""
    """The function that takes it from a packet, as the schema names it."""


@dataclass(frozen=True, slots=True, repr=False)
class Protocol:
    """A schema of tuples, which streams on interfaces have."""

    name: str
    attributes: tuple[ProtocolAttribute, ...]

    def __repr__(self) -> str:
        return f"Protocol({self.name}: {', '.join(one.name for one in self.attributes)})"

    @property
    def timestamp(self) -> ProtocolAttribute | None:
        """The attribute that is the time of a tuple: the first that increases."""
        return next((one for one in self.attributes if one.order == "increasing"), None)


@dataclass(frozen=True, slots=True)
class InterfaceSet:
    """Interfaces that a query reads together."""

    name: str
    interfaces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParameterValue:
    """A parameter of a query: its type in SQL, and which value it has from which instant on."""

    query: str
    name: str
    type: str
    changes: tuple[tuple[Tick | None, Sql], ...]
    """Instants in order, the first of them None, each with a value as a literal of SQL."""

    @property
    def full_name(self) -> str:
        return f"{self.query}.{self.name}".lower()

    @property
    def value(self) -> Sql:
        """The value that counts from the last change on."""
        return self.changes[-1][1]

    def changed(self, instant: Tick, value: Sql) -> ParameterValue:
        """The parameter with another value from an instant on."""
        kept = tuple((since, one) for since, one in self.changes if since is None or since < instant)
        return replace(self, changes=(*kept, (instant, value)))


@dataclass(frozen=True, slots=True)
class Gsql:
    """A query or view as it was written in GSQL: its text, the types of its columns, the names that DEFINE gives."""

    text: str
    kinds: Mapping[str, str] = field(default_factory=dict, hash=False)
    """By column in lower case: its GSQL type."""

    defined: tuple[str, ...] = ()
    """What DEFINE gives, in lower case."""
