"""STREAM's section 5 (paper 002): join orders that follow the data, beside every fixed order and the best in hindsight.

Three streams are joined on one key. In the first half new rows of `a` meet many rows of `b` and few of `c`, in the
second half it is the other way round. One engine runs with orders that adapt. Before each of its epochs, the rows that
each input gives with every set of the others are counted in full. So the work of any order is known without running it:
the sum of the rows that there are behind each step. A second engine runs the tree of joins as it is written; the
answers of both are compared.

`measure` has the form of a part of `headgate bench papers --only stream`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from random import Random
from time import monotonic

from pyspark.sql import SparkSession

from headgate.bench.finding import Finding, Grid
from headgate.delta.program import Counting
from headgate.engine.engine import Engine
from headgate.execute.statement import Span
from headgate.heartbeat.clock import ManualClock
from headgate.plan.join_orders import path, sets_to_count
from headgate.plan.multiway import Inputs

PLOTS: tuple[str, ...] = ()
EPOCHS = 10
INSTANTS = 10
"""How many instants an epoch has; windows are twice as long."""

ROWS = 20
"""How many rows of each stream come at an instant."""

FEW_KEYS, MANY_KEYS = 20, 2_000
NAMES = "abc"

QUERY = f"""
  CREATE STREAM a (k INT, n INT); CREATE STREAM b (k INT, n INT); CREATE STREAM c (k INT, n INT);
  CREATE QUERY q AS SELECT ISTREAM(a.n AS a, b.n AS b, c.n AS c)
    FROM a [RANGE {2 * INSTANTS}], b [RANGE {2 * INSTANTS}], c [RANGE {2 * INSTANTS}]
    WHERE a.k = b.k AND b.k = c.k
"""

Counted = dict[tuple[int, Inputs], int]
"""By input and set of others: how many rows the new rows of an epoch give with them."""


def turns() -> int:
    """How many steps the progress bar has."""
    return 2 * EPOCHS


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


def _run(
    spark: SparkSession, order: str, done: Callable[[], None]
) -> tuple[list[str], float, list[Counted], list[int]]:
    """The answers, the time of all epochs in seconds; of orders that adapt also counts and work of each epoch."""
    counted: list[Counted] = []
    work: list[int] = []
    took_s = 0.0
    with Engine(spark, clock=ManualClock()) as engine:
        engine.execute(f"SET join_order = '{order}'; SET join_caches = 'none'; {QUERY}")
        fragment = engine.query("q").answer
        for until, rows in epochs():
            for name, some in rows.items():
                engine.push(name, some)
            if order == "adaptive":
                everything = tuple(
                    Counting(0, one, 1, sets_to_count(fragment.joins.groups[0], fragment.joins.arrangements[0], one))
                    for one in range(len(NAMES))
                )
                sized = fragment.programs.counting(everything, in_one_task=True)
                found = fragment.counted_rows(sized, Span(fragment.since, until, fragment.after))
                counted.append(
                    {
                        (one, frozenset(map(int, others.split()))): count
                        for _, one, others, count in found
                        if others[:1].isdigit()
                    }
                )
                fragment.joins.counting_s = 0.0  # count before every epoch: there are few, and small ones
            began_s = monotonic()
            engine.advance(until)
            took_s += monotonic() - began_s
            if order == "adaptive":
                group, arrangement = fragment.joins.groups[0], fragment.joins.arrangements[0]
                paths = {one: tuple(path(group, arrangement, one)) for one in range(len(NAMES))}
                work.append(sum(_work(counted[-1], one, paths[one]) for one in paths))
            done()
        return sorted(map(str, engine.query("q").results())), took_s, counted, work


def _work(counted: Counted, one: int, order: tuple[Inputs, ...]) -> int:
    """How many rows new rows of an input become on their way through the others, added up."""
    return sum(counted[one, frozenset().union(*order[: place + 1])] for place in range(len(order)))


def measure(spark: SparkSession, seconds: float, done: Callable[[], None]) -> Finding:
    """Runs both engines, and compares the work of the orders that adapted with that of all fixed ones."""
    answers, adaptive_s, counted, work = _run(spark, "adaptive", done)
    expected, tree_s, _, _ = _run(spark, "fixed", done)
    half = EPOCHS // 2
    fixed: dict[str, list[int]] = {}
    choices = [
        [(first, second) for first in others for second in others - {first}] for others in ({1, 2}, {0, 2}, {0, 1})
    ]
    for orders in product(*choices):
        name = "; ".join(f"{NAMES[one]}: {NAMES[first]} {NAMES[second]}" for one, (first, second) in enumerate(orders))
        fixed[name] = [
            sum(_work(now, one, tuple(frozenset({other}) for other in some)) for one, some in enumerate(orders))
            for now in counted
        ]
    best = [min(of[number] for of in fixed.values()) for number in range(EPOCHS)]
    rows = [
        ("orders that adapt", work),
        ("the best order of each epoch", best),
        *sorted(fixed.items(), key=lambda one: sum(one[1])),
    ]
    grid = Grid(
        "Join orders under drift: rows joined (a new row's order through the others)",
        ("order", "first half", "second half", "all"),
        [(name, f"{sum(of[:half]):,}", f"{sum(of[half:]):,}", f"{sum(of):,}") for name, of in rows],
    )
    least = min(sum(of) for of in fixed.values())
    return Finding(
        "stream",
        [grid],
        remarks=[
            f"Orders that adapt join {sum(work) / least:.2f} times the rows of the best fixed order, and "
            f"{sum(work) / sum(best):.2f} times those of the best order of each epoch. Epochs took {adaptive_s:.1f} s "
            f"with counting before each, and {tree_s:.1f} s as a tree that keeps everything in between.",
            f"The answers are {'identical' if answers == expected else 'DIFFERENT'} ({len(expected):,} rows).",
        ],
    )
