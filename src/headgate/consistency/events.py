"""What lies in the queues between the stages of a query: events with labels, and synchronization tokens.

An event is what one run of a stage puts out, or what has come on a stream since the last look: never a single row. Its
label says which tuples it comes from. The *active* part are the tuples that made the stage run; since an event stands
for many of them, it is a range for each stream. The whole label, with the *passive* part, is how many tuples of each
stream the stage has taken by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Range:
    """Tuples of a stream, in order of arrival: those behind the first `low`, up to the first `high`."""

    low: int
    high: int

    def meets(self, other: Range) -> bool:
        """Whether they have tuples in common."""
        return self.low < other.high and other.low < self.high


@dataclass(frozen=True, slots=True)
class Event:
    """What one run of a stage has put out, or tuples that have come on a stream."""

    active: Mapping[str, Range]
    """By stream: the tuples that made the stage run, directly or through the stages that it reads."""

    seen: Mapping[str, int]
    """By stream: how many tuples have gone into it, whether they made the stage run or were there before."""

    version: int = 0
    """The output of the stage that a reader reads when it takes this; 0 for tuples of a stream."""

    changed: bool = True
    """Whether that output differs from the one before. If not, a reader need not run to take it."""


@dataclass(frozen=True, slots=True)
class Token:
    """Everything before it in the queue comes from the prefixes with its number, and everything behind it does not."""

    number: int


@dataclass(frozen=True, slots=True)
class Taken:
    """What a stage takes from its queues in one run. It stays in them until the run is over."""

    events: Mapping[str, tuple[Event, ...]] = field(default_factory=dict)
    """By the stream or stage they come from."""

    token: int | None = None
    """The token that was on all of its queues behind these events, and so comes behind what it puts out."""

    @property
    def changes(self) -> bool:
        """Whether the stage must run: something that it reads is not as it was."""
        return any(event.changed for some in self.events.values() for event in some)

    def active(self) -> dict[str, Range]:
        """The tuples that make the stage run: for each stream, one range that holds all of them."""
        return _hull(event.active for some in self.events.values() for event in some)

    def seen(self) -> dict[str, int]:
        """How many tuples of each stream have gone into these events."""
        return larger(*(event.seen for some in self.events.values() for event in some))


def larger(*labels: Mapping[str, int]) -> dict[str, int]:
    """The larger number of each stream."""
    found: dict[str, int] = {}
    for label in labels:
        for stream, count in label.items():
            found[stream] = max(count, found.get(stream, 0))
    return found


def _hull(labels: Iterable[Mapping[str, Range]]) -> dict[str, Range]:
    found: dict[str, Range] = {}
    for label in labels:
        for stream, one in label.items():
            known = found.get(stream, one)
            found[stream] = Range(min(one.low, known.low), max(one.high, known.high))
    return found
