"""The statements that made an engine's catalog what it is, in order: carrying them out again makes that catalog.

Settings count from where they stand, so the order matters. A query that was dropped or replaced, and a group that was
dropped, leave nothing behind: the statement goes. After a restart, a script finds here what it had registered before.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from headgate.catalog.catalog import Catalog, State
from headgate.catalog.entries import Function, Group, Quarantined, Query, Relation, Stream, View, in_line
from headgate.compile import compile_script
from headgate.cql import script
from headgate.cql.definitions import Altered, Defined, Definition, Dropped, Setting
from headgate.cql.languages import Language
from headgate.engine.facts import SUBJECT, Statement, read_fact
from headgate.errors import Place, UserError
from headgate.log.journal import facts
from headgate.log.lock import Lock
from headgate.plan.nodes import Constraint

CREATE_OR_ALTER = re.compile(r"^(CREATE|ALTER)", re.IGNORECASE)
LABELS = re.compile(r"^((TABLE|QUERY)\s*:\s*)+", re.IGNORECASE)
"""Labels of Stanford's scripts in front of a statement: earlier versions remembered them with it."""

TAKEN_BACK = re.compile(r"^(DROP\s+\w+)(\s+IF\s+EXISTS)?", re.IGNORECASE)


class Statements:
    """The statements that hold, and which of them a script may say once more after a restart."""

    def __init__(self) -> None:
        self.all: list[Statement] = []
        self._recalled: dict[str, list[Definition]] = {}
        """What was registered before the restart, by the words of its statement."""

    def of(self, said: str, definition: Definition, now_us: int, language: Language = "cql") -> Statement:
        """The statement to remember for what the user said: one that can be carried out again by itself."""
        if language == "gsql":
            return _of_gsql(said, definition, now_us)
        match definition:
            case Query(name=name, by_groups=by_groups) if not said.upper().startswith(("CREATE", "ALTER")):
                return Statement(f"CREATE QUERY {name} AS {said}", (said,), now_us, name, groups=len(by_groups))
            case Query(name=name, by_groups=by_groups):
                cql = CREATE_OR_ALTER.sub("CREATE", said, count=1)  # what is in quarantine can be altered too
                return Statement(cql, (said,), now_us, name, groups=len(by_groups))
            case Altered(Query(name=name, by_groups=by_groups), before):
                earlier = next(one.said for one in self.all if _registered(one) == _subject(before))
                cql = CREATE_OR_ALTER.sub("CREATE", said, count=1)
                return Statement(cql, (*earlier, said), now_us, name, groups=len(by_groups))
            case Group(name=name):
                return Statement(said, (said,), now_us, group=name)
            case Setting(taken_back=True):  # what was declared from Python is declared behind all statements
                return Statement(TAKEN_BACK.sub(r"\1 IF EXISTS", said), (said,), now_us)
        return Statement(said, (said,), now_us)

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
            self.forget(_subject(definition))

    def hold(self, statement: Statement, held: Quarantined) -> None:
        """Keep a statement at its place that is in quarantine. A script may say it once more: it is known."""
        gone = _registered(statement)
        if all(one is not statement for one in self.all):
            self.all = [one for one in self.all if gone is None or _registered(one) != gone]
            self.all.append(statement)
        for said in statement.said:
            self._recalled[LABELS.sub("", said)] = [held]

    def recall(self, statement: Statement, definition: Definition) -> None:
        """Remember a statement that was carried out before the restart."""
        self.add(statement, definition)
        if not isinstance(definition, Dropped | Setting):
            for said in statement.said:
                self._recalled.setdefault(LABELS.sub("", said), []).append(definition)

    def forget(self, subject: tuple[str, str] | None) -> None:
        """A script must say anew what was said about something."""
        for said, known in list(self._recalled.items()):
            self._recalled[said] = [one for one in known if _subject(one) != subject]

    def recalled(self, said: str) -> Definition | None:
        """Give what these words registered before the restart, once for each time that they did."""
        known = self._recalled.get(said)
        return known.pop(0) if known else None


def _of_gsql(said: str, definition: Definition, now_us: int) -> Statement:
    """The statement to remember for one in GSQL; a query without a name gets the one that it was given."""
    if not isinstance(definition, Query):
        return Statement(said, (said,), now_us, language="gsql")
    named = "query_name" in definition.gsql.defined if definition.gsql is not None else True
    gsql = said if named else f"DEFINE {{ query_name '{definition.name}'; }} {said}"
    return Statement(gsql, (said,), now_us, definition.name, groups=len(definition.by_groups), language="gsql")


