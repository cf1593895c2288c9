"""The number of tuples that broke a constraint, where these are counted: a synopsis of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta.query import Table, select, union
from headgate.plan.limits import Limited
from headgate.plan.nodes import Constraint
from headgate.sql import ONE, Sql

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def counted(lowering: Lowering, constraint: Constraint, broken: Table) -> None:
    """Keep the number of violations, where these are counted."""
    if not constraint.counts:
        return
    known = lowering.fresh(violations_of(constraint.name))
    number = select(Sql("COUNT(*) AS _broken"), broken)
    total = select(
        Sql("CAST(COALESCE(SUM(_broken), 0) AS BIGINT) AS _broken"), union(select(Sql("_broken"), known), number)
    )
    shape = lowering.step("shape", select(f"{ONE} AS _broken"))
    lowering.synopsis(known, lowering.step("violations", total), shape, Limited("one row"))


def violations_of(constraint: str) -> str:
    """How the name of the synopsis begins that counts the violations of a constraint."""
    return f"violations_of_{plain(constraint)}"


def plain(constraint: str) -> str:
    """The name of a constraint as a part of the name of a synopsis."""
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in constraint.lower())
