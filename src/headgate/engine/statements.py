"""The statements that made an engine's catalog what it is, in order: carrying them out again makes that catalog.

Settings count from where they stand, so the order matters. A query that was dropped or replaced, and a group that was
dropped, leave nothing behind: the statement goes. After a restart, a script finds here what it had registered before.
"""

from __future__ import annotations

import re
from pathlib import Path

from headgate.catalog.entries import Function, Group, Query, Relation, Stream, View
from headgate.cql.definitions import Altered, Definition, Dropped, Setting
from headgate.cql.languages import Language
from headgate.engine.facts import SUBJECT, Statement, read_fact
from headgate.log.journal import facts
from headgate.log.lock import Lock
from headgate.plan.nodes import Constraint

TAKEN_BACK = re.compile(r"^(DROP\s+\w+)(\s+IF\s+EXISTS)?", re.IGNORECASE)


class Statements:
    """The statements that hold, and which of them a script may say once more after a restart."""

    def __init__(self) -> None:
        self.all: list[Statement] = []
        self._recalled: dict[str, list[Definition]] = {}
        """What was registered before the restart, by the words of its statement."""

    def of(
        self, said: str, definition: Definition, now_us: int, folder: str | None, language: Language = "cql"
    ) -> Statement:
        """The statement to remember for what the user said: one that can be carried out again by itself."""
        if language == "gsql":
            return _of_gsql(said, definition, now_us, folder)
        match definition:
            case Query(name=name, by_groups=by_groups) if not said.upper().startswith(("CREATE", "ALTER")):
                return Statement(f"CREATE QUERY {name} AS {said}", (said,), now_us, name, folder, len(by_groups))
            case Query(name=name, by_groups=by_groups):
                return Statement(said, (said,), now_us, name, folder, len(by_groups))
            case Altered(Query(name=name, by_groups=by_groups)):
                before = next(one.said for one in self.all if one.query == name)
                return Statement("CREATE" + said[len("ALTER") :], (*before, said), now_us, name, folder, len(by_groups))
            case Group(name=name):
                return Statement(said, (said,), now_us, folder=folder, group=name)
            case Setting(taken_back=True):  # what was declared from Python is declared behind all statements
                return Statement(TAKEN_BACK.sub(r"\1 IF EXISTS", said), (said,), now_us)
        return Statement(said, (said,), now_us, folder=folder)

    def add(self, statement: Statement, definition: Definition) -> None:
        """Remember a statement that was carried out. What it makes obsolete goes; a script must say anew what was
        dropped.
        """
        leaves_nothing = isinstance(definition, Dropped) and definition.kind in ("query", "group")
        gone = _subject(definition) if leaves_nothing else _registered(statement)
        self.all = [one for one in self.all if gone is None or _registered(one) != gone]
        if not leaves_nothing:
            self.all.append(statement)
        if isinstance(definition, Dropped | Altered):
            for said, known in list(self._recalled.items()):
                self._recalled[said] = [one for one in known if _subject(one) != _subject(definition)]

    def recall(self, statement: Statement, definition: Definition) -> None:
        """Remember a statement that was carried out before the restart."""
        self.add(statement, definition)
        if not isinstance(definition, Dropped | Setting):
            for said in statement.said:
                self._recalled.setdefault(said, []).append(definition)

    def recalled(self, said: str) -> Definition | None:
        """Give what these words registered before the restart, once for each time that they did."""
        known = self._recalled.get(said)
        return known.pop(0) if known else None


def _of_gsql(said: str, definition: Definition, now_us: int, folder: str | None) -> Statement:
    """The statement to remember for one in GSQL; a query without a name gets the one that it was given."""
    if not isinstance(definition, Query):
        return Statement(said, (said,), now_us, folder=folder, language="gsql")
    named = "query_name" in definition.gsql.defined if definition.gsql is not None else True
    gsql = said if named else f"DEFINE {{ query_name '{definition.name}'; }} {said}"
    parts = len(definition.by_groups)
    return Statement(gsql, (said,), now_us, definition.name, folder, parts, language="gsql")


def _registered(statement: Statement) -> tuple[str, str] | None:
    """The query or group that a statement registers."""
    if statement.query is not None:
        return "query", statement.query
    return None if statement.group is None else ("group", statement.group)


def _subject(definition: Definition) -> tuple[str, str] | None:
    """The kind and the name of what a definition is about."""
    match definition:
        case Dropped(kind, name):
            return kind, name
        case Altered(now):
            return _subject(now)
        case Stream() | Relation() | View() | Query() | Group() | Function() | Constraint():
            return type(definition).__name__.lower(), definition.name
    return None


def remembered_statements(directory: Path) -> list[str]:
    """Read the statements that an engine on this directory will begin with, without starting one.

    A directory that cannot be used, or is in use, is refused.
    """
    Lock(directory).release()
    statements: dict[str, str] = {}
    for subject, what in facts(directory / "journal"):
        if subject == SUBJECT and isinstance(fact := read_fact(what), Statement):
            cql = fact.cql if fact.language == "cql" else f"SET dialect = 'gsql'; {fact.cql}"
            statements[fact.query or f"{len(statements)} {cql}"] = cql
    return list(statements.values())
