"""Error against violations (STREAM, section 4.2): how many rows of an answer are wrong, by how many tuples come late.

The tuples of a group come together, but for a share of all tuples, which come 20 to 80 tuples later. The k that is
declared is too small for these, and their violations are counted. The k that is detected follows them. A group is wrong
if the rows that it has in the end are not the one of the exact answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from pyspark.sql import SparkSession

from headgate.bench.charts import Axis, line_chart
from headgate.bench.finding import Finding, Grid
from headgate.bench.papers.stream.state import kept
from headgate.delta.violations import violations_of
from headgate.engine import Engine
from headgate.heartbeat.clock import ManualClock
from headgate.schedule.query import RunningQuery

PLOTS = ("stream-errors",)

SHARES = (0.0, 0.001, 0.01, 0.05, 0.2)
WAYS = {
    "k = 10": "WITHIN 10 TUPLES ON VIOLATION COUNT",
    "k detected": "DETECTED WITHIN 100 TUPLES CONFIDENCE 0.99",
}
GROUPS = 4_000
OF_EACH = 5
EPOCHS = 10


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of a run: violations, wrong groups, and the most rows that the query kept."""

    violations: int
    wrong: int
    rows: int


def turns() -> int:
    """How many steps the progress bar has."""
    return len(SHARES) * len(WAYS)


def measure(spark: SparkSession, seconds: float, done: Callable[[], None]) -> Finding:
    """Runs the query with each way to come by k, over tuples of which more and more are late."""
    groups = max(400, round(GROUPS * min(seconds, 36.0) / 36.0))
    rows, lines = list[tuple[str, ...]](), {way: list[tuple[float, float]]() for way in WAYS}
    for share in SHARES:
        values, late = arrivals(groups, share)
        row = [f"{share:.1%} ({late:,})"]
        for way, said in WAYS.items():
            seen = run(spark, said, values)
            done()
            if seen.wrong > seen.violations:
                raise AssertionError(f"{way}: {seen.wrong} wrong groups by {seen.violations} violations")
            lines[way].append((100 * seen.violations / len(values), 100 * seen.wrong / groups))
            row += [f"{seen.violations:,}", f"{seen.wrong:,} ({seen.wrong / groups:.1%})", f"{seen.rows:,}"]
        rows.append(tuple(row))
    title = f"Wrong groups by late tuples, of {groups * OF_EACH:,} tuples in {groups:,} groups"
    headings = [f"{way}: {what}" for way in WAYS for what in ("violations", "wrong groups", "rows kept")]
    chart = line_chart(
        "Wrong groups by violations",
        Axis("violations, % of the tuples"),
        Axis("wrong groups, %"),
        lines,
    )
    remark = "The number of wrong groups is at most the number of violations."
    return Finding("stream", [Grid(title, ("late tuples", *headings), rows)], {"stream-errors": chart}, [remark])


def arrivals(groups: int, share: float) -> tuple[list[int], int]:
    """The groups of the tuples in their order, and how many of these are late."""
    chance = Random(7)
    late = set(chance.sample(range(groups * OF_EACH), round(groups * OF_EACH * share)))
    order = [place + (chance.uniform(20, 80) if place in late else 0.0) for place in range(groups * OF_EACH)]
    return [place // OF_EACH for place in sorted(range(len(order)), key=order.__getitem__)], len(late)


def run(spark: SparkSession, said: str, values: list[int]) -> Seen:
    """Runs the query over all tuples, some in an epoch, and compares its last rows with the counts of the groups."""
    with Engine(spark, clock=ManualClock()) as engine:
        engine.execute(
            f"SET estimation = 'off'; CREATE STREAM s (k INT); CONSTRAINT c ON s CLUSTERED BY k {said};"
            "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s GROUP BY k"
        )
        query, most, of_each_epoch = engine.query("q"), 0, len(values) // EPOCHS
        for first in range(0, len(values), of_each_epoch):
            engine.push("s", [(first + at, (value,)) for at, value in enumerate(values[first : first + of_each_epoch])])
            engine.advance(min(first + of_each_epoch, len(values)) - 1)
            for fragment in query.fragments:
                fragment.move_state()
            most = max(most, kept(query))
        shown = Counter[tuple[Any, ...]]()
        for one in query.results():
            shown[tuple(one.row.values())] += 1 if one.sign == "+" else -1
        right = Counter((group, count) for group, count in Counter(values).items())
        wrong = {group for group, _ in (+shown - right) + (right - shown)}
        return Seen(_violations(query), len(wrong), most)


def _violations(query: RunningQuery) -> int:
    stores = [fragment.synopses for fragment in query.fragments]
    names = [(store, name) for store in stores for name in store.files if name.startswith(violations_of("c"))]
    return sum(number for store, name in names for number in store.numbers(name, "_broken"))
