"""Connections that cannot keep others out: each has a while to send the headers of a request and to take its answer.

uvicorn waits for ever for headers, and for a reader to take an answer. Here every connection is in one of three states:

    idle    without a request under way, be it new, half-way through its headers or kept open after an answer; it is
            closed after a while
    slow    more lies ready for its reader than fits into the buffers; it is let go when the reader takes too little
    busy    a request is under way, and its reader takes what there is

When there are too many connections, of one client or of all, the one of them is let go that has been idle, or has
taken too little, for the longest time. So whoever comes next gets in, and who sends or takes nothing pays for it. A
connection that is let go is aborted: closing it would wait until the reader has taken what lies in the buffers, which
it never does.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from headgate.server.event_stream import LET_GO
from headgate.server.limits import Limits
from headgate.server.shares import client_at

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

CLOSE = (b"connection", b"close")


@dataclass(slots=True)
class Client:
    """The connections of one client."""

    open: int = 0
    idle: dict[Connection, None] = field(default_factory=dict)
    """The longest first."""
    unsent: int = 0


class Connections:
    """All connections of one server: makes room for new ones, and lets go of readers that take too little."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.most = min(limits.connections, _files() // 2)
        self.clients: dict[str, Client] = {}
        self.open = 0
        self.idle: dict[Connection, None] = {}
        """The longest first."""
        self.slow: dict[Connection, int] = {}
        """The longest first, with what lay ready for them."""
        self.unsent = 0

    def __call__(self, **given: Any) -> Connection:
        """Make a connection, as uvicorn asks for it."""
        return Connection(self, **given)

    def enter(self, new: Connection) -> None:
        """Count a new connection, and let go of another if there are too many, or of it if no other can be."""
        client = self.clients.setdefault(new.by, Client())
        client.open += 1
        self.open += 1
        if client.open > self.limits.of_client(self.most):
            (self._slowest(new.by, client.idle) or new).let_go()
        elif self.open > self.most:
            (self._slowest(None, self.idle) or new).let_go()

    def leave(self, gone: Connection) -> None:
        """Forget a connection."""
        self.go_on(gone)
        self.catch_up(gone)
        client = self.clients[gone.by]
        client.open -= 1
        self.open -= 1
        if not client.open:
            del self.clients[gone.by]

    def rest(self, one: Connection) -> None:
        """Take a connection for idle from now on."""
        self.go_on(one)
        own = self.clients[one.by].idle
        if len(own) >= self.limits.of_client(self.limits.idle):
            next(iter(own)).let_go()
        elif len(self.idle) >= self.limits.idle:
            next(iter(self.idle)).let_go()
        own[one] = self.idle[one] = None

    def go_on(self, one: Connection) -> None:
        """Take a connection for idle no longer."""
        self.idle.pop(one, None)
        self.clients[one.by].idle.pop(one, None)

    def fall_behind(self, one: Connection, unsent: int) -> None:
        """Take a connection for slow from now on; let go of the slowest while too much lies ready."""
        client, most = self.clients[one.by], self.limits.unsent_bytes
        self.slow[one] = unsent
        client.unsent += unsent
        self.unsent += unsent
        while client.unsent > self.limits.of_client(most) and (slowest := self._slowest(one.by)) is not one:
            assert slowest is not None
            slowest.let_go()
        while self.unsent > most and (slowest := self._slowest()) is not one:
            assert slowest is not None
            slowest.let_go()

    def catch_up(self, one: Connection) -> None:
        """Take a connection for slow no longer."""
        unsent = self.slow.pop(one, 0)
        self.clients[one.by].unsent -= unsent
        self.unsent -= unsent

    def advance(self, one: Connection) -> None:
        """Take a connection that is slow for one that has just taken something."""
        self.slow[one] = self.slow.pop(one)

    def _slowest(self, client: str | None = None, idle: Iterable[Connection] = ()) -> Connection | None:
        """Return the connection that has taken too little for the longest time, or is idle for longer than that."""
        slow = (one for one in self.slow if client is None or one.by == client)
        first = [one for one in (next(iter(idle), None), next(slow, None)) if one is not None]
        return min(first, key=lambda one: one.since, default=None)


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose servers wait no longer for a TLS handshake than for headers."""

    def __init__(self, handshake_seconds: float) -> None:
        super().__init__()
        self.handshake_seconds = handshake_seconds

    async def create_server(self, *given: Any, **named: Any) -> asyncio.Server:
        """Make a server."""
        if named.get("ssl") is not None:
            named |= {"ssl_handshake_timeout": self.handshake_seconds, "ssl_shutdown_timeout": self.handshake_seconds}
        return await super().create_server(*given, **named)


class Connection(H11Protocol):
    """One connection."""

    def __init__(self, all_of_them: Connections, **given: Any) -> None:
        super().__init__(**given)
        self.all = all_of_them
        self.limits = all_of_them.limits
        self.by = ""
        self.gone = True
        self.since = 0.0
        """Since when it is idle or has taken too little."""
        self.ahead = 0
        """How many requests have begun since something was received."""
        self._timer: asyncio.TimerHandle | None = None

    # what happens to it

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, idle."""
        super().connection_made(transport)
        self.by, self.gone = client_at(self.client[0]) if self.client else "", False
        bounded(transport.get_extra_info("socket"), self.limits)
        self.all.enter(self)
        self._rest()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what has come; a request that begins with it ends the rest."""
        self.ahead = 0
        super().data_received(data)
        if not self.gone and self._under_way and not self.flow.write_paused:
            self._go_on()

    def eof_received(self) -> None:
        """Nothing more comes: what is still to be taken is waited for as long as an idle connection."""
        self._rest()

    def handle_events(self) -> None:
        """Begin the next request; the last that may be sent ahead says that the connection ends with it."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self.ahead += 1
            if self.ahead > self.limits.pipelined:
                self.cycle.scope["headers"].append(CLOSE)  # type: ignore[attr-defined]

    def on_response_complete(self) -> None:
        """Rest, unless another request has come meanwhile."""
        super().on_response_complete()
        if not self._under_way:
            self._rest()

    def pause_writing(self) -> None:
        """More lies ready than fits into the buffers: the reader has a while to take it."""
        super().pause_writing()
        if not self.gone:
            self.all.go_on(self)
            unsent = self.transport.get_write_buffer_size()
            self.all.fall_behind(self, unsent)
            self._look_again(unsent)

    def resume_writing(self) -> None:
        """The reader has taken what lay ready."""
        super().resume_writing()
        if not self.gone:
            self._go_on()
            if not self._under_way:
                self._rest()

    # what follows from it

    def let_go(self) -> None:
        """Abort the connection."""
        if not self.gone:
            self._leave()
            if self._under_way:
                self.cycle.scope["state"][LET_GO] = True
            self.transport.abort()

    @property
    def _under_way(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _rest(self) -> None:
        """Be idle; what lies ready is watched by itself."""
        if not self.gone and not self.flow.write_paused:
            self._go_on()
            self.all.rest(self)
            self._after(self.limits.header_seconds, self.let_go)

    def _go_on(self) -> None:
        self._stop()
        self.all.go_on(self)
        self.all.catch_up(self)

    def _look_again(self, unsent: int) -> None:
        self._after(self.limits.send_seconds, self._look, unsent)

    def _look(self, before: int) -> None:
        """Let go of a reader that has taken too little of what lay ready."""
        unsent = self.transport.get_write_buffer_size()
        if before - unsent < self.limits.send_bytes:
            self.let_go()
        else:
            self.all.advance(self)
            self._look_again(unsent)

    def _after(self, seconds: float, then: Callable[..., None], *arguments: Any) -> None:
        self._stop()
        self.since = self.loop.time()
        self._timer = self.loop.call_later(seconds, then, *arguments)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _leave(self) -> None:
        if not self.gone:
            self._stop()
            self.all.leave(self)
            self.gone = True


def bounded(connection: socket.socket | None, limits: Limits) -> None:
    """Limit what the system keeps for a reader, and how long it waits for one that no longer answers."""
    options = [
        (socket.SOL_SOCKET, "SO_SNDBUF", limits.socket_bytes),
        (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", int(limits.silent_seconds * 1_000)),  # Linux has it
    ]
    for level, option, value in options:
        with suppress(OSError):
            if connection is not None and hasattr(socket, option):
                connection.setsockopt(level, getattr(socket, option), value)


def _files() -> int:
    """Return how many files the process may open."""
    if resource is None:
        return 2**16
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2**16 if most == resource.RLIM_INFINITY else most
