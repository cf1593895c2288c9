"""The measuring tools of the papers' experiments, on numbers worked out by hand. Starts no JVM."""

from __future__ import annotations

import re
from math import inf, isnan
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from xml.etree import ElementTree

import numpy as np
import pytest
from tools.places import DOCS

from headgate.bench.charts import Axis, bar_chart, line_chart, short_number
from headgate.bench.finding import Finding, Grid, with_section
from headgate.bench.papers import consistency, drive, report
from headgate.bench.papers.account import account
from headgate.bench.papers.arrivals import SECOND_US, Arrival, in_order, poisson
from headgate.bench.papers.drive import Answers, Simulated
from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.delta.lower import lower
from headgate.engine import Engine
from headgate.heartbeat.clock import ManualClock
from headgate.schedule.loop import Epoch

SVG = "{http://www.w3.org/2000/svg}"


# arrivals


def test_poisson_arrivals_have_the_rate_and_its_spread() -> None:
    instants = poisson(50, 2_000, seed=1)
    gaps = np.diff(instants)
    assert len(instants) / 2_000 == pytest.approx(50, rel=0.02)
    assert (gaps >= 0).all()
    assert instants[-1] < 2_000 * SECOND_US
    assert gaps.std() / gaps.mean() == pytest.approx(1, rel=0.03)  # as long as they are, so different they are


def test_poisson_arrivals_follow_from_the_seed() -> None:
    assert poisson(5, 100, seed=1).tolist() == poisson(5, 100, seed=1).tolist() != poisson(5, 100, seed=2).tolist()


def test_arrivals_of_several_streams_come_in_order() -> None:
    one, two = ([Arrival(at, name, [(at,)]) for at in instants] for name, instants in (("a", (1, 5)), ("b", (2, 3, 9))))
    assert [(arrival.at_us, arrival.stream) for arrival in in_order(one, two)] == [
        (1, "a"),
        (2, "b"),
        (3, "b"),
        (5, "a"),
        (9, "b"),
    ]


# the account


def test_latency_queue_and_idle_waiting() -> None:
    """Two tuples wait from 10 and 20 on and are answered by a run from 30 to 40: idle-waiting is 20 of 100."""
    found = account([10, 20], [40, 40], [(30, 40)], 0, 100)
    assert (found.mean_latency, found.answered, found.unanswered, found.peak) == (25, 2, 0, 2)
    assert found.idle_share == pytest.approx(0.2)


def test_time_without_tuples_is_not_spent_waiting() -> None:
    assert account([10], [20], [(10, 20)], 0, 100).idle_share == 0


def test_running_without_end_is_no_idle_waiting_although_tuples_wait() -> None:
    found = account([10, 15], [60, 90], [(5, 40), (40, 60), (60, 90)], 0, 100)
    assert found.idle_share == 0
    assert found.peak == 2


def test_what_is_never_answered_waits_until_the_end() -> None:
    found = account([10, 50], [inf, 60], [(55, 60)], 0, 100)
    assert (found.answered, found.unanswered, found.peak) == (1, 1, 2)
    assert found.idle_share == pytest.approx(0.85)  # from 10 to 55, and from 60 to 100


def test_only_the_span_that_was_asked_for_counts() -> None:
    found = account([10, 50], [30, 60], [(55, 60)], 20, 70)
    assert (found.mean_latency, found.answered) == (10, 1)
    assert found.idle_share == pytest.approx(
        (10 + 5) / 50
    )  # the first still waits from 20 to 30, the second from 50 to 55


def test_leaving_and_coming_at_one_instant_is_no_longer_queue() -> None:
    assert account([10, 20], [20, 30], [(10, 30)], 0, 40).peak == 1


def test_no_tuple_at_all() -> None:
    found = account([], [], [], 0, 10)
    assert isnan(found.mean_latency)
    assert (found.answered, found.idle_share, found.peak) == (0, 0, 0)


# the drive


