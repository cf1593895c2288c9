"""Frames: what stands in the brackets behind a stream. Each answers every question of `FrameTraits`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from headgate.plan.frozen import frozen
from headgate.plan.limits import Growing, Limited, StateBound, lasting, unless_growing
from headgate.plan.monotone import Chain, Closer, Steps, applied, closes, reach, rising, stretch
from headgate.plan.spans import Span
from headgate.sql import Sql, spelled
from headgate.ticks import UNLIMITED, Tick, TimeDomain

if TYPE_CHECKING:
    from headgate.plan.nodes.windows import Window

Rename: TypeAlias = Callable[[str], str]


def span_text(length: Tick, time: TimeDomain) -> str:
    """A length of time as `explain` prints it."""
    return f"{length / 1_000_000:g} seconds" if time is TimeDomain.TIMESTAMP else str(length)


def aligned(instant: Tick, grid: Tick) -> Tick:
    """The first multiple of the grid at or behind the instant."""
    return -(-instant // grid) * grid


class FrameTraits(ABC):
    """Every question that is asked of a frame. None has an answer by default."""

    @abstractmethod
    def label(self, time: TimeDomain) -> str:
        """The frame as `explain` prints it."""

    @property
    @abstractmethod
    def spans(self) -> tuple[Span, ...]:
        """From a tuple to when it begins to count, and, if it ever does, to when it stops."""

    @abstractmethod
    def settled(self, last: Tick, closing: Callable[[Sql, Tick | None], Tick | None]) -> Tick:
        """The instant at which tuples up to `last` are shown; `closing` evaluates SQL over one `_t`, or over the last
        instant at which anything came from a source.
        """

    @abstractmethod
    def bound(self, window: Window, arrived: str) -> StateBound:
        """What limits the rows of the window; `arrived` is the verb for its tuples."""

    @property
    @abstractmethod
    def together(self) -> frozenset[str] | None:
        """The columns on which tuples agree that decide about each other; None if each tuple counts by itself."""

    @property
    @abstractmethod
    def deciding(self) -> frozenset[str]:
        """The columns, in lower case, that decide when a tuple counts."""

    @abstractmethod
    def renamed(self, rename: Rename) -> FrameTraits | None:
        """The frame over renamed columns; None if its text reads one of them under the old name."""

    @property
    @abstractmethod
    def ties(self) -> bool:
        """Whether tuples of one instant are put in an order: by arrival, or by all of their columns."""

    @property
    @abstractmethod
    def interval_by_stamp(self) -> bool:
        """Whether the interval in which a tuple counts follows from its timestamp alone."""

    @property
    @abstractmethod
    def endless(self) -> bool:
        """Every tuple stays for ever."""

    @property
    @abstractmethod
    def open_ended(self) -> bool:
        """A tuple has no end of its own: another tuple pushes it out, if anything does."""

    @property
    @abstractmethod
    def retracts(self) -> bool:
        """A tuple may be taken back by an element with a negative count."""

    @property
    @abstractmethod
    def fixed_span(self) -> Tick | None:
        """For how many instants every tuple counts, if that is the same for all."""

    @property
    @abstractmethod
    def longest(self) -> Tick | None:
        """For how many instants a tuple counts at the most; None if that is not known."""

    @property
    @abstractmethod
    def coarse(self) -> bool:
        """Many tuples begin and end together."""

    @property
    @abstractmethod
    def slides(self) -> tuple[Tick, int] | None:
        """The slide at whose multiples all tuples begin and end to count, and how many slides one counts at the most.

        None if there is no such slide.
        """

    @property
    @abstractmethod
    def kept(self) -> bool | None:
        """Whether its live tuples can be read again: always (it keeps a tail), never, or None: from a log if any."""


class TimeFrame(FrameTraits):
    """A frame in which each tuple counts for a time that follows from its own timestamp."""

    together = None
    deciding = frozenset()

    def renamed(self, rename: Rename) -> FrameTraits | None:
        return self

    ties = False
    interval_by_stamp = True
    retracts = False
    kept = None


@frozen
class Now(TimeFrame):
    """The tuples of this instant."""

    def label(self, time: TimeDomain) -> str:
        return "[now]"

    @property
    def spans(self) -> tuple[Span, ...]:
        return Span(), Span(1, 1)

    def settled(self, last: Tick, closing: Callable[[Sql, Tick | None], Tick | None]) -> Tick:
        return last

    def bound(self, window: Window, arrived: str) -> StateBound:
        return unless_growing(f"what {arrived} at the last instant", window.child.flow)

    endless = False
    open_ended = False
    fixed_span = 1
    longest = 1
    coarse = False
    slides = None


@frozen
class Unbounded(TimeFrame):
    """All tuples so far."""

    def label(self, time: TimeDomain) -> str:
        return "[range unbounded]"

    @property
    def spans(self) -> tuple[Span, ...]:
        return (Span(),)

    def settled(self, last: Tick, closing: Callable[[Sql, Tick | None], Tick | None]) -> Tick:
        return last

    def bound(self, window: Window, arrived: str) -> StateBound:
        base = window.child.base
        if base is not None:
            return Growing(base.stream, f"{base.stream} [RANGE UNBOUNDED] holds every tuple ever seen")
        return Growing("RANGE UNBOUNDED", "[RANGE UNBOUNDED] over a query holds every tuple that ever came of it")

    endless = True
    open_ended = True
    fixed_span = None
    longest = None
    coarse = False
    slides = None


@frozen
class Range(TimeFrame):
    """The tuples of the last `length` ticks; with `slide`, as of the last multiple of it.

    Closed: [now - length, now]. Half-open: (now - length, now].
    """

    length: Tick
    slide: Tick | None
    closed: bool

    @property
    def span(self) -> Tick:
        """For how many instants a tuple stays, when nothing slides."""
        return self.length + 1 if self.closed else self.length

    def label(self, time: TimeDomain) -> str:
        bound = "" if self.closed else ", half-open"
        sliding = f" slide {span_text(self.slide, time)}" if self.slide else ""
        return f"[range {span_text(self.length, time)}{sliding}{bound}]"

    @property
    def spans(self) -> tuple[Span, ...]:
        grid = self.slide or 1
        return Span(0, grid - 1, grid), Span(self.span, self.span + grid - 1, grid)

    def settled(self, last: Tick, closing: Callable[[Sql, Tick | None], Tick | None]) -> Tick:
        return aligned(last, self.slide or 1)

    def bound(self, window: Window, arrived: str) -> StateBound:
        span = lasting(self.length + (self.slide or 0), window.time)
        return unless_growing(f"what {arrived} in the last {span}", window.child.flow)

    endless = False
    open_ended = False

    @property
    def fixed_span(self) -> Tick | None:
        return self.span or None if self.slide is None else None

    @property
    def longest(self) -> Tick | None:
        return max(self.length + self.slide if self.slide is not None else self.span, 1)

    @property
    def coarse(self) -> bool:
        return self.slide is not None

    @property
    def slides(self) -> tuple[Tick, int] | None:
        if self.slide is None:
            return None
        # a closed window that begins at a slide ends behind another one
        return self.slide, self.length // self.slide + 1 if self.closed else -(-self.length // self.slide)


class TailFrame(FrameTraits):
    """A frame in which the tuples that come decide which earlier ones still count: it keeps a tail of them."""

    interval_by_stamp = False
    endless = False
    retracts = True
    fixed_span = None
    longest = None  # what takes a tuple back has no end
    coarse = False
    slides = None
    kept = True


@frozen
class Rows(TailFrame):
    """The last `count` tuples, of each value of `by` if there is any; with `span`, each for that many instants at most.

    With `slide`, as of the last instant that is a multiple of it. With `step`, as of the last tuple whose number is.
    """

    count: int
    by: tuple[str, ...]
    span: Tick | None = None
    slide: Tick | None = None
    step: int | None = None

    def label(self, time: TimeDomain) -> str:
        partition = f"partition by {', '.join(self.by)} " if self.by else ""
        spanned = f" for {span_text(self.span, time)}" if self.span is not None else ""
        slide = span_text(self.slide, time) if self.slide else f"{self.step} rows" if self.step else ""
        return f"[{partition}rows {self.count}{spanned}{f' slide {slide}' if slide else ''}]"

    @property
    def spans(self) -> tuple[Span, ...]:
        grid = self.slide or 1
        begins = Span(0, grid - 1, grid)
        return (begins,) if self.span is None else (begins, Span(self.span, self.span + grid - 1, grid))

    def settled(self, last: Tick, closing: Callable[[Sql, Tick | None], Tick | None]) -> Tick:
        return aligned(last, self.slide or 1)

    def bound(self, window: Window, arrived: str) -> StateBound:
        count = self.count + (self.step or 0)
        last = "the last row" if count == 1 else f"the last {count} rows"
        if self.slide is not None:
            last += f" and what {arrived} in the last {lasting(self.slide, window.time)}"
        if not self.by:
            return Limited(last) if self.slide is None else unless_growing(last, window.child.flow)
        each = ", ".join(self.by)
        if self.span is None:
            many = "one row" if count == 1 else f"{count} rows"
            return Growing("PARTITION BY", f"PARTITION BY {each} ROWS {count} keeps {many} for each {each} ever seen")
        span = lasting(self.span, window.time)
        return unless_growing(f"{last} for each {each} that {arrived} in the last {span}", window.child.flow)

    @property
    def together(self) -> frozenset[str] | None:
        return frozenset(name.lower() for name in self.by)

    @property
    def deciding(self) -> frozenset[str]:
        return frozenset(name.lower() for name in self.by)

    def renamed(self, rename: Rename) -> FrameTraits | None:
        return Rows(self.count, tuple(map(rename, self.by)), self.span, self.slide, self.step)

    ties = True

    @property
    def open_ended(self) -> bool:
        return self.span is None


@frozen
class Values(TailFrame):
    """The tuples whose `column` is at most `length` below the largest value so far.

    Closed: [largest - length, largest]. Half-open: (largest - length, largest]. `value` is the column as a number in
    SQL.
    """

    column: str
    value: Sql
    length: Sql
    closed: bool

    def label(self, time: TimeDomain) -> str:
        return f"[range {self.length} on {self.column}{'' if self.closed else ', half-open'}]"

    @property
    def spans(self) -> tuple[Span, ...]:
        return (Span(),)

    def settled(self, last: Tick, closing: Callable[[Sql, Tick | None], Tick | None]) -> Tick:
        return last

    def bound(self, window: Window, arrived: str) -> StateBound:
        near = f"keeps every tuple near the largest {self.column}, however many come"
        return Growing(f"ON {self.column}", f"[RANGE {self.length} ON {self.column}] {near}")

    together = frozenset()

    @property
    def deciding(self) -> frozenset[str]:
        return frozenset({self.column.lower()})

    def renamed(self, rename: Rename) -> FrameTraits | None:
        return self if rename(self.column) == self.column else None

    ties = False
    open_ended = True


class FinalFrame(FrameTraits):
    """A frame that shows each tuple for one instant, once it is final."""

    interval_by_stamp = False
    ties = False
    endless = False
    open_ended = False
    retracts = False
    fixed_span = 1
    longest = 1
    coarse = True
    slides = None


@frozen
class Closing:
    """A value of each tuple that stops to occur, a function of its timestamp (`_t`) or of a column, and its clocks."""

    value: Chain
    closers: frozenset[Closer]


@frozen
class Final(FinalFrame):
    """Each tuple for one instant: the first at which no tuple can have its value any more. Of several values the
    earliest counts.

    `closes` is that instant in SQL, over `_t` and the columns in `reads`. It is at most `delay` behind the tuple, if
    one knows.
    """

    values: tuple[Closing, ...]
    closes: Sql
    reads: frozenset[str]
    delay: Tick | None

    def label(self, time: TimeDomain) -> str:
        values = (applied(one.value.steps, spelled(one.value.column)) for one in self.values)
        return f"[final when {' or '.join(values)} has passed]"

    @property
    def spans(self) -> tuple[Span, ...]:
        if self.delay is None:
            return (Span(0, UNLIMITED, once=True),)
        return Span(0, self.delay), Span(1, self.delay + 1)

    def settled(self, last: Tick, closing: Callable[[Sql, Tick | None], Tick | None]) -> Tick:
        if self.reads:  # what is final came of what is final: its values follow from what came before
            found = closing(self.closes_last, None)
        else:
            found = closing(self.closes, last)
        if found is not None:
            return max(last, found)
        clocks = [closer for one in self.values for closer in one.closers]
        return last + max((self.delay or 0, *((reach(one.steps, one.steps) or 0) + one.lag for one in clocks)))

    @property
    def closes_last(self) -> Sql:
        """The instant at which the last of the values can no longer occur that time has brought by `_t`, in SQL."""
        ways = []
        for one in self.values:
            reached = sorted({applied(closer.steps, Sql("_t")) for closer in one.closers})
            furthest = Sql("GREATEST") if all(rising(closer.steps) for closer in one.closers) else Sql("LEAST")
            value = reached[0] if len(reached) == 1 else f"{furthest}({', '.join(reached)})"
            ways.append(closes(one.closers, value))
        return ways[0] if len(ways) == 1 else f"LEAST({', '.join(ways)})"

    def bound(self, window: Window, arrived: str) -> StateBound:
        if self.waits_ever_longer:
            return Growing("EMIT FINAL", "the later a tuple comes, the longer it takes until it is final")
        return unless_growing(f"what {arrived} and is not final yet", window.child.flow)

    @property
    def waits_ever_longer(self) -> bool:
        """True if tuples wait the longer to become final the later they come.

        Each value that closes a tuple has a clock that grows more slowly than the value itself. A value of a column
        comes with its clocks: it grows as the fastest of them does.
        """

        def speeds(one: Closing) -> tuple[Steps, ...]:
            return tuple(closer.steps for closer in one.closers) if self.reads else (one.value.steps,)

        return all(
            any(stretch(own, closer.steps) > 1 for own in speeds(one) for closer in one.closers) for one in self.values
        )

    together = None

    @property
    def deciding(self) -> frozenset[str]:
        return self.reads

    def renamed(self, rename: Rename) -> FrameTraits | None:
        return self if all(rename(name) == name for name in self.reads) else None

    @property
    def kept(self) -> bool | None:
        return None if self.delay is not None else False


@frozen
class Passed(FinalFrame):
    """Each tuple for one instant: the timestamp of the first one whose `value`, a number in SQL, is larger; smaller if
    it falls.

    The column it is computed from was declared to be ordered; a tuple that is behind what has passed is an error.
    """

    column: str
    value: Sql
    rises: bool

    def label(self, time: TimeDomain) -> str:
        return f"[final when {self.value} {'rises' if self.rises else 'falls'}]"

    @property
    def spans(self) -> tuple[Span, ...]:
        return Span(), Span(1, 1)

    def settled(self, last: Tick, closing: Callable[[Sql, Tick | None], Tick | None]) -> Tick:
        return last

    def bound(self, window: Window, arrived: str) -> StateBound:
        since = f"what {arrived} since {self.column} last changed enough to close something"
        return unless_growing(since, window.child.flow)

    together = frozenset()

    @property
    def deciding(self) -> frozenset[str]:
        return frozenset({self.column.lower()})

    def renamed(self, rename: Rename) -> FrameTraits | None:
        return self if rename(self.column) == self.column else None

    kept = False


Frame: TypeAlias = Now | Unbounded | Range | Rows | Values | Final | Passed
