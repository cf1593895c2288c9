"""The statements that made an engine's catalog what it is, in order: executing them again makes the same catalog.

Settings count from where they stand, so the order matters. A query that was dropped or replaced leaves nothing behind:
its statement goes. After a restart, a script finds here what it had registered before."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headgate.catalog.entries import Function, Query, Relation, Stream, View
from headgate.cql.definitions import Altered, Definition, Dropped, Setting
from headgate.log.journal import facts
from headgate.log.lock import Lock

TAKEN_BACK = re.compile(r"^(DROP\s+\w+)(\s+IF\s+EXISTS)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    cql: str
    said: tuple[str, ...]
    """What the user wrote and this stands for: a query without a name was given one, a query may have been altered."""

    now: int
    """When, in microseconds on the engine's clock."""

    query: str | None = None
    """The query it registers."""

    folder: str | None = None
    """Where in the engine's directory its files are: a name that is used again gets another."""

    groups: int = 0
    """As how many parts the query runs, if it runs by groups of sources."""


class Statements:
    def __init__(self) -> None:
        self.all: list[Statement] = []
        self._recalled: dict[str, list[Definition]] = {}
        """What was registered before the restart, by the words of its statement."""

    def of(self, said: str, definition: Definition, now_us: int, folder: str | None) -> Statement:
        match definition:
            case Query(name=name, by_groups=by_groups) if not said.upper().startswith(("CREATE", "ALTER")):
                return Statement(f"CREATE QUERY {name} AS {said}", (said,), now_us, name, folder, len(by_groups))
            case Query(name=name, by_groups=by_groups):
                return Statement(said, (said,), now_us, name, folder, len(by_groups))
            case Altered(Query(name=name, by_groups=by_groups)):
                before = next(one.said for one in self.all if one.query == name)
                return Statement("CREATE" + said[len("ALTER") :], (*before, said), now_us, name, folder, len(by_groups))
            case Setting(taken_back=True):  # what was declared from Python is declared behind all statements
                return Statement(TAKEN_BACK.sub(r"\1 IF EXISTS", said), (said,), now_us)
        return Statement(said, (said,), now_us, folder=folder)

    def add(self, statement: Statement, definition: Definition) -> None:
        """It has been executed. What it makes obsolete goes, and a script must say anew what was dropped."""
        gone = definition.name if isinstance(definition, Dropped) and definition.kind == "query" else statement.query
        self.all = [one for one in self.all if one.query is None or one.query != gone]
        if not isinstance(definition, Dropped) or definition.kind != "query":
            self.all.append(statement)
        if isinstance(definition, Dropped | Altered):
            for said, known in list(self._recalled.items()):
                self._recalled[said] = [one for one in known if _subject(one) != _subject(definition)]

    def recall(self, statement: Statement, definition: Definition) -> None:
        """It was executed before the restart."""
        self.add(statement, definition)
        if not isinstance(definition, Dropped | Setting):
            for said in statement.said:
                self._recalled.setdefault(said, []).append(definition)

    def recalled(self, said: str) -> Definition | None:
        """What these words registered before the restart; each is asked for once."""
        known = self._recalled.get(said)
        return known.pop(0) if known else None

    def state(self) -> list[dict[str, Any]]:
        return [asdict(statement) for statement in self.all]


def _subject(definition: Definition) -> tuple[str, str] | None:
    """What a definition is about: its kind and name."""
    match definition:
        case Dropped(kind, name):
            return kind, name
        case Altered(now):
            return _subject(now)
        case Stream() | Relation() | View() | Query() | Function():
            return type(definition).__name__.lower(), definition.name
    return None


def told_before(directory: Path) -> list[str]:
    """The statements that an engine on this directory will begin with, without starting one."""
    Lock(directory).release()  # one that cannot be used, or is in use, is refused before Spark is started
    statements: dict[str, str] = {}
    for subject, what in facts(directory / "journal"):
        if subject == "engine" and "statement" in what:
            statement = what["statement"]
            statements[statement["query"] or f"{len(statements)} {statement['cql']}"] = statement["cql"]
    return list(statements.values())
