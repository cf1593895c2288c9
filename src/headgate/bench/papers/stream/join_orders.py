"""Join orders that follow the data (STREAM, section 5), beside every fixed order and the best one known in hindsight.

Three streams are joined on one key. In the first half new rows of `a` meet many rows of `b` and few of `c`, in the
second half it is the other way round. One engine keeps nothing between its joins and follows counted rows by its orders
alone; one also by what it keeps, as it does by default; one is the tree of joins as it is written. Before each epoch of
the first one, the rows that each input gives with every set of the others are counted in full. So the work of any order
is known without running it: the sum of the rows that there are behind each step. The answers of all are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, product
from random import Random
from time import monotonic

from pyspark.sql import SparkSession

from headgate.bench.charts import Axis, line_chart
from headgate.bench.finding import Finding, Grid
from headgate.delta.program import Counting
from headgate.engine.engine import Engine
from headgate.execute.statement import Span
from headgate.heartbeat.clock import ManualClock
from headgate.plan.join_orders import Arrangement, path, sets_to_count, whole
from headgate.plan.multiway import Group, Inputs

PLOTS = ("stream-join-orders",)
EPOCHS = 12
INSTANTS = 10
"""How many instants an epoch has; windows are twice as long."""

ROWS = 40
"""How many rows of each stream come at an instant."""

FEW_KEYS, MANY_KEYS = 20, 2_000
NAMES = "abc"
ORDERS, CACHES, TREE = "orders that adapt", "orders and caches that adapt", "the tree as it is written"
WAYS = {
    ORDERS: "SET join_order = 'adaptive'; SET join_caches = 'none';",
    CACHES: "SET join_order = 'adaptive'; SET join_caches = 'adaptive';",
    TREE: "SET join_order = 'fixed';",
}

QUERY = f"""
  CREATE STREAM a (k INT, n INT); CREATE STREAM b (k INT, n INT); CREATE STREAM c (k INT, n INT);
  CREATE QUERY q AS SELECT ISTREAM(a.n AS a, b.n AS b, c.n AS c)
    FROM a [RANGE {2 * INSTANTS}], b [RANGE {2 * INSTANTS}], c [RANGE {2 * INSTANTS}]
    WHERE a.k = b.k AND b.k = c.k
