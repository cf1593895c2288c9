"""Reads the text of an expression again: one bounded memory of trees, for all who look into such texts."""

from __future__ import annotations

from functools import lru_cache

import sqlglot
from sqlglot import exp

from headgate.sql.dialect import SparkSql

KEPT = 4_096
"""So many texts are remembered."""

LONGEST_KEPT = 4_000
"""Texts with more characters than this are read again each time."""


def parsed(sql: str) -> exp.Expression | None:
    """The tree of an expression's text; None if it cannot be read. It is shared, and never to be changed.

    The text is read behind SELECT: by itself, one that begins with a column named `load` or `set` would be a statement.
    """
    return _parsed(sql) if len(sql) <= LONGEST_KEPT else _read(sql)


def _read(sql: str) -> exp.Expression | None:
    try:
        selected = sqlglot.parse_one(f"SELECT ({sql})", dialect=SparkSql).expressions
    except sqlglot.errors.SqlglotError:
        return None
    inside = selected[0] if len(selected) == 1 else None
    tree: exp.Expression | None = inside.this.pop() if isinstance(inside, exp.Paren) else None
    return tree


_parsed = lru_cache(KEPT)(_read)
