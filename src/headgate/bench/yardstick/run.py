"""Runs the yardstick and its growth: makes the data, starts the workers, prints and writes what they found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from headgate.bench.finding import Finding, has_place
from headgate.bench.layout import progress_bar
from headgate.bench.yardstick import growth, tables
from headgate.bench.yardstick.data import Shape
from headgate.bench.yardstick.flink import Flink, find_flink
from headgate.bench.yardstick.measure import Measured, Quiet, Yardstick, measure, workers_for
from headgate.bench.yardstick.ways import WAYS, Inputs, Way, cores
from headgate.bench.yardstick.worker import WorkerFailed
from headgate.bench.yardstick.workloads import WORKLOADS, Workload
from headgate.errors import UserError
from headgate.spark.session import check_java

ROWS = 2_000_000
TURNS = 3
FLINK = Path(".venv-flink")


@dataclass(frozen=True, slots=True)
class Options:
    """What the user chose."""

    rows: int | None = None
    turns: int | None = None
    workloads: tuple[Workload, ...] = WORKLOADS
    ways: tuple[Way, ...] = WAYS
    largest: int = growth.LARGEST
    flink: Path = FLINK
    docs: Path | None = None
    """The folder of the documentation, if figures are to be written there."""


def measure_speed(console: Console, folder: Path, options: Options) -> bool:
    """Runs the yardstick; returns whether all results agreed and nothing failed."""
    check_place(options, tables.NAME)
    flink, said = _flink(options) if "flink" in options.ways else (None, "not asked")
    ways = tuple(way for way in options.ways if way != "flink" or flink is not None)
    inputs = Inputs(folder, Shape(options.rows or ROWS))
    inputs.write(ways)
    turns, quiet = options.turns or TURNS, Quiet()
    steps = len(options.workloads) * ((1 + turns) * len(ways) + 1)
    whole = Yardstick(inputs.shape.rows, turns, cores(), {}, quiet, said)
    with workers_for(ways, folder / "logs", flink) as workers, _progress("yardstick", steps) as now:
        for workload in options.workloads:
            found = whole.found[workload] = measure(workload, workers, inputs, turns, quiet, now)
            if "flink" in options.ways and flink is None:
                found["flink"] = Measured(reason="no Flink")
            console.print(tables.line(whole, workload), markup=False, soft_wrap=True)
    console.print()
    _publish(console, tables.finding(whole), options.docs, lambda: tables.plots(whole))
    tables.complain(console, whole)
    return not whole.wrong


def measure_growth(console: Console, folder: Path, options: Options) -> bool:
    """Measures how the cost of a tuple grows; returns whether nothing failed."""
    check_place(options, growth.NAME)
    rows, turns = options.rows or growth.ROWS, options.turns or 1
    curves = growth.curves(rows, options.largest)
    with (
        workers_for(growth.WAYS, folder / "logs", None) as workers,
        _progress("growth", growth.steps(curves, turns)) as now,
    ):
        try:
            growth.warm_up(curves, workers, folder / "warm", now)
        except WorkerFailed as error:
            raise UserError("worker-failed", "an engine could not be warmed up", detail=str(error)) from None
        for curve in curves:
            growth.grow(curve, workers, folder / "point", turns, now)
            console.print(growth.line(curve), markup=False, soft_wrap=True)
    console.print()
    _publish(console, growth.finding(curves, rows), options.docs, lambda: growth.plots(curves))
    growth.complain(console, curves)
    return not any(curve.failures for curve in curves)


def check_place(options: Options, name: str) -> None:
    """Raises an error if something is missing without which all the measuring would be in vain."""
    check_java()
    if options.docs is not None:
        page = options.docs / f"{tables.PAGE}.md"
        if not page.is_file() or not has_place(page.read_text(encoding="utf-8"), name):
            raise UserError(
                "no-page",
                f'"{page}" has no place for the figures "{name}"',
                hint="--write takes the folder docs of the sources.",
            )


def _flink(options: Options) -> tuple[Flink | None, str]:
    """Flink, with its version, or none, with the reason."""
    try:
        found = find_flink(options.flink)
    except UserError as error:
        return None, f"{error.message}. {error.hint or error.detail or ''}".strip()
    return found, found.version


def _publish(console: Console, finding: Finding, docs: Path | None, plots: Callable[[], dict[str, str]]) -> None:
    finding.show(console)
    if docs is not None:
        finding.charts.update(plots())
        finding.write(docs)


@contextmanager
def _progress(name: str, steps: int) -> Iterator[Callable[[str], None]]:
    """A progress bar; what it yields is told what comes next."""
    with progress_bar() as bar:
        task = bar.add_task(name, total=steps)
        begun = False

        def now(what: str) -> None:
            nonlocal begun
            bar.update(task, advance=int(begun), description=f"{name}: {what}")
            begun = True

        yield now
