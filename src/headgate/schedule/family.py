"""A family that headgate has found: one hidden query that runs in the place of queries of one shape.

    MemberRows     the relation of the members' constants; a row for each member, from the instant at which it came
    FamilyQuery    the hidden query: it runs like any other, and hands each member its results
    Membership     what makes a query a member: which one, of which family

A query that joins a family goes on as an object of its own, with its own name, listeners and sink. Its fragments are
those of the family. Results without a sink stay together in the outbox of the family, and are told apart when they are
asked for. Of members with sinks, those that have results in an epoch get them as deliveries of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.catalog.entries import Query
from headgate.cql.shapes import Lengths, Shape, values_of
from headgate.deliver.courier import CLOSE_SECONDS, Courier
from headgate.deliver.outbox import Outbox
from headgate.heartbeat.clock import Clock
from headgate.log.chunk import Chunk
from headgate.log.journal import Fact
from headgate.log.log import Log
from headgate.log.tail import TAIL
from headgate.masking import masked
from headgate.schedule.query import RunningQuery
from headgate.sql import result_order
from headgate.ticks import Tick

MOST_GONE = 1_000
"""So many rows about members that have gone are no reason to write the others anew."""


@dataclass(frozen=True, slots=True)
class Row:
    """The row of a member: its constants, and the instant from which it counts."""

    values: tuple[Any, ...]
    at: Tick


class MemberRows:
    """The relation of the constants of a family. Rows are written when an epoch is about to look at them."""

    def __init__(self, log: Log, schema: pa.Schema, subject: str) -> None:
        self.log = log
        self.schema = schema
        self.subject = subject
        self.wanted: dict[int, Row] = {}
        """The rows that are to be there, by the number of the member."""
        self.held: dict[int, tuple[Any, ...]] = {}
        """The constants of the rows that are there."""
        self._leaving: dict[int, Tick] = {}
        """When rows go that are there and not wanted any more."""
        self._changed = False
        self.last = 0
        """The largest number of a row that was ever there: results tell members apart by it."""
        log.journal.introduce(subject, self.apply)

    def put(self, number: int, row: Row) -> None:
        """Let a member have a row."""
        self.wanted[number] = row
        self._changed = True

    def take(self, number: int, at: Tick) -> None:
        """Let the row of a member go."""
        self.wanted.pop(number, None)
        self._leaving[number] = at
        self._changed = True

    def refresh(self) -> None:
        """Write what has changed since it was last looked at."""
        if not self._changed:
            return
        with self.log.journal.together():
            coming = {number: row for number, row in self.wanted.items() if number not in self.held}
            going = {number: values for number, values in self.held.items() if number not in self.wanted}
            rows = [(number, *row.values, 1, row.at, number) for number, row in coming.items()]
            rows += [(number, *values, -1, self._leaving.get(number, 0), number) for number, values in going.items()]
            if rows:
                self.log.append(self._table(rows))
                known = [[number, *map(_written, row.values)] for number, row in coming.items()]
                self.log.journal.record(self.subject, {"came": known, "went": list(going)})
            self._changed = False

    def rewrite(self) -> None:
        """Write the rows that are there anew, if most of what the log holds is about members that have gone.

        Only where epochs read all of it: state that was moved would not know.
        """
        before = list(self.log.chunks)
        if sum(chunk.rows for chunk in before) < 2 * len(self.held) + MOST_GONE:
            return
        with self.log.journal.together():
            live = {number: self.wanted[number] for number in self.held if number in self.wanted}
            self.log.append(self._table([(number, *row.values, 1, row.at, number) for number, row in live.items()]))
            self.log.journal.record(self.subject, {"went": [number for number in self.held if number not in live]})
            self.log.journal.record(*self.log.dropping(before))
        TAIL.drop(before)
        for chunk in before:
            chunk.path.unlink(missing_ok=True)

    def _table(self, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
        columns = zip(*rows, strict=True) if rows else [()] * len(self.schema)
        arrays = [pa.array(values, one.type) for values, one in zip(columns, self.schema, strict=True)]
        return pa.table(arrays, schema=self.schema)

    # what the journal knows of it

    def apply(self, fact: Mapping[str, Any]) -> None:
        """Take what the journal says of it."""
        kinds = [one.type for one in self.schema][1:]
        self.last = fact.get("last", self.last)
        for number, *values in fact.get("came", ()):
            self.last = max(self.last, number)
            self.held[number] = tuple(map(_read, values, kinds))
        for number in fact.get("went", ()):
            self.held.pop(number, None)
            self._leaving.pop(number, None)

    def state(self) -> dict[str, Any]:
        """Return the fact that `apply` takes."""
        held = [[number, *map(_written, values)] for number, values in self.held.items()]
        return {"came": held, "last": self.last}

    def recalled(self, after: Tick) -> None:
        """Let go of rows whose members were dropped before the restart."""
        for number in self.held.keys() - self.wanted.keys():
            self._leaving[number] = after + 1
            self._changed = True
        self._changed |= bool(self.wanted.keys() - self.held.keys())


def _written(value: Any) -> Any:
    return str(value) if isinstance(value, Decimal) else value


def _read(value: Any, kind: pa.DataType) -> Any:
    return Decimal(value) if pa.types.is_decimal(kind) else value


@dataclass(frozen=True, slots=True)
class Membership:
    """Which member of a family a query is."""

    family: FamilyQuery
    number: int
    start: Tick | None
    """The instant behind which the query sees its streams."""

    def own(self, table: pa.Table) -> pa.Table:
        """The rows of a table of the family's results that are its own."""
        mine = pc.equal(table.column(self.family.shown[0]), pa.scalar(self.number, pa.int64()))
        return table.filter(mine).drop_columns(list(self.family.shown))

    def explained(self, query: Query) -> str:
        """What `explain` says of the query."""
        family, count = self.family, len(self.family.members)
        values = ", ".join(map(str, values_of(query.shape, family.lengths)))
        others = f"one of {count} queries that differ in constants only, and run as one program"
        return "\n".join(
            [
                f"query {query.name} ({self.family.kind})",
                "",
                f"-- text\n{masked(query.text)}",
                "",
                f"-- member {self.number} of {family.name}\n{others}; its constants are {values}",
                "",
                RunningQuery.explain(family),
            ]
        )


