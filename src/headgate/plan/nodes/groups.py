"""Relations whose rows depend on several rows of one relation: aggregates, distinct rows, analytic functions.

What is computed of rows that live for one instant lives for that instant (`momentary`): SQL with the instant as one
more key does it. Otherwise a row that changes is taken back, and another comes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal, Self

from headgate.plan.expressions import Call, Expression, Named
from headgate.plan.frozen import frozen
from headgate.plan.limits import Growing, Limited, StateBound, because, prefixed
from headgate.plan.nodes.frames import Now, Unbounded
from headgate.plan.nodes.operator import Carried, Change, Closing, RelationOperator, identity, lower_names
from headgate.plan.nodes.pairs import Join
from headgate.plan.nodes.rows import Project, needed_items, renamed_items
from headgate.plan.spans import Spans
from headgate.sql import Column
from headgate.ticks import Tick

if TYPE_CHECKING:
    from headgate.plan.nodes import Relation


class _Grouped(RelationOperator):
    """A relation whose rows depend on groups of rows of its child."""

    inputs = ("child",)

    if TYPE_CHECKING:

        @property
        def child(self) -> Relation: ...

    @property
    @abstractmethod
    def momentary(self) -> bool:
        """Whether every row lives for one instant because those it is computed of do."""

    watches = frozenset()

    @property
    def narrows(self) -> Literal["never", "what is kept", "always"]:
        return "what is kept"

    @property
    def ends(self) -> Spans:
        return self.child.ends

    @property
    def lasts(self) -> bool:
        return self.child.lasts

    @property
    def opens(self) -> bool:
        return self.child.opens

    def shown_at(self, last: Tick, closing: Closing) -> Tick:
        return last

    endless = False

    @property
    def open_ended(self) -> bool:
        return not self.momentary

    @property
    def retracts(self) -> bool:
        return not self.momentary

    @property
    def instantaneous(self) -> bool:
        return self.momentary

    fixed_span = None

    @property
    def longest(self) -> Tick | None:
        return 1 if self.momentary else None

    coarse = False
    slides = None
    stamped_by = None
    in_logs = False
    at_leaf = False
    waits_for_several = False
    window = None
    plain_merge = False

    def flows(self, frame: Unbounded | Now) -> bool:
        return False

    linear = False


@frozen
class Aggregate(_Grouped):
    """One row a group: keys, then calls. Without keys one row always, or only over a non-empty input."""

    child: Relation
    keys: tuple[Named, ...]
    calls: tuple[Call, ...]
    row_when_empty: bool
    compares: bool = field(default=False, compare=False)
    """Whether it counts the rows of two sides, for EXCEPT or INTERSECT."""

    @property
    def columns(self) -> tuple[Column, ...]:
        keys = (Column(key.name, key.expression.type) for key in self.keys)
        return (*keys, *(Column(call.name, call.type) for call in self.calls))

    @property
    def label(self) -> str:
        by = f" by {', '.join(key.expression.sql for key in self.keys)}" if self.keys else ""
        return f"aggregate {', '.join(call.sql for call in self.calls) or 'nothing'}{by}"

    @property
    def momentary(self) -> bool:
        """Not without keys: then there is a row where there are none. Nor with a call in Python, which stands alone."""
        return bool(self.keys) and not any(call.outside for call in self.calls) and self.child.instantaneous

    @property
    def carried(self) -> tuple[Carried, ...]:
        return ({key.name.lower(): key.expression for key in self.keys},)

    @property
    def together(self) -> frozenset[str] | None:
        return frozenset(key.name.lower() for key in self.keys)

    deciding = frozenset()

    @property
    def own_names(self) -> tuple[str, ...]:
        return (*(key.name for key in self.keys), *(call.name for call in self.calls))

    def with_own_names(self, names: tuple[str, ...]) -> Self:
        count = len(self.keys)
        calls = tuple(replace(call, name=name) for name, call in zip(names[count:], self.calls, strict=True))
        return replace(self, keys=renamed_items(self.keys, names[:count]), calls=calls)

    def with_outputs(self, needed: set[str], movable: Callable[[Expression], bool]) -> Self:
        read = tuple(call for call in self.calls if call.name.lower() in needed)
        return replace(self, calls=read if read or self.keys else self.calls[:1])

    @property
    def begins(self) -> Spans:
        return self.child.ends

    @property
    def lasts(self) -> bool:
        return (not self.keys and self.row_when_empty) or self.child.lasts

    @property
    def opens(self) -> bool:
        return self.row_when_empty or self.child.opens

    @property
    def rows(self) -> StateBound:
        if not self.keys:
            return Limited("one row")
        if self.compares:
            kept = "EXCEPT or INTERSECT keeps every row ever seen"
            return because("EXCEPT", kept, prefixed("the different rows of", self.child.rows))
        by = ", ".join(key.expression.sql for key in self.keys)
        kept = f"GROUP BY {by} keeps one row for each group ever seen"
        return because("GROUP BY", kept, prefixed(f"one row for each {by} among", self.child.rows))

    @property
    def flow(self) -> StateBound:
        return self.child.flow  # each row that comes or goes changes one group

    @property
    def reads_again(self) -> str:
        return f"{', '.join(call.sql for call in self.calls)} is computed from it again"

    @property
    def unique(self) -> frozenset[str] | None:
        return self.together

    @property
    def group_key(self) -> tuple[str, ...] | None:
        return tuple(key.name for key in self.keys)

    @property
    def starts_with_input(self) -> bool:
        return self.momentary

    monotonic = False


@frozen
class Distinct(_Grouped):
    """The different rows of a relation, each once."""

    child: Relation
    partners: bool = field(default=False, compare=False)
    """Whether they are the partners of rows for IN, EXISTS or an outer join."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    label = "distinct"

    @property
    def momentary(self) -> bool:
        return self.child.instantaneous

    @property
    def carried(self) -> tuple[Carried, ...]:
        return (identity(self.child),)

    @property
    def together(self) -> frozenset[str] | None:
        return lower_names(self.child)

    @property
    def deciding(self) -> frozenset[str]:
        return lower_names(self.child)

    own_names = ()

    def with_own_names(self, names: tuple[str, ...]) -> Self:
        assert not names
        return self

    def with_outputs(self, needed: set[str], movable: Callable[[Expression], bool]) -> Self:
        return self

    @property
    def begins(self) -> Spans:
        return self.child.begins

    @property
    def rows(self) -> StateBound:
        below = self.child
        if isinstance(below, Project) and isinstance(below.child, Join):
            left = below.child.left
            if all(item.expression.columns <= lower_names(left) for item in below.items):
                return prefixed("the different rows of", left.rows)  # however many partners each has
        word = "IN, EXISTS or an outer join" if self.partners else "DISTINCT"
        operator = "IN" if self.partners else "DISTINCT"
        return because(operator, f"{word} keeps every row ever seen", prefixed("the different rows of", below.rows))

    @property
    def flow(self) -> StateBound:
        return self.child.flow  # each row that comes or goes changes one group

    reads_again = "it is read again"

    @property
    def unique(self) -> frozenset[str] | None:
        return self.together

    @property
    def group_key(self) -> tuple[str, ...] | None:
        return tuple(column.name for column in self.child.columns)

    @property
    def starts_with_input(self) -> bool:
        return self.child.endless or self.child.instantaneous  # elsewhere what ends is taken back later

    @property
    def monotonic(self) -> bool:
        return self.child.monotonic


