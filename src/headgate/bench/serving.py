"""Loads a server as a process of its own: many who follow results while many push, and one who never reads.

A filter passes one row in twenty, so a thousand pushes a second are fifty results a second for each follower. Every
follower must see the same results as a page of all of them, each once and in the same order. The memory of the server
is compared between the second quarter of the time and the last.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from rich.console import Console
from rich.table import Table

PASSED = 20
"""One row in so many is a result."""

SCRIPT = f"""
CREATE STREAM s (x BIGINT) TIMESTAMP INTERNAL;
CREATE QUERY q AS SELECT ISTREAM(x) FROM s [NOW] WHERE x % {PASSED} = 0;
CREATE QUERY wide AS SELECT ISTREAM(x, REPEAT('.', 20000) AS filler) FROM s [NOW] WHERE x % {PASSED} = 0;
"""
"""Whoever follows `wide` and never reads has soon filled all buffers."""

PUSHERS = 16
START_SECONDS = 180
SETTLE_SECONDS = 30


@dataclass(slots=True)
class Load:
    """What was measured."""

    seconds: float = 0.0
    pushed: int = 0
    refused: int = 0
    push_seconds: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    """From when a push was begun until a follower had its result."""

    sent_at: dict[int, float] = field(default_factory=dict)
    seen: list[list[int]] = field(default_factory=list)
    """What each follower saw."""

    memory: list[tuple[int, int]] = field(default_factory=list)
    """Bytes of the server's Python process and of its JVM, once a second."""

    let_go: int = 0
    whole: list[int] = field(default_factory=list)
    """All results in the end."""

    @property
    def agreed(self) -> bool:
        """Whether every follower saw every result once and in order."""
        return bool(self.whole) and all(one == self.whole for one in self.seen)


