"""Measures how the cost of a tuple grows: with the window, the number of keys, the number of epochs, and disorder.

Each point is a replay in a warm process, as in the yardstick, of headgate and, where it means something, of the batch
query. One thing grows, the rest stays.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from rich.console import Console

from headgate.bench.finding import Finding, Grid
from headgate.bench.yardstick.data import PER_MS, Shape
from headgate.bench.yardstick.serve import Answer
from headgate.bench.yardstick.ways import Inputs, Way, job_for
from headgate.bench.yardstick.worker import Worker, WorkerFailed
from headgate.bench.yardstick.workloads import Workload, average, windows

ROWS = 500_000
LARGEST = 1_000_000
KEYS = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
EPOCHS = (1, 10, 100, 1_000)
EPOCH_ROWS = 500
"""Tuples in the smallest epochs: of fewer, the number of epochs says nothing new."""

DISORDERS_MS = (1, 10, 100, 1_000, 10_000, 100_000)
WAYS: tuple[Way, ...] = ("headgate", "batch")
WARM_UPS = 2
SLIDES = 5
"""Slides in a window."""

CHANGES = "at every change"
SLIDING = f"every {SLIDES}th of the window"
LINES = (CHANGES, SLIDING)

NAME = "growth"
PLOTS = ("growth-window", "growth-keys", "growth-epochs", "growth-disorder")


@dataclass(frozen=True, slots=True)
class Point:
    """One replay: what grows, the stream, and the question."""

    at: float
    shape: Shape
    workload: Workload
    line: str
    """What the question is called in the plot."""

    ways: tuple[Way, ...] = WAYS
    epochs: int | None = None
    """About how many epochs are wanted; None: as headgate chooses."""

    @property
    def settings(self) -> str:
        """What headgate is told beyond the question."""
        return "" if self.epochs is None else f"SET epoch_rows = {max(1, self.shape.rows // self.epochs)};"


@dataclass(frozen=True, slots=True)
class Curve:
    """How the cost grows with one thing."""

    name: str
    title: str
    across: str
    """What grows."""

    points: list[Point]
    costs: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Microseconds a tuple, by line."""

    peak_bytes: dict[float, int] = field(default_factory=dict)
    """The most memory of headgate's process, by what grows."""

    failures: list[str] = field(default_factory=list)
    """Points that could not be measured, and why."""