@frozen
class Ranked(_Grouped):
    """A relation with analytic functions over it, or only its first rows: SQL over the rows of one instant.

    `items` are added as columns. `by` are the columns by which every function partitions: groups that do not change
    need not be looked at.
    """

    child: Relation
    by: tuple[str, ...]
    items: tuple[Named, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.child.columns, *(Column(item.name, item.expression.type) for item in self.items))

    @property
    def label(self) -> str:
        return f"ranked {', '.join(f'{item.expression.sql} AS {item.name}' for item in self.items)}"

    @property
    def momentary(self) -> bool:
        return self.child.instantaneous

    def reading(self, change: Change) -> Self:
        return replace(super().reading(change), by=tuple(map(change.column, self.by)))

    @property
    def carried(self) -> tuple[Carried, ...]:
        return (identity(self.child),)

    @property
    def together(self) -> frozenset[str] | None:
        return frozenset(name.lower() for name in self.by)

    @property
    def deciding(self) -> frozenset[str]:
        return frozenset(name.lower() for name in self.by)

    @property
    def own_names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.items)

    def with_own_names(self, names: tuple[str, ...]) -> Self:
        return replace(self, items=renamed_items(self.items, names))

    def with_outputs(self, needed: set[str], movable: Callable[[Expression], bool]) -> Self:
        return replace(self, items=needed_items(self.items, needed, movable))

    @property
    def begins(self) -> Spans:
        return self.child.ends

    @property
    def rows(self) -> StateBound:
        return self.child.rows

    @property
    def flow(self) -> StateBound:
        every = "a new row may change an analytic function or LIMIT for every other"
        changed = because("OVER", every, self.child.rows)
        return changed if isinstance(changed, Growing) else self.child.flow

    reads_again = "an analytic function or LIMIT is computed from it again"
    unique = None
    group_key = None
    monotonic = False

    @property
    def starts_with_input(self) -> bool:
        return self.momentary  # elsewhere a row may begin because another one ends
