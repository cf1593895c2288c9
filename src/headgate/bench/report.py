"""Runs the parts of `headgate bench`: each in its own module, which says what it measures and how.

Whatever else the machine does moves all the seconds, and the ratios less: what is compared takes turns. Not measured:
a cluster, other state stores than Spark's default.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from rich.console import Console
from rich.table import Table

from headgate.bench import (
    answers,
    attackers,
    durability,
    epochs,
    families,
    low_level,
    managing,
    packets,
    profiling,
    queries,
    start,
)
from headgate.bench.layout import progress_bar
from headgate.bench.yardstick import run as yardstick
from headgate.spark.session import started

Part: TypeAlias = Literal[
    "start",
    "yardstick",
    "growth",
    "epochs",
    "answers",
    "queries",
    "families",
    "time",
    "durability",
    "packets",
    "low-level",
    "profile",
    "attackers",
]
PARTS: tuple[Part, ...] = get_args(Part)
"""In the order in which they run: first those that measure other processes, while this one has no JVM."""

USUAL: tuple[Part, ...] = ("start", "yardstick", "epochs", "answers", "time", "durability")
"""The parts that run if none is chosen."""

WRITTEN: tuple[Part, ...] = ("yardstick", "growth", "answers", "queries", "families", "packets", "low-level")
"""The parts whose tables and plots can be written to the documentation."""

STARTS = 3


def report(
    console: Console, parts: Iterable[Part], small_epochs: int, seconds: float, options: yardstick.Options
) -> bool:
    """Runs the chosen parts and prints what each found; returns whether all results agreed and nothing failed."""
    agreed = True
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as directory:
        folder = Path(directory)
        for part in parts:
            match part:
                case "start":
                    show_starts(console, start.first_answers(folder / "start", STARTS))
                case "yardstick":
                    agreed &= yardstick.measure_speed(console, folder / "yardstick", options)
                case "growth":
                    agreed &= yardstick.measure_growth(console, folder / "growth", options)
                case "answers":
                    answers_to_arrivals(console, folder / "answers", seconds, options)
                case _:
                    run_in_this_process(console, part, folder / part, small_epochs, options)
    return agreed


def show_starts(console: Console, starts: list[list[start.Step]]) -> None:
    """Prints the steps of the fastest start."""
    best = min(starts, key=lambda steps: next(step.clock_s for step in steps if step.name == start.FIRST))
    table = Table("from the command to", "seconds", "of processor time", title=f"Start, the best of {len(starts)}")
    for step in best:
        table.add_row(step.name, f"{step.clock_s:.1f}", f"{step.processor_s:.1f}")
    console.print(table)


def answers_to_arrivals(console: Console, folder: Path, seconds: float, options: yardstick.Options) -> None:
    """Times arrival to answer within this process."""
    yardstick.check_place(options, answers.NAME)
    spark = started()
    with progress_bar() as bar:
        task = bar.add_task("answers", total=answers.steps())
        finding = answers.measure(spark, folder, seconds, lambda: bar.advance(task))
    answers.show(console, finding, options.docs)


def run_in_this_process(
    console: Console,
    part: Literal[
        "epochs", "queries", "families", "time", "durability", "packets", "low-level", "profile", "attackers"
    ],
    folder: Path,
    small_epochs: int,
    options: yardstick.Options,
) -> None:
    """Runs a part that takes turns with Spark within one process."""
    spark = started()
    with progress_bar() as bar:
        match part:
            case "epochs":
                task = bar.add_task("small epochs", total=epochs.WARM_UP_EPOCHS + small_epochs)
                timed = epochs.small_epochs(spark, folder, small_epochs, lambda: bar.advance(task))
                epochs.show_small_epochs(console, timed)
            case "queries":
                task = bar.add_task("queries", total=queries.steps())
                queries.show(console, queries.measured(spark, lambda: bar.advance(task)), options.docs)
            case "families":
                task = bar.add_task("families", total=families.steps())
                families.show(console, families.families(spark, lambda: bar.advance(task)), options.docs)
            case "time":
                task = bar.add_task("time", total=1 + len(managing.MANAGED_SOURCES))
                managing.show_managed(console, managing.manager_costs(spark, folder, lambda: bar.advance(task)))
            case "durability":
                task = bar.add_task(
                    "durability", total=durability.WARM_UP + durability.SMALL_TURNS + 2 + durability.LARGE_TURNS
                )
                found = durability.durability(spark, folder, lambda: bar.advance(task))
                durability.show_durability(console, found)
            case "packets":
                task = bar.add_task("packets", total=packets.steps())
                count = options.rows or packets.PACKETS
                packets.show(console, packets.speeds(spark, folder, count, lambda: bar.advance(task)), options.docs)
            case "low-level":
                task = bar.add_task("low level", total=low_level.steps())
                count = options.rows or low_level.ROWS
                ways = low_level.measured(spark, folder, count, lambda: bar.advance(task))
                low_level.show(console, ways, count, options.docs)
            case "profile":
                task = bar.add_task("profiler", total=profiling.steps(small_epochs))
                profiling.show(console, profiling.measured(spark, small_epochs, lambda: bar.advance(task)))
            case "attackers":
                task = bar.add_task("attackers", total=attackers.steps())
                attackers.show(console, attackers.measured(spark, lambda: bar.advance(task)))
