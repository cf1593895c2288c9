"""Stages: where Spark deals rows to its tasks anew while it runs the statement of a large epoch, for `explain`.

Within a stage every task works on the rows it has. A stage ends where rows must come together by some columns: to be
grouped, to be walked through in order, or to be joined. Rows that already lie together by some of these columns are not
dealt again, and a step that several others read is dealt once: Spark reuses equal exchanges. The statements of small
epochs run as one task and have one stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import sqlglot
from sqlglot import exp

from headgate.sql.nesting import Nested
from headgate.sql.printer import compared

Columns: TypeAlias = tuple[frozenset[str], ...]
"""Columns by which rows lie together in tasks, each under all its names; none if all rows lie in one task."""


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Rows that are dealt to the tasks anew."""

    step: str
    by: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.step} by {', '.join(filter(None, self.by))}" if self.by else f"{self.step} to one task"


def shuffles(steps: Mapping[str, str]) -> list[Shuffle]:
    """Return the shuffles of a statement with these steps as SQL, in order. The statement has one stage more."""
    found = _Search()
    for name, sql in steps.items():
        found.step = name
        found.known[name] = found.together(sqlglot.parse_one(sql, read=Nested))
    return found.shuffles


class _Search:
    """Follows the rows through the steps of a program."""

    def __init__(self) -> None:
        self.step = ""
        self.shuffles: list[Shuffle] = []
        self.known: dict[str, Columns | None] = {}
        """By step: the columns by which its rows lie together; None if they lie anywhere."""

    def together(self, query: exp.Expression | None) -> Columns | None:
        """Return the columns by which the rows of a query lie together, and note the shuffles on the way."""
        match query:
            case exp.Table():
                return self.known.get(query.name)
            case exp.Subquery():
                return self.together(query.this)
            case exp.Union():
                parts = [self.together(query.left), self.together(query.right)]
                return parts[0] if parts[0] == parts[1] else None
            case exp.Select():
                return self._select(query)
        return None

    def _select(self, query: exp.Select) -> Columns | None:
        source = query.args.get("from_") or query.args.get("from")
        lying = self.together(source.this) if source is not None else None
        for join in query.args.get("joins") or ():
            lying = self._joined(join, lying)
        grouped = query.args.get("group")
        if grouped is not None:
            lying = self._gathered(lying, map(_name, grouped.expressions))
        elif any(isinstance(one.unalias(), exp.AggFunc) for one in query.expressions):
            lying = self._gathered(lying, ())
        windows = list(query.find_all(exp.Window)) if not isinstance(query.parent, exp.Window) else []
        for by in dict.fromkeys(tuple(map(_name, one.args.get("partition_by") or ())) for one in windows):
            lying = self._gathered(lying, by)
        if query.args.get("distinct") is not None:
            lying = self._gathered(lying, (one.alias_or_name for one in query.expressions))
        hint = query.args.get("hint")
        for one in hint.expressions if hint is not None else ():
            if one.name.upper() == "REPARTITION":
                lying = self._gathered(None, map(_name, one.expressions))
        return _renamed(lying, query.expressions)

    def _joined(self, join: exp.Join, lying: Columns | None) -> Columns | None:
        """Both sides of a join, dealt by what it equates; without that, Spark sends one side to every task."""
        condition = join.args.get("on")
        equal = [one for one in _conjuncts(condition) if isinstance(one, exp.EQ | exp.NullSafeEQ)]
        other = self.together(join.this)
        if not equal:
            return lying
        mine = self._gathered(lying, (_name(one.left) for one in equal))
        self._gathered(other, (_name(one.right) for one in equal))
        return mine

    def _gathered(self, lying: Columns | None, by: Iterable[str]) -> Columns:
        """Rows that lie together by some columns; they are dealt anew unless they lie so already."""
        wanted = tuple(dict.fromkeys(by))
        if lying is not None and all(not names.isdisjoint(wanted) for names in lying):
            return lying
        self.shuffles.append(Shuffle(self.step, wanted))
        return tuple(frozenset({column}) for column in wanted)


def _renamed(lying: Columns | None, shown: list[exp.Expression]) -> Columns | None:
    """The columns under the names that a SELECT gives them; None if it does not show all of them."""
    if lying is None or any(isinstance(one, exp.Star) for one in shown):
        return lying
    given = [(_name(one.unalias()), one.alias_or_name) for one in shown]
    names = tuple(frozenset(name for inside, name in given if inside in column) for column in lying)
    return names if all(names) else None


def _conjuncts(condition: exp.Expression | None) -> Iterable[exp.Expression]:
    return condition.flatten() if isinstance(condition, exp.And) else [] if condition is None else [condition]


def _name(column: exp.Expression) -> str:
    """A column by its name, without its table; anything else as SQL."""
    return column.name if isinstance(column, exp.Column) else compared(column)
