"""The queues between the stages of one query, as far as consistency is concerned: labels and tokens, and no rows.

A stage is a fragment while it answers early. It reads streams and other stages, each through a queue of its own, first
in, first out:

    arrive     tuples have come on a stream: an event for every stage that reads it
    take       what a stage would take now; it stays in the queues, as in use
    put_out    the stage has run: what it took is gone, and what it puts out is in the queues of its readers
    inject     a token comes to the end of every queue of a stream

What the last stage puts out is the answer. A stage that has a token at the head of a queue takes nothing behind it
until it has the same token on all of its queues; then it puts the token behind its output.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from headgate.consistency.events import Event, Range, Taken, Token, larger

Queues: TypeAlias = Mapping[tuple[str, str], deque[Event | Token]]
"""By origin and reader."""


class Listener(Protocol):
    """Hears of every event that comes to a queue or leaves it."""

    def entered(self, event: Event) -> None:
        """Take note of an event that is in one more queue."""

    def left(self, event: Event) -> None:
        """Take note of an event that is in one queue less."""


class Flow:
    """The queues between the stages of a query, and the label of its answer."""

    def __init__(self, stages: Mapping[str, Sequence[str]], listener: Listener | None = None) -> None:
        self.stages = stages
        """What each stage reads, streams and stages; each stage behind those it reads, the last gives the answer."""
        self.streams = sorted({name for read in stages.values() for name in read if name not in stages})
        self.queues: dict[tuple[str, str], deque[Event | Token]] = {
            (origin, reader): deque() for reader, read in stages.items() for origin in read
        }
        self.listener = listener
        self.came = dict.fromkeys(self.streams, 0)
        """How many tuples have come on each stream."""
        self.seen: dict[str, dict[str, int]] = {stage: {} for stage in stages}
        """How many tuples of each stream each stage has taken."""
        self.shown: dict[str, list[Range]] = {}
        """The tuples that have made the answer change, as far as some of what they lead to may be under way."""
        self.cuts: dict[int, dict[str, int]] = {}
        """How many tuples of each stream were before each token that is under way."""
        self.confirmed = dict.fromkeys(self.streams, 0)
        """The prefixes before the last token that came to the answer."""
        self.arrived: list[int] = []
        """The tokens that came to the answer and that nobody has asked for."""
        self._tokens = 0

    @property
    def answer(self) -> str:
        """The stage that gives the answer."""
        return next(reversed(list(self.stages)))

    @property
    def reflects(self) -> dict[str, int]:
        """The label of the answer, with its passive part: how many tuples of each stream have gone into it."""
        return dict.fromkeys(self.streams, 0) | self.seen[self.answer]

    @property
    def at_rest(self) -> bool:
        """Whether nothing is under way."""
        return not any(self.queues.values())

    def events(self) -> Iterator[Event]:
        """Give all events that are under way, once for each queue that they are in."""
        return (one for queue in self.queues.values() for one in queue if isinstance(one, Event))

    # what happens

    def arrive(self, stream: str, count: int) -> None:
        """Let the tuples of a stream be there up to so many."""
        if count > self.came[stream]:
            event = Event({stream: Range(self.came[stream], count)}, {stream: count})
            self.came[stream] = count
            for reader in self._readers(stream):
                self._put(stream, reader, event)

    def inject(self) -> int:
        """Put a token behind all tuples that have come; return its number."""
        self._tokens += 1
        self.cuts[self._tokens] = dict(self.came)
        for (origin, reader), queue in self.queues.items():
            if origin not in self.stages:
                assert reader in self.stages
                queue.append(Token(self._tokens))
        return self._tokens

    def take(self, stage: str) -> Taken | None:
        """Return what a stage would take in one run; None if there is nothing for it."""
        events: dict[str, tuple[Event, ...]] = {}
        tokens: list[int | None] = []
        for origin in self.stages[stage]:
            found, token = list[Event](), None
            for one in self.queues[origin, stage]:
                if isinstance(one, Token):
                    token = one.number
                    break
                found.append(one)
            tokens.append(token)
            if found:
                events[origin] = tuple(found)
        token = tokens[0] if tokens and all(one is not None for one in tokens) else None
        assert token is None or set(tokens) == {token}, "tokens come in one order on all queues"
        return Taken(events, token) if events or token is not None else None

    def put_out(self, stage: str, taken: Taken, version: int, changed: bool) -> None:
        """Take what a stage has taken out of its queues, and put what it puts out into those of its readers.

        Without a version it puts out nothing: it has taken a token alone.
        """
        for origin, some in taken.events.items():
            queue = self.queues[origin, stage]
            for event in some:
                assert queue[0] is event, "a queue is read from its head"
                queue.popleft()
                if self.listener is not None:
                    self.listener.left(event)
        self.seen[stage] = larger(self.seen[stage], taken.seen())
        event = Event(taken.active(), dict(self.seen[stage]), version, changed)
        if stage == self.answer:
            for stream, active in event.active.items() if changed else ():
                self.shown.setdefault(stream, []).append(active)
        elif version:
            for reader in self._readers(stage):
                self._put(stage, reader, event)
        if taken.token is not None:
            self._pass_on(stage, taken.token)

    def restart(self, came: Mapping[str, int]) -> None:
        """Let all stages have taken all tuples that have come, by whatever way, and nothing be under way."""
        for event in self.events() if self.listener is not None else ():
            self.listener.left(event)  # type: ignore[union-attr]
        for queue in self.queues.values():
            queue.clear()
        self.came |= came
        for stage in self.stages:
            self.seen[stage] = {stream: self.came[stream] for stream in self._below(stage)}
        self.shown, self.cuts, self.confirmed = {}, {}, dict(self.came)

    def _pass_on(self, stage: str, token: int) -> None:
        for origin in self.stages[stage]:
            found = self.queues[origin, stage].popleft()
            assert found == Token(token)
        if stage == self.answer:
            self.confirmed = self.cuts[token]
            self.cuts = {number: cut for number, cut in self.cuts.items() if number > token}
            self.arrived.append(token)
            return
        for reader in self._readers(stage):
            self.queues[stage, reader].append(Token(token))

    def _put(self, origin: str, reader: str, event: Event) -> None:
        self.queues[origin, reader].append(event)
        if self.listener is not None:
            self.listener.entered(event)

    def _readers(self, origin: str) -> list[str]:
        return [reader for reader, read in self.stages.items() if origin in read]

    def _below(self, stage: str) -> set[str]:
        """The streams that a stage reads, directly or through others."""
        return {
            stream
            for origin in self.stages[stage]
            for stream in (self._below(origin) if origin in self.stages else {origin})
        }
