"""Relations that make their rows of one row at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self

from headgate.plan.expressions import Expression, Named
from headgate.plan.frozen import frozen
from headgate.plan.limits import Growing, StateBound, unless_growing
from headgate.plan.nodes.frames import Now, Unbounded
from headgate.plan.nodes.operator import Carried, RowByRow
from headgate.plan.nodes.streams import Scan
from headgate.plan.spans import Spans
from headgate.sql import UNKNOWN, Column, Sql

if TYPE_CHECKING:
    from headgate.plan.nodes import Relation


@frozen
class Filter(RowByRow):
    """The rows that satisfy the condition."""

    child: Relation
    condition: Expression

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def label(self) -> str:
        return f"filter {self.condition.sql}"

    selects = True


@frozen
class Project(RowByRow):
    """Each row with the items as its columns."""

    child: Relation
    items: tuple[Named, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(item.name, item.expression.type) for item in self.items)

    @property
    def label(self) -> str:
        return f"project {', '.join(map(_shown, self.items))}"

    selects = True

    @property
    def carried(self) -> tuple[Carried, ...]:
        return ({item.name.lower(): item.expression for item in self.items},)

    @property
    def own_names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.items)

    def with_own_names(self, names: tuple[str, ...]) -> Self:
        return replace(self, items=renamed_items(self.items, names))

    def with_outputs(self, needed: set[str], movable: Callable[[Expression], bool]) -> Self:
        return replace(self, items=needed_items(self.items, needed, movable))

    @property
    def picks(self) -> bool:
        """Whether it computes nothing: columns of its child, perhaps under other names."""
        return all(item.expression.column is not None for item in self.items)

    @property
    def renames(self) -> bool:
        """Whether it has every column of its child, perhaps under another name or in another place."""
        read = {item.expression.column.lower() for item in self.items if item.expression.column is not None}
        return self.picks and read == {column.name.lower() for column in self.child.columns}


def _shown(item: Named) -> str:
    sql = item.expression.sql
    return sql if item.expression.column == item.name else f"{sql} AS {item.name}"


def renamed_items(items: tuple[Named, ...], names: tuple[str, ...]) -> tuple[Named, ...]:
    return tuple(Named(name, item.expression) for name, item in zip(names, items, strict=True))


def needed_items(
    items: tuple[Named, ...], needed: set[str], movable: Callable[[Expression], bool]
) -> tuple[Named, ...]:
    """The items that are needed, or must be computed anyway; one at least: SQL has no rows without columns."""
    return tuple(item for item in items if item.name.lower() in needed or not movable(item.expression)) or items[:1]


@frozen
class Weight(RowByRow):
    """Every row as often as the factor says: none where it is 0, and taken away where it is negative."""

    child: Relation
    factor: Expression

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def label(self) -> str:
        return "taken away" if self.factor.sql == "-1" else f"as often as {self.factor.sql}"

    selects = False

    @property
    def begins(self) -> Spans:
        return self.child.ends  # of what is taken away, a row comes back when it ends

    monotonic = False
    endless = False
    retracts = True
    fixed_span = None
    coarse = False
    slides = None
    stamped_by = None

    def flows(self, frame: Unbounded | Now) -> bool:
        return False

    linear = False


@frozen
class Exploded(RowByRow):
    """Each row once for every row that a generator such as EXPLODE makes of it; with `outer`, at least once."""

    child: Relation
    generator: Expression
    outer: bool
    made: tuple[str, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        kind = self.generator.type if len(self.made) == 1 else UNKNOWN
        return (*self.child.columns, *(Column(name, kind) for name in self.made))

    @property
    def label(self) -> str:
        return f"lateral view {'outer ' if self.outer else ''}{self.generator.sql} as {', '.join(self.made)}"

    selects = False

    @property
    def own_names(self) -> tuple[str, ...]:
        return self.made

    def with_own_names(self, names: tuple[str, ...]) -> Self:
        return replace(self, made=names)


@frozen
class Ordered:
    """A value of a base stream's tuples, a number in SQL, that was declared never to fall, or never to rise."""

    stream: Scan
    column: str
    value: Sql
    rises: bool


@frozen
class Compared:
    """A number of each row beside what the tuples of a stream have come to."""

    value: Expression
    order: Ordered


@frozen
class Needed(RowByRow):
    """One side of a join, of which a row is kept only as long as it can find a partner.

    That is until an instant, as a number, or until the tuples of the other side's stream have gone beyond the row's
    value. `because` says which values partners have. What the other side relies on is checked: rows of this one must
    not be behind.
    """

    child: Relation
    because: str
    until: Expression | None = None
    behind: Compared | None = None
    checked: Compared | None = None
    grows: bool = False
    """Whether rows wait ever longer for a partner."""

    by_distance: bool = False
    """Whether it follows only from how far apart the rows of a pair may lie."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def label(self) -> str:
        return f"needed while there can be a partner by {self.because}"

    selects = False

    @property
    def watches(self) -> frozenset[str]:
        return frozenset(one.order.stream.name for one in (self.behind, self.checked) if one is not None)

    @property
    def narrows(self) -> Literal["never", "what is kept", "always"]:
        return "always"

    @property
    def begins(self) -> Spans:
        return self.child.ends

    @property
    def rows(self) -> StateBound:
        if self.grows:
            return Growing("JOIN", f"a row waits ever longer for a partner by {self.because}")
        return unless_growing(f"what can still find a partner by {self.because}", self.child.flow)

    @property
    def unique(self) -> frozenset[str] | None:
        return self.child.unique

    in_logs = True
    slides = None  # its rows may go before their end

    def flows(self, frame: Unbounded | Now) -> bool:
        return False

    linear = False
