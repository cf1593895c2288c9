"""Heartbeats of streams: how far each is known to be complete, from what arrived, when, and what was promised.

A stream promises that a tuple arrives at most `disorder` ticks behind the largest timestamp before it. So after the largest
timestamp m, everything up to m - disorder - 1 is complete; m - disorder itself may still come. A stream from which nothing
came for the timeout is silent: it no longer holds others back and follows them. Heartbeats never go back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headgate.catalog import Tick


@dataclass(slots=True)
class Progress:
    """What is known of one stream."""

    disorder_ticks: Tick
    since_us: int
    """When it was last heard of on the engine's clock; before the first tuple, when it was defined."""

    finished: bool = False
    """Nothing will come any more: it holds nobody back, and is not silent."""

    largest: Tick | None = None
    given: Tick | None = None
    """The last heartbeat anybody was given: what arrives at or before it is late."""

    @property
    def promised(self) -> Tick | None:
        return None if self.largest is None else self.largest - self.disorder_ticks - 1


class Heartbeats:
    def __init__(self) -> None:
        self.streams: dict[str, Progress] = {}
        self.timeout_us: int | None = None
        self.asked_us: int | None = None
        """When a heartbeat was first asked for: streams that never spoke count as silent from the timeout after it."""

    def add(self, stream: str, disorder_ticks: Tick, now_us: int) -> None:
        self.streams[stream] = Progress(disorder_ticks, now_us)

    def finish(self, stream: str) -> None:
        self.streams[stream].finished = True

    def arrived(self, stream: str, largest: Tick, now_us: int) -> None:
        """Tuples came; `largest` is the largest timestamp among those that were not late."""
        progress = self.streams[stream]
        progress.largest = largest if progress.largest is None else max(progress.largest, largest)
        progress.since_us = now_us

    def heard(self, stream: str, now_us: int) -> None:
        """Something came that moves no heartbeat, a late tuple for instance: the stream is not silent."""
        self.streams[stream].since_us = now_us

    def silent(self, stream: str, now_us: int) -> bool:
        if self.timeout_us is None:
            return False
        progress = self.streams[stream]
        since_us = progress.since_us
        if progress.largest is None and self.asked_us is not None:
            since_us = max(since_us, self.asked_us)
        return now_us - since_us >= self.timeout_us

    def heartbeat(self, streams: Iterable[str], now_us: int) -> Tick | None:
        """The instant up to which all of these streams are complete; None while that is unknown.

        Silent streams follow the slowest that is not. If all are silent, everything that came is complete.
        """
        self.asked_us = now_us if self.asked_us is None else self.asked_us
        going_on = [name for name in streams if not self.streams[name].finished]
        inputs = [self.streams[name] for name in going_on]
        speaking = [self.streams[name] for name in going_on if not self.silent(name, now_us)]
        if speaking:
            promises = [progress.promised for progress in speaking]
            known = [promise for promise in promises if promise is not None]
            reached = min(known) if len(known) == len(promises) else None
        else:
            reached = max((progress.largest for progress in inputs if progress.largest is not None), default=None)
        own = [max((x for x in (p.promised, p.given) if x is not None), default=None) for p in inputs]
        if own and all(instant is not None for instant in own):
            least = min(instant for instant in own if instant is not None)
            reached = least if reached is None else max(reached, least)
        return reached

    def give(self, stream: str, heartbeat: Tick) -> None:
        """Remember that readers of the stream were told that it is complete up to here."""
        progress = self.streams[stream]
        progress.given = heartbeat if progress.given is None else max(progress.given, heartbeat)

    def limit(self, stream: str) -> Tick | None:
        """What arrives with a timestamp up to here is late."""
        progress = self.streams[stream]
        return None if progress.finished else progress.given
