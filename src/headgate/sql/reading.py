"""Reads SQL of plans back into trees. The trees of the last texts are kept, within bounds: texts are users' texts."""

from __future__ import annotations

from functools import lru_cache

import sqlglot
from sqlglot import exp

from headgate.sql.dialect import SparkSql
from headgate.sql.nesting import Nested

SHORT, LONG = 1_000, 20_000
"""So many letters has a text of which the tree is kept among many, and among few. A letter takes some 400 bytes."""


def parsed(sql: str) -> exp.Expression | None:
    """The tree of an expression's text; None if it cannot be read. It is shared, and never to be changed.

    The text is read behind SELECT: by itself, one that begins with a column named `load` or `set` would be a statement.
    """
    return _kept(sql)[0]


def exactly(sql: str) -> exp.Expression | None:
    """The tree of an expression's text, if nothing is lost on the way there and back; never to be changed either."""
    tree, exact = _kept(sql)
    return tree if exact else None


def _kept(sql: str) -> tuple[exp.Expression | None, bool]:
    try:
        if len(sql) <= SHORT:
            return _of_short(sql)
        return _of_long(sql) if len(sql) <= LONG else _read(sql)
    except RecursionError:  # too deep from here; it may be read from where less is on the stack
        return None, False


def _read(sql: str) -> tuple[exp.Expression | None, bool]:
    try:
        selected = sqlglot.parse_one(f"SELECT ({sql})", read=Nested).expressions
    except sqlglot.errors.SqlglotError:
        return None, False
    inside = selected[0] if len(selected) == 1 else None  # a text may end the brackets around it
    tree: exp.Expression | None = inside.this.pop() if isinstance(inside, exp.Paren) else None
    return tree, tree is not None and tree.sql(SparkSql) == sql


_of_short = lru_cache(maxsize=1_000)(_read)
_of_long = lru_cache(maxsize=8)(_read)
