"""CONSTRAINT: what a user declares of the arrival of a stream's tuples, checked and put into the catalog.

    CONSTRAINT together ON orders CLUSTERED BY customer WITHIN 10 TUPLES;
    CONSTRAINT rising ON orders ORDERED BY id WITHIN 3 TUPLES ON VIOLATION COUNT;
    CONSTRAINT known ON deliveries (order_id) REFERENCES orders (id) WITHIN 0 TUPLES;
    CONSTRAINT seen ON orders CLUSTERED BY customer DETECTED WITHIN 1000 TUPLES CONFIDENCE 0.999;

`plan.constraints` says what each of them means, and `plan.lives` what it means that k is detected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query, Stream, View
from headgate.cql import syntax
from headgate.errors import NotYet, Place, UserError, unknown
from headgate.plan.nodes import Constraint, Node, Scan, sources
from headgate.sql import Column
from headgate.sql.printer import printed

Places: TypeAlias = Callable[[exp.Expression], Place | None]
"""Gives the place of a part of the statement in the user's text."""

MOST = 10_000_000
"""The largest k: beyond that, so much is kept that a constraint saves nothing."""

FOLLOWED = 1_000
"""The largest k that is detected, if the statement names none."""

CONFIDENCE = "0.999"
"""How likely it is that a tuple keeps to a k that was detected, if the statement does not say."""


def declared(tree: syntax.CreateConstraint, catalog: Catalog, place: Places) -> Constraint:
    """Check a constraint and remember it; queries that are registered from now on use it."""
    if tree.name.lower() in catalog.constraints:
        raise UserError("name-taken", f'there is a constraint "{tree.name}" already', place=place(tree.this))
    stream = catalog.only_stream(tree.args["stream"].name, "a constraint", place(tree.args["stream"]))
    column = _column(stream, tree.args["column"], place)
    detected, within, policy = tree.args["detected"], tree.args["within"], tree.args["policy"]
    constraint = Constraint(
        tree.name,
        tree.args["kind"],
        stream.name,
        column.name,
        _tuples(within, place) if within is not None else FOLLOWED,
        detected is not None or (policy is not None and policy.name == "COUNT"),
        confidence=_confidence(tree.args["confidence"], place) if detected is not None else "",
    )
    if detected is not None:
        _refuse_promise(constraint, policy, place(detected), place)
    if constraint.kind == "references":
        other = catalog.only_stream(tree.args["other"].name, "REFERENCES", place(tree.args["other"]))
        referred = _column(other, tree.args["other_column"], place)
        if referred.type != column.type:
            raise UserError(
                "wrong-type",
                f'column "{column.name}" is {column.type}, and "{referred.name}" of stream "{other.name}" is '
                f"{referred.type}",
                place=place(tree.args["other_column"]),
                hint="A column refers to one of its own type.",
            )
        if other.domain is not stream.domain:
            raise UserError(
                "time-domains-differ",
                f'streams "{stream.name}" and "{other.name}" are over different kinds of time',
                place=place(tree.args["other"]),
                detail=f'"{stream.name}" has {stream.domain}, and "{other.name}" has {other.domain}.',
            )
        constraint = replace(constraint, other=other.name, other_column=referred.name)
    _refuse_contradiction(constraint, column, catalog, place(tree.args["column"]))
    catalog.quarantine.pop(("constraint", tree.name.lower()), None)
    catalog.constraints[constraint.name.lower()] = constraint
    catalog.shapes.clear()
    return constraint


def users(constraint: str, catalog: Catalog) -> list[str]:
    """The queries and views that rely on a constraint."""
    every: list[View | Query] = [*catalog.views.values(), *catalog.queries.values()]
    return [one.name for one in every if _relies(one.plan, constraint)]


def _relies(plan: Node, constraint: str) -> bool:
    found = (one for one in sources(plan) if isinstance(one, Scan))
    return any(constraint.lower() == own.name.lower() for scan in found for own in scan.constraints)


