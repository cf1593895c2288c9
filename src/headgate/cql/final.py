"""EMIT FINAL: the entries of FROM in which each tuple is shown at the instant at which its value cannot occur any more.

Groups are closed by a key that is a function of a timestamp, or of a column that was declared INCREASING or DECREASING;
joins by the equality of two functions of timestamps. At that instant all rows of a group, or all partners of a row, are
there, and only then: what the query says of them is final, and RSTREAM puts it out once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from headgate.cql.inputs import From
from headgate.cql.trees import as_expression, has_subquery, read_columns
from headgate.errors import Place, UserError
from headgate.plan.chains import chain
from headgate.plan.expressions import Expression
from headgate.plan.monotone import Chain, Closer
from headgate.plan.nodes import Relation, Unbounded
from headgate.plan.temporal import attributes, shown_when_final, shown_when_passed, tied, windows
from headgate.sql import Sql

if TYPE_CHECKING:
    from headgate.cql.binder import Binder

HINT = (
    "Use a function of the timestamp, such as ELEMENT_TIME / 60 or DATE_TRUNC('minute', at), or a column declared "
    "INCREASING."
)


@dataclass(frozen=True, slots=True)
class ClosingValue:
    """One way to close groups or joins: a value as each stream of FROM has it, and the clocks that say when it is past.

    There are no clocks where only the tuples themselves tell.
    """

    values: tuple[Chain, ...]
    closers: frozenset[Closer]


def place_of_final(binder: Binder, tree: exp.Select) -> Place:
    """The place of EMIT FINAL in the user's text."""
    start, end = tree.meta["final"]
    return Place(binder.text, start, end, binder.origin)


def held_until_final(
    binder: Binder, tree: exp.Select, source: From, where: list[exp.Expression], keys: list[exp.Expression] | None
) -> From:
    """The FROM clause with every tuple held back until its value cannot occur any more.

    The value is a key of GROUP BY; without GROUP BY it is what a join equates.
    """
    place = place_of_final(binder, tree)
    reading = [position for position, entry in enumerate(source.entries) if windows(entry.node)]
    if any(not isinstance(window.frame, Unbounded) for entry in source.entries for window in windows(entry.node)):
        raise UserError(
            "final-window",
            "EMIT FINAL reads streams without a window",
            place=place,
            detail="A tuple counts from when it comes until its value is final.",
            hint="Leave the window out.",
        )
    if keys is None and len(reading) < 2:
        raise UserError(
            "nothing-final",
            "EMIT FINAL needs GROUP BY, or a join of streams",
            place=place,
            detail="A row of one stream is final when it comes.",
        )
    pairs = _equal_values(binder, source, where)
    started = [one for one, _ in pairs] if keys is None else [as_expression(key, source.scope.types) for key in keys]
    if keys is not None:
        padded = _nullable_columns(source)  # a group of nulls is never closed
        started = [key for key in started if not key.columns & padded]
    ways = [way for value in started if (way := _closing_value(source, pairs, reading, value)) is not None]
    by_clock = tuple(dict.fromkeys(way for way in ways if way.closers))
    if not by_clock and not ways:
        where_to = (
            "a join that equates values which grow with time"
            if keys is None
            else "a key in GROUP BY that grows with time"
        )
        detail = "It must follow from the equalities for every stream that is read." if len(reading) > 1 else ""
        raise UserError("not-final", f"EMIT FINAL needs {where_to}", place=place, detail=detail, hint=HINT)
    entries = list(source.entries)
    for number, position in enumerate(reading):
        node = entries[position].node
        if by_clock:
            values, closers = tuple(way.values[number] for way in by_clock), tuple(way.closers for way in by_clock)
            node = shown_when_final(node, values, closers)
        else:
            node = shown_when_passed(node, ways[0].values[number])
        entries[position] = replace(entries[position], node=node)
    return replace(source, entries=entries)


def _nullable_columns(source: From) -> set[str]:
    """The columns of FROM that an outer join may fill with nulls."""
    found: set[str] = set()
    before: set[str] = set()
    for entry in source.entries:
        own = {name.lower() for name in _types(entry.node)}
        found |= own if entry.kind in ("LEFT", "FULL") else set()
        found |= before if entry.kind in ("RIGHT", "FULL") else set()
        before |= own
    return found


def _equal_values(binder: Binder, source: From, where: Iterable[exp.Expression]) -> list[tuple[Expression, Expression]]:
    """The pairs of expressions that the query's conditions equate."""
    plain = [condition for condition in (*source.conditions, *where) if not has_subquery(condition)]
    conditions = [*binder.conditions(plain, source.scope), *(tree for entry in source.entries for tree in entry.on)]
    types = {name: kind for entry in source.entries for name, kind in _types(entry.node).items()}
    return [
        (as_expression(tree.this, types), as_expression(tree.expression, types))
        for tree in conditions
        if isinstance(tree, exp.EQ | exp.NullSafeEQ) and read_columns(tree.this) and read_columns(tree.expression)
    ]


def _types(node: Relation) -> dict[str, Sql]:
    return {column.name: column.type for column in node.columns}


def _closing_value(
    source: From, pairs: list[tuple[Expression, Expression]], reading: list[int], value: Expression
) -> ClosingValue | None:
    """The value in all streams of FROM, if each of them has it and closes it; None otherwise."""
    nodes = [entry.node for entry in source.entries]
    start = chain(value.sql, {name.lower(): kind for node in nodes for name, kind in _types(node).items()})
    if start is None:
        return None
    everywhere = tied(nodes, pairs, start)
    values = [one for position in reading if (one := everywhere[position]) is not None]
    found = [attributes(nodes[position], one) for position, one in zip(reading, values, strict=False)]
    known = [seen for some in found if some is not None for seen in some]
    if len(values) < len(reading) or None in found or not known:
        return None
    if all(seen.closers for seen in known):
        return ClosingValue(tuple(values), frozenset[Closer]().union(*(seen.closers for seen in known)))
    return ClosingValue(tuple(values), frozenset()) if len(known) == 1 else None
