"""Relations of two relations: joins and unions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Self

from headgate.plan.expressions import Expression
from headgate.plan.frozen import frozen
from headgate.plan.limits import Growing, StateBound, all_of, because, pairs_of, prefixed
from headgate.plan.nodes.frames import Now, Unbounded
from headgate.plan.nodes.operator import Carried, Closing, RelationOperator, column_of, identity
from headgate.plan.spans import Spans, merged
from headgate.sql import Column, Sql
from headgate.ticks import Tick

if TYPE_CHECKING:
    from headgate.plan.nodes import Relation


class _OfTwo(RelationOperator):
    """A relation of two, each of whose rows is made of one row of each side, or of one side's."""

    inputs = ("left", "right")

    if TYPE_CHECKING:

        @property
        def left(self) -> Relation: ...

        @property
        def right(self) -> Relation: ...

    together = None
    deciding = frozenset()
    watches = frozenset()
    own_names = ()

    def with_own_names(self, names: tuple[str, ...]) -> Self:
        assert not names
        return self

    def with_outputs(self, needed: set[str], movable: Callable[[Expression], bool]) -> Self:
        return self

    @property
    def ends(self) -> Spans:
        return merged((self.left.ends, self.right.ends))

    @property
    def begins(self) -> Spans:
        return merged((self.left.begins, self.right.begins))

    @property
    def lasts(self) -> bool:
        return self.left.lasts or self.right.lasts

    @property
    def opens(self) -> bool:
        return self.left.opens or self.right.opens

    def shown_at(self, last: Tick, closing: Closing) -> Tick:
        return last

    unique = None
    group_key = None
    starts_with_input = True

    @property
    def monotonic(self) -> bool:
        return self.left.monotonic and self.right.monotonic

    @property
    def endless(self) -> bool:
        return self.left.endless and self.right.endless

    @property
    def open_ended(self) -> bool:
        return self.left.open_ended and self.right.open_ended  # a pair ends with one of its sides

    @property
    def retracts(self) -> bool:
        return self.left.retracts or self.right.retracts

    waits_for_several = True
    window = None
    linear = True


@frozen
class Equality:
    """An expression of the left side that must equal one of the right; `null_safe` where null equals null."""

    left: Expression
    right: Expression
    null_safe: bool = False

    @property
    def sql(self) -> Sql:
        """The condition as SQL."""
        return f"{self.left.sql} {'<=>' if self.null_safe else '='} {self.right.sql}"


@frozen
class Lookup:
    """A join in which each row of one side, at the only instant at which it lives, meets one group of the other.

    The sides are those of the join. `keys` are expressions over `rows` that equal the columns of the groups' key.
    """

    rows: Relation
    groups: Relation
    keys: tuple[Expression, ...]


