"""Early answers: what a query would answer if nothing more came up to the newest tuple that is there.

An early answer is an epoch from where the query is up to the newest timestamp, of which nothing is committed: no
heartbeat (watermark) is promised, no state is moved, and tuples that come later are not late because of it. All inputs
are read up to one point of their order of arrival. So it is right for the tuples that have come so far, and it is
wrong as far as others are still to come. When the heartbeats get there, the settled answer is computed as if there
had been no early one.

    EarlyAnswer    what is known of the instants beyond the last complete one, and what has changed since the one before
    EarlyAnswers   those of one query: when the next one is due, and the one that holds

The whole plan is one epoch, unless the query wants another way to be consistent: then its fragments are `stages`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.catalog import sinks
from headgate.catalog.entries import Early
from headgate.deliver.bags import difference
from headgate.deliver.reflects import most
from headgate.deliver.sinks.sink import Result, in_order, within
from headgate.errors import UserError
from headgate.execute.fragment import Fragment
from headgate.execute.prepared import PreparedEpoch, Written
from headgate.execute.together import MOST_BRANCHES, fits_together, run_together
from headgate.heartbeat.clock import Clock
from headgate.log.chunk import count
from headgate.schedule.stages import Stages
from headgate.schedule.versions import fits, rows_of, synchronized
from headgate.spark.failures import check_alive, concerns_all, failure, reason_of
from headgate.ticks import UNLIMITED, Tick

if TYPE_CHECKING:
    from headgate.schedule.query import RunningQuery

MOST_ROWS = 100_000
"""An early answer with more rows than this is not given: the settled one comes by files."""


@dataclass(frozen=True)
class EarlyAnswer:
    """What a query answers for the instants beyond the last complete one, by what has come so far."""

    complete: Any
    """The instant up to which results are settled; None while there is none."""

    upto: Any
    """The newest timestamp that has come: the early answer ends there."""

    tuples: Mapping[str, int]
    """How many tuples of each stream and relation it reflects; empty if it is not the answer to one input."""

    table: pa.Table | None = field(repr=False)
    """The changes in (complete, upto]; None if there are none."""

    before: pa.Table | None = field(repr=False)
    """Those of the early answer before it that are not settled by now."""

    consistent: bool = True
    """Whether it is known to be as consistent as the query's level demands. At level 'none' nobody looks."""

    @cached_property
    def results(self) -> list[Result]:
        """The changes in (complete, upto], in order of time, all of them partial."""
        return _results(self.table)

    @cached_property
    def added(self) -> list[Result]:
        """The results that the early answer before it did not have."""
        return _results(difference(self.table, self.before))

    @cached_property
    def withdrawn(self) -> list[Result]:
        """The results of the early answer before it, beyond `complete`, that do not hold any more."""
        return _results(difference(self.before, self.table))


@dataclass(frozen=True, slots=True)
class _Computed:
    """What the epochs of an early answer have given."""

    tuples: Mapping[str, int]
    upto: Tick
    tables: dict[Fragment, pa.Table] = field(default_factory=dict)
    consistent: bool = True
    still_fits: Callable[[], bool] = lambda: True
    """Says whether it can still stand behind what is settled: all that was settled since had been taken."""

    def beyond(self) -> pa.Table | None:
        """The results that are not settled by now; None if there are none."""
        if not self.still_fits():
            return None
        found = [rows for one, table in self.tables.items() for rows in within([table], one.after, UNLIMITED)]
        return pa.concat_tables(found, promote_options="default") if found else None