"""

Counted = Mapping[tuple[int, Inputs], int]
"""By input and set of others: how many rows the new rows of an epoch give with them."""


@dataclass(slots=True)
class Run:
    """What was seen of one engine."""

    answers: list[str] = field(default_factory=list)
    took_s: float = 0.0
    counted: list[Counted] = field(default_factory=list)
    arranged: list[Arrangement] = field(default_factory=list)
    """How the joins of each epoch were arranged."""

    changes: list[str] = field(default_factory=list)


def turns() -> int:
    """How many steps the progress bar has."""
    return len(WAYS) * EPOCHS


def epochs() -> Iterator[tuple[int, dict[str, list[tuple[int, dict[str, int]]]]]]:
    """The last instant and the rows of each epoch, always the same ones."""
    random, now = Random(7), 0
    for epoch in range(EPOCHS):
        late = epoch >= EPOCHS // 2
        base = MANY_KEYS if late else 0  # rows of both halves do not meet
        keys = {"a": FEW_KEYS, "b": MANY_KEYS if late else FEW_KEYS, "c": FEW_KEYS if late else MANY_KEYS}
        rows: dict[str, list[tuple[int, dict[str, int]]]] = {name: [] for name in NAMES}
        for _ in range(INSTANTS):
            now += 1
            for name in NAMES:
                rows[name] += [
                    (now, {"k": base + random.randrange(keys[name]), "n": random.randrange(10**6)}) for _ in range(ROWS)
                ]
        yield now, rows


def run(spark: SparkSession, way: str, done: Callable[[], None]) -> tuple[Run, Group | None]:
    """Runs one engine through all epochs; also gives its group of joins, if it has one."""
    seen = Run()
    with Engine(spark, clock=ManualClock()) as engine:
        engine.execute(f"{WAYS[way]} {QUERY}")
        fragment = engine.query("q").answer
        joins = fragment.joins
        joins.least_rows, joins.share = 0, float("inf")  # count before every epoch: there are few, and small ones
        for until, rows in epochs():
            for name, some in rows.items():
                engine.push(name, some)
            if way == ORDERS:
                everything = tuple(
                    Counting(0, one, 1, (*sets_to_count(joins.groups[0], Arrangement(), one), _others(one)))
                    for one in range(len(NAMES))
                )
                sized = fragment.programs.counting(everything, in_one_task=True)
                found = fragment.counted_rows(sized, Span(fragment.since, until, fragment.after))
                seen.counted.append(
                    {
                        (one, frozenset(map(int, others.split()))): count
                        for _, one, others, count in found
                        if others[:1].isdigit()
                    }
                )
            began_s = monotonic()
            engine.advance(until)
            seen.took_s += monotonic() - began_s
            seen.arranged += joins.arrangements[:1]
            done()
        seen.answers = sorted(map(str, engine.query("q").results()))
        seen.changes = [one.what for one in joins.changes]
        return seen, joins.groups[0] if joins.groups else None


def _others(one: int) -> Inputs:
    return frozenset(range(len(NAMES))) - {one}


def _work(counted: Counted, one: int, order: tuple[Inputs, ...]) -> int:
    """How many rows new rows of an input become on their way through the others, added up."""
    return sum(counted[one, frozenset().union(*order[: place + 1])] for place in range(len(order)))


def _work_of(group: Group, run: Run, counted: list[Counted]) -> list[int]:
    """How many rows each epoch of a run joined."""
    return [
        sum(_work(now, one, tuple(path(group, arranged, one))) for one in whole(group))
        for now, arranged in zip(counted, run.arranged, strict=True)
    ]


def _fixed(counted: list[Counted]) -> dict[str, list[int]]:
    """How many rows each epoch would join, by every set of fixed orders."""
    choices = [
        [(first, second) for first in _others(one) for second in _others(one) - {first}] for one in range(len(NAMES))
    ]
    return {
        "; ".join(f"{NAMES[one]}: {NAMES[first]} {NAMES[second]}" for one, (first, second) in enumerate(orders)): [
            sum(_work(now, one, tuple(frozenset({other}) for other in some)) for one, some in enumerate(orders))
            for now in counted
        ]
        for orders in product(*choices)
    }


def measure(spark: SparkSession, seconds: float, done: Callable[[], None]) -> Finding:
    """Runs all engines, and compares the work of the orders that adapted with that of all fixed ones."""
    runs = {way: run(spark, way, done) for way in WAYS}
    orders, caches, tree = (runs[way][0] for way in WAYS)
    group, counted = runs[ORDERS][1], orders.counted
    assert group is not None
    adapted = {ORDERS: _work_of(group, orders, counted), CACHES: _work_of(group, caches, counted)}
    fixed = dict(sorted(_fixed(counted).items(), key=lambda one: sum(one[1])))
    best = [min(of[number] for of in fixed.values()) for number in range(EPOCHS)]
    half, (least, *_, most) = EPOCHS // 2, fixed
    rows = {**adapted, "the best order of each epoch": best, **fixed}
    grid = Grid(
        "Join orders under drift: rows behind each step, added up over the epochs",
        ("order", "first half", "second half", "all"),
        [(name, f"{sum(of[:half]):,}", f"{sum(of[half:]):,}", f"{sum(of):,}") for name, of in rows.items()],
    )
    drawn = {**adapted, f"best fixed order ({least})": fixed[least], f"worst fixed order ({most})": fixed[most]}
    chart = line_chart(
        "Join orders under drift: the data change after half of the epochs",
        Axis("epochs"),
        Axis("rows behind each step, so far"),
        {name: [(float(at), float(rows)) for at, rows in enumerate(accumulate(of), 1)] for name, of in drawn.items()},
    )
    same = orders.answers == caches.answers == tree.answers
    total, hindsight = sum(adapted[ORDERS]), sum(fixed[least])
    remarks = [
        f"Orders that adapt join {total / hindsight:.2f} times the rows of the best fixed order known in hindsight, "
        f"and {total / sum(best):.2f} times those of the best order of each epoch; with caches that adapt as well "
        f"{sum(adapted[CACHES]) / hindsight:.2f} and {sum(adapted[CACHES]) / sum(best):.2f} times.",
        f"With caches: {'; '.join(caches.changes) or 'nothing changed'}.",
        f"Epochs took {orders.took_s:.1f} s by orders alone, {caches.took_s:.1f} s with caches, both with a count "
        f"before each, and {tree.took_s:.1f} s as the tree.",
        f"The answers are {'identical' if same else 'DIFFERENT'} ({len(tree.answers):,} rows).",
    ]
    return Finding("stream", [grid], {PLOTS[0]: chart}, remarks)
