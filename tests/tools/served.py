"""An engine without Spark behind a real server on loopback, and a reader of server-sent events."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from headgate import Engine
from headgate.server.limits import Limits
from headgate.server.listener import opened
from headgate.server.serving import Serving, outside

JSON = {"Content-Type": "application/json"}


@contextmanager
def served(
    engine: Engine, token: str | None = None, allow: tuple[str, ...] = (), limits: Limits | None = None
) -> Iterator[httpx.Client]:
    """A client of an engine that is served."""
    serving = Serving(outside(allow), limits or Limits(status_seconds=0))
    listener = engine.serve(opened("127.0.0.1", 0, token), serving)
    with listener, httpx.Client(base_url=listener.url, timeout=400) as asking:
        yield asking


def say(asking: httpx.Client, cql: str) -> httpx.Response:
    """Send statements."""
    return asking.post("/statements", headers=JSON, json={"cql": cql})


def events(answer: httpx.Response) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The events of an answer as they come: their kind, their id, and what they say."""
    fields: dict[str, str] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield fields["event"], fields.get("id", ""), json.loads(fields["data"])
            fields = {}


def until(true: Callable[[], Any], seconds: float = 30.0) -> None:
    """Wait until something is true, for a generous time."""
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, "it never came true"
        time.sleep(0.01)
