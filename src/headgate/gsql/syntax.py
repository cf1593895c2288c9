"""The syntax trees of GSQL, each with its place in the user's text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Span: TypeAlias = tuple[int, int]
"""The first position of a piece of text and the one behind its last."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal; `kind` is its GSQL type."""

    kind: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Attribute:
    """The name of an attribute, perhaps with the table that it belongs to."""

    table: str
    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name`."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Unary:
    """An operator before an expression: + - ! ~ or NOT."""

    operator: str
    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Binary:
    """An operator between two expressions: arithmetic, bits, comparisons, AND and OR."""

    operator: str
    left: Expression
    right: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class OneOf:
    """`e IN [literals]`."""

    operand: Expression
    values: tuple[Constant, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    """A function, an aggregate, a superaggregate (`count$(*)`) or a predicate (`pred[args]`)."""

    name: str
    arguments: tuple[Expression, ...]
    span: Span
    star: bool = False
    of_supergroup: bool = False
    predicate: bool = False


Expression: TypeAlias = Constant | Attribute | Parameter | Unary | Binary | OneOf | Call


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the select list."""

    value: Expression
    name: str | None


@dataclass(frozen=True, slots=True)
class Key:
    """A group-by variable: an expression and its name."""

    value: Expression
    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class KeySets:
    """ROLLUP, CUBE or GROUPING_SETS: several sets of group-by variables."""

    kind: Literal["ROLLUP", "CUBE", "GROUPING_SETS"]
    sets: tuple[tuple[Key, ...], ...]
    """One set for ROLLUP and CUBE."""

    span: Span


@dataclass(frozen=True, slots=True)
class Table:
    """An entry of FROM: a protocol on an interface, on a set of interfaces or on all of them, or a query or stream."""

    name: str
    interface: str | None
    is_set: bool
    alias: str
    span: Span


JoinKind: TypeAlias = Literal["", "INNER", "OUTER", "LEFT_OUTER", "RIGHT_OUTER"]


@dataclass(frozen=True, slots=True)
class Select:
    """A selection, an aggregation or a join."""

    items: tuple[Item, ...]
    join: JoinKind
    tables: tuple[Table, ...]
    where: Expression | None
    keys: tuple[Key | KeySets, ...]
    supergroup: tuple[Attribute, ...]
    having: Expression | None
    span: Span
    group_span: Span | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """`MERGE R.t : S.t FROM ...`."""

    attributes: tuple[Attribute, ...]
    tables: tuple[Table, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ParameterDeclaration:
    """A parameter of a PARAM section, with its GSQL type and its first value."""

    name: str
    kind: str
    value: Constant | None
    span: Span


@dataclass(frozen=True, slots=True)
class Query:
    """A query with its DEFINE and PARAM sections."""

    body: Select | Merge
    defined: dict[str, str] = field(hash=False)
    """By lower-case name: what DEFINE says."""

    parameters: tuple[ParameterDeclaration, ...]
    span: Span
    explained: bool = False
    """Whether EXPLAIN stands before it: it is shown, and not registered."""

    into: Span | None = None
    """INTO and a sink, as in CQL."""


@dataclass(frozen=True, slots=True)
class ProtocolField:
    """A field of a schema; `properties` are the words in parentheses behind it, each with its number if it has one."""

    kind: str
    name: str
    access: str
    """The name of the function that takes it from a packet; nothing if there is none."""

    properties: tuple[tuple[str, str, Span], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Schema:
    """`PROTOCOL name (base) { fields }`."""

    name: str
    bases: tuple[tuple[str, Span], ...]
    fields: tuple[ProtocolField, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class InterfaceSetDefinition:
    """`CREATE INTERFACE SET name OF a, b`."""

    name: str
    interfaces: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class InterfaceStream:
    """`CREATE STREAM interface.PROTOCOL` and the clauses of CQL behind it, which tell where its rows come from."""

    name: str
    protocol: str
    clauses: Span
    span: Span


Statement: TypeAlias = Query | Schema | InterfaceSetDefinition | InterfaceStream
