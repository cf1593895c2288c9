"""The yardstick: its data, its comparing of results, its tables and plots; and one tiny run of real workers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from math import inf
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from tools.places import DOCS
from typer.testing import CliRunner

from headgate.bench import answers, families, queries
from headgate.bench.report import WRITTEN
from headgate.bench.yardstick import growth, processes, tables
from headgate.bench.yardstick.compare import Agreement, compare
from headgate.bench.yardstick.data import BORDER_MS, Shape, dealt, pieces, tuples, write_json, write_parquet
from headgate.bench.yardstick.flink import find_flink
from headgate.bench.yardstick.measure import Measured, Quiet, Yardstick, measure, workers_for
from headgate.bench.yardstick.results import Columns, read_results
from headgate.bench.yardstick.ways import Inputs, Way, complete_to, flink_statements, reason_against, script_of
from headgate.bench.yardstick.worker import Worker, WorkerFailed
from headgate.bench.yardstick.workloads import WORKLOADS, Compared, Workload
from headgate.catalog.catalog import Catalog
from headgate.cli import app
from headgate.cql.definitions import define
from headgate.delta.lower import lower
from headgate.errors import UserError

W1, W2, W3, W3P, W4, SELECTION = WORKLOADS
SHAPE = Shape(10_000, keys=50, files=3)


# data


def test_tuples_come_out_of_order_within_the_bound_and_not_on_borders() -> None:
    instants = tuples(SHAPE, seed=1)["ts"].to_numpy()
    behind = np.maximum.accumulate(instants) - instants
    assert 400 < behind.max() <= SHAPE.disorder_ms
    assert (instants % BORDER_MS != 0).all()
    assert instants.max() == SHAPE.last_ms == 4_999
    assert tuples(Shape(10_000, disorder_ms=0), seed=1)["ts"].to_pylist() == sorted(instants.tolist())


def test_tuples_follow_from_the_seed() -> None:
    assert tuples(SHAPE, seed=1).equals(tuples(SHAPE, seed=1))
    assert not tuples(SHAPE, seed=1).equals(tuples(SHAPE, seed=2))
    assert set(tuples(SHAPE, seed=1)["k"].to_pylist()) == set(range(50))


def test_files_hold_every_tuple_once_with_every_digit(tmp_path: Path) -> None:
    table = tuples(SHAPE, seed=1)
    write_parquet(pieces(table, 3), tmp_path / "parquet")
    write_json(pieces(table, 3), tmp_path / "json")
    write_parquet(dealt(table, 2), tmp_path / "dealt")
    assert len(list((tmp_path / "parquet").iterdir())) == 3
    assert pq.read_table(tmp_path / "parquet").equals(table)
    lines = [line for file in sorted((tmp_path / "json").iterdir()) for line in file.read_text().splitlines()]
    assert pa.Table.from_pylist([json.loads(line) for line in lines], table.schema).equals(table)
    hands = [pq.read_table(file) for file in sorted((tmp_path / "dealt").iterdir())]
    assert [hand["ts"].to_pylist() for hand in hands] == [table["ts"].to_pylist()[first::2] for first in (0, 1)]


# questions


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_every_question_compiles(workload: Workload) -> None:
    catalog = Catalog()
    streams = {name: f"in/{name}" for name in workload.streams}
    define(script_of(workload, "parquet", streams, SHAPE, Path("out")), catalog)
    lower(catalog.queries["q"].plan)
    *declared, insert = flink_statements(workload, streams, SHAPE, Path("out"))
    assert all(f"'path' = 'file://in/{name}'" in text for name, text in zip(workload.streams, declared, strict=False))
    assert insert.startswith("INSERT INTO results SELECT")


def test_only_structured_streaming_cannot_express_a_window_at_every_tuple(tmp_path: Path) -> None:
    inputs = Inputs(tmp_path, SHAPE)
    inputs.write(["flink"])
    assert [one.name for one in WORKLOADS if reason_against("native", one, inputs)] == ["W3", "W3p"]
    assert all(reason_against("flink", one, inputs) is None for one in WORKLOADS)


# comparing


def columns(rows: Sequence[tuple[float, ...]], names: str = "k t m") -> Columns:
    """Columns of rows; all but `m` are whole numbers."""
    turned = zip(*rows, strict=True)
    return {
        name: np.array(column, float if name == "m" else np.int64)
        for name, column in zip(names.split(), turned, strict=True)
    }


BATCH = [(1, 10, 5.0), (1, 20, 6.0), (2, 10, 7.0), (2, 20, 7.0), (2, 30, 8.0)]
WINDOWS = Compared(("k", "t"), ("m",), netted=True)
EVERY = Compared(("k", "t"), ("m",), netted=True, every_change=True)


def against_batch(rows: Sequence[tuple[float, ...]], how: Compared = WINDOWS, complete: float = inf) -> Agreement:
    return compare(columns(rows), columns(BATCH), how, complete)


def test_equal_results_agree_in_any_order_up_to_rounding() -> None:
    assert against_batch(BATCH[::-1]) == Agreement(5)
    assert against_batch([(k, t, m * (1 + 1e-12)) for k, t, m in BATCH]).whole


def test_a_different_value_is_found() -> None:
    found = against_batch([*BATCH[:-1], (2, 30, 8.0001)])
    assert (found.alike, found.different, found.missing, found.extra) == (4, 1, 0, 0)
    assert not found.whole
    assert found.example == "different: k 2, t 30, m 8.0001"
    assert "1 DIFFERENT" in str(found)


def test_a_missing_and_an_extra_result_are_found() -> None:
    found = against_batch([*BATCH[1:], (3, 10, 1.0)])
    assert (found.alike, found.different, found.missing, found.extra) == (4, 0, 1, 1)
    assert found.example == "missing: k 1, t 10, m 5.0"
    assert against_batch([*BATCH, (3, 10, 1.0)]).example == "extra: k 3, t 10, m 1.0"


def test_a_repeated_result_may_be_left_out_where_it_is_netted() -> None:
    without = [row for row in BATCH if row != (2, 20, 7.0)]
    assert against_batch(without) == Agreement(4, repeated=1)
    assert against_batch(without, Compared(("k", "t"), ("m",))).missing == 1


def test_windows_that_are_open_may_be_held_back_but_not_wrong() -> None:
    assert against_batch(BATCH[:-1], complete=29) == Agreement(4, open=1)
    assert against_batch([*BATCH[:-1], (2, 30, 9.0)], complete=29).different == 1
    assert against_batch(BATCH[:-1], complete=30).missing == 1


def test_results_occur_as_often_on_both_sides() -> None:
    how = Compared(("k", "t"), ("m",))
    twice = [*BATCH, BATCH[0]]
    assert compare(columns(twice), columns(twice), how, inf) == Agreement(6)
    assert compare(columns(twice), columns(BATCH), how, inf).extra == 1
    assert compare(columns(BATCH), columns(twice), how, inf).missing == 1
    other = [*BATCH, (1, 10, 5.5)]
    assert compare(columns(twice), columns(other), how, inf).different == 1


def test_at_every_change_only_arrivals_are_compared() -> None:
    assert against_batch([*BATCH, (1, 15, 3.0)], EVERY) == Agreement(5, between=1)
    assert against_batch([*BATCH[:-1], (2, 30, 9.0)], EVERY).different == 1
    assert against_batch(BATCH[1:], EVERY).missing == 1
    once = compare(columns(BATCH), columns([*BATCH, BATCH[0]]), EVERY, inf)  # simultaneous tuples, one answer
    assert once == Agreement(5)


def test_no_results_at_all_are_all_missing() -> None:
    nothing = {name: np.empty(0, np.int64) for name in ("k", "t", "m")}
    assert compare(nothing, columns(BATCH), WINDOWS, inf).missing == 4  # one of the five is a repetition
    assert compare(nothing, nothing, WINDOWS, inf).whole


def test_results_are_read_with_their_instants_in_milliseconds(tmp_path: Path) -> None:
    times = pa.array([1_500_000, 2_000_000], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"k": [1, 2], "t": times}), tmp_path / "1.parquet")
    assert read_results(tmp_path, ["k", "t"])["t"].tolist() == [1_500, 2_000]
    pq.write_table(pa.table({"k": [1], "_time": [7]}), tmp_path / "1.parquet")
    assert read_results(tmp_path, ["t"])["t"].tolist() == [7]
    (tmp_path / "1.parquet").unlink()
    assert read_results(tmp_path, ["t"])["t"].tolist() == []


def test_flink_answers_to_the_end_and_structured_streaming_to_its_watermark() -> None:
    ends = {way: complete_to(way, W1, SHAPE) for way in ("headgate", "native", "flink")}
    assert ends == {"headgate": 4_999, "native": 4_499, "flink": inf}
    assert complete_to("native", W4, SHAPE) == 4_999


# tables and plots


def made_up(agreement: Agreement | None = None) -> Yardstick:
    found: dict[Workload, dict[Way, Measured]] = {
        W1: {
            "batch": Measured([1.0, 1.2, 0.9], 2**30),
            "native": Measured([10.0], 2**31),
            "flink": Measured(reason="no Flink"),
            "headgate": Measured([2.0, 2.1, 1.9], 2**30, agreement=agreement or Agreement(7, open=3)),
            "durable": Measured([2.5], 2**30, agreement=Agreement(7)),
        },
        W4: {
            "batch": Measured([2.0], 2**30),
            "native": Measured(reason="failed: out of memory", failure="out of memory\nat Heap.java:7"),
            "flink": Measured(reason="no Flink"),
            "headgate": Measured([4.0], None),
            "durable": Measured([4.0], None),
        },
    }
    return Yardstick(2_000_000, 3, 2, found, Quiet(100, 1, 5), "there is no Flink in nowhere")


def test_the_tables_say_medians_ratios_spread_and_reasons() -> None:
    text = tables.finding(made_up()).markdown()
    assert f"| {W1.question} | 2,000 k/s | 200 k/s | no Flink | 1,000 k/s | 0.50 | 5.00 |  |" in text
    assert f"| {W4.question} | 2,000 k/s | failed: out of memory | no Flink | 1,000 k/s | 0.50 |  |  |" in text
    assert f"| {W1.question} | 800 k/s | 0.80 |" in text
    assert "| W1 | 1.00 (0.90 to 1.20) | 10.00 (10.00 to 10.00) |  | 2.00 (1.90 to 2.10) |" in text
    assert "| W4 | 1,024 |  |  | unknown | unknown |" in text
    assert "| W1 |  |  | 7, 3 still open | 7 |" in text
    assert "2,000,000 tuples a stream, 3 turns, 2 cores. Flink: there is no Flink in nowhere." in text
    assert "used 2.5% of its cores, and the waiting workers 0.5%" in text


def test_a_question_is_told_as_soon_as_it_is_answered() -> None:
    told = tables.line(made_up(), W4)
    assert told.startswith("W4: batch 2,000 k/s, Structured Streaming failed: out of memory WRONG, Flink SQL no Flink")


def test_a_disagreement_and_a_failure_are_loud() -> None:
    measured = made_up(Agreement(6, different=1, example="different: k 1"))
    assert measured.wrong
    console = Console(record=True, width=200)
    tables.complain(console, measured)
    said = console.export_text()
    assert "W1 headgate DISAGREES with batch: 6, 1 DIFFERENT, 0 MISSING, 0 EXTRA, first different: k 1" in said
    assert "W4 Structured Streaming FAILED: out of memory\nat Heap.java:7" in said
    assert "6, 1 DIFFERENT" in tables.finding(measured).markdown()


def test_plots_of_the_yardstick_are_drawn() -> None:
    drawn = tables.plots(made_up())
    assert tuple(drawn) == tables.PLOTS
    speed = drawn["speed"]
    ElementTree.fromstring(speed)
    assert all(word in speed for word in ("batch", "Structured Streaming", "headgate", "2,000", "none"))
    assert "Flink" not in speed  # nothing was measured


def test_growth_has_a_plot_and_a_table_for_each_thing_that_grows() -> None:
    curves = growth.curves(100_000, 100_000)
    assert [curve.name for curve in curves] == list(growth.PLOTS)
    assert [point.at for point in curves[0].points] == [10_000, 10_000, 100_000, 100_000]
    assert {point.shape.rows for point in curves[0].points} == {100_000, 200_000}
    most_epochs = curves[2].points[-1]
    catalog = Catalog()
    define(script_of(most_epochs.workload, "parquet", {"a": "in"}, SHAPE, Path("out"), most_epochs.settings), catalog)
    assert catalog.settings.epoch_rows == 1_000
    assert (curves[1].points[-1].at, curves[1].points[-1].shape.rows) == (100_000, 200_000)
    for curve in curves:
        curve.costs["headgate, a"] = [(10, 1.5), (100, 3.0)]
        curve.peak_bytes[10] = 2**30
    assert (
        growth.line(curves[0]) == "Cost of a tuple by the length of the window: headgate, a 1.50 to 3.00 microseconds"
    )
    drawn = growth.plots(curves)
    assert tuple(drawn) == growth.PLOTS
    for svg in drawn.values():
        ElementTree.fromstring(svg)
        assert "microseconds a tuple" in svg
    text = growth.finding(curves, 100_000).markdown()
    assert "| keys | headgate, a | memory of headgate |" in text
    assert "| 10 | 1.50 | 1,024 MB |\n| 100 | 3.00 |  |" in text


def test_the_page_has_a_place_for_the_figures_and_shows_every_plot() -> None:
    page = (DOCS / "performance.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- figures: ([a-z-]+) -->", page)) == sorted(WRITTEN)
    plots = [*tables.PLOTS, *growth.PLOTS, queries.NAME, families.NAME, answers.NAME]
    assert re.findall(r"\]\(images/performance-([a-z-]+)\.svg\)", page) == plots
    assert {file.stem.removeprefix("performance-") for file in (DOCS / "images").glob("performance-*.svg")} <= {*plots}


# workers


TALKER = """
from headgate.bench.yardstick.serve import serve
def do(job):
    print("what a library prints")
    return {"twice": 2 * job["n"]} if job["n"] < 10 else exit(3)
