"""State against k (STREAM, section 4.2): how many rows queries without windows keep, by the k of a constraint.

The tuples keep to every constraint with k = 0, so a larger k only says less about them. Each query runs without a
constraint, with a k that is detected where that is possible, and with several k over the same tuples, and must give the
same answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pyspark.sql import SparkSession

from headgate.bench.charts import Axis, line_chart
from headgate.bench.finding import Finding, Grid
from headgate.engine import Engine
from headgate.heartbeat.clock import ManualClock
from headgate.schedule.query import RunningQuery

PLOTS = ("stream-state",)

Way: TypeAlias = int | Literal["detected"] | None
"""With which k a query runs; None: without a constraint."""

KS = (0, 10, 100, 1_000)
DETECTED = "DETECTED WITHIN 100 TUPLES CONFIDENCE 0.99"
GROUPS = 4_000
OF_EACH = 5
"""How many tuples of `s` have one value."""

EPOCHS = 8


@dataclass(frozen=True, slots=True)
class Case:
    """A query over `s`, or over `s` and `o`, and the constraints that limit its state."""

    name: str
    query: str
    constraints: tuple[str, ...]
    detectable: bool = True

    def ways(self) -> tuple[Way, ...]:
        """With which k it runs."""
        return (None, *(("detected",) if self.detectable else ()), *KS)

    def declared(self, way: Way) -> str:
        """The statements that declare the constraints with that k."""
        said = DETECTED if way == "detected" else f"WITHIN {way} TUPLES"
        return "".join(f"{one} {said};" for one in self.constraints) if way is not None else ""


CASES = (
    Case(
        "group by, clustered",
        "SELECT ISTREAM(k, n) FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k)",
        ("CONSTRAINT c ON s CLUSTERED BY k",),
    ),
    Case(
        "distinct, ordered",
        "SELECT ISTREAM(k) FROM (SELECT DISTINCT k FROM s)",
        ("CONSTRAINT c ON s ORDERED BY k",),
    ),
    Case(
        "join, referring and clustered",
        "SELECT ISTREAM(s.k, s.v, o.w) FROM s, o WHERE s.k = o.k",
        (
            "CONSTRAINT r ON s (k) REFERENCES o (k)",
            "CONSTRAINT c ON s CLUSTERED BY k",
        ),
        detectable=False,
    ),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """The most rows that a query kept at the end of an epoch, and its answers."""

    rows: int
    answers: Counter[tuple[Any, ...]]


def turns() -> int:
    """How many steps the progress bar has."""
    return sum(len(case.ways()) for case in CASES)


def measure(spark: SparkSession, seconds: float, done: Callable[[], None]) -> Finding:
    """Runs each query without a constraint, with a k that is detected, and with each k."""
    groups = max(400, round(GROUPS * min(seconds, 36.0) / 36.0))
    found: dict[tuple[Case, Way], Seen] = {}
    for case in CASES:
        for way in case.ways():
            found[case, way] = run(spark, case, way, groups)
            done()
            if found[case, way].answers != found[case, None].answers:
                raise AssertionError(f"{case.name}: other answers with k = {way}")
    columns: tuple[Way, ...] = (None, "detected", *KS)
    rows = [
        (case.name, *(f"{found[case, way].rows:,}" if (case, way) in found else "-" for way in columns))
        for case in CASES
    ]
    title = f"Rows kept, at most, of {groups * OF_EACH:,} tuples in {groups:,} groups"
    grid = Grid(title, ("query", "no constraint", "k detected", *(f"k = {k:,}" for k in KS)), rows)
    chart = line_chart(
        "Rows kept by the k of the constraints",
        Axis("k + 1", log=True),
        Axis("rows kept", log=True),
        {case.name: [(k + 1.0, float(found[case, k].rows)) for k in KS] for case in CASES},
    )
    return Finding("stream", [grid], {"stream-state": chart}, ["The answers are the same with every k and without."])


def run(spark: SparkSession, case: Case, way: Way, groups: int) -> Seen:
    """Runs a query over all tuples, some groups in an epoch."""
    with Engine(spark, clock=ManualClock()) as engine:
        engine.execute(
            "SET estimation = 'off'; CREATE STREAM s (k INT, v INT); CREATE STREAM o (k INT, w INT);"
            f"{case.declared(way)} CREATE QUERY q AS {case.query}"
        )
        query, most, of_each_epoch = engine.query("q"), 0, groups // EPOCHS
        for epoch in range(EPOCHS):
            first = epoch * of_each_epoch
            ours = range(first, first + of_each_epoch)
            engine.push("o", [(group, (group, group)) for group in ours])
            engine.push("s", [(group, (group, number)) for group in ours for number in range(OF_EACH)])
            engine.advance(first + of_each_epoch - 1)
            for fragment in query.fragments:
                if fragment.program.synopses:
                    fragment.move_state()
            most = max(most, kept(query))
        return Seen(most, Counter((one.at, one.sign, *one.row.values()) for one in query.results()))


def kept(query: RunningQuery) -> int:
    """Rows of synopses, and rows of logs that are read again because a query needs what came before."""
    total = 0
    for fragment in query.fragments:
        total += fragment.synopses.rows
        again = {source.stream for source in fragment.program.inputs if source.bound is not None}
        total += sum(chunk.rows for stream in again for chunk in fragment.inputs.logs[stream].chunks)
    return total
