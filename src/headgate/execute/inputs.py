"""The inputs of a fragment: the logs it reads, what waits in them, and which rows an epoch takes.

By time, an epoch takes ranges of the logs. In order of arrival, it takes what has come since the last epoch, and what
was skipped before because it was stamped too late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from headgate.compile import CompiledFragment
from headgate.delta.program import Input, Program
from headgate.errors import UserError
from headgate.execute.epoch_end import epoch_end, estimated_rows
from headgate.execute.next_event import next_event
from headgate.execute.position import Position, Unread, first_rows
from headgate.execute.progress import Progress
from headgate.execute.workspace import Slice
from headgate.log.checksum import torn
from headgate.log.chunk import Chunk
from headgate.log.log import Chunks
from headgate.plan.fragments import Part
from headgate.plan.nodes import Scan, is_part, sources
from headgate.sources.verdict import source_texts
from headgate.sql import EMPTY, Sql
from headgate.ticks import UNLIMITED, Tick


@dataclass(frozen=True, slots=True)
class Arrived:
    """What an epoch takes in order of arrival."""

    slices: Mapping[str, list[Slice]]
    """By the name of the input in the program."""

    positions: Mapping[str, Position]
    """How far each stream is read then."""

    all_of_it: bool
    """Whether nothing that has arrived is left for another epoch."""

    rows: int
    """How many rows are new."""


class FragmentInputs:
    """The logs that a fragment reads, from where it is."""

    def __init__(
        self, compiled: CompiledFragment, progress: Progress, logs: Mapping[str, Chunks], whole: frozenset[str]
    ) -> None:
        self.part = compiled.part
        self.program = compiled.program
        self.ahead = compiled.ahead
        self.sees = compiled.sees
        self.progress = progress
        self.logs = logs
        """By name: the logs of streams and relations, and those that other fragments of the query write."""
        self.whole = whole
        """Relations that it sees in full, from before `start` too: their rows were put in before and still count."""
        self._spans = self.part.plan.ends
        self.refresh: Callable[[], None] = lambda: None
        """Called before its logs are looked at."""
        self.looked_at = False
        """Whether an epoch was ever prepared."""

    @property
    def by_arrival(self) -> bool:
        """Whether tuples are read in order of arrival, and not when an instant is complete."""
        return self.ahead != "nothing"

    def look(self) -> None:
        """Take note that an epoch is prepared: what its logs hold now counts."""
        self.looked_at = True
        self.refresh()

    # what waits

    def has_work(self, until: Tick) -> bool:
        """Say whether an epoch up to `until` may give any result."""
        if self.by_arrival:
            return any(self.unread(stream).any(until) for stream in self.program.streams())
        return self.has_events(until)

    def has_events(self, until: Tick) -> bool:
        """Say whether anything can happen up to `until`, read by time: tuples wait, or elements end."""
        self.refresh()
        if not self.progress.epochs and self.part.plan.opens:
            return True
        visible = lambda log, low, high: has_visible_rows(self.part, log, self.logs[log], low, high)  # noqa: E731
        return self.program.happens(self.progress.after, until, visible)

    def next_event(self) -> Tick | None:
        """Return the first instant at which anything happens, by what has come; None if there is none."""
        return next_event(self._spans, self.logs, self.progress.after, self.progress.start, self.whole)

    def newest(self) -> Tick | None:
        """Return the largest timestamp that has come and is not read; None if there is none."""
        after, start = self.progress.after, self.progress.start
        low = after if start is None else max(after, start)
        highs = [self.logs[log].newest() for log in self.program.logs()]
        return max((high for high in highs if high is not None and high > low), default=None)

    def position(self, stream: str) -> Position:
        """Return how far a stream is read in order of arrival: at first nothing but what was read by time."""
        return self.progress.positions.get(stream, Position(0, self.progress.after))

    def tuples(self) -> dict[str, int]:
        """Return how many tuples have come of each stream and relation that it reads."""
        return {stream: self.logs[stream].rows for stream in self.program.streams()}

    def unread(self, stream: str) -> Unread:
        """Return the tuples of a stream that are not read, in order of arrival."""
        return Unread(self.logs[stream], self.position(stream))

    def waiting(self, log: str) -> int:
        """Return how many rows of a log have come and are not in the results of the fragment yet."""
        if log not in self.logs:
            return 0
        if self.ahead == "everything" and log in self.program.streams():
            return sum(chunk.rows for chunk in self.unread(log).new())
        after = self.progress.after
        low = max(after, self.position(log).upto) if self.ahead == "an instant" else after
        found = self.logs[log].overlapping(low, None)
        return sum(chunk.rows if chunk.low > low else _rows_after(chunk, low) for chunk in found)

    def still_needs(self, log: str, chunk: Chunk) -> bool:
        """Say whether a chunk of a log may still be read."""
        if self.by_arrival:
            position = self.position(log)
            return chunk.arrived > position.arrived or chunk.high > min(position.upto, self.progress.after)
        since = self.progress.since
        read = (*self.program.inputs, *self.program.expiring)
        lows = [source.low.at(since, since) for source in read if source.stream == log]
        return any(low is None or chunk.high > low for low in lows)

    def damaged(self) -> UserError | None:
        """Return an error that names the first chunk that is missing or cut short; None if all look whole."""
        for log in self.program.logs():
            for chunk in self.logs[log].chunks:
                if problem := chunk.problem():
                    return torn(chunk.path, problem)
        return None

    # where an epoch ends

    def epoch_end(self, complete: Tick, most: int) -> Tick:
        """Return where the next epoch ends: at `complete`, or where about `most` rows lie before that."""
        after, start = self.progress.after, self.progress.start
        after = after if start is None else max(after, min(start, complete))  # nothing of before is read
        waiting = [chunk for log in self.program.logs() for chunk in self.logs[log].overlapping(after, complete)]
        return epoch_end(waiting, after, complete, most)

    def arrival_end(self, upto: Tick, most: int) -> Tick:
        """Return where an epoch ends that merges what has arrived in order of timestamps: at about `most` rows."""
        streams = self.program.streams()
        waiting = [chunk for stream in streams for chunk in self.unread(stream).up_to(upto)]
        return epoch_end(waiting, min(self.position(stream).upto for stream in streams), upto, most)

    # what an epoch takes

    def rows_taken(self, until: Tick) -> int:
        """Estimate how many rows the epoch up to `until` takes."""
        chunks = (self.logs[log].chunks for log in self.program.logs())
        return round(sum(estimated_rows(some, self.progress.after, until) for some in chunks))

    def rows_reread(self, until: Tick) -> int:
        """Return how many rows at the most lie between the synopses and `until`."""
        return sum(self.logs[log].rows_within(self.progress.since, until) for log in self.program.logs())

    def ranges(self, program: Program, targets: Iterable[str], until: Tick) -> dict[str, list[Slice]]:
        """Return the ranges of logs that some steps read for (since, until], by the names of the program's inputs."""
        return {source.name: self._range(source, until) for source in program.inputs_of(*targets)}

    def rows_read(self, targets: Iterable[str], until: Tick) -> float:
        """Estimate how many rows of logs some steps read for (since, until]."""
        ranges = [(source, source.range(self.progress.since, until)) for source in self.program.inputs_of(*targets)]
        return sum(
            estimated_rows(
                self.logs[source.stream].chunks, self.program.domain.origin - 1 if low is None else low, high
            )
            for source, (low, high) in ranges
        )

    def _range(self, source: Input, until: Tick) -> list[Slice]:
        """Return the chunks that hold an input, with the exact bounds of its timestamps."""
        (low, high), start = source.range(self.progress.since, until), self.progress.start
        if start is not None and source.stream not in self.whole and not is_part(source.stream):
            low = start if low is None else max(low, start)
        chunks = self.logs[source.stream].overlapping(low, high) if low is None or low < high else []
        return [Slice(chunks, low, high, self._seen(source.stream))]

    def arrived(self, upto: Tick, most: int) -> Arrived:
        """Return what has arrived and is stamped up to `upto`: all of it, or about `most` rows if any order will do.

        The members of a family are read whole, each time.
        """
        self.look()
        slices, positions, rows, all_of_it = dict[str, list[Slice]](), dict[str, Position](), 0, True
        for stream in self.program.streams():
            unread = self.unread(stream)
            new = unread.new()
            some = first_rows(new, most) if self.ahead == "everything" else new
            all_of_it &= len(some) == len(new)
            arrived = max((chunk.arrived for chunk in some), default=unread.position.arrived)
            positions[stream] = Position(arrived, max(upto, unread.position.upto))
            slices[stream] = self._arrived(stream, unread, some, upto)
            rows += sum(chunk.rows for chunk in some)
        before = self.program.domain.origin - 1
        whole = {source: source.range(before, UNLIMITED) for source in self.program.inputs if is_part(source.stream)}
        by_name = {
            source.name: [Slice(self.logs[source.stream].overlapping(*whole[source]), *whole[source])]
            if source in whole
            else slices[source.stream]
            for source in self.program.inputs
        }
        return Arrived(by_name, positions, all_of_it, rows)

    def _arrived(self, stream: str, unread: Unread, new: list[Chunk], upto: Tick) -> list[Slice]:
        """Return what is to be read of a stream: tuples that were skipped so far, and some new chunks."""
        start, reached, seen = self.progress.start, unread.position.upto, self._seen(stream)
        # What came before the first reading by arrival was put out by time, as far as the fragment had come then.
        behind = None if stream in self.progress.positions else reached
        lows = [low if start is None or (low is not None and low > start) else start for low in (reached, behind)]
        skipped = Slice(unread.skipped(upto), lows[0], upto, seen)
        return [skipped, Slice(new, lows[1], max(upto, reached), seen)]

    def _seen(self, stream: str) -> Sql:
        """Return the condition for the sources that the fragment sees; empty if it sees all of them."""
        return self.sees.get(stream, EMPTY)


def has_visible_rows(part: Part, name: str, log: Chunks, low: Tick | None, high: Tick) -> bool:
    """Say whether a log may have tuples in (low, high] of sources that a part of a plan sees."""
    chunks, scope = log.overlapping(low, high), part.scopes.get(name)
    if scope is None:
        return bool(chunks)
    found = (source for source in sources(part.plan) if isinstance(source, Scan) and source.name == name)
    column = next(found).by or ""
    try:
        return any(scope.meets(sources_in(chunk, column)) for chunk in chunks)
    except (UserError, OSError, pa.ArrowException):
        return True  # an epoch will say what is wrong with the file


@lru_cache(maxsize=1_000)
def _rows_after(chunk: Chunk, low: Tick) -> int:
    """Return how many rows of a chunk are stamped after an instant. A chunk never changes, and several fragments ask
    this of it, time and again.
    """
    return chunk.rows_after(low)


@lru_cache(maxsize=100_000)
def sources_in(chunk: Chunk, column: str) -> frozenset[str]:
    """Return the sources whose tuples a chunk holds. A chunk never changes, and most are small."""
    return frozenset(source_texts(column, chunk.table([column])).unique().to_pylist())
