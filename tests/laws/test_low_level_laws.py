"""The law of the low level: answers, labels, dead letters and heartbeats are the same with it and without.

Random queries run on two engines that get the same tuples, out of order and late, the same heartbeats and steps, and are
killed at the same moments. One of them keeps all tuples in its logs, the other what its queries need. A query that
comes later needs what was not kept: it must answer as the reference does from the instant on from which it says it
sees its streams. Engines are real; most of them run their epochs in DuckDB, a few on Spark.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tools.duck_engine import engine_on_duckdb, without_spark
from tools.random_queries import HORIZON, KEYS, RELATIONS, STREAMS, cases, inputs

from headgate import ManualClock
from headgate.engine import Engine
from headgate.testing.cases import Case, Row, difference
from headgate.testing.reference import evaluate
from headgate.testing.runner import script

SELECTING = (
    "Select Rstream(A, B) From S [Now] Where A > 1",
    "Select Istream(A) From S [Range 4] Where B = 1 And A <> 0",
    "Select A, Count(*) As n From S [Range 3] Where B In (0, 2) Group By A",
    "Select Rstream(A) From (Select A From S [Now] Where A >= 2 Union All Select A From T [Now] Where A Is Null) x",
    "Select A, Sum(B) As m From (Select A, B From S [Range 5] Where Not (B < 1)) x Where A < 2 Group By A",
    "Select x.A, y.C From S [Range 3] x, T [Range 4] y Where x.A = y.A And x.B > 0 And y.C < 2",
    "Select A, B From S [Partition By A Rows 1] Where A > 0",
    "Select A, B From S [Rows 2] Where B > 0",
)
"""Queries that need a part of the tuples, or of the columns; of a row window without a partition they need all."""

COUNTING = (
    "Select A, Count(*) As n, Count(B) As b From S [Range 3] Group By A",
    "Select A, Sum(B) As m, Min(B) As l, Max(D) As h From S [Range 5 Slide 5] Where B > 0 Group By A",
    "Select A, Count(Distinct B) As d, Sum(A * 2 - B) As m From S [Range Unbounded] Group By A",
    "Select tb, A, Count(*) As n From S Group By Element_Time Div 4 As tb, A Emit Final",
    "Select A, Count(*) As n From (Select A From S [Now] Union All Select A From T [Now] Where A > 0) x Group By A",
    "Select A, Count(*) As n From (Select A, Sum(B) As m From S [Range 4] Group By A) x Group By A",
    "Select A, Sum(B) As m, Min(B) As l, Max(B) As h, Count(B) As b From S [Range 7 Slide 3] Group By A",
    "Select tb, Sum(B) As m, Max(A) As h, Count(*) As n From S Group By Element_Time - Element_Time % 6 As tb Emit Final",
    "Select tb, Max(B) As h, Sum(A) As m From S Where A > 0 Group By (Element_Time + 1) Div 3 As tb, B Emit Final",
    "Select A, Sum(C) As m From (Select A, C From T [Range 4 Slide 4] Where C < 3) x Group By A",
    "Select A, Avg(B) As m, Count(*) As n From S [Range 5 Slide 5] Group By A Having Avg(B) > 0 Or Count(B) = 0",
    "Select tb, Avg(B) As m, Avg(A * 2) As t, Count(*) Filter (Where A > 0) As n, Sum(B) Filter (Where A = 1) As s, "
    "Max(B) Filter (Where B < 2) As h From S Group By Element_Time Div 4 As tb Emit Final",
    "Select A, Count(B) Filter (Where D = 'x') As n, Avg(B) Filter (Where D Is Null) As m From S [Range 3] Group By A",
)
"""Queries that only aggregate, so that one tuple may stand for several."""

Opening = Callable[[Path], Engine]


class Pair:
    """Two engines with the same queries and the same past, with the low level and without."""

    def __init__(self, open_engine: Opening, directory: Path, case: Case, queries: list[str], seed: int) -> None:
        self.open_engine = open_engine
        self.directories = {way: directory / way for way in ("on", "off")}
        self.case = case
        self.chance = random.Random(seed)
        self.engines = {way: open_engine(folder) for way, folder in self.directories.items()}
        self.names = [f"q{number}" for number in range(len(queries))]
        self.disorder = self.chance.choice((0, 3))
        for way, engine in self.engines.items():
            engine.execute(f"SET low_level = '{way}'; {script(case)}; DROP QUERY answer")
            for stream in case.streams if self.disorder else ():
                engine.execute(f"DISORDER OF {stream} {self.disorder}")
            for name, text in zip(self.names, queries, strict=True):
                engine.execute(f"CREATE QUERY {name} AS {text}")
        self.later: dict[str, tuple[str, int | None]] = {}
        """Queries that came later: the text, and the instant behind which they see their streams."""
        self.came: dict[str, list[tuple[int, Row, str]]] = {name: [] for name in case.input}
        self.unneeded = self.alike = 0
        self.punctuated = -1

    @property
    def reduced(self) -> Engine:
        return self.engines["on"]

    def run(self, texts: list[str]) -> None:
        coming, many = self._arrivals(), not texts
        while coming:
            match self.chance.randrange(10):
                case 0 | 1 | 2 | 3 | 4:
                    (self._push_together if many else self._push)(coming, self.chance.randint(1, 5))
                case 5 | 6:
                    for engine in self.engines.values():
                        engine.step()
                case 7:
                    self.punctuated = max(self.punctuated, self.chance.randint(0, HORIZON))
                    self._punctuate()
                case 8 if self.chance.random() < 0.4:
                    self._kill()
                case 9 if texts:
                    self._come(texts.pop())
        for engine in self.engines.values():
            engine.advance(HORIZON)
        self._compare()
        for engine in self.engines.values():
            engine.close()

    def _arrivals(self) -> list[tuple[str, tuple[int, Row, str]]]:
        delayed = [
            (entry[0] + (self.chance.randint(0, 3) if name in self.case.streams else -HORIZON), place, name, entry)
            for name, entries in self.case.input.items()
            for place, entry in enumerate(entries)
        ]
        return [(name, entry) for _, _, name, entry in sorted(delayed, key=lambda one: (one[0], one[2], one[1]))]

    def _push(self, coming: list[tuple[str, tuple[int, Row, str]]], count: int) -> None:
        for name, entry in coming[:count]:
            pushed = [(entry[0], entry[1])] if name in self.case.streams else [entry]
            taken = {engine.push(name, pushed) for engine in self.engines.values()}
            assert len(taken) == 1, "late for both, or for none"
            if taken == {1}:
                self.came[name].append(entry)
        del coming[:count]

    def _push_together(self, coming: list[tuple[str, tuple[int, Row, str]]], count: int) -> None:
        """Push what comes next of one stream or relation as one batch."""
        name = coming[0][0]
        some = [entry for other, entry in coming[: 4 * count] if other == name]
        coming[: 4 * count] = [one for one in coming[: 4 * count] if one[0] != name]
        pushed = [(at, row) for at, row, _ in some] if name in self.case.streams else some
        assert len({engine.push(name, pushed) for engine in self.engines.values()}) == 1, "late for both, or for none"

    def _kill(self) -> None:
        for way, engine in self.engines.items():
            engine._core.journal.close()
            engine._core.lock.release()
            self.engines[way] = self.open_engine(self.directories[way])
        self._punctuate()
        for engine in self.engines.values():
            engine.step()

    def _punctuate(self) -> None:
        """The sources say how far they are, also to an engine that begins again: it has not kept how far it was if it
        had nothing to compute up to there.
        """
        for name in self.case.streams if self.punctuated >= 0 else ():
            for engine in self.engines.values():
                engine.punctuate(name, self.punctuated)

    def _come(self, text: str) -> None:
        """A query comes that may need what was not kept, and one that is not needed any more goes."""
        name = f"later{len(self.later)}"
        for engine in self.engines.values():
            engine.execute(f"CREATE QUERY {name} AS {text}")
        self.later[name] = text, self.reduced.query(name).answer.progress.start
        if len(self.names) > 1 and self.chance.random() < 0.5:
            gone = self.names.pop()
            self._alike(gone)
            for engine in self.engines.values():
                engine.execute(f"DROP QUERY {gone}")

    # what is judged

    def _alike(self, name: str) -> None:
        found = [self._answers(engine, name) for engine in self.engines.values()]
        assert found[0] == found[1], f"{name}: {self.came}"

    def _answers(self, engine: Engine, name: str) -> list[tuple[Any, ...]]:
        found = engine.query(name).results()
        return sorted((one.at, one.sign, tuple(map(_plain, one.row.values()))) for one in found)

    def _compare(self) -> None:
        for name in self.names:
            self._alike(name)
            assert len({engine.query(name).complete for engine in self.engines.values()}) == 1
        for name in self.case.streams:
            kept = [engine.counts(name) for engine in self.engines.values()]
            self.unneeded += kept[0].pop("unneeded", 0)
            self.alike += kept[0].pop("alike", 0)
            assert kept[0] == kept[1]
            assert len({engine.heartbeat(name) for engine in self.engines.values()}) == 1
            letters = [[{**one} for one in engine.dead_letters(name)] for engine in self.engines.values()]
            assert letters[0] == letters[1]
        for name, (text, start) in self.later.items():
            self._judge(name, text, start)

    def _judge(self, name: str, text: str, start: int | None) -> None:
        """A query that came later sees its streams from behind an instant on, relations in full."""
        seen = {
            stream: [one for one in rows if start is None or one[0] > start or stream not in self.case.streams]
            for stream, rows in self.came.items()
        }
        found = [(one.at, one.sign, tuple(one.row.values())) for one in self.reduced.query(name).results()]
        case = replace(self.case, query=text, views=(), input=seen, horizon=HORIZON)
        differs = difference(evaluate(case)[1], found, HORIZON)
        assert differs is None, f"{text} behind {start}\n{self.came}\n{differs}"


def _common(entry: tuple[int, Row, str]) -> tuple[int, Row, str]:
    """A tuple of which there are likely to be several: few instants, few values."""
    at, row, sign = entry
    return at // 5 * 5, tuple(value % 2 if isinstance(value, int) else value for value in row), sign


def _plain(value: Any) -> str:
    """A value as text; whole numbers alike, whatever their type in DuckDB."""
    return str(int(value)) if isinstance(value, Decimal) and value == int(value) else str(value)


def played(
    open_engine: Opening,
    case: Case,
    queries: list[str],
    later: list[str],
    seed: int,
    about: AbstractContextManager[None] | None = None,
) -> Pair:
    with TemporaryDirectory() as directory, about or nullcontext():
        pair = Pair(open_engine, Path(directory), case, queries, seed)
        pair.run(later)
        return pair


@settings(max_examples=6)
@given(cases(depth=1, most=10), st.lists(st.sampled_from(SELECTING), max_size=2), st.integers(0, 10_000))
def test_random_queries_answer_as_without_it(case: Case, more: list[str], seed: int) -> None:
    played(engine_on_duckdb, case, [case.query, *more], [], seed, without_spark())


@settings(max_examples=10)
@given(
    inputs(most=20),
    st.lists(st.sampled_from(SELECTING), min_size=1, max_size=2),
    st.lists(st.sampled_from(SELECTING), min_size=1, max_size=2),
    st.integers(0, 10_000),
)
def test_queries_that_come_and_go(
    given: dict[str, list[tuple[int, Row, str]]], queries: list[str], later: list[str], seed: int
) -> None:
    case = Case("low level", SELECTING[0], STREAMS, RELATIONS, (), given, HORIZON, keys=KEYS)
    played(engine_on_duckdb, case, queries, later, seed, without_spark())


@settings(max_examples=8)
@given(
    inputs(most=30),
    st.lists(st.sampled_from(COUNTING), min_size=1, max_size=2),
    st.lists(st.sampled_from(SELECTING), max_size=1),
    st.integers(0, 10_000),
)
def test_queries_that_count(
    given: dict[str, list[tuple[int, Row, str]]], queries: list[str], more: list[str], seed: int
) -> None:
    few = {**given, **{name: list(map(_common, given[name])) if seed % 3 else given[name] for name in STREAMS}}
    case = Case("counting", COUNTING[0], STREAMS, RELATIONS, (), few, HORIZON, keys=KEYS)
    played(engine_on_duckdb, case, [*queries, *more[: seed % 2]], [], seed, without_spark())


@settings(max_examples=8)
@given(
    inputs(most=30),
    st.lists(st.sampled_from(COUNTING), min_size=1, max_size=2),
    st.lists(st.sampled_from((*SELECTING, *COUNTING[:3], COUNTING[6])), min_size=1, max_size=2),
    st.integers(0, 10_000),
)
def test_queries_that_come_when_others_count(
    given: dict[str, list[tuple[int, Row, str]]], queries: list[str], later: list[str], seed: int
) -> None:
    case = Case("counting", COUNTING[0], STREAMS, RELATIONS, (), given, HORIZON, keys=KEYS)
    played(engine_on_duckdb, case, queries, later, seed, without_spark())


def test_tuples_of_different_instants_are_put_together() -> None:
    """Two queries by buckets, one by threes and one by sixes: what both cannot tell apart is kept once."""
    rows: list[tuple[int, Row, str]] = [(at, (k % 2, k, "x"), "+") for at in range(1, HORIZON) for k in range(6)]
    given = {**{name: [] for name in (*STREAMS, *RELATIONS)}, "S": rows}
    case = Case("buckets", COUNTING[0], STREAMS, RELATIONS, (), given, HORIZON, keys=KEYS)
    pair = played(engine_on_duckdb, case, [COUNTING[6], COUNTING[7]], [], 3, without_spark())
    assert pair.alike > 0


@pytest.mark.spark
@settings(max_examples=1)
@given(case=cases(depth=0, most=6), seed=st.integers(0, 10_000))
def test_on_spark(spark: SparkSession, case: Case, seed: int) -> None:
    def open_engine(folder: Path) -> Engine:
        return Engine(spark, folder, clock=ManualClock())

    played(open_engine, case, list(SELECTING[:3]), [SELECTING[5]], seed)
    played(open_engine, case, list(COUNTING[1:4]), [], seed)
    played(open_engine, case, list(COUNTING[6:8]), [], seed)
