"""Has texts planned in another process, and starts that process again when it is gone.

A `Planner` belongs to one catalog and is used by one thread at a time. It tells the process what has changed in the
catalog, and the text; it hears which statements can be carried out, which are answered already, and which is refused.
Whatever a text does there, the engine's process only waits.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headgate.errors import Place, UserError
from headgate.permissions import Permissions
from headgate.planning.limits import PlanLimits
from headgate.planning.process import LENGTH
from headgate.planning.state import NOTHING, Request, State, changes

START_SECONDS = 60.0
LONGEST_ANSWER = 2**28

HANDED_ON = ("LANG", "LC_ALL", "TZ", "SYSTEMROOT")
"""What the process gets of the environment. No token is among it."""

logger = logging.getLogger("headgate.planning")


@dataclass(frozen=True, slots=True)
class Step:
    """A statement that was planned: where it stands, what that took, and its answer if it has one already."""

    start: int
    end: int
    seconds: float
    explanation: str | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """What became of the statements of a text, and the error of the first that is refused."""

    steps: tuple[Step, ...]
    error: UserError | None = None
    whole: bool = True


@dataclass(slots=True)
class Planning:
    """What became of a text, when all of it is planned."""

    error: UserError | None = None
    whole: bool = False
    """Whether there are no statements behind those that were planned."""


class Gone(Exception):
    """The process has ended, or does not answer."""


class Planner:
    """Plans texts in a process of its own."""

    def __init__(self, limits: PlanLimits | None = None) -> None:
        self.limits = limits or PlanLimits()
        self._process: subprocess.Popen[bytes] | None = None
        self._told: State = NOTHING
        self._starting = threading.Lock()
        self._closed = False

    def start(self) -> None:
        """Begin to start the process, and wait for nothing."""
        threading.Thread(target=self._start_quietly, name="headgate-planning", daemon=True).start()

    def close(self) -> None:
        """End the process, also while it plans."""
        self._closed = True
        if (process := self._process) is not None:
            process.kill()
        if self._starting.acquire(timeout=START_SECONDS):
            self._end()
            self._starting.release()

    @property
    def process(self) -> int | None:
        """The number of the process, while there is one."""
        return None if self._process is None else self._process.pid

    def plan(self, text: str, now: State, allowed: Permissions | None, origin: str = "") -> Planned:
        """Have a text planned on a catalog in this state, and wait for all of it."""
        planning = Planning()
        steps = tuple(self.steps(planning, text, now, allowed, origin))
        return Planned(steps, planning.error, planning.whole)

    def steps(
        self, planning: Planning, text: str, now: State, allowed: Permissions | None, origin: str = ""
    ) -> Iterator[Step]:
        """The statements of a text that can be carried out, each as soon as it is planned; those behind it go on being
        planned. What became of the text is in `planning` when there are no more.

        All of them must be asked for before the next text.
        """
        request, behind = Request(text, origin, allowed, self.limits), 0
        try:
            with self._starting:
                self._ask(now, request)
                while "ended" not in (said := self._answer(self._longest())):
                    if "error" in said:
                        planning.error = _error(said["error"], text, origin)
                    elif "done" in said:
                        planning.whole = True
                    else:
                        step = Step(said["start"], said["end"], said["seconds"], said.get("explanation"))
                        behind = step.end
                        yield step
        except (Gone, OSError, ValueError, KeyError) as error:
            logger.warning("the planning process is gone", extra={"fields": {"error": str(error)}})
            self._end()
            planning.error = _not_planned()
            if not self._closed:
                self.start()
            return
        if said["ended"] != "well" and planning.error is None:
            planning.error = _refusal(said["ended"], text, behind, origin, self.limits)

    def _longest(self) -> float:
        return self.limits.text_seconds * self.limits.waited + START_SECONDS

    def _start_quietly(self) -> None:
        try:
            with self._starting:
                self._started()
        except (Gone, OSError, ValueError) as error:
            logger.warning("the planning process does not start", extra={"fields": {"error": str(error)}})

    def _started(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise Gone("the server stops")
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._end()
        environment = {name: os.environ[name] for name in HANDED_ON if name in os.environ}
        environment |= {"PYTHONPATH": os.pathsep.join(one for one in sys.path if one), "MALLOC_ARENA_MAX": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "headgate.planning.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            close_fds=True,
            start_new_session=True,
            cwd="/",
            env=environment,
        )
        if self._answer(START_SECONDS) != {"ready": True}:
            raise Gone("it did not begin")
        return self._process

    def _end(self) -> None:
        process, self._process, self._told = self._process, None, NOTHING
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def _ask(self, now: State, request: Request) -> None:
        """Tell what has changed, and a text."""
        if self._process is None or self._process.poll() is not None:
            self._started()
        message = pickle.dumps((changes(self._told, now), request))
        self._say(LENGTH.pack(len(message)) + message)
        self._told = now

    def _say(self, message: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        left = memoryview(message)
        while left:
            left = left[os.write(self._process.stdin.fileno(), left) :]

    def _answer(self, seconds: float) -> dict[str, Any]:
        """The next answer of the process. It is JSON: nothing that it says is carried out."""
        ends = time.monotonic() + seconds
        (length,) = LENGTH.unpack(self._bytes(LENGTH.size, ends))
        if length > LONGEST_ANSWER:
            raise Gone("its answer is too long")
        answer = json.loads(self._bytes(length, ends))
        if not isinstance(answer, dict):
            raise Gone("it says what cannot be understood")
        return answer

    def _bytes(self, length: int, ends: float) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        pipe, body, said = self._process.stdout.fileno(), bytearray(), select.poll()
        said.register(pipe, select.POLLIN)
        while len(body) < length:
            if not said.poll(max(0.0, ends - time.monotonic()) * 1000):
                raise Gone("it does not answer")
            some = os.read(pipe, min(length - len(body), 2**20))
            if not some:
                raise Gone("it has ended")
            body += some
        return bytes(body)


def _not_planned() -> UserError:
    return UserError(
        "not-planned",
        "the process that plans statements has ended",
        detail="It is started again. Nothing that was not answered was carried out.",
        hint="Send the statements again.",
    )


def _error(said: dict[str, Any], text: str, origin: str) -> UserError:
    place = Place(text, said["start"], said["end"], origin) if "start" in said else None
    return UserError(said["code"], said["message"], place=place, detail=said["detail"], hint=said["hint"])


def _refusal(limit: str, text: str, behind: int, origin: str, limits: PlanLimits) -> UserError:
    """The error for the statement behind an offset, at which the process met a limit."""
    start = next((at for at in range(behind, len(text)) if text[at] not in " \t\r\n;"), behind)
    place = Place(text, start, max(len(text.rstrip()), start + 1), origin)
    detail = "Nothing of this statement was carried out."
    match limit:
        case "time":
            return UserError(
                "too-long-to-plan",
                f"it takes more than {limits.statement_seconds} s to plan this statement, or {limits.text_seconds:g} s "
                "to plan all of the text",
                place=place,
                detail=detail,
                hint="Read fewer inputs at once: let queries compute parts of it into streams, and read those.",
            )
        case "memory" | "answer":
            what = f"{limits.bytes // 2**20} MB of memory to plan this statement"
            return UserError(
                "too-large",
                f"it takes more than {what}" if limit == "memory" else "the answers to this text are too long",
                place=place,
                detail=detail,
                hint="Cut it into several statements.",
            )
        case _:
            return UserError("broken", "headgate is wrong here", place=place, hint="Please report it.")
