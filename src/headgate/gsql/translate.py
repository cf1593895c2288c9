"""From one statement of GSQL to what it defines: a statement of CQL with the places of its pieces, or an entry of the
catalog that only GSQL knows.

    PROTOCOL, CREATE INTERFACE SET   entries of the catalog
    CREATE STREAM eth0.TCP           CREATE STREAM eth0_TCP (columns) TIMESTAMP BY time ...
    select, MERGE                    CREATE QUERY, CREATE VIEW (visibility 'internal') or EXPLAIN, and the query in CQL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from headgate.catalog.catalog import Catalog
from headgate.catalog.protocols import InterfaceSet, ParameterValue, Protocol
from headgate.errors import Place, UserError, nearest
from headgate.gsql import queries, schemas
from headgate.gsql.expressions import Scope, Value
from headgate.gsql.inputs import named
from headgate.gsql.parser import parse
from headgate.gsql.syntax import (
    InterfaceSetDefinition,
    InterfaceStream,
    ParameterDeclaration,
    Query,
    Schema,
    Span,
)
from headgate.gsql.types import NUMBERS, TYPES
from headgate.gsql.written import Written, written
from headgate.sql import Sql, checked_literal, literal

REWORDED = {
    "not-final": (
        "a group or a join of GSQL ends when an ordered attribute has passed it, and none does here",
        "Group by an increasing attribute, such as time/60 as tb; equate ordered attributes of both inputs of a join, "
        "such as R.time = S.time.",
    ),
    "nothing-final": (
        "an aggregate of GSQL needs group by, with an ordered attribute",
        "group by time/60 as tb",
    ),
}
"""Errors of CQL, by code, that speak of what GSQL writes in another way: the message and the hint."""


@dataclass(frozen=True, slots=True)
class InCql:
    """A statement of CQL that was made of one in GSQL."""

    cql: Written
    whole: Span
    name: str | None = None
    """The name of the query or view; None if it has none yet."""

    kinds: tuple[str, ...] = ()
    """The GSQL types of a query's columns."""

    protocol: str | None = None
    """The protocol of a stream, in lower case."""

    parameters: tuple[ParameterValue, ...] = ()
    defined: tuple[str, ...] = ()
    """What DEFINE gives, in lower case."""

    def moved(self, error: UserError, text: str, origin: str) -> UserError:
        """An error of the CQL statement as one of the GSQL statement."""
        if error.place is not None and error.place.text == self.cql.text:
            error.place = self.cql.placed(error.place, text, self.whole, origin)
        elif error.place is not None and error.place.text != text:
            error.place = Place(text, *self.whole, origin)
        if error.code not in REWORDED or not self.kinds:
            return error
        message, hint = REWORDED[error.code]
        return UserError(error.code, message, place=error.place, detail="", hint=hint)


Translated: TypeAlias = InCql | Protocol | InterfaceSet


def translated(text: str, start: int, end: int, catalog: Catalog, origin: str = "") -> Translated:
    """What one statement of GSQL amounts to."""
    match parse(text, start, end, origin):
        case Schema() as schema:
            return schemas.protocol(schema, text, catalog, origin)
        case InterfaceSetDefinition(name, interfaces):
            return InterfaceSet(name, interfaces)
        case InterfaceStream() as stream:
            cql = schemas.stream(stream, text, catalog, origin)
            return InCql(cql, (start, end), stream.name, protocol=stream.protocol.lower())
        case Query() as query:
            return _query(query, text, (start, end), catalog, origin)


def _query(query: Query, text: str, whole: Span, catalog: Catalog, origin: str) -> InCql:
    name = query.defined.get("query_name")
    visibility = query.defined.get("visibility", "external").lower()
    if visibility not in ("external", "internal"):
        known = ("external", "internal")
        raise UserError(
            "bad-option",
            f'visibility "{visibility}" is neither external nor internal',
            place=Place(text, *query.span, origin),
            hint=nearest(visibility, known),
        )
    if query.parameters and name is None:
        raise UserError(
            "no-name",
            "a query with parameters needs a name",
            place=Place(text, *query.parameters[0].span, origin),
            hint="DEFINE { query_name 'q'; }",
        )
    parameters = tuple(_parameter(one, name or "", text, catalog, origin) for one in query.parameters)
    made = queries.translated(query, text, catalog, origin, name or "")
    into = written(" ", schemas.clauses_as_written(text, query.into)) if query.into is not None else Written("")
    if query.explained:
        cql = written("EXPLAIN ", made.cql)
    elif name is None:
        if visibility == "internal" or query.into is not None:
            raise UserError(
                "no-name",
                "a query that is internal, or that goes INTO a sink, needs a name",
                place=Place(text, *query.span, origin),
                hint="DEFINE { query_name 'q'; }",
            )
        cql = made.cql
    elif visibility == "internal":
        if query.into is not None:
            raise UserError("syntax", "an internal query has no INTO", place=Place(text, *query.into, origin))
        cql = written(f"CREATE VIEW {named(name)} AS ", made.cql)
    else:
        cql = written(f"CREATE QUERY {named(name)} AS ", made.cql, into)
    return InCql(cql, whole, name, made.kinds, parameters=parameters, defined=tuple(query.defined))


def _parameter(tree: ParameterDeclaration, query: str, text: str, catalog: Catalog, origin: str) -> ParameterValue:
    if tree.value is None:
        raise UserError(
            "no-value",
            f'parameter "{tree.name}" has no value to begin with',
            place=Place(text, *tree.span, origin),
            hint=f"{tree.name} {tree.kind} = 0;",
        )
    scope = Scope(text, origin, catalog, [])
    value = scope.as_address(tree.value, scope.constant(tree.value), Value(Written(""), tree.kind))
    if not _fits(value.kind, tree.kind):
        raise UserError(
            "wrong-type",
            f'parameter "{tree.name}" is {tree.kind}, and its value is {value.kind}',
            place=Place(text, *tree.value.span, origin),
        )
    return ParameterValue(query, tree.name, TYPES[tree.kind], ((None, checked_literal(value.text.text)),))


def _fits(given: str, wanted: str) -> bool:
    """Whether a literal of a type can be the value of a parameter of another."""
    if wanted in NUMBERS and given in NUMBERS:
        return (given == "bool") == (wanted == "bool") and (given != "float" or wanted == "float")
    return TYPES.get(given) == TYPES[wanted]


def sql_value(value: object, wanted: str, place: Place | None = None) -> Sql:
    """A value from Python as a literal of a parameter's SQL type."""
    if wanted == "BOOLEAN" and isinstance(value, bool):
        return Sql("TRUE") if value else Sql("FALSE")
    if wanted in ("INT", "BIGINT") and isinstance(value, int) and not isinstance(value, bool):
        return Sql(f"{value}")
    if wanted == "DOUBLE" and isinstance(value, int | float) and not isinstance(value, bool):
        return checked_literal(f"{float(value)!r}D")
    if wanted == "STRING" and isinstance(value, str):
        return literal(value)
    raise UserError("wrong-type", f"the parameter is {wanted}, and the value is {value!r}", place=place)
