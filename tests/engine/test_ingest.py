"""Sources are read while epochs run: neither waits for the other, and nothing is late that only waits to be read.

The engine is that of `test_borders`, without Spark. Nothing here goes by the time it takes: sources and epochs block
until they are told to go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from engine import test_borders
from engine.test_borders import Fed

from headgate import Engine, UserError
from headgate.heartbeat.clock import Clock

SECONDS = 60
"""After so long a test gives up."""

Make = Callable[..., Engine]

make = test_borders.make


class Feed(Fed):
    """A source that hands over the rows that it is given, and that may be made to wait for something first."""

    def __init__(self, engine: Engine, stream: str) -> None:
        super().__init__(engine, stream)
        self.engine = engine
        self.given: list[int] = []
        self.first: Callable[[], object] = lambda: None
        engine._core.inputs.sources.append(self)

    def poll(self, clock: Clock) -> int:
        self.polls += 1
        self.first()
        given, self.given = self.given, []
        if not given:
            return 0
        taken = self.inlet.push([(at, (at,)) for at in given], clock)
        for at in given:
            self.engine.punctuate(self.inlet.stream.name, at)
        return taken

    drain = poll

    def give(self, *stamps: int) -> None:
        self.given = [*self.given, *stamps]
        self.engine.wake()


class Gate:
    """Something that blocks whoever comes, until it is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self) -> bool:
        self.reached.set()
        assert self.opened.wait(SECONDS)
        return True


class Turns:
    """Counts the turns of the loop, and lets other threads wait for some more."""

    def __init__(self, engine: Engine) -> None:
        self.count, self.changed, self.step = 0, threading.Condition(), engine._running.step
        engine._running.step = self.stepped  # type: ignore[method-assign]

    def stepped(self) -> Any:
        found = self.step()
        with self.changed:
            self.count += 1
            self.changed.notify_all()
        return found

    def more(self, turns: int = 2) -> bool:
        """Wait for so many turns: of two, at least one has begun after now."""
        with self.changed:
            last = self.count + turns
            assert self.changed.wait_for(lambda: self.count >= last, SECONDS)
        return True


