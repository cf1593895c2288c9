"""WhiteWater's experiments on consistency (paper 003, section 6): early answers of joins, by every method.

Batches of tuples come in cycles: in some turns of a cycle one comes, in the others none does. Nothing is settled, so
that every answer is an early one. All methods get the same batches, each in an engine of its own. They take each turn
one after another, in an order that is drawn anew for each turn. The clock of an engine is moved by the time that its
own turns really take.

Medians count: a collection of garbage, a plan that is compiled or other work on the machine hits some turn of some
method. What a turn takes is compared with the middle of all methods in that turn, and of these ratios the median over
the cycles is taken, for each turn of a cycle by itself.

    consistent      share of turns after which the answer is known to be consistent
    latency         from a batch that comes to the first answer that has all of it, and may be given at its level: the
                    mean over the batches of a cycle
    throughput      tuples of a cycle by the time of its turns; by the clock, and by the processor time of Spark and of
                    this process, which other work on the machine hardly changes
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from statistics import fmean, median
from time import perf_counter
from typing import TypeAlias

import numpy as np
from pyspark.sql import SparkSession

from headgate.bench.charts import Axis, bar_chart, line_chart
from headgate.bench.families import processor_s
from headgate.bench.finding import Finding, Grid
from headgate.consistency.flow import Flow
from headgate.consistency.heeding import Multiset, QueueScan, UnderWay, input_prefix
from headgate.engine import Engine
from headgate.heartbeat.clock import ManualClock
from headgate.schedule.early import EarlyAnswers

ROWS = 60
"""Tuples of a stream in a batch."""

KEYS = 700
"""So many that no answer gets too large to be given early, however long it is measured."""

CYCLE = (True, True, True, False, False)
"""In which turns of a cycle a batch comes."""

WARM_UP = 2
"""Cycles that do not count: programs are compiled, and the window of the streams fills."""

FEWEST = 5
"""Cycles that count, at the least."""

PAUSES = 0.35
"""The share of turns in which nothing comes, where distances are measured."""

MOST_TURNS = 60
"""Until nothing is under way."""

Batch: TypeAlias = Mapping[str, Sequence[tuple[int, tuple[int, ...]]]]
"""The tuples that come on each stream; nothing in a pause."""

WAYS: dict[str, tuple[str, str, str]] = {
    "none": ("none", "fused", "1 second"),
    "heeding, scan": ("input-prefix", "heeding-scan", "1 second"),
    "heeding, multiset": ("input-prefix", "heeding", "1 second"),
    "tokens, each turn": ("input-prefix", "tokens", "1 millisecond"),
    "tokens, 0.5 s": ("input-prefix", "tokens", "500 milliseconds"),
    "tokens, 2 s": ("input-prefix", "tokens", "2 seconds"),
    "tokens, adaptive": ("input-prefix", "tokens", "latency 500 milliseconds"),
    "one fragment": ("input-prefix", "fused", "1 second"),
    "draining": ("input-prefix", "draining", "1 second"),
}
"""Level, method and period of tokens."""

DEFAULT = "draining"
GOAL = 0.99, 1.05
"""The throughput that the default has at the least, and its latency at the most, against none."""

DRAWN = ("none", "heeding, scan", "heeding, multiset", "tokens, adaptive", "one fragment", "draining")

_JOIN = "(SELECT x.k, x.j, x.v, y.v AS w FROM s1 [RANGE 200] x, s2 [RANGE 200] y WHERE x.{0} = y.{0})"

QUERIES = {
    "Q1": "SELECT x.k, x.v, y.v AS w FROM s1 [RANGE 200] x, s2 [RANGE 200] y WHERE x.k = y.k",
    "Q2": f"SELECT o.v, z.v AS z FROM {_JOIN.format('k')} o, s1 [RANGE 200] z WHERE o.j = z.j",
    "Q3": f"SELECT o.v, p.w FROM {_JOIN.format('k')} o, {_JOIN.format('j')} p WHERE o.v = p.v",
    "Q4": f"SELECT q.v, z.v AS z FROM (SELECT o.v, o.j, p.w FROM {_JOIN.format('k')} o, {_JOIN.format('j')} p "
    "WHERE o.v = p.v) q, s2 [RANGE 200] z WHERE q.j = z.j",
}
"""By the number of joins, all over the same two streams."""


def chain(inputs: int) -> str:
    """A query that joins so many streams, one after the other."""
    text = "SELECT x.k, x.v FROM s1 [RANGE 200] x, s2 [RANGE 200] y WHERE x.k = y.k"
    for number in range(3, inputs + 1):
        text = f"SELECT o.k, z.v FROM ({text}) o, s{number} [RANGE 200] z WHERE o.k = z.k"
    return text


CHAINS = {f"{inputs} inputs": chain(inputs) for inputs in (3, 4)}
"""By the number of streams; two are joined by Q1."""

APART = ("Q2", "Q4")
"""The queries in which paths from one stream to the answer differ in length."""

BINS = (0, 10, 20, 50, 100, 200, 500)
"""Borders of the histogram of distances, in changes of the answer."""


ByPlace: TypeAlias = dict[int, list[float]]
"""What was measured, by the place of the turn in its cycle."""


@dataclass(slots=True)
class Measured:
    """What one way has done for one query."""

    turns: int = 0
    known: int = 0
    """Turns after which the answer is known to be consistent."""

    busy_s: ByPlace = field(default_factory=lambda: defaultdict(list))
    processor_s: ByPlace = field(default_factory=lambda: defaultdict(list))
    latency_s: ByPlace = field(default_factory=lambda: defaultdict(list))
    cycle_busy_s: float = 0
    cycle_processor_s: float = 0
    """Of a cycle: what it takes."""

    cycle_tuples: int = 0
    runs: int = 0
    results: int = 0
    """How many changes the answer has at the end."""

    @property
    def throughput(self) -> float:
        """Tuples by the second."""
        return self.cycle_tuples / self.cycle_busy_s

    @property
    def by_processor(self) -> float:
        """Tuples by the second of processor time."""
        return self.cycle_tuples / self.cycle_processor_s

    @property
    def latency_ms(self) -> float:
        return 1e3 * fmean(map(median, self.latency_s.values()))


class Driven:
    """One engine with one query, answered in one way."""

    def __init__(self, spark: SparkSession, engine: Engine, clock: ManualClock, way: str, text: str) -> None:
        self.spark, self.engine, self.clock, self.way = spark, engine, clock, way
        level, method, period = WAYS[way]
        streams = sorted({word for word in ("s1", "s2", "s3", "s4") if f"{word} " in text})
        engine.execute(
            f"SET consistency = '{level}'; SET consistency_method = '{method}'; SET token_period = '{period}';"
            + "".join(f"CREATE STREAM {name} (k INT, j INT, v INT) DISORDER 100000;" for name in streams)
            + f"CREATE QUERY q AS {text} EMIT EARLY"
        )
        self.measured = Measured()
        self.came = dict.fromkeys(streams, 0)
        self._waiting: list[tuple[int, int, dict[str, int]]] = []
        """Batches that no answer has yet: their turn, the time at which they came, and the label of an answer that has
        them."""

    @property
    def early(self) -> EarlyAnswers:
        found = self.engine.query("q").early_answers
        assert found is not None
        return found

    @property
    def rests(self) -> bool:
        return self.early.next_us() is None

    def turn(self, number: int, batch: Batch, counts: bool) -> None:
        """Let a batch come, if there is one, and take one turn."""
        begun, used = perf_counter(), processor_s(self.spark)
        for stream, rows in batch.items():
            self.engine.push(stream, rows)
            self.came[stream] += len(rows)
        if batch:
            self._waiting.append((number if counts else -1, self.clock.now_us(), dict(self.came)))
        self.engine.step()
        if self.early.trouble is not None:
            raise self.early.trouble
        taken_s, worked_s = perf_counter() - begun, processor_s(self.spark) - used
        self.clock.move_by(round(taken_s * 1e6))
        one, reflected, place = self.measured, self.reflected(), number % len(CYCLE)
        through = [came for came in self._waiting if all(reflected[name] >= n for name, n in came[2].items())]
        self._waiting = self._waiting[len(through) :]
        for turn, since_us, _ in through:
            if turn >= 0:
                one.latency_s[turn % len(CYCLE)].append((self.clock.now_us() - since_us) / 1e6)
        if counts:
            one.turns += 1
            one.busy_s[place].append(taken_s)
            one.processor_s[place].append(worked_s)
            one.known += self.known()

    def known(self) -> bool:
        """Say whether the answer of the last turn is known to be consistent, or would be by its labels."""
        stages = self.early.stages
        if stages is None:
            return True
        if self.way == "none":
            return input_prefix(stages.flow.reflects, QueueScan(stages.flow))
        return (stages.given is not None and stages.given.consistent) or self.rests

    def reflected(self) -> Mapping[str, int]:
        """Return how many tuples of each stream the answer has that may be given: at level 'none', all of them."""
        stages, nothing = self.early.stages, dict.fromkeys(self.came, 0)
        if stages is not None and self.way == "none":
            flow = stages.flow
            firsts = {name: QueueScan(flow).first(name) for name in self.came}
            return {name: flow.came[name] if first is None else first for name, first in firsts.items()}
        answer = self.engine.query("q").early()
        return nothing if answer is None else {**nothing, **answer.tuples}

    def rest(self) -> None:
        """Take turns, which do not count, until nothing is under way."""
        for _ in range(MOST_TURNS):
            if self.rests:
                return
            self.turn(0, {}, counts=False)

    def end(self) -> Measured:
        """Return what was measured."""
        answer, stages = self.engine.query("q").early(), self.early.stages
        self.measured.results = len(answer.results) if answer is not None else 0
        self.measured.runs = stages.runs if stages is not None else 0
        self.measured.cycle_tuples = ROWS * len(self.came) * sum(CYCLE)
        return self.measured


def turns(seconds: float) -> int:
    """How many steps the progress bar has."""
    all_cycles = (len(QUERIES) + len(CHAINS)) * (WARM_UP + cycles(seconds)) + WARM_UP
    return len(CYCLE) * (all_cycles + len(APART) * cycles(seconds))


def cycles(seconds: float) -> int:
    """How many cycles of each query count."""
    return max(FEWEST, round(seconds * 0.6))


def measure(spark: SparkSession, seconds: float, done: Callable[[], None]) -> Finding:
    """Runs all queries in all ways."""
    many = cycles(seconds)
    by_way(spark, QUERIES["Q1"], 0, done)  # while Java compiles, whatever comes first is slow
    by_joins = {name: by_way(spark, text, many, done) for name, text in QUERIES.items()}
    by_inputs = {name: by_way(spark, text, many, done) for name, text in CHAINS.items()}
    apart = {name: distances(spark, QUERIES[name], many * len(CYCLE), done) for name in APART}
    shares = Grid(
        "Share of turns after which the answer is known to be consistent, and epochs of stages (Q3)",
        ("", *QUERIES, *CHAINS, "epochs, Q3"),
        [
            (
                way,
                *(f"{100 * found[way].known / found[way].turns:.0f}%" for found in (by_joins | by_inputs).values()),
                str(by_joins["Q3"][way].runs or by_joins["Q3"][way].turns),
            )
            for way in WAYS
        ],
    )
    speed, work = (
        Grid(
            title,
            ("", *QUERIES, *CHAINS),
            [(way, *(f"{of(one[way]) / of(one['none']):.2f}" for one in _all(by_joins, by_inputs))) for way in WAYS],
        )
        for title, of in (
            ("Throughput, against none", attrgetter("throughput")),
            ("Throughput by processor time, against none", attrgetter("by_processor")),
        )
    )
    late = Grid(
        "Mean latency in milliseconds",
        ("", *QUERIES, *CHAINS),
        [(way, *(f"{one[way].latency_ms:,.0f}" for one in _all(by_joins, by_inputs))) for way in WAYS],
    )
    lengths = (10, 100, 1_000, 10_000)
    checks = {way: [detection_us(way, length) for length in lengths] for way in ("scan", "multiset")}
    cost = Grid(
        "Microseconds of one check, by the number of events under way",
        ("", *(f"{length:,}" for length in lengths)),
        [(way, *(f"{one:,.1f}" for one in checks[way])) for way in checks],
    )
    return Finding(
        "consistency",
        [shares, speed, work, late, cost],
        {
            "consistency-distances": bar_chart(
                "Distance between consistent states at level 'none', in changes of the answer",
                Axis("how often"),
                [*(f"{low} to {high}" for low, high in pairwise(BINS)), f"over {BINS[-1]}"],
                {name: [float(one) for one in histogram(found)] for name, found in apart.items()},
            ),
            "consistency-throughput": bar_chart(
                "Throughput by the number of joins",
                Axis("tuples a second"),
                list(QUERIES),
                {way: [by_joins[name][way].throughput for name in QUERIES] for way in DRAWN},
            ),
            "consistency-latency": bar_chart(
                "Latency by the number of joins",
                Axis("milliseconds"),
                list(QUERIES),
                {way: [by_joins[name][way].latency_ms for name in QUERIES] for way in DRAWN},
            ),
            "consistency-inputs": line_chart(
                "Latency by the number of inputs",
                Axis("inputs", ticks=(2, 3, 4)),
                Axis("milliseconds"),
                {
                    way: [
                        (place, found[way].latency_ms)
                        for place, found in enumerate([by_joins["Q1"], *by_inputs.values()], 2)
                    ]
                    for way in DRAWN
                },
            ),
        },
        [comparison(by_joins | by_inputs)],
    )


def _all(*some: Mapping[str, Mapping[str, Measured]]) -> list[Mapping[str, Measured]]:
    return [found for one in some for found in one.values()]


def batches(come: Iterable[bool], streams: Sequence[str], seed: int) -> list[Batch]:
    """Random tuples for each turn in which a batch comes, nothing for the others."""
    chance = np.random.default_rng(seed)
    return [
        {
            name: [
                (turn * 10 + 1 + place * 9 // ROWS, (int(k), int(j), int(v)))
                for place, (k, j, v) in enumerate(chance.integers(0, KEYS, (ROWS, 3)))
            ]
            for name in (streams if comes else ())
        }
        for turn, comes in enumerate(come)
    ]


def by_way(spark: SparkSession, text: str, count: int, done: Callable[[], None]) -> dict[str, Measured]:
    """Runs so many cycles of a query in all ways, on the same tuples, after those that do not count."""
    chance = random.Random(7)
    with ExitStack() as stack:
        driven = []
        for way in WAYS:
            clock = ManualClock()
            driven.append(Driven(spark, stack.enter_context(Engine(spark, clock=clock)), clock, way, text))
        come = CYCLE * (WARM_UP + count)
        for turn, batch in enumerate(batches(come, list(driven[0].came), seed=7)):
            for one in chance.sample(driven, len(driven)):
                one.turn(turn, batch, counts=turn >= WARM_UP * len(CYCLE))
            done()
        for one in driven:
            one.rest()
        found = {one.way: one.end() for one in driven}
    if count:
        busy = of_a_cycle({way: one.busy_s for way, one in found.items()})
        processor = of_a_cycle({way: one.processor_s for way, one in found.items()})
        for way, measured in found.items():
            measured.cycle_busy_s, measured.cycle_processor_s = busy[way], processor[way]
    return found


def of_a_cycle(found: Mapping[str, ByPlace]) -> dict[str, float]:
    """What a cycle takes in each way, given what each turn of each cycle took."""
    total = dict.fromkeys(found, 0.0)
    for place in next(iter(found.values())):
        middles = [median(turns) for turns in zip(*(one[place] for one in found.values()), strict=True)]
        for way, one in found.items():
            ratios = [took / middle for took, middle in zip(one[place], middles, strict=True)]
            total[way] += median(middles) * median(ratios)
    return total


def distances(spark: SparkSession, text: str, count: int, done: Callable[[], None]) -> list[int]:
    """How many changes of the answer lie between two consistent states, if nothing is done about consistency."""
    clock, chance, found, since = ManualClock(), random.Random(11), list[int](), 0
    come = [not turn or chance.random() >= PAUSES for turn in range(count)]
    with Engine(spark, clock=clock) as engine:
        one = Driven(spark, engine, clock, "none", text)
        changes = list[int]()
        engine.query("q").on_early(lambda answer: changes.append(len(answer.added) + len(answer.withdrawn)))
        for turn, batch in enumerate(batches(come, list(one.came), seed=11)):
            one.turn(turn, batch, counts=False)
            done()
            since += sum(changes)
            changes.clear()
            if one.known() and since:
                found.append(since)
                since = 0
    return found


def histogram(apart: Sequence[int]) -> list[int]:
    """How many distances lie in each bin; the last one has no upper border."""
    return [sum(low < one <= high for one in apart) for low, high in pairwise((*BINS, 10**9))]


def detection_us(way: str, events: int) -> float:
    """How long one check takes while so many events are under way between four stages."""
    multiset = Multiset() if way == "multiset" else None
    flow = Flow({"a": ("s",), "b": ("s",), "c": ("a", "b"), "answer": ("c", "s")}, multiset)
    for number in range(1, events // 3 + 2):
        flow.arrive("s", number)
    under_way: UnderWay = multiset or QueueScan(flow)
    times = []
    for _ in range(20):
        begun = perf_counter()
        input_prefix(flow.reflects, under_way)
        times.append((perf_counter() - begun) * 1e6)
    return median(times)


def comparison(found: Mapping[str, Mapping[str, Measured]]) -> str:
    """Sentences that compare the default with nothing at all, and with the goal."""
    speed = [one[DEFAULT].by_processor / one["none"].by_processor for one in found.values()]
    late = [one[DEFAULT].latency_ms / one["none"].latency_ms for one in found.values()]
    agree = all(len({way.results for way in one.values()}) == 1 for one in found.values())
    fast, soon = sum(one >= GOAL[0] for one in speed), sum(one <= GOAL[1] for one in late)
    return (
        f"The default, {DEFAULT}, against none, in the middle of all queries: {median(speed):.2f} times the throughput "
        f"by processor time, {median(late):.2f} times the latency. It has {GOAL[0]} of the throughput or more for "
        f"{fast} of {len(speed)} queries, and {GOAL[1]} of the latency or less for {soon}. "
        f"{'All ways end with the same answers' if agree else 'ANSWERS DIFFER'}."
    )
