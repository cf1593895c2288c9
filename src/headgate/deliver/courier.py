"""Delivers what waits in an outbox, in a thread of its own: a sink that hangs holds up nobody but itself.

The loop begins a round of deliveries. The thread hands them over, one after another, and ends the round when nothing
more waits or the sink fails. There is one round at a time, so a sink is called by one thread at a time and in order.
The loop may wait for the end of the round, for a bounded time: a program that steps the engine by hand then finds the
results delivered. A sink that does not come back in that time is not waited for again until it does.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress

from headgate.deliver.outbox import Outbox
from headgate.errors import UserError
from headgate.heartbeat.clock import Clock

CLOSE_SECONDS = 10.0
"""How long the end of an engine waits for its sinks."""

DROP_SECONDS = 2.0
"""How long a query that is dropped waits for its sink."""


class Courier:
    """The thread that hands the deliveries of one query to its sink."""

    def __init__(self, outbox: Outbox, wake: Callable[[], None] = lambda: None) -> None:
        self.outbox = outbox
        self.wake = wake
        """Called at the end of every round: something was delivered, or may be delivered next."""
        self.overdue = False
        """Whether the loop has waited for this round in vain."""
        self._rounds: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._idle = threading.Event()
        self._idle.set()
        self._error: BaseException | None = None

    @property
    def busy(self) -> bool:
        """Whether a round is under way."""
        return not self._idle.is_set()

    def can_deliver(self, now_us: int) -> bool:
        """Say whether a round can begin that may deliver something."""
        return not self.busy and self.outbox.can_deliver(now_us)

    def deliver(self, clock: Clock, tell: Callable[[str], None], pieces: int | None, wait_s: float) -> None:
        """Begin a round if none is under way, and wait for its end, but no longer than `wait_s`."""
        if self.can_deliver(clock.now_us()):
            self._begin(lambda: self.outbox.deliver(clock, tell, pieces))
        self.wait(wait_s)

    def finish(self, clock: Clock, tell: Callable[[str], None], wait_s: float) -> None:
        """Hand over the rest at the end of the engine, unless the sink has failed; wait no longer than `wait_s`."""
        with suppress(UserError):  # what the journal could not note is delivered again by the next engine
            self.wait(wait_s)
            if self.can_deliver(clock.now_us()):
                self._begin(lambda: self.outbox.finish(clock, tell))
                self.wait(wait_s)

    def hold(self, wait_s: float) -> None:
        """Deliver nothing more for now, and wait for the delivery under way, but no longer than `wait_s`."""
        self.outbox.held = True
        if self.outbox.calling.acquire(timeout=wait_s):
            self.outbox.calling.release()

    def hand_over(self, wait_s: float) -> bool:
        """Hand over all that waits, for a caller who has the journal's turn, and deliver nothing more for now; say
        whether the sink has it, within `wait_s`.
        """
        self.outbox.held = True
        if self.outbox.trouble is not None:
            return False
        handed: list[bool] = []

        def work() -> None:
            with suppress(Exception):  # whatever a sink's client raises
                self.outbox.hand_over()
                handed.append(True)

        thread = threading.Thread(target=work, name=f"end of the sink of {self.outbox.query}", daemon=True)
        thread.start()
        thread.join(wait_s)
        return bool(handed)

    def go_on(self) -> None:
        """Deliver again after a `hold`."""
        self.outbox.held = False

    def close(self, wait_s: float) -> None:
        """Let go of the sink when the delivery under way has ended: within `wait_s`, or whenever it comes back."""
        self.outbox.held = True
        if self.outbox.kept:
            self.outbox.close()
            return
        under_way = self.busy
        self._begin(self.outbox.close)
        self._rounds.put(None)
        if not under_way:
            self._idle.wait(wait_s)

    def wait(self, wait_s: float) -> None:
        """Wait for the end of the round under way, but no longer than `wait_s`, and raise what it met with."""
        if self.busy and not self.overdue:
            self.overdue = wait_s > 0 and not self._idle.wait(wait_s)
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _begin(self, work: Callable[[], None]) -> None:
        self.overdue = False
        self._idle.clear()
        self._rounds.put(work)
        if self._thread is None:  # a daemon: the end of the process does not wait for a sink that hangs
            self._thread = threading.Thread(target=self._go_round, name=f"sink of {self.outbox.query}", daemon=True)
            self._thread.start()

    def _go_round(self) -> None:
        while (work := self._rounds.get()) is not None:
            try:
                work()
            except BaseException as error:  # the next `deliver` or `finish` raises it
                self._error = error
            if self._rounds.empty():
                self._idle.set()
            self.wake()
        self._idle.set()
