"""Says what the yardstick measured: tables, remarks and plots for the console and for docs/performance.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import nan

from rich.console import Console

from headgate.bench.finding import Finding, Grid
from headgate.bench.yardstick.measure import Measured, Yardstick
from headgate.bench.yardstick.ways import TITLES, Way
from headgate.bench.yardstick.workloads import Workload

NAME = "yardstick"
PAGE = "performance"
SIDE_BY_SIDE: tuple[Way, ...] = ("batch", "native", "flink", "headgate")
MORE_OF_HEADGATE: tuple[Way, ...] = ("durable", "json", "batch-json")
AGAINST: tuple[tuple[Way, Way], ...] = (("durable", "headgate"), ("json", "batch-json"))
PLOTS = ("speed", "memory")


def finding(measured: Yardstick) -> Finding:
    """The tables and remarks, without plots."""
    grids = [
        speeds(measured),
        inputs_and_directories(measured),
        table(measured, "Seconds of a turn: the median (smallest to largest)", TITLES, seconds),
        table(measured, "Peak memory, MB", TITLES, memory),
        table(measured, "Results as in batch", [way for way in TITLES if way != "batch"], agreement),
    ]
    return Finding(NAME, [grid for grid in grids if grid.rows], {}, remarks(measured), PAGE)


def plots(measured: Yardstick) -> dict[str, str]:
    """A plot of speeds and one of memory, as SVG texts; Matplotlib draws them."""
    from headgate.bench.charts import Axis, bar_chart

    ways = [way for way in SIDE_BY_SIDE if any(found[way].seconds for found in measured.found.values() if way in found)]
    works = [_short(workload) for workload in measured.found]

    def bars(value: Callable[[Workload, Measured], float]) -> dict[str, list[float]]:
        return {
            TITLES[way]: [
                value(workload, found[way]) if way in found else nan for workload, found in measured.found.items()
            ]
            for way in ways
        }

    drawn = (
        bar_chart(
            "Thousands of tuples a second, Parquet to Parquet",
            Axis("k tuples/s"),
            works,
            bars(lambda workload, one: (speed(measured, workload, one) or nan) / 1_000),
        ),
        bar_chart(
            "Peak memory of the process, with its JVM",
            Axis("MB"),
            works,
            bars(lambda _, one: (one.peak_bytes or nan) / 2**20),
        ),
    )
    return dict(zip(PLOTS, drawn, strict=True))


def speed(measured: Yardstick, workload: Workload, one: Measured | None) -> float | None:
    """Tuples of all streams in a second of the median turn; None if there was none."""
    if one is None or one.median is None:
        return None
    return measured.rows * len(workload.streams) / one.median


def ratio(measured: Yardstick, workload: Workload, way: Way, other: Way) -> str:
    """How many times as fast as another a way is."""
    found = measured.found[workload]
    ours, theirs = (speed(measured, workload, found.get(each)) for each in (way, other))
    return f"{ours / theirs:.2f}" if ours and theirs else ""


def _speed_text(measured: Yardstick, workload: Workload, way: Way) -> str:
    one = measured.found[workload].get(way)
    found = speed(measured, workload, one)
    if found is not None:
        return f"{found / 1_000:,.0f} k/s"
    return one.reason or "" if one is not None else ""


def line(measured: Yardstick, workload: Workload) -> str:
    """What was found for one question, as soon as it is known."""
    told = [
        f"{TITLES[way]} {_speed_text(measured, workload, way)}{' WRONG' if one.wrong else ''}"
        for way, one in measured.found[workload].items()
    ]
    return f"{_short(workload)}: {', '.join(told)}"


def speeds(measured: Yardstick) -> Grid:
    """The speed of each question in each way."""
    ways = [way for way in SIDE_BY_SIDE if _asked(measured, way)]
    against: list[Way] = [way for way in ways if way != "headgate"] if "headgate" in ways else []
    return Grid(
        f"Tuples a second, the median of {_turns(measured)}; speed of headgate against the others",
        ("", *(TITLES[way] for way in ways), *(f"headgate / {TITLES[way]}" for way in against)),
        [
            (
                workload.question,
                *(_speed_text(measured, workload, way) for way in ways),
                *(ratio(measured, workload, "headgate", way) for way in against),
            )
            for workload in measured.found
        ],
    )


def inputs_and_directories(measured: Yardstick) -> Grid:
    """The speed of headgate with a durable directory and from JSON."""
    chosen = [way for way in MORE_OF_HEADGATE if _asked(measured, way)]
    pairs = [pair for pair in AGAINST if _asked(measured, pair[0]) and _asked(measured, pair[1])]
    return Grid(
        "With a durable directory, and from JSON; speed of the first against the second",
        (
            "",
            *(TITLES[way] for way in chosen),
            *("durable / not" if way == "durable" else "headgate / Spark, from JSON" for way, _ in pairs),
        ),
        [
            (
                workload.question,
                *(_speed_text(measured, workload, way) for way in chosen),
                *(ratio(measured, workload, way, other) for way, other in pairs),
            )
            for workload in measured.found
            if chosen
        ],
    )


def table(measured: Yardstick, title: str, ways: Iterable[Way], cell: Callable[[Measured], str]) -> Grid:
    """A table with a row for each question and a column for each of the ways that were asked."""
    asked = [way for way in ways if _asked(measured, way)]
    rows = [
        (_short(workload), *(cell(found[way]) if way in found else "" for way in asked))
        for workload, found in measured.found.items()
    ]
    return Grid(title, ("", *(TITLES[way] for way in asked)), rows if asked else [])


def seconds(one: Measured) -> str:
    """The median of the turns, and all between which they were."""
    return f"{one.median:.2f} ({min(one.seconds):.2f} to {max(one.seconds):.2f})" if one.median is not None else ""


def memory(one: Measured) -> str:
    """The most memory in a turn."""
    if one.median is None:
        return ""
    return f"{one.peak_bytes / 2**20:,.0f}" if one.peak_bytes else "unknown"


def agreement(one: Measured) -> str:
    """How many results are those of the batch query, or what differs."""
    return str(one.agreement) if one.agreement is not None else ""


def remarks(measured: Yardstick) -> list[str]:
    """What was measured where, and how quiet it was there."""
    quiet = measured.quiet
    said = [f"{measured.rows:,} tuples a stream, {_turns(measured)}, {measured.cores} cores. Flink: {measured.flink}."]
    if quiet.clock_s:
        whole = quiet.clock_s * measured.cores
        others = "an unknown share" if quiet.others_s is None else f"{quiet.others_s / whole:.1%}"
        said.append(
            f"While a way had its turn, whatever else ran on the machine used {others} of its cores, "
            f"and the waiting workers {quiet.idle_workers_s / whole:.1%}."
        )
    return said


def complain(console: Console, measured: Yardstick) -> None:
    """Prints every failure and every disagreement, so that nobody overlooks it."""
    for workload, ways in measured.found.items():
        for way, one in ways.items():
            if one.failure is not None:
                console.print(f"{workload.name} {TITLES[way]} FAILED: {one.failure}", style="bold red", markup=False)
            if one.agreement is not None and not one.agreement.whole:
                told = f"{workload.name} {TITLES[way]} DISAGREES with batch: {one.agreement}"
                console.print(told, style="bold red", markup=False)


def _turns(measured: Yardstick) -> str:
    return f"{measured.turns} turn{'s' if measured.turns > 1 else ''}"


def _short(workload: Workload) -> str:
    return workload.question.partition(":")[0].partition(",")[0]


def _asked(measured: Yardstick, way: Way) -> bool:
    return any(way in found for found in measured.found.values())
