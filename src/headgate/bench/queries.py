"""Times a turn of the loop by the number of queries over one stream, beside a turn with one query.

The queries are of ten kinds: filters, aggregates by windows of several lengths, a join with an aggregate, distinct
rows, the last rows. Those of one kind differ in constants. A turn has 200 new tuples with 100 keys. Engines with one
query, ten and a hundred take turns in one process, so that whatever else the machine does meets all of them.

Then queries of one shape, which differ in a key and a threshold only, are registered one by one, up to a thousand:
they run as one program, as members of a family.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, quantiles
from time import perf_counter

from pyspark.sql import SparkSession
from rich.console import Console

from headgate.bench.finding import Finding, Grid
from headgate.bench.tuples import COLUMNS, SECOND_US, tuples
from headgate.engine import Engine

NAME = "queries"
COUNTS = (1, 10, 100)
TUPLES, KEYS = 200, 100
WARM_UP, TIMED = 40, 12
"""Turns of each engine that are not timed and that are."""

SAME = (1, 10, 100, 1_000)
"""How many queries of one shape there are."""

SAME_WARM_UP, SAME_TIMED, LAST = 3, 5, 50
"""Turns with them that are not timed and that are, and how many of the last queries are timed when they come and go."""

ONE_SHAPE = "SELECT ISTREAM k, v FROM s [NOW] WHERE k = 'k{key}' AND v > {n}"

KINDS = (
    "SELECT ISTREAM k, COUNT(*) AS n, AVG(v) AS m FROM s [RANGE 60 SECONDS] WHERE v > {n} GROUP BY k",
    "SELECT ISTREAM k, v FROM s [NOW] WHERE v > {n}",
    "SELECT ISTREAM k, MAX(v) AS m FROM s [RANGE 30 SECONDS] WHERE k <> 'k{n}' GROUP BY k",
    "SELECT ISTREAM COUNT(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] WHERE v > {n}",
    "SELECT ISTREAM k, SUM(v) AS total FROM s [RANGE 20 SECONDS] GROUP BY k HAVING SUM(v) > {n}",
    "SELECT DISTINCT k FROM s [RANGE 5 SECONDS] WHERE v > {n}",
    "SELECT ISTREAM a.k, a.v FROM s [NOW] a, (SELECT k, AVG(v) AS m FROM s [RANGE 60 SECONDS] GROUP BY k) b "
    "WHERE a.k = b.k AND a.v > b.m + {n}",
    "SELECT k, MIN(v) AS low, MAX(v) AS high FROM s [ROWS 100] WHERE v > {n} GROUP BY k",
    "SELECT ISTREAM v, at FROM s [NOW] WHERE k = 'k{n}'",
    "SELECT ISTREAM k, AVG(v) AS m FROM s [RANGE 60 SECONDS SLIDE 10 SECONDS] WHERE v > {n} GROUP BY k",
)


@dataclass(frozen=True, slots=True)
class Point:
    """What a turn with so many queries costs."""

    queries: int
    registering_s: float
    """Of each query, in bulk, after the first of all."""

    turns: list[float]
    """Seconds of each turn."""


@dataclass(frozen=True, slots=True)
class OneShape:
    """What so many queries of one shape cost."""

    queries: int
    registering_s: float
    """Of each of the last of them."""

    turns: list[float]
    """Seconds of each turn."""

    dropping_s: float
    """Of each of the last of them."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Queries of several kinds, and queries of one shape, by their number."""

    points: list[Point]
    same: list[OneShape]


def measured(spark: SparkSession, done: Callable[[], None]) -> Measured:
    """Measures queries of several kinds, and queries of one shape."""
    return Measured(_of_many_kinds(spark, done), [_of_one_shape(spark, count, done) for count in SAME])


