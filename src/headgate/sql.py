"""Pieces of SQL text that every rule uses.

Columns that begin with an underscore are ours: `_t`, `_x`, `_n` of an element (from, until, signed count), `_s` the
order of arrival of a tuple. The parameters of an epoch are `:since` (exclusive) and `:until` (inclusive)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Order: TypeAlias = Literal["increasing", "decreasing"]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    order: Order | None = field(default=None, compare=False)
    """Of a base stream's column: its values never fall, or never rise, from one timestamp to a later one."""


NEVER = "CAST(NULL AS BIGINT)"
ONE = "CAST(1 AS BIGINT)"
FOREVER = "9223372036854775807"

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")
_RESERVED = frozenset(
    """all and anti any array as asc at between both by case cast create cross current_date current_time
    current_timestamp date day default delete desc describe distinct div drop else end except exists explain false
    filter for from full grant group having hour in inner insert int intersect interval into is join lateral left
    like limit map minus minute month natural not null of offset on or order outer over partition pivot qualify
    range rename replace right row rows second select semi set show some start string struct table then time
    timestamp to true union unique unknown unnest unpivot update user using values when where window with within
    year""".split()
)


def name(column: str) -> str:
    """The column's name as it must stand in SQL."""
    if _PLAIN.match(column) and column.lower() not in _RESERVED:
        return column
    return "`" + column.replace("`", "``") + "`"


def bracketed(sql: str) -> str:
    """An expression as it can stand beside any operator."""
    return sql if _PLAIN.match(sql) else f"({sql})"


def literal(value: str) -> str:
    """A string as it must stand in SQL, and in CQL."""
    return "'" + re.sub(r"(['\\])", r"\\\1", value) + "'"


def listed(columns: Iterable[str], table: str = "") -> str:
    prefix = f"{table}." if table else ""
    return ", ".join(prefix + name(column) for column in columns)


def comma(*parts: str) -> str:
    """The parts that are not empty, with commas between them."""
    return ", ".join(part for part in parts if part)


def indented(sql: str) -> str:
    return "\n".join(
        f"  {line}" for line in sql.split("\n")
    )  # splitlines would cut at other characters within literals


def alive(table: str, at: str) -> str:
    """The condition that an element of `table` lives at an instant."""
    return f"{table}._t <= {at} AND {at} < COALESCE({table}._x, {FOREVER})"
