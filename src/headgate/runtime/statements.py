"""The statements that made an engine's catalog what it is, in order: executing them again makes the same catalog.

Settings count from where they stand, so the order matters. A query that was dropped leaves nothing behind: its statement goes.
After a restart, a script finds here what it had registered before.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from headgate.catalog import Function, Query, Relation, Stream, View
from headgate.cql.definitions import Definition, Dropped


@dataclass(frozen=True, slots=True)
class Statement:
    cql: str
    said: str
    """As the user wrote it: a query without a name was given one."""

    now: int
    """When, in microseconds on the engine's clock."""

    query: str | None = None
    """The query it registers."""


class Statements:
    def __init__(self) -> None:
        self.all: list[Statement] = []
        self.recalled: dict[str, Definition] = {}
        """What was registered before the restart, by the words of its statement."""

    def of(self, said: str, definition: Definition, now_us: int) -> Statement:
        if not isinstance(definition, Query):
            return Statement(said, said, now_us)
        named = definition.name.lower() in said.lower().split("select")[0]
        return Statement(said if named else f"CREATE QUERY {definition.name} AS {said}", said, now_us, definition.name)

    def add(self, statement: Statement, definition: Definition) -> None:
        if isinstance(definition, Dropped) and definition.kind == "query":
            self.all = [one for one in self.all if one.query != definition.name]
        else:
            self.all.append(statement)

    def recall(self, statement: Statement, definition: Definition) -> None:
        """It was executed before the restart."""
        self.add(statement, definition)
        if isinstance(definition, Stream | Relation | View | Query | Function):
            self.recalled[statement.said] = definition
        elif isinstance(definition, Dropped):
            gone = [said for said, one in self.recalled.items() if getattr(one, "name", None) == definition.name]
            for said in gone:
                del self.recalled[said]

    def state(self) -> list[dict[str, Any]]:
        return [asdict(statement) for statement in self.all]