def questions(length_s: int) -> dict[str, Workload]:
    """The average of the last tuples of each key at every change, and aggregates of a sliding window."""
    return {
        CHANGES: average("W3", "", length_s * 1_000, beside=False),
        SLIDING: windows("W2", "", length_s, length_s // SLIDES),
    }


def curves(rows: int, largest: int) -> list[Curve]:
    """All that is measured; `largest` is how many tuples live in the longest window, and how many keys there are."""
    minute = questions(50)
    lives = [live for live in (10**power for power in range(4, 10)) if live <= largest]
    return [
        Curve(
            PLOTS[0],
            "Cost of a tuple by the length of the window",
            "tuples in the window",
            [
                Point(live, Shape(max(rows, 2 * live)), workload, line)
                for live in lives
                for line, workload in questions(live // PER_MS // 1_000).items()
            ],
        ),
        Curve(
            PLOTS[1],
            "Cost of a tuple by the number of keys",
            "keys",
            [
                Point(keys, Shape(max(rows, 2 * keys), keys), workload, line)
                for keys in KEYS
                if keys <= largest
                for line, workload in minute.items()
            ],
        ),
        Curve(
            PLOTS[2],
            "Cost of a tuple by the number of epochs",
            "epochs",
            [
                Point(epochs, Shape(rows), minute[CHANGES], CHANGES, ("headgate",), epochs)
                for epochs in EPOCHS
                if rows // epochs >= EPOCH_ROWS
            ],
        ),
        Curve(
            PLOTS[3],
            "Cost of a tuple by disorder",
            "out of order by up to ms",
            [
                Point(disorder, Shape(rows, disorder_ms=disorder), workload, line)
                for disorder in DISORDERS_MS
                for line, workload in minute.items()
            ],
        ),
    ]


def steps(chosen: list[Curve], turns: int) -> int:
    """How many replays there are, with those that warm up."""
    warm_ups = WARM_UPS * len(WAYS) * len(LINES)
    return warm_ups + sum(turns * len(point.ways) for curve in chosen for point in curve.points)


def warm_up(chosen: list[Curve], workers: Mapping[Way, Worker], folder: Path, now: Callable[[str], None]) -> None:
    """Runs both questions in both ways until the JVMs have compiled what they need."""
    fewest = min(point.shape.rows for curve in chosen for point in curve.points)
    inputs = Inputs(folder, Shape(min(ROWS, fewest)))
    inputs.write(WAYS, ["a"])
    for _ in range(WARM_UPS):
        for line, workload in questions(50).items():
            for way in WAYS:
                now(f"warm-up {way}")
                _take(Point(0, inputs.shape, workload, line), way, workers[way], inputs)
    shutil.rmtree(folder)


def grow(curve: Curve, workers: Mapping[Way, Worker], folder: Path, turns: int, now: Callable[[str], None]) -> None:
    """Measures the points of a curve, one after another; `now` hears what comes next."""
    for point in curve.points:
        inputs = Inputs(folder, point.shape)
        inputs.write(point.ways, point.workload.streams)
        for way in point.ways:
            _measure(curve, point, way, workers[way], inputs, turns, now)
        shutil.rmtree(folder)


def _measure(
    curve: Curve,
    point: Point,
    way: Way,
    worker: Worker,
    inputs: Inputs,
    turns: int,
    now: Callable[[str], None],
) -> None:
    seconds = []
    at = point.at
    for _ in range(turns):
        now(f"{curve.across} {point.at:,.0f} {way}")
        try:
            answer = _take(point, way, worker, inputs)
        except WorkerFailed as error:
            curve.failures.append(f"{curve.across} {point.at:,.0f}, {way}, {point.line}: {error}")
            return
        seconds.append(answer["seconds"])
        if point.epochs is not None:
            at = answer["epochs"]
        if way == "headgate" and answer["peak_bytes"]:
            curve.peak_bytes[at] = max(curve.peak_bytes.get(at, 0), answer["peak_bytes"])
    line = curve.costs.setdefault(f"{way}, {point.line}", [])
    line.append((at, median(seconds) / point.shape.rows * 1e6))


def _take(point: Point, way: Way, worker: Worker, inputs: Inputs) -> Answer:
    """One replay."""
    out = inputs.folder / "out" / way / "results"
    shutil.rmtree(out.parent, ignore_errors=True)
    out.parent.mkdir(parents=True)
    return worker.do(job_for(way, point.workload, inputs, out, point.settings))


def finding(measured: list[Curve], rows: int) -> Finding:
    """The tables, without plots."""
    return Finding(
        NAME,
        [_grid(curve) for curve in measured],
        {},
        [
            f"{rows:,} tuples, or twice as many as there are in the window or keys.",
            *(f"Not measured: {failure.splitlines()[0]}" for curve in measured for failure in curve.failures),
        ],
        "performance",
    )


def line(curve: Curve) -> str:
    """What was found for one curve, as soon as it is known."""
    told = (
        f"{name} {min(costs):.2f} to {max(costs):.2f}"
        for name, costs in ((name, [cost for _, cost in points]) for name, points in curve.costs.items())
    )
    return f"{curve.title}: {'; '.join(told)} microseconds"


def complain(console: Console, measured: list[Curve]) -> None:
    """Prints every failure, so that nobody overlooks it."""
    for curve in measured:
        for failure in curve.failures:
            console.print(f"FAILED: {failure}", style="bold red", markup=False)


def _grid(curve: Curve) -> Grid:
    places = sorted({at for line in curve.costs.values() for at, _ in line})
    rows = []
    for at in places:
        costs = (next((f"{cost:.2f}" for place, cost in line if place == at), "") for line in curve.costs.values())
        peak = f"{curve.peak_bytes[at] / 2**20:,.0f} MB" if at in curve.peak_bytes else ""
        rows.append((f"{at:,.0f}", *costs, peak))
    return Grid(f"{curve.title}: microseconds", (curve.across, *curve.costs, "memory of headgate"), rows)


def plots(measured: list[Curve]) -> dict[str, str]:
    """A plot for each curve, as SVG texts; Matplotlib draws them."""
    from headgate.bench.charts import Axis, line_chart

    return {
        curve.name: line_chart(
            curve.title,
            Axis(curve.across, log=True, ticks=tuple(sorted({at for line in curve.costs.values() for at, _ in line}))),
            Axis("microseconds a tuple", log=True, ticks=_ticks([c for line in curve.costs.values() for _, c in line])),
            curve.costs,
        )
        for curve in measured
    }


def _ticks(values: list[float]) -> tuple[float, ...]:
    """Round numbers from below the smallest to above the largest value: 1, 2, 5, 10, ..."""
    if not values:
        return ()
    round_numbers = [step * 10.0**power for power in range(-4, 7) for step in (1, 2, 5)]
    below = max(number for number in round_numbers if number <= min(values))
    above = min(number for number in round_numbers if number >= max(values))
    return tuple(number for number in round_numbers if below <= number <= above)
