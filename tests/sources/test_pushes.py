"""Pushes that wait at the same time are one commit, and each gets what it would have got alone. No Spark."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sources.test_inlet import Notebook, a_stream, inlet_of, letters, logged

from headgate.errors import UserError
from headgate.heartbeat.clock import ManualClock
from headgate.log.journal import Journal
from headgate.sources.inlet import Inlet
from headgate.sources.pushes import Push, Pushes
from headgate.sources.verdict import TUPLE
from headgate.sql import Column, Sql

SECONDS = 60


class Desk:
    """An engine's pushes over two streams, with a journal on disk."""

    def __init__(self, directory: Path, late: str = "keep", closed: int | None = None) -> None:
        self.journal = Journal(directory)
        self.s, self.t = (self.inlet(directory, name, late, closed) for name in ("s", "t"))
        self.journal.read()
        self.pushes = Pushes(self.journal, ManualClock())
        self.lines = 0
        written = self.journal._write

        def write(text: bytes) -> None:
            self.lines += 1
            written(text)

        self.journal._write = write  # type: ignore[method-assign]

    def inlet(self, directory: Path, name: str, late: str, closed: int | None) -> Inlet:
        stream = replace(a_stream("v INT, at INT", timestamp="at", late=late), name=name)
        schema = inlet_of(stream, directory / "shape", Notebook()).rows.schema
        return Inlet(stream, schema, directory, Notebook(closed=closed), self.journal)

    def push(self, inlet: Inlet, *stamps: int, **more: Any) -> Push:
        return Push(inlet, inlet.rows.read([(at, at) for at in stamps]), 0, **more)

    @contextmanager
    def at_once(self, *pushes: Push) -> Iterator[dict[Push, Counter[str] | BaseException]]:
        """In here the pushes wait, in this order; they are taken at its end, and what each got is known."""
        got: dict[Push, Counter[str] | BaseException] = {}

        def take(push: Push) -> None:
            try:
                got[push] = self.pushes.take(push)
            except BaseException as error:
                got[push] = error

        threads = []
        with self.journal.turn:
            for number, push in enumerate(pushes, 1):
                threads.append(threading.Thread(target=take, args=(push,)))
                threads[-1].start()
                wait_for(lambda count=number: len(self.pushes._waiting) == count)  # type: ignore[misc]
            assert [push.awake.is_set() for push in pushes] == [True, *[False] * (len(pushes) - 1)]
            yield got
        for thread in threads:
            thread.join(SECONDS)
            assert not thread.is_alive()


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(SECONDS * 1_000):
        if condition():
            return
        threading.Event().wait(0.001)
    raise AssertionError("it does not come to be")


def test_they_are_one_line_and_one_chunk_a_stream(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    pushes = [desk.push(desk.s, 1, 2), desk.push(desk.t, 7), desk.push(desk.s, 3), desk.push(desk.s)]
    with desk.at_once(*pushes) as got:
        pass
    assert [got[push] for push in pushes] == [Counter({TUPLE: 2}), Counter({TUPLE: 1}), Counter({TUPLE: 1}), Counter()]
    assert desk.lines == 1
    assert (len(desk.s.log.chunks), len(desk.t.log.chunks)) == (1, 1)
    assert logged(desk.s, "v", "_s") == [(1, 0), (2, 1), (3, 2)], "in the order in which they came"
    again = Desk(tmp_path)
    assert logged(again.s, "v") == [(1,), (2,), (3,)], "all of it is durable"
    assert again.s.arrivals == 3


def test_rows_that_cannot_be_read_are_told_to_whom_they_belong(tmp_path: Path) -> None:
    desk = Desk(tmp_path, closed=5)
    bad = Push(desk.s, desk.s.rows.read([("x", 6), (7, 7)]), 0)
    late = desk.push(desk.s, 4, 8, 9)
    with desk.at_once(bad, late) as got:
        pass
    assert got[bad] == Counter({TUPLE: 1, "malformed": 1})
    assert got[late] == Counter({TUPLE: 2, "late": 1})
    assert sorted(letter["_reason"] for letter in letters(desk.s)) == ["late", "malformed"]
    assert logged(desk.s, "v", "_s") == [(7, 1), (8, 3), (9, 4)]


def test_one_that_is_refused_takes_no_other_with_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path, late="fail", closed=5)
    good, late, other = desk.push(desk.s, 6), desk.push(desk.s, 3, 7), desk.push(desk.t, 9)
    with desk.at_once(good, late, other) as got:
        pass
    assert isinstance(got[late], UserError)
    assert got[late].code == "late-tuple"  # type: ignore[union-attr]
    assert (got[good], got[other]) == (Counter({TUPLE: 1}), Counter({TUPLE: 1}))
    assert logged(desk.s, "v") == [(6,)]
    assert Desk(tmp_path, late="fail", closed=5).t.arrivals == 1


