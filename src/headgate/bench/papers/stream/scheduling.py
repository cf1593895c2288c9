"""Queue sizes by scheduler (STREAM, section 4.3): the paper's two tables, and two plans of fragments under bursts.

The fragments are real: joins of a busy stream with tables, one after another, each fragment an epoch on Spark. Time is
counted in epochs. While a burst lasts, n tuples come with every epoch, as n elements come with every unit of time in
the paper; an epoch takes about n rows. The first burst lets the profile learn; the second is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import mean
from time import perf_counter
from typing import get_args

from pyspark.sql import SparkSession

from headgate.bench.charts import Axis, line_chart
from headgate.bench.finding import Finding, Grid
from headgate.bench.papers.stream.chains import BURST, Operator, first_example, queue_sizes, second_example
from headgate.engine import Engine
from headgate.heartbeat.clock import SystemClock
from headgate.settings import Scheduling

PLOTS = ("stream-queues-selective", "stream-queues-block")

ROWS = 1_000
"""n: how many tuples come with an epoch."""

KEYS = 10
LONG = 2 * BURST
"""With so many epochs tuples come, in each burst: the paper has half as many."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A chain of fragments: joins of the busy stream with tables that have some of the keys."""

    name: str
    about: str
    keys: tuple[int, ...]
    """How many of the ten keys each table has."""

    example: Callable[[], list[Operator]]
    """The paper's example of which it has the selectivities."""

    @property
    def text(self) -> str:
        """The streams and the query."""
        tables = [f"t{number}" for number in range(1, len(self.keys) + 1)]
        streams = "".join(f"CREATE STREAM {name} (k INT, w INT);" for name in tables)
        inputs = ", ".join(f"{name} [RANGE UNBOUNDED]" for name in tables)
        equal = " AND ".join(f"a.k = {name}.k" for name in tables)
        wanted = ", ".join(f"{name}.w AS w{number}" for number, name in enumerate(tables))
        return (
            f"CREATE STREAM a (n BIGINT, k INT); {streams}"
            f"CREATE QUERY q AS SELECT ISTREAM(a.n, {wanted}) FROM a [NOW], {inputs} WHERE {equal};"
        )


SELECTIVE = Plan("selective", "the first of two fragments passes on 0.2 of its rows", (2, KEYS), first_example)
BLOCK = Plan("block", "three fragments pass on 0.9, 1 and nothing", (9, KEYS, KEYS), second_example)
PLANS = (SELECTIVE, BLOCK)
WAYS: tuple[Scheduling, ...] = get_args(Scheduling)


@dataclass(slots=True)
class Burst:
    """What was seen in one burst."""

    waiting: list[int] = field(default_factory=list)
    """How many rows waited before each epoch, when those that come with it had come."""

    came: dict[int, tuple[int, float]] = field(default_factory=dict)
    """By instant: before which epoch its tuples came, and when."""

    late: list[tuple[int, float]] = field(default_factory=list)
    """For each instant: after how many epochs it was answered, and after how many seconds."""

    results: int = 0


def turns() -> int:
    """How many steps the progress bar has."""
    return len(PLANS) * len(WAYS)


def measure(spark: SparkSession, seconds: float, done: Callable[[], None]) -> Finding:
    """Makes the paper's tables, and runs each plan under each scheduler."""
    long = max(BURST, round(LONG * min(seconds, 36.0) / 36.0))
    found: dict[tuple[Plan, Scheduling], Burst] = {}
    for plan in PLANS:
        for how in WAYS:
            found[plan, how] = run(spark, plan, how, long)
            done()
    for plan in PLANS:
        results = {found[plan, how].results for how in WAYS}
        assert len(results) == 1, f"results differ by scheduler: {results}"
    tables = [_paper_table(plan) for plan in PLANS]
    charts = {
        f"stream-queues-{plan.name}": line_chart(
            f"Rows waiting under a burst: {plan.about}",
            Axis("epochs"),
            Axis("rows waiting"),
            {how: list(enumerate(map(float, found[plan, how].waiting))) for how in WAYS},
        )
        for plan in PLANS
    }
    return Finding("stream", [*tables, _measured(found, long)], charts, _remarks(found))