class EarlyAnswers:
    """The early answers of one query."""

    def __init__(self, query: RunningQuery) -> None:
        self.query = query
        self.early = query.definition.early or Early()
        self.every_us = self.early.every_us
        several = len(query.fragments) > 1 and not query.definition.by_groups
        self.stages = Stages(query.fragments, self.early) if several else None
        """Its fragments as they answer early, if there are several: each runs at its own pace."""
        self.last: EarlyAnswer | None = None
        self.trouble: UserError | None = None
        """Why the last one that was due could not be given."""
        self._seen: dict[str, int] = {}
        """How many tuples of each stream had come when the last one was due."""
        self._next_us = 0
        self._coming: _Computed | None = None
        """The early answer that is being computed; None between two of them."""
        self._computed: _Computed | None = None
        """What the last one was put together from."""
        self._afters: list[Tick] = []
        """How far each of the query's answers was then."""
        self._listeners: list[Callable[[EarlyAnswer], None]] = []

    # when

    def next_us(self) -> int | None:
        """Return when the next one is due; None if nothing has come since the last one."""
        come = any(count != self._seen.get(stream, 0) for stream, count in self._come().items())
        if self.stages is not None and self.trouble is None:
            come = come or self.stages.has_work()
        return self._next_us if come and not self.query.failed else None

    def give_again(self) -> None:
        """Let the next one be due, whether something has come or not."""
        self._seen = {}

    def _come(self) -> dict[str, int]:
        """How many tuples have come of each stream and relation."""
        return most(one.inputs.tuples() for one in self.query.fragments)

    def begin(self, now_us: int) -> list[PreparedEpoch]:
        """Prepare the epochs of an early answer, if one is due: one for each fragment that has something to say.

        The caller holds the journal's turn: all inputs are read up to one point of their order of arrival.
        """
        next_us = self.next_us()
        if next_us is None or now_us < next_us:
            return []
        self._next_us = now_us + self.every_us
        self._seen = self._come()
        if self.stages is not None:
            self._coming = _Computed(self._seen, self.query.reached)
            return self.stages.begin(now_us)
        answers = [one for one in self.query.answers if not one.inputs.by_arrival]  # others wait for nothing
        newest = {one: one.inputs.newest() for one in answers}
        upto = max((upto for upto in newest.values() if upto is not None), default=self.query.reached)
        tuples, answer = self._seen, self.query.answer
        if self.early.level == "synchronized":
            upto = min(upto, synchronized(answer, tuples, dict.fromkeys(tuples, answer)))
        self._coming = _Computed(tuples, upto, still_fits=lambda: all(fits(one, tuples) for one in answers))
        ends = {one: min(end, upto) for one, end in newest.items() if end is not None}
        return [one.prepare(end) for one, end in ends.items() if end > one.after]

    def more(self) -> list[PreparedEpoch]:
        """Return the epochs that come behind those of the early answer that have run; none if that is all."""
        return self.stages.more() if self.stages is not None and self._coming is not None else []

    # what

    def take(self, written: Written) -> None:
        """Take what one of its epochs has given. The files do not count, and are deleted."""
        try:
            rows = sum(map(count, written.files))
            if rows > MOST_ROWS and written.fragment in self.query.answers:
                raise UserError(
                    "early-answer-too-large",
                    f'an early answer of query "{self.query.name}" has {rows:,} rows, and is not given',
                    detail=f"Up to {MOST_ROWS:,} are. The settled answer comes when its heartbeats do.",
                    hint="Let heartbeats come more often, or leave EMIT EARLY out.",
                )
            if self._coming is None:
                return
            table = rows_of(written.files) if rows <= MOST_ROWS else None
            if self.stages is not None:
                self.stages.take(written, table)
            elif table is not None:
                self._coming.tables[written.fragment] = table
        finally:
            for file in written.files:
                file.unlink(missing_ok=True)

    @contextmanager
    def guarded(self, tell: Callable[[str], None]) -> Iterator[None]:
        """In here, an early answer is computed. What it meets with is told of once, and holds up nothing."""
        try:
            yield
        except Exception as error:
            check_alive(self.query.answer.workspaces.origin, error)
            failed = failure(error, "early-answer-failed", f'an early answer of query "{self.query.name}" failed')
            if concerns_all(failed):
                raise failed from error
            if self.trouble is None or reason_of(self.trouble) != reason_of(failed):
                tell(f"{failed.render()}\nSettled answers go on.")
            self.trouble, self._coming = failed, None
            if self.stages is not None:
                self.stages.drop_runs()

    def _end_of_turn(self, now_us: int) -> None:
        """See what the stages have come to. What is held back leaves the answer before it in place."""
        if self.stages is None or self._coming is None:
            return
        shown, self._coming = self.stages.end(now_us), None
        if shown is not None:
            version = shown.version
            whole = [version.table] if version.table is not None else []
            rows = list(within(whole, None, shown.upto))
            tables = {version.stage: pa.concat_tables(rows)} if rows else {}
            self._coming = _Computed(shown.tuples, shown.upto, tables, shown.consistent, version.fits)
        self.trouble = None

    def settle(self, now_us: int) -> None:
        """Put together what holds now, and tell those who listen if it differs from the early answer before."""
        self._end_of_turn(now_us)
        coming, afters = self._coming, [one.after for one in self.query.answers]
        if coming is None and (self._computed is None or afters == self._afters):
            return
        with self.query.outbox.journal.turn:
            before = self._computed.beyond() if self._computed is not None else None
            last, self._coming = self.last, None
            if coming is not None:
                self._computed, self.trouble = coming, None
            self._afters, self.last = afters, self._answer(before)
        self._deliver()
        told = last is not None and (
            _rows(last.table) > _rows(before) or (last.consistent != self.last.consistent and last.table is not None)
        )
        if self._listeners and (told or self.last.added or self.last.withdrawn):
            for listener in self._listeners:
                self.query.call(listener, self.last)

    def now(self) -> EarlyAnswer | None:
        """Return the early answer that holds now, without what has been settled since it was given."""
        with self.query.outbox.journal.turn:
            if self.last is None or [one.after for one in self.query.answers] == self._afters:
                return self.last
            answer = self._answer(None)
            return replace(answer, before=answer.table)

    def _answer(self, before: pa.Table | None) -> EarlyAnswer:
        """Return what was computed last, without what is settled; `before` are the results of the one before it.

        If it does not fit behind what is settled, nothing is known beyond that.
        """
        computed, domain, upto = self._computed, self.query.domain, self.upto()
        assert computed is not None
        newest = domain.moment(upto) if upto >= domain.origin else None
        tuples = computed.tuples if computed.still_fits() else self.query.tuples()
        return EarlyAnswer(self.query.complete, newest, tuples, computed.beyond(), before, computed.consistent)

    def upto(self) -> Tick:
        """Return the instant up to which something is known: as far as what was computed last, if it fits."""
        assert self._computed is not None
        reached = self.query.reached
        return max(self._computed.upto, reached) if self._computed.still_fits() else reached

    def _deliver(self) -> None:
        """Let the sink have it, if it can take it back or is to know what is partial."""
        connector, outbox, answer = self.query.definition.connector, self.query.outbox, self.last
        if connector is None or answer is None or self._computed is None or outbox.held:
            return
        if sinks.takes_back(connector):
            outbox.show_early(answer.table, self.query.reached, self.upto(), answer.tuples)
        elif sinks.partial(connector):
            outbox.put_partial(difference(answer.table, answer.before), self.query.reached, answer.tuples)

    def positions(self, log: str) -> set[int]:
        """Return the points of a log's order of arrival up to which its stages may read it."""
        return self.stages.positions(log) if self.stages is not None else set()

    def listen(self, listener: Callable[[EarlyAnswer], None]) -> None:
        """Call `listener` with each early answer that differs from the one before."""
        self._listeners.append(listener)


