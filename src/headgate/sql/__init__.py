"""SQL text for Spark: the one place that quotes names, writes literals and declares columns.

`Sql` is the type of text that Spark may see. It is made of constant templates, of quoted names and literals, and of
what `printer` prints of a user's expressions. mypy refuses a plain `str` in its place (`tests/tools/sql_types.py`).

`name` quotes a column for SQL that the engine writes, `spelled` for SQL that keeps the user's own words. `ddl` declares
columns. The rest are small helpers that the rules of `delta` share.

Columns that begin with an underscore belong to the engine: `_t`, `_x`, `_n` of an element (from, until, signed count),
`_s` the order of arrival of a tuple. The parameters of an epoch are `:since` (exclusive) and `:until` (inclusive).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NewType, TypeAlias, TypeVar
from typing import cast as _typed

Sql = NewType("Sql", str)
"""Text that Spark may see. `Sql("...")` takes a literal; an f-string is `Sql` if what stands in its holes is, or is a
whole number.
"""

Text = TypeVar("Text", Sql, str)
Order: TypeAlias = Literal["increasing", "decreasing"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name and its SQL type."""

    name: str
    type: Sql
    order: Order | None = field(default=None, compare=False)
    """Declared of a base stream's column: its values never fall, or never rise, from one timestamp to a later one."""

    check: Sql | None = field(default=None, compare=False)
    """Declared of a column of a base stream or relation: the condition that none of its values breaks, in SQL."""


NEVER = Sql("CAST(NULL AS BIGINT)")
ONE = Sql("CAST(1 AS BIGINT)")
ALL, EMPTY = Sql("*"), Sql("")
FOREVER = Sql("9223372036854775807")
BIGINT, BOOLEAN, DOUBLE = Sql("BIGINT"), Sql("BOOLEAN"), Sql("DOUBLE")
STRING, UNKNOWN = Sql("STRING"), Sql("UNKNOWN")

BARE = frozenset(
    """current_catalog current_date current_time current_timestamp current_user localtime localtimestamp session_user
    user""".split()
)
"""Functions that Spark calls where their name stands alone, without brackets."""