def run(spark: SparkSession, plan: Plan, how: Scheduling, long: int) -> Burst:
    """Runs a plan under a scheduler through two bursts, and returns what was seen in the second."""
    with Engine(spark, clock=SystemClock()) as engine:
        engine.execute(
            "SET heartbeats = 'operator'; SET estimation = 'off'; SET families = 'off'; SET sharing = 'off';"
            f"{plan.text} SET epoch_rows = {ROWS}; SET scheduling = '{how}'"
        )
        for number, keys in enumerate(plan.keys, 1):
            engine.push(f"t{number}", [(0, (key, key)) for key in range(keys)])
            engine.finish(f"t{number}")
        query = engine.query("q")
        if len(query.fragments) != len(plan.keys):
            raise AssertionError(f"the plan has {len(query.fragments)} fragments")
        seen, instant, left = Burst(), 0, 0

        def come() -> None:
            """Let the tuples come that come with an epoch, and look at the queues."""
            nonlocal instant, left
            now_s, epoch = perf_counter(), len(seen.waiting)
            for answered in [at for at in seen.came if query.begun and at <= query.reached]:
                before, came_s = seen.came.pop(answered)
                seen.late.append((epoch - before, now_s - came_s))
            if left:
                left, instant = left - 1, instant + 1
                engine.push("a", [(instant, (instant * ROWS + number, number % KEYS)) for number in range(ROWS)])
                engine.punctuate("a", instant)
                seen.came[instant] = (epoch, perf_counter())
            waiting = (one.inputs.waiting(log) for one in query.fragments for log in one.program.logs())
            seen.waiting.append(sum(waiting))

        engine.on_commit(come)
        for _ in range(2):
            results = query.count
            seen, left = Burst(), long
            come()
            while engine.step():
                pass
            seen.results = query.count - results
        return seen


def _paper_table(plan: Plan) -> Grid:
    """The paper's table for the example that a plan is made after, computed by the engine's scheduler."""
    rows = []
    for how in WAYS:
        sizes = [float(size) for size in queue_sizes(plan.example(), how)]
        rows.append((how, *(f"{size:.1f}" for size in sizes), f"{mean(sizes):.1f}"))
    return Grid(f"On a clock of units: {plan.about}", ("time", *map(str, range(BURST)), "average"), rows)


def _measured(found: dict[tuple[Plan, Scheduling], Burst], long: int) -> Grid:
    rows = []
    for (plan, how), burst in found.items():
        epochs, waited_s = [one for one, _ in burst.late], [one for _, one in burst.late]
        rows.append(
            (
                f"{plan.name}, {how}",
                f"{max(burst.waiting):,}",
                f"{mean(burst.waiting):,.0f}",
                str(len(burst.waiting) - 1),
                f"{mean(epochs):.1f}",
                str(max(epochs)),
                f"{mean(waited_s) * 1e3:,.0f} ms",
            )
        )
    headings = (
        "plan, scheduler",
        "peak of rows waiting",
        "on average",
        "epochs",
        "latency in epochs",
        "worst",
        "latency",
    )
    return Grid(f"Fragments under a burst of {long} batches of {ROWS:,} tuples", headings, rows)


def _remarks(found: dict[tuple[Plan, Scheduling], Burst]) -> list[str]:
    peaks = {key: max(burst.waiting) for key, burst in found.items()}
    said = [
        f"{plan.name}: the peak by {how} is {peaks[plan, how] / peaks[plan, 'fifo']:.2f} of the peak by fifo."
        for plan in PLANS
        for how in WAYS
        if how != "fifo"
    ]
    return ["\n".join(f"- {one}" for one in said), "The results are the same by every scheduler."]
