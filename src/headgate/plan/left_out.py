"""What a query with ON ERROR SKIP leaves out: rows of a relation for which an expression raises an error.

The rewrite that leaves them out is `cql.skipping`. What is left out in several places of a plan is one stream,
ERRORS(q).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headgate.plan.expressions import Expression, Named
from headgate.plan.frozen import frozen
from headgate.plan.nodes import Filter, Istream, Project, Relation, Rstream, Stream, Unbounded, Union, Window
from headgate.plan.nodes.operator import column_of
from headgate.sql import BOOLEAN, STRING, UNKNOWN, Column, Sql, literal, spelled

TRIED = Sql("CASE WHEN HEADGATE_ONCE() >= 0 THEN HEADGATE_TRY(")
"""What stands before an expression that may fail. The condition is always true, and not deterministic for Spark: it is
the number of a partition, under a name that no text of a user may call.

So Spark evaluates what depends on it once a row, and moves it nowhere. Otherwise it would evaluate a part that occurs
twice before all others, where nothing catches its error.
"""


def tried(expressions: Iterable[Expression]) -> Expression:
    """A struct of the values e0, e1, ..., or null where one of them cannot be evaluated."""
    given = list(expressions)
    fields = ", ".join(f"{one.sql} AS e{number}" for number, one in enumerate(given))
    return Expression(f"{TRIED}STRUCT({fields})) END", UNKNOWN, frozenset().union(*(one.columns for one in given)))


def failed(column: str, *, is_so: bool = True) -> Expression:
    """The condition that what was tried in a column could not be evaluated, or could be."""
    return Expression(
        f"{spelled(column)} IS {Sql('') if is_so else Sql('NOT ')}NULL", BOOLEAN, frozenset({column.lower()})
    )


@frozen
class LeftOut:
    """The rows of a relation for which some expressions raise an error."""

    rows: Relation
    """All rows, with what was tried in the column `name`."""

    name: str
    columns: tuple[Column, ...]
    """The columns of the row itself."""

    expressions: tuple[Expression, ...]
    operator: str
    """Which part of the query evaluates them."""

    def stream(self) -> Stream:
        """What is left out: each row when it begins to be left out."""
        own = tuple(Named(column.name, column_of(column.name, column.type)) for column in self.columns)
        failing: Relation = Filter(self.rows, failed(self.name))
        expression = Expression(literal(self.expressions[0].sql), STRING, frozenset())
        if len(self.expressions) > 1:  # each is tried by itself
            each = {f"{self.name}_{number}": one for number, one in enumerate(self.expressions)}
            failing = Project(failing, (*own, *(Named(name, tried([one])) for name, one in each.items())))
            named = ", ".join(f"CASE WHEN {failed(name).sql} THEN {literal(one.sql)} END" for name, one in each.items())
            expression = Expression(f"CONCAT_WS(', ', {named})", STRING, frozenset(map(str.lower, each)))
        row = ", ".join(spelled(column.name) for column in self.columns)
        read = frozenset(column.name.lower() for column in self.columns)
        items = (
            Named("row", Expression(f"TO_JSON(STRUCT({row}))", STRING, read)),
            Named("expression", expression),
            Named("operator", Expression(literal(self.operator), STRING, frozenset())),
        )
        shown = Project(failing, items)
        return Rstream(shown, None) if shown.instantaneous else Istream(shown)

    def failing(self, named: str) -> Expression | None:
        """The first of the expressions that a row of the stream names; None if they are others."""
        return next((one for one in self.expressions if named == one.sql or named.startswith(f"{one.sql}, ")), None)


def errors_of(left_out: Sequence[LeftOut]) -> Stream | None:
    """What is left out in several places of a plan as one stream; None if nothing is."""
    streams = list(dict.fromkeys(one.stream() for one in left_out))
    if len(streams) <= 1:
        return streams[0] if streams else None
    together: Relation = Window(streams[0], Unbounded())
    for stream in streams[1:]:
        together = Union(together, Window(stream, Unbounded()))
    return Istream(together)
