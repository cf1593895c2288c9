"""A query as its user sees it while it runs: results, how far they are complete, and why not further."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query, in_line
from headgate.deliver.bags import net
from headgate.deliver.courier import CLOSE_SECONDS, Courier
from headgate.deliver.outbox import Outbox
from headgate.deliver.pages import read_page
from headgate.deliver.reflects import Label, Reflects, in_words, label, most
from headgate.deliver.sinks.console import ConsoleSink
from headgate.deliver.sinks.sink import Result, in_order, overlaps, within
from headgate.delta.program import Kept
from headgate.errors import UserError
from headgate.execute.fragment import RESTARTS, Fragment
from headgate.explain import explained
from headgate.heartbeat.clocks import base
from headgate.heartbeat.progress import progress
from headgate.heartbeat.why import Why
from headgate.log.chunk import Chunk
from headgate.log.journal import Fact
from headgate.log.log import Log
from headgate.masking import masked
from headgate.observe.live import LiveView
from headgate.observe.picture import as_html, glance
from headgate.observe.trace import Traces
from headgate.plan.fragments import labels
from headgate.plan.limits import Growing
from headgate.plan.scopes import scopes
from headgate.schedule.early import EarlyAnswer, EarlyAnswers
from headgate.schedule.member import Member, values_of
from headgate.scope import Scopes
from headgate.spark.failures import called
from headgate.table import paragraphs
from headgate.ticks import Tick, TimeDomain

if TYPE_CHECKING:
    from headgate.schedule.family import Membership


SEEN_BYTES = 2**26
"""The rows of a snapshot are kept for the next one, if they are not more than this."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The rows of a relation at an instant."""

    at: Tick
    rows: pa.Table | None
    """None if there never were any."""


