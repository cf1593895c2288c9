"""The profiler: what each stream, fragment and operator was seen to do, from what epochs cost anyway.

    Figures       what is known of one stream, fragment or operator: rates, selectivity, time for a row, state
    Profile       takes `record(...)` calls from where epochs are committed, and gives figures and their history
    Adaptations   what was adapted, when, and by which figures

No clock is read and no row is looked at: callers give numbers and the microsecond. The memory is bounded: the number of
subjects, of buckets of each (`series`), and of adaptations. Nothing of it is kept over a restart.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from headgate.log.statistics import Values
from headgate.observe.series import Amounts, Bucket, Series

Kind: TypeAlias = Literal["stream", "fragment", "operator"]

MOST_SUBJECTS = 4_096
"""Of so many streams, fragments and operators figures are kept; the one not heard of for longest goes first."""

MOST_ADAPTATIONS = 200
"""How many adaptations are kept."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What figures are about."""

    kind: Kind
    name: str
    """The name of the stream, of the fragment ("answer", "part_1", a shared one), or of the operator in its fragment:
    the input that it reads, the synopsis that it keeps, a step of the program.
    """

    fragment: str = ""
    """The fragment of an operator."""

    query: str = ""
    """The query of a fragment or operator; empty if it is shared by queries."""

    def __str__(self) -> str:
        return ".".join(filter(None, (self.query, self.fragment, self.name)))


@dataclass(frozen=True, slots=True)
class Figures:
    """What is known of one stream, fragment or operator, over the time that it lately did anything in."""

    subject: Subject
    span_us: int
    """Over how long; 0 if nothing happened lately, so that there are no rates."""

    epochs: int = 0
    rows_in: int = 0
    rows_out: int = 0
    took_us: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    waiting: int = 0
    """Of a fragment: how many rows wait for it, where the caller has looked (`engine.profile()` has)."""

    columns: Mapping[str, Values] = field(default_factory=dict)
    """Of a stream: null counts and ranges of its columns of numbers."""

    @property
    def rate_in(self) -> float:
        """How many rows came in a second."""
        return self.rows_in * 1e6 / self.span_us if self.span_us else 0.0

    @property
    def rate_out(self) -> float:
        """How many rows went out a second."""
        return self.rows_out * 1e6 / self.span_us if self.span_us else 0.0

    @property
    def selectivity(self) -> float | None:
        """How many rows it puts out for each that it takes; None while it took none, and of streams."""
        return self.rows_out / self.rows_in if self.rows_in and self.subject.kind != "stream" else None

    @property
    def us_per_row(self) -> float | None:
        """How long a row takes in microseconds; None while that is not known."""
        return self.took_us / self.rows_in if self.rows_in and self.took_us else None


@dataclass(slots=True)
class _Known:
    """What the profile keeps of one subject."""

    series: Series = field(default_factory=Series)
    state_rows: int = 0
    state_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Adaptation:
    """One thing that was adapted."""

    at_us: int
    """When, on the engine's clock."""

    part: str
    """The adaptive part that did it, by the name of the setting that switches it off."""

    query: str
    """The query it was done for; empty if it concerns all."""

    what: str
    """What was changed to what, in words."""

    by: str
    """The figures that it was decided by, in words."""

    def __str__(self) -> str:
        return f"{self.part}: {self.what} (by {self.by})"


class Adaptations:
    """What was adapted lately, oldest first."""

    def __init__(self) -> None:
        self._kept: deque[Adaptation] = deque(maxlen=MOST_ADAPTATIONS)
        self.count = 0
        """How many there were since the engine was started."""

    def note(self, at_us: int, part: str, query: str, what: str, by: str) -> None:
        """Take note that something was adapted."""
        self._kept.append(Adaptation(at_us, part, query, what, by))
        self.count += 1

    def of(self, query: str | None = None) -> list[Adaptation]:
        """Return those for a query and those that concern all queries; without a name, all that are kept."""
        return [one for one in list(self._kept) if query is None or one.query in ("", query)]


class Profile:
    """The figures of one engine. Calls from several threads are taken one after another."""

    def __init__(self) -> None:
        self.adaptations = Adaptations()
        self._known: OrderedDict[Subject, _Known] = OrderedDict()
        self._turn = threading.Lock()

    def record(
        self,
        subject: Subject,
        at_us: int,
        amounts: Amounts,
        *,
        state_rows: int | None = None,
        state_bytes: int | None = None,
    ) -> None:
        """Add what a stream, fragment or operator did; what is given of its state replaces the last."""
        with self._turn:
            known = self._known.get(subject)
            if known is None:
                known = self._known[subject] = _Known()
            self._known.move_to_end(subject)
            known.series.add(amounts, at_us)
            known.state_rows = known.state_rows if state_rows is None else state_rows
            known.state_bytes = known.state_bytes if state_bytes is None else state_bytes
            while len(self._known) > MOST_SUBJECTS:
                self._known.popitem(last=False)

    def forget(self, query: str) -> None:
        """Drop the figures of a query that is gone."""
        with self._turn:
            for subject in [one for one in self._known if one.query == query]:
                del self._known[subject]

    def of(self, subject: Subject, now_us: int) -> Figures | None:
        """Return the figures of one subject; None if nothing is known of it."""
        with self._turn:
            known = self._known.get(subject)
            return None if known is None else _figures(subject, known, now_us)

    def figures(self, now_us: int, kind: Kind | None = None, query: str | None = None) -> list[Figures]:
        """Return the figures of all subjects of a kind, or of a query, in the order of their names."""
        with self._turn:
            found = [
                _figures(subject, known, now_us)
                for subject, known in self._known.items()
                if kind in (None, subject.kind) and query in (None, subject.query)
            ]
        order = {"stream": 0, "fragment": 1, "operator": 2}
        return sorted(found, key=lambda one: (order[one.subject.kind], str(one.subject)))

    def history(self, subject: Subject, now_us: int, level: int = 0) -> tuple[Bucket, ...]:
        """Return the buckets of a subject, oldest first: by seconds, quarters of a minute (1), or four minutes (2)."""
        with self._turn:
            known = self._known.get(subject)
            return () if known is None else known.series.buckets(now_us, level)


def _figures(subject: Subject, known: _Known, now_us: int) -> Figures:
    amounts, span_us = known.series.recent(now_us)
    return Figures(
        subject,
        span_us,
        amounts.epochs,
        amounts.rows_in,
        amounts.rows_out,
        amounts.took_us,
        known.state_rows,
        known.state_bytes,
        columns=dict(amounts.columns),
    )
