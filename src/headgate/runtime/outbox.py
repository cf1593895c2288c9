"""The outbox of a query: results between the epoch that made them and the sink that takes them.

An epoch's results come in by the same line of the journal as the query's progress, so they are there exactly when the query has
got so far. They are delivered from here, in order, each again until the sink has taken it, and stay on disk until then. Results
without a sink of their own stay for good, for `query.results()`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headgate.catalog import Tick, TimeDomain
from headgate.errors import UserError
from headgate.heartbeat.clock import Clock
from headgate.log.journal import Journal
from headgate.log.log import Log
from headgate.sinks.memory import MemorySink
from headgate.sinks.retry import BackOff
from headgate.sinks.sink import Delivery, Sink


class Outbox:
    def __init__(self, query: str, domain: TimeDomain, sink: Sink, directory: Path, journal: Journal) -> None:
        self.query = query
        self.domain = domain
        self.sink = sink
        self.journal = journal
        folder = directory.name
        self.log = Log(directory / "results", journal, f"log queries/{folder}/results")
        self.subject = f"outbox {folder}"
        self.kept = isinstance(sink, MemorySink)
        self.number = 0
        """Of the last epoch that had results, or whose end the sink wants to know."""
        self.waiting: deque[Delivery] = deque()
        self.back_off = BackOff()
        self.trouble: Exception | None = None
        """Why the sink has not taken the first of those that wait."""
        self._compared = False
        journal.introduce(self.subject, self.apply)

    # what the journal knows of it

    def apply(self, what: dict[str, Any]) -> None:
        self.number = what.get("number", self.number)
        for number, after, until, files, rows in what.get("waiting", ()):
            paths = tuple(self.log.directory / file for file in files)
            self.waiting.append(Delivery(self.query, number, after, until, self._moment(until), paths, rows))
        while self.waiting and self.waiting[0].number <= what.get("delivered", 0):
            self.waiting.popleft()

    def state(self) -> dict[str, Any]:
        return {"number": self.number, "waiting": list(map(_listed, self.waiting))}

    # in

    def continue_numbers(self) -> None:
        """A new query may go on where another has put its results: its numbers begin behind what the sink has."""
        self.number = self.sink.delivered() or 0
        self._compared = True

    def put(self, files: list[Path], after: Tick, until: Tick) -> list[Path]:
        """Take the files of an epoch's results; where they are now."""
        with self.journal.together():
            chunks = self.log.adopt_all(files)
            paths = [chunk.path for chunk in chunks]
            if not self.kept and (chunks or self.sink.wants_empty):
                rows = sum(chunk.rows for chunk in chunks)
                number = self.number + 1
                delivery = Delivery(self.query, number, after, until, self._moment(until), tuple(paths), rows)
                self.journal.record(self.subject, {"number": number, "waiting": [_listed(delivery)]})
        return paths

    def _moment(self, until: Tick) -> Any:
        """The instant up to which everything is out; before anything is complete, the first there is."""
        return self.domain.moment(max(until, self.domain.origin))

    # out

    def deliver(self, clock: Clock, tell: Callable[[str], None]) -> None:
        """Hand over what waits, as far as the sink takes it. One that fails is asked again later; others wait for the attempt."""
        while self.waiting and self.back_off.ready(clock.now_us()):
            try:
                if not self._compared:
                    self._compare()
                    continue
                self.sink.deliver(self.waiting[0])
            except UserError as error:
                if error.code == "sink-ahead":
                    raise
                self._failed(error, clock.now_us(), tell)
            except Exception as error:  # whatever a sink's client raises
                self._failed(error, clock.now_us(), tell)
            else:
                if self.trouble is not None:
                    tell(f'the sink of query "{self.query}" takes results again')
                self.back_off.succeeded()
                self.trouble = None
                self._delivered(self.waiting[0].number)

    def _failed(self, error: Exception, now_us: int, tell: Callable[[str], None]) -> None:
        if self.trouble is None:
            said = str(error).strip().splitlines() or [type(error).__name__]
            tell(f'the sink of query "{self.query}" takes no results, which wait and are tried again: {said[0]}')
        self.trouble = error
        self.back_off.failed(now_us)

    def _compare(self) -> None:
        """After a restart: what the sink knows that it has need not be delivered again."""
        arrived = self.sink.delivered()
        if arrived is not None and arrived > self.number:
            raise UserError(
                "sink-ahead", f'the sink of query "{self.query}" has results that this directory knows nothing of',
                detail=f"It has taken delivery {arrived}, and the last one made here is {self.number}.",
                hint="Give each directory a sink of its own, or DROP the query and create it anew.",
            )  # fmt: skip
        self._compared = True
        if arrived:
            self._delivered(arrived)

    def _delivered(self, number: int) -> None:
        done = {path for delivery in self.waiting if delivery.number <= number for path in delivery.files}
        with self.journal.together():
            self.journal.record(self.subject, {"delivered": number})
            self.journal.record(*self.log.dropping([chunk for chunk in self.log.chunks if chunk.path in done]))
        for path in done:
            path.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Merge small files, unless they are to be handed over as they are."""
        if self.kept:
            self.log.compact()

    def close(self) -> None:
        self.sink.close()


def _listed(delivery: Delivery) -> list[Any]:
    return [delivery.number, delivery.after, delivery.until, [path.name for path in delivery.files], delivery.rows]
