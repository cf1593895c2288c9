"""PROTOCOL schemas, what they inherit, the orders of their fields, and streams of protocols on interfaces."""

from __future__ import annotations

from headgate.catalog.catalog import Catalog
from headgate.catalog.protocols import Protocol, ProtocolAttribute
from headgate.errors import Place, UserError, nearest, quoted
from headgate.gsql.inputs import named
from headgate.gsql.refused import PROPERTIES, refused
from headgate.gsql.syntax import InterfaceStream, ProtocolField, Schema, Span
from headgate.gsql.types import TYPES
from headgate.gsql.written import Written, written
from headgate.plan.monotone import kind_of
from headgate.sql import Order

INCREASING = ("increasing", "strictly_increasing", "banded_increasing")
DECREASING = ("decreasing", "strictly_decreasing")
PHYSICAL = ("required", "low_cardinality", "snap_len", "needs", "subtype", "nonrepeating")
"""What a schema says of packets and of the work to read them: it changes no answer."""


def protocol(tree: Schema, text: str, catalog: Catalog, origin: str) -> Protocol:
    """The protocol that a schema defines: the fields of those it inherits from, then its own."""
    found: dict[str, ProtocolAttribute] = {}
    for base, span in tree.bases:
        known = catalog.protocols.get(base.lower())
        if known is None:
            names = [one.name for one in catalog.protocols.values()]
            raise UserError(
                "no-such-protocol",
                f'protocol "{base}" does not exist',
                place=Place(text, *span, origin),
                detail=f"There are {quoted(names)}." if names else "No protocol is defined.",
                hint=nearest(base, names),
            )
        found |= {one.name.lower(): one for one in known.attributes}
    own: set[str] = set()
    for field in tree.fields:
        place = Place(text, *field.span, origin)
        if field.name.lower() in own:
            raise UserError("name-taken", f'field "{field.name}" stands twice', place=place)
        if field.name.startswith("_"):
            raise UserError(
                "bad-name",
                f'field "{field.name}" begins with an underscore',
                place=place,
                detail="Such names are headgate's own.",
            )
        own.add(field.name.lower())
        found[field.name.lower()] = _attribute(field, text, origin)
    if not found:
        raise UserError("syntax", f'protocol "{tree.name}" has no fields', place=Place(text, *tree.span, origin))
    return Protocol(tree.name, tuple(found.values()))


def _attribute(field: ProtocolField, text: str, origin: str) -> ProtocolAttribute:
    kind, place = field.kind.lower(), Place(text, *field.span, origin)
    if kind not in TYPES:
        raise UserError(
            "wrong-type",
            f'field "{field.name}" has type "{field.kind}", which GSQL does not have',
            place=place,
            detail=f"Types are {quoted(TYPES)}.",
            hint=nearest(kind, TYPES),
        )
    if field.access.lower() in (*INCREASING, *DECREASING):
        raise UserError(
            "syntax",
            f'the order of field "{field.name}" stands in parentheses',
            place=place,
            hint=f"{field.kind} {field.name} ({field.access.lower()});",
        )
    words = {word: (amount, span) for word, amount, span in field.properties}
    ordered = [word for word in words if word in (*INCREASING, *DECREASING)]
    for word, (_, span) in words.items():
        _check_property(word, Place(text, *span, origin), bool(ordered))
    if not ordered:
        return ProtocolAttribute(field.name, kind, access=field.access)
    word, at = ordered[0], Place(text, *words[ordered[0]][1], origin)
    if len(ordered) > 1:
        raise UserError("syntax", f'field "{field.name}" has two orders', place=at)
    if kind_of(TYPES[kind]) is None:
        raise UserError(
            "wrong-type",
            f'field "{field.name}" is {kind} and cannot be {word}',
            place=at,
            detail="An ordered field is a whole number or a timeval.",
        )
    order: Order = "increasing" if word in INCREASING else "decreasing"
    return ProtocolAttribute(field.name, kind, order, _band(word, words[word][0], at), field.access)


def _check_property(word: str, place: Place, is_ordered: bool) -> None:
    if word in PROPERTIES and not (word == "nonrepeating" and is_ordered):
        raise refused(*PROPERTIES[word], place)
    if word not in (*INCREASING, *DECREASING, *PHYSICAL):
        raise UserError(
            "no-such-property",
            f'there is no property "{word}" of fields',
            place=place,
            detail=f"Orders are {quoted((*INCREASING, *DECREASING))}.",
            hint=nearest(word, (*INCREASING, *DECREASING, *PHYSICAL)),
        )


def _band(word: str, amount: str, place: Place) -> int | None:
    if word != "banded_increasing":
        if amount:
            raise UserError(
                "syntax", f"{word} takes no number", place=place, hint=f"banded_increasing {amount}, if it has a band."
            )
        return None
    if not amount.isdigit():
        raise UserError(
            "syntax",
            "banded_increasing needs the width of the band",
            place=place,
            hint="banded_increasing 30: a value is at most 30 below the largest before it.",
        )
    return int(amount)


def stream(tree: InterfaceStream, text: str, catalog: Catalog, origin: str) -> Written:
    """`CREATE STREAM` in CQL for a protocol on an interface, with the clauses that say where its rows come from."""
    place = Place(text, *tree.span, origin)
    known = catalog.protocols.get(tree.protocol.lower())
    if known is None:
        names = [one.name for one in catalog.protocols.values()]
        raise UserError(
            "no-such-protocol",
            f'protocol "{tree.protocol}" does not exist',
            place=place,
            detail=f"There are {quoted(names)}." if names else "No protocol is defined.",
            hint=nearest(tree.protocol, names) or f"PROTOCOL {tree.protocol} {{ uint time (increasing); ... }}",
        )
    stamp = known.timestamp
    clauses = text[slice(*tree.clauses)]
    columns = []
    for one in known.attributes:
        if one.band is not None and one is not stamp:
            raise refused(
                f'the band of "{one.name}", which is not the time of the protocol',
                "Put it before the other increasing fields, or leave the band out.",
                place,
            )
        order = f" {one.order.upper()}" if one.order is not None and one is not stamp else ""
        columns.append(f"{named(one.name)} {TYPES[one.kind]}{order}")
    stamped = f" TIMESTAMP BY {named(stamp.name)}" if stamp is not None else " TIMESTAMP LATENT"
    upper = clauses.upper().split()
    if "TIMESTAMP" in upper:
        stamped = ""
    band = f" DISORDER {_length(stamp)}" if stamp is not None and stamp.band and "DISORDER" not in upper else ""
    return written(
        Written(f"CREATE STREAM {named(tree.name)}").at(tree.span),
        f" ({', '.join(columns)}){stamped}{band}",
        _as_written(clauses, tree.clauses),
    )


def _length(stamp: ProtocolAttribute) -> str:
    return f"{stamp.band} SECONDS" if TYPES[stamp.kind] == "TIMESTAMP" else str(stamp.band)


def _as_written(clauses: str, span: Span) -> Written:
    """Words of the user's that stay as they are, each word with its place."""
    places, position = [], 0
    for word in clauses.split():
        position = clauses.index(word, position)
        places.append((position, position + len(word), (span[0] + position, span[0] + position + len(word))))
        position += len(word)
    return Written(clauses, tuple(places))


def clauses_as_written(text: str, span: Span) -> Written:
    """A part of the user's text that is CQL already."""
    return _as_written(text[slice(*span)], span)