def answer_early(queries: Iterable[RunningQuery], clock: Clock, tell: Callable[[str], None]) -> None:
    """Give the early answers that are due. What fails is told of, and tried again when more has come."""
    now_us = clock.now_us()
    epochs: list[tuple[EarlyAnswers, PreparedEpoch]] = []
    known = [query.early_answers for query in queries if query.early_answers is not None]
    with known[0].query.outbox.journal.turn:  # those that are due at once reflect the same input
        for early in known:
            with early.guarded(tell):
                epochs += [(early, epoch) for epoch in early.begin(now_us)]
    while epochs:
        done = _together([(early, epoch) for early, epoch in epochs if fits_together(epoch)])
        for early, epoch in epochs:
            with early.guarded(tell):
                early.take(done[epoch.fragment] if epoch.fragment in done else epoch.run())
        epochs = []
        for early in known:
            with early.guarded(tell):
                epochs += [(early, epoch) for epoch in early.more()]
    for early in known:
        early.settle(clock.now_us())


def _together(epochs: Sequence[tuple[EarlyAnswers, PreparedEpoch]]) -> dict[Fragment, Written]:
    """Run small epochs in one statement; what is not done by that runs by a statement of its own."""
    done: dict[Fragment, Written] = {}
    for first in range(0, len(epochs), MOST_BRANCHES):
        some = [epoch for _, epoch in epochs[first : first + MOST_BRANCHES]]
        try:
            written = run_together(some)
        except Exception as error:
            check_alive(some[0].fragment.workspaces.origin, error)
            continue
        done |= {one.fragment: one for one in written if one is not None}
    return done


def _rows(table: pa.Table | None) -> int:
    return 0 if table is None else table.num_rows


def _results(table: pa.Table | None) -> list[Result]:
    return [replace(one, partial=True) for one in in_order([table])] if table is not None else []
