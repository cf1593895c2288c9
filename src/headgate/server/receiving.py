"""Reads the bodies of requests, and limits how many there are at a time and how large they are together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fastapi import Request

from headgate.errors import UserError
from headgate.server.limits import Limits


def kind_of(request: Request) -> str:
    """Return the content type of a request, without its parameters."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise UserError("bad-content-type", "bodies are taken as they are, not compressed")
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


class Bodies:
    """Reads the bodies of requests, and limits how many there are at a time and how large they are together."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held = 0
        self.waiting = 0
        self.coming: dict[asyncio.Timeout, bytearray] = {}
        """What has come of those that are coming, the oldest first."""

    @contextlib.asynccontextmanager
    async def whole(self, request: Request, most: int | None = None) -> AsyncIterator[bytearray]:
        """Read the whole body of a request, of at most so many bytes.

        It takes a place only when it is complete: slow senders keep nobody out.
        """
        body = bytearray()
        try:
            await self._read(request, body, self.limits.body_bytes if most is None else most)
            if self.waiting >= self.limits.waiting:
                raise UserError("busy", f"{self.waiting} requests wait already", hint="Send it again a little later.")
            self.waiting += 1
            try:
                yield body
            finally:
                self.waiting -= 1
        finally:
            self.held -= len(body)

    async def _read(self, request: Request, body: bytearray, most: int) -> None:
        """Read the body, and refuse it as soon as it is known to be too large or too slow."""
        limits, began = self.limits, asyncio.get_running_loop().time()
        too_large = UserError(
            "body-too-large",
            f"the body has more than {most} bytes",
            hint="Send it in several requests.",
        )
        expected = request.headers.get("content-length", "0")
        if not expected.isdecimal() or int(expected) > most:
            raise too_large
        limit = asyncio.timeout_at(self._deadline(began, 0))
        if len(self.coming) >= limits.reading:
            self._refuse_oldest()
        try:
            async with limit:
                self.coming[limit] = body
                async for part in request.stream():
                    if len(body) + len(part) > most:
                        raise too_large
                    body += part
                    self.held += len(part)
                    while self.held > limits.held_bytes and self._refuse_oldest(limit):
                        pass
                    if self.held > limits.held_bytes:
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
        limits = self.limits
        return began + min(limits.body_seconds, limits.pause_seconds + bytes_read / limits.bytes_a_second)

    def _refuse_oldest(self, but: asyncio.Timeout | None = None) -> bool:
        """Refuse the body that has been coming longest and free its memory; False if there is none."""
        oldest = next((limit for limit in self.coming if limit is not but), None)
        if oldest is not None:
            body = self.coming.pop(oldest)
            self.held -= len(body)
            body.clear()
            oldest.reschedule(asyncio.get_running_loop().time())
        return oldest is not None
