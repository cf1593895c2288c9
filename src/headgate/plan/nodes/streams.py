"""Streams: the base stream, a sample of a stream, a stream with the lives of values, and what ISTREAM, DSTREAM and
RSTREAM make of a relation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Literal, Self

from headgate.plan.expressions import Expression
from headgate.plan.frozen import frozen
from headgate.plan.limits import Limited, StateBound
from headgate.plan.nodes.frames import Now, Unbounded, aligned, span_text
from headgate.plan.nodes.operator import Carried, Change, Closing, StreamOperator, identity, lower_names
from headgate.plan.spans import Span, Spans, repeated
from headgate.sql import BIGINT, Column
from headgate.ticks import Tick, TimeDomain

if TYPE_CHECKING:
    from headgate.plan.nodes import Relation, Stored, Stream


class _PlainStream(StreamOperator):
    """A stream whose columns are those of its input, under their names, and which looks at nothing else."""

    watches = frozenset()

    @property
    def own_names(self) -> tuple[str, ...]:
        return ()

    def with_own_names(self, names: tuple[str, ...]) -> Self:
        assert not names
        return self

    def with_outputs(self, needed: set[str], movable: Callable[[Expression], bool]) -> Self:
        return self

    monotonic = False  # tuples are there for their instant
    at_leaf = False
    waits_for_several = False
    reads_again = "it is read again"


@frozen
class Constraint:
    """A constraint on a stream, as it was declared: what `k` counts is said in `plan.constraints`."""

    name: str
    kind: Literal["clustered", "ordered", "references"]
    stream: str
    column: str
    k: int
    """Of a constraint that is detected: the largest k that is followed."""

    counts: bool = False
    """True if violations are counted, and answers are approximate then. Otherwise a violation is an error."""

    other: str = ""
    """The stream that `references` refers to, and its column."""

    other_column: str = ""

    confidence: str = ""
    """If k is detected: how likely it is that the next tuple keeps to it, as it was written. Empty: k was declared."""

    @property
    def detected(self) -> bool:
        """True if k follows the tuples (`plan.lives`)."""
        return bool(self.confidence)

    @property
    def block(self) -> int:
        """Of a constraint that is detected: in blocks of how many tuples k is found.

        Of n + 1 tuples in any order, the last one has the largest distance with a probability of 1 / (n + 1).
        """
        sure = Fraction(self.confidence)
        return ceil(sure / (1 - sure))

    @property
    def promise(self) -> str:
        """What it says of the stream, as in its statement."""
        within = f"WITHIN {self.k} TUPLES"
        if self.detected:
            within = f"DETECTED {within} CONFIDENCE {self.confidence}"
        match self.kind:
            case "clustered":
                return f"CLUSTERED BY {self.column} {within}"
            case "ordered":
                return f"ORDERED BY {self.column} {within}"
            case "references":
                return f"({self.column}) REFERENCES {self.other} ({self.other_column}) {within}"


@frozen
class Scan(_PlainStream):
    """A base stream, read from its log."""

    stream: str
    columns: tuple[Column, ...]
    domain: TimeDomain
    timestamp: str | None
    """The column that holds the tuple's timestamp, if one does."""

    by: str | None = None
    """The column that names the tuple's source, if the stream holds many."""

    constraints: tuple[Constraint, ...] = ()
    """What was declared of the arrival of its tuples."""

    inputs = ()

    @property
    def name(self) -> str:
        return self.stream

    @property
    def label(self) -> str:
        return f"stream {self.stream}"

    @property
    def sources(self) -> list[Scan | Stored]:
        return [self]

    carried = ()
    together = None
    deciding = frozenset()

    @property
    def narrows(self) -> Literal["never", "what is kept", "always"]:
        return "never"

    @property
    def ends(self) -> Spans:
        return {self.stream: frozenset([Span()])}

    lasts = False
    opens = False

    def shown_at(self, last: Tick, closing: Closing) -> Tick:
        return last

    @property
    def flow(self) -> StateBound:
        return Limited("what arrives")

    @property
    def base(self) -> Scan | None:
        return self

    straight = None

    @property
    def stamp_column(self) -> str | None:
        return self.timestamp

    starting = None
    arrival_ordered = True

    @property
    def flowing(self) -> bool:
        return not self.stream.startswith("late(")


@frozen
class Sample(_PlainStream):
    """Each tuple of a stream with a probability, decided by a hash of its values, its timestamp and the seed.

    The hash reads every column, so none below it is narrowed away.
    """

    child: Stream
    percent: str
    """A number from 0 to 100, as it was written."""

    seed: int

    inputs = ("child",)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def label(self) -> str:
        return f"sample {self.percent} percent repeatable ({self.seed})"

    @property
    def carried(self) -> tuple[Carried, ...]:
        return (identity(self.child),)

    together = None

    @property
    def deciding(self) -> frozenset[str]:
        return lower_names(self.child)

    @property
    def narrows(self) -> Literal["never", "what is kept", "always"]:
        return "never"

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

    @property
    def flow(self) -> StateBound:
        return self.child.flow

    @property
    def base(self) -> Scan | None:
        return self.child.base

    @property
    def straight(self) -> Stream | None:
        return self.child

    @property
    def stamp_column(self) -> str | None:
        return self.child.stamp_column

    @property
    def starting(self) -> Relation | None:
        return self.child.starting

    @property
    def arrival_ordered(self) -> bool:
        return self.child.arrival_ordered

    @property
    def flowing(self) -> bool:
        return self.child.flowing


