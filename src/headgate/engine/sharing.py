"""One plan for all queries: what their plans have in common is computed once, by shared fragments.

A shared fragment is a fragment whose elements go to a log, as those of a query's parts do. It belongs to the engine.
Queries read its log, each from where it is, and so may other shared fragments. What nobody reads any more is let go.

    found        when a query is registered: in the plan of a shared fragment, or of a query that has not run yet
    equal        the same plan but for names, seen from the same instant on, without functions of the user
    remembered   the journal says which subplans each query reads from which logs, so a restart makes the same plan

A query that has not run yet can still be divided in another way; one that has run stays as it is. So a query that comes
later shares what is shared already, if the log still holds all of it, and computes everything else alone.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.catalog.entries import Query
from headgate.compile import compile_fragment, compile_query
from headgate.cql.calls import calls_unknown
from headgate.engine.core import Core
from headgate.errors import UserError
from headgate.execute.build import build_fragments
from headgate.execute.fragment import Fragment
from headgate.log.checksum import writing
from headgate.log.journal import Fact
from headgate.log.log import Log
from headgate.plan.nodes import Relation, shared_name, sources
from headgate.plan.parameters import parameters
from headgate.plan.shared import Sharable, SharableParts, part_over
from headgate.schedule.query import RunningQuery
from headgate.ticks import Tick

SUBJECT = "sharing"
"""The subject in the journal whose facts say what is shared."""

FOLDER = "shared"
"""The folder in the engine's directory that has the files of shared fragments."""


@dataclass(eq=False, slots=True)
class Unit:
    """What one fragment computes over the logs of shared ones: the answer of a query, or something shared."""

    query: Query
    """The query, or the one from which something shared was taken first: errors show its text."""

    parts: SharableParts
    log: str | None
    """Where something shared puts its elements; None for the answer of a query."""

    fragment: Fragment
    reads: Mapping[str, Sharable] = field(default_factory=dict)
    """By log: what it reads instead of computing it."""

    @property
    def form(self) -> Relation:
        """What something shared is, without the names that queries give."""
        return self.parts.plan  # type: ignore[return-value]

    def forms(self) -> set[Relation]:
        """Return what it computes, as a whole and inside, without the names that queries give."""
        return {one.form for one in self.parts.all()} | ({self.form} if self.log is not None else set())

    @property
    def start(self) -> Tick | None:
        """The instant behind which it sees its streams."""
        return self.fragment.progress.start

    @property
    def fresh(self) -> bool:
        """Whether it has not run yet, so that it can still be divided in another way."""
        return not self.fragment.epochs and not self.fragment.begun

    @property
    def readable(self) -> bool:
        """Whether its log holds everything from the start on."""
        return self.fragment.output is not None and self.fragment.output.forgotten is None

    @property
    def folder(self) -> str:
        """Where its files are, in the engine's directory."""
        return _within(self.fragment.directory)


