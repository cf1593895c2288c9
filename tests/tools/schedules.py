"""Random schedules of queries that answer early in stages, judged by the reference: `make test-schedules SCHEDULES=10000`.

Each query has a level, a method and a pace of its own: which of the stages that could run do so is a matter of chance.
Tuples come out of order and late, heartbeats when they will. Every early answer that says which input it reflects is
taken at its word: it is what the reference answers over just that input. When nothing comes any more, every query must
come to rest with an answer that is known to be consistent with everything that came. What is settled is the same at
every level.

Engines are real. Most run their epochs in DuckDB; `--spark` runs them on Spark.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import get_args

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from headgate import ManualClock
from headgate.engine import Engine
from headgate.schedule.early import EarlyAnswers
from headgate.schedule.query import RunningQuery
from headgate.settings import Level
from headgate.testing.cases import Case, Change, Difference, difference
from headgate.testing.reference import evaluate
from headgate.testing.runner import script
from tools.arrivals import Arrivals
from tools.duck_engine import engine_on_duckdb, without_spark
from tools.random_queries import HORIZON, KEYS, RELATIONS, STREAMS, cases, inputs

METHODS = ("fused", "draining", "heeding", "heeding-scan", "tokens")
PERIODS = ("1 millisecond", "20 milliseconds", "latency 10 milliseconds", "throughput 100")
AT_ONCE = 6
"""How many queries run in one engine."""

MOST_TURNS = 40
"""After so many turns in which nothing comes, a query must be at rest."""

BATCH = 20
"""How many cases are drawn at once: fewer on Spark, where each takes long. The first of them is always a simple one."""

BATCH_ON_SPARK = 5

JOINS = (
    "(Select x.A As A, x.B As B From S [Range {n}] x, T [Range {m}] y Where x.A = y.A) {alias}",
    "(Select A, Count(*) As B From S [Range {n}] Group By A) {alias}",
    "(Select A, Max(C) As B From T [Range {n}] Group By A) {alias}",
    "(Select A, Sum(B) As B From S [Rows {n}] Group By A) {alias}",
    "(Select x.A As A, Count(*) As B From S [Range {m}] x, R y Where x.A = y.A Group By x.A) {alias}",
    "(Select A, B From S [Range {n}] Union All Select A, C From T [Range {m}]) {alias}",
    "(Select x.A As A, y.C As B From S [Range {n}] x Left Join T [Range {m}] y On x.A = y.A) {alias}",
    "(Select A, B From S [Range {n}]) {alias}",
    "(Select A, C As B From T [Now]) {alias}",
)
"""What a query joins: parts of several streams, of one, and streams themselves."""

ABOVE = (
    "Select l.A, l.B As x, r.B As y From {l}, {r} Where l.A = r.A",
    "Select l.A, l.B As x, r.B As y From {l} Left Join {r} On l.A = r.A",
    "Select l.A, Count(*) As n, Max(r.B) As y From {l}, {r} Where l.A = r.A Group By l.A",
    "Select A, B From {l} Union All Select A, B From {r}",
    "Istream(Select l.A, l.B As x, r.B As y From {l}, {r} Where l.A = r.A)",
    "Select l.A, l.B From {l} Where l.A In (Select A From {r})",
    "Select l.A, o.B As y From {l}, (Select l.A, r.B From {m}, {r} Where l.A = r.A) o Where l.A = o.A",
)


@st.composite
def queries_in_stages(draw: st.DrawFn) -> str:
    """A query with several paths from its streams to its answer."""
    drawn = {
        name: draw(st.sampled_from(JOINS)).format(n=draw(st.integers(1, 5)), m=draw(st.integers(1, 4)), alias=alias)
        for name, alias in (("l", "l"), ("m", "l"), ("r", "r"))
    }
    return draw(st.sampled_from(ABOVE)).format(**drawn)


@st.composite
def staged_cases(draw: st.DrawFn) -> Case:
    """Input and a query: mostly one of several stages, sometimes any query at all."""
    if draw(st.integers(0, 5)) == 3:
        return draw(cases(depth=1, most=6))
    query, rows = draw(queries_in_stages()), draw(inputs(8))
    return Case("stages", query, STREAMS, RELATIONS, (), rows, HORIZON, keys=KEYS)


@dataclass(slots=True)
class Verdict:
    """What was seen of schedules."""

    schedules: int = 0
    answers: int = 0
    """Early answers that were judged."""

    in_stages: int = 0
    mixed: int = 0
    """Answers at level 'none' that are not those of what had come."""

    held: int = 0
    """Turns after which an answer was held back, or marked as not consistent."""

    methods: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Watched:
    """A query whose early answers are judged."""

    query: RunningQuery
    level: Level
    method: str

    @property
    def early(self) -> EarlyAnswers:
        assert self.query.early_answers is not None
        return self.query.early_answers

    @property
    def described(self) -> str:
        return f"{self.query.definition.text}\nat level {self.level} by {self.method}"


class Schedule:
    """An engine with a few queries over the same input, each at a pace of its own."""

    def __init__(self, engine: Engine, clock: ManualClock, case: Case, number: int, verdict: Verdict) -> None:
        self.engine, self.clock, self.case, self.verdict = engine, clock, case, verdict
        self.chance = random.Random(number)
        self.resting = False
        plain = script(case).split(";\n")
        self.engine.execute(";\n".join(plain[:-1]))
        for stream in case.streams:
            self.engine.execute(f"DISORDER OF {stream} 1000")
        self.watched = [self._query(place) for place in range(AT_ONCE)]
        self.arrivals = Arrivals(case, self.chance)
        self.came = self.arrivals.came
        self.known: dict[object, list[Change]] = {}
        """What the reference has answered, by the numbers of tuples and the last instant."""

    def _query(self, place: int) -> Watched:
        level = self.chance.choice(get_args(Level))
        method = self.chance.choice(METHODS)
        chosen = {
            "consistency": level,
            "consistency_method": method,
            "inconsistent": self.chance.choice(("hold", "mark")),
            "token_period": self.chance.choice(PERIODS),
        }
        said = ";".join(f"SET {name} = '{value}'" for name, value in chosen.items())
        every = self.chance.choice(("", "", " EVERY 15 MILLISECONDS"))
        self.engine.execute(f"{said}; CREATE QUERY q{place} AS {self.case.query} EMIT EARLY{every}")
        query = self.engine.query(f"q{place}")
        assert query.early_answers is not None
        if query.early_answers.stages is not None:
            query.early_answers.stages.pace = self._pace
            self.verdict.in_stages += 1
        self.verdict.schedules += 1
        self.verdict.methods[f"{level}, {method}"] += 1
        return Watched(query, level, method)

    def _pace(self, stages: Sequence[str]) -> Sequence[str]:
        return stages if self.resting else [name for name in stages if self.chance.random() < 0.6]

    # what happens

    def run(self) -> None:
        while self.arrivals.coming:
            match self.chance.randrange(9):
                case 0 | 1 | 2:
                    self.arrivals.push(self.engine, self.chance.randint(1, 3))
                case 3 | 4 | 5 | 6:
                    self._step()
                case 7:
                    self._beat()
                case 8 if self.chance.random() < 0.3:
                    self._rest()
        self._rest()
        self.engine.advance(HORIZON)
        expected = evaluate(replace(self.case, input=self.came, horizon=HORIZON))[1]
        for one in self.watched:
            found = [(result.at, result.sign, tuple(result.row.values())) for result in one.query.results()]
            differs = difference(expected, found, HORIZON)
            assert differs is None, f"settled: {one.described}\n{self.came}\n{differs}"

    def _step(self) -> None:
        self.clock.move_by(self.chance.choice((0, 1_000, 5_000, 20_000)))
        self.engine.step()
        for one in self.watched:
            self._judge(one)

    def _beat(self) -> None:
        upto = self.chance.randint(0, HORIZON)
        self.arrivals.push_relations(self.engine, upto)
        for name in self.case.streams:
            self.engine.punctuate(name, upto)

    def _rest(self) -> None:
        """Let nothing come until nothing is under way. Then the answer is that of everything that came."""
        self.resting = True
        for _ in range(MOST_TURNS):
            if self.engine._core.loop.next_early_us() is None:
                break
            self._step()
        else:
            restless = [one.described for one in self.watched if one.early.next_us() is not None]
            raise AssertionError(f"no rest after {MOST_TURNS} turns: {restless}\n{self.came}")
        self._step()
        self.resting = False
        for one in self.watched:
            self._judge_at_rest(one)

    # what is judged

    def _judge(self, one: Watched) -> None:
        early = one.query.early()
        if early is None or one.query.answer.inputs.by_arrival:
            return
        shown = [(result.at, result.sign, tuple(result.row.values())) for result in early.results]
        if one.level == "none":
            assert not early.consistent or one.early.stages is None
        if not early.consistent:
            counts = {name: len(self.came[name]) for name in one.query.streams()}
            differs = self._differs(one, counts, early.upto, shown) if early.upto is not None else None
            self.verdict.mixed += one.level == "none" and differs is not None
            self.verdict.held += 1
            return
        if early.upto is None:
            assert not shown
            return
        if not early.tuples:
            assert one.level == "update-complete", one.described
            return
        self.verdict.answers += 1
        assert set(early.tuples) == set(one.query.streams()), one.described
        differs = self._differs(one, early.tuples, early.upto, shown)
        assert differs is None, f"{one.described}\n{early.tuples} up to {early.upto}\n{self.came}\n{differs}"
        if one.level == "synchronized" and shown:
            ends = [self._newest(name, early.tuples[name]) for name in one.query.streams() if name in self.case.streams]
            assert all(end is not None and end >= early.upto for end in ends), one.described

    def _judge_at_rest(self, one: Watched) -> None:
        early = one.query.early()
        if early is None or one.level == "none" or one.query.answer.inputs.by_arrival:
            return
        came = {name: len(self.came[name]) for name in one.query.streams()}
        assert early.consistent, f"at rest: {one.described}\n{self.came}"
        assert dict(early.tuples) == came, f"at rest: {one.described}\n{early.tuples}\n{self.came}"
        newest = max((end for name in came if (end := self._newest(name, came[name])) is not None), default=None)
        if one.level != "synchronized" and newest is not None:
            assert (early.upto or 0) >= newest, f"at rest: {one.described}\n{early}\n{self.came}"

    def _newest(self, name: str, count: int) -> int | None:
        return max((at for at, _, _ in self.came[name][:count]), default=None)

    def _differs(self, one: Watched, counts: Mapping[str, int], upto: int, shown: list[Change]) -> Difference | None:
        key = tuple(sorted(counts.items())), upto
        if key not in self.known:
            self.known[key] = evaluate(self.arrivals.prefix(counts, upto))[1]
        return difference([change for change in self.known[key] if change[0] > one.query.reached], shown, upto)


Opening = Callable[[ManualClock], Engine]


def on_duckdb(clock: ManualClock) -> Engine:
    """Open an engine that runs its epochs in DuckDB."""
    return engine_on_duckdb(clock=clock)


def played(
    case: Case,
    number: int,
    verdict: Verdict,
    open_engine: Opening = on_duckdb,
    about: AbstractContextManager[None] | None = None,
) -> None:
    """Play one schedule with `AT_ONCE` queries."""
    clock = ManualClock()
    with about or without_spark(), open_engine(clock) as engine:
        Schedule(engine, clock, case, number, verdict).run()


def batch(
    number: int, size: int, verdict: Verdict, open_engine: Opening, about: Callable[[], AbstractContextManager[None]]
) -> None:
    @seed(number)
    @settings(
        max_examples=size,
        deadline=None,
        database=None,
        print_blob=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(staged_cases(), st.integers(0, 1_000_000))
    def is_right(case: Case, chosen: int) -> None:
        played(case, chosen, verdict, open_engine, about())

    is_right()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--spark", action="store_true", help="run epochs on Spark, not in DuckDB")
    arguments = parser.parse_args()
    open_engine, about = on_duckdb, without_spark
    if arguments.spark:
        from headgate.spark.session import started

        spark = started()
        open_engine = lambda clock: Engine(spark, clock=clock)  # noqa: E731
        about = nullcontext  # type: ignore[assignment]
    print(f"seed {arguments.seed}", flush=True)
    verdict, began, batches = Verdict(), time.monotonic(), 0
    while verdict.schedules < arguments.schedules:
        try:
            batch(arguments.seed + batches, BATCH_ON_SPARK if arguments.spark else BATCH, verdict, open_engine, about)
        except Exception:
            print(f"wrong after {verdict.schedules} schedules, in the batch of --seed {arguments.seed + batches}")
            raise
        batches += 1
        if arguments.spark or batches % 4 == 0:
            print(f"{verdict.schedules} schedules, {time.monotonic() - began:.0f} s", flush=True)
    print(
        f"{verdict.schedules} schedules, {verdict.in_stages} of them in stages; {verdict.answers} consistent answers "
        f"are right; {verdict.held} turns held back or marked, {verdict.mixed} mixed answers at level 'none'; "
        f"{time.monotonic() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