@frozen
class Lives(_PlainStream):
    """The tuples of a stream, with the life to which each belongs by a constraint that is detected.

    `plan.lives` says what a life is. It follows from the order of all tuples, so none is left out below.
    """

    child: Stream
    constraint: Constraint
    life: str = "_life"
    """The name of the column that tells the lives of a value apart."""

    inputs = ("child",)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.child.columns, Column(self.life, BIGINT))

    @property
    def label(self) -> str:
        return f"lives of {self.constraint.column} by constraint {self.constraint.name}"

    def reading(self, change: Change) -> Self:
        return replace(self, constraint=replace(self.constraint, column=change.column(self.constraint.column)))

    @property
    def carried(self) -> tuple[Carried, ...]:
        return (identity(self.child),)

    together = None

    @property
    def deciding(self) -> frozenset[str]:
        return frozenset({self.constraint.column.lower()})

    @property
    def own_names(self) -> tuple[str, ...]:
        return (self.life,)

    def with_own_names(self, names: tuple[str, ...]) -> Self:
        (life,) = names
        return replace(self, life=life)

    @property
    def narrows(self) -> Literal["never", "what is kept", "always"]:
        return "never"

    @property
    def ends(self) -> Spans:
        return self.child.ends

    lasts = False
    opens = False

    def shown_at(self, last: Tick, closing: Closing) -> Tick:
        return last

    @property
    def flow(self) -> StateBound:
        return self.child.flow

    @property
    def base(self) -> Scan | None:
        return self.child.base

    straight = None  # a tuple gets its life by those before it

    @property
    def stamp_column(self) -> str | None:
        return self.child.stamp_column

    starting = None

    @property
    def arrival_ordered(self) -> bool:
        return self.child.arrival_ordered

    flowing = False


class _OfRelation(_PlainStream):
    """A stream of a relation's rows."""

    inputs = ("child",)

    if TYPE_CHECKING:

        @property
        def child(self) -> Relation: ...

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def carried(self) -> tuple[Carried, ...]:
        return (identity(self.child),)

    @property
    def narrows(self) -> Literal["never", "what is kept", "always"]:
        return "always"

    @property
    def lasts(self) -> bool:
        return self.child.lasts

    @property
    def opens(self) -> bool:
        return self.child.opens

    base = None
    stamp_column = None

    @property
    def arrival_ordered(self) -> bool:
        return self.straight is not None and self.straight.arrival_ordered

    def _window_of(self, frame: Unbounded | Now) -> Stream | None:
        """The stream below, if the relation only selects from a window with that frame."""
        window = self.child.window
        return window.child if window is not None and window.frame == frame else None


class _OfChanges(_OfRelation):
    """A stream of the rows that come or go: equal rows that come and go at one instant are set off against each other,
    so a row depends on the rows that are equal to it, unless nothing ever goes.
    """

    @property
    def together(self) -> frozenset[str] | None:
        return None if self.child.endless else lower_names(self.child)

    def shown_at(self, last: Tick, closing: Closing) -> Tick:
        return last

    @property
    def flow(self) -> StateBound:
        return self.child.flow


@frozen
class Istream(_OfChanges):
    """The rows that come into a relation. Over an unbounded window it gives every tuple back at its own instant."""

    child: Relation

    label = "istream"

    @property
    def deciding(self) -> frozenset[str]:
        return frozenset() if self.child.endless else lower_names(self.child)

    @property
    def ends(self) -> Spans:
        return self.child.begins

    @property
    def straight(self) -> Stream | None:
        return self._window_of(Unbounded())

    @property
    def starting(self) -> Relation | None:
        return self.child if self.child.endless else None

    @property
    def flowing(self) -> bool:
        return self.child.flows(Unbounded())


@frozen
class Dstream(_OfChanges):
    """The rows that leave a relation."""

    child: Relation

    label = "dstream"

    @property
    def deciding(self) -> frozenset[str]:
        return lower_names(self.child)

    @property
    def ends(self) -> Spans:
        return self.child.ends

    straight = None
    starting = None
    flowing = False


@frozen
class Rstream(_OfRelation):
    """The whole relation, at every instant or at every multiple of `every`. Over [Now] it gives every tuple back."""

    child: Relation
    every: Tick | None = None

    @property
    def label(self) -> str:
        return f"rstream{f' every {span_text(self.every, self.time)}' if self.every else ''}"

    together = None
    deciding = frozenset()

    @property
    def ends(self) -> Spans:
        lasts = self.child.lasts
        return {stream: frozenset([repeated(of, self.every, lasts)]) for stream, of in self.child.ends.items()}

    def shown_at(self, last: Tick, closing: Closing) -> Tick:
        return aligned(last, self.every or 1)

    @property
    def flow(self) -> StateBound:
        return self.child.rows

    @property
    def straight(self) -> Stream | None:
        return self._window_of(Now()) if self.every is None else None

    @property
    def starting(self) -> Relation | None:
        return self.child if self.every is None and self.child.instantaneous else None

    @property
    def flowing(self) -> bool:
        return self.every is None and self.child.flows(Now())
