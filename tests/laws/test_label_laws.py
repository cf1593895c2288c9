"""The law of labels: answers up to a label are those of the query over just the tuples that the label counts.

Random queries run while tuples come out of order and late, heartbeats and steps come when they will, and engines are
killed. Each label that is given out is taken at its word: the reference evaluates the query over the first tuples of
each stream, in the order in which they came to the log, cut at the instant of the label. Engines are real; most of them
run their epochs in DuckDB, a few on Spark.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tools.arrivals import Arrivals
from tools.duck_engine import engine_on_duckdb, without_spark
from tools.random_queries import HORIZON, KEYS, RELATIONS, STREAMS, cases, inputs

from headgate import ManualClock
from headgate.deliver.reflects import Label
from headgate.engine import Engine
from headgate.testing.cases import Case, Change, Row, difference
from headgate.testing.reference import evaluate
from headgate.testing.runner import script

FLOWING = (
    "Select Rstream(*) From S [Now]",
    "Select Rstream(A, B) From S [Now] Where A > 0",
    "Select Rstream(A, B) From (Select A, B From S [Now] Union All Select A, C From T [Now]) x",
)
"""Queries whose answers wait for nobody, or for one instant."""

MEMBERS = (
    "Select Istream(A, B) From S [Now] Where B > {}",
    "Select Rstream(A, B) From S [Now] Where B > {}",
    "Select A, Count(*) As n From S [Range 3] Where B > {} Group By A",
)
"""Queries that are a family if the number differs."""

Opening = Callable[[Path], Engine]


class Scene:
    """An engine with some queries, and what came to its logs."""

    def __init__(self, open_engine: Opening, directory: Path, case: Case, queries: dict[str, str], seed: int) -> None:
        self.open_engine = open_engine
        self.directory = directory
        self.case = case
        self.queries = queries
        self.chance = random.Random(seed)
        self.engine = open_engine(directory)
        self.heartbeats = self.chance.choice(("query", "operator", "memory-aware"))
        self.engine.execute(f"SET heartbeats = '{self.heartbeats}'; {script(case)}")
        self.disorder = self.chance.choice((0, 3))
        for stream in case.streams if self.disorder else ():
            self.engine.execute(f"DISORDER OF {stream} {self.disorder}")
        for name, text in queries.items():
            if name != "answer":
                self.engine.execute(f"CREATE QUERY {name} AS {text}")
        self.families = sum(query.hidden for query in self.engine._core.programs())
        self.arrivals = Arrivals(case, self.chance)
        self.came = self.arrivals.came
        self.judged: set[tuple[str, tuple[tuple[str, int], ...], int, int]] = set()
        self.labels = 0
        """How many labels were taken at their word that count any tuples."""

    # what happens

    def run(self) -> None:
        while self.arrivals.coming:
            match self.chance.randrange(8):
                case 0 | 1 | 2 | 3:
                    self.arrivals.push(self.engine, self.chance.randint(1, 4))
                case 4 | 5:
                    self.engine.step()
                case 6:
                    self._beat()
                case 7 if self.chance.random() < 0.5:
                    self._kill()
            self.look()
        self.engine.advance(HORIZON)
        self.look()
        self.look_back()
        self.engine.close()

    def _beat(self) -> None:
        """Say that an instant is complete, whatever is still under way: that is late from then on."""
        upto = self.chance.randint(0, HORIZON)
        self.arrivals.push_relations(self.engine, upto)
        if self.chance.random() < 0.5:
            self.engine.advance(upto)
        else:
            for name in self.case.streams:
                self.engine.punctuate(name, upto)

    def _kill(self) -> None:
        self.engine._core.journal.close()
        self.engine._core.lock.release()
        self.engine = self.open_engine(self.directory)

    # what is judged

    def look(self) -> None:
        """Judge the labels of now by the answers of now."""
        for name in self.queries:
            query = self.engine.query(name)
            self._judge(name, query.reflects, self._found(name))

    def look_back(self) -> None:
        """Judge the labels of all results by the answers of the end."""
        for name in self.queries:
            query = self.engine.query(name)
            found, results = self._found(name), query.results(labels=True)
            assert [(one.at, one.sign, tuple(one.row.values())) for one in results] == found
            for one in results:
                assert one.reflects, "every epoch has a label"
                if query.answer.inputs.ahead == "nothing":
                    assert one.at <= next(iter(one.reflects.values())).complete
                self._judge(name, one.reflects, found)

    def _found(self, name: str) -> list[Change]:
        return [(one.at, one.sign, tuple(one.row.values())) for one in self.engine.query(name).results()]

    def _judge(self, name: str, label: Label, found: list[Change]) -> None:
        query = self.engine.query(name)
        if not label:
            assert not query.begun or query.epochs == 0, f"{name} has a label"
            return
        assert set(label) == set(query.streams())
        assert all(one.tuples <= len(self.came[stream]) for stream, one in label.items())
        (complete,) = {one.complete for one in label.values()}
        ahead = query.answer.inputs.ahead == "everything"
        if complete is None and not ahead:
            return
        counts = {stream: one.tuples for stream, one in label.items()}
        if complete is not None:
            self._compare(name, counts, complete, found)
        if ahead and found == self._found(name) and label == query.reflects:
            self._compare(name, counts, HORIZON, found)

    def _compare(self, name: str, counts: dict[str, int], upto: int, found: list[Change]) -> None:
        shown = [change for change in found if change[0] <= upto]
        key = name, tuple(sorted(counts.items())), upto, hash(tuple(shown))
        if key in self.judged:
            return
        self.judged.add(key)
        self.labels += any(counts.values())
        case = replace(self.arrivals.prefix(counts, upto), query=self.queries[name])
        differs = difference(evaluate(case)[1], shown, upto)
        assert differs is None, f"{self.queries[name]}\n{counts} up to {upto}\n{self.came}\n{differs}"


def played(
    open_engine: Opening,
    case: Case,
    more: dict[str, str],
    seed: int,
    about: AbstractContextManager[None] | None = None,
) -> Scene:
    with TemporaryDirectory() as directory, about or nullcontext():
        scene = Scene(open_engine, Path(directory), case, {"answer": case.query, **more}, seed)
        scene.run()
        return scene


@settings(max_examples=40)
@given(cases(depth=0, most=8), st.sampled_from(FLOWING), st.integers(0, 10_000))
def test_answers_up_to_a_label_are_those_over_its_tuples(case: Case, flowing: str, seed: int) -> None:
    played(engine_on_duckdb, case, {"again": case.query, "flowing": flowing}, seed, without_spark())


@settings(max_examples=20)
@given(cases(depth=1, most=8), st.sampled_from(FLOWING), st.integers(0, 10_000))
def test_labels_of_nested_queries(case: Case, flowing: str, seed: int) -> None:
    played(engine_on_duckdb, case, {"again": case.query, "flowing": flowing}, seed, without_spark())


@settings(max_examples=12)
@given(inputs(), st.sampled_from(MEMBERS), st.integers(0, 10_000))
def test_labels_of_members_of_a_family(given: dict[str, list[tuple[int, Row, str]]], text: str, seed: int) -> None:
    members = [text.format(number) for number in range(5)]
    case = Case("members", members[0], STREAMS, RELATIONS, (), given, HORIZON, keys=KEYS)
    more = {f"member_{number}": members[number] for number in range(1, 5)}
    scene = played(engine_on_duckdb, case, more, seed, without_spark())
    assert scene.families == (scene.heartbeats == "query"), "others run alone"


@settings(max_examples=12)
@given(
    st.lists(st.tuples(st.integers(0, HORIZON), st.sampled_from("aabc"), st.integers(0, 3)), max_size=12),
    st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_labels_of_a_query_by_groups(arrivals: list[tuple[int, str, int]], steps: list[bool]) -> None:
    """Sources come as they will, one far ahead of another: each group has an instant of its own."""
    text = "SELECT dev, SUM(v) AS n FROM s [RANGE 3] GROUP BY dev"
    came: list[tuple[int, Row, str]] = []

    def judge(label: Label, found: list[Change]) -> None:
        if label and (complete := label["s"].complete) is not None:
            prefix = [entry for entry in came[: label["s"].tuples] if entry[0] <= complete]
            schema = {"s": {"dev": "string", "v": "int"}}
            case = Case("groups", text, schema, {}, (), {"s": prefix}, complete)
            differs = difference(evaluate(case)[1], [one for one in found if one[0] <= complete], complete)
            assert differs is None, f"{label}\n{came}\n{differs}"

    with without_spark(), engine_on_duckdb() as engine:
        engine.execute(
            "CREATE STREAM s (dev STRING, v INT) SOURCE BY dev; DISORDER OF s 2; GROUPS OF s ('a'), ('b');"
            f"CREATE QUERY q AS {text}"
        )
        query = engine.query("q")
        assert len(query.answers) == 3
        for (at, dev, v), step in zip(arrivals, steps, strict=False):
            if engine.push("s", [(at, (dev, v))]):
                came.append((at, (dev, v), "+"))
            if step:
                engine.step()
            judge(query.reflects, [(one.at, one.sign, tuple(one.row.values())) for one in query.results()])
        engine.advance(HORIZON)
        results = query.results(labels=True)
        for one in results:
            judge(one.reflects or {}, [(other.at, other.sign, tuple(other.row.values())) for other in results])


@pytest.mark.spark
@settings(max_examples=3)
@given(case=cases(depth=0, most=4), flowing=st.sampled_from(FLOWING), seed=st.integers(0, 10_000))
def test_labels_on_spark(spark: SparkSession, case: Case, flowing: str, seed: int) -> None:
    more = {"again": case.query, "flowing": flowing}
    played(lambda directory: Engine(spark, directory, clock=ManualClock()), case, more, seed)
