"""What the scheduler asks of the time manager: how far streams are complete, and what is promised of them.

All of it happens in the journal's turn and by the engine's clock of now.

While sources are read beside the epochs, a heartbeat can be ahead of the truth: one stream is read, and what it says of
another makes tuples late that only wait to be read. So queries over such streams go by the last cut: how far they could
go when all sources had last been read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from headgate.execute.fragment import Fragment
from headgate.heartbeat.clock import Clock
from headgate.heartbeat.clocks import base
from headgate.heartbeat.manager import Heartbeats
from headgate.log.journal import Journal
from headgate.observe.trace import Arrived
from headgate.schedule.asking import Asking
from headgate.schedule.query import RunningQuery
from headgate.ticks import UNLIMITED, Tick

Targets: TypeAlias = Mapping[str, Tick | None]
"""By part: the instant up to which it may go; None if that is unknown."""


class Horizon:
    """Up to where fragments can go, by the heartbeats of their streams."""

    def __init__(self, clock: Clock, heartbeats: Heartbeats, asking: Asking, journal: Journal) -> None:
        self.clock = clock
        self.heartbeats = heartbeats
        self.asking = asking
        self.journal = journal
        self.batches: Callable[[str], Iterable[Arrived]] = lambda stream: ()
        """The batches that have come on a stream lately."""
        self.wanted: Callable[[], None] = lambda: None
        """Called when another cut would let something go on."""
        self._cut: Mapping[Fragment, Targets | Exception] | None = None
        """How far the parts that lead to each answer could go at the last cut, or why that could not be found out;
        None: heartbeats count at once.
        """

    def cut(self, queries: Mapping[str, RunningQuery]) -> None:
        """Note how far queries over streams with sources can go, now that all sources have been read."""
        with self.journal.turn:
            self.look()
            self._cut = {
                answer: self._tried(query, answer)
                for query in queries.values()
                if self._is_read(query.streams())
                for answer in query.answers
            }

    def begin_cuts(self) -> None:
        """Let queries over streams with sources wait for the first cut."""
        self._cut = {}

    def end_cuts(self) -> None:
        """Let heartbeats count at once again: sources and epochs take turns."""
        self._cut = None

    def _is_read(self, streams: Iterable[str]) -> bool:
        """Say whether any of the streams is read from a source."""
        read = {source.inlet.stream.name for source in list(self.asking.sources)}
        return not read.isdisjoint(map(base, streams))

    def look(self) -> None:
        """Take note of the time: the date, and heartbeats that the clock gives every so often."""
        with self.journal.turn:
            now_us = self.clock.now_us()
            self.heartbeats.enabling.set_date(self.clock.date_us(), now_us)
            self.asking.beat(now_us)

    def of(self, query: RunningQuery, answer: Fragment) -> Targets:
        """Return, for each part that leads to an answer, how far it may go; None if that is unknown.

        It may go as far as the streams of its label are complete, and no less far than its readers.
        """
        if self._cut is None or not self._is_read(query.streams()):
            return self._of(query, answer)
        found = self._cut.get(answer, {})
        if isinstance(found, Exception):
            raise found
        return {**dict.fromkeys(fragment.part.name for fragment in query.leading_to(answer)), **found}

    def _tried(self, query: RunningQuery, answer: Fragment) -> Targets | Exception:
        """Return an error instead of raising it: it belongs to the query, and is met when that has its turn."""
        try:
            return self._of(query, answer)
        except Exception as error:
            return error

    def _of(self, query: RunningQuery, answer: Fragment) -> Targets:
        parts = {fragment.part.name: fragment.part for fragment in query.leading_to(answer)}
        with self.journal.turn:
            now_us = self.clock.now_us()
            found: dict[str, Tick | None] = {}
            for name, streams in query.labels().items():  # the answer first
                reading = [found[reader] for reader in query.readers(name)]
                scopes = parts[name].scopes if streams == parts[name].streams else answer.part.scopes
                heartbeat = self.heartbeats.complete(streams, now_us, scopes=scopes)
                found[name] = max((tick for tick in (heartbeat, *reading) if tick is not None), default=None)
        return found

    def can_ask(self, fragment: Fragment) -> bool:
        """Say whether anybody can be asked how far the streams of a fragment are."""
        return self.asking.worth_asking(fragment.part.streams)

    def ask(self, fragment: Fragment, instant: Tick) -> bool:
        """Ask how far the streams of a fragment are, if the answers make an instant complete; say whether any moved."""
        with self.journal.turn:
            moved = self.asking.ask(fragment.part.streams, self.clock.now_us(), instant, fragment.part.scopes)
        if moved and self._cut is not None:
            self.wanted()
        return moved

    def promise(self, fragment: Fragment, until: Tick) -> None:
        """Promise a fragment that its streams are complete up to `until`: what still comes up to there is late."""
        with self.journal.turn:
            for stream in fragment.part.streams:
                self.heartbeats.promise(stream, until, fragment.part.scopes.get(stream))

    # for those who watch

    def trace(self, query: RunningQuery, heartbeat: Tick) -> None:
        """Begin the trace of a heartbeat that sets out on its way through a query: what runs now runs because of it."""
        now_us = self.clock.now_us()
        with self.journal.turn:
            times = {name: self.heartbeats.stream(name) for name in query.traces.streams}
            complete = {
                name: UNLIMITED if time.finished else time.complete(now_us, times, query.scopes.get(name))
                for name, time in times.items()
            }
            by_groups = len(query.answers) > 1  # a heartbeat of the whole is one of all groups
            whole = self.heartbeats.complete(times, now_us, scopes=query.scopes) if by_groups else heartbeat
            heard_us = {name: time.came_us for name, time in times.items()}
            lately = {name: list(self.batches(name)) for name in times}
        query.traces.looked(complete, heard_us, now_us)
        if whole is None:
            return
        query.traces.sent(whole, now_us, lately)
        for fragment in query.fragments:  # some have been so far for long
            if (reached := query.reached_by(fragment)) >= whole:
                query.traces.seen(fragment.stop, reached, now_us, now_us)

    def expected_to_move(self, queries: Mapping[str, RunningQuery]) -> dict[str, Tick | None]:
        """Return how far the streams are complete that queries read and that should go on by themselves.

        A stream that is paused, or asked only on demand, is not expected to go on.
        """
        with self.journal.turn:
            now_us = self.clock.now_us()
            streams = {stream for query in queries.values() for stream in query.traces.streams}
            times = {name: self.heartbeats.stream(name) for name in sorted(streams)}
            watched = {name: time for name, time in times.items() if time.is_watched}
            return {name: time.complete(now_us) for name, time in watched.items() if not self.asking.known(name)}
