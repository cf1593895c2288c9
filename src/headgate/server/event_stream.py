"""An answer that does not end: events go out one by one, and whoever does not take them is let go.

The connection of a reader that takes nothing is aborted. Closing it would wait until the reader has taken what lies in
the buffers, which it never does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

ABORT = "headgate.abort"
"""Under this name a request's scope has the function that aborts its connection (`connection`)."""


class EventStream(Response):
    """Server-sent events."""

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncIterator[tuple[bytes, int]],
        send_seconds: float,
        sent: Callable[[int], None],
        ended: Callable[[bool], None],
    ) -> None:
        """`sent` hears how many results went out, `ended` whether the reader was let go."""
        super().__init__()
        self.events = events
        self.send_seconds = send_seconds
        self.sent = sent
        self.ended = ended
        self.raw_headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        let_go = False
        sending = asyncio.ensure_future(self._send_all(send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait([sending, leaving], return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        except TimeoutError:
            let_go = True
            scope.get(ABORT, lambda: None)()
            await asyncio.wait([leaving], timeout=1.0)  # until the server has seen that the connection is gone
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            self.ended(let_go)

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for event, results in self.events:
            async with asyncio.timeout(self.send_seconds):
                await send({"type": "http.response.body", "body": event, "more_body": True})
            self.sent(results)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    """Wait until the reader has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
