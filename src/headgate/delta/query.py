"""What a rule writes: queries as data, which are printed as SQL when a program is complete.

    select("k, _x AS _t", Alias(born, "e"), where=("_x <= :until", "k > 1"), group_by="k")
    union(select(columns, kept), select(columns, born))

Column lists and conditions are SQL text. Which tables a query reads, where it has a union and which conditions it puts
together are not: they are fields of the records here. So a step's dependencies follow from its query, and a program
for small epochs is a copy with other unions, without a look into any text.

A `Table` has no text form of its own: in an f-string it gives SQL that no engine accepts. It belongs into the `source`
of a query, or the query into a `Subquery`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never, cast

from headgate.sql import EMPTY, Sql, indented, listed
from headgate.sql import name as quoted


@dataclass(frozen=True, slots=True)
class Table:
    """A reference to a step, an input or a synopsis of the program, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Alias:
    """A table or a query in brackets under a short name."""

    source: Table | Query
    name: str


@dataclass(frozen=True, slots=True)
class Joined:
    """Two sources joined; with `outer`, every row of the left one stays."""

    left: Source
    right: Source
    on: tuple[Sql, ...]
    """The conjuncts of the condition."""

    outer: bool = False
    by_time: bool = False
    """True if both sides are spread over many values of what is equated, because it includes a bucket of time."""

    uneven: bool = False
    """True if one side is a relation at rest, of which much is there and little comes, and something is equated."""

    hashed: str = ""
    """The alias of the side of which Spark makes hash tables; empty if Spark decides how to join."""

    feeds: bool = False
    """True if another join reads what it gives. Of a single partition, Spark must be told that this is one, too."""

    sent: str = ""
    """The alias of the side that is sent to every task, because it has a few rows; empty if Spark decides."""


@dataclass(frozen=True, slots=True)
class LateralView:
    """Each row of a source as often as a generator makes rows of it."""

    source: Source
    view: Sql
    """What stands behind LATERAL VIEW: the generator, an alias, the columns it makes."""


@dataclass(frozen=True, slots=True)
class Subquery:
    """An expression with a query of one row in it: the text before the brackets, the query, the text behind."""

    before: Sql
    query: Query
    after: Sql = EMPTY


@dataclass(frozen=True, slots=True)
class Select:
    """One SELECT. Without a source it makes one row; without columns to group by, an aggregate is over all rows."""

    columns: Text
    source: Source | None
    where: tuple[Text, ...]
    """The conjuncts of the condition; each can stand beside AND."""

    group_by: Sql
    having: tuple[Sql, ...]
    """The conjuncts of the condition on groups."""


@dataclass(frozen=True, slots=True)
class UnionAll:
    """The rows of two or more queries, column by position."""

    parts: tuple[Select, ...]


Query: TypeAlias = Select | UnionAll
Source: TypeAlias = Table | Select | UnionAll | Alias | Joined | LateralView
Text: TypeAlias = Sql | Subquery
Conditions: TypeAlias = Text | Iterable[Text]


def select(
    columns: Text,
    source: Source | None = None,
    *,
    where: Conditions = (),
    group_by: Sql = EMPTY,
    having: Sql | Iterable[Sql] = (),
) -> Select:
    """Make a SELECT. A condition may be one or several that must all hold; empty ones are left out."""
    conjuncts = (where,) if isinstance(where, str | Subquery) else where
    on_groups = (having,) if isinstance(having, str) else having
    return Select(columns, source, tuple(filter(None, conjuncts)), group_by, tuple(filter(None, on_groups)))


def union(*parts: Select) -> Query:
    """The rows of all parts; of a single one, that one."""
    return parts[0] if len(parts) == 1 else UnionAll(parts)


def tables(query: Query) -> tuple[Table, ...]:
    """The tables that a query reads, each as often as it stands there."""
    return tuple(_tables(query))


def _tables(source: Source) -> Iterator[Table]:
    match source:
        case Table():
            yield source
        case Select(columns, read, where):
            yield from _tables_within(columns)
            yield from () if read is None else _tables(read)
            for condition in where:
                yield from _tables_within(condition)
        case UnionAll(parts):
            for part in parts:
                yield from _tables(part)
        case Alias(read) | LateralView(read):
            yield from _tables(read)
        case Joined(left, right):
            yield from _tables(left)
            yield from _tables(right)
        case _:
            assert_never(source)


def _tables_within(text: Text) -> Iterator[Table]:
    if isinstance(text, Subquery):
        yield from _tables(text.query)


HINTS = frozenset({"repartition", "shuffle_hash", "broadcast"})
"""Words in the texts of queries that look like calls of functions and are hints for Spark."""


def dealt_by(columns: Iterable[str]) -> Sql:
    """The hint, at the beginning of a list of columns, that deals the rows to the tasks by some columns of them."""
    return f"/*+ REPARTITION({listed(columns)}) */ "


def joins(query: Query) -> tuple[Joined, ...]:
    """The joins that the SELECTs of a query read from, but for those in brackets."""
    parts = query.parts if isinstance(query, UnionAll) else (query,)
    return tuple(part.source for part in parts if isinstance(part.source, Joined))


