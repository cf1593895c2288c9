"""The cases with expected output: recorded from other systems, worked out by hand, or found by `make fuzz`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tools.duck import Duck, compiled
from tools.places import CASES

from headgate.errors import NotYet
from headgate.execute import kept
from headgate.testing.cases import Case, difference, differs, read
from headgate.testing.reference import evaluate
from headgate.testing.runner import epoch_ends, on_spark
from headgate.testing.texts import assumptions_of

EVERY = read(CASES / "cql.jsonl")
GSQL = read(CASES / "gsql.jsonl")
FOUND = read(CASES / "found.jsonl")
CUTTINGS = [
    json.loads(line) for line in (CASES / "found.jsonl").read_text(encoding="utf-8").splitlines() if line.strip()
]
WITH_OUTPUT = [case for case in EVERY if case.expected is not None]


def answerable(case: Case) -> bool:
    try:
        assumptions_of(case)
    except NotYet:
        return False
    return True


ANSWERED = [case for case in WITH_OUTPUT if answerable(case)]


def named(case: Case) -> str:
    return case.id


def test_how_many_are_answered() -> None:
    assert len(ANSWERED) == 112


@pytest.mark.parametrize("case", [*WITH_OUTPUT, *FOUND], ids=named)
def test_reference_gives_the_expected_output(case: Case) -> None:
    """The judge is judged: all cases but those whose windows the reference does not know either."""
    assert case.expected is not None
    try:
        _, found = evaluate(case)
    except NotYet:
        pytest.skip("not in the reference yet")
    assert difference(case.expected, found, case.horizon) is None


@pytest.mark.parametrize("epochs", ["one", "each", "random:1"])
@pytest.mark.parametrize("case", ANSWERED, ids=named)
def test_program_gives_the_expected_output(case: Case, epochs: str) -> None:
    ends = epoch_ends(case, epochs)
    found = Duck(case, compiled(case)).run(ends, [True] * len(ends))
    assert case.expected is not None
    assert difference(case.expected, found, case.horizon) is None


@pytest.mark.parametrize("case", GSQL, ids=named)
def test_gsql_gives_the_expected_output(case: Case) -> None:
    """By the reference, and by programs however time is cut."""
    assert differs(case, evaluate(case)[1]) is None
    for epochs in ("one", "each", "random:1"):
        ends = epoch_ends(case, epochs)
        assert differs(case, Duck(case, compiled(case)).run(ends, [True] * len(ends))) is None


@pytest.mark.spark
@pytest.mark.parametrize("case", GSQL[::31], ids=named)
def test_spark_gives_the_expected_output_of_gsql(spark: SparkSession, case: Case) -> None:
    """Some of them; `headgate test tests/cases/gsql.jsonl` runs all."""
    assert differs(case, on_spark(case, "random:7", spark)) is None


@pytest.mark.parametrize("case, kept", list(zip(FOUND, CUTTINGS, strict=True)), ids=[case.id for case in FOUND])
def test_what_was_found_stays_mended(case: Case, kept: dict[str, Any]) -> None:
    """With the cut that showed it, and with every instant an epoch."""
    assert case.expected is not None
    instants = list(range(case.horizon + 1))
    for ends, moves in ((kept["cuts"], kept["moves"]), (instants, [True] * len(instants))):
        assert difference(case.expected, Duck(case, compiled(case)).run(ends, moves), case.horizon) is None


@pytest.mark.spark
@pytest.mark.parametrize("case", [*ANSWERED, *FOUND], ids=named)
def test_spark_gives_the_expected_output(spark: SparkSession, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs every case, every fourth in two epochs; `headgate test --epochs each` cuts them at all instants.

    Every other case runs by plans that are kept from the first epoch on.
    """
    monkeypatch.setattr(kept, "WORTH_AFTER", sum(case.id.encode()) % 2)
    middle = [case.horizon // 2] if sum(case.id.encode()) % 4 == 0 else []
    found = on_spark(case, [*middle, case.horizon], spark)
    assert case.expected is not None
    assert difference(case.expected, found, case.horizon) is None
