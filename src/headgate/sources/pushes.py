"""Pushes that wait at the same time are taken together: one line of the journal, and one chunk for each stream.

Whoever pushes puts the rows into a queue. The first in it waits for the journal's turn and then takes all that is in
the queue, for the others too, who sleep until then. Whoever came meanwhile is in the queue for the next group, and the
first of those is woken to take it. So the time that a disk needs to make something durable is shared. A push returns
when its rows are durable.

A group is judged as if its rows had come in one push. If anything fails, the pushes of the group are taken one by one,
and each gets the error that it would have got alone.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from headgate.errors import UserError
from headgate.heartbeat.clock import Clock
from headgate.log.journal import Journal
from headgate.sources.inlet import Inlet
from headgate.sources.rows import Read

GROUP_ROWS = 100_000
"""A group that has so many rows is full."""


@dataclass(slots=True, eq=False)
class Push:
    """Rows that somebody waits to see durable."""

    inlet: Inlet
    rows: Read
    began_us: int
    """When whoever pushes began to."""

    admit: Callable[[], bool] = lambda: True
    """Called in the journal's turn before the rows are taken; if it says no, they are not taken."""

    noted: Callable[[Counter[str]], None] = lambda counts: None
    """Called with how many rows there are of each verdict, before they are durable."""

    alone_as: str | None = None
    """No group has two pushes of one name: the second one's `admit` must see what became of the first."""

    awake: threading.Event = field(default_factory=threading.Event)
    """Set when it is done, or is the first in the queue."""

    done: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    error: Exception | None = None


class Pushes:
    """The queue of all pushes of an engine."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self.journal = journal
        self.clock = clock
        self._waiting: deque[Push] = deque()
        """The first of them is awake, or takes a group."""
        self._changing = threading.Lock()
        """Held while the queue is changed."""

    def take(self, push: Push) -> Counter[str]:
        """Take the rows of a push, with all others that wait; how many rows there are of each verdict.

        Who has the journal's turn already must not wait for others, who may wait for the turn.
        """
        if self.journal.has_turn:
            self._take_alone(push)
        else:
            self._wait_in_line(push)
        if push.error is not None:
            raise push.error
        return push.counts

    def _wait_in_line(self, push: Push) -> None:
        """Wait until somebody has taken a push, or until it is the first in the queue; then take a group."""
        with self._changing:
            self._waiting.append(push)
            if self._waiting[0] is push:
                push.awake.set()
        try:
            push.awake.wait()
            if not push.done:
                with self.journal.turn:
                    self._take_group(self._next_group())
        finally:  # whoever is interrupted leaves the line, and the others go on
            with self._changing:
                gone = [one for one in self._waiting if one.done or one is push]
                for one in gone:
                    self._waiting.remove(one)
                    one.awake.set()
                if self._waiting:
                    self._waiting[0].awake.set()

    def _next_group(self) -> list[Push]:
        """Those that have waited longest, up to so many rows; two of one name go apart, in their order."""
        group, names, rows = list[Push](), set[str](), 0
        with self._changing:
            for push in self._waiting:
                if rows >= GROUP_ROWS or push.alone_as in names:
                    break
                names |= {push.alone_as} if push.alone_as is not None else set()
                rows += push.rows.table.num_rows
                group.append(push)
        return group

    def _take_group(self, group: Sequence[Push]) -> None:
        try:
            if len(group) > 1:
                self._take(group)
        except Exception:
            pass  # each gets its own error
        for push in group:
            if not push.done:
                self._take_alone(push)

    def _take_alone(self, push: Push) -> None:
        try:
            self._take([push])
        except Exception as error:
            push.error, push.done = error, True

    def _take(self, group: Sequence[Push]) -> None:
        """Make the rows of a group durable in one step, or none of them."""
        inlets = dict.fromkeys(push.inlet for push in group)
        before = {inlet: dict(inlet.position) for inlet in inlets}
        counted: dict[Push, Counter[str]] = {}
        try:
            with self.journal.together():
                for inlet in inlets:
                    if inlet.dropped:
                        raise dropped(inlet)
                    admitted = [push for push in group if push.inlet is inlet and push.admit()]
                    if not admitted:
                        continue
                    inlet.began_us = min(push.began_us for push in admitted)
                    counts = inlet.take_reads([push.rows for push in admitted], self.clock)
                    for push, found in zip(admitted, counts, strict=True):
                        counted[push] = found
                        push.noted(found)
        except BaseException:
            for inlet, position in before.items():
                inlet.position = position
            raise
        for push in group:
            push.counts, push.done = counted.get(push, Counter()), True


def dropped(inlet: Inlet) -> UserError:
    """The error for rows of a stream that was dropped while they were on their way."""
    return UserError(
        "stream-changed", f'stream "{inlet.stream.name}" was dropped meanwhile', hint="Send the rows again."
    )