def measure(folder: Path, followers: int, pushes: int, seconds: float) -> Load:
    """Start a server, load it for so many seconds, and stop it."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "s.cql"
    script.write_text(SCRIPT)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from headgate.cli import main; main()", "serve", str(script)]
    command += ["--client-share", "1"]  # the whole load comes from one address
    with (folder / "log.txt").open("wb") as log:
        server = subprocess.Popen(
            [*command, "--directory", str(folder / "state"), "--listen", str(port), "--log-level", "warning"],
            stderr=log,
            stdout=log,
            start_new_session=True,
        )
    try:
        _wait_for(port, server)
        return asyncio.run(_load(port, server.pid, followers, pushes, seconds))
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            urlopen(f"http://127.0.0.1:{port}/ready", timeout=5).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("the server does not come up")


async def _load(port: int, pid: int, followers: int, pushes: int, seconds: float) -> Load:
    load = Load()
    load.seen = [[] for _ in range(followers)]
    begun = [asyncio.Event() for _ in load.seen]
    following = [
        asyncio.create_task(_follow(port, seen, load, event)) for seen, event in zip(load.seen, begun, strict=True)
    ]
    lazy = await _ask(port, "GET", "/queries/wide/live", limit=2**12)
    await asyncio.wait_for(asyncio.gather(*(event.wait() for event in begun)), START_SECONDS)
    numbers, began = itertools.count(), time.perf_counter()
    end = began + seconds
    await asyncio.gather(
        _watch(pid, end, load), *(_push(port, numbers, pushes, began, end, load) for _ in range(PUSHERS))
    )
    load.seconds = time.perf_counter() - began
    expected = len([number for number in load.sent_at if number % PASSED == 0])
    until = time.perf_counter() + SETTLE_SECONDS
    while time.perf_counter() < until and any(len(seen) < expected for seen in load.seen):
        await asyncio.sleep(0.1)
    for task in following:
        task.cancel()
    await asyncio.gather(*following, return_exceptions=True)
    load.whole = await _all_results(port)
    metrics = (await _answer(port, "/metrics")).decode()
    load.let_go = int(float(metrics.partition("\nheadgate_live_followers_let_go_total ")[2].split("\n")[0]))
    lazy[1].close()
    return load


async def _ask(
    port: int, method: str, path: str, limit: int = 2**24
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask the server for something. Of what nobody reads, about twice the limit is taken from the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=limit)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    await writer.drain()
    return reader, writer


async def _follow(port: int, seen: list[int], load: Load, begun: asyncio.Event) -> None:
    """Follow results, and note how long each was under way. A follower sees what comes once it has been answered."""
    reader, writer = await _ask(port, "GET", "/queries/q/live")
    try:
        status = await reader.readline()
        if b" 200 " not in status:
            raise RuntimeError(f"a follower was refused: {status.decode().strip()}")
        begun.set()
        while line := await reader.readline():
            if line.startswith(b"data: "):
                now, rows = time.perf_counter(), json.loads(line[6:])["rows"]
                seen += [row["x"] for row in rows]
                load.delays += [now - load.sent_at[row["x"]] for row in rows if row["x"] in load.sent_at]
    finally:
        writer.close()


async def _push(port: int, numbers: Any, pushes: int, began: float, end: float, load: Load) -> None:
    """Push rows one by one, each at its time: all who push share one count."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = "POST /streams/s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length:"
    while (at := time.perf_counter()) < end:
        number = next(numbers)
        await asyncio.sleep(max(began + number / pushes - at, 0))
        body, at = json.dumps([[number]]), time.perf_counter()
        load.sent_at[number] = at
        writer.write(f"{head} {len(body)}\r\n\r\n{body}".encode())
        status = await reader.readline()
        length = 0
        while (line := await reader.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        await reader.readexactly(length)
        load.push_seconds.append(time.perf_counter() - at)
        if b" 200 " in status:
            load.pushed += 1
        else:
            load.refused += 1
            del load.sent_at[number]
    writer.close()


async def _watch(pid: int, end: float, load: Load) -> None:
    """Note once a second how much memory the server has."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    while time.perf_counter() < end:
        load.memory.append((_resident(pid), sum(_resident(int(child)) for child in children)))
        await asyncio.sleep(1.0)


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


async def _answer(port: int, path: str) -> bytes:
    return await asyncio.to_thread(lambda: urlopen(f"http://127.0.0.1:{port}{path}", timeout=60).read())


async def _all_results(port: int) -> list[int]:
    found: list[int] = []
    after = "beginning"
    while True:
        page = json.loads(await _answer(port, f"/queries/q/results?limit=10000&after={after}"))
        found += [row["x"] for row in page["rows"]]
        after = page["position"]
        if not page["more"]:
            return found


def show(console: Console, load: Load) -> None:
    """Print what was measured."""
    table = Table("of the server", "measured", title=f"{len(load.seen)} followers for {load.seconds:.0f} s")
    followed = sum(map(len, load.seen))
    rows = [
        ("pushes a second", f"{load.pushed / load.seconds:,.0f} ({load.refused} refused)"),
        ("a push: median, 99%", _times(load.push_seconds)),
        ("results a second, for each follower", f"{len(load.whole) / load.seconds:,.1f}"),
        ("results a second, for all", f"{followed / load.seconds:,.0f}"),
        ("from push to follower: median, 99%", _times(load.delays)),
        ("every follower saw every result once, in order", "yes" if load.agreed else "NO"),
        ("followers that read nothing and were let go", str(load.let_go)),
        *[
            (f"memory of {name}, second quarter and last", growth(load.memory, place))
            for place, name in enumerate(("Python", "Java"))
        ],
    ]
    for name, said in rows:
        table.add_row(name, said)
    console.print(table)


def _times(seconds: Sequence[float]) -> str:
    if len(seconds) < 2:
        return "-"
    cut = statistics.quantiles(seconds, n=100)
    return f"{cut[49] * 1000:,.0f} ms, {cut[98] * 1000:,.0f} ms"


def growth(memory: Sequence[tuple[int, int]], place: int) -> str:
    """Return the medians of the memory in the second quarter of the time, and in the last."""
    quarter = len(memory) // 4
    if not quarter:
        return "-"
    early = statistics.median(one[place] for one in memory[quarter : 2 * quarter])
    late = statistics.median(one[place] for one in memory[-quarter:])
    return f"{early / 1e6:,.0f} MB, {late / 1e6:,.0f} MB"
