"""In which language each statement of a script is: CQL, or GSQL after SET dialect = 'gsql' and in files that end so.

A script that may hold GSQL is read statement by statement, because SET dialect says how those behind it are read.
Statements that both languages have, such as SET, SHOW and DROP, are CQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sqlglot import exp

from headgate.cql import script
from headgate.errors import Place, UserError
from headgate.gsql.parser import is_gsql, parse
from headgate.gsql.syntax import InterfaceStream, Query
from headgate.gsql.tokens import spans

Language: TypeAlias = Literal["cql", "gsql"]

SETS_DIALECT = re.compile(r"SET\s+dialect\s*=\s*'?(\w+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ScriptStatement:
    """One statement of a script, and the language it is in."""

    place: Place
    language: Language

    @property
    def words(self) -> str:
        """The statement as it was written."""
        return self.place.text[self.place.start : self.place.end]

    def tree(self) -> exp.Expression:
        """The syntax tree of a statement in CQL. Its places are in its own words, errors are in the script's text."""
        try:
            (tree,) = script.parse(self.words, self.place.origin)
        except UserError as error:
            raise self.moved(error) from None
        return tree

    def moved(self, error: UserError) -> UserError:
        """An error with its place in the script instead of in the statement's own words."""
        error.place = self.in_script(error.place)
        return error

    def in_script(self, place: Place | None) -> Place | None:
        """A place in the statement's own words as a place in the script."""
        if place is None or place.text != self.words:
            return place
        return Place(self.place.text, self.place.start + place.start, self.place.start + place.end, place.origin)


def may_hold_gsql(text: str, dialect: str = "cql", origin: str = "") -> bool:
    """Whether a script is in GSQL, or may come to it by SET dialect."""
    return in_gsql_file(origin) or dialect == "gsql" or "gsql" in text.lower()


def in_gsql_file(origin: str) -> bool:
    """Whether the script of a file is in GSQL."""
    return origin.lower().endswith(".gsql")


def statements(text: str, dialect: Callable[[], str], origin: str = "") -> Iterator[ScriptStatement]:
    """The statements of a script, each in the language that holds when it is asked for."""
    file_in_gsql = in_gsql_file(origin)
    for start, end in spans(text):
        in_gsql = file_in_gsql or dialect() == "gsql"
        language: Language = "gsql" if in_gsql and is_gsql(text, start, end) else "cql"
        yield ScriptStatement(Place(text, start, end, origin), language)
        if SETS_DIALECT.match(text, start):
            file_in_gsql = False


@dataclass(slots=True)
class _Dialect:
    """The dialect that a script has come to, without being carried out."""

    dialect: str = "cql"

    def now(self) -> str:
        return self.dialect


def trees(text: str, origin: str = "") -> Iterator[exp.Expression]:
    """The syntax trees of a script that is not carried out, to see what it reads and writes.

    Of GSQL, only what it says of connectors, in a statement of CQL.
    """
    if not may_hold_gsql(text, origin=origin):
        yield from script.parse(text, origin)
        return
    said = _Dialect()
    for statement in statements(text, said.now, origin):
        if statement.language == "cql":
            tree = statement.tree()
            start = statement.place.start
            tree.meta.update(start=start + tree.meta["start"], end=start + tree.meta["end"])
            yield tree
            found = SETS_DIALECT.match(text, statement.place.start)
            said.dialect = found[1].lower() if found else said.dialect
            continue
        yield from _connecting(statement)


def _connecting(statement: ScriptStatement) -> Iterator[exp.Expression]:
    text, place = statement.place.text, statement.place
    match parse(text, place.start, place.end, place.origin):
        case InterfaceStream(clauses=clauses, name=name):
            cql = f"CREATE STREAM `{name}` (x INT){text[slice(*clauses)]}"
        case Query(into=tuple() as into):
            cql = f"CREATE QUERY q AS SELECT x FROM s {text[slice(*into)]}"
        case _:
            return
    for tree in script.parse(cql, place.origin):
        tree.meta["start"] = place.start
        yield tree