serve(lambda: do)
"""


def test_a_worker_does_jobs_says_what_failed_and_starts_again(tmp_path: Path) -> None:
    worker = Worker([sys.executable, "-c", TALKER], tmp_path / "log")
    try:
        assert worker.do({"n": 2})["twice"] == 4
        first = worker.id
        with pytest.raises(WorkerFailed, match="KeyError: 'n'"):
            worker.do({})
        assert worker.do({"n": 3})["twice"] == 6
        assert worker.id == first
        with pytest.raises(WorkerFailed, match="the process ended with 3\nwhat a library prints"):
            worker.do({"n": 10})
        assert worker.do({"n": 4})["twice"] == 8
        assert worker.id != first
    finally:
        worker.stop()
    assert worker.id is None


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="there is no /proc")
def test_memory_and_time_of_a_process_with_its_children() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    eat = "x = bytearray(100 << 20); [i * i for i in range(10**6)]; print('full', flush=True); del x; input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, eat], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert len(processes.tree(process.pid)) == 2
        assert processes.processor_s(process.pid) > 0
        assert (processes.peak_bytes(process.pid) or 0) > 100 << 20
        process.communicate("\n")


def test_a_missing_flink_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        find_flink(tmp_path)
    assert raised.value.code == "no-flink"
    assert "make flink" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--work", "W9"], "is not one of W1, W2"),
        (["--only", "storm"], "is not one of batch"),
        (["--part", "replay"], "is not one of start"),
        (["--part", "epochs", "--write", "docs"], "yardstick, growth, answers, queries"),
    ],
)
def test_wrong_choices_are_refused_by_name(arguments: list[str], complaint: str) -> None:
    done = CliRunner().invoke(app, ["bench", *arguments], terminal_width=200)
    assert done.exit_code == 2
    assert complaint in " ".join(done.output.split())


@pytest.mark.spark
def test_real_workers_agree_on_a_tiny_stream(tmp_path: Path) -> None:
    ways: list[Way] = ["batch", "headgate"]
    inputs = Inputs(tmp_path, Shape(4_000, keys=20, files=2))
    inputs.write(ways)
    with workers_for(ways, tmp_path / "logs", None) as workers:
        found = measure(W3, workers, inputs, 1, Quiet(), lambda _: None)
    headgate = found["headgate"]
    assert found["batch"].failure is headgate.failure is None
    assert headgate.agreement is not None
    assert headgate.agreement.whole
    assert headgate.agreement.alike > 3_500
    assert (headgate.peak_bytes or 0) > 2**27