def _column(stream: Stream, written: exp.Expression, place: Places) -> Column:
    """The column of a stream; an error if it has none of that name, or one whose values cannot be compared."""
    found = next((one for one in stream.columns if one.name.lower() == written.name.lower()), None)
    if found is None:
        raise unknown("column", written.name, (one.name for one in stream.columns), place(written))
    if found.type.upper().startswith(("MAP", "VARIANT")):
        raise UserError(
            "wrong-type",
            f'values of column "{found.name}" cannot be compared: it is {found.type}',
            place=place(written),
        )
    return found


def _tuples(written: exp.Expression, place: Places) -> int:
    """The k of a constraint."""
    text = printed(written)
    k = int(text) if text.removeprefix("-").isdigit() else None
    if k is None or not 0 <= k <= MOST:
        raise UserError(
            "wrong-k",
            f"a constraint holds within a whole number of tuples from 0 to {MOST}, and not {text}",
            place=place(written),
            hint="WITHIN 0 TUPLES if it holds strictly.",
        )
    return k


def _confidence(written: exp.Expression | None, place: Places) -> str:
    """How likely it is that a tuple keeps to the k that is detected."""
    if written is None:
        return CONFIDENCE
    text = printed(written)
    known = Fraction(text) if isinstance(written, exp.Literal) and not written.is_string else None
    if known is None or not 0 < known < 1 or 1 / (1 - known) > MOST:
        raise UserError(
            "wrong-confidence",
            f"CONFIDENCE is a part of one, above 0 and at most 0.9999999, and not {text}",
            place=place(written),
            hint=f"Write CONFIDENCE {CONFIDENCE}: k is the largest distance of the last 999 tuples or more.",
        )
    return text


def _refuse_promise(
    constraint: Constraint, policy: exp.Expression | None, detected: Place | None, place: Places
) -> None:
    """Refuse what a constraint that is detected cannot do: be about references, or promise that it is never broken."""
    if constraint.kind == "references":
        raise NotYet(
            "REFERENCES with a k that is detected",
            place=detected,
            hint="Declare it: REFERENCES ... WITHIN k TUPLES.",
        )
    if policy is not None and policy.name == "FAIL":
        raise UserError(
            "constraints-differ",
            "a k that is detected follows the tuples that break it, so these are counted",
            place=place(policy),
            hint="ON VIOLATION COUNT, or declare k: WITHIN k TUPLES ON VIOLATION FAIL.",
        )


def _refuse_contradiction(constraint: Constraint, column: Column, catalog: Catalog, place: Place | None) -> None:
    """Refuse a constraint that contradicts the declared order of its column, or another constraint of its kind."""
    if constraint.kind == "ordered" and column.order == "decreasing":
        raise UserError(
            "constraints-differ",
            f'column "{column.name}" of stream "{constraint.stream}" was declared DECREASING, and cannot be ORDERED',
            place=place,
        )
    for other in catalog.constraints.values():
        about = (other.kind, other.stream, other.column, other.other, other.other_column)
        if about == (
            constraint.kind,
            constraint.stream,
            constraint.column,
            constraint.other,
            constraint.other_column,
        ):
            raise UserError(
                "constraints-differ",
                f'constraint "{other.name}" says of stream "{other.stream}" already: {other.promise}',
                place=place,
                hint=f"DROP CONSTRAINT {other.name} first.",
            )


def on_stream(stream: str, catalog: Catalog) -> tuple[Constraint, ...]:
    """The constraints on a stream, for the node that reads it; those that are detected unless that is switched off."""
    detection = catalog.settings.detection == "on"
    mine = (one for one in catalog.constraints.values() if one.stream.lower() == stream.lower())
    return tuple(one for one in mine if detection or not one.detected)


def naming(stream: str, catalog: Catalog) -> list[str]:
    """The constraints that name a stream, on either side."""
    return [
        one.name for one in catalog.constraints.values() if stream.lower() in (one.stream.lower(), one.other.lower())
    ]
