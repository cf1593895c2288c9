"""The thread that owns the engine: it starts Spark, executes entries in order, and runs the queries in between.

The prompt never waits for it and never touches the engine, so that no lock is needed. Only the catalog is read from
outside, for completion: its entries are added or replaced as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING

from headgate.catalog.catalog import Catalog
from headgate.editing.entries import Entry
from headgate.errors import UserError, first_line

if TYPE_CHECKING:
    from headgate.engine import Engine
    from headgate.shell.interpreter import Interpreter

POLL_SECONDS = 0.5
LONG_SECONDS = 1.0
"""After how many seconds the status says that the worker is busy."""


class Worker(Thread):
    """Executes the entries of the shell in a thread of its own."""

    def __init__(
        self,
        open_engine: Callable[[], AbstractContextManager[Engine]],
        say: Callable[[str], object],
        *,
        debug: bool = False,
    ) -> None:
        super().__init__(name="headgate-shell", daemon=True)
        self.open_engine = open_engine
        self.say = say
        self.debug = debug
        self.began = time.monotonic()
        self.entries: Queue[Entry | None] = Queue()
        self.interpreter: Interpreter | None = None
        self.failure = ""
        self.busy = True

    def submit(self, entry: Entry) -> None:
        """Queues an entry; if Spark did not start, prints why instead."""
        if self.failure:
            self.say(self.failure)
        else:
            self.entries.put(entry)

    def finish(self) -> None:
        """Executes what is queued, then ends; it does not wait for Spark to start if nothing is queued."""
        self.entries.put(None)
        if self.interpreter is None and self.entries.qsize() == 1:
            return
        self.join()

    def catalog(self) -> Catalog:
        """The catalog for completion; it is empty until Spark has started."""
        return Catalog() if self.interpreter is None else self.interpreter.engine.catalog

    def status(self) -> str:
        """The status line: what the worker is doing, in a few words."""
        if self.failure:
            return "Spark did not start"
        seconds = time.monotonic() - self.began
        if self.interpreter is None:
            waiting = self.entries.qsize()
            return f"Spark is starting, {seconds:.0f} s" + (f"; {waiting} waiting for it" if waiting else "")
        running = len(self.interpreter.engine.catalog.queries)
        parts = [f"{running} {'query' if running == 1 else 'queries'} running" if running else "no query yet"]
        if self.interpreter.held is not None:
            parts.append(f"paused, {len(self.interpreter.held) + self.interpreter.not_held} results held back")
        if self.busy and seconds > LONG_SECONDS:
            parts.append(f"working, {seconds:.0f} s")
        return "; ".join(parts)

    # in the thread

    def run(self) -> None:
        """Starts Spark and works until `finish`."""
        try:
            with self.open_engine() as engine:
                self.work(engine)
        except UserError as error:
            self.give_up(error.render())
        except Exception as error:
            if self.debug:
                raise
            self.give_up(f"spark-failed: Spark did not start\ndetail: {first_line(error) or type(error).__name__}")

    def give_up(self, failure: str) -> None:
        """Reports that Spark did not start; every later entry gets this answer."""
        self.failure = failure
        self.say(failure)

    def work(self, engine: Engine) -> None:
        """Executes entries as they come, and lets the queries run when there are none."""
        from headgate.shell.interpreter import Interpreter

        interpreter = Interpreter(engine, self.say, self.say, debug=self.debug)
        self.say(f"Spark {engine.spark.version} is ready after {time.monotonic() - self.began:.1f} s")
        self.interpreter = interpreter
        pause = 0.0
        while True:
            self.busy = False
            try:
                entry = self.entries.get(timeout=pause)
                if entry is None:
                    return
            except Empty:
                entry = None
            self.began, self.busy = time.monotonic(), True
            if entry is not None:
                interpreter.execute(entry)
            if self.entries.empty():  # all queries of a script begin before the first of them runs ahead
                pause = 0.0 if interpreter.turn() else POLL_SECONDS
