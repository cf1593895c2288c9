"""The HTTP endpoint: rows and heartbeats come in, how far everything is goes out.

    POST /streams/{name}              rows: JSON, NDJSON or CSV -> {"taken": 2, "dead": {"late": 1}, "heartbeat": 17}
    POST /streams/{name}/heartbeat    {"to": 17, "source": "a"} -> {"heartbeat": 17}
    GET  /status                      {"streams": {...}, "relations": {...}, "queries": {...}}

Rows are acknowledged when they are durable. A producer that numbers its requests can send one again whose answer was
lost, and nothing is taken twice: the number is kept with the rows (`inlet.position`), in one step:

    {"producers": {"till-7": [41, 2, {"late": 1}]}}     the last number, how many rows it was, what became of the others

Errors are those of `UserError` as JSON: {"code", "message", "detail", "hint"}, with "place" for a body that cannot be
read. What is refused is not taken at all. There is room for a number of requests at a time; one more is told to come
back later.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.catalog.entries import Stream
from headgate.errors import UserError
from headgate.server.bodies import BadBody, rows
from headgate.server.listener import is_local
from headgate.server.served import Served
from headgate.sources.inlet import Inlet
from headgate.sources.inputs import Inputs
from headgate.sources.pushes import Push
from headgate.sources.rows import ticks
from headgate.sources.verdict import HEARTBEAT, TUPLE
from headgate.ticks import TimeDomain

T = TypeVar("T")

PRODUCERS = 100
"""Of how many producers a stream remembers the last number. The one that was silent longest is forgotten first."""

ALIVE = (TUPLE, HEARTBEAT)
NAME_LETTERS = 100
THREADS = 4
SHOWN = 1_000
"""How long a text in an error may be: rows are quoted in some."""

LARGE = 2**20
"""Bodies beyond this are taken one after the other."""

LONGEST = 2**63 - 1

STATUS = {
    "late-tuple": 409,
    "sequence-gap": 409,
    "bad-content-type": 415,
    "body-too-large": 413,
    "body-too-slow": 408,
    "no-such-stream": 404,
    "no-such-query": 404,
    "no-such-page": 404,
    "busy": 429,
    "stopping": 503,
    "not-kept": 503,
    "disk-failed": 503,
    "stream-changed": 503,
    "no-token": 401,
    "foreign-host": 403,
    "broken": 500,
}
"""The status of each error that is not a plain 400."""

HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}, 503: {"Retry-After": "5"}}


@dataclass(frozen=True, slots=True)
class Room:
    """How much the endpoint takes on at a time."""

    body_bytes: int = 2**24
    held_bytes: int = 2**26
    """How much all bodies together may have, those that are still coming and those that wait for their turn."""
    reading: int = 64
    """How many bodies may be coming. One more, and the one that has been coming longest is refused."""
    waiting: int = 64
    """How many requests whose body is there may wait for their turn."""
    body_seconds: float = 30.0
    """How long the sending of a body may take at the most."""
    pause_seconds: float = 5.0
    bytes_a_second: int = 2**16
    """A body may take `pause_seconds`, and a second more for so many bytes that have come."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """A producer's own number of a request."""

    producer: str
    sequence: int


class Desk:
    """Does what requests ask of the engine; each method can be called from any thread."""

    def __init__(self, engine: Served, inputs: Inputs) -> None:
        self.engine = engine
        self.inputs = inputs
        self.turn = engine.turn
        self.large = threading.Lock()
        """Held for a large body: while it is taken, it needs several times its size."""
        self.stopping = False

    def take(self, name: str, kind: str, body: bytearray, numbered: Numbered | None) -> dict[str, Any]:
        """Push the rows of a body; they are durable when this returns."""
        inlet = self.inputs.inlet(name)
        if self.stopping:
            raise UserError("stopping", "the engine stops", hint="Send the rows again when it is back.")
        with self.large if len(body) > LARGE else contextlib.nullcontext():
            return self._take(name, inlet, kind, body, numbered)

    def _take(self, name: str, inlet: Inlet, kind: str, body: bytearray, numbered: Numbered | None) -> dict[str, Any]:
        shape, began_us = inlet.rows, self.engine.clock.now_us()
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
                "heartbeat": _written(self.engine.heartbeat(inlet.stream.name))
                if isinstance(inlet.stream, Stream)
                else None
            }

    def promise(self, name: str, said: Any) -> dict[str, Any]:
        """Take a heartbeat that a source sends itself; answer with the stream's heartbeat."""
        stream = self.engine.catalog.only_stream(name, "a heartbeat")
        hint = '{"to": 17}' if stream.domain is not TimeDomain.TIMESTAMP else '{"to": "2026-01-01T12:00:00Z"}'
        if not isinstance(said, dict) or "to" not in said or not set(said) <= {"to", "source"}:
            raise UserError("bad-heartbeat", 'a heartbeat says "to", and "source" if it is of one source', hint=hint)
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
            return {"heartbeat": _written(self.engine.heartbeat(stream.name))}

    def status(self) -> dict[str, Any]:
        """How far every stream and query is, and what has failed."""
        engine = self.engine
        with self.turn:
            streams = {
                stream.name: {
                    **engine.counts(stream.name),
                    "heartbeat": _written(engine.heartbeat(stream.name)),
                    "silent": engine.silent(stream.name),
                }
                for stream in engine.catalog.streams.values()
            }
            relations = {relation.name: engine.counts(relation.name) for relation in engine.catalog.relations.values()}
            queries = {
                query.name: {"complete": _written(query.complete), "results": query.count, "epochs": query.epochs}
                for query in engine.queries()
            }
            troubles = {kind: known for kind, known in engine.troubles().items() if known}
        said = {"streams": streams, "relations": relations, "queries": queries}
        return {**said, "troubles": troubles} if troubles else said


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