def words_again(statement: Statement, catalog: Catalog) -> str:
    """The words that carry a statement out again. One that was altered stands as the CREATE that would make it now."""
    if statement.query is None or statement.query.lower() not in catalog.queries:
        return statement.cql
    return "ALTER" + statement.cql[len("CREATE") :]


def refuse_unreadable(statement: Statement, one: Defined, before: State, catalog: Catalog) -> None:
    """Refuse a statement that would not mean the same when it is read again after a restart.

    It is read as `recovery` will read it, on a catalog as it was before the statement. Words that are those of the
    statement itself mean what they have just meant, if they can be read by themselves.
    """
    try:
        statement.cql.encode()
    except UnicodeEncodeError:
        message = "this statement holds half of a character (a lone surrogate), which can be neither shown nor sent"
        raise UserError("not-replayable", message, hint="Write the whole character, or leave it out.") from None
    if statement.cql == one.statement and statement.language == "cql" and _reads_alone(statement.cql):
        return
    again = Catalog()
    again.put_back(before)
    again.permissions, again.shapes = None, catalog.shapes
    try:
        (found,) = compile_script(words_again(statement, again), again, language=statement.language)
    except UserError as error:
        raise _not_replayable(statement, one.place, f"They are refused: {error.message}.") from error
    except Exception as error:
        raise _not_replayable(statement, one.place, f"They cannot be read: {type(error).__name__}.") from error
    if _meant(found) != _meant(one.definition) or _declared(again) != _declared(catalog):
        raise _not_replayable(statement, one.place, "They mean something else then.")


def _reads_alone(cql: str) -> bool:
    """Whether a text is one statement that can be read."""
    try:
        return len(script.parse(cql)) == 1
    except UserError:
        return False


def _not_replayable(statement: Statement, place: Place, detail: str) -> UserError:
    return UserError(
        "not-replayable",
        "this statement could not be read again after a restart",
        place=place,
        detail=f"Its words would be: {in_line(statement.cql)} {detail}",
        hint="Nothing of it was done. Write it in another way, and report it: it is a defect of headgate.",
    )


def _meant(definition: Definition) -> Any:
    """A definition without what does not belong to its meaning. Plans of one that may be one of a family are those of
    its shape, and may be borrowed from a query with other constants: there the text says what it means.
    """
    match definition:
        case Altered(now):
            return _meant(now)
        case Query(shape=None, gsql=gsql) as query:
            kinds = None if gsql is None else gsql.kinds
            return replace(query, text="", resolved="", rules=(), gsql=None), kinds
        case Query() as query:
            return query.name, query.text, query.connector, query.from_beginning
    return definition


def _declared(catalog: Catalog) -> dict[str, Any]:
    """All that a catalog knows, of queries the names only: those are compared by what they mean."""
    known = dict(catalog.state())
    pending = known.pop("pending")
    return known | {"queries": [*known["queries"]], "pending": None if pending is None else pending[0]}


def _registered(statement: Statement) -> tuple[str, str] | None:
    """The query or group that a statement registers."""
    if statement.query is not None:
        return "query", statement.query.lower()
    return None if statement.group is None else ("group", statement.group.lower())


def _subject(definition: Definition) -> tuple[str, str] | None:
    """The kind and the name of what a definition is about."""
    match definition:
        case Dropped(kind, name):
            return kind, name.lower()
        case Altered(now):
            return _subject(now)
        case Quarantined(kind, name):
            return kind, name.lower()
        case Stream() | Relation() | View() | Query() | Group() | Function() | Constraint():
            return type(definition).__name__.lower(), definition.name.lower()
    return None


def remembered_statements(directory: Path) -> list[str]:
    """Read the statements that an engine on this directory will begin with, without starting one.

    A directory that cannot be used, or is in use, is refused.
    """
    Lock(directory).release()
    statements: dict[str, str] = {}
    for subject, what in facts(directory / "journal"):
        with suppress(UserError):  # what is not known is put into quarantine by the engine
            if subject == SUBJECT and isinstance(fact := read_fact(what), Statement):
                cql = fact.cql if fact.language == "cql" else f"SET dialect = 'gsql'; {fact.cql}"
                statements[fact.query or f"{len(statements)} {cql}"] = cql
    return list(statements.values())