@contextmanager
def running(engine: Engine) -> Iterator[list[BaseException]]:
    """In here, the engine runs in a thread. What it raises is in the list in the end."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            engine.run(tell=lambda text: None)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield raised
    finally:
        engine.stop()
        thread.join(SECONDS)
    assert not thread.is_alive()
    assert "ingest" not in {one.name for one in threading.enumerate()}, "nobody goes on reading"


def delivered(engine: Engine, query: str, upto: int) -> threading.Event:
    """An event for when a query is complete up to an instant, and has committed it."""
    there = threading.Event()
    answer = engine.query(query).answer
    apply = answer.apply

    def applied(what: dict[str, Any]) -> None:
        apply(what)
        if answer.after >= upto:
            there.set()

    engine._core.journal.subjects[answer.subject] = applied
    return there


def test_an_epoch_that_does_not_end_keeps_no_row_from_coming(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, gate, arrived = make(), Gate(), threading.Event()
    fragment = engine.query("bad").answer
    answer = fragment.answer  # type: ignore[attr-defined]
    monkeypatch.setattr(fragment, "answer", lambda until: answer(until) if gate() else [])
    feed = Feed(engine, "t")
    monkeypatch.setattr(feed.inlet, "wake", arrived.set)
    engine.push("s", [(1, (1,))])
    engine.punctuate("s", 1)
    with running(engine) as raised:
        assert gate.reached.wait(SECONDS), "the epoch has begun"
        feed.give(1, 2, 3)
        assert arrived.wait(SECONDS), "and not ended, and the rows are in the log"
        assert not gate.opened.is_set()
        assert engine.counts("t") == {"taken": 3}
        done = delivered(engine, "good", 3)
        gate.opened.set()
        assert done.wait(SECONDS)
    assert raised == []
    assert engine.query("bad").complete == 1


def test_a_source_that_is_being_read_keeps_no_epoch_from_being_committed(make: Make) -> None:
    engine, gate = make(), Gate()
    of_s = Feed(engine, "s")
    of_s.given = [1]
    of_s.first = lambda: of_s.polls > 1 and gate()  # what the first look has brought counts
    mine, pushed = delivered(engine, "bad", 1), delivered(engine, "good", 7)
    with running(engine) as raised:
        assert gate.reached.wait(SECONDS)
        assert mine.wait(SECONDS), "what was read before is answered"
        engine.push("t", [(7, (7,))])
        engine.punctuate("t", 7)
        engine.wake()
        assert pushed.wait(SECONDS), "what is pushed is answered"
        assert not gate.opened.is_set()
        gate.opened.set()
    assert raised == []
    assert (engine.query("bad").complete, engine.query("good").complete) == (1, 7)


def test_what_one_source_brings_makes_nothing_late_that_another_has_yet_to_hand_over(make: Make) -> None:
    """Tuples of s say that t is complete up to there. But t is not read yet: there are older tuples."""
    engine = make()
    engine.execute("SKEW FROM s TO t (WITHIN 0); DISORDER OF s 0")
    of_s, of_t = Feed(engine, "s"), Feed(engine, "t")
    turns, done = Turns(engine), delivered(engine, "good", 5)
    of_s.given, of_t.given = [10], [5]
    of_t.first = lambda: of_t.polls == 1 and turns.more()
    with running(engine) as raised:
        assert done.wait(SECONDS)
    assert raised == []
    assert engine.late("t") == {}
    assert engine.counts("t") == {"taken": 1}


def test_an_error_that_ends_the_reading_ends_the_run(make: Make) -> None:
    class Odd(BaseException):
        """Nothing that the engine knows."""

    engine = make()
    feed = Feed(engine, "s")

    def raises() -> None:
        raise Odd("gone")

    feed.first = raises
    with pytest.raises(Odd, match="gone"):
        engine.run(tell=lambda text: None)
    assert "ingest" not in {one.name for one in threading.enumerate()}
    feed.first = lambda: None
    done = delivered(engine, "bad", 1)
    with running(engine):
        feed.give(1)
        assert done.wait(SECONDS), "it can run again"


def test_an_error_of_the_loop_ends_the_reading_too(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make()
    feed, turns = Feed(engine, "s"), Turns(engine)

    def gone() -> Any:
        if feed.polls:
            raise UserError("spark-gone", "Spark's process has ended")
        return []

    monkeypatch.setattr(turns, "step", gone)
    with pytest.raises(UserError, match="spark-gone"):
        engine.run(tell=lambda text: None)
    assert "ingest" not in {one.name for one in threading.enumerate()}


def test_stop_waits_for_what_is_being_read_and_takes_it(make: Make) -> None:
    engine, gate = make(), Gate()
    feed = Feed(engine, "s")
    feed.given, feed.first = [1], gate
    with running(engine) as raised:
        assert gate.reached.wait(SECONDS)
        engine.stop()
        gate.opened.set()
    assert raised == []
    assert engine.counts("s") == {"taken": 1}


def test_a_query_whose_heartbeat_cannot_be_found_out_touches_no_other(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make()
    bad, good = Feed(engine, "s"), Feed(engine, "t")

    def throws() -> Any:
        raise KeyError("label")

    monkeypatch.setattr(engine.query("bad"), "labels", throws)
    bad.given, good.given = [1], [1]
    done, turns = delivered(engine, "good", 1), Turns(engine)
    with running(engine) as raised:
        assert done.wait(SECONDS)
        assert turns.more(), "the good one may have had its turn in one that began before there was a cut"
    assert raised == []
    assert engine.query("bad").failed
    assert "label" in str(engine.query("bad").trouble)


def test_polling_by_hand_beside_a_run_waits_for_its_turn(make: Make) -> None:
    engine, gate = make(), Gate()
    feed = Feed(engine, "s")
    feed.first = lambda: feed.polls == 1 and gate()
    feed.given = [1]
    taken: list[int] = []
    with running(engine):
        assert gate.reached.wait(SECONDS)
        hand = threading.Thread(target=lambda: taken.append(engine.poll()))
        hand.start()
        assert feed.polls == 1
        gate.opened.set()
        hand.join(SECONDS)
    assert taken == [0]
    assert engine.counts("s") == {"taken": 1}


def test_sources_of_a_durable_engine_are_read_beside_epochs(make: Make, tmp_path: Path) -> None:
    engine = make(directory=tmp_path)
    feed, done = Feed(engine, "s"), delivered(engine, "bad", 40)
    with running(engine) as raised:
        for at in range(1, 41):
            feed.give(at)
        assert done.wait(SECONDS)
    assert raised == []
    engine.close()
    again = make(directory=tmp_path)
    assert again.counts("s") == {"taken": 40}
    assert again.query("bad").complete == 40