class FamilyQuery(RunningQuery):
    """The hidden query of a family that was found."""

    rows: MemberRows
    start: Tick | None
    """The instant behind which it sees its streams."""

    takes_later: bool
    """Whether members may come once it has begun."""

    shape: tuple[Any, ...]
    """The shape that its members have."""

    lengths: Lengths
    """The lengths that their windows may have; empty if all have the same."""

    def begin(self, rows: MemberRows, start: Tick | None, takes_later: bool, shape: Shape) -> None:
        """Say what its members are."""
        self.rows, self.start, self.takes_later = rows, start, takes_later
        self.shape, self.lengths = shape.key, shape.lengths
        self.members: dict[int, RunningQuery] = {}
        self.number = rows.last
        """The last number that a member had."""
        for fragment in self.fragments:
            fragment.inputs.refresh = rows.refresh
        if isinstance(self.outbox, SplitOutbox):
            self.outbox.family = self
            self.courier = Couriers(self)

    @property
    def hidden(self) -> bool:
        return True

    @property
    def stands_for(self) -> list[str]:
        return [member.name for member in list(self.members.values())]

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns of its answer that say to which member a row belongs, the number first."""
        assert self.definition.family is not None
        return self.definition.family.shown

    @property
    def keeps(self) -> bool:
        """Whether the results of its members stay in its outbox."""
        return not isinstance(self.outbox, SplitOutbox)

    @property
    def is_open(self) -> bool:
        """Whether no epoch was prepared yet."""
        return not self.begun and not any(fragment.inputs.looked_at for fragment in self.fragments)

    def takes(self, start: Tick | None, from_beginning: bool) -> bool:
        """Say whether a query that sees its streams behind `start` answers as a member what it would answer alone."""
        if self.is_open and start == self.start:
            return True
        if not self.takes_later or from_beginning or self.failed:
            return False
        instant = self.domain.origin - 1 if start is None else start
        if not self.answer.inputs.by_arrival:
            return instant >= self.reached
        logs = [self.answer.inputs.logs[stream] for stream in self.streams()]
        return all(chunk.high <= instant for log in logs for chunk in log.chunks)  # others may have been answered

    def put(self, member: RunningQuery, number: int, start: Tick | None) -> None:
        """Take a member."""
        at = self.domain.origin if start is None or self.is_open else start + 1
        self.number = max(self.number, number)
        self.members[number] = member
        member.join(Membership(self, number, start))
        self.rows.put(number, Row(values_of(member.definition.shape, self.lengths), at))

    def take_out(self, number: int) -> None:
        """Let it be as if a member had never come: it did not become durable."""
        self.members.pop(number, None)
        self.rows.wanted.pop(number, None)

    def leave(self, number: int, at: Tick) -> None:
        """Let a member go: from `at` on it has no row. A family that stands still is tried again without it."""
        del self.members[number]
        self.rows.take(number, at)
        for fragment in self.fragments:
            fragment.back_off.succeeded()

    # what RunningQuery does, for the members too

    def notify(self, kept: list[Chunk]) -> None:
        """Tell those who listen to members."""
        tables: Sequence[pa.Table] = ()
        if isinstance(self.outbox, SplitOutbox):
            tables, self.outbox.told = self.outbox.told, []
        if not any(member.heard for member in self.members.values()):
            return
        tables = tables or [chunk.table() for chunk in kept]
        for number, own in by_member(tables, self.shown).items():
            member = self.members.get(number)
            if member is not None and member.heard:
                member.tell([own])
                self.complaints += member.complaints
                member.complaints = []

    def tidy(self) -> None:
        super().tidy()
        if self.answer.inputs.by_arrival:
            self.rows.rewrite()
        self.rows.log.compact()

    def close(self, wait_s: float = CLOSE_SECONDS) -> None:
        for member in self.members.values():
            member.close(wait_s)
        for fragment in self.fragments:
            fragment.close()

    def facts(self) -> list[Fact]:
        own: Iterable[Log | MemberRows] = (self.rows.log, self.rows)
        members = [fact for member in self.members.values() for fact in member.facts()]
        return [*super().facts(), *((one.subject, one.state()) for one in own), *members]

    def folders(self) -> list[Path]:
        return [self.outbox.directory, *(folder for member in self.members.values() for folder in member.folders())]

    def check_files(self) -> None:
        super().check_files()
        self.rows.log.check()
        self.rows.log.sweep()
        for member in self.members.values():
            member.check_files()


def by_member(tables: Sequence[pa.Table], shown: Sequence[str]) -> dict[int, pa.Table]:
    """The rows of each member, by its number, in order of time."""
    if not tables:
        return {}
    table = pa.concat_tables(tables, promote_options="default")
    table = table.sort_by([(shown[0], "ascending"), *result_order(table.column_names)]).combine_chunks()
    numbers = table.column(shown[0]).to_numpy()
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)] if len(numbers) else []
    rows = table.drop_columns(list(shown))
    return {int(numbers[low]): rows.slice(low, high - low) for low, high in itertools.pairwise(edges)}


class SplitOutbox(Outbox):
    """The outbox of a family whose members have sinks: it keeps nothing, and gives each member what is its own."""

    family: FamilyQuery
    told: list[pa.Table]
    """The results of the last epoch, for those who listen."""

    def put(
        self, pieces: Sequence[Sequence[Path]], after: Tick, until: Tick, tuples: Mapping[str, int] | None = None
    ) -> list[Chunk]:
        """Give the results of (after, until] to the members that have any."""
        files = [file for some in pieces for file in some]
        tables = [pq.read_table(file) for file in files]
        with self.journal.together():
            for number, own in by_member(tables, self.family.shown).items():
                member = self.family.members.get(number)  # otherwise it was dropped meanwhile
                if member is not None:
                    member.outbox.put(self._written(member.outbox, own), after, until, tuples)
        for file in files:
            file.unlink(missing_ok=True)
        self.log.rows += sum(table.num_rows for table in tables)
        self.told = tables
        return []

    @staticmethod
    def _written(outbox: Outbox, rows: pa.Table) -> list[list[Path]]:
        """Write the results of a member, in pieces if they are more than may go out at once."""
        most = outbox.flush_rows() or rows.num_rows
        written = []
        for position in range(0, rows.num_rows, most):
            path = outbox.log.directory / f".own-{position}.parquet"
            pq.write_table(rows.slice(position, most), path)
            written.append([path])
        return written

    def delivered(self, reached: Tick) -> Tick:
        """Return the instant up to which the sinks of all members have everything."""
        return min((member.outbox.delivered(reached) for member in self.family.members.values()), default=reached)


class Couriers(Courier):
    """The couriers of all members of a family, as one."""

    def __init__(self, family: FamilyQuery) -> None:
        super().__init__(family.outbox)
        self.family = family

    def _waiting(self) -> list[Courier]:
        return [member.courier for member in self.family.members.values() if member.outbox.waiting]

    def can_deliver(self, now_us: int) -> bool:
        return any(courier.can_deliver(now_us) for courier in self._waiting())

    def deliver(self, clock: Clock, tell: Callable[[str], None], pieces: int | None, wait_s: float) -> None:
        for_all = self._waiting()
        for courier in for_all:
            courier.deliver(clock, tell, pieces, 0)  # all begin before any is waited for
        for courier in for_all:
            courier.wait(wait_s)

    def finish(self, clock: Clock, tell: Callable[[str], None], wait_s: float) -> None:
        for courier in self._waiting():
            courier.finish(clock, tell, wait_s)

    def close(self, wait_s: float) -> None:
        with suppress(KeyError):
            for member in self.family.members.values():
                member.courier.close(wait_s)