def _of_one_shape(spark: SparkSession, count: int, done: Callable[[], None]) -> OneShape:
    """Registers queries of one shape one by one, runs them, and drops the last of them."""
    with Engine(spark) as engine:
        engine.execute(f"CREATE STREAM s ({COLUMNS}) TIMESTAMP BY at")
        registering, turns, dropping = list[float](), list[float](), list[float]()
        for n in range(count):
            begun = perf_counter()
            engine.execute(f"CREATE QUERY q{n} AS {ONE_SHAPE.format(key=n % KEYS, n=n / 10)}")
            registering.append(perf_counter() - begun)
        for turn in range(SAME_WARM_UP + SAME_TIMED):
            engine.push("s", tuples(TUPLES, KEYS, turn * SECOND_US, SECOND_US).to_pylist())
            begun = perf_counter()
            engine.step()
            turns.append(perf_counter() - begun)
            done()
        for n in range(max(0, count - LAST), count):
            begun = perf_counter()
            engine.execute(f"DROP QUERY q{n}")
            dropping.append(perf_counter() - begun)
    return OneShape(count, fmean(registering[-LAST:]), turns[SAME_WARM_UP:], fmean(dropping))


def _of_many_kinds(spark: SparkSession, done: Callable[[], None]) -> list[Point]:
    """Registers and runs each number of queries in an engine of its own; the engines take turns."""
    with ExitStack() as stack:
        engines = {count: stack.enter_context(Engine(spark)) for count in COUNTS}
        registering, turns = dict[int, float](), {count: list[float]() for count in COUNTS}
        for count, engine in engines.items():
            engine.execute(f"CREATE STREAM s ({COLUMNS}) TIMESTAMP BY at")
            script = ";\n".join(f"CREATE QUERY q{n} AS {KINDS[n % len(KINDS)].format(n=n)}" for n in range(count))
            begun = perf_counter()
            engine.execute(script)
            registering[count] = (perf_counter() - begun) / count
            done()
        for turn in range(WARM_UP + TIMED):
            rows = tuples(TUPLES, KEYS, turn * SECOND_US, SECOND_US).to_pylist()
            for count, engine in engines.items():
                engine.push("s", rows)
                begun = perf_counter()
                engine.step()
                turns[count].append(perf_counter() - begun)
                done()
    return [Point(count, registering[count], turns[count][WARM_UP:]) for count in COUNTS]


def steps() -> int:
    """How many steps there are to be told of."""
    return len(COUNTS) * (1 + WARM_UP + TIMED) + len(SAME) * (SAME_WARM_UP + SAME_TIMED)


def finding(found: Measured) -> Finding:
    """The tables and the remarks, without the plot."""
    points = found.points
    one = median(points[0].turns)
    rows = [
        (
            str(point.queries),
            f"{median(point.turns) * 1000:,.0f}",
            f"{quantiles(point.turns, n=10)[-1] * 1000:,.0f}",
            f"{median(point.turns) / one:.1f}",
            f"{median(point.turns) / point.queries * 1000:,.0f}",
            f"{point.registering_s * 1000:,.0f}",
        )
        for point in points
    ]
    headings = ("queries", "a turn, ms", "p90, ms", "times one query", "of each query, ms", "registering each, ms")
    return Finding(
        NAME,
        [Grid(f"A turn with {TUPLES} new tuples, by queries over one stream", headings, rows), _same(found.same)],
        {},
        [
            "The first query of the process is registered while Spark and its JVM are cold; it is the one in the first "
            "row. Queries of one kind differ in constants: from four on, they are one program.",
        ],
        "performance",
    )


def _same(found: list[OneShape]) -> Grid:
    """The table of queries of one shape."""
    rows = [
        (
            f"{one.queries:,}",
            f"{one.registering_s * 1000:,.1f}",
            f"{median(one.turns) * 1000:,.0f}",
            f"{one.dropping_s * 1000:,.1f}",
        )
        for one in found
    ]
    headings = ("queries", f"registering each of the last {LAST}, ms", "a turn, ms", "dropping each, ms")
    return Grid(f"Queries of one shape, registered one by one, {TUPLES} new tuples a turn", headings, rows)


def plots(points: list[Point]) -> dict[str, str]:
    """The cost against the number of queries, as an SVG text; Matplotlib draws it."""
    from headgate.bench.charts import Axis, line_chart

    lines = {"a turn": [(float(point.queries), median(point.turns)) for point in points]}
    across = Axis("queries", log=True, ticks=tuple(map(float, COUNTS)))
    return {NAME: line_chart("A turn, by queries over one stream", across, Axis("seconds"), lines)}


def show(console: Console, told: Measured, docs: Path | None) -> None:
    """Prints what was found, and writes it into the page if a folder of documentation is given."""
    found = finding(told)
    found.show(console)
    if docs is not None:
        found.charts.update(plots(told.points))
        found.write(docs)
