"""Scalar expressions and aggregate calls as the plan holds them: Spark SQL text over the columns of the node below.

The text is what Spark will evaluate, so every function, type and UDF that Spark has can stand in it. Beside the text an
expression knows its type where it could be inferred (`UNKNOWN` otherwise) and the columns it reads.
"""

from __future__ import annotations

from headgate.plan.frozen import frozen
from headgate.sql import Sql

INTEGRAL = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
NUMERIC = (*INTEGRAL, "FLOAT", "DOUBLE", "DECIMAL", "UNKNOWN")
"""How the names of types begin that can be added; what is unknown may be one."""


@frozen
class Expression:
    sql: Sql
    type: Sql
    columns: frozenset[str]
    column: str | None = None
    """The name, where the expression is nothing but a column."""


@frozen
class Named:
    name: str
    expression: Expression


@frozen
class Call:
    """An aggregate: `sql` is the call without its FILTER clause, `condition` that clause."""

    name: str
    function: str
    sql: Sql
    type: Sql
    arguments: tuple[Expression, ...]
    distinct: bool
    condition: Sql | None
    columns: frozenset[str]
    outside: bool = False
    """An aggregate in Python."""
