"""What queries share: a query over shared fragments answers as it does alone, and as the reference does.

In DuckDB any subplan that may be shared is made a fragment, in the form that does not know whose it was, and each runs
in epochs of its own. On Spark queries come and go, and what is shared comes and goes with them.
"""

from __future__ import annotations

import random
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tools.duck import Fragments, bound
from tools.random_queries import cases, cuttings, described

from headgate.engine import Engine
from headgate.plan.fragments import Part
from headgate.plan.nodes import Node, Relation, shared_name
from headgate.plan.rewrites.driver import rewritten
from headgate.plan.shared import SharableParts, part_over
from headgate.testing.cases import Case, difference
from headgate.testing.reference import evaluate

Cutting = tuple[list[int], list[bool]]


class Sharing:
    """Divides a plan into shared fragments, at the subplans that a list of choices says."""

    def __init__(self, choices: list[bool]) -> None:
        self.choices = cycle(choices)
        self.known: dict[Relation, str | None] = {}
        self.parts: dict[str, tuple[Relation, Part]] = {}

    def divided(self, plan: Node) -> list[Part]:
        answer = self.over(SharableParts(plan), None)
        return [*(part for _, part in self.parts.values()), answer]

    def over(self, parts: SharableParts, log: str | None) -> Part:
        read = parts.chosen(self.log_of)
        return part_over(log, parts, {name: self.parts[name] for name in read})

    def log_of(self, form: Relation) -> str | None:
        if form not in self.known:
            self.known[form] = None
            if next(self.choices):
                inside = self.over(SharableParts(form, shared=True), "")
                log = self.known[form] = shared_name(len(self.parts) + 1)
                self.parts[log] = form, Part(log, inside.plan, inside.parts, inside.streams, inside.scopes)
        return self.known[form]


@settings(max_examples=150)
@given(
    cases(depth=1),
    st.lists(cuttings(), min_size=1, max_size=3),
    st.lists(st.booleans(), min_size=1, max_size=4).filter(any),
)
def test_over_shared_fragments_is_reference(case: Case, cuttings: list[Cutting], choices: list[bool]) -> None:
    parts = Sharing(choices).divided(rewritten(bound(case)).plan)
    differs = difference(evaluate(case)[1], Fragments(case, parts).run(cuttings), case.horizon)
    assert differs is None, f"{described(case, cuttings)}\n{[part.plan.label for part in parts]}\n{differs}"


COMMON = (
    "Select k, Count(*) As n, Sum(v) As m From s [Range 4] Group By k",
    "Select x.k, x.v, y.w From s [Range 3] x, r [Range 5] y Where x.k = y.k",
    "Select Distinct k From s [Range 3]",
    "Select k From s [Range 4] Except Select k From r [Range 2]",
)
AROUND = (
    "{0}",
    "Select Istream(*) From ({0}) p",
    "Select Dstream(p.k) From ({0}) p",
    "Select p.k As key, Count(*) As c From ({0}) p Group By p.k",
    "Select p.k, q.w From ({0}) p, r [Now] q Where p.k = q.k",
    "Select a.k As one, b.k As other From ({0}) a, ({1}) b Where a.k = b.k",
)
SCHEMAS = {"s": {"k": "string", "v": "int"}, "r": {"k": "string", "w": "int"}}
LAST = 9


class Scene:
    """Queries that come and go, each of them twice: one that shares, and one that does not."""

    def __init__(self, engine: Engine, chance: random.Random) -> None:
        self.engine = engine
        self.chance = chance
        self.came: dict[str, tuple[str, int]] = {}
        """By name: the query's text, and the instant behind which it sees its streams."""
        self.found: dict[str, tuple[int, list[Any]]] = {}
        """By name: the instant at which it went, and its answers."""
        self.input: dict[str, list[tuple[int, tuple[Any, ...], str]]] = {"s": [], "r": []}
        self.most = 0

    def come(self, instant: int, more: int) -> None:
        for _ in range(more):
            name = f"q{len(self.came)}"
            text = self.chance.choice(AROUND).format(*self.chance.sample(COMMON, 2))
            self.engine.execute(f"Create Query {name} As {text}")
            self.engine.execute(f"Set sharing = 'off'; Create Query {name}_alone As {text}; Set sharing = 'on'")
            self.came[name] = text, instant - 1
        self.most = max(self.most, *(len(query.shared) for query in self.engine.queries()))

    def alter(self, instant: int) -> None:
        """End a query, and let another take its place under its name."""
        name = self.chance.choice(self.left())
        self.end(name, instant)
        self.engine.execute(f"Alter Query {name} As {self.chance.choice(COMMON)}")
        self.engine.execute(f"Drop Query {name}_alone")

    def drop(self, instant: int) -> None:
        name = self.chance.choice(self.left())
        self.end(name, instant)
        self.engine.execute(f"Drop Query {name}; Drop Query {name}_alone")

    def left(self) -> list[str]:
        return [name for name in self.came if name not in self.found]

    def end(self, name: str, instant: int) -> None:
        """Compare the answers of a query with those that it gives alone."""
        given = [
            sorted((result.at, result.sign, tuple(result.row.values())) for result in self.engine.query(one).results())
            for one in (name, f"{name}_alone")
        ]
        assert given[0] == given[1], self.came[name][0]
        self.found[name] = instant, given[0]

    def feed(self, instant: int) -> None:
        for stream, rows in self.input.items():
            new = [
                (instant, (self.chance.choice("ab"), self.chance.randrange(3)), "+")
                for _ in range(self.chance.randrange(3))
            ]
            rows += new
            self.engine.push(stream, [(at, row) for at, row, _ in new])
        self.engine.advance(instant)

    def judge(self) -> None:
        """Compare all answers with the reference."""
        for name, (horizon, shown) in self.found.items():
            text, start = self.came[name]
            seen = {stream: [one for one in rows if one[0] > start] for stream, rows in self.input.items()}
            case = Case(name, text, SCHEMAS, {}, (), seen, horizon)
            differs = difference(evaluate(case)[1], shown, horizon)
            assert differs is None, f"{text}, from {start} on: {differs}"


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(2))
def test_queries_that_come_and_go_answer_as_alone(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    engine = Engine(spark, tmp_path)
    engine.execute("Create Stream s (k String, v Int); Create Stream r (k String, w Int)")
    scene = Scene(engine, random.Random(seed))
    for instant in range(1, LAST + 1):
        if instant in (1, 4, 6):
            scene.come(instant, 4 if instant == 1 else 2)
        scene.feed(instant)
        match instant:
            case 3:
                scene.drop(instant)
            case 5:
                engine._core.journal.close()  # as if it were killed
                engine._core.lock.release()
                engine = scene.engine = Engine(spark, tmp_path)
            case 7:
                scene.alter(instant)
    for name in scene.left():
        scene.end(name, LAST)
    engine.close()
    assert scene.most, "some of them share something"
    scene.judge()