def _numbered(headers: Headers) -> Numbered | None:
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


def _written(moment: Any) -> Any:
    return moment.isoformat() if isinstance(moment, datetime) else moment


# requests and answers


def application(engine: Served, inputs: Inputs, token: str | None = None, room: Room | None = None) -> FastAPI:
    """Make the endpoint as an ASGI application. `Listener` stops its `state.desk` and `state.pool`."""
    room = room or Room()
    desk = Desk(engine, inputs)
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="headgate-http")
    app = FastAPI(title="headgate", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.desk, app.state.pool = desk, pool
    app.add_middleware(Guard, desk=desk, token=token)
    bodies = Bodies(room)

    async def aside(work: Callable[..., T], *arguments: Any) -> T:
        """Do work in a thread that writes to disk or waits for a lock, so that it holds up no other request."""
        return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)

    @app.post("/streams/{name}")
    async def take(name: str, request: Request) -> JSONResponse:
        inputs.inlet(name)  # before the body is read
        numbered, kind = _numbered(request.headers), _kind(request)
        async with bodies.whole(request) as body:
            return JSONResponse(await aside(desk.take, name, kind, body, numbered))

    @app.post("/streams/{name}/heartbeat")
    async def promise(name: str, request: Request) -> JSONResponse:
        if _kind(request) != "application/json":
            raise UserError("bad-content-type", "a heartbeat is JSON", hint="Content-Type: application/json")
        async with bodies.whole(request) as body:
            try:
                said = json.loads(body)
            except (ValueError, RecursionError):
                raise UserError("bad-heartbeat", "the heartbeat is not JSON", hint='{"to": 17}') from None
            return JSONResponse(await aside(desk.promise, name, said))

    @app.get("/")
    @app.get("/status")
    async def status() -> JSONResponse:
        return JSONResponse(await aside(desk.status))

    @app.exception_handler(UserError)
    async def refused(request: Request, error: UserError) -> JSONResponse:
        return _refusal(error)

    @app.exception_handler(HTTPException)
    async def no_page(request: Request, error: HTTPException) -> JSONResponse:
        known = "POST /streams/{name}, POST /streams/{name}/heartbeat, GET /status"
        unknown = UserError(
            "no-such-page", f"there is no {request.method} {request.url.path}"[:SHOWN], detail=f"There is {known}."
        )
        return _refusal(unknown, error.status_code)

    @app.exception_handler(OSError)
    async def not_kept(request: Request, error: OSError) -> JSONResponse:
        return _refusal(UserError("not-kept", "the rows could not be written", detail=error.strerror or ""))

    @app.exception_handler(ClientDisconnect)
    async def gone(request: Request, error: ClientDisconnect) -> Response:
        return Response(status_code=400)  # nobody hears it, and nothing was taken

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> JSONResponse:
        return _refusal(
            UserError("broken", "headgate is wrong here", detail=type(error).__name__, hint="Please report it.")
        )

    return app


def _kind(request: Request) -> str:
    if request.headers.get("content-encoding", "identity") != "identity":
        raise UserError("bad-content-type", "bodies are taken as they are, not compressed")
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


