"""Families: what a family answers for a member is what the member's query answers alone."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from pyspark.sql import SparkSession
from tools.duck import Duck, variants
from tools.random_families import RandomFamily, families, meaning, plan_of
from tools.random_queries import cuttings, described

from headgate.errors import UserError
from headgate.plan.rewrites.driver import rewritten
from headgate.testing.cases import difference

REFUSED = ("not-yet", "same-for-all", "name-taken", "not-grouped", "not-final")

Cutting = tuple[list[int], list[bool]]


@settings(max_examples=200, deadline=None)
@given(family=families(), cutting=cuttings())
def test_a_family_answers_what_its_members_answer_alone(family: RandomFamily, cutting: Cutting) -> None:
    try:
        plan = plan_of(family)
    except UserError as error:
        assert error.code in REFUSED, error.render()
        assume(False)
    found = Duck(family.case, variants(rewritten(plan).plan)).run(*cutting)
    differs = difference(meaning(family), found, family.case.horizon)
    assert differs is None, f"FOR EACH ROW OF {family.relation}\n{described(family.case, cutting)}\n{differs}"
