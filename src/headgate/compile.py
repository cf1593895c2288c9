"""From text to programs, in one place and without Spark.

    compile_statements   text -> definitions, one by one, each in the catalog when it is given out
    compile_query        a query -> its fragments, each with the programs that run an epoch of it
    explanation          a query -> what `headgate explain` prints

`cql` reads and binds, `plan` rewrites and splits into fragments, `delta` writes the programs. This module calls them
in that order, and refuses what only a program shows: state that grows, where SET state = 'bounded'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query
from headgate.cql.definitions import Altered, Defined, Definition, defined
from headgate.cql.languages import Language
from headgate.delta.lower import Way, lower
from headgate.delta.program import Program
from headgate.errors import Place, UserError
from headgate.explain import explained
from headgate.heartbeat.progress import progress
from headgate.plan.fragments import Part, all_parts, split
from headgate.plan.nodes import sources
from headgate.plan.parameters import with_values
from headgate.scope import described
from headgate.sql import Sql

Ahead: TypeAlias = Literal["nothing", "an instant", "everything"]
"""What a fragment takes beyond its heartbeat: nothing; the tuples of the first open instant, because all before them
are there; or everything that has come, in whatever order."""


@dataclass(frozen=True, slots=True)
class CompiledFragment:
    """A part of a query that runs by itself: its plan, and the programs that run an epoch of it."""

    part: Part
    program: Program
    tiny_program: Program
    """Gives the results of `program` on its synopses, by fewer steps: for epochs of a few rows."""

    ahead: Ahead
    sees: Mapping[str, Sql]
    """Per stream of which it does not see all sources: the condition, in SQL, for the tuples that it reads."""

    group: str = ""
    """The group of sources whose answers it gives, in a query that runs by groups."""


def compile_script(text: str, catalog: Catalog, origin: str = "", language: Language | None = None) -> list[Definition]:
    """Carry out a whole script on the catalog; an error in it leaves what came before."""
    return [one.definition for one in compile_statements(text, catalog, origin, language=language)]


def compile_statements(
    text: str,
    catalog: Catalog,
    origin: str = "",
    registered: Callable[[str], Definition | None] = lambda statement: None,
    language: Language | None = None,
) -> Iterator[Defined]:
    """Carry out a script on the catalog, one statement a step, so that each can be put to work before the next.

    `registered` says what the words of a statement have defined already; that is given out and not defined again. A
    query that is refused is not left in the catalog. Without `language`, SET dialect and the file's ending tell which
    it is.
    """
    return defined(text, catalog, origin, registered, language, partial(_refuse_growing, catalog))


def compile_query(query: Query, catalog: Catalog) -> list[CompiledFragment]:
    """The fragments of a query, each behind those that it reads; for a query by groups, one for each group."""
    in_stages = query.early is not None and query.early.in_stages and query.family is None
    whole = split(query.plan, "stages" if in_stages and not query.plan.flowing else query.heartbeats)
    if query.by_groups:
        parts = [(replace(whole, scopes=seen), described(seen)) for seen in query.by_groups]
    else:
        parts = [(part, "") for part in all_parts(whole)]
    return [compile_fragment(query, part, catalog, group) for part, group in parts]


def compile_fragment(query: Query, part: Part, catalog: Catalog, group: str = "") -> CompiledFragment:
    """A part of a query, or one that it shares with others, with its programs."""
    piped = part.log is not None
    plan = with_values(part.plan, {name: one.changes for name, one in catalog.parameters.items()})
    way = way_of(query)
    return CompiledFragment(
        part,
        lower(plan, as_elements=piped, way=way),
        lower(plan, tiny=True, as_elements=piped, way=way),
        _ahead(query, part),
        {stream: scope.condition(catalog.stream(stream).source or "") for stream, scope in part.scopes.items()},
        group,
    )


def way_of(query: Query) -> Way:
    """How the programs of a query are written."""
    return Way(joins=() if query.adaptive_joins else None, caching=query.join_caches)


def _ahead(query: Query, part: Part) -> Ahead:
    """How much of its streams a fragment takes before they are complete."""
    if query.family is not None and query.family.flowing:
        return "everything"
    if part.log is not None or not part.plan.flowing:
        return "nothing"
    if len(sources(part.plan)) > 1:
        return "an instant"
    return "everything" if query.ordering == "needed" else "nothing"


def explanation(query: Query, catalog: Catalog) -> str:
    """The query with its defaults, its plan, what it waits for and the SQL of an epoch, as text."""
    fragments = compile_query(replace(query, by_groups=()), catalog)
    streams = sorted({stream for fragment in fragments for stream in fragment.program.streams()})
    return explained(
        query,
        [(fragment.part, fragment.program) for fragment in fragments],
        str(progress(catalog, streams)),
        groups=catalog.declarations.groups(),
        low_level=catalog.settings.low_level == "on",
    )


def _refuse_growing(catalog: Catalog, one: Defined) -> None:
    """Raise an error if the statement defines a query whose state grows, where SET state = 'bounded'."""
    query = one.definition.now if isinstance(one.definition, Altered) else one.definition
    if catalog.settings.state != "bounded" or not isinstance(query, Query):
        return
    growing = lower(query.plan, way=way_of(query)).growing()
    if not growing:
        return
    raise UserError(
        "state-grows",
        f'query "{query.name}" keeps state that grows for as long as it runs',
        place=_first_word(query, [growth.operator for growth in growing], one.place),
        detail="; ".join(growth.reason for growth in growing) + ".",
        hint="Give it a window that ends, such as [RANGE 1 HOUR], let time close it with EMIT FINAL, or SET state = "
        "'any'.",
    )


def _first_word(query: Query, words: list[str], statement: Place) -> Place:
    """Where the query says the first of the words that it says at all; the whole query if it says none."""
    if query.gsql is not None:
        return statement
    start = max(statement.text.find(query.text, statement.start), statement.start)
    for word in words:
        if (at := query.text.lower().find(word.lower())) >= 0:
            return replace(statement, start=start + at, end=start + at + len(word))
    return replace(statement, start=start, end=start + len(query.text))
