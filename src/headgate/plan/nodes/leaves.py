"""Relations that are read: a base relation, and what another fragment computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Self

from headgate.plan.expressions import Expression
from headgate.plan.frozen import frozen
from headgate.plan.limits import Growing, Limited, StateBound
from headgate.plan.nodes.frames import Now, Unbounded
from headgate.plan.nodes.operator import Closing, RelationOperator
from headgate.plan.spans import Span, Spans
from headgate.sql import Column
from headgate.ticks import Tick, TimeDomain

if TYPE_CHECKING:
    from headgate.plan.nodes import Relation, Scan


class _Leaf(RelationOperator):
    """A relation that is not computed here: it has no children."""

    inputs = ()
    carried = ()
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
    def narrows(self) -> Literal["never", "what is kept", "always"]:
        return "never"

    def shown_at(self, last: Tick, closing: Closing) -> Tick:
        return last

    reads_again = "it is read again"
    group_key = None

    @property
    def begins(self) -> Spans:
        return self.ends

    starts_with_input = False
    waits_for_several = False
    window = None
    plain_merge = False

    def flows(self, frame: Unbounded | Now) -> bool:
        return False

    linear = False


@frozen
class Stored(_Leaf):
    """A base relation: rows that were put in and taken out at known instants."""

    relation: str
    columns: tuple[Column, ...]
    domain: TimeDomain | None
    """None for a relation that never changes."""

    growing: bool
    """Rows are only ever put in."""

    key: tuple[str, ...] = ()
    """Columns by which a row put in replaces the one that was there."""

    @property
    def name(self) -> str:
        return self.relation

    @property
    def label(self) -> str:
        return f"relation {self.relation}"

    @property
    def sources(self) -> list[Scan | Stored]:
        return [self]

    @property
    def ends(self) -> Spans:
        return {} if self.domain is None else {self.relation: frozenset([Span()])}

    lasts = True

    @property
    def opens(self) -> bool:
        return self.domain is None

    @property
    def rows(self) -> StateBound:
        if self.domain is None:
            return Limited(f"the rows of relation {self.relation}, which never change")
        if self.growing:
            return Growing(self.relation, f"relation {self.relation} is only ever put into")
        return Limited(f"the rows of relation {self.relation}")

    @property
    def flow(self) -> StateBound:
        return Limited("what arrives")

    @property
    def unique(self) -> frozenset[str] | None:
        return frozenset(name.lower() for name in self.key) if self.key else None

    @property
    def monotonic(self) -> bool:
        return self.growing

    @property
    def endless(self) -> bool:
        return self.growing

    open_ended = True

    @property
    def retracts(self) -> bool:
        return not self.growing

    instantaneous = False
    fixed_span = None
    longest = None
    coarse = False
    slides = None
    stamped_by = None

    @property
    def in_logs(self) -> bool:
        return bool(self.key)

    at_leaf = True


@frozen
class Piped(_Leaf):
    """A relation that another fragment computes: its elements are read from the log that one writes.

    What is proved of `child` holds here too, except that what is taken back comes as changes that have no end.
    """

    child: Relation
    log: str

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def label(self) -> str:
        return f"what {self.log} puts out"

    @property
    def sources(self) -> list[Scan | Stored]:
        return self.child.sources

    @property
    def ends(self) -> Spans:
        return self.child.ends

    @property
    def lasts(self) -> bool:
        return self.child.lasts

    opens = False  # the other fragment opens

    @property
    def rows(self) -> StateBound:
        return self.child.rows

    @property
    def flow(self) -> StateBound:
        return self.child.flow

    unique = None

    @property
    def monotonic(self) -> bool:
        return self.child.monotonic

    @property
    def endless(self) -> bool:
        return self.child.endless

    @property
    def open_ended(self) -> bool:
        return self.child.retracts or self.child.open_ended

    @property
    def retracts(self) -> bool:
        return self.child.retracts

    @property
    def instantaneous(self) -> bool:
        return self.child.instantaneous and not self.child.retracts

    @property
    def fixed_span(self) -> Tick | None:
        return self.child.fixed_span if not self.child.retracts else None

    @property
    def longest(self) -> Tick | None:
        return self.child.longest if not self.child.retracts else None

    @property
    def coarse(self) -> bool:
        return self.child.coarse and not self.child.retracts

    slides = None  # what another fragment computes has been put together there

    @property
    def stamped_by(self) -> frozenset[str] | None:
        return self.child.stamped_by

    in_logs = False
    at_leaf = False
