"""Rules: the SQL that each one writes, in one golden file a rule, and that it answers as the reference does.

A file holds cases: a title, a query over the streams of `SCRIPT`, and the steps of its program. Those that the module
of the rule wrote stand there in full; of the others, only which module wrote them. To add a case, write its title and
its query. `PYTHONPATH=src:tests python tests/delta/test_rules.py` writes the steps of all cases; read the difference
before committing it.

Every query is also run in DuckDB on random input and cuts, so that a wrong program cannot be blessed. A case whose
title ends with "(text only)" is not run: it needs Spark, or time that the reference does not know.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest
from tools.duck import NARROW, Duck
from tools.places import GOLDEN, ROOT

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query
from headgate.cql.definitions import define
from headgate.delta.lower import Lowering, Way, lower
from headgate.delta.program import Program
from headgate.errors import UserError
from headgate.plan.nodes import Node
from headgate.sql import indented
from headgate.testing.cases import Case, Change, Row, difference
from headgate.testing.reference import evaluate

FOLDER = GOLDEN / "sql"

SCRIPT = """
CREATE STREAM s (k INT, v INT, name STRING);
CREATE STREAM t (k INT, w INT);
CREATE STREAM m (k INT, x DOUBLE, y DOUBLE);
CREATE STREAM p (seq BIGINT INCREASING, w INT);
CREATE STREAM q (seq BIGINT INCREASING, w INT);
CREATE STREAM clocked (k INT, at TIMESTAMP) TIMESTAMP BY at;
CREATE RELATION r (k INT, e INT);
CREATE RELATION keyed (k INT, e INT) KEY (k);
CREATE STREAM together (k INT, v INT);
CREATE STREAM rising (k INT, v INT);
CREATE STREAM grouped (k INT, v INT);
CREATE STREAM climbing (k INT, v INT);
CREATE STREAM orders (id INT, total INT);
CREATE STREAM payments (id INT, paid INT);
CONSTRAINT by_key ON together CLUSTERED BY k WITHIN 0 TUPLES;
CONSTRAINT by_order ON rising ORDERED BY k WITHIN 1 TUPLES ON VIOLATION COUNT;
CONSTRAINT seen ON grouped CLUSTERED BY k DETECTED WITHIN 4 TUPLES CONFIDENCE 0.75;
CONSTRAINT ascent ON climbing ORDERED BY k DETECTED WITHIN 4 TUPLES CONFIDENCE 0.75;
CONSTRAINT known ON payments (id) REFERENCES orders (id) WITHIN 2 TUPLES;
CONSTRAINT paid_at_once ON payments CLUSTERED BY id WITHIN 0 TUPLES;
"""
STREAMS = {
    "s": {"k": "int", "v": "int", "name": "string"},
    "t": {"k": "int", "w": "int"},
    "m": {"k": "int", "x": "double", "y": "double"},
    "p": {"seq": "bigint", "w": "int"},
    "q": {"seq": "bigint", "w": "int"},
    "together": {"k": "int", "v": "int"},
    "rising": {"k": "int", "v": "int"},
    "grouped": {"k": "int", "v": "int"},
    "climbing": {"k": "int", "v": "int"},
    "orders": {"id": "int", "total": "int"},
    "payments": {"id": "int", "paid": "int"},
}
RELATIONS = {"r": {"k": "int", "e": "int"}, "keyed": {"k": "int", "e": "int"}}
HORIZON = 14

NO_RULE = {"__init__", "accumulators", "assumptions", "exact", "instants", "program", "query"}
"""Modules of `delta` that write no steps of their own."""


@dataclass(frozen=True, slots=True)
class Example:
    """A query that uses a rule. Its title may begin with the kind of program that is meant (`program`)."""

    rule: str
    title: str
    query: str

    def plan(self) -> Node:
        found = define(f"{SCRIPT}{self.query}", Catalog())[-1]
        assert isinstance(found, Query)
        return found.plan

    def program(self) -> Program:
        """The program that the title asks for; for large epochs if it names none."""
        nothing = self.title.startswith(("every double: ", "nothing assumed: "))
        joins = () if self.rule == "multiway" else None
        way = Way(denied=None if nothing else frozenset(), joins=joins, caching=False)
        made = lower(self.plan(), tiny=self.title.startswith("tiny: "), way=way)
        if self.title.startswith("every double: "):
            assert made.for_all_doubles is not None
            made = made.for_all_doubles()
        if self.title.startswith("by ranges: "):
            assert made.by_ranges is not None
            made = made.by_ranges(NARROW)
        return made.single_task() if self.title.startswith("single task: ") else made

    def text(self) -> str:
        query = "\n".join(f"-- {line}" for line in self.query.split("\n"))
        with written_by() as modules:
            program = self.program()
        return f"-- == {self.title}\n{query}\n{printed(program, self.rule, modules)}\n"


@contextmanager
def written_by() -> Iterator[dict[str, str]]:
    """Note for each step that is made within: the module that made it."""
    modules: dict[str, str] = {}
    make = Lowering.step

    def noted(*args: Any, **options: Any) -> Any:
        made = make(*args, **options)
        modules[made.name] = sys._getframe(1).f_globals["__name__"].rpartition(".")[2]
        return made

    with patch.object(Lowering, "step", noted):
        yield modules


def printed(program: Program, rule: str, modules: dict[str, str]) -> str:
    """The steps of a program, in order; in full those that the rule wrote, or all if it left that to other rules."""
    shown = {rule} if rule in modules.values() else set(modules.values())
    lines = [f"-- reads {source}" for source in program.inputs]
    lines += [f"-- expires {str(source).removeprefix(': ')}" for source in program.expiring]
    lines += [f"-- keeps {one.name}: {one.contents}, with the columns of {one.shape}" for one in program.synopses]
    if program.for_all_doubles is not None:
        lines.append("-- may raise an error at a double that does not fit")
    for name, step in program.steps.items():
        lines.append(
            f"{name} AS (\n{indented(step.sql)}\n)" if modules[name] in shown else f"-- {name}: {modules[name]}"
        )
    return "\n".join([*lines, f"-- result: {program.result}"])


def examples(rule: str) -> Iterator[Example]:
    text = (FOLDER / f"{rule}.sql").read_text(encoding="utf-8")
    for part in re.split(r"^-- == ", text, flags=re.MULTILINE)[1:]:
        title, *lines = part.split("\n")
        query = []
        for line in lines:
            if not line.startswith("-- ") or line.startswith("-- reads "):
                break
            query.append(line.removeprefix("-- "))
        yield Example(rule, title, "\n".join(query))


def written(rule: str) -> str:
    return "\n".join(example.text() for example in examples(rule))


RULES = sorted(file.stem for file in FOLDER.glob("*.sql"))
EVERY = [example for rule in RULES for example in examples(rule)]
RUN = [example for example in EVERY if not example.title.endswith("(text only)")]


def titled(example: Example) -> str:
    return f"{example.rule}: {example.title}"


def test_every_rule_has_a_golden_file() -> None:
    modules = {file.stem for file in (ROOT / "src/headgate/delta").glob("*.py")}
    assert set(RULES) == modules - NO_RULE


@pytest.mark.parametrize("rule", RULES)
def test_every_step_reads_as_in_the_golden_file(rule: str) -> None:
    assert written(rule) == (FOLDER / f"{rule}.sql").read_text(encoding="utf-8")


@pytest.mark.parametrize("example", RUN, ids=titled)
def test_every_program_answers_as_the_reference_does(example: Example) -> None:
    case = Case(
        id=titled(example),
        query=example.query,
        streams=STREAMS,
        relations=RELATIONS,
        views=(),
        input=random_input(),
        horizon=HORIZON,
        keys={"keyed": ("k",)},
    )
    chance = random.Random(1)
    ends = sorted({*chance.sample(range(HORIZON), 4), HORIZON})
    found = Duck(case, [example.program()]).run(ends, [True] * len(ends))
    assert difference(expected(case, example), found, HORIZON) is None


@pytest.mark.parametrize(
    "function",
    [
        "SUM(v) OVER ()",
        "SUM(v) OVER (PARTITION BY name)",
        "RANK() OVER (ORDER BY sent_at DESC)",
        "RANK() OVER (PARTITION BY name ORDER BY sent_at DESC)",
    ],
)
def test_a_function_that_is_recomputed_is_shown_as_it_was_written(function: str) -> None:
    script = f"CREATE STREAM sent (name STRING, v INT, sent_at INT); SELECT {function} AS f FROM sent [RANGE 3]"
    found = define(script, Catalog())[-1]
    assert isinstance(found, Query)
    assert lower(found.plan).fallbacks == (f"{function}: recomputed for each instant of change",)


def expected(case: Case, example: Example) -> list[Change]:
    """What the reference says; for queries that it does not know, what comes out in a single epoch."""
    try:
        return evaluate(case)[1]
    except UserError:
        return Duck(case, [lower(example.plan())]).run([HORIZON], [False])


def random_input() -> dict[str, list[tuple[int, Row, str]]]:
    """Input with many ties and equal rows; the first column of `p` and `q` never falls."""
    chance = random.Random(1)
    pick = chance.choice

    def stream(count: int, row: Any) -> list[tuple[int, Row, str]]:
        return [(instant, row(), "+") for instant in sorted(chance.randint(0, HORIZON - 2) for _ in range(count))]

    def ordered() -> list[tuple[int, Row, str]]:
        return [(instant, (instant // 3, row[0]), sign) for instant, row, sign in stream(8, lambda: (pick([1, 2, 3]),))]

    lives = [(chance.randint(0, HORIZON - 4), chance.randint(1, 8), (pick([0, 1, 2]), pick([1, 2]))) for _ in range(6)]
    changes = [(start, row, "+") for start, _, row in lives]
    changes += [(start + n, row, "-") for start, n, row in lives if start + n < HORIZON]
    return {
        "s": stream(16, lambda: (pick([None, 0, 1, 2]), pick([None, 1, 2, 5]), pick([None, "a", "b"]))),
        "t": stream(12, lambda: (pick([None, 0, 1, 2]), pick([None, 1, 2, 3]))),
        "m": stream(12, lambda: (pick([0, 1]), pick([None, 0.5, -2.25, 1e20]), pick([0.25, 3.0, 1e-40]))),
        "p": ordered(),
        "q": ordered(),
        "r": sorted(changes, key=lambda change: (change[0], change[2])),
        "keyed": stream(8, lambda: (pick([0, 1, 2]), pick([1, 2, 3]))),
        "together": [(instant, (instant // 3, pick([1, 2])), "+") for instant in range(HORIZON)],
        "rising": [(instant, (instant // 2 - instant % 2, pick([1, 2])), "+") for instant in range(HORIZON)],
        "grouped": [(instant, (instant // 3, pick([1, 2])), "+") for instant in range(HORIZON)],
        "climbing": [(instant, (instant // 2 - instant % 2, pick([1, 2])), "+") for instant in range(HORIZON)],
        "orders": [(instant, (instant, pick([5, 6])), "+") for instant in range(HORIZON - 3)],
        "payments": [(instant, (instant - 1, pick([1, 2])), "+") for instant in range(1, HORIZON - 2)],
    }


if __name__ == "__main__":
    for one in RULES:
        (FOLDER / f"{one}.sql").write_text(written(one), encoding="utf-8")
