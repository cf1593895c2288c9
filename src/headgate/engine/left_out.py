"""What queries with ON ERROR SKIP have left out: how many rows, and with which errors.

Another query, which comes and goes with each, keeps it (`registry`): its results are the rows, in order of time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headgate.catalog.entries import errors_name
from headgate.cql.inputs import errors_view
from headgate.engine.core import Core
from headgate.plan.left_out import LeftOut
from headgate.schedule.query import RunningQuery
from headgate.spark.failures import check_alive, reason_of
from headgate.spark.statements import run
from headgate.sql import Column, Sql, ddl, literal, spelled

MESSAGES = 10
"""Of so many rows at a time the error is found out: each takes a job of Spark."""


def keeper(core: Core, query: str) -> RunningQuery:
    """The query that keeps what another one leaves out; an error if that one leaves nothing out."""
    found = core.catalog.query(query)
    errors_view(found)
    return core.query(errors_name(found.name))


def skipped(core: Core, query: RunningQuery) -> int:
    """How many rows a query has left out since it was created."""
    return keeper(core, query.name).count if query.definition.left_out else 0


def last_rows(core: Core, query: str) -> list[dict[str, Any]]:
    """The last rows that a query has left out."""
    kept = keeper(core, query)
    tables, _ = kept.page(max(0, kept.last_position - MESSAGES), MESSAGES)
    return [row for table in tables for row in table.to_pylist()]


def with_errors(core: Core, query: str, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that were left out, the first ones with the error that each raises: it is evaluated once more by itself."""
    left_out = core.catalog.query(query).left_out
    keeper(core, query)
    found = [row | {"error": _error(core, left_out, row)} for row in rows[:MESSAGES]]
    return [*found, *rows[MESSAGES:]]


def _error(core: Core, left_out: Sequence[LeftOut], row: dict[str, Any]) -> str | None:
    """What Spark says of a row; None if it says nothing, because the types of the row are not known."""
    for one in left_out:
        expression = one.failing(row["expression"]) if one.operator == row["operator"] else None
        held = json.loads(row["row"]).keys()
        if expression is None or not held <= {column.name for column in one.columns}:
            continue
        columns = tuple(column for column in one.columns if column.type != "UNKNOWN")
        if expression.columns <= {column.name.lower() for column in columns}:
            return _raised(core, expression.sql, columns, row["row"])
    return None


def _raised(core: Core, expression: Sql, columns: Sequence[Column], row: str) -> str | None:
    given = ", ".join(f"given.{spelled(column.name)} AS {spelled(column.name)}" for column in columns)
    of_json = f"SELECT FROM_JSON({literal(row)}, {literal(ddl(columns))}) AS given"
    statement = f"SELECT {expression} AS value FROM (SELECT {given} FROM ({of_json}))"
    workspace = core.workspaces.analysis
    with workspace.turn:
        try:
            run(workspace.session, statement).collect()
        except Exception as error:
            check_alive(workspace.session, error)
            return reason_of(error)
    return None