class RunningQuery:
    """A registered query: its results so far, and how far they are complete."""

    def __init__(
        self,
        definition: Query,
        fragments: Sequence[Fragment],
        outbox: Outbox,
        catalog: Catalog,
        reason: Callable[[RunningQuery], Why],
        wake: Callable[[], None] = lambda: None,
        sharing: Callable[[Fragment], Sequence[RunningQuery]] = lambda fragment: (),
    ) -> None:
        self.definition = definition
        self.fragments = fragments
        """Each behind those it reads; the last gives the answer. By groups, each gives the answers of one group.

        Some may be shared: they belong to the engine, and other queries have them too.
        """
        self.outbox = outbox
        self.courier = Courier(outbox, wake)
        self.traces = self._traces()
        self._catalog = catalog
        self._reason = reason
        self._sharing = sharing
        """Says which queries have a fragment."""
        self._listeners: list[Callable[[Sequence[Result]], None]] = []
        self.membership: Membership | None = None
        """The family whose fragments are its own, if headgate has found it to be one of many."""
        self.early_answers = EarlyAnswers(self) if definition.early is not None else None
        """What it answers before its input is complete, if it is to."""
        if self.early_answers is not None and isinstance(outbox.sink, ConsoleSink):
            self.early_answers.listen(partial(_print_early, self.name, outbox.sink))
        self._trouble: UserError | None = None
        self.complaints: list[UserError] = []
        """Errors of listeners that were not raised yet."""
        self.closed = False
        """Whether it has ended: it was dropped, another one is in its place, or its engine was closed."""
        self._views: list[LiveView] = []
        self.seen: Seen | None = None
        """The rows of the last snapshot, from which the next one goes on."""

    def __repr__(self) -> str:
        if self.closed:
            return f"RunningQuery({self.name}: has ended, complete up to {self.complete})"
        return f"RunningQuery({self.name}: {self.count} results, complete up to {self.complete})"

    def _repr_html_(self) -> str:
        if self.closed:
            return paragraphs([repr(self)])
        with self._turn:
            why = self.why()
        return as_html(self, glance(self, why))

    @property
    def _turn(self) -> AbstractContextManager[bool]:
        """The lock under which how things stand is looked at."""
        return self.outbox.journal.turn

    @property
    def text(self) -> str:
        """Its text in one line, cut short."""
        return in_line(masked(self.definition.text))

    def _traces(self) -> Traces:
        streams = sorted(set(map(base, self.answer.part.streams)))
        return Traces(streams, dict.fromkeys(fragment.stop for fragment in self.fragments), self.domain)

    def divide(self, fragments: Sequence[Fragment]) -> None:
        """Run by other fragments from now on, which give the same answers: they share more with other queries."""
        self.fragments = fragments
        self.traces = self._traces()

    @property
    def own(self) -> list[Fragment]:
        """Its fragments that are not shared."""
        return [fragment for fragment in self.fragments if not fragment.shared]

    @property
    def shared(self) -> list[Fragment]:
        """The shared fragments from which its answer comes."""
        return [fragment for fragment in self.fragments if fragment.shared]

    @property
    def trouble(self) -> UserError | None:
        """Why it stands still, if it does."""
        return self._trouble if self.membership is None else self.membership.family.trouble

    @trouble.setter
    def trouble(self, error: UserError | None) -> None:
        self._trouble = error

    @property
    def hidden(self) -> bool:
        """Whether users do not see it: it runs for the queries that are its members."""
        return False

    @property
    def stands_for(self) -> list[str]:
        """The queries whose answers it gives, if they are others than itself."""
        return []

    @property
    def answer(self) -> Fragment:
        """The fragment that gives the answer; in a query that runs by groups, one of those that do."""
        return self.fragments[-1]

    @property
    def answers(self) -> Sequence[Fragment]:
        """The fragments that give answers: one, or one for each group of sources."""
        return self.fragments if self.definition.by_groups else self.fragments[-1:]

    def leading_to(self, answer: Fragment) -> Sequence[Fragment]:
        """Return the fragments from which an answer comes, that one included."""
        return [answer] if self.definition.by_groups else self.fragments

    @property
    def scopes(self) -> Scopes:
        """By stream: the sources that it can see, where it does not see all of them."""
        return self.answer.part.scopes if not self.definition.by_groups else scopes(self.definition.plan)

    @property
    def name(self) -> str:
        """The name it was registered under."""
        return self.definition.name

    @property
    def kind(self) -> str:
        """Whether it gives a "stream" or a "relation"."""
        return self.answer.program.kind

    @property
    def columns(self) -> list[str]:
        """The names of the columns of its rows."""
        shown = () if self.membership is None else self.membership.family.shown
        about = ("_time", "_change", *shown)
        return [name for name in self.answer.result_schema.names if name not in about]

    @property
    def domain(self) -> TimeDomain:
        """The kind of its application time: timestamps or integers."""
        return self.answer.program.domain

    @property
    def complete(self) -> Any:
        """The instant up to which the results are complete; None while there is none."""
        return self.domain.moment(self.reached) if self.begun else None

    @property
    def reflects(self) -> dict[str, Reflects]:
        """The label of its answers so far: the input that they reflect, by stream and relation; empty if unknown."""
        return label(self.tuples(), self.complete)

    def tuples(self, later: Mapping[Fragment, Mapping[str, int]] | None = None) -> dict[str, int]:
        """Return from how many tuples of each stream and relation its answers come; nothing if that is not known.

        `later` has the numbers of fragments whose epochs are about to be committed. A stream that several fragments
        read counts as far as the one that saw most of it.
        """
        numbers = {one: one.tuples for one in self.fragments} | dict(later or {})
        found = most(numbers[one] for one in self.fragments)
        return found if found.keys() >= set(self.streams()) else {}

    @property
    def complete_by_group(self) -> dict[str, Any]:
        """The last complete instant of each group of sources, for a query that runs by groups."""
        answers = [fragment for fragment in self.answers if fragment.group]
        return {one.group: self.domain.moment(one.after) if one.begun else None for one in answers}

    @property
    def begun(self) -> bool:
        """Whether its results are complete up to any instant."""
        return all(fragment.begun for fragment in self.answers)

    @property
    def delivered(self) -> Any:
        """The instant up to which its sink has everything; None before the first. It lags while results wait."""
        upto = self.outbox.delivered(self.reached)
        return self.domain.moment(upto) if upto >= self.domain.origin else None

    @property
    def undelivered(self) -> bool:
        """Whether its sink has yet to take something."""
        return bool(self.outbox.waiting)

    @property
    def reached(self) -> Tick:
        """The last complete instant in ticks, of the group that is least far; `origin - 1` before the first epoch."""
        return min(fragment.after for fragment in self.answers)

    def reached_by(self, fragment: Fragment) -> Tick:
        """Return the instant that a fragment has reached; fragments that give the answers of groups count as one."""
        return self.reached if fragment in self.answers else fragment.after

    def streams(self) -> list[str]:
        """Return the streams and relations it reads."""
        return sorted({stream for fragment in self.fragments for stream in fragment.program.streams()})

    def reading(self, log: str) -> list[Fragment]:
        """Return the fragments that read a log."""
        return [fragment for fragment in self.fragments if log in fragment.program.logs()]

    def waiting(self, stream: str) -> int:
        """Return how many tuples of a stream have come and are not answered yet."""
        inputs = self.answer.inputs
        if inputs.ahead == "everything":
            return sum(chunk.rows for chunk in inputs.unread(stream).new())
        reached = inputs.position(stream).upto if inputs.ahead == "an instant" else self.reached
        return inputs.logs[stream].rows_after(max(self.reached, reached))

    def readers(self, part: str) -> list[str]:
        """Return the names of the parts that read a part."""
        parts = [fragment.part for fragment in self.fragments]
        return [above.name for above in parts if any(below.name == part for below in above.parts)]

    def labels(self) -> dict[str, frozenset[str]]:
        """Return the streams whose heartbeats each part waits for, the answer first.

        They depend on how many rows each part was seen to put out for each that it reads.
        """
        if self.definition.heartbeats == "query":
            return {one.part.name: self.answer.part.streams for one in reversed(self.leading_to(self.answer))}
        measured = {one.part.name: known for one in self.fragments if (known := one.selectivity()) is not None}
        return labels(self.answer.part, self.definition.heartbeats, measured)

    @property
    def failed(self) -> bool:
        """Whether any of its fragments has failed and stands still."""
        return any(fragment.failed for fragment in self.fragments)

    @property
    def given_up(self) -> bool:
        """Whether a fragment has failed so often that it is not restarted any more."""
        return any(fragment.failed and fragment.back_off.failures > RESTARTS for fragment in self.fragments)

    def why(self) -> Why:
        """Return why it has come no further: the source that holds it back, since when, and what would release it."""
        return self._reason(self)

    @property
    def epochs(self) -> int:
        """How many epochs have given answers."""
        return self.answer.epochs

    @property
    def count(self) -> int:
        """How many results were put out so far."""
        if self.shares_outbox:
            return sum(table.num_rows for table in self.result_tables())
        return self.outbox.log.rows

    @property
    def shares_outbox(self) -> bool:
        """Whether its results lie among those of its family."""
        return self.membership is not None and self.outbox is self.membership.family.outbox

    @property
    def guarantee(self) -> str:
        """How often each result gets to where the query puts them: exactly once, or at least once."""
        return self.outbox.sink.guarantee

    def results(self, labels: bool = False) -> list[Result]:
        """Return everything put out so far, in order of time, if it was not delivered elsewhere.

        With `labels`, each result has the label of its epoch. Where files of results were merged, all results of the
        file have the label of the last of their epochs.
        """
        return list(in_order(*self.labelled_tables())) if labels else list(in_order(self.result_tables()))

    def result_tables(self) -> list[pa.Table]:
        """Return everything put out so far as tables, if it was not delivered elsewhere."""
        return self.labelled_tables()[0]

    def labelled_tables(self) -> tuple[list[pa.Table], list[Label]]:
        """Return everything put out so far as tables, and the label of each."""
        self._refuse_elsewhere()
        chunks = list(self.outbox.log.chunks)
        tables, labels = [chunk.table() for chunk in chunks], list(map(self.outbox.label_of, chunks))
        if self.membership is not None and self.shares_outbox:
            tables = list(map(self.membership.own, tables))
        return tables, labels

    def rows_at(self, instant: Tick, chunks: Sequence[Chunk]) -> pa.Table | None:
        """Return the rows of its relation at an instant up to which it is complete; None if there never were any.

        `chunks` are its results. Those that were read for an earlier instant are not read again, unless the rows of
        that instant were too many to be kept.
        """
        seen = self.seen
        after, before = (None, None) if seen is None or seen.at > instant else (seen.at, seen.rows)
        if after == instant:
            return before
        read = (chunk.table() for chunk in chunks if overlaps(chunk, after, instant))
        own = read if self.membership is None or not self.shares_outbox else map(self.membership.own, read)
        rows = net([*within(own, after, instant)], before)
        if (seen is None or seen.at < instant) and (rows is None or rows.nbytes <= SEEN_BYTES):
            self.seen = Seen(instant, rows)
        return rows

    @property
    def elsewhere(self) -> str | None:
        """Where its results go, if they are not kept; None if they are."""
        connector = self.definition.connector
        return None if self.outbox.kept else connector.format if connector is not None else "the console"

    def _refuse_elsewhere(self) -> None:
        connector = self.definition.connector
        if not self.outbox.kept and connector is not None:
            raise UserError("results-elsewhere", f'the results of query "{self.name}" go to {connector.format}')

    @property
    def edition(self) -> str:
        """The identity of its results, by which a position is known to be one of theirs. It stays over restarts; a
        query that is altered, or dropped and created again, has another one.
        """
        own = "" if self.membership is None or not self.shares_outbox else f"/{self.membership.number}"
        return sha256(f"{self.outbox.edition}{own}".encode()).hexdigest()

    @property
    def last_position(self) -> int:
        """The position of the last result that is there."""
        return self.outbox.log.rows

    def page(self, after: int, most: int) -> tuple[list[pa.Table], int]:
        """Return results behind a position, at most so many, in order, and the position of the last one looked at.

        Of a member of a family, only some of the results looked at may be its own.
        """
        self._refuse_elsewhere()
        tables, upto = read_page(self.outbox.log, after, most)
        if self.membership is not None and self.shares_outbox:
            tables = list(map(self.membership.own, tables))
        return tables, upto

    def member(self, *values: Any, **named: Any) -> Member:
        """Return one member of a family, by its values in the order of the relation's columns, or by their names."""
        return Member(self, values_of(self.definition, values, named))

    def on_change(self, listener: Callable[[Sequence[Result]], None]) -> None:
        """Call `listener` with the results of each epoch that has any."""
        self._listeners.append(listener)

    def live(
        self, seconds: float | None = None, *, rows: int = 20, every: float = 0.5, changes: bool = False
    ) -> LiveView:
        """Show its answers and how far they are complete, drawn anew as they come: in a notebook in the cell that calls
        this, elsewhere as lines of text. It returns at once; `stop()` or so many `seconds` end the view.

        At most so many `rows` are shown, and drawn `every` so many seconds at the most. A relation is shown as it is
        now, or by its last `changes`.
        """
        if self.closed:
            raise UserError(
                "no-such-query", f'query "{self.name}" has ended', hint="engine.query(name) has the new one."
            )
        view = LiveView(self, self._turn, seconds=seconds, rows=rows, every=every, changes=changes)
        self._views = [one for one in self._views if one.going_on] + [view]
        if self.closed:  # it has ended meanwhile
            view.end("the query has ended")
        return view

    @property
    def answers_early(self) -> bool:
        """True if it also answers before its input is complete (EMIT EARLY)."""
        return self.early_answers is not None

    def early(self) -> EarlyAnswer | None:
        """Return the early answer that holds now: what is known of the instants that are not complete; None before the
        first one.
        """
        return self._early.now()

    def on_early(self, listener: Callable[[EarlyAnswer], None]) -> None:
        """Call `listener` with each early answer that differs from the one before it."""
        self._early.listen(listener)

    @property
    def _early(self) -> EarlyAnswers:
        if self.early_answers is None:
            raise UserError(
                "no-early-answers",
                f'query "{self.name}" gives no early answers',
                hint="Write EMIT EARLY behind it: ALTER QUERY q AS SELECT ... EMIT EARLY EVERY 1 SECOND.",
            )
        return self.early_answers

    def state(self) -> tuple[Kept, ...]:
        """Return what the query keeps between epochs, each piece with what limits it or why it grows."""
        return tuple(dict.fromkeys(kept for fragment in self.fragments for kept in fragment.program.state()))

    def growing(self) -> tuple[Growing, ...]:
        """Return why its state grows for as long as it runs; nothing if it does not."""
        return tuple(dict.fromkeys(found for fragment in self.fragments for found in fragment.program.growing()))

    def explain(self) -> str:
        """Return its plan, its programs and what it keeps, in words."""
        if self.membership is not None:
            return self.membership.explained(self.definition)
        parts = [(one.part, one.program) for one in self.leading_to(self.answer)]
        shared = {
            fragment.part.name: [other.name for other in self._sharing(fragment) if other is not self]
            for fragment in self.shared
        }
        groups, low_level = self._catalog.declarations.groups(), self._catalog.settings.low_level == "on"
        said = explained(self.definition, parts, self.progress(), self.labels(), groups, shared, low_level)
        changed = [line for one in self.leading_to(self.answer) for line in one.joins.reasons()]
        sections = {"adapted": self.why().adapted, "join orders that changed": changed}
        return said + "".join(f"\n\n-- {title}\n" + "\n".join(lines) for title, lines in sections.items() if lines)

    def progress(self) -> str:
        """Say whether the declared bounds keep it going when all sources pause, or a timeout must."""
        return str(progress(self._catalog, self.streams()))

    @property
    def needs_timeout(self) -> bool:
        """True if only a timeout lets it go on once all of its sources pause, by what is declared."""
        return progress(self._catalog, self.streams()).needs_timeout

    # running

    def notify(self, kept: list[Chunk]) -> None:
        """Tell those who listen of an epoch's results."""
        if self.heard:
            self.tell([chunk.table() for chunk in kept])

    @property
    def heard(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    def tell(self, tables: Sequence[pa.Table]) -> None:
        """Tell those who listen of results. What a listener makes of them cannot fail the query."""
        results = list(in_order(tables, [self.reflects] * len(tables)))
        for listener in self._listeners if results else ():
            self.call(listener, results)

    def call(self, listener: Callable[[Any], None], heard: Any) -> None:
        """Call a function that listens. What it meets with is a complaint."""
        try:
            called(
                listener,
                heard,
                code="listener-failed",
                message=f'a function that listens to query "{self.name}" has failed',
                hint="The results are kept, and the query goes on.",
            )
        except UserError as error:
            self.complaints.append(error)

    def wants_empty(self, fragment: Fragment) -> bool:
        """Say whether an epoch without results is of use: the sink wants to know up to when there are none."""
        return fragment in self.answers and not self.outbox.kept and self.outbox.sink.wants_empty

    def tidy(self) -> None:
        """Drop what its own fragments have read of one another, and merge small files of results."""
        for fragment in self.own:
            if fragment.output is not None:
                self._tidy_output(fragment.part.name, fragment.output)
        self.outbox.tidy()

    def _tidy_output(self, name: str, log: Log) -> None:
        readers = self.reading(name)
        log.forget(lambda chunk: any(reader.inputs.still_needs(name, chunk) for reader in readers))
        log.compact()

    def join(self, membership: Membership) -> None:
        """Be a member of a family from now on."""
        self.membership = membership
        self.fragments, self.traces = membership.family.fragments, membership.family.traces
        if self.outbox.kept and membership.family.keeps:
            self.outbox = membership.family.outbox
            self.courier = Courier(self.outbox)

    def run_alone(self, fragments: Sequence[Fragment], traces: Traces, outbox: Outbox, courier: Courier) -> None:
        """Be no member any more, and run by what it had before: that it joined did not become durable."""
        self.membership = None
        self.fragments, self.traces, self.outbox, self.courier = fragments, traces, outbox, courier

    def beginning(self) -> list[Fact]:
        """Return where it begins, for the journal."""
        own = [] if self.shares_outbox else [(self.outbox.subject, {"number": self.outbox.number})]
        fragments = self.fragments if self.membership is None else ()
        begun = [fragment for fragment in fragments if fragment.epochs]  # they are shared, and known
        return [*((one.subject, one.state()) for one in fragments if one not in begun), *own]

    def folders(self) -> list[Path]:
        """Return the folders that hold its files."""
        return [] if self.shares_outbox else [self.outbox.directory]

    def close(self, wait_s: float = CLOSE_SECONDS) -> None:
        """Let go of its sink and of its sessions."""
        for view in self._views:
            view.end("the query has ended")
        self.closed = True
        if not self.shares_outbox:
            self.courier.close(wait_s)
        for fragment in self.own if self.membership is None else ():
            fragment.close()

    def parts(self) -> list[Log | Outbox | Fragment]:
        """Return its own pieces that the journal knows of."""
        if self.membership is not None:
            return [] if self.shares_outbox else [self.outbox.log, self.outbox]
        logs = [fragment.output for fragment in self.own if fragment.output is not None]
        return [self.outbox.log, self.outbox, *logs, *self.own]

    def facts(self) -> list[Fact]:
        """Return how far it has come, for a checkpoint."""
        return [(part.subject, part.state()) for part in self.parts()]

    def check_files(self) -> None:
        """Raise an error that names the first of its files that is missing or cut short; delete files that never
        came to count.
        """
        logs = [] if self.shares_outbox else [self.outbox.log]
        for log in logs:
            log.check()
        for fragment in self.own if self.membership is None else ():
            fragment.check_files()
        for log in logs:
            log.sweep()


def _print_early(query: str, console: ConsoleSink, answer: EarlyAnswer) -> None:
    console.early(query, answer.added, answer.withdrawn, answer.consistent, in_words(label(answer.tuples, answer.upto)))
