"""Reads the bodies of requests, and limits how many there are at a time and how large they are together."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass

from fastapi import Request

from headgate.errors import UserError
from headgate.server.limits import Limits
from headgate.server.shares import Shares, client_of


def kind_of(request: Request) -> str:
    """Return the content type of a request, without its parameters."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise UserError("bad-content-type", "bodies are taken as they are, not compressed")
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(slots=True, eq=False)
class Coming:
    """A body that is coming."""

    client: str
    limit: asyncio.Timeout
    body: bytearray


class Bodies:
    """Reads the bodies of requests, and limits how many there are at a time and how large they are together."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held: Counter[str] = Counter()
        """How many bytes there are of the bodies of each client."""
        self.waiting = Shares(limits.waiting, limits, "wait already")
        self.coming: dict[Coming, None] = {}
        """Those that are coming, the oldest first."""

    @contextlib.asynccontextmanager
    async def whole(self, request: Request, most: int | None = None) -> AsyncIterator[bytearray]:
        """Read the whole body of a request, of at most so many bytes.

        It takes a place only when it is complete: slow senders keep nobody out.
        """
        client, body = client_of(request.scope), bytearray()
        try:
            await self._read(request, client, body, self.limits.body_bytes if most is None else most)
            with self.waiting.place(client):
                yield body
        finally:
            self._free(client, len(body))

    async def _read(self, request: Request, client: str, body: bytearray, most: int) -> None:
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
        coming = Coming(client, asyncio.timeout_at(self._deadline(began, 0)), body)
        if sum(one.client == client for one in self.coming) >= limits.of_client(limits.reading):
            self._refuse_oldest(client)
        elif len(self.coming) >= limits.reading:
            self._refuse_oldest()
        try:
            async with coming.limit:
                self.coming[coming] = None
                async for part in request.stream():
                    if len(body) + len(part) > most:
                        raise too_large
                    body += part
                    self.held[client] += len(part)
                    self._make_room(coming)
                    coming.limit.reschedule(self._deadline(began, len(body)))
        except TimeoutError:
            raise UserError(
                "body-too-slow",
                "the body came too slowly",
                detail=f"It was not there after {asyncio.get_running_loop().time() - began:.1f} s.",
            ) from None
        finally:
            self.coming.pop(coming, None)

    def _deadline(self, began: float, bytes_read: int) -> float:
        limits = self.limits
        return began + min(limits.body_seconds, limits.pause_seconds + bytes_read / limits.bytes_a_second)

    def _make_room(self, coming: Coming) -> None:
        """Refuse other bodies while there is more than may be held, of this client or of all, or else this one."""
        limits, client = self.limits, coming.client
        share = max(limits.of_client(limits.held_bytes), limits.body_bytes)
        while self.held[client] > share and self._refuse_oldest(client, coming):
            pass
        while self.held.total() > limits.held_bytes and self._refuse_oldest(None, coming):
            pass
        if self.held[client] > share or self.held.total() > limits.held_bytes:
            raise UserError("busy", "too much is waiting already", hint="Send it again a little later.")

    def _refuse_oldest(self, client: str | None = None, but: Coming | None = None) -> bool:
        """Refuse the body that has been coming longest, of a client or of all, and free its memory; say if there is
        one.
        """
        oldest = next((one for one in self.coming if one is not but and client in (None, one.client)), None)
        if oldest is None:
            return False
        del self.coming[oldest]
        self._free(oldest.client, len(oldest.body))
        oldest.body.clear()
        oldest.limit.reschedule(asyncio.get_running_loop().time())
        return True

    def _free(self, client: str, size: int) -> None:
        self.held[client] -= size
        if not self.held[client]:
            del self.held[client]
