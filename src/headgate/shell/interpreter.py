"""Executes what was typed, entry by entry, on an engine, and prints what happened.

Only one thread may use it at a time: the one that calls `execute` and `turn`, which owns the engine. Nothing that the
user types raises an exception here.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, assert_never

from headgate.catalog.entries import Function, Group, Quarantined, Query, Relation, Stream, View
from headgate.catalog.protocols import InterfaceSet, Protocol
from headgate.compile import explanation
from headgate.cql.definitions import (
    Altered,
    BoundsAsked,
    ConstraintsAsked,
    Definition,
    Dropped,
    Explanation,
    Listing,
    ParameterSet,
    PlanAsked,
    ProfileAsked,
    Setting,
    SnapshotAsked,
    WhyAsked,
)
from headgate.deliver.sinks.sink import Result
from headgate.editing.entries import Entry
from headgate.engine import Engine
from headgate.engine.registry import Answer
from headgate.engine.snapshot import Snapshot
from headgate.errors import Broken, Place, UserError, first_line
from headgate.heartbeat.why import Why
from headgate.plan.nodes import Constraint
from headgate.shell.commands import Advance, Command, Explain, Push, parsed_command, summary
from headgate.sql import Column, signature
from headgate.ticks import TimeDomain

SHOWN = 50
"""How many results of one epoch are shown; the rest is counted."""

HELD = 1_000
"""How many lines of results are kept while the results are paused; older ones are counted."""


class Interpreter:
    """Executes statements and commands on one engine, and shows results and errors."""

    def __init__(
        self, engine: Engine, say: Callable[[str], object], complain: Callable[[str], object], *, debug: bool = False
    ) -> None:
        self.engine = engine
        self.say = say
        self.complain = complain
        self.debug = debug
        self.failures = 0
        self.reported: set[str] = set()
        """Errors of earlier turns: each is reported once, not turn after turn."""

        self.held: deque[str] | None = None
        self.not_held = 0

    def execute(self, entry: Entry) -> None:
        """Executes one statement or command; errors are printed, not raised."""
        with self.errors_printed(set()):
            if entry.is_command:
                text = entry.in_place()
                self.run_command(parsed_command(entry.text, Place(text, entry.line, len(text), entry.origin)))
            else:
                for definition in self.engine.execute(entry.in_place(), entry.origin):
                    self.announce(definition)

    def turn(self) -> bool:
        """Reads new input and runs every query as far as it can go; says whether anything happened."""
        arrived, epochs = 0, []
        with self.errors_printed(self.reported):
            arrived = self.engine.poll()
        for note in self.engine.notes():
            self.complain(note.render())
        with self.errors_printed(self.reported):
            epochs = self.engine.step()
        return arrived > 0 or len(epochs) > 0

    def finish(self) -> None:
        """Ends the input: everything that arrived counts as complete, and queries run to their end."""
        with self.errors_printed(self.reported):
            self.engine.run_once()

    @contextmanager
    def errors_printed(self, reported: set[str]) -> Iterator[None]:
        """Prints the errors that are raised inside, unless they are in `reported` already."""
        try:
            yield
        except UserError as error:
            complaint = error.render()
        except Exception as error:
            complaint = (
                f"{type(error).__name__}: {first_line(error)}\nhint: headgate shell --debug shows where it comes from."
            )
        else:
            return
        if complaint not in reported:
            reported.add(complaint)
            self.failures += 1
            self.complain(complaint + (f"\n{traceback.format_exc()}" if self.debug else ""))

    # statements

    def announce(self, definition: Definition | Answer) -> None:
        """Prints what a statement did."""
        match definition:
            case Query():
                query = self.engine.query(definition.name)
                if definition.connector is None or definition.connector.format == "memory":
                    query.on_change(lambda results, name=definition.name: self.show_results(name, results))  # type: ignore[misc]
                self.say(f"{description(definition)}: {query.kind}, running")
            case Stream() | Relation() | View():
                self.say(description(definition))
            case Group(name, queries, connector):
                self.say(
                    f"group {name} of {', '.join(queries)}{'' if connector is None else f', into {connector.format}'}"
                )
            case Function(name, parameters):
                self.say(f"function {name}({', '.join(parameters)})")
            case Constraint():
                self.say(f"constraint {definition.name} on {definition.stream}: {definition.promise}")
            case Protocol() | InterfaceSet():
                self.say(f"{'protocol' if isinstance(definition, Protocol) else 'interface set'} {definition.name}")
            case ParameterSet(query, name, value, since):
                self.say(f"parameter {name} of {query}: {value} from {since} on")
            case Setting(name, taken_back):
                self.say(f"{name} is {'taken back' if taken_back else 'set'}")
            case Explanation(query=asked):
                self.say(explanation(asked, self.engine.catalog))
            case Altered():
                self.say(f"{definition.name} is altered")
            case Dropped(kind, name):
                self.say(f"{kind} {name} is dropped" if name else f"there is no such {kind}")
            case Quarantined():
                self.say(definition.error().render())
            case Listing() | Why() | Snapshot():
                self.say(str(definition))
            case BoundsAsked() | ConstraintsAsked() | PlanAsked() | ProfileAsked() | WhyAsked() | SnapshotAsked():
                raise Broken("the engine has not answered")
            case _:
                assert_never(definition)

    # results

    def show_results(self, query: str, results: Sequence[Result]) -> None:
        """Prints new results of a query, or keeps them while the shell is paused."""
        lines = [f"{query} {result}" for result in results[:SHOWN]]
        if len(results) > SHOWN:
            lines.append(f"{query} ... and {len(results) - SHOWN} more")
        if self.held is None:
            self.say("\n".join(lines))
        else:
            self.not_held += max(0, len(self.held) + len(lines) - HELD)
            self.held.extend(lines)

    def pause(self) -> None:
        """Holds results back until `resume`."""
        if self.held is None:
            self.held = deque(maxlen=HELD)
        self.say(r"results are held back; \resume shows them")

    def resume(self) -> None:
        """Prints the results that were held back, and all later ones at once."""
        held, self.held = self.held, None
        if self.not_held:
            self.say(f"... {self.not_held} earlier lines were not kept")
        self.not_held = 0
        if held:
            self.say("\n".join(held))

    # commands

    def run_command(self, asked: Command) -> None:
        """Executes a command."""
        match asked:
            case "help":
                self.say(summary())
            case "show":
                self.say("\n".join(self.overview()) or "nothing is defined yet")
            case "pause":
                self.pause()
            case "resume":
                self.resume()
            case "quit":
                pass  # the loop that reads the input ends by itself
            case Explain(query):
                self.say(self.engine.query(query).explain())
            case Advance(to):
                self.advance(to)
            case Push():
                self.push(asked)

    def advance(self, to: int | datetime) -> None:
        """Declares the input complete up to an instant, and runs the queries up to it."""
        domains = {query.domain for query in self.engine.queries()}
        if not domains:
            raise UserError("no-query", "no query is running that could advance")
        if isinstance(to, int) and TimeDomain.INTEGER not in domains:
            raise UserError(
                "bad-instant",
                f"{to} is not a timestamp, and no query has integer time",
                hint=r"\advance 2026-01-31 12:00:00",
            )
        if isinstance(to, datetime) and TimeDomain.TIMESTAMP not in domains:
            raise UserError("bad-instant", f"{to} is a timestamp, and no query has such time", hint=r"\advance 10")
        self.engine.poll()  # read what is in files already
        self.engine.advance(to)
        self.say(f"complete up to {to}")

    def push(self, asked: Push) -> None:
        """Pushes one row into a stream or relation, and says whether it was taken."""
        catalog = self.engine.catalog
        target = catalog.relations.get(asked.stream.lower()) or catalog.stream(asked.stream)
        before = self.engine.counts(target.name)
        self.engine.push(target.name, [row_to_push(asked, target)])
        after = self.engine.counts(target.name)
        if after["taken"] > before["taken"]:
            complete = self.engine.heartbeat(target.name) if isinstance(target, Stream) else None
            self.say(f"{target.name}: taken" + ("" if complete is None else f", complete up to {complete}"))
        else:
            reason = next(reason for reason in after if after[reason] > before.get(reason, 0))
            self.say(f"{target.name}: not taken, {reason}; the row is in the dead letters")

    def overview(self) -> Iterable[str]:
        """One line for each stream, relation, view and query."""
        catalog = self.engine.catalog
        for stream in catalog.streams.values():
            counts = ", ".join(f"{count} {what}" for what, count in self.engine.counts(stream.name).items())
            complete = self.engine.heartbeat(stream.name)
            yield f"{description(stream)}: {counts}" + ("" if complete is None else f", complete up to {complete}")
        yield from map(description, catalog.relations.values())
        yield from map(description, catalog.views.values())
        for query in self.engine.queries():
            complete = "" if query.complete is None else f", complete up to {query.complete}"
            yield f"{description(query.definition)}: {query.kind}, {query.count} results{complete}"


def row_to_push(asked: Push, target: Stream | Relation) -> object:
    """The row in the form in which `Engine.push` takes it, with its instant beside it if no column holds it."""
    row = with_sql_types(asked.row, target.columns)
    if target.timestamp is not None:
        if asked.instant is not None:
            raise UserError(
                "bad-row",
                f'the instant of "{target.name}" is its column "{target.timestamp}"',
                hint=rf'\push {target.name} {{"{target.timestamp}": ...}}',
            )
        return row
    if asked.instant is None:
        raise UserError(
            "bad-row",
            f'"{target.name}" has no timestamp column: say at which instant the row comes',
            hint=rf'\push {target.name} 1 {{"{target.columns[0].name}": ...}}',
        )
    if isinstance(target, Relation):
        return asked.instant, row, asked.sign
    return asked.instant, row


def with_sql_types(row: Any, columns: Iterable[Column]) -> Any:
    """Converts values for which JSON has no type, dates and decimals; other wrong values are left for the engine."""
    types = {column.name.lower(): column.type for column in columns}

    def converted(name: str, value: Any) -> Any:
        try:
            if types.get(name.lower()) == "DATE" and isinstance(value, str):
                return datetime.fromisoformat(value)  # the engine takes the date of a timestamp
            if types.get(name.lower(), "").startswith("DECIMAL") and isinstance(value, int | float | str):
                return Decimal(str(value))
        except (ValueError, InvalidOperation):
            pass
        return value

    return {name: converted(name, value) for name, value in row.items()} if isinstance(row, dict) else row


def description(thing: Stream | Relation | View | Query) -> str:
    """A thing of the catalog in one line: kind, name and columns."""
    return f"{type(thing).__name__.lower()} {thing.name} ({signature(columns(thing))})"


def columns(thing: Stream | Relation | View | Query) -> Sequence[Column]:
    """The columns of a stream, relation, view or query."""
    return thing.columns if isinstance(thing, Stream | Relation) else thing.plan.columns