@frozen
class Join(_OfTwo):
    """Pairs that agree on every equality and satisfy the condition; the names of the two sides are disjoint."""

    left: Relation
    right: Relation
    equalities: tuple[Equality, ...]
    condition: Expression | None

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.left.columns, *self.right.columns)

    @property
    def label(self) -> str:
        on = [e.sql for e in self.equalities]
        on += [self.condition.sql] if self.condition else []
        return f"join on {' AND '.join(on)}" if on else "cross join"

    @property
    def carried(self) -> tuple[Carried, ...]:
        return identity(self.left), identity(self.right)

    @property
    def narrows(self) -> Literal["never", "what is kept", "always"]:
        return "what is kept"

    @property
    def rows(self) -> StateBound:
        if self._one_partner(self.right):
            return prefixed("a partner for each of", self.left.rows)
        if self._one_partner(self.left):
            return prefixed("a partner for each of", self.right.rows)
        return because("JOIN", "a join keeps every pair", pairs_of(self.left.rows, self.right.rows))

    @property
    def flow(self) -> StateBound:
        for side in (self.left, self.right):
            met = side.rows
            if isinstance(met, Growing) and not self._one_partner(side):
                return because("JOIN", "a new row of one side of a join meets every row of the other", met)
        return all_of(self.left.flow, self.right.flow)

    def _one_partner(self, side: Relation) -> bool:
        """Whether a row of the other side meets at most one row of this one: the join equates its key."""
        equated = {e.right.column if side is self.right else e.left.column for e in self.equalities}
        return side.unique is not None and side.unique <= {column.lower() for column in equated if column is not None}

    reads_again = "a join reads it again"

    @property
    def lookup(self) -> Lookup | None:
        """How the join looks up a row of an aggregate; None if it does not.

        Such a pair never has to be taken back: when its instant is complete, so is what the group is at that instant.
        """
        equated = [(e.left, e.right) for e in self.equalities]
        turned = [(right, left) for left, right in equated]
        for rows, groups, pairs in ((self.left, self.right, equated), (self.right, self.left, turned)):
            found = {
                theirs.column.lower(): ours for ours, theirs in pairs if theirs.column and ours.type == theirs.type
            }
            key = groups.group_key if not groups.instantaneous else None
            known = key and all(column.lower() in found for column in key)
            if known and key and rows.instantaneous and not rows.retracts:
                return Lookup(rows, groups, tuple(found[column.lower()] for column in key))
        return None

    @property
    def retracts(self) -> bool:
        return self.lookup is None and super().retracts

    @property
    def instantaneous(self) -> bool:
        return self.left.instantaneous or self.right.instantaneous  # a pair lives no longer than either of its sides

    fixed_span = None

    @property
    def longest(self) -> Tick | None:
        known = [self.left.longest, self.right.longest]
        return min((one for one in known if one is not None), default=None)

    coarse = False
    slides = None

    @property
    def stamped_by(self) -> frozenset[str] | None:
        left, right = self.left.stamped_by, self.right.stamped_by
        return left | right if left is not None and right is not None else None

    in_logs = False
    at_leaf = False
    plain_merge = False

    def flows(self, frame: Unbounded | Now) -> bool:
        return False


@frozen
class Union(_OfTwo):
    """Bag union; the sides agree in number of columns and take the first side's names."""

    left: Relation
    right: Relation

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns

    label = "union all"

    @property
    def carried(self) -> tuple[Carried, ...]:
        pairs = zip(self.left.columns, self.right.columns, strict=True)
        return identity(self.left), {one.name.lower(): column_of(other.name, other.type) for one, other in pairs}

    @property
    def narrows(self) -> Literal["never", "what is kept", "always"]:
        return "never"

    @property
    def rows(self) -> StateBound:
        return all_of(self.left.rows, self.right.rows)

    @property
    def flow(self) -> StateBound:
        return all_of(self.left.flow, self.right.flow)

    reads_again = "it is read again"

    @property
    def instantaneous(self) -> bool:
        return self.left.instantaneous and self.right.instantaneous

    @property
    def fixed_span(self) -> Tick | None:
        return self.left.fixed_span if self.left.fixed_span == self.right.fixed_span else None

    @property
    def longest(self) -> Tick | None:
        left, right = self.left.longest, self.right.longest
        return max(left, right) if left is not None and right is not None else None

    @property
    def coarse(self) -> bool:
        return self.left.coarse and self.right.coarse

    @property
    def slides(self) -> tuple[Tick, int] | None:
        left, right = self.left.slides, self.right.slides
        if left is None or right is None or left[0] != right[0]:
            return None
        return left[0], max(left[1], right[1])

    stamped_by = None

    @property
    def in_logs(self) -> bool:
        return self.left.in_logs and self.right.in_logs

    @property
    def at_leaf(self) -> bool:
        return self.left.at_leaf and self.right.at_leaf

    @property
    def plain_merge(self) -> bool:
        return self.left.plain_merge and self.right.plain_merge

    def flows(self, frame: Unbounded | Now) -> bool:
        return self.left.flows(frame) and self.right.flows(frame)
