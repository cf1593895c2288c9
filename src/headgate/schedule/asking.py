"""Finds out how far streams are that send nothing at the moment.

The clock is asked, the source that reads the stream, and a function of the user's. A stream with HEARTBEAT ON DEMAND is
asked about when something waits for it, one with HEARTBEAT EVERY at the multiples of its period, and one with HEARTBEAT
NONE never. What an answer means is decided in `heartbeat`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from headgate.errors import UserError
from headgate.heartbeat.clock import Clock
from headgate.heartbeat.clocks import base
from headgate.heartbeat.enabling import last_beat_us
from headgate.heartbeat.manager import Heartbeats
from headgate.scope import Scopes
from headgate.sources.source import Source
from headgate.spark.failures import called, failure
from headgate.ticks import Tick

Function: TypeAlias = Callable[[], Tick | None]
"""A function of the user's that returns the instant up to which nothing will still come; None if it does not know."""


class Asking:
    """Asks about streams on demand or at their period, and hands the answers to the time manager."""

    def __init__(self, clock: Clock, heartbeats: Heartbeats, sources: Sequence[Source]) -> None:
        self.clock = clock
        self.heartbeats = heartbeats
        self.sources = sources
        self.next_us: int | None = None
        """When the clock alone may give a new answer; None if something must come first."""
        self.functions: dict[str, Function] = {}
        """By stream: the functions that users have given."""
        self._under_way: dict[str, tuple[int, Tick]] = {}
        """By stream: when a function answered, and what. It holds once all rows that were there by then are read."""
        self._said: dict[str, Tick] = {}
        """By stream: the answers of functions that hold."""
        self._failed: UserError | None = None

    def forget(self, stream: str) -> None:
        """Forget a stream that is dropped."""
        for known in (self.functions, self._under_way, self._said):
            known.pop(stream, None)

    def beat(self, now_us: int) -> None:
        """Hand over the answers about streams with HEARTBEAT EVERY whose period has passed."""
        self.next_us = None
        for name, every_us in self.heartbeats.enabling.periods_us().items():
            if not self.known(name):
                continue
            self._expect(last_beat_us(now_us, every_us) + every_us)
            due = self.heartbeats.enabling.is_beat_due(name, now_us)
            if due and (found := self._found_out(name, now_us)) is not None:
                self.heartbeats.enabling.beat(name, now_us, *found)

    def ask(self, streams: Iterable[str], now_us: int, due: Tick | None = None, scopes: Scopes | None = None) -> bool:
        """Ask about the streams that are on demand; say whether any answer moves one.

        With `due`, the answers count only if they make that instant complete: otherwise they are of no use. `scopes`
        are the sources that the fragment that waits can see.
        """
        names, heartbeats = list(dict.fromkeys(map(base, streams))), self.heartbeats
        demanded = [name for name in names if heartbeats.enabling.is_on_demand(name)]
        asked = {name: found for name in demanded if (found := self._found_out(name, now_us)) is not None}
        if due is not None:
            answers = {
                name: answer
                for name, found in asked.items()
                if (answer := self._answer(name, now_us, *found)) is not None
            }
            complete = heartbeats.complete(names, now_us, answers, scopes)
            if complete is None or complete < due:
                for name, answer in answers.items():
                    if answer == complete:  # the clock is all that it waits for
                        self._expect(now_us + heartbeats.enabling.length_us(name, due - answer))
                return False
        moved = [heartbeats.enabling.ask(name, now_us, *found) for name, found in asked.items()]
        return any(moved)

    def _answer(self, stream: str, now_us: int, read_us: int, said: Tick | None) -> Tick | None:
        by_clock = self.heartbeats.enabling.answer(stream, now_us, read_us)
        return max((answer for answer in (by_clock, said) if answer is not None), default=None)

    def _expect(self, at_us: int) -> None:
        self.next_us = at_us if self.next_us is None else min(self.next_us, at_us)

    def worth_asking(self, streams: Iterable[str]) -> bool:
        """Say whether any of the streams can be asked about on demand."""
        on_demand = self.heartbeats.enabling.is_on_demand
        return any(on_demand(name) and self.known(name) for name in map(base, streams))

    def known(self, stream: str) -> bool:
        """Say whether the clock or a function can tell how far a stream is that sends nothing."""
        return self.heartbeats.enabling.can_answer(stream) or stream in self.functions

    def raise_failed(self) -> None:
        """Raise the error of a function or source that failed, if one has. It holds up no query, so it comes last."""
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def _found_out(self, stream: str, now_us: int) -> tuple[int, Tick | None] | None:
        """Return as of when all rows of a stream are read, and what its function answers; None if neither is known."""
        if not self.known(stream):
            return None
        if not self.heartbeats.stream(stream).external:
            return now_us, None
        read_us = self._read_us(stream, now_us)
        self.heartbeats.enabling.note_read(stream, read_us)
        return None if read_us is None else (read_us, self._by_function(stream, now_us, read_us))

    def _read_us(self, stream: str, now_us: int) -> int | None:
        """Return as of when all rows of a stream are read. Rows that are pushed are read when they come."""
        source = next((source for source in self.sources if source.inlet.stream.name == stream), None)
        if source is None:
            return now_us
        try:
            return source.progress(self.clock)
        except Exception as error:
            self._failed = failure(error, "source-failed", f'the source of stream "{stream}" cannot say how far it is')
            return None

    def _by_function(self, stream: str, now_us: int, read_us: int) -> Tick | None:
        if stream in self.functions and stream not in self._under_way:
            said = self._called(stream)
            if said is not None:
                self._under_way[stream] = now_us, said
        at_us, said = self._under_way.get(stream, (now_us, None))
        if said is not None and at_us <= read_us:
            del self._under_way[stream]
            self._said[stream] = max(said, self._said.get(stream, said))
        return self._said.get(stream)

    def _called(self, stream: str) -> Tick | None:
        try:
            return called(
                self.functions[stream],
                code="source-failed",
                message=f'the function that was asked how far stream "{stream}" is has failed',
                hint="It is asked again.",
            )
        except UserError as error:
            self._failed = error
            return None
