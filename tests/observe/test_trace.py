"""Traces of heartbeats: what is charged to whom, what is kept, and how `headgate trace` shows it. No JVM."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from headgate.cli import app
from headgate.errors import UserError
from headgate.heartbeat.why import Why
from headgate.observe import status
from headgate.observe.trace import KEPT, LOOP, SINK, Trace, Traces, Work
from headgate.observe.trace_table import shown
from headgate.ticks import UNLIMITED, TimeDomain


def charged(trace: Trace) -> dict[str, tuple[int, int]]:
    return {step.stop: (step.waited_us, step.worked_us) for step in trace.steps()}


def traced() -> Traces:
    """One heartbeat: a has come up to 10 at 100, b at 400; given at 450; the part works from 460, the query from
    700.
    """
    traces = Traces(["a", "b"], ["part 1", "q"])
    traces.looked({"a": 5, "b": None}, {"a": 40, "b": None}, 50)
    traces.looked({"a": 12, "b": 3}, {"a": 100, "b": 90}, 150)
    traces.looked({"a": 15, "b": 10}, {"a": 420, "b": 400}, 450)
    assert traces.sent(10, 450) == 1
    traces.seen("part 1", 10, 460, 600, 7)
    traces.seen("q", 10, 700, 750, 5)
    traces.seen(SINK, 10, 750, 1_000, 5)
    return traces


def test_the_time_between_two_sightings_is_charged_to_the_later_one() -> None:
    traces = traced()
    (trace,) = traces.traces
    assert charged(trace) == {
        "a": (0, 0),
        "b": (300, 0),
        LOOP: (50, 0),
        "part 1": (10, 140),
        "q": (100, 50),
        SINK: (0, 250),
    }
    assert trace.took_us == 900 == sum(step.took_us for step in trace.steps())
    assert [(share.stop, share.share) for share in traces.shares()][1] == ("b", 300 / 900)
    slowest = traces.slowest()
    assert slowest is not None
    assert (slowest.stop, slowest.waited_us, slowest.worked_us) == ("b", 300, 0)


@dataclass(frozen=True)
class Came:
    upto: int
    began_us: int
    taken_us: int


def aged() -> Traces:
    """Tuples stamped 6 and 8 come on a, 7 on b; b is complete up to 8 when 11 has come, which is answered later."""
    traces = Traces(["a", "b"], ["q"])
    traces.looked({"a": 5, "b": 2}, {"a": 40, "b": None}, 50)
    traces.sent(2, 60)
    traces.seen("q", 2, 60, 70, work=Work(5, 60, 68))
    traces.seen(SINK, 2, 70, 80)
    traces.looked({"a": 9, "b": 8}, {"a": 100, "b": 400}, 450)
    lately = {
        "a": [Came(1, 0, 1), Came(6, 90, 100), Came(8, 150, 160), Came(9, 155, 160)],
        "b": [Came(7, 190, 200), Came(11, 380, 400)],
    }
    traces.sent(8, 450, lately)
    traces.seen("q", 8, 460, 900, 5, Work(300, 460, 860))
    traces.seen(SINK, 8, 900, 1_000)
    return traces


def test_the_age_of_an_answer_is_what_it_was_spent_on() -> None:
    traces = aged()
    (age,) = traces.ages()
    assert age == {
        "ingest": 10,
        "heartbeat": 400 - 153,
        "loop": 60,
        "planning": 100,
        "job": 300,
        "commit": 40,
        "delivery": 100,
    }
    began = (90 + 150 + 190) // 3
    assert sum(age.values()) == 1_000 - began
    again = Traces.from_json(json.loads(json.dumps(traces.to_json())))
    assert again.ages() == [age]
    assert [row["age_us"] for row in again.rows()] == [None, age]


def test_traces_of_an_earlier_version_have_no_age() -> None:
    said = aged().to_json()
    said["traces"] = [[*one[:3], {stop: seen[:3] for stop, seen in one[3].items()}] for one in said["traces"]]
    assert Traces.from_json(said).ages() == []


def test_the_age_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    Console(width=120).print(shown(aged(), 10))
    text = capsys.readouterr().out
    assert "the age of answers, over 1 heartbeats" in text
    assert "waiting for the heartbeat" in text
    Console(width=120).print(shown(traced(), 10))
    assert "the age of answers" not in capsys.readouterr().out, "nothing is known of when tuples came"


def test_stops_that_work_side_by_side_are_charged_once() -> None:
    traces = Traces([], ["part 1", "part 2", "q"])
    traces.sent(10, 100)
    traces.seen("part 1", 10, 110, 300)
    traces.seen("part 2", 10, 110, 350)
    traces.seen("q", 10, 360, 400)
    assert charged(traces.traces[0]) == {LOOP: (0, 0), "part 1": (10, 190), "part 2": (0, 50), "q": (10, 40)}


def test_a_heartbeat_is_one_until_it_goes_further() -> None:
    traces = Traces(["a"], ["q"])
    assert [traces.sent(instant, instant) for instant in (5, 5, 3, 8)] == [1, 1, 1, 2]


def test_one_epoch_can_take_several_heartbeats_and_one_heartbeat_several_epochs() -> None:
    traces = Traces([], ["q"])
    for instant in (5, 10, 20):
        traces.sent(instant, 100)
    traces.seen("q", 10, 110, 200, rows=3)
    traces.seen("q", 15, 210, 300, rows=4)
    traces.seen("q", 20, 310, 400, rows=5)
    first, second, third = (trace.seen["q"] for trace in traces.traces)
    assert (
        (first.began_us, first.ended_us, first.rows) == (second.began_us, second.ended_us, second.rows) == (110, 200, 3)
    )
    assert (third.began_us, third.ended_us, third.rows) == (210, 400, 9)


def test_a_stop_that_comes_no_further_has_not_begun() -> None:
    traces = Traces([], ["q"])
    traces.seen(SINK, 5, 10, 20)
    traces.sent(10, 100)
    traces.seen(SINK, 5, 110, 120)
    traces.seen("q", 10, 150, 200)
    traces.seen(SINK, 10, 250, 300)
    assert charged(traces.traces[0])[SINK] == (50, 50)


def test_a_stop_that_is_not_through_is_left_out() -> None:
    traces = Traces([], ["q"])
    traces.sent(10, 100)
    traces.seen("q", 9, 110, 120, rows=1)
    assert [step.stop for step in traces.traces[0].steps()] == [LOOP]
    with pytest.raises(AssertionError, match="not on the way"):
        traces.seen("r", 10, 0, 0)


def test_a_stream_that_was_moved_by_a_promise_or_by_asking_moved_when_that_was_seen() -> None:
    traces = Traces(["a", "fixed"], ["q"])
    traces.looked({"a": 1, "fixed": UNLIMITED}, {"a": 10}, 20)
    traces.looked({"a": 7, "fixed": UNLIMITED}, {"a": 10}, 500)  # nothing came since the last look
    traces.sent(7, 510)
    assert charged(traces.traces[0]) == {"a": (0, 0), LOOP: (10, 0)}, "and what is finished keeps nobody waiting"


def test_a_silent_stream_was_waited_for_until_the_others_were_let_go() -> None:
    traces = Traces(["a", "silent", "never"], ["q"])
    traces.looked({"a": 7, "silent": 2, "never": None}, {}, 100)
    traces.sent(7, 30_100)
    assert charged(traces.traces[0]) == {"a": (0, 0), "silent": (30_000, 0), "never": (0, 0), LOOP: (0, 0)}


def test_the_last_hundred_are_kept_and_survive_json() -> None:
    traces = traced()
    for instant in range(11, 11 + KEPT):
        traces.sent(instant, 1_000 + instant)
    traces.seen("q", 50, 2_000, 2_100, rows=1)
    assert len(traces.traces) == KEPT
    assert traces.traces[0].id == 2
    again = Traces.from_json(json.loads(json.dumps(traces.to_json())))
    assert again.rows() == traces.rows()
    assert again.way == ("a", "b", LOOP, "part 1", "q", SINK)


# from outside

WHY = {"q": Why("q", "10", "", None, "", (), ())}


def test_the_command_shows_each_heartbeat_and_where_time_goes(tmp_path: Path) -> None:
    status.write(tmp_path, WHY, {"q": traced()})
    shown = CliRunner().invoke(app, ["trace", "Q", "--directory", str(tmp_path)])
    assert shown.exit_code == 0, shown.output
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert ["up", "to", "a", "b", "the", "loop", "part", "1", "q", "the", "sink", "rows"] in lines
    assert ["1", "10", "0.000", "0.000", "0.000", "0.001", "0.001", "0.001", "5"] in lines
    assert "Most time goes at b: 33% of it" in shown.stdout
    as_json = CliRunner().invoke(app, ["trace", "q", "--directory", str(tmp_path), "--json"])
    (row,) = json.loads(as_json.stdout)
    assert (row["id"], row["instant"], row["took_us"]) == (1, "10", 900)
    assert row["stops"]["part 1"] == {"at_us": 500, "waited_us": 10, "worked_us": 140, "rows": 7}


def test_a_query_without_heartbeats_and_one_that_is_not_there(tmp_path: Path) -> None:
    status.write(tmp_path, WHY, {"q": Traces(["s"], ["q"], TimeDomain.TIMESTAMP)})
    assert "no heartbeat yet" in CliRunner().invoke(app, ["trace", "q", "--directory", str(tmp_path)]).stdout
    with pytest.raises(UserError, match="no-such-query"):
        status.read_traces(tmp_path, "r")
    with pytest.raises(UserError, match="no-engine"):
        status.read_traces(tmp_path / "nothing", "q")


def test_old_and_new_words_of_an_engine_are_both_understood(tmp_path: Path) -> None:
    status.write(tmp_path, WHY, {"q": traced()})
    assert status.read(tmp_path, "Q")[0]["complete"] == "10"
    said = json.loads((tmp_path / "status.json").read_text())
    del said["traces"], said["crc"]  # as an engine of before left it
    (tmp_path / "status.json").write_text(json.dumps(said))
    assert status.read(tmp_path, "q")[0]["query"] == "q"
    with pytest.raises(UserError, match="no-traces"):
        status.read_traces(tmp_path, "q")
