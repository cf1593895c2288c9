"""Arrival to answer: how ages are counted, and what is said of them. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from headgate.bench import answers
from headgate.bench.answers import Run
from headgate.bench.finding import Finding, has_place
from headgate.demo import behind_heartbeats, behind_sentence
from headgate.observe.trace import PARTS, SINK, Traces, Work

DOCS = Path(__file__).parents[2] / "docs"


def a_run(age_us: int) -> Run:
    """Tuples every 10 ms, answered in pairs that long after the second one came."""
    run = Run(began_us=1_000_000)
    for number in range(0, 400, 2):
        came_us = number * 10_000
        run.sent += [(came_us, came_us), (came_us + 10_000, came_us + 10_000)]
        run.out.append((came_us + 10_000 + age_us, came_us + 10_000))
    run.parts = [dict.fromkeys(PARTS, 1_000)]
    return run


def test_a_tuple_is_as_old_as_the_first_answer_that_counts_it() -> None:
    ages = a_run(50_000).ages()
    assert len(ages) == 300, "those of the warm-up do not count"
    assert sorted(set(ages)) == [0.05, 0.06]


def test_a_tuple_without_an_answer_is_not_taken_for_a_quick_one() -> None:
    run = a_run(50_000)
    run.sent.append((4_000_000, 4_000_000))
    run.out.append((4_100_000, 100))  # an answer that goes back counts nothing new
    assert len(run.ages()) == 300
    runs = dict.fromkeys(answers.WAYS, run)
    assert answers.latencies(runs).rows[0][-1] == "300 of 301"
    assert answers.quantiles(Run()) == [float("inf")] * 3


def test_what_is_said_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = {(fed, way): a_run(50_000 if way == "headgate" else 100_000) for fed, way in answers.WAYS}
    finding = Finding(
        "answers", [answers.latencies(runs), answers.breakdown(runs)], {}, answers.remarks(runs), "performance"
    )
    page = tmp_path / "performance.md"
    page.write_text("<!-- figures: answers --><!-- end of figures: answers -->")
    answers.show(Console(width=160), finding, tmp_path)
    assert "0.52" in capsys.readouterr().out
    assert "| waiting for the heartbeat | 1 ms | 1 ms |" in page.read_text()
    assert (tmp_path / "images" / "performance-answers.svg").read_text().startswith("<?xml")
    assert has_place((DOCS / "performance.md").read_text(), answers.NAME)


def test_the_demo_says_how_far_behind_it_is() -> None:
    traces = Traces(["a"], ["q"])
    traces.sent(1, 10)
    traces.seen("q", 1, 10, 20)
    traces.sent(2, 1_000_000, {"a": [_Came(2, 700_000, 800_000)]})
    traces.seen("q", 2, 1_000_000, 1_500_000, 1, Work(100_000, 1_000_000, 1_400_000))
    traces.seen(SINK, 2, 1_500_000, 1_600_000)
    found = behind_heartbeats(traces)
    assert found == pytest.approx([0.8])
    said = behind_sentence({"q": found, "r": []})
    assert "0.8 s later on average (q 0.8 s)" in said
    assert "The aim is 1 s" in said
    assert "no answer was followed" in behind_sentence({"q": []})


class _Came:
    def __init__(self, upto: int, began_us: int, taken_us: int) -> None:
        self.upto, self.began_us, self.taken_us = upto, began_us, taken_us