class Sharing:
    """The shared fragments of an engine, and what each query reads from them."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.shared: dict[str, Unit] = {}
        """By log."""
        self.answers: dict[Fragment, Unit] = {}
        """The queries that take part, by the fragment that gives the answer."""
        self.number = 0
        """How many shared fragments there have been: the name of a log is never used again."""
        self._holding: dict[Relation, dict[Unit, None]] = {}
        """By form: what computes it, as a whole or inside."""
        self._remembered: dict[str, dict[str, tuple[int, str]]] = {}
        """What the journal says, by folder: for each log the position and the label of what is read from it."""
        core.journal.introduce(SUBJECT, self._apply)

    # queries come

    def fragments(self, query: Query, directory: Path, start: Tick | None, whole: frozenset[str]) -> list[Fragment]:
        """Return the fragments of a query that begins, or goes on after a restart: shared ones, and its own."""
        again = self.core.clock.standing
        if not _takes_part(query):
            if self._remembered.get(_within(directory)) and not again:  # it said so of a query that had this folder
                self.core.journal.record(SUBJECT, {"reads": {_within(directory): {}}})
            return build_fragments(
                query,
                compile_query(query, self.core.catalog),
                self.core.workspaces,
                self.core.inputs.logs,
                self.core.inputs.schemas,
                directory,
                self.core.journal,
                start=start,
                whole=whole,
            )
        change = Change(self)
        parts = SharableParts(query.plan)
        try:
            reads = (
                self._read_before(query, parts, directory, change, start) if again else change.shared_by(parts, start)
            )
            answer = change.made(query, parts, None, reads, directory, start)
        except Exception:
            change.discard()
            raise
        if again:
            change.adopt()
        else:
            self.core.journal.record(SUBJECT, change.fact(), then=change.adopt, undo=change.discard)
        return change.leading_to(answer)

    def _read_before(
        self, query: Query, parts: SharableParts, directory: Path, change: Change, start: Tick | None
    ) -> dict[str, Sharable]:
        """Return what a query or something shared reads, as the journal says; what is shared begins again too."""
        found: dict[str, Sharable] = {}
        for log, (position, label) in self._remembered.get(_within(directory), {}).items():
            one = parts.number(position)
            if one is None or one.node.label != label:
                raise UserError(
                    "other-version",
                    f'what query "{query.name}" shares with others was written by another version of headgate',
                    hint="DROP the query with that version, or begin with a new directory.",
                )
            if log not in self.shared and log not in change.new:
                inside, folder = SharableParts(one.form, shared=True), self.core.directory / FOLDER / _number(log)
                reads = self._read_before(query, inside, folder, change, start)
                change.made(query, inside, log, reads, folder, start)
            found[log] = one
        return found

    def equal(self, form: Relation, start: Tick | None) -> Unit | None:
        """Return what is shared and puts out just this, all of it, as seen from that instant on."""
        found = (unit for unit in self._holding.get(form, ()) if unit.log is not None and unit.form == form)
        return next((unit for unit in found if unit.start == start and unit.readable), None)

    def fresh(self, form: Relation, start: Tick | None) -> list[Unit]:
        """Return what has not run yet and computes this too, as seen from that instant on."""
        found = [unit for unit in self._holding.get(form, ()) if unit.fresh and unit.start == start]
        return [unit for unit in found if unit.log is not None or self._runs(unit)]

    def _runs(self, unit: Unit) -> bool:
        """Say whether a query runs: one that is being altered does not."""
        running = self.core.loop.queries.get(unit.query.name)
        return running is not None and running.answer is unit.fragment

    def add(self, unit: Unit) -> None:
        """Take note of what a query computes, or something shared."""
        if unit.log is None:
            self.answers[unit.fragment] = unit
        else:
            self.shared[unit.log] = unit
        for form in unit.forms():
            self._holding.setdefault(form, {})[unit] = None
        self._remembered[unit.folder] = _reads(unit)

    def remove(self, unit: Unit) -> None:
        """Forget what is computed no more, or in another way."""
        for form in unit.forms():
            del self._holding[form][unit]
            if not self._holding[form]:
                del self._holding[form]
        self.answers.pop(unit.fragment, None)
        if unit.log is not None and self.shared.get(unit.log) is unit:
            del self.shared[unit.log]

    # queries go

    def let_go(self) -> None:
        """Forget queries that are gone, and what was shared and nobody reads any more. Folders are swept later."""
        running = {fragment for query in self.core.queries() for fragment in query.fragments}
        for unit in [*self.answers.values(), *self.shared.values()]:
            if unit.fragment not in running:
                self.remove(unit)

    # what the journal knows

    def _apply(self, fact: dict[str, Any]) -> None:
        self.number = max(self.number, fact.get("number", 0))
        for folder, reads in fact["reads"].items():
            self._remembered[folder] = {log: (position, label) for log, (position, label) in reads.items()}

    def facts(self) -> Iterator[Fact]:
        """Give the facts of a checkpoint: what reads what, and how far what is shared has come."""
        units = [*self.shared.values(), *self.answers.values()]
        yield SUBJECT, {"number": self.number, "reads": {one.folder: _reads(one) for one in units if one.reads}}
        for unit in self.shared.values():
            if unit.fragment.output is not None:
                yield unit.fragment.output.subject, unit.fragment.output.state()
            yield unit.fragment.subject, unit.fragment.state()

    @property
    def subject(self) -> str:
        """The subject of its facts."""
        return SUBJECT

    def remembered(self, folder: str) -> dict[str, dict[str, tuple[int, str]]]:
        """Return what the journal says that a query or something shared reads, and what that reads, by folder."""
        reads = self._remembered.get(folder)
        if not reads:
            return {}
        found = {folder: reads}
        for log in reads:
            found |= self.remembered(f"{FOLDER}/{_number(log)}")
        return found

    def check_files(self, query: RunningQuery) -> None:
        """Raise an error that names the first file of what a query shares that is missing or cut short."""
        for fragment in query.shared:
            fragment.check_files()

    def folders(self) -> set[Path]:
        """Return the folders of what is shared."""
        return {unit.fragment.directory for unit in self.shared.values()}


class Change:
    """What changes when a query is registered: shared fragments, and new ones for queries that have not run yet."""

    def __init__(self, sharing: Sharing) -> None:
        self.sharing = sharing
        self.core = sharing.core
        self.new: dict[str, Unit] = {}
        """By log: what is shared from now on."""
        self.units: list[Unit] = []
        """All that is made, in order."""
        self.replaced: dict[Unit, Unit] = {}
        """What computes the same by less, in the place of what has not run yet."""

    def shared_by(self, parts: SharableParts, start: Tick | None) -> dict[str, Sharable]:
        """Return what a new query reads from others; what is found in queries that wait is made a shared fragment."""
        holders: dict[Unit, None] = {}

        def log_of(form: Relation) -> str | None:
            if (known := self.sharing.equal(form, start)) is not None:
                return known.log
            waiting = [unit for unit in self.sharing.fresh(form, start) if unit.log is None or unit.form != form]
            if not waiting:
                return None
            holders.update(dict.fromkeys(waiting))
            return self._begin(form, waiting[0].query, start)

        found = parts.chosen(log_of)
        for holder in holders:
            self._divide_again(holder)
        return found

    def _begin(self, form: Relation, query: Query, start: Tick | None) -> str:
        """Make a shared fragment, which may read others that are there."""
        self.sharing.number += 1
        log, parts = shared_name(self.sharing.number), SharableParts(form, shared=True)
        reads = parts.chosen(lambda inner: unit.log if (unit := self.sharing.equal(inner, start)) is not None else None)
        self.made(query, parts, log, reads, self.core.directory / FOLDER / str(self.sharing.number), start)
        return log

    def _divide_again(self, unit: Unit) -> None:
        """Let something that has not run yet read what is shared now."""
        known = {one.form: log for log, one in unit.reads.items()} | {one.form: log for log, one in self.new.items()}
        reads = unit.parts.chosen(known.get)
        if reads.keys() == unit.reads.keys():
            return  # what is new lies inside of what it reads already
        self.replaced[unit] = self.made(unit.query, unit.parts, unit.log, reads, unit.fragment.directory, unit.start)

    def made(
        self,
        query: Query,
        parts: SharableParts,
        log: str | None,
        reads: Mapping[str, Sharable],
        directory: Path,
        start: Tick | None,
    ) -> Unit:
        """Make a fragment over the logs of shared ones: of a query, or shared itself if a log is given."""
        core, known = self.core, {**self.sharing.shared, **self.new}
        below = {name: known[name].fragment for name in reads}
        part = part_over(log, parts, {name: (reads[name].form, one.part) for name, one in below.items()})
        logs = {name: one.output for name, one in below.items() if one.output is not None}
        schemas = {name: one.result_schema for name, one in below.items()}
        output = None
        if log is not None:
            before = known.get(log)
            output = before.fragment.output if before is not None else None
            output = output or Log(directory / "elements", core.journal, f"log {_within(directory)}")
        with writing(directory):
            directory.mkdir(parents=True, exist_ok=True)
        fragment = Fragment(
            query,
            compile_fragment(query, part, core.catalog),
            core.workspaces,
            ChainMap(logs, core.inputs.logs),
            ChainMap(schemas, core.inputs.schemas),
            directory,
            start=start,
            whole=frozenset(one.name for one in core.catalog.relations.values())
            & {one.name for one in sources(parts.plan)},
            journal=core.journal,
            output=output,
        )
        unit = Unit(query, parts, log, fragment, reads)
        self.units.append(unit)
        if log is not None:
            self.new[log] = unit
        return unit

    def leading_to(self, answer: Unit) -> list[Fragment]:
        """Return the fragments from which an answer comes, each behind those that it reads."""
        known, found = {**self.sharing.shared, **self.new}, dict[Fragment, None]()

        def visit(unit: Unit) -> None:
            for log in unit.reads:
                visit(known[log])
            found.setdefault(unit.fragment)

        visit(answer)
        return list(found)

    def fact(self) -> dict[str, Any]:
        """Return what the journal is to remember."""
        return {"number": self.sharing.number, "reads": {unit.folder: _reads(unit) for unit in self.units}}

    def adopt(self) -> None:
        """Let it count: what is shared is there, and queries that wait read it."""
        for old in self.replaced:
            self.sharing.remove(old)
        for unit in self.units:
            self.sharing.add(unit)
        gone = {old.fragment: new for old, new in self.replaced.items()}
        for query in self.core.queries() if gone else ():
            if not gone.keys().isdisjoint(query.fragments):
                answer = gone.get(query.answer)
                query.divide(self.leading_to(answer or self.sharing.answers[query.answer]))

    def discard(self) -> None:
        """Leave everything as it was, because the query is refused or did not become durable."""
        for old in self.replaced:
            self.core.journal.introduce(old.fragment.subject, old.fragment.apply)


def _takes_part(query: Query) -> bool:
    """Say whether a query shares anything: by one heartbeat, as a whole, without own functions and parameters."""
    plain = query.sharing and query.heartbeats == "query" and not query.by_groups
    return plain and not calls_unknown(query.plan) and not parameters(query.plan)


def _reads(unit: Unit) -> dict[str, tuple[int, str]]:
    return {log: (one.position, one.node.label) for log, one in unit.reads.items()}


def _within(directory: Path) -> str:
    return f"{directory.parent.name}/{directory.name}"


def _number(log: str) -> str:
    """The number in the name of a shared fragment's log, which names its folder too."""
    return log.partition("(")[2].removesuffix(")")