class Stopwatch:
    """Stands in for the computer's clock: it moves only when something takes time."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Worker:
    """Stands in for an engine: a step takes 15 ms and answers what was stamped before it, a push takes 1 ms."""

    def __init__(self, watch: Stopwatch, clock: ManualClock) -> None:
        self.watch, self.clock = watch, clock
        self.waiting: list[tuple[int, int]] = []
        self.answers: Answers | None = None
        self.stamps: list[int] = []
        self._core = SimpleNamespace(asking=SimpleNamespace(next_us=None))
        self._running = SimpleNamespace(tidy_pause_us=0)

    def push(self, stream: str, rows: list[tuple[int]]) -> None:
        self.stamps.append(self.clock.now_us())
        self.waiting += [(self.clock.now_us(), number) for (number,) in rows]
        self.watch.seconds += 0.001

    def step(self) -> list[Epoch]:
        ready = [number for stamp, number in self.waiting if stamp < self.clock.now_us()]
        self.waiting = [one for one in self.waiting if one[1] not in ready]
        if not ready:
            return []
        assert self.answers is not None
        self.answers.out.extend(ready)
        self.watch.seconds += 0.015
        return [Epoch("q", 0, 1)]


def driven(monkeypatch: pytest.MonkeyPatch, instants: list[int]) -> tuple[Simulated, Worker]:
    watch, clock = Stopwatch(), ManualClock(1_000)
    monkeypatch.setattr(drive, "perf_counter", watch)
    worker = Worker(watch, clock)
    arrivals = iter([Arrival(at_us, "s", [(number,)]) for number, at_us in enumerate(instants)])
    simulated = Simulated(cast(Engine, worker), clock, arrivals, lambda arrival: [row[0] for row in arrival.rows])
    worker.answers = simulated.answers
    return simulated, worker


def test_the_clock_moves_by_what_a_step_took_and_what_came_meanwhile_has_its_own_instant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulated, worker = driven(monkeypatch, [10_000, 20_000, 500_000])
    simulated.drive(1_000_000)
    assert worker.stamps == [11_000, 21_000, 501_000]  # on a clock that began at 1,000; the second came during a step
    answered = {number: round(at_us, -1) for number, at_us in simulated.answers.answered.items()}
    assert answered == {
        0: 26_000,
        1: 41_000,
        2: 516_000,
    }  # pushed for 1 ms and run for 15, or run right after the first
    assert simulated.now_us == 1_000_000
    assert simulated.answers.account(0, 1_000_000).peak == 2


def test_a_drive_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = driven(monkeypatch, [10_000, 20_000, 500_000])
    whole.drive(1_000_000)
    turns, _ = driven(monkeypatch, [10_000, 20_000, 500_000])
    for end_us in range(100_000, 1_000_001, 100_000):
        turns.drive(end_us)
    assert turns.answers.answered == whole.answers.answered


def test_the_engine_looks_when_it_wants_to_although_nothing_came(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated, worker = driven(monkeypatch, [10_000])
    looked: list[int] = []
    simulated.look = lambda: looked.append(simulated.now_us)
    worker._core.asking.next_us = 301_000
    simulated.drive(400_000)
    assert [round(at_us, -3) for at_us in looked] == [11_000, 26_000, 300_000]


# charts


def test_numbers_are_short() -> None:
    assert [short_number(value) for value in (0, 0.05, 7.5, 120, 12_000, 3_000_000)] == [
        "0",
        "0.05",
        "7.5",
        "120",
        "12,000",
        "3M",
    ]


def texts(svg: str) -> set[str | None]:
    return {text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")}


def test_a_line_chart_has_its_points_and_words() -> None:
    series: dict[str, list[tuple[float, float]]] = {"one": [(0, 1), (10, 100)], "gap": [(0, 0), (5, float("nan"))]}
    drawn = line_chart("T & t", Axis("x"), Axis("y", log=True), series)
    assert {"T & t", "x", "y", "one", "gap", "1", "10", "100"} <= texts(drawn)
    assert drawn == line_chart("T & t", Axis("x"), Axis("y", log=True), series), (
        "so that a page changes only with its figures"
    )
    points = re.findall(r'<use [^>]*x="([0-9.]+)" y="([0-9.]+)" style="fill: #b3541e', drawn)
    assert len(points) >= 2, "neither nothing on a logarithmic axis nor what is no number"
    assert float(points[0][0]) < float(points[1][0])
    assert float(points[0][1]) > float(points[1][1])
    assert texts(line_chart("T", Axis("x", ticks=(1, 4)), Axis("y"), {"one": [(1, 2), (4, 3)]})) >= {"1", "4", "0"}


def test_bars_carry_their_values() -> None:
    drawn = bar_chart("T", Axis("y"), ["a", "b\nc"], {"one": [10, 20], "two": [5, float("nan")]})
    assert {"10", "20", "5", "none", "a", "b", "c", "one", "two"} <= texts(drawn)


# what is written


def test_figures_are_written_between_their_markers(tmp_path: Path) -> None:
    page = tmp_path / "papers.md"
    page.write_text("before\n<!-- figures: one -->\nold\n<!-- end of figures: one -->\nafter\n", encoding="utf-8")
    Finding("one", [Grid("T", ("", "n"), [("a", "1")])], {"c": "<svg/>"}, ["Said \\1."]).write(tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "| a | 1 |" in text
    assert "Said \\1." in text
    assert "old" not in text
    assert text.startswith("before\n<!-- figures: one -->")
    assert text.endswith("<!-- end of figures: one -->\nafter\n")
    assert (tmp_path / "images" / "papers-c.svg").read_text(encoding="utf-8") == "<svg/>"


def test_a_page_without_the_place_is_refused() -> None:
    with pytest.raises(ValueError, match="no place"):
        with_section("nothing", "one", "text")


def test_every_query_of_the_page_compiles() -> None:
    catalog = Catalog()
    for block in re.findall(r"```cql\n(.*?)```", (DOCS / "papers.md").read_text(encoding="utf-8"), re.DOTALL):
        define(block, catalog)
    assert set(catalog.queries) == {"merged", "full_flow"}
    for query in catalog.queries.values():
        lower(query.plan)


def test_the_page_has_a_place_for_every_experiment_and_shows_every_plot() -> None:
    from headgate.bench.papers.report import EXPERIMENTS, PLOTS

    page = (DOCS / "papers.md").read_text(encoding="utf-8")
    assert [name for name in EXPERIMENTS if f"<!-- figures: {name} -->" not in page] == []
    on_page = re.findall(r"\]\(images/papers-([a-z-]+)\.svg\)", page)
    assert on_page == [plot for plots in PLOTS.values() for plot in plots]
    assert {file.stem.removeprefix("papers-") for file in (DOCS / "images").glob("papers-*.svg")} <= set(on_page)


# consistency


def test_distances_between_consistent_states_in_bins() -> None:
    assert consistency.histogram([1, 10, 11, 50, 51, 501, 10_000]) == [2, 1, 1, 1, 0, 0, 2]


def test_all_ways_get_the_same_batches_with_pauses() -> None:
    come = consistency.CYCLE * 8
    some = consistency.batches(come, ["s1", "s2"], seed=1)
    assert some == consistency.batches(come, ["s1", "s2"], seed=1)
    assert some[0].keys() == {"s1", "s2"}
    assert [bool(batch) for batch in some] == list(come)
    stamps = [at for batch in some for at, _ in batch.get("s1", [])]
    assert stamps == sorted(stamps)
    assert all(len(rows) == consistency.ROWS for batch in some for rows in batch.values())


def test_what_hits_a_turn_of_all_ways_or_some_turn_of_one_does_not_count() -> None:
    quiet = {
        "one": {0: [1.0] * 5, 1: [0.5] * 5},
        "two": {0: [2.0] * 5, 1: [0.5] * 5},
        "three": {0: [1.0] * 5, 1: [0.5] * 5},
    }
    slow_turns = [1, 3, 1, 1, 9]
    disturbed = {
        way: {place: [took * by for took, by in zip(some, slow_turns, strict=True)] for place, some in places.items()}
        for way, places in quiet.items()
    }
    disturbed["one"][1][2] = 100.0
    expected = {"one": 1.5, "two": 2.5, "three": 1.5}
    assert consistency.of_a_cycle(quiet) == pytest.approx(expected)
    assert consistency.of_a_cycle(disturbed) == pytest.approx(expected)


def test_the_tables_show_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(way: str) -> consistency.Measured:
        took = 2.0 if way == "one fragment" else 1.0
        one = consistency.Measured(turns=20, known=15, cycle_busy_s=took, cycle_processor_s=took / 2, cycle_tuples=360)
        one.latency_s |= {0: [0.1, 0.2, 0.9], 1: [0.4 * took]}
        return one

    monkeypatch.setattr(consistency, "by_way", lambda *_: {way: measured(way) for way in consistency.WAYS})
    monkeypatch.setattr(consistency, "distances", lambda *_: [5, 30])
    monkeypatch.setattr(consistency, "detection_us", lambda *_: 2.0)
    found = consistency.measure(None, 16, lambda: None)  # type: ignore[arg-type]
    assert tuple(found.charts) == report.PLOTS["consistency"]
    tables = {one.title: {str(row[0]): row[1:] for row in one.rows} for one in found.grids}
    assert set(tables["Throughput, against none"]["one fragment"]) == {"0.50"}
    assert set(tables["Throughput by processor time, against none"]["draining"]) == {"1.00"}
    assert set(tables["Mean latency in milliseconds"]["none"]) == {"300"}
    assert set(tables["Mean latency in milliseconds"]["one fragment"]) == {"500"}
    assert "1.00 times the throughput" in found.remarks[0]


def test_every_query_of_the_experiment_has_the_stages_that_it_should() -> None:
    from headgate.catalog.entries import Query
    from headgate.compile import compile_query

    stages = {}
    for name, text in (consistency.QUERIES | consistency.CHAINS).items():
        catalog = Catalog()
        define("".join(f"CREATE STREAM s{number} (k INT, j INT, v INT);" for number in (1, 2, 3, 4)), catalog)
        (query,) = define(f"SET consistency = 'none'; CREATE QUERY q AS {text} EMIT EARLY", catalog)[1:]
        assert isinstance(query, Query)
        stages[name] = len(compile_query(query, catalog))
    assert stages == {"Q1": 1, "Q2": 2, "Q3": 3, "Q4": 4, "3 inputs": 2, "4 inputs": 3}


def test_counting_active_parts_costs_the_same_however_many_there_are() -> None:
    assert consistency.detection_us("multiset", 5_000) < consistency.detection_us("scan", 5_000)
