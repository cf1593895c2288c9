"""Text for another database, to which a sink writes by JDBC: names as it quotes them, and the user's own words."""

from __future__ import annotations

import re
from typing import cast

from headgate.sql import Sql

_QUOTED = r'"(?:[^"]|"")+"|`(?:[^`]|``)+`|\[(?:[^\]]|\]\])+\]'
_COLUMN = re.compile(_QUOTED)
_TABLE = re.compile(rf"(?:[\w$#@]+|{_QUOTED})(?:\.(?:[\w$#@]+|{_QUOTED}))*")


def quoted_column(column: str) -> Sql:
    """A column's name as the dialect of a database has quoted it; ValueError if the quotes end within it."""
    if _COLUMN.fullmatch(column) is None:
        raise ValueError(f"{column} is not the quoted name of a column")
    return cast(Sql, column)


def table(text: str) -> Sql:
    """The name of a table, with that of its schema if it has one; ValueError if it is anything else."""
    if _TABLE.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not the name of a table")
    return cast(Sql, text)


def said(text: str) -> Sql:
    """What Spark, or the user by an option that is SQL of the database, says of a table that is made."""
    return cast(Sql, text)