class Bodies:
    """Reads the bodies of requests, and limits how many there are at a time and how large they are together."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.held = 0
        self.waiting = 0
        self.coming: dict[asyncio.Timeout, bytearray] = {}
        """What has come of those that are coming, the oldest first."""

    @contextlib.asynccontextmanager
    async def whole(self, request: Request) -> AsyncIterator[bytearray]:
        """Read the whole body of a request. It takes a place only when it is complete: slow senders keep nobody out."""
        body = bytearray()
        try:
            await self._read(request, body)
            if self.waiting >= self.room.waiting:
                raise UserError("busy", f"{self.waiting} requests wait already", hint="Send it again a little later.")
            self.waiting += 1
            try:
                yield body
            finally:
                self.waiting -= 1
        finally:
            self.held -= len(body)

    async def _read(self, request: Request, body: bytearray) -> None:
        """Read the body, and refuse it as soon as it is known to be too large or too slow."""
        room, began = self.room, asyncio.get_running_loop().time()
        too_large = UserError(
            "body-too-large",
            f"the body has more than {room.body_bytes} bytes",
            hint="Send the rows in several requests.",
        )
        expected = request.headers.get("content-length", "0")
        if not expected.isdecimal() or int(expected) > room.body_bytes:
            raise too_large
        limit = asyncio.timeout_at(self._deadline(began, 0))
        if len(self.coming) >= room.reading:
            self._refuse_oldest()
        try:
            async with limit:
                self.coming[limit] = body
                async for part in request.stream():
                    if len(body) + len(part) > room.body_bytes:
                        raise too_large
                    body += part
                    self.held += len(part)
                    while self.held > room.held_bytes and self._refuse_oldest(limit):
                        pass
                    if self.held > room.held_bytes:
                        raise UserError("busy", "too much is waiting already", hint="Send it again a little later.")
                    limit.reschedule(self._deadline(began, len(body)))
        except TimeoutError:
            raise UserError(
                "body-too-slow",
                "the body came too slowly",
                detail=f"It was not there after {asyncio.get_running_loop().time() - began:.1f} s.",
            ) from None
        finally:
            self.coming.pop(limit, None)

    def _deadline(self, began: float, bytes_read: int) -> float:
        room = self.room
        return began + min(room.body_seconds, room.pause_seconds + bytes_read / room.bytes_a_second)

    def _refuse_oldest(self, but: asyncio.Timeout | None = None) -> bool:
        """Refuse the body that has been coming longest and free its memory; False if there is none."""
        oldest = next((limit for limit in self.coming if limit is not but), None)
        if oldest is not None:
            body = self.coming.pop(oldest)
            self.held -= len(body)
            body.clear()
            oldest.reschedule(asyncio.get_running_loop().time())
        return oldest is not None


def _refusal(error: UserError, status: int | None = None) -> JSONResponse:
    status = status or STATUS.get(error.code, 400)
    said: dict[str, Any] = {"code": error.code, "message": error.message[:SHOWN]}
    if isinstance(error, BadBody):
        said["place"] = error.where
    said |= {"detail": error.detail[:SHOWN], "hint": error.hint[:SHOWN]}
    return JSONResponse(said, status, HEADERS.get(status))


def _host(headers: Headers) -> str | None:
    """The name that was asked for; None if it is none."""
    try:
        return urlsplit(f"//{headers.get('host', '')}").hostname or ""
    except ValueError:
        return None


class Guard:
    """Refuses requests without the token. Without a token only this machine can ask, but a page in a browser on it
    could be led here under a foreign name: so the name that was asked for must be local too.
    """

    def __init__(self, app: ASGIApp, desk: Desk, token: str | None) -> None:
        self.app = app
        self.desk = desk
        self.expected = None if token is None else f"bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self.refused(Headers(scope=scope)) if scope["type"] == "http" else None
        await (self.app if refused is None else _refusal(refused))(scope, receive, send)

    def refused(self, headers: Headers) -> UserError | None:
        """The reason to refuse a request with these headers; None if it may pass."""
        if self.expected is not None:
            scheme, _, credentials = headers.get("authorization", "").partition(" ")
            if not hmac.compare_digest(f"{scheme.lower()} {credentials.strip()}".encode(), self.expected):
                return UserError("no-token", "this endpoint wants a token", hint="Authorization: Bearer TOKEN")
        elif (host := _host(headers)) is None:
            return UserError("bad-host", "the header Host names no host")
        elif not is_local(host):
            return UserError("foreign-host", "without a token the endpoint answers under local names only")
        if self.desk.stopping:
            return UserError("stopping", "the engine stops", hint="Send the rows again when it is back.")
        return None
