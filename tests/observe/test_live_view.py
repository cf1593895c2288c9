"""Live views: what is drawn and when, what ends them, and that no engine ever waits for one. No JVM."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tools.duck_engine import engine_on_duckdb, without_spark

from headgate import Engine, UserError
from headgate.heartbeat.why import Why
from headgate.observe import live as module
from headgate.observe.live import LiveView, Notebook, Terminal
from headgate.observe.picture import Current, Lately, Picture
from headgate.schedule.query import RunningQuery


class Recorded:
    """A screen that remembers its pictures. Its first blocks if it is told to."""

    def __init__(self, changes: bool = False, fails: bool = False) -> None:
        self.changes = changes
        self.fails = fails
        self.pictures: list[Picture] = []
        self.drawn = threading.Event()
        self.free = threading.Event()
        self.free.set()

    def show(self, picture: Picture, rows: Lately | Current | None) -> None:
        if self.fails and self.pictures:
            raise OSError("nobody is there")
        self.pictures.append(picture)
        self.drawn.set()
        self.free.wait(30)

    def again(self) -> None:
        raise AssertionError("nobody asks")

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        last = self.pictures[-1].rows
        assert last is not None
        return last.rows


@pytest.fixture
def engine() -> Iterator[Engine]:
    with without_spark(), engine_on_duckdb() as made:
        made.execute(
            """CREATE STREAM s (k STRING, v INT);
            CREATE QUERY largest AS SELECT k, MAX(v) AS v FROM s [RANGE UNBOUNDED] GROUP BY k"""
        )
        yield made


def feed(engine: Engine, instant: int, key: str, value: int) -> None:
    engine.push("s", [(instant, (key, value))])
    engine.advance(instant)


def view_of(query: RunningQuery, screen: Recorded, monkeypatch: pytest.MonkeyPatch, **options: Any) -> LiveView:
    monkeypatch.setattr(module, "screen", lambda: screen)
    return query.live(**options)


def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    end_s = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end_s, "it does not come"
        time.sleep(0.01)


def test_a_view_is_drawn_at_once_and_anew_when_answers_come(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Recorded()
    view = view_of(engine.query("largest"), screen, monkeypatch, every=0.1)
    assert len(screen.pictures) == 1, "drawn by the caller, so that it is in the caller's cell"
    feed(engine, 1, "a", 1)
    until(lambda: screen.rows == (("a", "1"),))
    feed(engine, 2, "a", 5)
    until(lambda: screen.rows == (("a", "5"),))
    assert list(screen.pictures[-1].lines) == ["complete up to 2", "nothing holds it back"]
    assert view.picture == screen.pictures[-1]
    assert repr(view) == "LiveView(largest: goes on)"
    view.stop()
    assert screen.pictures[-1].lines[-1] == "this view is over: stopped"
    assert repr(view) == "LiveView(largest: stopped)"


def test_changes_instead_of_rows(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(engine, 1, "a", 1)
    feed(engine, 2, "a", 5)
    with view_of(engine.query("largest"), Recorded(), monkeypatch, changes=True, rows=2) as view:
        assert view.picture is not None
        assert view.picture.rows is not None
        assert view.picture.rows.rows == (("2", "+", "a", "5"), ("2", "-", "a", "1"))
    assert view.ended == "stopped"


def test_what_has_not_changed_is_not_drawn_again(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    screen, query = Recorded(), engine.query("largest")
    looks = []
    why = query._reason
    query._reason = lambda one: looks.append(one) or why(one)  # type: ignore[func-returns-value]
    view = view_of(query, screen, monkeypatch, every=0.1)
    until(lambda: len(looks) >= 5)
    assert len(screen.pictures) == 1
    view.stop()
    done = len(looks)
    time.sleep(0.3)
    assert len(looks) <= done + 1, "it has ended"


def test_a_view_is_drawn_no_more_often_than_asked(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Recorded()
    view = view_of(engine.query("largest"), screen, monkeypatch, every=0.5)
    began_s, instant = time.monotonic(), 0
    while time.monotonic() - began_s < 1.2:
        instant += 1
        feed(engine, instant, "a", instant)
    assert instant > 5
    assert 2 <= len(screen.pictures) <= 4
    view.stop()


def test_looks_that_take_long_are_made_less_often(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    query, looks = engine.query("largest"), list[float]()
    why = query._reason

    def slow(one: RunningQuery) -> Why:
        looks.append(time.monotonic())
        time.sleep(0.1)
        return why(one)

    query._reason = slow
    view = view_of(query, Recorded(), monkeypatch, every=0.1)
    until(lambda: len(looks) == 4)
    view.stop()
    assert looks[3] - looks[2] >= 0.9, "nine times as long as it took"


def test_a_view_ends_when_its_time_has_passed(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    screen, began_s = Recorded(), time.monotonic()
    view = view_of(engine.query("largest"), screen, monkeypatch, seconds=0.4, every=0.1)
    assert view.going_on
    assert not view.wait(0.01)
    assert view.wait(10)
    assert 0.4 <= time.monotonic() - began_s < 5
    assert screen.pictures[-1].lines[-1] == "this view is over: 0.4 seconds are over"
    drawn = len(screen.pictures)
    feed(engine, 1, "a", 1)
    time.sleep(0.3)
    assert len(screen.pictures) == drawn
    view.stop()
    assert view.ended == "0.4 seconds are over"


@pytest.mark.parametrize(
    "statement",
    ["DROP QUERY largest", "ALTER QUERY largest AS SELECT k, MIN(v) AS v FROM s [RANGE UNBOUNDED] GROUP BY k"],
)
def test_a_view_ends_with_its_query_and_shows_the_last_answers(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    screen, query = Recorded(), engine.query("largest")
    view = view_of(query, screen, monkeypatch, every=60)
    feed(engine, 1, "a", 1)
    engine.execute(statement)
    assert view.wait(0)
    assert screen.rows == (("a", "1"),)
    assert screen.pictures[-1].lines[-1] == "this view is over: the query has ended"
    with pytest.raises(UserError, match="has ended"):
        query.live()


def test_a_view_ends_with_its_engine_and_shows_the_last_answers(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Recorded()
    view = view_of(engine.query("largest"), screen, monkeypatch, every=60)
    feed(engine, 1, "a", 1)
    engine.close()
    assert view.wait(0)
    assert screen.rows == (("a", "1"),)


def test_a_query_that_ends_while_its_view_is_made(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dropping(Recorded):
        def show(self, picture: Picture, rows: Lately | Current | None) -> None:
            super().show(picture, rows)
            if len(self.pictures) == 1:
                engine.execute("DROP QUERY largest")

    view = view_of(engine.query("largest"), Dropping(), monkeypatch, every=60)
    assert (view.going_on, view.ended) == (False, "the query has ended")


def test_members_of_families_end_their_views_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with without_spark(), engine_on_duckdb() as engine:
        engine.execute("CREATE STREAM s (k INT)")
        engine.execute(
            ";".join(f"CREATE QUERY q{n} AS SELECT ISTREAM(k) FROM s [RANGE UNBOUNDED] WHERE k > {n}" for n in range(6))
        )
        assert engine.query("q3").shares_outbox
        dropped = view_of(engine.query("q3"), Recorded(), monkeypatch, every=60)
        closed = view_of(engine.query("q4"), Recorded(), monkeypatch, every=60)
        engine.execute("DROP QUERY q3")
        assert (dropped.going_on, closed.going_on) == (False, True)
    assert not closed.going_on


def test_the_engine_goes_on_while_a_picture_cannot_be_drawn(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAST_SECONDS", 0.2)
    screen = Recorded()
    view = view_of(engine.query("largest"), screen, monkeypatch, every=0.1)
    screen.free.clear()
    screen.drawn.clear()
    feed(engine, 1, "a", 1)
    assert screen.drawn.wait(10)
    began_s = time.monotonic()
    feed(engine, 2, "a", 2)
    engine.execute("DROP QUERY largest")
    assert time.monotonic() - began_s < 5
    assert (view.going_on, view.ended) == (False, "the query has ended")
    screen.free.set()


def test_a_screen_that_has_gone_ends_the_view_and_nothing_else(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    view = view_of(engine.query("largest"), Recorded(fails=True), monkeypatch, every=0.1)
    feed(engine, 1, "a", 1)
    assert view.wait(10)
    assert view.ended == "it could not be shown: nobody is there"
    feed(engine, 2, "a", 2)
    assert engine.query("largest").count == 3


def test_results_that_cannot_be_read_for_a_while(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    screen, page = Recorded(), RunningQuery.page
    view = view_of(engine.query("largest"), screen, monkeypatch, every=0.1)

    def broken(*arguments: Any) -> Any:
        raise UserError("torn-file", "a file is gone")

    monkeypatch.setattr(RunningQuery, "page", broken)
    feed(engine, 1, "a", 1)
    until(lambda: screen.pictures[-1].lines[-1] == "results cannot be read: torn-file: a file is gone")
    monkeypatch.setattr(RunningQuery, "page", page)
    until(lambda: screen.rows == (("a", "1"),))
    assert view.going_on
    view.stop()


def test_a_query_that_cannot_be_looked_at_for_a_while(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    screen, query = Recorded(), engine.query("largest")
    view = view_of(query, screen, monkeypatch, every=0.1)
    why = query._reason

    def broken(one: RunningQuery) -> Why:
        raise KeyError("s")

    query._reason = broken
    until(lambda: "cannot be looked at: 's'" in screen.pictures[-1].lines)
    shown = len(screen.pictures)
    time.sleep(0.3)
    assert len(screen.pictures) == shown, "it is said once"
    query._reason = why
    until(lambda: screen.pictures[-1].lines[-1] == "nothing holds it back")
    view.stop()


def test_an_interrupt_stops_the_view(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    view = view_of(engine.query("largest"), Recorded(), monkeypatch)

    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    over, view._over = view._over, Interrupted()
    with pytest.raises(KeyboardInterrupt):
        view.wait()
    assert view.ended == "stopped"
    over.set()


@pytest.mark.parametrize("options", [{"seconds": 0}, {"rows": 0}, {"rows": 1_001}, {"every": 0.01}])
def test_what_a_view_cannot_do_is_refused(engine: Engine, options: dict[str, Any]) -> None:
    with pytest.raises(UserError) as caught:
        engine.query("largest").live(**options)
    assert caught.value.code == "bad-parameter"


def test_without_ipython_the_error_says_what_to_install(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython.core.getipython", None)
    with pytest.raises(UserError) as caught:
        engine.query("largest").live()
    assert caught.value.code == "no-module"
    assert caught.value.hint == "pip install 'headgate[notebook]'"


def test_outside_a_notebook_lines_are_printed(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    view = engine.query("largest").live(every=60, rows=2)
    assert isinstance(view._screen, Terminal)
    feed(engine, 1, "a\x1b[2J", 1)
    view._draw()
    feed(engine, 2, "a\x1b[2J", 2)
    feed(engine, 3, "b", 3)
    view._draw()
    view._draw()
    view.stop()
    assert capsys.readouterr().out.splitlines() == [
        "query largest: relation, 0 results in 0 epochs; complete up to no instant yet; nothing holds it back",
        "largest 1 + k=a?[2J, v=1",
        "query largest: relation, 1 result in 1 epoch; complete up to 1; nothing holds it back",
        "largest ... 1 results are not shown",
        "largest 2 + k=a?[2J, v=2",
        "largest 3 + k=b, v=3",
        "query largest: relation, 4 results in 3 epochs; complete up to 3; nothing holds it back",
        "query largest: relation, 4 results in 3 epochs; complete up to 3; nothing holds it back; "
        "this view is over: stopped",
    ]


class Shell:
    execution_count = 7
    kernel = object()


class Handle:
    def __init__(self, shown: list[tuple[str, str, dict[str, str]]]) -> None:
        self.shown, self.display_id = shown, "here"

    def update(self, bundle: dict[str, str], raw: bool) -> None:
        assert raw
        self.shown.append(("update", self.display_id, bundle))


def test_in_a_notebook_the_picture_is_replaced_and_can_stand_in_other_cells(engine: Engine) -> None:
    shown: list[tuple[str, str, dict[str, str]]] = []
    shell = Shell()

    def display(bundle: dict[str, str], raw: bool, display_id: bool | str) -> Handle:
        assert raw
        shown.append(("display", str(display_id), bundle))
        return Handle(shown)

    query = engine.query("largest")
    view = LiveView(query, query._turn, every=60, on=Notebook(shell, display))
    view._ipython_display_()
    assert [one[:2] for one in shown] == [("display", "True")], "the cell that made it has it already"
    feed(engine, 1, "<b>", 1)
    view._draw()
    shell.execution_count = 8
    view._ipython_display_()
    view._ipython_display_()
    assert [one[:2] for one in shown[1:]] == [("update", "here"), ("display", "here")]
    assert shown[1][2] == shown[2][2]
    assert "&lt;b&gt;" in shown[1][2]["text/html"]
    assert "<b>  1" in shown[1][2]["text/plain"]
    view.stop()
