"""Families: what a family answers for a member is what the member's query answers alone."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from pyspark.sql import SparkSession
from tools.duck import Duck, variants
from tools.random_families import RandomFamily, families, meaning, plan_of
from tools.random_queries import cuttings, described

from headgate.engine import Engine
from headgate.errors import UserError
from headgate.plan.nodes import Node
from headgate.plan.rewrites.driver import rewritten
from headgate.testing.cases import Change, difference
from headgate.testing.runner import script

REFUSED = ("not-yet", "same-for-all", "name-taken", "not-grouped", "not-final")

Cutting = tuple[list[int], list[bool]]


def accepted(family: RandomFamily) -> Node:
    """The plan of a family; one that is refused is passed over, if it is refused for what it may be."""
    try:
        return plan_of(family)
    except UserError as error:
        assert error.code in REFUSED, error.render()
        assume(False)
        raise


def judged(family: RandomFamily, found: list[Change], cutting: object) -> None:
    differs = difference(meaning(family), found, family.case.horizon)
    assert differs is None, f"FOR EACH ROW OF {family.relation}\n{described(family.case, cutting)}\n{differs}"


@settings(max_examples=150, deadline=None)
@given(family=families(), cutting=cuttings())
def test_a_family_answers_what_its_members_answer_alone(family: RandomFamily, cutting: Cutting) -> None:
    plan = accepted(family)
    judged(family, Duck(family.case, variants(rewritten(plan).plan)).run(*cutting), cutting)


@pytest.mark.spark
@settings(max_examples=6, deadline=None)
@given(family=families(depth=0, most=6), cutting=cuttings(most=2))
def test_a_family_answers_what_its_members_answer_alone_on_spark(
    spark: SparkSession, family: RandomFamily, cutting: Cutting
) -> None:
    accepted(family)
    with Engine(spark, partitions=2) as engine:
        made = f"CREATE QUERIES answer FOR EACH ROW OF {family.relation} AS"
        text = script(family.case).replace("CREATE QUERY answer AS", made)
        if family.lengths is not None:
            plain = f"{family.lengths[0]} INT"
            before, defined, after = text.partition(f"CREATE RELATION {family.relation} (")
            text = before + defined + after.replace(plain, f"{plain} CHECK ({family.check})", 1)
        engine.execute(text)
        for stream in family.case.streams:
            engine.push(stream, [(ts, row) for ts, row, _ in family.case.input[stream]])
        for relation in family.case.relations:
            taken = engine.push(relation, family.pushed[relation])
            assert taken == len(family.case.input[relation])
        for until in cutting[0]:
            engine.advance(until)
        results = engine.query("answer").results()
    judged(family, [(result.at, result.sign, tuple(result.row.values())) for result in results], cutting[0])
