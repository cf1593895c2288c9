"""Heartbeats as spans of OpenTelemetry: a trace for each answer, from when its tuples were read until the sink had it.

    answer hot            |--------------------------------------------------------|
      ingest              |--|
      wait for heartbeat     |-------------|
      wait for stream        |-------------|          for each stream that was waited for
      wait for loop                        |--|
      fragment hot                            |-----------------------|
        planning                              |------|
        job                                          |-------------|
        commit                                                     |--|
      deliver                                                         |------------|

`parted` makes a tree of numbers of a trace (`observe.trace`), on the engine's clock. `Spans` hands such trees to the
tracer, in a thread of its own: the engine puts them into a queue and goes on. If the queue is full, because whoever
takes the spans hangs, heartbeats are left out and counted.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate import __version__
from headgate.errors import UserError
from headgate.heartbeat.clock import Clock, SystemClock
from headgate.observe.trace import SINK, Seen, Trace, Traces

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer, TracerProvider

WAITING = 1_000
"""How many heartbeats may wait for the tracer."""

MOST_NAMES = 10
"""How many members of a family are named: they have one answer in common."""

CLOSE_SECONDS = 2.0

log = logging.getLogger("headgate.opentelemetry")


@dataclass(frozen=True, slots=True)
class Part:
    """A span to be: when it began and ended on the engine's clock, and what is said of it."""

    name: str
    began_us: int
    ended_us: int
    said: Mapping[str, str | int | Sequence[str]] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()


def parted(traces: Traces, trace: Trace, query: str, answers: Collection[str], queries: Sequence[str] = ()) -> Part:
    """Return a heartbeat that is through as a tree of spans.

    `answers` are the fragments whose rows are results, `queries` those whose answers these are if they are several.
    """
    out = trace.seen[SINK]
    assert out.ended_us is not None, "it is not through"
    came = {stream: seen.began_us for stream, seen in trace.seen.items() if stream in traces.streams}
    work = {stop: one for stop in traces.fragments if (one := trace.seen.get(stop)) and one.ended_us is not None}
    began_us, taken_us, complete_us = trace.came_us or (
        min([trace.sent_us, *came.values()]),
        min([trace.sent_us, *came.values()]),
        max(came.values(), default=trace.sent_us),
    )
    computed_us = max([trace.sent_us, *(one.ended_us for one in work.values() if one.ended_us is not None)])
    busy = {stop: one for stop, one in work.items() if one.began_us != one.ended_us}
    first_us = min((one.began_us for one in busy.values()), default=computed_us)
    parts = [Part("ingest", began_us, taken_us)] if trace.came_us is not None else []
    parts.append(Part("wait for heartbeat", taken_us, complete_us))
    waited = {stream: at_us for stream, at_us in came.items() if at_us > taken_us}
    parts += [Part("wait for stream", taken_us, at_us, {"headgate.stream": stream}) for stream, at_us in waited.items()]
    parts.append(Part("wait for loop", complete_us, first_us))
    parts += [_fragment(stop, one) for stop, one in busy.items()]
    parts.append(Part("deliver", computed_us, out.ended_us))
    said: dict[str, str | int | Sequence[str]] = {
        "headgate.query": query,
        "headgate.heartbeat": trace.id,
        "headgate.instant": traces.instant(trace),
        "headgate.rows": sum(one.rows for stop, one in work.items() if stop in answers),
        "headgate.streams": tuple(traces.streams),
    }
    if queries:
        said |= {"headgate.queries": tuple(queries[:MOST_NAMES]), "headgate.members": len(queries)}
    whole = Part(f"answer {query}", began_us, max(began_us, out.ended_us), said)
    return Part(whole.name, whole.began_us, whole.ended_us, said, tuple(_within(whole, one) for one in parts))


