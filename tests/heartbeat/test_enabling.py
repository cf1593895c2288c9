"""Enabling timestamps: what the clock says of streams that say nothing, when it is asked, and that it never says too
much.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.duck import bound as plan_of
from tools.random_queries import cases

from headgate.catalog.catalog import Catalog
from headgate.catalog.declarations import Declarations, Enabling
from headgate.catalog.skew import SkewBound
from headgate.cql.definitions import define
from headgate.errors import UserError
from headgate.execute.next_event import next_event
from headgate.heartbeat.arrivals import of_one
from headgate.heartbeat.clock import ManualClock
from headgate.heartbeat.enabling import by_date, last_beat_us, since_largest
from headgate.heartbeat.in_force import all_rows
from headgate.heartbeat.manager import Heartbeats
from headgate.heartbeat.progress import progress
from headgate.log.log import Log
from headgate.plan.rewrites.driver import rewritten
from headgate.plan.spans import Span
from headgate.schedule.asking import Asking
from headgate.sources.streaming import caught_up
from headgate.testing.cases import Case
from headgate.testing.reference import evaluate
from headgate.ticks import TimeDomain

SECOND = 1_000_000
DAY = 86_400 * SECOND

INSIDE = "CREATE STREAM inside (v INT) TIMESTAMP INTERNAL;"
OUTSIDE = "CREATE STREAM outside (v INT, at TIMESTAMP) TIMESTAMP BY at;"
TICKS = "CREATE STREAM ticks (v INT);"


def managed(text: str) -> tuple[Heartbeats, Catalog]:
    catalog = Catalog()
    define(text, catalog)
    heartbeats = Heartbeats(catalog.declarations)
    heartbeats.model.clocks.timeout_us = catalog.settings.timeout_us
    for stream in (*catalog.streams.values(), *catalog.relations.values()):
        heartbeats.define(stream, now_us=0)  # type: ignore[arg-type]
    return heartbeats, catalog


def heartbeats_of(text: str) -> Heartbeats:
    return managed(text)[0]


def say(heartbeats: Heartbeats, stream: str, *stamps: int, now_us: int) -> None:
    heartbeats.arrived(stream, of_one(np.array(stamps)), now_us)


def complete(heartbeats: Heartbeats, *streams: str, now_us: int) -> int | None:
    return heartbeats.complete(streams, now_us)


# the rule


def test_largest_timestamp_and_the_time_since_less_the_skew() -> None:
    assert since_largest(1_000, came_us=50, read_us=80, within=100, tick_us=Fraction(1)) == 930
    assert since_largest(1_000, came_us=50, read_us=20, within=100, tick_us=Fraction(1)) == 900, "time does not go back"
    assert since_largest(7, came_us=0, read_us=5_999_999, within=2, tick_us=Fraction(2_000_000)) == 7, (
        "whole ticks have passed"
    )


def test_the_date_less_the_skew() -> None:
    assert by_date(1_000, (SkewBound(30), SkewBound(10, after_us=5)), latency_us=100) == 885


def test_the_last_multiple_of_a_period() -> None:
    assert [last_beat_us(now_us, 10) for now_us in (0, 9, 10, 29)] == [0, 0, 10, 20]


# on demand, every so often, not at all


def test_on_demand_the_heartbeat_moves_only_when_it_is_asked_for() -> None:
    heartbeats = heartbeats_of(INSIDE)
    heartbeats.enabling.set_date(DAY, now_us=0)
    assert complete(heartbeats, "inside", now_us=SECOND) is None
    assert heartbeats.enabling.ask("inside", now_us=SECOND)
    assert complete(heartbeats, "inside", now_us=SECOND) == DAY + SECOND
    assert complete(heartbeats, "inside", now_us=9 * SECOND) == DAY + SECOND
    assert not heartbeats.enabling.ask("inside", now_us=SECOND), "it is there already"
    assert heartbeats.enabling.ask("late(inside)", now_us=2 * SECOND)


def test_without_the_clock_an_instant_is_over_when_a_later_one_has_come() -> None:
    heartbeats = heartbeats_of(INSIDE + "HEARTBEAT NONE;")
    say(heartbeats, "inside", 100, now_us=0)
    assert not heartbeats.enabling.ask("inside", now_us=SECOND)
    assert complete(heartbeats, "inside", now_us=SECOND) == 99
    assert not heartbeats.enabling.is_beat_due("inside", now_us=SECOND)


def test_every_so_often_it_is_the_answer_of_the_last_multiple() -> None:
    heartbeats = heartbeats_of(
        INSIDE + OUTSIDE + "HEARTBEAT EVERY 10 SECONDS; HEARTBEAT OF outside EVERY 4 SECONDS WITHIN 1 SECOND;"
    )
    assert not heartbeats.enabling.ask("inside", now_us=25 * SECOND)
    assert heartbeats.enabling.beat("inside", now_us=25 * SECOND)
    assert complete(heartbeats, "inside", now_us=26 * SECOND) == 20 * SECOND
    assert not heartbeats.enabling.is_beat_due("inside", now_us=29 * SECOND)
    assert heartbeats.enabling.beat("inside", now_us=30 * SECOND)
    say(heartbeats, "outside", DAY, now_us=SECOND)
    assert heartbeats.enabling.beat("outside", now_us=11 * SECOND)
    assert complete(heartbeats, "outside", now_us=11 * SECOND) == DAY + 6 * SECOND, (
        "as of 8 s, 7 s after it came, less one"
    )


def test_a_stream_follows_the_clock_from_its_largest_timestamp_on() -> None:
    heartbeats = heartbeats_of(TICKS + "SET time_unit = '2 seconds'; HEARTBEAT OF ticks ON DEMAND WITHIN 3;")
    assert not heartbeats.enabling.ask("ticks", now_us=SECOND), "nothing has come"
    say(heartbeats, "ticks", 100, 90, now_us=2 * SECOND)
    say(heartbeats, "ticks", 95, now_us=9 * SECOND)
    assert complete(heartbeats, "ticks", now_us=9 * SECOND) is None, "nothing is estimated where the skew is declared"
    assert heartbeats.enabling.ask("ticks", now_us=9 * SECOND)
    assert complete(heartbeats, "ticks", now_us=60 * SECOND) == 100 + 3 - 3


def test_the_unit_is_that_of_when_it_was_declared() -> None:
    _, catalog = managed(
        "SET time_unit = '1 minute';"
        + TICKS
        + "HEARTBEAT OF ticks EVERY 5 SECONDS WITHIN 2 HOURS; SET time_unit = '1 second';"
    )
    assert catalog.declarations.enabling("ticks") == Enabling("every", 5 * SECOND, 120, Fraction(60 * SECOND))


def test_the_calendar_speaks_for_a_stream_that_never_spoke() -> None:
    text = INSIDE + OUTSIDE + "SKEW FROM CLOCK TO outside (WITHIN 5 SECONDS); LATENCY OF outside 1 SECOND;"
    heartbeats = heartbeats_of(text)
    assert not heartbeats.enabling.ask("outside", now_us=0), "no date is known"
    heartbeats.enabling.set_date(DAY, now_us=0)
    assert heartbeats.enabling.ask("outside", now_us=SECOND)
    assert heartbeats.enabling.ask("inside", now_us=SECOND)
    assert complete(heartbeats, "inside", "outside", now_us=SECOND) == DAY - 5 * SECOND
    heartbeats.enabling.set_date(DAY - 3_600 * SECOND, now_us=SECOND)
    assert not heartbeats.enabling.ask("outside", now_us=2 * SECOND), (
        "the date was put back, and so are the sources that follow it"
    )
    assert complete(heartbeats, "outside", now_us=2 * SECOND) == DAY - 5 * SECOND, "what was promised stays"


def test_what_is_paused_or_finished_is_not_asked() -> None:
    heartbeats = heartbeats_of(OUTSIDE + "HEARTBEAT OF outside ON DEMAND WITHIN 1;")
    say(heartbeats, "outside", DAY, now_us=0)
    assert heartbeats.enabling.ask("outside", now_us=2 * SECOND)
    heartbeats.pause("outside", now_us=3 * SECOND)
    assert not heartbeats.enabling.ask("outside", now_us=60 * SECOND)
    assert complete(heartbeats, "outside", now_us=60 * SECOND) == DAY + SECOND
    heartbeats.resume("outside", now_us=60 * SECOND)
    assert not heartbeats.enabling.ask("outside", now_us=61 * SECOND), "time counts from when it is read again"
    assert heartbeats.enabling.ask("outside", now_us=63 * SECOND)
    heartbeats.finish("outside")
    assert not heartbeats.enabling.ask("outside", now_us=99 * SECOND)


def test_a_stream_that_the_clock_speaks_for_is_waited_for_beyond_the_timeout() -> None:
    heartbeats = heartbeats_of(OUTSIDE + INSIDE + "HEARTBEAT OF outside ON DEMAND WITHIN 1 MINUTE; TIMEOUT 5 SECONDS;")
    heartbeats.enabling.set_date(DAY, now_us=0)
    assert complete(heartbeats, "inside", "outside", now_us=0) is None
    heartbeats.enabling.ask("inside", now_us=30 * SECOND)
    assert complete(heartbeats, "inside", "outside", now_us=30 * SECOND) == DAY + 30 * SECOND, "nothing ever came"
    say(heartbeats, "outside", DAY, now_us=0)
    assert complete(heartbeats, "inside", "outside", now_us=30 * SECOND) is None
    heartbeats.enabling.ask("outside", now_us=30 * SECOND)
    assert heartbeats.stream("outside").is_silent(30 * SECOND)
    assert complete(heartbeats, "inside", "outside", now_us=30 * SECOND) == DAY - 30 * SECOND


@settings(max_examples=200)
@given(st.integers(0, 10**6), st.integers(0, 3_000), st.integers(0, 2_000))
def test_nothing_is_late_that_was_only_unread(chance: int, within: int, lag: int) -> None:
    """A source keeps to its bound, a reader lags behind it by any time: no promise passes a tuple that is still to be
    read.
    """
    random, heartbeats = (
        Random(chance),
        heartbeats_of(OUTSIDE + f"HEARTBEAT OF outside ON DEMAND WITHIN {within} MICROSECONDS;"),
    )
    sent: list[tuple[int, int]] = []
    for now_us in range(1, 8_000, 200):
        promised = max((stamp + now_us - sent_us - within for sent_us, stamp in sent), default=DAY)
        sent.append((now_us, random.randint(promised + 1, max(promised + 1, DAY + now_us))))
    read = 0
    for now_us in range(1, 12_000, 150):
        read_us = now_us - random.randint(0, lag)
        while read < len(sent) and sent[read][0] <= read_us:
            stamp = sent[read][1]
            assert stamp > (complete(heartbeats, "outside", now_us=now_us) or 0)
            say(heartbeats, "outside", stamp, now_us=now_us)
            read += 1
        heartbeats.enabling.ask("outside", now_us, read_us)
    assert complete(heartbeats, "outside", now_us=12_000) is not None


# who is asked, and when


class Reader:
    """A source that knows as of when it has read everything."""

    def __init__(self, stream: str, read_us: int | None = None) -> None:
        self.inlet = SimpleNamespace(stream=SimpleNamespace(name=stream))
        self.read_us = read_us
        self.asked = 0

    def progress(self, clock: Any) -> int | None:
        self.asked += 1
        return self.read_us


def asking(heartbeats: Heartbeats, *readers: Reader) -> Asking:
    return Asking(ManualClock(), heartbeats, readers)  # type: ignore[arg-type]


BOTH = ["inside", "outside"]


def test_a_stream_whose_reader_does_not_know_where_it_is_is_not_taken_to_be_further() -> None:
    heartbeats = heartbeats_of(INSIDE + OUTSIDE + "HEARTBEAT OF outside ON DEMAND WITHIN 0;")
    reader = Reader("outside")
    asked = asking(heartbeats, reader)
    say(heartbeats, "outside", DAY, now_us=0)
    assert asked.ask(BOTH, 5 * SECOND), "the other one"
    assert complete(heartbeats, "outside", now_us=5 * SECOND) is None
    reader.read_us = 3 * SECOND
    assert asked.ask(BOTH, 6 * SECOND)
    assert complete(heartbeats, "outside", now_us=6 * SECOND) == DAY + 3 * SECOND


def test_a_reader_is_not_troubled_where_the_clock_says_nothing() -> None:
    heartbeats = heartbeats_of(INSIDE + OUTSIDE)
    reader = Reader("outside", 0)
    asking(heartbeats, reader).ask(BOTH, SECOND)
    assert not reader.asked


def test_nobody_moves_unless_it_makes_complete_what_waits() -> None:
    heartbeats = heartbeats_of(INSIDE + OUTSIDE + "HEARTBEAT OF outside ON DEMAND WITHIN 10 SECONDS;")
    heartbeats.enabling.set_date(DAY, now_us=0)
    asked = asking(heartbeats)
    say(heartbeats, "outside", DAY, now_us=0)
    say(heartbeats, "inside", DAY + 2 * SECOND, now_us=2 * SECOND)
    assert not asked.ask(BOTH, 4 * SECOND, due=DAY)
    assert asked.next_us == 10 * SECOND, "so long does the clock take"
    assert heartbeats.model.waiting.standing("inside", 4 * SECOND).complete == DAY + 2 * SECOND - 1
    assert asked.ask(BOTH, 10 * SECOND, due=DAY)
    assert complete(heartbeats, *BOTH, now_us=10 * SECOND) == DAY
    asked.beat(11 * SECOND)
    assert asked.next_us is None


def test_periods_are_kept_whoever_waits() -> None:
    heartbeats = heartbeats_of(INSIDE + "HEARTBEAT OF inside EVERY 100 MILLISECONDS;")
    asked = asking(heartbeats)
    asked.beat(250_000)
    assert complete(heartbeats, "inside", now_us=250_000) == 200_000
    assert asked.next_us == 300_000


def test_a_function_says_how_far_a_stream_is_once_what_was_there_has_been_read() -> None:
    heartbeats = heartbeats_of(TICKS)
    reader = Reader("ticks", 0)
    asked, answers = asking(heartbeats, reader), iter([None, 7, 5])
    asked.functions["ticks"] = lambda: next(answers)
    assert not asked.ask(["ticks"], SECOND)
    assert not asked.ask(["ticks"], 2 * SECOND), "7 was said now, and what is there now is not read"
    reader.read_us = 2 * SECOND
    assert asked.ask(["ticks"], 3 * SECOND)
    assert complete(heartbeats, "ticks", now_us=3 * SECOND) == 7
    reader.read_us = 4 * SECOND
    assert not asked.ask(["ticks"], 4 * SECOND), "a promise is not taken back"
    assert complete(heartbeats, "ticks", now_us=4 * SECOND) == 7
    asked.functions["ticks"] = lambda: 1 // 0
    assert not asked.ask(["ticks"], 5 * SECOND), "5 was under way"
    assert not asked.ask(["ticks"], 6 * SECOND)
    with pytest.raises(UserError, match="ticks") as failed:
        asked.raise_failed()
    assert "ZeroDivisionError" in failed.value.detail
    asked.raise_failed()
    asked.forget("ticks")
    assert not asked.functions


@pytest.mark.parametrize(
    "said,taken,known",
    [
        ({"batchId": 4, "durationMs": {}, "sources": [{"latestOffset": None, "endOffset": None}]}, 3, True),
        ({"batchId": 4, "durationMs": {}, "sources": [{"latestOffset": None, "endOffset": None}]}, 2, False),
        (
            {"batchId": 4, "durationMs": {}, "sources": [{"latestOffset": 9, "endOffset": None, "startOffset": 8}]},
            3,
            False,
        ),
        ({"batchId": 4, "durationMs": {"addBatch": 1}, "sources": [{"latestOffset": 9, "endOffset": 9}]}, 4, True),
        ({"batchId": 4, "durationMs": {"addBatch": 1}, "sources": [{"latestOffset": 9, "endOffset": 8}]}, 4, False),
        ({"batchId": 4, "durationMs": {"addBatch": 1}, "sources": [{"latestOffset": 9, "endOffset": 9}]}, 5, False),
        ({"batchId": 4, "durationMs": {"addBatch": 1}, "sources": [{"latestOffset": None, "endOffset": 9}]}, 4, False),
    ],
)
def test_when_spark_has_read_everything(said: dict[str, Any], taken: int, known: bool) -> None:
    assert caught_up(said, taken) is known


# what was declared


@pytest.mark.parametrize(
    "statement,code,words",
    [
        ("HEARTBEAT ON DEMAND WITHIN 5", "bad-bound", "one stream"),
        ("HEARTBEAT OF outside NONE WITHIN 5", "bad-bound", "NONE"),
        ("HEARTBEAT OF outside EVERY 0 SECONDS", "bad-bound", "longer"),
        ("HEARTBEAT OF outside EVERY 5 TICKS", "bad-bound", "engine's clock"),
        ("HEARTBEAT OF inside ON DEMAND WITHIN 5", "needs-no-bounds", "stamped on entry"),
        ("HEARTBEAT OF latent ON DEMAND", "needs-no-bounds", "order of arrival"),
        ("HEARTBEAT OF nobody ON DEMAND", "no-such-stream", "nobody"),
        ("HEARTBEAT OF outside SOMETIMES", "syntax", "ON DEMAND"),
        ("SKEW FROM CLOCK TO ticks (WITHIN 5)", "time-domains-differ", "integer time"),
        ("SKEW FROM CLOCK TO inside (WITHIN 5)", "needs-no-bounds", "stamped on entry"),
        ("SKEW FROM CLOCK TO outside (AFTER 5 TUPLES WITHIN 5)", "bad-bound", "tuples"),
        ("SKEW FROM CLOCK TO many SOURCE 'a' (WITHIN 5)", "bad-bound", "one source"),
    ],
)
def test_what_makes_no_sense_is_refused(statement: str, code: str, words: str) -> None:
    catalog = Catalog()
    define(INSIDE + OUTSIDE + TICKS, catalog)
    define(
        "CREATE STREAM latent (v INT) TIMESTAMP LATENT; CREATE STREAM many (d STRING, at TIMESTAMP) TIMESTAMP BY at SOURCE BY d",
        catalog,
    )
    with pytest.raises(UserError) as refused:
        define(statement, catalog)
    assert refused.value.code == code
    assert words in refused.value.message
    assert catalog.declarations == Declarations()


def test_a_stream_is_declared_with_its_heartbeat_and_one_of_the_name_clock_is_itself() -> None:
    _, catalog = managed(
        "CREATE STREAM s (v INT, at TIMESTAMP, mark BOOLEAN) HEARTBEAT BY mark TIMESTAMP BY at HEARTBEAT EVERY 5 WITHIN 2 DISORDER 1;"
        "CREATE STREAM clock (v INT, at TIMESTAMP) TIMESTAMP BY at HEARTBEAT NONE; SKEW FROM clock TO s (WITHIN 5);"
    )
    assert catalog.streams["s"].heartbeat == "mark"
    assert catalog.declarations.enabling("s") == Enabling("every", 5 * SECOND, 2 * SECOND)
    assert catalog.declarations.enabling("clock") == Enabling("none")
    assert not catalog.declarations.calendar
    define("DROP STREAM s", catalog)
    assert catalog.declarations.enabling("s") == Enabling()


def test_a_stream_that_the_clock_speaks_for_needs_no_timeout() -> None:
    catalog = Catalog()
    define(OUTSIDE + "CREATE STREAM other (v INT, at TIMESTAMP) TIMESTAMP BY at;", catalog)
    assert "needs a timeout" in str(progress(catalog, ["outside"]))
    define("SKEW FROM CLOCK TO outside (WITHIN 5)", catalog)
    assert str(progress(catalog, ["outside"])).endswith("or the clock does")
    assert "needs a timeout" in str(progress(catalog, ["outside", "other"]))
    define("HEARTBEAT OF outside NONE", catalog)
    assert "needs a timeout" in str(progress(catalog, ["outside"]))


def test_every_line_of_cql_declares_what_it_stands_beside() -> None:
    text = INSIDE + OUTSIDE + TICKS
    declared = "HEARTBEAT EVERY 2 SECONDS; HEARTBEAT OF outside ON DEMAND WITHIN 90 SECONDS; HEARTBEAT OF ticks EVERY 1 MINUTE WITHIN 3;"
    declared += "SKEW FROM CLOCK TO outside (WITHIN 1 MINUTE), (AFTER 1 SECOND WITHIN 5 SECONDS);"
    heartbeats = heartbeats_of(text + declared)
    lines = [row for row in all_rows(heartbeats.model) if row[0] == "the clock"]
    assert [row[1:4] for row in lines] == [
        ("inside", "every 2 seconds", "declared"),
        ("outside", "on demand, within 90 seconds of its largest timestamp and the time since", "declared"),
        ("outside", "on demand, within 1 minute, after 1 second within 5 seconds", "declared"),
        ("ticks", "every 1 minute, within 3 of its largest timestamp and the time since", "declared"),
    ]
    again = heartbeats_of(text + "".join(row[-1] for row in lines)).model.declarations
    assert again.calendar == heartbeats.model.declarations.calendar
    assert [again.enabling(name) for name in ("inside", "outside", "ticks")] == [
        heartbeats.model.declarations.enabling(name) for name in ("inside", "outside", "ticks")
    ]
    assert [row[2:] for row in all_rows(heartbeats_of(INSIDE).model)] == [
        ("on demand", "default", "HEARTBEAT OF inside ON DEMAND;")
    ]


# what is said of it


def said(heartbeats: Heartbeats, *streams: str, now_us: int = 5 * SECOND) -> str:
    return str(heartbeats.explain("q", streams, None, dict.fromkeys(streams, 1), now_us))


def test_why_says_that_the_clock_was_not_asked_or_when_it_will_speak_or_that_it_may_not() -> None:
    on_demand = heartbeats_of(INSIDE)
    assert (
        "its heartbeat comes from the clock on demand, which has not been asked yet\n  released by the next step"
        in said(on_demand, "inside")
    )
    every = heartbeats_of(INSIDE + "HEARTBEAT EVERY 2 SECONDS;")
    every.enabling.beat("inside", 5 * SECOND)
    assert "from the clock every 2 seconds, which was last asked at 1970-01-01 00:00:04" in said(every, "inside")
    assert "released by its next heartbeat, in 1.0 s" in said(every, "inside")
    none = heartbeats_of(INSIDE + "HEARTBEAT OF inside NONE;")
    assert "because the engine stamps it, and with HEARTBEAT NONE the clock says nothing of it" in said(none, "inside")
    assert "or by       the clock: HEARTBEAT OF inside ON DEMAND;" in said(none, "inside")


def test_why_says_how_long_the_clock_will_take_and_that_a_reader_lags() -> None:
    heartbeats = heartbeats_of(OUTSIDE + INSIDE + "HEARTBEAT OF outside ON DEMAND WITHIN 1 MINUTE; TIMEOUT 1 SECOND;")
    heartbeats.enabling.set_date(DAY, now_us=0)
    say(heartbeats, "outside", DAY, now_us=0)
    say(heartbeats, "inside", DAY + 4 * SECOND, now_us=4 * SECOND)
    assert "it is not known yet whether everything that it was sent has been read" in said(heartbeats, *BOTH)
    heartbeats.enabling.ask("outside", now_us=5 * SECOND, read_us=2 * SECOND)
    text = said(heartbeats, *BOTH)
    assert "held back by outside" in text
    assert "from the clock on demand, within 1 minute of its largest timestamp and the time since" in text
    assert "what it was sent in the last 3.0 s is not known to be read" in text
    assert "released by the clock, in 55.0 s, if all that is there has been read by then\n" in text
    assert "timeout" not in text, "it does not hold here"
    assert (
        "inside   complete up to 1970-01-02 00:00:03.999999+00:00, stamped by the engine, heartbeat from the clock on demand"
        in text
    )


# kept


def test_what_was_promised_is_saved_and_older_states_are_read() -> None:
    text = OUTSIDE + "HEARTBEAT OF outside ON DEMAND WITHIN 5 SECONDS;"
    heartbeats, catalog = managed(text)
    say(heartbeats, "outside", DAY, now_us=SECOND)
    heartbeats.enabling.ask("outside", now_us=3 * SECOND)
    state = json.loads(json.dumps(heartbeats.save()))
    again, _ = managed(text)
    again.restore(state, catalog)
    for manager in (heartbeats, again):
        assert complete(manager, "outside", now_us=3 * SECOND) == DAY - 3 * SECOND
        assert manager.enabling.ask("outside", now_us=7 * SECOND)
        assert complete(manager, "outside", now_us=7 * SECOND) == DAY + SECOND
    ((_, line),) = state["timelines"]["dict"]
    for attribute in ("enabled", "beat_us", "read_us", "came_us"):
        del line[attribute]
    again.restore(state, catalog)
    assert complete(again, "outside", now_us=3 * SECOND) is None
    assert again.enabling.ask("outside", now_us=7 * SECOND), "from when it was defined"
    assert complete(again, "outside", now_us=7 * SECOND) == DAY + 2 * SECOND


# when a query may have something to say


def spans(query: str) -> dict[str, set[Span]]:
    _, catalog = managed(INSIDE + TICKS + f"CREATE QUERY q AS {query}")
    return {stream: set(found) for stream, found in catalog.queries["q"].plan.ends.items()}


def test_windows_let_go_at_known_instants() -> None:
    assert spans("SELECT v FROM inside [RANGE 5 SECONDS]") == {"inside": {Span(), Span(5 * SECOND + 1, 5 * SECOND + 1)}}
    assert spans("SELECT ISTREAM(v) FROM inside [RANGE 5 SECONDS]") == {"inside": {Span()}}
    assert spans("SELECT v FROM ticks [ROWS 5]") == {"ticks": {Span()}}
    assert spans("SELECT v FROM ticks [RANGE 9 SLIDE 10]") == {"ticks": {Span(0, 9, 10), Span(10, 19, 10)}}
    assert spans("SELECT RSTREAM(v) FROM inside [RANGE 5 SECONDS] EVERY 1 SECOND") == {
        "inside": {Span(0, 5 * SECOND + 1, SECOND)}
    }
    inner = "SELECT DSTREAM(v) FROM ticks [RANGE 2]"
    assert spans(f"SELECT v FROM ({inner}) [RANGE 5] AS x") == {"ticks": {Span(), Span(3, 3), Span(6, 6), Span(9, 9)}}
    assert Span(0, 9, 10).first(stamped=11, after=3) == 20
    assert Span(6, 6).first(stamped=11, after=30) == 31


def test_what_is_due_follows_from_the_tuples_in_the_log(tmp_path: Path) -> None:
    log = Log(tmp_path)
    logs = {"s": log}
    leaves = {"s": frozenset([Span(), Span(6, 6)])}
    assert next_event(leaves, logs, reached=-1) is None
    log.append(pa.table({"_t": [10, 40, 41]}))
    assert next_event(leaves, logs, reached=-1) == 10
    assert next_event(leaves, logs, reached=10) == 16, "the window lets it go"
    assert next_event(leaves, logs, reached=16) == 40
    assert next_event(leaves, logs, reached=16, start=40) == 41, "what was there before is not seen"
    assert next_event(leaves, logs, reached=16, start=40, whole=["s"]) == 40, "but of a relation"
    assert next_event(leaves, logs, reached=46) == 47
    assert next_event(leaves, logs, reached=47) is None
    log.forget(lambda chunk: False)
    assert next_event(leaves, logs, reached=41) == 42, "it may be in a synopsis"
    assert next_event({"s": frozenset([Span(0, 60_000)])}, logs, reached=41) == 60, (
        "for a long time it is looked for now and then"
    )
    assert next_event(leaves, logs, reached=47) is None


@settings(max_examples=150)
@given(cases(depth=1))
def test_nothing_happens_that_was_not_expected(case: Case) -> None:
    """Whatever the definition of CQL says happens, happens at an instant that follows from a tuple, or from the first
    instant of all, at which an aggregate over nothing has a row and a fixed relation is there.
    """
    plan, origin = rewritten(plan_of(case)).plan, TimeDomain.INTEGER.origin
    expected = {
        instant
        for stream, found in plan.ends.items()
        for span in found
        for stamped in [*(one[0] for one in case.input[stream]), *([origin] if plan.opens else [])]
        for instant in range(stamped + span.least, min(stamped + span.most, case.horizon) + 1)
        if instant % span.grid == 0
    }
    instants = {change[0] for change in evaluate(case)[1]}
    assert instants - {origin} <= expected
