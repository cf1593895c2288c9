"""The yardstick's side of the talk with its workers: each is a process of its own, kept warm from job to job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from headgate.bench.yardstick import processes
from headgate.bench.yardstick.serve import Answer, Job

GRACE_S = 30
"""How long a worker may take to end."""

LAST_WORDS = 20
"""Lines of what a worker printed that are shown if it fails."""


class WorkerFailed(Exception):
    """A worker that could not do a job, with what it said."""


class Worker:
    """A process that does jobs; started when there is the first one, and again after it has died."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self._command, self._log, self._environment = list(command), log, environment or {}
        self._process: subprocess.Popen[str] | None = None

    @property
    def id(self) -> int | None:
        """The id of the process, if it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Starts the process, and waits until its engine is ready."""
        if self.id is not None:
            return
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **self._environment},
                start_new_session=True,  # an interrupt is for the parent, which ends its workers in order
            )
        self._answer(self._process)

    def do(self, job: Job) -> Answer:
        """Hands a job over and waits for its answer, with the peak of memory meanwhile."""
        self.start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        processes.forget_peaks(process.pid)
        try:
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise WorkerFailed(self._last_words("the process has ended")) from None
        answer = self._answer(process)
        if "error" in answer:
            raise WorkerFailed(answer["error"])
        return {**answer, "peak_bytes": processes.peak_bytes(process.pid)}

    def _answer(self, process: subprocess.Popen[str]) -> Answer:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            self.stop()
            raise WorkerFailed(self._last_words(f"the process ended with {process.returncode}"))
        answer: Answer = json.loads(line)
        return answer

    def _last_words(self, what: str) -> str:
        said = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_WORDS:]
        return "\n".join([what, *said])

    def stop(self) -> None:
        """Lets the process end, and ends it if it does not."""
        process = self._process
        if process is None:
            return
        with suppress(BrokenPipeError):
            if process.stdin is not None:
                process.stdin.close()
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