def with_joins(query: Query, decide: Callable[[Joined], Joined]) -> Query:
    """A copy in which the joins that a SELECT reads from are replaced by those that a function gives for them."""
    match query:
        case Select(source=Joined() as joined):
            return replace(query, source=decide(joined))
        case Select():
            return query
        case UnionAll(parts):
            return UnionAll(tuple(cast(Select, with_joins(part, decide)) for part in parts))
        case _:
            assert_never(query)


IN_ONE = Sql("/*+ COALESCE(1) */ ")
"""The hint, at the beginning of a list of columns, that leaves the rows in one partition."""


def unions_in_one_partition(query: Query) -> Query:
    """A copy in which every union comes back as a single partition, every product of all rows with all others, and
    every join that another one reads.
    """
    match query:
        case Select():
            return _inside(query)
        case UnionAll(parts):
            return select(f"{IN_ONE}*", UnionAll(tuple(map(_inside, parts))))
        case _:
            assert_never(query)


def _inside(query: Select) -> Select:
    if query.source is None:
        return query
    joined = query.source if isinstance(query.source, Joined) else None
    columns = query.columns
    if joined is not None and (joined.on == ("TRUE",) or joined.feeds) and not isinstance(columns, Subquery):
        columns = f"{IN_ONE}{columns}"
    return replace(query, columns=columns, source=_in_one_partition(query.source))


def _in_one_partition(source: Source) -> Source:
    match source:
        case Table():
            return source
        case Select() | UnionAll():
            return unions_in_one_partition(source)
        case Alias(read):
            return source if isinstance(read, Table) else replace(source, source=unions_in_one_partition(read))
        case LateralView(read):
            return replace(source, source=_in_one_partition(read))
        case Joined(left, right):
            return replace(source, left=_in_one_partition(left), right=_in_one_partition(right))
        case _:
            assert_never(source)


def in_place(query: Query, queries: Mapping[str, Query]) -> Query:
    """A copy in which some tables are replaced by the queries that make them."""
    match query:
        case Select(columns, read, where):
            source = None if read is None else _source_in_place(read, queries)
            conditions = tuple(_text_in_place(condition, queries) for condition in where)
            return replace(query, columns=_text_in_place(columns, queries), source=source, where=conditions)
        case UnionAll(parts):
            return UnionAll(tuple(cast(Select, in_place(part, queries)) for part in parts))
        case _:
            assert_never(query)


def _source_in_place(source: Source, queries: Mapping[str, Query]) -> Source:
    match source:
        case Table(name):
            return Alias(queries[name], name) if name in queries else source
        case Select() | UnionAll():
            return in_place(source, queries)
        case Alias(Table(name)):
            return replace(source, source=queries.get(name, source.source))
        case Alias(read):
            return replace(source, source=in_place(cast(Query, read), queries))
        case LateralView(read):
            return replace(source, source=_source_in_place(read, queries))
        case Joined(left, right):
            return replace(source, left=_source_in_place(left, queries), right=_source_in_place(right, queries))
        case _:
            assert_never(source)


def _text_in_place(text: Text, queries: Mapping[str, Query]) -> Text:
    return replace(text, query=in_place(text.query, queries)) if isinstance(text, Subquery) else text


def printed(query: Query) -> Sql:
    """The query as SQL."""
    match query:
        case UnionAll(parts):
            return "\nUNION ALL\n".join(map(printed, parts))
        case Select():
            clauses = [f"SELECT {_hint(query.source)}{_text(query.columns)}"]
            if query.source is not None:
                clauses.append(f"FROM {_source(query.source)}")
            if query.where:
                clauses.append(f"WHERE {' AND '.join(map(_text, query.where))}")
            if query.group_by:
                clauses.append(f"GROUP BY {query.group_by}")
            if query.having:
                clauses.append(f"HAVING {' AND '.join(query.having)}")
            return "\n".join(clauses)
        case _:
            assert_never(query)


def _hint(source: Source | None) -> Sql:
    """How Spark is to join, if the source is a join of which that is known."""
    match source:
        case Joined(sent=str(sent)) if sent:
            return f"/*+ BROADCAST({quoted(sent)}) */ "
        case Joined(hashed=str(hashed)) if hashed:
            return f"/*+ SHUFFLE_HASH({quoted(hashed)}) */ "
        case _:
            return EMPTY


def _source(source: Source) -> Sql:
    match source:
        case Table(name):
            return quoted(name)
        case Select() | UnionAll():
            return _bracketed(source)
        case Alias(read, name):
            return f"{_source(read)} AS {quoted(name)}"
        case LateralView(read, view):
            return f"{_source(read)}\nLATERAL VIEW {view}"
        case Joined(left, right, on, outer):
            return f"{_source(left)}\n{'LEFT JOIN' if outer else 'JOIN'} {_source(right)} ON {' AND '.join(on)}"
        case _:
            assert_never(source)


def _text(text: Text) -> Sql:
    match text:
        case str():
            return text
        case Subquery(before, query, after):
            return f"{before}({printed(query)}){after}"
        case _:
            assert_never(text)


def _bracketed(query: Query) -> Sql:
    return f"(\n{indented(printed(query))}\n)"
