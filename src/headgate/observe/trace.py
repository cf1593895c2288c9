"""Traces of heartbeats: when each stop on the way from the streams to the sink was through, and where time went.

A heartbeat of a query is an instant up to which its input is complete (a watermark). Its trace begins when the first of
the query's streams is complete up to there, and ends when the sink has everything up to there:

    temperature   pressure         the loop         hot                      the sink
    |.............|................|................|....[=================]|...[=====]
    has come      has come         has taken        began           ended    began, ended
    so far        so far           note of it

Only numbers come in, and no clock is read: instants of application time, and microseconds on the engine's clock. The
time between two stops that were through one after the other is charged to the later one, because all others were
through by then. What lies before a stop began is waiting, the rest is work. So the parts add up to the whole, whether
stops work one after another or side by side.

The age of an answer begins earlier, when its tuples began to be read. It is divided by what it was spent on (`PARTS`):
ingest until the tuples were in the log, waiting for the heartbeat, waiting for the loop, then planning, the job of
Spark, the commit and the delivery.

As JSON, for other processes: the number of each trace, its instant, when it was sent, what each stop did (began, ended,
rows, planning, job, commit), and when its tuples had come.

    {"streams": ["temperature", "pressure"], "fragments": ["hot"], "domain": "timestamp",
     "traces": [[17, 1793534405000000, 8200000, {"pressure": [7100000, 7100000, 0, 0, 0, 0],
                 "hot": [8203000, 8510000, 340, 90000, 200000, 17000]}, [7080000, 7100000, 7100000]]]}
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Protocol

from headgate.ticks import UNLIMITED, Tick, TimeDomain

KEPT = 100
"""How many traces a query keeps."""

MOVES_KEPT = 10_000
"""How many moves of each stream are kept between two heartbeats."""

NOTHING: Mapping[str, Any] = MappingProxyType({})

LOOP = "the loop"
SINK = "the sink"


@dataclass(slots=True)
class Seen:
    """When a stop worked on a heartbeat, and how many rows it put out."""

    began_us: int
    ended_us: int | None
    """None while the stop is not through."""

    rows: int
    planning_us: int = 0
    job_us: int = 0
    commit_us: int = 0
    """What its work consists of, if it is a fragment."""


class Arrived(Protocol):
    """When a batch of tuples came."""

    @property
    def upto(self) -> Tick:
        """The largest of its timestamps."""

    @property
    def began_us(self) -> int:
        """When it began to be read."""

    @property
    def taken_us(self) -> int:
        """When it was in the log."""


@dataclass(frozen=True, slots=True)
class Work:
    """What an epoch took until its results were written."""

    job_us: int
    began_us: int
    written_us: int


PARTS = ("ingest", "heartbeat", "loop", "planning", "job", "commit", "delivery")
"""What the age of an answer consists of, in the order in which it is spent."""


@dataclass(frozen=True, slots=True)
class Step:
    """The part of a trace that is charged to one stop."""

    stop: str
    at_us: int
    """When the stop was through, counted from the beginning of the trace."""

    waited_us: int
    worked_us: int
    rows: int

    @property
    def took_us(self) -> int:
        """How long it took, waiting and work together."""
        return self.waited_us + self.worked_us


@dataclass(slots=True)
class Trace:
    """One heartbeat on its way."""

    id: int
    instant: Tick
    sent_us: int
    seen: dict[str, Seen] = field(default_factory=dict)
    came_us: tuple[int, int, int] | None = None
    """When the batches whose tuples it answers began to be read, when they were in the log, and when all streams were
    complete up to there: averages.
    """

    def age(self, streams: Collection[str]) -> dict[str, int] | None:
        """Return the parts of the age of its answers, in microseconds; None if it is not known or not through."""
        if self.came_us is None or (out := self.seen.get(SINK)) is None or out.ended_us is None:
            return None
        began_us, taken_us, complete_us = self.came_us
        work = [one for stop, one in list(self.seen.items()) if stop not in streams and stop != SINK]
        planning_us, job_us, commit_us = (
            sum(getattr(one, part) for one in work) for part in ("planning_us", "job_us", "commit_us")
        )
        computed_us = max([self.sent_us, *(one.ended_us for one in work if one.ended_us is not None)])
        parts = {
            "ingest": taken_us - began_us,
            "heartbeat": complete_us - taken_us,
            "loop": computed_us - complete_us - planning_us - job_us - commit_us,
            "planning": planning_us,
            "job": job_us,
            "commit": commit_us,
            "delivery": out.ended_us - computed_us,
        }
        return {part: max(length_us, 0) for part, length_us in parts.items()}

    def steps(self) -> list[Step]:
        """Return the stops that are through, in the order in which they were."""
        through = [
            (one.ended_us, one.began_us, stop, one.rows)
            for stop, one in list(self.seen.items())
            if one.ended_us is not None
        ]
        through.append((self.sent_us, self.sent_us, LOOP, 0))
        through.sort(key=lambda one: one[:2])
        began_us = last_us = through[0][0]
        steps = []
        for ended_us, stop_began_us, stop, rows in through:
            waited_us = max(min(stop_began_us, ended_us) - last_us, 0)
            steps.append(Step(stop, ended_us - began_us, waited_us, ended_us - last_us - waited_us, rows))
            last_us = ended_us
        return steps

    @property
    def took_us(self) -> int:
        """How long the heartbeat took from the first stop to the last that is through."""
        return self.steps()[-1].at_us


@dataclass(frozen=True, slots=True)
class Share:
    """How much of the time of all traces goes to one stop."""

    stop: str
    heartbeats: int
    waited_us: int
    worked_us: int
    """Both are averages over the heartbeats that the stop saw."""

    share: float


class Traces:
    """The last heartbeats of one query, on their way from its streams over the loop and its fragments to its sink."""

    def __init__(
        self, streams: Iterable[str], fragments: Iterable[str], domain: TimeDomain = TimeDomain.INTEGER
    ) -> None:
        self.streams = tuple(streams)
        self.fragments = tuple(fragments)
        self.domain = domain
        self.traces: deque[Trace] = deque(maxlen=KEPT)
        self.reflects = ""
        """The input that the answers so far reflect, in words, where another process is told of it."""
        self._moves: dict[str, deque[tuple[Tick, int]]] = {stream: deque(maxlen=MOVES_KEPT) for stream in self.streams}
        """By stream: up to which instant it was complete when, from the last heartbeat on."""
        self._looked_us: int | None = None
        self._through: dict[str, Tick] = {}

    @property
    def kept(self) -> tuple[Trace, ...]:
        """The traces at this moment: a copy, for the loop adds some while others look at them."""
        return tuple(self.traces)

    @property
    def way(self) -> tuple[str, ...]:
        """All stops, from the streams to the sink."""
        return (*self.streams, LOOP, *self.fragments, SINK)

    # what happens

    def looked(self, complete: Mapping[str, Tick | None], heard_us: Mapping[str, int | None], now_us: int) -> None:
        """Note how far each stream is complete, and when something last came from it.

        A stream that has moved since the last look did so when that came; otherwise it moved now, by a promise of its
        source or because it was asked.
        """
        for stream, moves in self._moves.items():
            upto, heard = complete.get(stream), heard_us.get(stream)
            if upto is None or (moves and upto <= moves[-1][0]):
                continue
            fresh = heard is not None and self._looked_us is not None and heard > self._looked_us
            moves.append((upto, heard if fresh and heard is not None else now_us))
        self._looked_us = now_us

    def sent(self, instant: Tick, now_us: int, lately: Mapping[str, Sequence[Arrived]] = NOTHING) -> int:
        """Begin the trace of a heartbeat up to an instant, and return its number. If it is no later than the last one,
        it belongs to that trace.

        A stream that is not complete up to there is silent: it was waited for until now. A stream that is finished was
        not waited for. `lately` has the batches that have come last: those behind the last heartbeat are answered now.
        """
        if self.traces and instant <= self.traces[-1].instant:
            return self.traces[-1].id
        trace = Trace(self.traces[-1].id + 1 if self.traces else 1, instant, now_us)
        for stream, moves in self._moves.items():
            while len(moves) > 1 and moves[0][0] < instant:
                moves.popleft()
            if moves and moves[0][0] >= UNLIMITED:
                continue
            came_us = moves[0][1] if moves and moves[0][0] >= instant else now_us
            trace.seen[stream] = Seen(came_us, came_us, 0)
        before = self.traces[-1].instant if self.traces else instant
        trace.came_us = self._came(before, instant, now_us, lately)
        self.traces.append(trace)
        return trace.id

    def _came(
        self, before: Tick, upto: Tick, now_us: int, lately: Mapping[str, Sequence[Arrived]]
    ) -> tuple[int, int, int] | None:
        """Return when the batches in (before, upto] began to be read, were in the log and were complete: averages.

        A stream is complete up to an instant when it has come as far behind it as it is further now than complete.
        """
        answered = [batch for batches in lately.values() for batch in batches if before < batch.upto <= upto]
        if not answered:
            return None
        complete = [self._completed(stream, batches, now_us) for stream, batches in lately.items() if batches]
        times = [
            (one.began_us, one.taken_us, max([one.taken_us, *(when(one.upto) for when in complete)]))
            for one in answered
        ]
        began_us, taken_us, complete_us = (sum(some) // len(times) for some in zip(*times, strict=True))
        return began_us, taken_us, complete_us

    def _completed(self, stream: str, batches: Sequence[Arrived], now_us: int) -> Callable[[Tick], int]:
        """Return a function that says when a stream was complete up to an instant, by its batches and how far it is."""
        reached = list(accumulate((batch.upto for batch in batches), max))
        moves = self._moves.get(stream)
        known = moves[-1][0] if moves else reached[-1]
        lag = max(reached[-1] - known, 0)

        def when(upto: Tick) -> int:
            place = bisect_left(reached, upto + lag)
            return min(batches[place].taken_us, now_us) if place < len(batches) else now_us

        return when

    def seen(
        self, stop: str, upto: Tick, began_us: int, ended_us: int, rows: int = 0, work: Work | None = None
    ) -> list[Trace]:
        """Note that a stop has done everything up to an instant, how many rows it put out, and what its work was.
        Return the heartbeats that it is through with now.

        It is through with every heartbeat up to there. Of the next one it has done a part. If the instant is no later
        than before, the stop has done nothing.
        """
        assert stop in self.way, f'"{stop}" is not on the way'
        if upto <= self._through.get(stop, upto - 1):
            return []
        self._through[stop] = upto
        through = []
        for trace in self.kept:
            known = trace.seen.setdefault(stop, Seen(began_us, None, 0))
            if known.ended_us is None:
                known.rows += rows
                if work is not None:
                    known.planning_us += work.written_us - work.began_us - work.job_us
                    known.job_us += work.job_us
                    known.commit_us += ended_us - work.written_us
                if trace.instant <= upto:
                    known.ended_us = ended_us
                    through.append(trace)
            if trace.instant >= upto:
                break
        return through

    # what it comes to

    def shares(self) -> list[Share]:
        """Return the share of each stop that has seen a heartbeat, in the order of the way."""
        steps = [step for trace in self.kept for step in trace.steps()]
        total_us = sum(step.took_us for step in steps)
        shares = []
        for stop in self.way:
            mine = [step for step in steps if step.stop == stop]
            if mine:
                waited_us, worked_us = sum(step.waited_us for step in mine), sum(step.worked_us for step in mine)
                share = (waited_us + worked_us) / total_us if total_us else 0.0
                shares.append(Share(stop, len(mine), waited_us // len(mine), worked_us // len(mine), share))
        return shares

    def ages(self) -> list[dict[str, int]]:
        """Return the parts of the age of answers, in microseconds, for each heartbeat of which it is known."""
        return [age for trace in self.kept if (age := trace.age(self.streams)) is not None]

    def slowest(self) -> Share | None:
        """Return the share of the stop where most time goes; None before any heartbeat."""
        return max(self.shares(), key=lambda one: one.share, default=None)

    def instant(self, trace: Trace) -> str:
        """Return the instant of a heartbeat for people to read."""
        return "the end" if trace.instant >= UNLIMITED else str(self.domain.moment(trace.instant))

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each heartbeat, the last one last, for programs: how long each stop took."""
        return [
            {
                "id": trace.id,
                "instant": self.instant(trace),
                "took_us": trace.took_us,
                "age_us": trace.age(self.streams),
                "stops": {
                    step.stop: {
                        "at_us": step.at_us,
                        "waited_us": step.waited_us,
                        "worked_us": step.worked_us,
                        "rows": step.rows,
                    }
                    for step in trace.steps()
                },
            }
            for trace in self.kept
        ]

    # for others to read

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` takes."""
        traces = [
            [
                trace.id,
                trace.instant,
                trace.sent_us,
                {stop: list(astuple(one)) for stop, one in list(trace.seen.items())},
                trace.came_us,
            ]
            for trace in self.kept
        ]
        about = {"streams": list(self.streams), "fragments": list(self.fragments), "domain": self.domain.value}
        return {**about, "traces": traces}

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Traces:
        """Return the traces that `to_json` wrote."""
        found = cls(said["streams"], said["fragments"], TimeDomain(said["domain"]))
        found.reflects = said.get("reflects", "")
        for number, instant, sent_us, seen, *came in said["traces"]:
            stops = {stop: Seen(*one) for stop, one in seen.items()}
            came_us = (came[0][0], came[0][1], came[0][2]) if came and came[0] else None
            found.traces.append(Trace(number, instant, sent_us, stops, came_us))
        return found
