"""The statements that made an engine's catalog what it is, in order: executing them again makes the same catalog.

Settings count from where they stand, so the order matters. A query that was dropped or replaced leaves nothing behind: its
statement goes. After a restart, a script finds here what it had registered before.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from headgate.catalog import Function, Query, Relation, Stream, View
from headgate.cql.definitions import Altered, Definition, Dropped


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


class Statements:
    def __init__(self) -> None:
        self.all: list[Statement] = []
        self.recalled: dict[str, Definition] = {}
        """What was registered before the restart, by the words of its statement."""

    def of(self, said: str, definition: Definition, now_us: int, folder: str | None) -> Statement:
        match definition:
            case Query(name=name) if not said.upper().startswith(("CREATE", "ALTER")):
                return Statement(f"CREATE QUERY {name} AS {said}", (said,), now_us, name, folder)
            case Query(name=name):
                return Statement(said, (said,), now_us, name, folder)
            case Altered(Query(name=name)):
                before = next(one.said for one in self.all if one.query == name)
                return Statement("CREATE" + said[len("ALTER") :], (*before, said), now_us, name, folder)
        return Statement(said, (said,), now_us, folder=folder)

    def add(self, statement: Statement, definition: Definition) -> None:
        """It has been executed. What it makes obsolete goes."""
        gone = definition.name if isinstance(definition, Dropped) and definition.kind == "query" else statement.query
        self.all = [one for one in self.all if one.query is None or one.query != gone]
        if not isinstance(definition, Dropped) or definition.kind != "query":
            self.all.append(statement)

    def recall(self, statement: Statement, definition: Definition) -> None:
        """It was executed before the restart."""
        self.add(statement, definition)
        if isinstance(definition, Stream | Relation | View | Query | Function | Altered):
            self.recalled |= dict.fromkeys(statement.said, definition)
        elif isinstance(definition, Dropped):
            gone = [said for said, one in self.recalled.items() if getattr(one, "name", None) == definition.name]
            for said in gone:
                del self.recalled[said]

    def state(self) -> list[dict[str, Any]]:
        return [asdict(statement) for statement in self.all]
