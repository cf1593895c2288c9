"""The window: a stream as a relation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self, cast

from headgate.plan.expressions import Expression
from headgate.plan.frozen import frozen
from headgate.plan.limits import StateBound
from headgate.plan.nodes.frames import Frame, Now, Rows, Unbounded
from headgate.plan.nodes.operator import Carried, Change, Closing, RelationOperator, identity, lower_names
from headgate.plan.nodes.streams import Scan
from headgate.plan.spans import Spans, followed
from headgate.sql import BIGINT, Column, Sql
from headgate.ticks import Tick, TimeDomain

if TYPE_CHECKING:
    from headgate.plan.nodes import Stream


class Unreadable(Exception):
    """A text that cannot be changed with certainty."""


@frozen
class Window(RelationOperator):
    """The stream as a relation, with further columns where they have a name.

    `stamp` holds the timestamp of the tuple, `arrival` the order of arrival (null where the stream has none).
    """

    child: Stream
    frame: Frame
    stamp: str | None = None
    arrival: str | None = None

    inputs = ("child",)

    @property
    def columns(self) -> tuple[Column, ...]:
        kind = Sql("TIMESTAMP") if self.time is TimeDomain.TIMESTAMP else BIGINT
        stamp = (Column(self.stamp, kind),) if self.stamp is not None else ()
        arrival = (Column(self.arrival, BIGINT),) if self.arrival is not None else ()
        return (*self.child.columns, *stamp, *arrival)

    @property
    def label(self) -> str:
        stamped = f" with its timestamps as {self.stamp}" if self.stamp else ""
        return f"window {self.frame.label(self.time)}{stamped}"

    def reading(self, change: Change) -> Self:
        frame = self.frame.renamed(change.column)
        if frame is None:
            raise Unreadable
        return replace(self, frame=cast(Frame, frame))

    @property
    def carried(self) -> tuple[Carried, ...]:
        return (identity(self.child),)

    @property
    def together(self) -> frozenset[str] | None:
        return self.frame.together

    @property
    def deciding(self) -> frozenset[str]:
        if self.frame.ties and not self.child.arrival_ordered:
            return lower_names(self.child)
        return self.frame.deciding

    watches = frozenset()

    @property
    def own_names(self) -> tuple[str, ...]:
        return tuple(name for name in (self.stamp, self.arrival) if name is not None)

    def with_own_names(self, names: tuple[str, ...]) -> Self:
        given = iter(names)
        stamp = None if self.stamp is None else next(given)
        return replace(self, stamp=stamp, arrival=None if self.arrival is None else next(given))

    def with_outputs(self, needed: set[str], movable: Callable[[Expression], bool]) -> Self:
        return self

    @property
    def narrows(self) -> Literal["never", "what is kept", "always"]:
        return "never"

    @property
    def ends(self) -> Spans:
        return followed(self.child.ends, self.frame.spans)

    @property
    def begins(self) -> Spans:
        return followed(self.child.ends, self.frame.spans[:1])

    @property
    def lasts(self) -> bool:
        return self.frame.open_ended

    @property
    def opens(self) -> bool:
        return self.child.opens

    def shown_at(self, last: Tick, closing: Closing) -> Tick:
        return self.frame.settled(last, closing)

    @property
    def rows(self) -> StateBound:
        return self.frame.bound(self, "arrived" if isinstance(self.child, Scan) else "came")

    @property
    def flow(self) -> StateBound:
        return self.child.flow

    reads_again = "it is read again"

    @property
    def unique(self) -> frozenset[str] | None:
        one_each = isinstance(self.frame, Rows) and self.frame.count == 1
        return self.frame.deciding if one_each else None

    group_key = None
    starts_with_input = False  # `temporal` asks the frame

    @property
    def monotonic(self) -> bool:
        return self.frame.endless

    @property
    def endless(self) -> bool:
        return self.frame.endless

    @property
    def open_ended(self) -> bool:
        return self.frame.open_ended

    @property
    def retracts(self) -> bool:
        return self.frame.retracts

    @property
    def instantaneous(self) -> bool:
        return self.frame.fixed_span == 1

    @property
    def fixed_span(self) -> Tick | None:
        return self.frame.fixed_span

    @property
    def longest(self) -> Tick | None:
        return self.frame.longest

    @property
    def coarse(self) -> bool:
        return self.frame.coarse

    @property
    def slides(self) -> tuple[Tick, int] | None:
        return self.frame.slides

    @property
    def stamped_by(self) -> frozenset[str] | None:
        column = self.stamp or self.child.stamp_column
        return frozenset({column.lower()}) if column is not None and self.frame.interval_by_stamp else None

    @property
    def in_logs(self) -> bool:
        return isinstance(self.child, Scan) if self.frame.kept is None else self.frame.kept

    @property
    def at_leaf(self) -> bool:
        return isinstance(self.child, Scan)

    waits_for_several = False

    @property
    def window(self) -> Window | None:
        return self

    @property
    def plain_merge(self) -> bool:
        return self.frame == Unbounded() and self.stamp is None and self.arrival is None

    def flows(self, frame: Unbounded | Now) -> bool:
        return self.frame == frame and self.child.flowing

    linear = True