def _fragment(stop: str, seen: Seen) -> Part:
    """Return the work of a fragment. What it consists of is known by length, so it stands one behind the other."""
    assert seen.ended_us is not None
    parts, end_us = list[Part](), seen.ended_us
    for name, length_us in (("commit", seen.commit_us), ("job", seen.job_us), ("planning", seen.planning_us)):
        if length_us > 0:
            parts.insert(0, Part(name, end_us - length_us, end_us))
            end_us -= length_us
    said: dict[str, str | int | Sequence[str]] = {"headgate.fragment": stop, "headgate.rows": seen.rows}
    return Part(f"fragment {stop}", seen.began_us, seen.ended_us, said, tuple(parts))


def _within(whole: Part, part: Part) -> Part:
    """Return a part that lies within the whole. Some instants are averages over tuples, and may lie apart."""
    began_us = min(max(part.began_us, whole.began_us), whole.ended_us)
    ended_us = min(max(part.ended_us, began_us), whole.ended_us)
    made = Part(part.name, began_us, ended_us, part.said)
    return Part(part.name, began_us, ended_us, part.said, tuple(_within(made, one) for one in part.parts))


class Spans:
    """Gives each heartbeat that is through to OpenTelemetry. The engine never waits for it."""

    def __init__(self, clock: Clock, provider: TracerProvider | None = None) -> None:
        """Without a provider, spans go to the one that the program has configured for all."""
        try:
            from opentelemetry.trace import get_tracer_provider
        except ImportError:
            raise missing("opentelemetry-api") from None
        self.given = 0
        """How many heartbeats the tracer has taken."""
        self.left_out = 0
        """How many it has not, because too many were waiting or because it failed."""
        self._clock = clock
        self._tracer: Tracer = (provider or get_tracer_provider()).get_tracer("headgate", __version__)
        self._waiting: queue.Queue[tuple[Part, int] | None] = queue.Queue(WAITING)
        self._failed = False
        self._thread = threading.Thread(target=self._hand_over, name="spans", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"Spans({self.given} heartbeats given, {self.left_out} left out)"

    def through(
        self, traces: Traces, ended: Iterable[Trace], query: str, answers: Collection[str], queries: Sequence[str]
    ) -> None:
        """Take note of heartbeats that are through. It returns at once, and never fails."""
        try:
            ahead_us = self._date_us() - self._clock.now_us()
            for trace in ended:
                self._waiting.put_nowait((parted(traces, trace, query, answers, queries), ahead_us))
        except queue.Full:
            self._leave_out("too many heartbeats wait for the tracer")
        except Exception as error:
            self._leave_out(str(error))

    def close(self, wait_s: float = CLOSE_SECONDS) -> None:
        """Hand over what waits, but no longer than that. What the provider keeps is for its owner to flush."""
        try:
            self._waiting.put(None, timeout=wait_s)
        except queue.Full:
            return
        self._thread.join(wait_s)

    def _date_us(self) -> int:
        date_us = self._clock.date_us()
        return SystemClock().date_us() if date_us is None else date_us

    def _leave_out(self, reason: str) -> None:
        self.left_out += 1
        if not self._failed:
            self._failed = True
            log.warning("heartbeats are not exported: %s", reason)

    def _hand_over(self) -> None:
        while (found := self._waiting.get()) is not None:
            part, ahead_us = found
            try:
                self._give(part, ahead_us)
                self.given += 1
                self._failed = False
            except Exception as error:  # whatever a tracer meets with
                self._leave_out(str(error))

    def _give(self, part: Part, ahead_us: int, parent: Span | None = None) -> None:
        """Begin and end a span, and those that it consists of."""
        from opentelemetry.context import Context
        from opentelemetry.trace import set_span_in_context

        context = Context() if parent is None else set_span_in_context(parent, Context())
        began_ns, ended_ns = (part.began_us + ahead_us) * 1_000, (part.ended_us + ahead_us) * 1_000
        span = self._tracer.start_span(part.name, context, attributes=dict(part.said), start_time=began_ns)
        try:
            for one in part.parts if span.is_recording() else ():
                self._give(one, ahead_us, span)
        finally:
            span.end(ended_ns)


def missing(module: str) -> UserError:
    """The error for a package of OpenTelemetry that is not installed."""
    wanted = module if module.endswith("-grpc") else "'headgate[opentelemetry]'"
    return UserError("no-module", f"this needs {module}", hint=f"pip install {wanted}")
