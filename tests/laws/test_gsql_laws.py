"""GSQL means what its syntax says: random scripts, judged by an evaluator that knows no CQL, and by the reference.

What only this file can catch: a wrong translation of GSQL to CQL, which the reference would follow.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tools.duck import Duck, compiled
from tools.gsql_meaning import answer
from tools.random_gsql import PROTOCOLS, Script, scripts

from headgate.testing import gsql_cases
from headgate.testing.cases import Case, Change, comparable, difference
from headgate.testing.reference import evaluate
from headgate.testing.runner import epoch_ends, on_spark


def bag(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(comparable(value) for value in row) for row in rows)


def judged(script: Script, case: Case, found: list[Change]) -> None:
    streams = {name: script.rows[name] for name in PROTOCOLS}
    meant, given = bag(answer(script.queries, script.asked, streams)), bag([row for _, _, row in found])
    assert given == meant, f"{script}\n{case.query}\nnot meant: {given - meant}\nmissing: {meant - given}"


@settings(max_examples=25)
@given(scripts(), st.integers(0, 99))
def test_programs_give_what_gsql_means(script: Script, seed: int) -> None:
    case = gsql_cases.from_json(script.case())
    ends = epoch_ends(case, f"random:{seed}")
    found = Duck(case, compiled(case)).run(ends, [end % 3 != 0 for end in ends])
    judged(script, case, found)


@settings(max_examples=8)
@given(scripts())
def test_the_reference_gives_it_at_the_same_instants(script: Script) -> None:
    case = gsql_cases.from_json(script.case())
    ends = epoch_ends(case, "each")
    found = Duck(case, compiled(case)).run(ends, [True] * len(ends))
    _, meant = evaluate(case)
    assert difference(meant, found, case.horizon) is None, f"{script}\n{case.query}"


@pytest.mark.spark
@settings(max_examples=1)
@given(script=scripts(), seed=st.integers(0, 9))
def test_spark_gives_what_gsql_means(spark: SparkSession, script: Script, seed: int) -> None:
    case = gsql_cases.from_json(script.case())
    judged(script, case, on_spark(case, f"random:{seed}", spark))
