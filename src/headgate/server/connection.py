"""A connection that cannot keep others out: it has a while to send the headers of a request, and makes room for others.

uvicorn waits for headers for ever. Here a connection without a request under way, be it new, half-way through its
headers or kept open after an answer, is idle. It is closed when it has been idle for too long; and when there are too
many of them, the one that has been idle longest is, so that whoever comes next always gets in.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

from headgate.server.event_stream import ABORT

HEADER_SECONDS = 10.0
IDLE = 200
"""How many connections may be idle at a time."""


def guarded(header_seconds: float = HEADER_SECONDS, most_idle: int = IDLE) -> type[H11Protocol]:
    """Make the class of an endpoint's connections, which share their limits."""
    idle: dict[H11Protocol, asyncio.TimerHandle] = {}  # in the order in which they became so

    class Connection(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._rest()

        def connection_lost(self, exc: Exception | None) -> None:
            self._go_on()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.scope is not None:  # what answers the request runs later
                self.scope[ABORT] = self.transport.abort  # type: ignore[literal-required]
            if self.cycle is not None and not self.cycle.response_complete:
                self._go_on()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
                self._rest()

        def _rest(self) -> None:
            self._go_on()
            if len(idle) >= most_idle:
                longest = next(iter(idle))
                idle.pop(longest).cancel()
                longest.transport.abort()
            idle[self] = self.loop.call_later(header_seconds, self.transport.abort)

        def _go_on(self) -> None:
            timer = idle.pop(self, None)
            if timer is not None:
                timer.cancel()

    return Connection
