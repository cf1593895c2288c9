"""Watching for what has failed: an epoch that does not end, and a stream that stands still while others go on.

`SET failed_after = '1 minute'` says how long is too long. `Watch` decides, from instants of the engine's clock that it
is handed. `watching` checks it from a thread of its own, because the thread that runs epochs is the one that hangs.

An epoch that is overdue is interrupted. Every Spark job of an epoch carries a tag that no other epoch has, so the jobs
of other queries and of the user are not touched. The jobs then fail, and the epoch with them, with the error
`epoch-hung`. Nothing of it counts, so it can run again from where the fragment was.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TypeAlias
from uuid import uuid4

from pyspark.sql import SparkSession

from headgate.errors import UserError
from headgate.heartbeat.clock import Clock
from headgate.spark.session import interrupt, tagged
from headgate.ticks import UNLIMITED, Tick

LOOK_SECONDS = 1.0
"""The thread looks at least so often."""

LOOKS = 10
"""How often the thread looks within the time that is too long."""


@dataclass(frozen=True, slots=True)
class Hung:
    """An epoch has not ended, and is interrupted."""

    fragment: str
    for_us: int

    def __str__(self) -> str:
        return f'an epoch of query "{self.fragment}" has not ended after {_seconds(self.for_us)} and is interrupted'


@dataclass(frozen=True, slots=True)
class Stopped:
    """A stream has not gone on, although another has."""

    stream: str
    for_us: int

    def __str__(self) -> str:
        return (
            f'stream "{self.stream}" has stood still for {_seconds(self.for_us)} while others went on: its source '
            "may have failed"
        )


@dataclass(frozen=True, slots=True)
class GoesOn:
    """A stream that had stopped goes on."""

    stream: str

    def __str__(self) -> str:
        return f'stream "{self.stream}" goes on'


Finding: TypeAlias = Hung | Stopped | GoesOn


@dataclass(slots=True)
class _Epoch:
    began_us: int
    interrupt: Callable[[], object]
    overdue: bool = False


@dataclass(slots=True)
class _Stream:
    complete: Tick | None
    moved_us: int
    stopped: bool = False


class Watch:
    """The epochs that run and the streams that move. It reports each failure once, from the thread that finds it."""

    def __init__(self, failed_after_us: Callable[[], int | None], report: Callable[[Finding], None]) -> None:
        self.failed_after_us = failed_after_us
        self.report = report
        self._epochs: dict[str, _Epoch] = {}
        self._streams: dict[str, _Stream] = {}
        self._lock = threading.Lock()

    # what it watches

    def began(self, fragment: str, now_us: int, interrupt: Callable[[], object]) -> None:
        """Watch an epoch that begins. `interrupt` makes it fail soon; any thread may call it, also more than once."""
        with self._lock:
            self._epochs[fragment] = _Epoch(now_us, interrupt)

    def ended(self, fragment: str) -> bool:
        """Watch an epoch no longer, because it has ended or failed; say whether it was interrupted."""
        with self._lock:
            return self._epochs.pop(fragment).overdue

    def looked(self, complete: Mapping[str, Tick | None], now_us: int) -> None:
        """Note how far each stream is complete. Streams that are left out, paused or dropped, are not watched."""
        with self._lock:
            known = self._streams
            self._streams = {}
            for stream, upto in complete.items():
                before = known.get(stream)
                if before is None or upto != before.complete:
                    self._streams[stream] = _Stream(upto, now_us, before is not None and before.stopped)
                else:
                    self._streams[stream] = before

    # what it finds

    def check(self, now_us: int) -> list[Finding]:
        """Report and return what has failed, or goes on again, since the last check. Interrupt overdue epochs."""
        most_us = self.failed_after_us()
        if most_us is None:
            return []
        with self._lock:
            overdue = {name: epoch for name, epoch in self._epochs.items() if now_us - epoch.began_us >= most_us}
            found: list[Finding] = [
                Hung(name, now_us - epoch.began_us) for name, epoch in overdue.items() if not epoch.overdue
            ]
            found += self._streams_found(most_us, now_us)
            for epoch in overdue.values():
                epoch.overdue = True
        for epoch in overdue.values():
            epoch.interrupt()  # again each time: it may have been between two jobs
        for finding in found:
            self.report(finding)
        return found

    def _streams_found(self, most_us: int, now_us: int) -> Iterator[Finding]:
        """Find streams that have stopped: another has moved after they had stood still for so long.

        If all streams stand still, none has stopped.
        """
        for name, stream in self._streams.items():
            others = (other.moved_us for other in self._streams.values() if other is not stream)
            finished = stream.complete is not None and stream.complete >= UNLIMITED
            stopped = not finished and max(others, default=stream.moved_us) - stream.moved_us >= most_us
            if stopped and not stream.stopped:
                yield Stopped(name, now_us - stream.moved_us)
            elif stream.stopped and not stopped:
                yield GoesOn(name)
            stream.stopped = stopped

    # on Spark

    @contextmanager
    def over(self, fragment: str, sessions: Sequence[SparkSession], clock: Clock) -> Iterator[None]:
        """In here, an epoch of a fragment is watched. All its jobs start from this thread, in one of these sessions."""
        if self.failed_after_us() is None:
            yield
            return
        tag = f"headgate-{uuid4().hex}"
        began_us = clock.now_us()
        interrupted = False
        try:
            with ExitStack() as tags:
                for session in sessions:
                    tags.enter_context(tagged(session, tag))
                self.began(fragment, began_us, lambda: _interrupt(sessions, tag))
                try:
                    yield
                finally:
                    interrupted = self.ended(fragment)
        except Exception as error:
            if not interrupted:
                raise
            raise hung(fragment, clock.now_us() - began_us) from error


def hung(fragment: str, for_us: int) -> UserError:
    """Return the error for an epoch that was interrupted."""
    return UserError(
        "epoch-hung",
        f'an epoch of query "{fragment}" was interrupted after {_seconds(for_us)}',
        detail="Nothing of it counts, and it can be taken again.",
        hint="If epochs take so long by themselves: SET failed_after = 'none', or a longer time.",
    )


@contextmanager
def watching(watch: Watch, clock: Clock) -> Iterator[None]:
    """In here, a thread checks the watch again and again."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(_pause(watch.failed_after_us())):
            watch.check(clock.now_us())

    thread = threading.Thread(target=look, name="watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _pause(most_us: int | None) -> float:
    return LOOK_SECONDS if most_us is None else min(LOOK_SECONDS, most_us / 1_000_000 / LOOKS)


def _interrupt(sessions: Sequence[SparkSession], tag: str) -> None:
    with suppress(Exception):  # if Spark does not answer, the epoch finds out by itself, and the next look tries again
        for session in sessions:
            interrupt(session, tag)


def _seconds(length_us: int) -> str:
    return f"{length_us / 1_000_000:.3g} s"
