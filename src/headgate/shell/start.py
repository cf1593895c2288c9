"""Starts the shell: with a prompt at a terminal, otherwise over a script on standard input."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.editing.entries import Entry, read

if TYPE_CHECKING:
    from headgate.engine import Engine

FAILED = 1
USER_MISTAKE = 2
INTERRUPTED = 130


def interact(script: Iterable[Entry], master: str | None, debug: bool) -> int:
    """Runs a script, then a prompt; returns the exit code."""
    from headgate.shell.prompt import history, run_prompt
    from headgate.shell.worker import Worker

    directory = state_directory()
    kept = history(directory)
    worker = Worker(lambda: running_engine(master, directory), print, debug=debug)
    worker.start()
    for entry in script:
        worker.submit(entry)
    try:
        run_prompt(worker, kept)
    except KeyboardInterrupt:
        return INTERRUPTED
    return USER_MISTAKE if worker.failure else 0


def run_script(script: Iterable[Entry], master: str | None, debug: bool) -> int:
    """Runs a script and then standard input to their end; returns the exit code."""
    from headgate.shell.interpreter import Interpreter
    from headgate.shell.prompt import is_quit

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(INTERRUPTED))
    with running_engine(master, state_directory()) as engine:
        interpreter = Interpreter(
            engine, partial(print, flush=True), partial(print, file=sys.stderr, flush=True), debug=debug
        )
        for entry in (entry for source in (script, read(sys.stdin)) for entry in source):
            if is_quit(entry):
                break
            interpreter.execute(entry)
            if entry.is_command:  # after a statement others may follow that are to see the same input
                interpreter.turn()
        interpreter.finish()
        return FAILED if interpreter.failures else 0


def state_directory() -> Path:
    """The directory of history and Spark's log: $XDG_STATE_HOME/headgate or ~/.local/state/headgate."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "headgate"


@contextmanager
def running_engine(master: str | None, directory: Path) -> Iterator[Engine]:
    """An engine on a new Spark session, both closed at the end; Spark's own output goes to a log in the directory."""
    from headgate.engine import Engine
    from headgate.spark.session import started

    with stderr_to(directory / "spark.log"):
        spark = started(master)
    try:
        with Engine(spark) as engine:
            yield engine
    finally:
        spark.stop()


@contextmanager
def stderr_to(log: Path) -> Iterator[None]:
    """Redirects the standard error of processes started inside to a log, for as long as they run.

    Otherwise Spark would write over the prompt, with a stack trace for every mistake that headgate explains in one
    line.
    """
    ours = os.dup(2)
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        theirs = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError:
        theirs = os.open(os.devnull, os.O_WRONLY)
    os.dup2(theirs, 2)
    os.close(theirs)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)