_SIMPLE = (
    "BOOLEAN|TINYINT|BYTE|SMALLINT|SHORT|INT|INTEGER|BIGINT|LONG|FLOAT|REAL|DOUBLE|DATE|BINARY|VARIANT|VOID|"
    r"(DECIMAL|DEC|NUMERIC)(\(\d+(, ?\d+)?\))?|TIMESTAMP(_NTZ|_LTZ)?|TIME(\(\d\))?|STRING( COLLATE \w+)?|"
    r"(CHAR|CHARACTER|VARCHAR)\(\d+\)|INTERVAL (YEAR|MONTH|DAY|HOUR|MINUTE|SECOND)( TO (MONTH|HOUR|MINUTE|SECOND))?|"
    "ARRAY|MAP|STRUCT"
)
_FIELD = rf"(\w+|`([^`]|``)*`) ?: ?({_SIMPLE})( NOT NULL)?"
_TYPE = re.compile(_SIMPLE, re.IGNORECASE)
_WITHIN = re.compile(
    rf"(?P<of>ARRAY)<({_SIMPLE})>|(?P<to>MAP)<({_SIMPLE}), ?({_SIMPLE})>|(?P<with>STRUCT)<({_FIELD}(, ?{_FIELD})*)?>",
    re.IGNORECASE,
)
_LITERAL = re.compile(
    r"TRUE|FALSE|-?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?D?|-?(inf|nan)D|"
    r"(TIMESTAMP )?'([^'\\]|\\.)*'|TIMESTAMP_MICROS\(-?\d+\)",
    re.IGNORECASE | re.DOTALL,
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset(
    """all and anti any array as asc at between both by case cast create cross current_date current_time
    current_timestamp date day default delete desc describe distinct div drop else end except exists explain false
    filter for from full grant group having hour in inner insert int intersect interval into is join lateral left
    like limit map minus minute month natural not null of offset on or order outer over partition pivot qualify
    range rename replace right row rows second select semi set show some start string struct table then time
    timestamp to true union unique unknown unnest unpivot update user using values when where window with within
    year""".split()
)


def name(column: str) -> Sql:
    """A column's name for SQL that the engine writes: quoted if any database would read it as something else."""
    return _typed(Sql, column) if is_plain(column) and column.lower() not in _RESERVED else backquoted(column)


def spelled(column: str) -> Sql:
    """A column's name for SQL that keeps the user's words: quoted only if Spark would read it as something else."""
    return _typed(Sql, column) if is_plain(column) else backquoted(column)


def is_plain(column: str) -> bool:
    """True if a name consists of letters, digits and underscores, and Spark does not take it for a function's call."""
    return _PLAIN.fullmatch(column) is not None and column.lower() not in BARE


def backquoted(column: str) -> Sql:
    """A name in backquotes; those within it are doubled."""
    return _typed(Sql, "`" + column.replace("`", "``") + "`")


def unquoted(text: str) -> str:
    """The name that `backquoted` put into backquotes; a text without them stays as it is."""
    return text[1:-1].replace("``", "`") if len(text) > 1 and text[0] == text[-1] == "`" else text


def ddl(columns: Iterable[Column]) -> Sql:
    """The columns as they are declared: `sensor STRING, celsius DOUBLE`."""
    return ", ".join(f"{name(column.name)} {column.type}" for column in columns)


def signature(columns: Iterable[Column]) -> str:
    """The columns for people to read, spelled as they were declared."""
    return ", ".join(f"{column.name} {column.type}" for column in columns)


def cast(column: Column, value: Sql | None = None) -> Sql:
    """A value, or the column itself, as the column's type and under its name."""
    own = name(column.name)
    return f"CAST({own if value is None else value} AS {column.type}) AS {own}"


def bracketed(sql: Text) -> Text:
    """An expression as it can stand beside any operator."""
    return sql if _PLAIN.fullmatch(sql) else f"({sql})"


def literal(value: str) -> Sql:
    """A string as it must stand in SQL, and in CQL."""
    return _typed(Sql, "'" + re.sub(r"(['\\])", r"\\\1", value) + "'")


def checked_type(text: str) -> Sql:
    """The name of a type as Spark or Arrow or a table of ours has it; ValueError if it is anything else."""
    flat, found = text, 1
    while found:  # from the inside to the outside: what has brackets becomes a plain name
        flat, found = _WITHIN.subn(lambda inner: next(filter(None, inner.group("of", "to", "with"))), flat)
    if _TYPE.fullmatch(flat) is None:
        raise ValueError(f"{text!r} is not the name of a type")
    return _typed(Sql, text)


def checked_literal(text: str) -> Sql:
    """A number, a truth value, a quoted string or an instant, as it was written; ValueError if it is anything else."""
    if _LITERAL.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a literal")
    return _typed(Sql, text)


def listed(columns: Iterable[str], table: Sql = EMPTY) -> Sql:
    """Names with commas between them, each quoted by `name` and prefixed with the table if there is one."""
    return ", ".join(f"{table}.{name(column)}" if table else name(column) for column in columns)


def comma(*parts: Sql) -> Sql:
    """The parts that are not empty, with commas between them."""
    return ", ".join(part for part in parts if part)


def indented(sql: Sql) -> Sql:
    """The text with every line moved right by two blanks."""
    # splitlines would also cut at characters that may stand within a literal
    return _typed(Sql, "\n".join(f"  {line}" for line in sql.split("\n")))


def double(value: float) -> Sql:
    """A double as it must stand in SQL."""
    return _typed(Sql, f"{value!r}D".replace("e", "E"))


def part(sql: Sql, start: int, end: int | None = None) -> Sql:
    """Some of a text, to be put together with others again."""
    return _typed(Sql, sql[start:end])


def alive(table: Sql, at: Sql) -> Sql:
    """The condition that an element of `table` lives at an instant."""
    return f"{table}._t <= {at} AND {at} < COALESCE({table}._x, {FOREVER})"


def result_order(columns: Iterable[str]) -> list[tuple[str, str]]:
    """The columns by which results are ordered: by time, "-" before "+", which is the other way round in ASCII."""
    return [("_time", "ascending"), *([("_change", "descending")] if "_change" in columns else [])]
