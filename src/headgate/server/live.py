"""Results as they come: each follower reads the log of results at its own pace, from its own position.

There is no queue between the engine and a follower. The engine rings a bell when it has committed something, and goes
on. A follower that hears it reads the next page behind its position and sends it. One that is slow gets larger pages
later; one that takes nothing for a while is let go, and can come back with its position. So a follower costs the engine
nothing, its memory is bounded by one page, and it gets every result exactly once and in order.

Followers of one query that are equally far get the same bytes: a page is read and written as JSON once.

    id: 5f3a09c1e2b44d0f-58
    event: results
    data: {"position":"5f3a09c1e2b44d0f-58","complete":17,"rows":[{"_time":17,"k":"a"}]}
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from headgate.errors import UserError
from headgate.observe.overview import plain
from headgate.server.early import EarlyPage, EarlyPages
from headgate.server.limits import Limits
from headgate.server.pages import Page, page_of
from headgate.server.positions import Position, changed, edition_of
from headgate.server.refusals import as_json, stopping
from headgate.server.served import Served, ServedQuery
from headgate.server.shares import Shares

RING_SECONDS = 0.02
"""The bell is heard no more often: results that come in between go out together."""

CACHE_BYTES = 2**24
CACHE_EVENTS = 1_000
"""How many events, of how many bytes together, are kept for followers who want the same."""

RETRY_MILLISECONDS = 1_000
"""After how long a browser that was let go comes back."""

Aside = Callable[..., Awaitable[Any]]


class Bell:
    """Rung by any thread, heard by those who wait in the server's loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard = asyncio.Event()
        self._pending = False
        self.rings = 0
        """How often it has been heard."""

    def ring(self) -> None:
        """Wake those who wait, soon. It can be called from any thread and returns at once."""
        loop = self._loop
        if loop is not None and not self._pending:
            self._pending = True
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(loop.call_later, RING_SECONDS, self._ring)

    def _ring(self) -> None:
        self._pending = False
        self.rings += 1
        heard, self._heard = self._heard, asyncio.Event()
        heard.set()

    def listen(self) -> asyncio.Event:
        """Return what is set when the bell is rung the next time."""
        self._loop = asyncio.get_running_loop()
        return self._heard


@dataclass(frozen=True, slots=True)
class Event:
    """Results as followers get them."""

    data: bytes
    results: int
    position: Position
    """Behind the last of them."""


class Events:
    """The events that followers get, each made once for all who want it."""

    def __init__(self, limits: Limits, aside: Aside) -> None:
        self.limits = limits
        self.aside = aside
        self.bytes = 0
        self._made: OrderedDict[Position, Event] = OrderedDict()
        """By the position behind which they begin."""
        self._making: dict[Position, asyncio.Task[Event]] = {}

    async def behind(self, query: ServedQuery, after: Position) -> Event:
        """Return the event with the results behind a position."""
        if after in self._made:
            self._made.move_to_end(after)
            return self._made[after]
        if after not in self._making:
            self._making[after] = asyncio.create_task(self._make(query, after))
        return await asyncio.shield(self._making[after])

    async def _make(self, query: ServedQuery, after: Position) -> Event:
        try:
            page: Page = await self.aside(page_of, query, after, self.limits.page_rows, self.limits)
            made = Event(_results(page, query.complete), len(page.rows), page.position)
            if made.position == after:  # nothing is there yet: it is looked at again when the bell is rung
                return made
            self._made[after] = made
            self.bytes += len(made.data)
            while self.bytes > CACHE_BYTES or len(self._made) > CACHE_EVENTS:
                self.bytes -= len(self._made.popitem(last=False)[1].data)
            return made
        finally:
            self._making.pop(after, None)


class Followers:
    """All who follow results."""

    def __init__(self, engine: Served, limits: Limits, aside: Aside, is_stopping: Callable[[], bool]) -> None:
        self.engine = engine
        self.limits = limits
        self.is_stopping = is_stopping
        self.bell = Bell()
        self.events = Events(limits, aside)
        self.early = EarlyPages(limits, aside)
        self.places = Shares(limits.followers, limits, "follow results already")
        engine.on_commit(self.bell.ring)

    async def follow(self, name: str, after: Position) -> AsyncIterator[tuple[bytes, int]]:
        """Give the events behind a position, and how many results each has, until there is a reason to end.

        Behind the results that are there comes the early answer that holds now, if it is another than before. It has
        no id, so that whoever comes back goes on behind the last settled result.
        """
        shown = EarlyPage()
        yield f"retry: {RETRY_MILLISECONDS}\n\n".encode(), 0
        while True:
            heard, ring = self.bell.listen(), self.bell.rings
            try:
                query = self._still(name, after)
                event = await self.events.behind(query, after) if query.last_position > after.count else None
                early = await self.early.now(query, ring) if event is None and query.answers_early else shown
            except UserError as error:
                yield _event("end", as_json(error)), 0
                return
            if event is not None and event.position != after:
                after = event.position
                if event.results:
                    yield event.data, event.results
                await asyncio.sleep(0)  # others have their turn, whatever lies ready
            elif early != shown:
                shown = early
                yield b"event: early\ndata: %b\n\n" % early.to_json(), 0
            elif not await _within(heard.wait(), self.limits.quiet_seconds):
                yield b": still here\n\n", 0

    def _still(self, name: str, after: Position) -> ServedQuery:
        """Return the query while its results are still those that are followed."""
        if self.is_stopping():
            raise stopping("Come back with the last position.")
        query = self.engine.query(name)
        if edition_of(query) != after.edition:
            raise changed(name)
        return query


async def _within(waiting: Any, seconds: float) -> bool:
    """Wait for something, but no longer than that; say whether it came."""
    try:
        await asyncio.wait_for(waiting, seconds)
    except TimeoutError:
        return False
    return True


def _results(page: Page, complete: Any) -> bytes:
    about = json.dumps({"position": str(page.position), "complete": plain(complete)}, separators=(",", ":")).encode()
    data = about[:-1] + b',"rows":[' + b",".join(page.rows) + b"]}"
    return b"id: %b\nevent: results\ndata: %b\n\n" % (str(page.position).encode(), data)


def _event(kind: str, said: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(said)}\n\n".encode()
