"""An answer that does not end: events go out one by one, until there are no more or the reader has gone.

Readers that take nothing are let go by their connection (`connection`), as those of every answer are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

LET_GO = "headgate.let_go"
"""In the `state` of a request's scope: true if its reader was let go."""


class EventStream(Response):
    """Server-sent events."""

    media_type = "text/event-stream"

    def __init__(
        self, events: AsyncIterator[tuple[bytes, int]], sent: Callable[[int], None], ended: Callable[[bool], None]
    ) -> None:
        """`sent` hears how many results went out, `ended` whether the reader was let go."""
        super().__init__()
        self.events = events
        self.sent = sent
        self.ended = ended
        self.raw_headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send_all(send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait([sending, leaving], return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            self.ended(LET_GO in scope.get("state", {}))

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for event, results in self.events:
            await send({"type": "http.response.body", "body": event, "more_body": True})
            self.sent(results)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    """Wait until the reader has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
