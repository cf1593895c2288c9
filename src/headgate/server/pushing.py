"""Takes rows and heartbeats from requests.

Rows are acknowledged when they are durable. A producer that numbers its requests can send one again whose answer was
lost, and nothing is taken twice: the number is kept with the rows (`inlet.position`), in one step:

    {"producers": {"till-7": [41, 2, {"late": 1}]}}     the last number, how many rows it was, what became of the others
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers

from headgate.catalog.entries import Stream
from headgate.errors import UserError
from headgate.observe.overview import plain
from headgate.server.bodies import rows
from headgate.server.limits import READ_AT_ONCE
from headgate.server.reading_json import members
from headgate.server.refusals import SHOWN, stopping
from headgate.server.served import Served
from headgate.sources.inlet import Inlet
from headgate.sources.inputs import Inputs
from headgate.sources.pushes import Push
from headgate.sources.rows import ticks
from headgate.sources.verdict import HEARTBEAT, TUPLE
from headgate.ticks import TimeDomain

PRODUCERS = 100
"""Of how many producers a stream remembers the last number. The one that was silent longest is forgotten first."""

ALIVE = (TUPLE, HEARTBEAT)
NAME_LETTERS = 100

LARGE = 2**20
"""Bodies beyond this are taken one after the other."""

LONGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Numbered:
    """A producer's own number of a request."""

    producer: str
    sequence: int


class Desk:
    """Takes what requests bring to streams; each method can be called from any thread."""

    def __init__(self, engine: Served, inputs: Inputs) -> None:
        self.engine = engine
        self.inputs = inputs
        self.turn = engine.turn
        self.large = threading.Lock()
        """Held for a large body: while it is taken, it needs several times its size."""
        self.reading = threading.BoundedSemaphore(READ_AT_ONCE)
        """Held while a body is made rows."""
        self.stopping = False

    def take(self, name: str, kind: str, body: bytearray, numbered: Numbered | None) -> dict[str, Any]:
        """Push the rows of a body; they are durable when this returns."""
        inlet = self.inputs.inlet(name)
        if self.stopping:
            raise stopping("Send the rows again when it is back.")
        with self.large if len(body) > LARGE else contextlib.nullcontext():
            return self._take(name, inlet, kind, body, numbered)

    def _take(self, name: str, inlet: Inlet, kind: str, body: bytearray, numbered: Numbered | None) -> dict[str, Any]:
        shape, began_us = inlet.rows, self.engine.clock.now_us()
        with self.reading:
            found = shape.read(rows(body, kind, inlet.stream, shape.schema))
        answer: dict[str, Any] = {}

        def admit() -> bool:
            if self.inputs.inlets.get(inlet.stream.name) is not inlet or inlet.rows is not shape:
                raise UserError(
                    "stream-changed", f'stream "{name}" was made anew meanwhile', hint="Send the rows again."
                )
            again = None if numbered is None else _before(inlet.position.get("producers", {}), numbered)
            if again is not None:
                answer.update(again, again=True)
            return again is None

        def noted(counts: Counter[str]) -> None:
            dead = {reason: count for reason, count in counts.items() if reason not in ALIVE and count}
            answer.update(taken=counts[TUPLE], dead=dead)
            if numbered is not None:
                known = inlet.position.get("producers", {})
                others = [item for item in known.items() if item[0] != numbered.producer]
                last = (numbered.producer, [numbered.sequence, counts[TUPLE], dead])
                inlet.position["producers"] = dict([*others[1 - PRODUCERS :], last])

        producer = None if numbered is None else numbered.producer
        self.inputs.pushes.take(Push(inlet, found, began_us, admit, noted, producer))
        return {**answer, **self._heartbeat(inlet)}

    def _heartbeat(self, inlet: Inlet) -> dict[str, Any]:
        with self.turn:
            return {
                "heartbeat": plain(self.engine.heartbeat(inlet.stream.name))
                if isinstance(inlet.stream, Stream)
                else None
            }

    def promise(self, name: str, body: bytes) -> dict[str, Any]:
        """Take a heartbeat that a source sends itself; answer with the stream's heartbeat."""
        stream = self.engine.catalog.only_stream(name, "a heartbeat")
        hint = '{"to": 17}' if stream.domain is not TimeDomain.TIMESTAMP else '{"to": "2026-01-01T12:00:00Z"}'
        wrong = UserError(
            "bad-heartbeat", 'a heartbeat is JSON with "to", and "source" if it is of one source', hint=hint
        )
        said = members(body, wrong, needs={"to"}, takes={"to", "source"})
        to, source = said["to"], said.get("source")
        if source is not None and (stream.source is None or not isinstance(source, str)):
            detail = (
                f'Stream "{stream.name}" holds one source.' if stream.source is None else "Sources are named by text."
            )
            raise UserError("bad-heartbeat", f"there is no source {source!r}"[:SHOWN], detail=detail)
        try:
            upto = ticks(to) if stream.domain is TimeDomain.TIMESTAMP else to
        except (TypeError, ValueError, OverflowError):
            upto = None
        if isinstance(upto, bool) or not isinstance(upto, int) or abs(upto) > LONGEST:
            raise UserError("bad-heartbeat", f'{to!r:.{SHOWN}} is no instant of stream "{stream.name}"', hint=hint)
        with self.turn:
            self.engine.punctuate(stream.name, upto, source)
            return {"heartbeat": plain(self.engine.heartbeat(stream.name))}


def _before(known: Mapping[str, Any], numbered: Numbered) -> dict[str, Any] | None:
    """The answer to a request that came before; None if it is the next. A producer's first may have any number."""
    if numbered.producer not in known:
        return None
    sequence, taken, dead = known[numbered.producer]
    if numbered.sequence > sequence + 1:
        raise UserError(
            "sequence-gap",
            f'request {numbered.sequence} of producer "{numbered.producer}" comes before request {sequence + 1}',
            detail="Requests of a producer are taken one after the other.",
            hint="Send it again after those before it.",
        )
    if numbered.sequence == sequence + 1:
        return None
    return {"taken": taken, "dead": dead} if numbered.sequence == sequence else {"taken": 0, "dead": {}}


def numbered_by(headers: Headers) -> Numbered | None:
    producer, sequence = headers.get("producer"), headers.get("sequence")
    if producer is None and sequence is None:
        return None
    if not producer or len(producer) > NAME_LETTERS or not sequence or not sequence.isdecimal() or len(sequence) > 15:
        raise UserError(
            "bad-sequence",
            "a request is numbered by two headers, Producer and Sequence",
            detail=f"The one is a name of up to {NAME_LETTERS} letters, the other a whole number from 0 on.",
        )
    return Numbered(producer, int(sequence))
