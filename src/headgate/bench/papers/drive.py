"""Drives an engine through arrivals: on a simulated clock that advances by measured times, or live.

Simulated: nothing happens between two events, so the clock jumps from one to the next; a step of the engine takes as
long on that clock as it really took. Rows that arrive while the engine runs are stamped with their own instant and
pushed when the step has ended, as if another thread had pushed them; a push takes time only when the engine is idle.

Live: the engine runs in a thread of its own, and rows are pushed when their instant has come.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from math import inf
from time import perf_counter, sleep

from headgate.bench.papers.account import Account, Span, account
from headgate.bench.papers.arrivals import SECOND_US, Arrival
from headgate.deliver.sinks.sink import Result
from headgate.engine import Engine
from headgate.engine.running import TIDY_US
from headgate.heartbeat.clock import ManualClock
from headgate.schedule.loop import Epoch

NUMBER = "n"
"""The column with the number of a tuple, by which its latency is measured."""


class Answers:
    """When each tuple arrived and when its answer was out; tuples are known by number."""

    def __init__(self) -> None:
        self.arrived: dict[int, float] = {}
        self.answered: dict[int, float] = {}
        self.running: list[Span] = []
        self.out: list[int] = []
        """The tuples that the running step has answered."""

    def add_results(self, results: Sequence[Result]) -> None:
        """Notes results of the step that is running."""
        self.out.extend(result.row[NUMBER] for result in results)

    def end_step(self, begun: float, ended: float, epochs: Sequence[Epoch]) -> None:
        """Notes that a step has ended; a step without an epoch does not count as running."""
        if epochs:
            self.running.append((begun, ended))
        for number in self.out:
            self.answered.setdefault(number, ended)
        self.out.clear()

    def account(self, since: float, until: float) -> Account:
        """The account of the run between two instants."""
        numbers = list(self.arrived)
        answered = [self.answered.get(number, inf) for number in numbers]
        return account([self.arrived[number] for number in numbers], answered, self.running, since, until)


class Simulated:
    """An engine on a simulated clock; it can be driven in turns, so that several engines alternate."""

    def __init__(
        self,
        engine: Engine,
        clock: ManualClock,
        arrivals: Iterator[Arrival],
        wanted: Callable[[Arrival], Sequence[int]] = lambda arrival: (),
        look: Callable[[], None] = lambda: None,
    ) -> None:
        """`wanted` gives the numbers of the tuples that will be answered; `look` is called before every step."""
        self.engine, self.clock = engine, clock
        engine._running.tidy_pause_us = TIDY_US  # as in a run
        self.start_us = clock.now_us()
        self.wanted = wanted
        self.look = look
        self.answers = Answers()
        self.arrivals = arrivals
        self.next = next(arrivals, None)
        self.looked_us = -1
        """When the last step began."""
        self.idle = True
        """Whether the last step found nothing to do and nothing has arrived since."""

    @property
    def now_us(self) -> int:
        """Microseconds since the start."""
        return self.clock.now_us() - self.start_us

    def drive(self, until_us: int) -> None:
        """Drives the engine until the clock is at `until_us` after the start, or a step has passed it."""
        while self.now_us < until_us:
            if self.idle:
                event_us = self.next_event()
                if event_us is None or event_us >= until_us:
                    self.move_to(until_us)
                    return
                self.move_to(event_us)
                begun = perf_counter()
                self.push_due()
                self.clock.move_by(1 + round((perf_counter() - begun) * SECOND_US))
            self.step()

    def next_event(self) -> int | None:
        """When the next rows arrive or the engine's timer fires, whichever comes first."""
        timer_us, arrival_us = self.engine._core.asking.next_us, None if self.next is None else self.next.at_us
        timer_us = None if timer_us is None else timer_us - self.start_us
        if timer_us is not None and timer_us <= self.looked_us:  # it has looked, in vain
            timer_us = None
        return min((instant for instant in (timer_us, arrival_us) if instant is not None), default=None)

    def push_due(self) -> int:
        """Pushes everything that has arrived by now, each at its own instant; returns the number of pushes."""
        count = 0
        while self.next is not None and self.next.at_us <= self.now_us:
            self.push(self.next)
            self.next = next(self.arrivals, None)
            count += 1
        return count

    def push(self, arrival: Arrival) -> None:
        """Pushes one arrival."""
        for number in self.wanted(arrival):
            self.answers.arrived[number] = arrival.at_us
        self.engine.push(arrival.stream, arrival.rows)

    def step(self) -> None:
        """Runs one step of the engine, then pushes what arrived meanwhile."""
        self.look()
        begun_us, begun = self.now_us, perf_counter()
        self.looked_us = begun_us
        epochs = self.engine.step()
        ended_us = begun_us + 1 + round((perf_counter() - begun) * SECOND_US)
        came = 0
        while self.next is not None and self.next.at_us <= ended_us:
            self.move_to(self.next.at_us)
            came += self.push_due()
        self.move_to(ended_us)
        self.answers.end_step(begun_us, ended_us, epochs)
        self.idle = not epochs and not came

    def move_to(self, instant_us: int) -> None:
        """Moves the clock forward to an instant."""
        self.clock.move_by(max(0, instant_us - self.now_us))


def live(
    engine: Engine,
    arrivals: Iterator[Arrival],
    seconds: float,
    wanted: Callable[[Arrival], Sequence[int]],
    done: Callable[[], None] = lambda: None,
) -> Answers:
    """Pushes rows at their instants, in microseconds since the beginning, while the engine runs in a thread."""
    answers = Answers()
    start = perf_counter()

    def now_us() -> float:
        return (perf_counter() - start) * SECOND_US

    step = engine._running.step

    def timed() -> list[Epoch]:
        begun = now_us()
        epochs = step()
        answers.end_step(begun, now_us(), epochs)
        return epochs

    engine._running.step = timed  # type: ignore[method-assign]
    for query in engine.queries():
        query.on_change(answers.add_results)
    ended = threading.Event()
    runner = threading.Thread(target=lambda: engine.run(until=ended.is_set), daemon=True)
    runner.start()
    for arrival in arrivals:
        if arrival.at_us >= seconds * SECOND_US:
            break
        sleep(max(0.0, (arrival.at_us - now_us()) / SECOND_US))
        for number in wanted(arrival):
            answers.arrived[number] = now_us()
        engine.push(arrival.stream, arrival.rows)
        done()
    sleep(max(0.0, seconds - now_us() / SECOND_US))
    ended.set()
    engine.wake()
    runner.join()
    return answers
