"""Quarantine: what the journal holds and this version cannot read, carry out again or find whole on disk.

An engine starts all the same. What cannot be carried out again is known by its name, with why, and does not run;
what depends on it is in quarantine too. Nothing of it is lost:

    statements    stand among the others, at their place, and are tried again at each start
    facts         about it, and of a kind that is not known here, are written into each checkpoint as they were read
    folders       are not swept
    streams       whose names stand in the text of a query forget nothing, so that it can go on where it was

It leaves quarantine when it is dropped or defined anew, or when an engine starts that can carry it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from headgate.catalog.entries import Quarantined, Relation, Stream, in_line
from headgate.engine.core import Core
from headgate.engine.facts import SUBJECT, MemberJoined, Statement
from headgate.log.journal import Fact
from headgate.plan.nodes import sources
from headgate.spark.failures import reason_of

if TYPE_CHECKING:
    from headgate.engine.sharing import Sharing
    from headgate.engine.statements import Statements

Key: TypeAlias = tuple[str, str]
"""A kind of thing and its name in lower case."""

NAME = r"(`[^`]+`|\"[^\"]+\"|[\w.]+)"
NAMED = re.compile(
    rf"(?:(?:CREATE|REGISTER|ALTER|DROP)\s+)?(STREAM|RELATION|VIEW|QUERY|GROUP|FUNCTION|CONSTRAINT|PROTOCOL)\s+"
    rf"(?:IF\s+EXISTS\s+)?{NAME}",
    re.IGNORECASE,
)
SETS = re.compile(rf"SET\s+{NAME}\s*=", re.IGNORECASE)
LABELLED = re.compile(rf"{NAME}\s*(?:\([^)]*\)\s*)?:")

WORD = re.compile(r"[\w.]+")

OF_STREAMS = ("log streams/{0}", "log dead/{0}", "inlet {0}", "table {0}", "files {0}")
OF_QUERIES = ("outbox", "group", "members", "fragment", "log")


@dataclass(frozen=True, slots=True)
class KeptFact:
    """A fact about the engine as the journal has it, and what it is about if that is in quarantine."""

    what: Mapping[str, Any]
    about: Key | None


class Quarantine:
    """What is in quarantine, and all that is kept of it. The catalog has what users see of it."""

    def __init__(self, core: Core, statements: Statements, sharing: Sharing) -> None:
        self.core = core
        self.statements = statements
        self.sharing = sharing
        self.held: dict[Key, list[Statement]] = {}
        """The statements of what is in quarantine."""
        self._facts: list[KeptFact] = []
        self._subjects: dict[Key, dict[str, list[dict[str, Any]]]] = {}
        """The facts of other subjects: logs, outboxes, fragments."""
        self._families: dict[Key, set[str]] = {}
        """The folders of the families whose members are in quarantine."""

    def __contains__(self, key: Key) -> bool:
        return key in self.held

    # coming

    def put(self, statement: Statement, error: Exception) -> Key:
        """Put a statement into quarantine that cannot be carried out again."""
        kind, name = about(statement)
        key = kind, name.lower()
        known = self.core.catalog.quarantine.get(key)
        entry = known or Quarantined(kind, name, reason_of(error), in_line(statement.cql))
        self.core.catalog.quarantine[key] = entry
        own = self.held.setdefault(key, [])
        if all(one is not statement for one in own):
            own.append(statement)
        self.statements.hold(statement, entry)
        return key

    def take(self, key: Key, error: Exception) -> None:
        """Put something into quarantine that could be read, but not set up again."""
        own = [one for one in self.statements.all if _key(one) == key]
        for statement in own:
            self.put(statement, error)

    def keep(self, what: Mapping[str, Any], key: Key | None, error: Exception | None = None) -> None:
        """Keep a fact about the engine that cannot be applied: about something in quarantine, or one not known here."""
        self._facts.append(KeptFact(what, key))
        if key is None and error is not None:
            word = next(iter(what), "")
            number = sum(one.about is None for one in self._facts)
            entry = Quarantined("fact", f"{word} {number}", reason_of(error), in_line(str(dict(what))))
            self.core.catalog.quarantine["fact", entry.name] = entry

    def keep_member(self, joined: MemberJoined) -> None:
        """Keep what makes a query in quarantine the member of a family."""
        key = "query", joined.query.lower()
        self._facts.append(KeptFact(joined.to_json(), key))
        self._families.setdefault(key, set()).add(joined.family)

    def keep_subjects(self, key: Key, facts: Iterable[Fact]) -> None:
        """Keep facts of the logs and fragments of something in quarantine."""
        known = self._subjects.setdefault(key, {})
        for subject, what in facts:
            known.setdefault(subject, []).append(what)

    def keep_waiting(self, waiting: Mapping[str, list[dict[str, Any]]]) -> None:
        """Keep the facts that nobody has asked for because their subjects are in quarantine."""
        for key in self.held:
            own = {path.relative_to(self.core.directory) for path in self._folders(key)}
            found = [(subject, what) for subject, facts in waiting.items() if _is_of(subject, own) for what in facts]
            self.keep_subjects(key, found)
        self._hold_logs()

    def about(self, fact: object) -> Key | None:
        """What in quarantine a fact is about, if it is about any."""
        for kind, name in (
            ("query", getattr(fact, "query", None)),
            ("stream", getattr(fact, "stream", None)),
            ("relation", getattr(fact, "stream", None)),
        ):
            if isinstance(name, str) and (kind, name.lower()) in self.held:
                return kind, name.lower()
        return None

    # going

    def let_go(self, dropped: bool) -> bool:
        """Forget what the catalog has no longer in quarantine; says whether there was any. What was dropped by a
        statement of its own stays among the statements, as all that is dropped does.
        """
        gone = [key for key in self.held if key not in self.core.catalog.quarantine]
        for key in gone:
            own = self.held.pop(key)
            if not dropped:
                self.statements.all = [one for one in self.statements.all if all(one is not other for other in own)]
            self._facts = [one for one in self._facts if one.about != key]
            self._subjects.pop(key, None)
            self._families.pop(key, None)
        if gone:
            self._hold_logs()
        return bool(gone)

    # what is kept

    def facts(self) -> Iterator[Fact]:
        """Give the facts about the engine for a checkpoint; statements stand among the others."""
        for one in self._facts:
            yield SUBJECT, dict(one.what)

    def subject_facts(self, known: set[str]) -> Iterator[Fact]:
        """Give the facts of the subjects of what is in quarantine, unless they run for others and are known."""
        given = dict[str, list[dict[str, Any]]]()
        for subjects in self._subjects.values():
            given |= subjects
        for subject, facts in given.items():
            yield from ((subject, what) for what in facts if subject not in known)
        for key in self.held:
            for root, folder in self._own(key):
                if reads := self.sharing.remembered(f"{root}/{folder}"):
                    yield self.sharing.subject, {"reads": reads}

    def folders(self) -> set[Path]:
        """The folders that must stay."""
        return {path for key in self.held for path in self._folders(key)}

    def _folders(self, key: Key) -> set[Path]:
        found = {self.core.directory / root / folder for root, folder in self._own(key)}
        for root, folder in self._own(key):
            found |= {self.core.directory / one for one in self.sharing.remembered(f"{root}/{folder}")}
        return found

    def _own(self, key: Key) -> Iterator[tuple[str, str]]:
        roots = ("streams", "dead", "sources") if key[0] in ("stream", "relation") else ("queries",)
        named = {one.folder for one in self.held[key] if one.folder is not None} | self._families.get(key, set())
        yield from ((root, folder) for folder in sorted(named) for root in roots)

    def _hold_logs(self) -> None:
        """Let the logs forget nothing that something in quarantine may have to read when it comes back."""
        self.core.loop.held = frozenset(self.logs())

    def logs(self) -> Iterator[str]:
        """The names of streams and relations that stand in the texts of what is in quarantine, and shared logs."""
        catalog = self.core.catalog
        words = {word.lower() for own in self.held.values() for one in own for word in WORD.findall(one.cql)}
        read = {source.name for name in words & catalog.views.keys() for source in sources(catalog.views[name].plan)}
        inputs: dict[str, Stream | Relation] = {**catalog.streams, **catalog.relations}
        yield from read | {one.name for name, one in inputs.items() if name in words}
        for key in self.held:
            for root, folder in self._own(key):
                for reads in self.sharing.remembered(f"{root}/{folder}").values():
                    yield from reads


def about(statement: Statement) -> Key:
    """The kind and the name of what a statement defines, as far as that can be told without understanding it.

    One without a name is known by its words.
    """
    if statement.query is not None:
        return "query", statement.query
    if statement.group is not None:
        return "group", statement.group
    if named := NAMED.match(statement.cql):
        return named[1].lower(), named[2].strip('`"')
    if named := SETS.match(statement.cql):
        return "setting", named[1].strip('`"')
    if (named := LABELLED.match(statement.cql)) and named[1].lower() not in ("vquery", "vtable"):
        return "view", named[1].strip('`"')
    return "statement", in_line(statement.cql)


def _key(statement: Statement) -> Key:
    kind, name = about(statement)
    return kind, name.lower()


def _is_of(subject: str, folders: set[Path]) -> bool:
    """Whether the facts of a subject are about what lies in one of these folders of the engine's directory."""
    kind, _, rest = subject.partition(" ")
    for folder in folders:
        root, name = folder.parts
        if root == "streams" and subject in (one.format(name) for one in OF_STREAMS):
            return True
        if root in ("queries", "shared") and kind in OF_QUERIES:
            within = f"{root}/{name}"
            own = (within,) if root == "shared" else (within, name)
            if any(rest == one or rest.startswith(f"{one}/") for one in own):
                return True
    return False
