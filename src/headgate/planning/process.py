"""The planning process: `python -m headgate.planning.process`, started by `planner` with two pipes.

It knows the catalog, and never sees a text: each is planned by a child that it forks, which has the catalog at once and
may be killed. So what a text does to its process ends with the text, and the next one waits for nothing to be started.

What comes in was pickled by the engine. What goes out is JSON, which the engine can read without trusting it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import pickle
import resource
import select
import signal
import struct
import time
from contextlib import suppress
from math import ceil
from typing import Any

from headgate.catalog.catalog import Catalog
from headgate.planning.limits import PlanLimits
from headgate.planning.plans import planned
from headgate.planning.state import Changes, Request, apply

LENGTH = struct.Struct(">Q")
NICE = 10
"""The priority is lower by so much: planning takes what the engine leaves."""

NEW_NAMES, NEW_NETWORK = 0x10000000, 0x40000000
"""Of Linux: a user namespace, without which not everybody may have a network of its own, with nothing in it."""

WARM = """
    CREATE STREAM s (k STRING, n INT, at TIMESTAMP) TIMESTAMP BY at; CREATE FUNCTION f (a INT) RETURN a + 1;
    CREATE VIEW v AS SELECT k, f(n) AS n FROM s [RANGE 5 MINUTES] WHERE n > 1 AND k = 'a';
    CREATE QUERY q AS SELECT a.k, COUNT(*) AS c FROM v a, s [NOW] b WHERE a.k = b.k GROUP BY a.k;
    EXPLAIN SELECT ISTREAM(k) FROM s [NOW]; SET dialect = 'gsql'; SELECT k FROM s WHERE n > 1; SHOW QUERIES;
"""
"""Statements that load whatever is loaded when it is first needed."""


def main() -> None:
    """Take what has changed and texts to be planned, until the engine is gone."""
    os.nice(NICE)
    _leave_network()
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    for _ in planned(WARM, Catalog(), "", lambda: None):
        pass
    catalog = Catalog()
    gc.collect()
    gc.freeze()  # what is there is not looked at again, so that children do not copy it
    _send({"ready": True})
    while (message := _read(LENGTH.size)) is not None:
        body = _read(*LENGTH.unpack(message))
        if body is None:
            return
        some, request = pickle.loads(body)
        _tell(catalog, some)
        _in_child(catalog, request)


def _tell(catalog: Catalog, some: Changes) -> None:
    apply(some, catalog)
    if some.entries:
        gc.collect()
        gc.freeze()


def _in_child(catalog: Catalog, request: Request) -> None:
    """Plan a text in a child, hand on what it says line by line, and say how it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _plan(catalog, request, writing)
    os.close(writing)
    ended = _handed_on(reading, request.limits)
    if ended:
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    _send({"ended": ended or _ended(status)})


def _handed_on(reading: int, limits: PlanLimits) -> str:
    """Hand on the lines of a child until it has said all; returns the limit at which it has to end, if it meets one.

    The engine may be at work meanwhile and read nothing: the child does not wait for it.
    """
    ends, left = time.monotonic() + _longest(limits), limits.answer_bytes
    line, waiting, ended = bytearray(), bytearray(), ""
    os.set_blocking(1, False)
    while not ended:
        seconds = ends - time.monotonic()
        ready, free, _ = select.select([reading], [1] if waiting else [], [], max(0.0, seconds))
        if free:
            del waiting[: os.write(1, waiting[: 2**16])]
        if ready:
            some = os.read(reading, 2**16)
            if not some:
                break
            left -= len(some)
            *whole, line = (line + some).split(b"\n")
            for one in whole:
                waiting += LENGTH.pack(len(one)) + one
        ended = "time" if seconds <= 0 else "answer" if left < 0 else ""
    os.set_blocking(1, True)
    _write(1, bytes(waiting))
    return ended


def _longest(limits: PlanLimits) -> float:
    """How long a text may take at the most, on a clock."""
    return limits.text_seconds * limits.waited


def _ended(status: int) -> str:
    """How a child ended: well, or by which limit."""
    if os.WIFSIGNALED(status):
        return "time" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM) else "memory"
    return {0: "well", 3: "time", 4: "memory"}.get(os.WEXITSTATUS(status), "defect")


def _plan(catalog: Catalog, request: Request, writing: int) -> None:
    """Plan a text within the limits, and end the process."""
    status = 5
    try:
        limits = request.limits
        _lock_up(writing, limits)
        catalog.permissions = request.allowed
        ends = time.process_time() + limits.text_seconds

        def begin() -> None:
            if time.process_time() > ends:
                os._exit(3)
            spent = time.process_time()
            _limit(resource.RLIMIT_CPU, ceil(spent) + limits.statement_seconds, hard=False)
            signal.setitimer(signal.ITIMER_REAL, limits.statement_seconds * limits.waited)

        for one in planned(request.text, catalog, request.origin, begin):
            _write(1, json.dumps(one).encode() + b"\n")
        status = 0
    except MemoryError:
        status = 4
    finally:
        os._exit(status)


def _lock_up(writing: int, limits: PlanLimits) -> None:
    """Give everything back that a text does not need, and limit the rest."""
    os.dup2(writing, 1)
    os.close(0)
    os.closerange(3, 256)
    for number in (signal.SIGALRM, signal.SIGXCPU):
        signal.signal(number, signal.SIG_DFL)
    _limit(resource.RLIMIT_NOFILE, 16)
    _limit(resource.RLIMIT_AS, _address_space() + limits.bytes)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _address_space() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 2**31


def _limit(what: int, most: int, hard: bool = True) -> None:
    with suppress(ValueError, OSError):  # the system knows no such limit, or has a lower one already
        resource.setrlimit(what, (most, most if hard else resource.getrlimit(what)[1]))


def _leave_network() -> None:
    """Have no network, where the system lets everybody do so."""
    try:
        unshare = ctypes.CDLL(None, use_errno=True).unshare
    except (OSError, AttributeError):
        return
    if unshare(NEW_NETWORK) != 0:
        unshare(NEW_NAMES | NEW_NETWORK)


def _send(answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    _write(1, LENGTH.pack(len(body)) + body)


def _write(to: int, body: bytes) -> None:
    left = memoryview(body)
    while left:
        left = left[os.write(to, left) :]


def _read(length: int) -> bytes | None:
    """So many bytes from the engine; None if it is gone."""
    body = bytearray()
    while len(body) < length:
        some = os.read(0, min(length - len(body), 2**20))
        if not some:
            return None
        body += some
    return bytes(body)


if __name__ == "__main__":
    main()
