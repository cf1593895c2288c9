"""Failures at borders: whatever a query, a source, a sink or a function of the user's throws, it touches no other.

Every kind of error is thrown at every border. The engine is real, without Spark: its fragments are stood in for by ones
that answer each epoch with one row.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import AnalysisException, PythonException, SparkRuntimeException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from tools.no_spark import NoSpark

from headgate import Engine, ManualClock, UserError, read_commits
from headgate.catalog.entries import Connector
from headgate.deliver.sinks.jdbc import Database
from headgate.deliver.sinks.sink import Delivery
from headgate.deliver.sinks.webhook import WebhookSink
from headgate.errors import Broken, Several
from headgate.execute.fragment import RESTARTS, Fragment
from headgate.execute.prepared import Written
from headgate.heartbeat.clock import Clock
from headgate.spark.failures import called, check_alive, condition, failure, reason_of


class Thrown:
    """A Java exception as py4j hands it over."""

    def __init__(self, text: str, cause: Thrown | None = None) -> None:
        self.text, self.cause = text, cause
        self._target_id, self._gateway_client = "o1", SimpleNamespace(converters=None, is_connected=False, deque=[])

    def toString(self) -> str:  # noqa: N802
        return self.text

    def getCause(self) -> Thrown | None:  # noqa: N802
        return self.cause


class JavaError(Py4JJavaError):  # type: ignore[misc]
    """Asks no gateway."""

    def __init__(self, thrown: Any) -> None:
        Exception.__init__(self, "An error occurred while calling o9.parquet")
        self.errmsg, self.java_exception, self.exception_cmd = "An error occurred while calling o9.parquet.", thrown, ""

    def __str__(self) -> str:
        return f"{self.errmsg}\n: {self.java_exception.toString()}\n\tat org.apache.spark.Some.where(Some.scala:1)"


KINDS: list[Callable[[], BaseException]] = [
    lambda: JavaError(
        Thrown("java.lang.reflect.InvocationTargetException", Thrown("java.lang.UnsatisfiedLinkError: nonexist.so"))
    ),
    lambda: JavaError(Thrown("java.lang.StackOverflowError")),
    lambda: JavaError(Thrown("java.lang.OutOfMemoryError: Java heap space")),
    lambda: Py4JError("An error occurred while calling o7.sql"),
    lambda: AnalysisException("[UNRESOLVED_COLUMN] no column x SQLSTATE: 42703"),
    lambda: SparkRuntimeException("[DIVIDE_BY_ZERO] Division by zero."),
    lambda: PythonException(
        "An exception was thrown\nTraceback (most recent call last):\n  File 1\nKeyError: 'unit'\n"
    ),
    lambda: ArithmeticError("overflow"),
    lambda: MemoryError(),
    lambda: OSError(5, "Input/output error"),
    lambda: KeyError("unit"),
    lambda: RecursionError("maximum recursion depth exceeded"),
    lambda: TimeoutError("timed out"),
    lambda: AssertionError(),
    lambda: Broken("an invariant"),
    lambda: UserError("torn-file", "a file cannot be used"),
    lambda: StopIteration(),
    lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    lambda: EOFError(),
    lambda: ConnectionError("reset"),
]


# one line for everything


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KINDS[0](), "java.lang.reflect.InvocationTargetException: java.lang.UnsatisfiedLinkError: nonexist.so"),
        (KINDS[1](), "java.lang.StackOverflowError"),
        (
            JavaError(Thrown("org.apache.spark.SparkException: no", Thrown("java.lang.StackOverflowError"))),
            "no: java.lang.StackOverflowError",
        ),
        (KINDS[4](), "[UNRESOLVED_COLUMN] no column x"),
        (KINDS[6](), "KeyError: 'unit'"),
        (KeyError("unit"), "KeyError: 'unit'"),
        (MemoryError(), "MemoryError"),
        (
            UserError("sink-failed", "table cannot be written", detail="no such column."),
            "table cannot be written: no such column",
        ),
        (
            JavaError(
                Thrown(
                    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, "
                    "most recent failure: Lost task 0.0 in stage 1.0 (TID 1) (h executor driver): java.sql.SQLException: no\n"
                    "\tat x"
                )
            ),
            "java.sql.SQLException: no",
        ),
        (
            JavaError(
                Thrown(
                    "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file f. ",
                    Thrown("java.lang.RuntimeException: f is not a Parquet file"),
                )
            ),
            "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file f: "
            "java.lang.RuntimeException: f is not a Parquet file",
        ),
        (OSError("x" * 10_000), "OSError: " + "x" * 491 + "..."),
    ],
)
def test_what_went_wrong_is_said_in_one_line(error: BaseException, line: str) -> None:
    assert reason_of(error) == line
    assert "\n" not in reason_of(error)


def test_the_kinds_are_told_by_one_line_each() -> None:
    for kind in KINDS:
        error = kind()
        assert reason_of(error), error
        assert len(reason_of(error).splitlines()) == 1
        assert "\tat" not in failure(error, "query-failed", "it failed").render()
    assert condition(KINDS[4]()) == "UNRESOLVED_COLUMN"
    assert condition(KeyError("[NOT_SPARKS] ")) == ""


def test_several_errors_are_one() -> None:
    first, second = UserError("a", "one", hint="h"), UserError("b", "two")
    both = Several([first, Several([second])])
    assert (both.code, both.each(), both.render()) == ("a", [first, second], "a: one\nhint: h\n\nb: two")


def test_functions_of_the_user_may_raise_anything() -> None:
    def raises(error: BaseException) -> None:
        raise error

    for error in (SystemExit(3), GeneratorExit(), KeyError("k"), type("Odd", (BaseException,), {})("odd")):
        with pytest.raises(UserError, match="sink-failed") as failed:
            called(raises, error, code="sink-failed", message="the function has failed")
        assert type(error).__name__ in failed.value.detail
    with pytest.raises(KeyboardInterrupt):
        called(raises, KeyboardInterrupt(), code="sink-failed", message="")


# an engine without Spark


class OneRow(Fragment):
    """Answers every epoch with one row: where the epoch ends."""

    def analyse(self) -> None:
        self.result_schema = StructType()

    def run(self, until: int) -> Written:
        try:
            progress = {"after": until, "since": until, "epochs": self.epochs + 1}
            return Written(self, self.after, until, self.answer(until), progress, 1)
        except Exception as error:
            raise self.failure(error, self.after, until) from error

    def answer(self, until: int) -> list[Path]:
        path = self.directory / f"{until}.parquet"
        pq.write_table(pa.table({"_time": [until], "v": [until]}), path)
        return [path]


TOLD: list[tuple[str, int, list[int]]] = []
ANSWER: Callable[[], object] = lambda: None  # noqa: E731


def took(delivery: Delivery, batches: Iterator[pa.RecordBatch]) -> None:
    """A callback."""
    if delivery.query == "bad":
        ANSWER()
    TOLD.append((delivery.query, delivery.number, [row["v"] for batch in batches for row in batch.to_pylist()]))


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Engine]]:
    engines: list[Engine] = []
    for module in ("execute.workspace", "deliver.sinks.callback"):
        monkeypatch.setattr(f"headgate.{module}.own_session", lambda session, partitions=None: session)
    for module in ("execute.build", "engine.sharing"):
        monkeypatch.setattr(f"headgate.{module}.Fragment", OneRow)
    monkeypatch.setattr("test_borders.ANSWER", lambda: None)
    TOLD.clear()

    def made(clock: Clock | None = None, session: Any = None, directory: Path | None = None) -> Engine:
        engine = Engine(session or NoSpark(), directory, clock=clock or ManualClock())  # type: ignore[arg-type]
        engines.append(engine)
        if not engine.resumed:
            into = "INTO callback OPTIONS ('function' = 'test_borders:took')"
            engine.execute(
                f"CREATE STREAM s (v INT); CREATE STREAM t (v INT); CREATE QUERY bad AS SELECT ISTREAM(v) FROM s [NOW] {into};"
                f"CREATE QUERY good AS SELECT ISTREAM(v) FROM t [NOW] {into}"
            )
        return engine

    yield made
    for engine in engines:
        if engine._core.journal._broken is None:
            engine.close()


def fed(engine: Engine, at: int) -> None:
    for stream in ("s", "t"):
        engine.push(stream, [(at, (at,))])
        engine.punctuate(stream, at)


def stepped(engine: Engine) -> UserError | None:
    """What a turn raised."""
    try:
        engine.step()
    except UserError as error:
        return error
    return None


class Fed:
    """A source that hands over nothing, or fails."""

    starting = False

    def __init__(self, engine: Engine, stream: str) -> None:
        self.inlet, self.session, self.notes = engine._core.inputs.inlets[stream], engine.spark, list[UserError]()
        self.polls = 0

    def poll(self, clock: Clock) -> int:
        self.polls += 1
        return 0

    drain = poll

    def progress(self, clock: Clock) -> int | None:
        return clock.now_us()

    def reshape(self) -> None: ...
    def stop(self) -> None: ...


BORDERS: dict[str, Callable[[Engine], tuple[Any, str]]] = {
    "the epoch": lambda engine: (engine.query("bad").answer, "answer"),
    "the commit": lambda engine: (engine.query("bad").outbox, "put"),
    "the cut into pieces": lambda engine: (engine.query("bad").outbox, "split"),
    "between epochs": lambda engine: (engine.query("bad"), "wants_empty"),
    "the labels": lambda engine: (engine.query("bad"), "labels"),
    "the tidying": lambda engine: (engine.query("bad"), "tidy"),
    "the sink": lambda engine: (engine.query("bad").outbox.sink, "deliver"),
    "what the sink has": lambda engine: (engine.query("bad").outbox.sink, "delivered"),
}


@pytest.mark.parametrize("border", BORDERS)
def test_what_one_query_meets_with_touches_no_other(
    make: Callable[..., Engine], border: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    engine = make(clock=clock)
    fed(engine, 1)
    assert stepped(engine) is None
    assert TOLD == [("bad", 1, [1]), ("good", 1, [1])]
    for at, kind in enumerate(KINDS, 2):
        thrown = kind()

        def throws(*_: Any, error: BaseException = thrown, **__: Any) -> Any:
            raise error

        fed(engine, at)
        with monkeypatch.context() as broken:
            if border == "what the sink has":
                engine.query("bad").outbox._compared = False
            broken.setattr(*BORDERS[border](engine), throws)
            failed = stepped(engine)
            assert TOLD[-1] == ("good", at, [at]), (border, thrown)
            query = engine.query("bad")
            if "sink" in border:
                assert failed is None, "results wait"
                assert query.complete == at
                assert query.outbox.trouble is thrown
            else:
                assert failed is not None, (border, thrown)
                assert reason_of(thrown) in reason_of(failed), failed.render()
                assert query.failed
                assert query.trouble is failed
                assert query.complete == (at if border == "the tidying" else at - 1), (
                    "its state is that of its last commit"
                )
        clock.move_by(31_000_000)
        assert stepped(engine) is None, (border, thrown)
        assert not engine.query("bad").failed
        assert engine.query("bad").trouble is None
    for name in ("bad", "good"):
        assert [told[1:] for told in TOLD if told[0] == name] == [(at, [at]) for at in range(1, len(KINDS) + 2)], name


def test_several_queries_fail_in_one_turn_and_each_is_told(
    make: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make()

    def throws(*_: Any) -> Any:
        raise KeyError("unit")

    monkeypatch.setattr(OneRow, "answer", throws)
    fed(engine, 1)
    failed = stepped(engine)
    assert failed is not None
    assert [error.message for error in failed.each()] == [
        f'query "{name}" failed in the epoch (-1, 1]' for name in ("bad", "good")
    ]


def test_a_query_that_fails_for_good_stands_still_and_run_goes_on(
    make: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    engine = make(clock=clock)

    def throws(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(engine.query("bad").answer, "answer", throws)
    told: list[str] = []
    fed(engine, 1)
    end = time.monotonic() + 30

    def given_up() -> bool:
        clock.move_by(31_000_000)
        return engine.query("bad").given_up or time.monotonic() > end

    engine.run(until=given_up, tell=told.append)
    fed(engine, 2)
    engine.run(until=lambda: engine.query("good").delivered == 2 or time.monotonic() > end, tell=told.append)
    assert engine.query("good").delivered == 2
    assert engine.query("bad").answer.back_off.failures == RESTARTS + 1
    assert (
        told[0]
        == 'query-failed: query "bad" failed in the epoch (-1, 1]\ndetail: MemoryError.\nIt is restarted from where it was.'
    )
    assert told[-1].endswith("It stands still, the others go on.")


def test_a_listener_that_fails_fails_nothing_else(make: Callable[..., Engine]) -> None:
    engine = make()
    heard: list[Any] = []

    def exits(results: Any) -> None:
        raise SystemExit(1)

    for listener in (exits, heard.extend):
        engine.query("bad").on_change(listener)
    fed(engine, 1)
    failed = stepped(engine)
    assert failed is not None
    assert (failed.code, failed.detail) == ("listener-failed", "SystemExit: 1.")
    assert len(heard) == 1
    assert not engine.query("bad").failed
    assert TOLD == [("bad", 1, [1]), ("good", 1, [1])]


def test_a_source_that_fails_is_tried_again_after_a_while_and_the_others_are_read(make: Callable[..., Engine]) -> None:
    clock = ManualClock()
    engine = make(clock=clock)
    bad, good = Fed(engine, "s"), Fed(engine, "t")
    engine._core.inputs.sources += [bad, good]
    assert engine.poll() == 0
    for turn, kind in enumerate(KINDS, 1):
        thrown = kind()

        def throws(clock: Clock, error: BaseException = thrown) -> int:
            raise error

        bad.poll = throws  # type: ignore[method-assign]
        with pytest.raises(UserError) as failed:
            engine.poll()
        assert reason_of(thrown) in reason_of(failed.value), thrown
        assert engine._core.inputs.troubles == {"s": failed.value}
        del bad.poll
        before = bad.polls
        with pytest.raises(UserError):
            engine.poll()
        assert bad.polls == before, "not yet"
        clock.move_by(31_000_000)
        engine.poll()
        assert bad.polls == before + 1
        assert good.polls == 1 + 3 * turn
        assert not engine._core.inputs.troubles


def test_run_goes_on_without_a_source_but_not_without_any(make: Callable[..., Engine]) -> None:
    engine = make()
    bad, good = Fed(engine, "s"), Fed(engine, "t")

    def throws(clock: Clock) -> int:
        raise OSError(5, "Input/output error")

    bad.poll = bad.drain = throws  # type: ignore[method-assign]
    engine._core.inputs.sources += [bad, good]
    told: list[str] = []
    engine.push("t", [(3, (3,))])
    engine.punctuate("t", 3)
    end = time.monotonic() + 30
    engine.run(until=lambda: engine.query("good").delivered == 3 or time.monotonic() > end, tell=told.append)
    assert TOLD == [("good", 1, [3])]
    assert told == [
        'source-failed: stream "s" cannot be read\ndetail: OSError: [Errno 5] Input/output error.\nIt is tried again, and the others go on.'
    ]
    with pytest.raises(UserError, match='stream "s" cannot be read'):
        engine.run_once()
    assert engine.query("bad").complete is None, "what was not read is not answered"
    engine._core.inputs.sources.remove(good)
    engine._core.inputs.worked = False
    with pytest.raises(UserError, match='stream "s" cannot be read'):
        engine.run(until=lambda: time.monotonic() > end, tell=told.append)


def test_a_spark_that_has_ended_ends_all_and_says_so(
    make: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(NoSpark):
        dead = False

        @property
        def _jvm(self) -> Any:
            def call(*_: Any) -> int:
                if self.dead:
                    raise Py4JNetworkError("Answer from Java side is empty")
                return 1

            return SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=SimpleNamespace(nanoTime=call))))

    session = Gone()
    engine = make(session=session)

    def throws(*_: Any) -> Any:
        raise Py4JNetworkError("Answer from Java side is empty")

    monkeypatch.setattr(engine.query("bad").answer, "answer", throws)
    fed(engine, 1)
    failed = stepped(engine)
    assert failed is not None
    assert failed.code == "query-failed", "Spark answers, so it was this query"
    session.dead = True
    monkeypatch.setattr(OneRow, "answer", throws)
    fed(engine, 2)
    with pytest.raises(UserError, match="spark-gone"):
        engine.run(tell=lambda text: None)
    check_alive(session, KeyError("of the user"))  # type: ignore[arg-type]


# what sinks say


def test_the_cause_is_part_of_what_a_database_refuses() -> None:
    database = object.__new__(Database)
    database.url = "jdbc:postgresql://localhost/db?password=x"
    refused = JavaError(
        Thrown("org.apache.spark.SparkException: Job aborted", Thrown("org.postgresql.util.PSQLException: no column n"))
    )
    failed = database.translated(refused, "totals")
    assert reason_of(failed) == 'table "totals" cannot be written: org.postgresql.util.PSQLException: no column n'
    missing = database.translated(JavaError(Thrown("java.lang.ClassNotFoundException: org.x.Driver")), "totals")
    assert (missing.code, "password" in missing.message) == ("no-connector", False)


def test_the_cause_is_part_of_what_a_webhook_refuses(tmp_path: Path) -> None:
    sink = object.__new__(WebhookSink)
    sink.writer, sink.headers, sink.timeout_seconds = "w", {}, 1
    delivery = Delivery("q", 1, 0, 1, 1, (), 1)

    def posted(answer: bytes) -> str:
        with socket.create_server(("127.0.0.1", 0)) as server:
            sink.connector = Connector("webhook", {"url": f"http://127.0.0.1:{server.getsockname()[1]}/"})

            def answers() -> None:
                taken, _ = server.accept()
                with taken:
                    taken.recv(10_000)
                    taken.sendall(answer)
                    released.wait(0 if answer else 10)

            released, thread = threading.Event(), threading.Thread(target=answers)
            thread.start()
            with pytest.raises(UserError) as failed:
                sink._post(delivery, 0, [b"{}"], last=True)
            released.set()
            thread.join(30)
        return reason_of(failed.value).partition('/" ')[2]

    assert posted(b"HTTP/1.1 503 No\r\nContent-Length: 12\r\n\r\ntable locked") == "answered 503 No: table locked"
    assert posted(b"what is HTTP?\r\n\r\n") == "cannot be reached: BadStatusLine: what is HTTP?"
    assert posted(b"") == "has not answered within 1 s"


# sinks that hang


def test_a_sink_that_hangs_holds_up_nobody_and_gets_everything_in_order(
    make: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make()
    released = threading.Event()
    monkeypatch.setattr("test_borders.ANSWER", lambda: released.wait(60))
    fed(engine, 1)
    began = time.monotonic()
    fed_to = 1

    def goes_on() -> bool:
        nonlocal fed_to
        if engine.query("good").delivered == fed_to:
            fed_to += 1
            fed(engine, fed_to)
        return fed_to > 5 or time.monotonic() - began > 30

    engine.run(until=goes_on)
    assert time.monotonic() - began < 20
    assert [told for told in TOLD if told[0] == "bad"] == []
    assert [told[1] for told in TOLD] == [1, 2, 3, 4, 5]
    assert engine.query("bad").complete in (4, 5), "it computes, and its results wait"
    assert engine.query("bad").delivered is None
    released.set()
    engine.step()
    assert [told for told in TOLD if told[0] == "bad"] == [("bad", at, [at]) for at in range(1, 7)]


def test_a_program_that_steps_waits_for_a_sink_once_and_not_for_long(
    make: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine = make(directory=tmp_path)
    released = threading.Event()
    monkeypatch.setattr("test_borders.ANSWER", lambda: released.wait(60))
    engine._core.loop.patience_s = 0.5
    for at in (1, 2, 3):
        fed(engine, at)
        began = time.monotonic()
        engine.step()
        assert (time.monotonic() - began >= 0.5) == (at == 1)
        assert TOLD[-1] == ("good", at, [at])
    monkeypatch.setattr("headgate.engine.core.CLOSE_SECONDS", 0.5)
    began = time.monotonic()
    engine.close()
    assert time.monotonic() - began < 5, "the end does not wait for it"
    released.set()
    monkeypatch.setattr("test_borders.ANSWER", lambda: None)
    again = make(directory=tmp_path)
    again.step()
    assert [told[1] for told in TOLD if told[0] == "bad"][-3:] == [1, 2, 3], "what was not noted is delivered again"


def test_a_query_that_is_replaced_delivers_nothing_more(
    make: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make()
    released = threading.Event()
    monkeypatch.setattr("test_borders.ANSWER", lambda: released.wait(60))
    engine._core.loop.patience_s = 0.2
    for at in (1, 2):
        fed(engine, at)
        engine.step()
    old = engine.query("bad")
    with pytest.raises(UserError, match="no-such-function"):
        engine.execute(
            "ALTER QUERY bad AS SELECT ISTREAM(v + 1 AS v) FROM s [NOW] INTO callback OPTIONS ('function' = 'test_borders:no')"
        )
    assert engine.query("bad") is old
    assert not old.outbox.held, "it goes on"
    engine.execute(
        "ALTER QUERY bad AS SELECT ISTREAM(v + 1 AS v) FROM s [NOW] INTO callback OPTIONS ('function' = 'test_borders:took')"
    )
    released.set()
    assert old.courier._thread is not None
    old.courier._thread.join(30)
    assert [told for told in TOLD if told[0] == "bad"] == [("bad", 1, [1])], (
        "the one that was under way, and not the next"
    )


def test_a_query_is_dropped_while_its_sink_hangs(make: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make()
    released = threading.Event()
    monkeypatch.setattr("test_borders.ANSWER", lambda: released.wait(60))
    engine._core.loop.patience_s = 0.2
    fed(engine, 1)
    engine.step()
    courier, began = engine.query("bad").courier, time.monotonic()
    engine.execute("DROP QUERY bad")
    assert time.monotonic() - began < 5
    fed(engine, 2)
    engine.step()
    assert TOLD[-1] == ("good", 2, [2])
    released.set()
    assert courier._thread is not None
    courier._thread.join(30)
    assert not courier._thread.is_alive(), "it has let go of the sink and ended"


# files and folders, with Spark


def numbers(path: Path, rows: list[tuple[int, int]], kind: pa.DataType, at: pa.DataType | None = None) -> None:
    values, times = pa.array([value for value, _ in rows], kind), pa.array([time for _, time in rows], at or pa.int64())
    pq.write_table(pa.table({"v": values, "at": times}), path)


@pytest.mark.spark
def test_files_of_other_types_are_cast_and_those_that_cannot_be_read_are_set_aside(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, clock = tmp_path / "in", ManualClock()
    folder.mkdir()
    numbers(folder / "1.parquet", [(1, 1)], pa.int32())
    numbers(folder / "2.parquet", [(2, 2), (2**40, 3)], pa.int64(), pa.int32())
    (folder / "3.parquet").write_bytes(b"this is no Parquet file")
    numbers(folder / "4.parquet", [(4, 4)], pa.int32())
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "1.json").write_text('{"v": 7, "at": 1}\n')
    with Engine(spark, tmp_path / "state", clock=clock) as engine:
        for name, format, path in (("s", "parquet", folder), ("t", "json", tmp_path / "lines")):
            engine.execute(
                f"CREATE STREAM {name} (v INT, at BIGINT) TIMESTAMP BY at FROM {format} OPTIONS ('path' = '{path}')"
            )
        assert engine.poll() == 4
        assert engine.counts("s") == {"taken": 3, "malformed": 2}
        assert engine.counts("t") == {"taken": 1}
        misfit, unread = (letter["_raw"] for letter in engine.dead_letters("s"))
        assert misfit == '{"v":1099511627776,"at":3}'
        assert unread.startswith(f"{folder}/3.parquet: ")
        (note,) = engine.notes()
        assert note.message == f'file "{folder}/3.parquet" of stream "s" cannot be read and is set aside'
        assert "is not a Parquet file" in note.detail
        clock.move_by(31_000_000)
        assert engine.poll() == 0, "it is not read again as it is"
    with Engine(spark, tmp_path / "state", clock=clock) as engine:
        assert engine.poll() == 0
        assert len(engine.notes()) == 1, "after a restart it is tried once more"
        assert engine.counts("s") == {"taken": 3, "malformed": 2}, "and is the same dead letter"
        numbers(folder / "3.parquet", [(3, 9)], pa.int32())
        clock.move_by(31_000_000)
        assert engine.poll() == 1
        assert engine.counts("s") == {"taken": 4, "malformed": 2}
        assert not engine.notes()


@pytest.mark.spark
def test_what_does_not_fit_is_not_null_and_a_relation_waits_for_its_file(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("SELECT EXPLODE(ARRAY(5, 5000000000)) AS v, 1L AS at").coalesce(1).write.orc(f"{tmp_path}/orc")
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "1.parquet").write_bytes(b"this is no Parquet file")
    clock = ManualClock()
    with Engine(spark, clock=clock) as engine:
        engine.execute(
            f"CREATE STREAM s (v INT, at BIGINT) TIMESTAMP BY at FROM orc OPTIONS ('path' = '{tmp_path}/orc')"
        )
        engine.execute(f"CREATE RELATION r (v INT, at BIGINT) FROM parquet OPTIONS ('path' = '{tmp_path}/rows')")
        with pytest.raises(UserError, match=r'file ".*/rows/1.parquet" of relation "r" cannot be read'):
            engine.poll()
        assert engine.counts("s") == {"taken": 1, "malformed": 1}
        numbers(tmp_path / "rows" / "1.parquet", [(1, 1)], pa.int64())
        clock.move_by(31_000_000)
        assert engine.poll() == 1


@pytest.mark.spark
def test_paths_that_cannot_be(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    where = tmp_path / "state"
    into = "INTO parquet OPTIONS ('path' = '{}')"
    with Engine(spark, where) as engine:
        with pytest.raises(UserError, match="bad-path") as refused:
            engine.execute(
                f"CREATE STREAM s (v INT, at INT) TIMESTAMP BY at FROM json OPTIONS ('path' = '{tmp_path}/*.{{txt')"
            )
        assert "Unclosed group" in refused.value.detail
        engine.execute("CREATE STREAM s (v INT)")
        for path in (tmp_path / "file", tmp_path / "file" / "below", "/proc/nothing/here"):
            with pytest.raises(UserError, match="sink-failed") as refused:
                engine.execute(f"CREATE QUERY q AS SELECT ISTREAM(v) FROM s [NOW] {into.format(path)}")
            assert refused.value.hint
            assert refused.value.detail.count(" ") < 5, "the system's own words"
        engine.execute(f"CREATE QUERY q AS SELECT ISTREAM(v) FROM s [NOW] {into.format(tmp_path / 'out')}")
        engine.execute("CREATE QUERY other AS SELECT ISTREAM(v) FROM s [NOW]")
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "out").write_text("in the way")
    with Engine(spark, where) as engine:
        engine.push("s", [(1, (7,))])
        engine.advance(1)
        assert [result.row for result in engine.query("other").results()] == [{"v": 7}]
        assert engine.query("q").delivered is None
        assert "cannot be written" in reason_of(engine.query("q").outbox.trouble or Exception())
        (tmp_path / "out").unlink()
        with contextlib.suppress(UserError):
            engine.run_once()
        assert [commit.rows for commit in read_commits(tmp_path / "out")] == [1]


@pytest.mark.spark
def test_what_fails_is_one_block_on_the_console_and_no_trace(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"v": 7, "at": 1}\n')
    script = tmp_path / "q.cql"
    script.write_text(
        f"""CREATE STREAM s (v INT, at INT) TIMESTAMP BY at FROM json OPTIONS ('path' = '{tmp_path}/in');
        CREATE QUERY bad AS SELECT ISTREAM(CAST(CONCAT('x', v) AS INT) AS w) FROM s [NOW];
        CREATE QUERY good AS SELECT ISTREAM(v) FROM s [NOW];"""
    )
    environment = {key: value for key, value in os.environ.items() if key != "HEADGATE_DEBUG"}
    ran = subprocess.run(
        [sys.executable, "-c", "from headgate.cli import main; main()", "run", str(script), "--once"],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
        check=False,
    )
    assert "good 1 + v=7" in ran.stdout
    assert 'query-failed: query "bad" failed in the epoch' in ran.stderr
    assert ran.stderr.count("CAST_INVALID_INPUT") == 1, ran.stderr
    assert "\tat " not in ran.stderr
    assert "Traceback" not in ran.stderr
    assert len(ran.stderr.splitlines()) < 12, ran.stderr
