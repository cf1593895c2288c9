"""Followers beside the engine: one that sees that there is more, and not yet what, waits like every other."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pyarrow as pa
import pytest

from headgate.server.limits import Limits
from headgate.server.live import Followers
from headgate.server.positions import Position

EDITION = "5f3a09c1e2b44d0f"


class Lagging:
    """An engine and its only query, whose results are counted before they can be read."""

    name, kind, complete, edition, answers_early = "q", "stream", 1, EDITION, False
    last_position = 2

    def __init__(self) -> None:
        self.rows = 0
        self.pages = 0

    def query(self, name: str) -> Lagging:
        return self

    def on_commit(self, listener: Any) -> None:
        self.ring = listener

    def page(self, after: int, most: int) -> tuple[list[pa.Table], int]:
        self.pages += 1
        there = list(range(after, self.rows))
        return ([pa.table({"x": there})] if there else []), self.rows


@pytest.fixture
def engine() -> Lagging:
    return Lagging()


async def followed(engine: Lagging) -> tuple[int, int]:
    async def aside(work: Any, *arguments: Any) -> Any:
        return work(*arguments)

    followers = Followers(engine, Limits(quiet_seconds=0.1), aside, lambda: False)  # type: ignore[arg-type]
    events = followers.follow("q", Position(EDITION, 0))
    assert (await anext(events))[0].startswith(b"retry")
    assert (await anext(events))[0] == b": still here\n\n", "it waited, and others had their turn"
    looked = engine.pages
    engine.rows = 2
    engine.ring()
    event, results = await anext(events)
    assert b'"rows":[{"x":0},{"x":1}]' in event
    return looked, results


def test_a_follower_never_spins(engine: Lagging) -> None:
    found: list[tuple[int, int]] = []
    following = threading.Thread(target=lambda: found.append(asyncio.run(followed(engine))), daemon=True)
    following.start()
    following.join(20)
    assert found == [(1, 2)], "one look, and one more when the bell was rung"
