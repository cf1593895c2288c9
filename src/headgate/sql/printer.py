"""The one place where a user's expression becomes text for Spark."""

from __future__ import annotations

from typing import cast

from sqlglot import exp

from headgate.sql import Sql


def printed(tree: exp.Expression) -> Sql:
    """The text of an expression, or of a type, as Spark will see it."""
    return cast(Sql, tree.sql("spark"))