def test_a_stream_that_is_dropped_meanwhile(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    gone, stays = desk.push(desk.s, 1), desk.push(desk.t, 1)
    with desk.at_once(gone, stays) as got:
        desk.s.dropped = True
    assert isinstance(got[gone], UserError)
    assert got[gone].code == "stream-changed"  # type: ignore[union-attr]
    assert got[stays] == Counter({TUPLE: 1})


def test_a_column_that_is_added_meanwhile_is_null(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    before = desk.push(desk.s, 1)
    with desk.at_once(before) as got:
        stream = replace(desk.s.stream, columns=(*desk.s.stream.columns, Column("w", Sql("STRING"))))
        fields = list(desk.s.rows.schema)
        desk.s.shape(stream, pa.schema([*fields[:2], pa.field("w", pa.string()), *fields[2:]]))
    assert got[before] == Counter({TUPLE: 1})
    assert logged(desk.s, "v", "w") == [(1, None)]


def test_what_cannot_be_written_is_acknowledged_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    pushes = [desk.push(desk.s, 1, noted=lambda _: desk.s.position.update(seen=1)), desk.push(desk.s, 2)]
    with desk.at_once(*pushes) as got:
        monkeypatch.setattr("headgate.log.log.write", full)
    assert [one.code for one in got.values() if isinstance(one, UserError)] == ["disk-failed", "disk-failed"]
    assert logged(desk.s, "v") == []
    assert desk.s.position == {}
    monkeypatch.undo()
    assert desk.pushes.take(desk.push(desk.s, 3)) == Counter({TUPLE: 1})
    assert logged(desk.s, "v", "_s") == [(3, 0)]


def test_who_is_interrupted_leaves_the_others_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path)
    taken, interrupted = desk.s.take_reads, list[int]()

    def once(*asked: Any) -> Any:
        if not interrupted:
            interrupted.append(threading.get_ident())
            raise KeyboardInterrupt
        return taken(*asked)

    monkeypatch.setattr(desk.s, "take_reads", once)
    pushes = [desk.push(desk.s, 1), desk.push(desk.s, 2)]
    with desk.at_once(*pushes) as got:
        pass
    kinds = sorted(type(one).__name__ for one in got.values())
    assert kinds == ["Counter", "KeyboardInterrupt"]
    assert logged(desk.s, "v") == [(2,)], "the others go on without it"
    assert desk.pushes.take(desk.push(desk.s, 3)) == Counter({TUPLE: 1})


def test_two_of_one_name_go_one_after_the_other(tmp_path: Path) -> None:
    desk, seen = Desk(tmp_path), list[tuple[int, int]]()

    def admit(number: int) -> Callable[[], bool]:
        def look() -> bool:
            seen.append((number, desk.s.position.get("last", 0)))
            return bool(desk.s.position.get("last", 0) < number)

        return look

    def noted(number: int) -> Callable[[Counter[str]], None]:
        return lambda _: desk.s.position.update(last=number)

    pushes = [desk.push(desk.s, number, admit=admit(number), noted=noted(number), alone_as="p") for number in (1, 2, 2)]
    with desk.at_once(*pushes) as got:
        pass
    assert [got[push][TUPLE] for push in pushes] == [1, 1, 0]  # type: ignore[index]
    assert seen == [(1, 0), (2, 1), (2, 2)]
    assert logged(desk.s, "v") == [(1,), (2,)]
    assert Desk(tmp_path).s.position == {"last": 2}


def test_within_a_larger_whole_a_push_is_part_of_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    def part_of_a_whole() -> None:
        with desk.journal.together():
            assert desk.pushes.take(desk.push(desk.s, 1)) == Counter({TUPLE: 1})
            raise RuntimeError("the whole is not to be")

    with pytest.raises(RuntimeError):
        part_of_a_whole()
    assert logged(desk.s, "v") == []
    assert desk.lines == 0


def test_many_threads_at_once(tmp_path: Path) -> None:
    desk, each, threads = Desk(tmp_path), 10, 12

    def work() -> None:
        for number in range(each):
            assert desk.pushes.take(desk.push(desk.s, number)) == Counter({TUPLE: 1})

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(SECONDS)
    assert Counter(v for (v,) in logged(desk.s, "v")) == Counter(dict.fromkeys(range(each), threads))
    assert sorted(place for (place,) in logged(desk.s, "_s")) == list(range(each * threads))
    assert desk.lines < each * threads
    assert not desk.pushes._waiting


def test_who_has_the_turn_does_not_wait_for_those_who_want_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    other = desk.push(desk.s, 1)
    with desk.at_once(other) as got:
        assert desk.pushes.take(desk.push(desk.s, 2)) == Counter({TUPLE: 1})
    assert got[other] == Counter({TUPLE: 1})
    assert logged(desk.s, "v", "_s") == [(2, 0), (1, 1)]


def test_it_is_known_when_batches_came(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert isinstance(desk.pushes.clock, ManualClock)
    desk.pushes.clock.move_by(50)
    desk.pushes.take(Push(desk.s, desk.s.rows.read([(4, 4), (3, 3)]), 20))
    desk.pushes.take(Push(desk.s, desk.s.rows.read([]), 30))
    assert [tuple(one) for one in desk.s.lately] == [(4, 20, 50)]
