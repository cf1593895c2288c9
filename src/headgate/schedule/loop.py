"""The loop: choose an epoch for each query, run them, commit them, and deliver the results.

    choose     `choice.Choice`: which fragment is next, and up to which instant (the heartbeat, a watermark)
    promise    `horizon.Horizon`: tuples up to that instant that come from now on are late
    run        `execute.together`: one Spark statement for the small epochs of all queries; a large one has its own
    commit     `commit.commit`: the results and the fragments' progress count by one line of the journal
    deliver    `deliver.courier.Courier`: the results go to the sink, in a thread of its own

One thread at a time runs epochs. It takes the turn of the journal only to promise and to commit, so rows go on arriving
while Spark computes: they lie behind the heartbeats that were promised, and so behind the epoch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import monotonic

from headgate.errors import UserError
from headgate.execute.errors import failed_too
from headgate.execute.fragment import Fragment
from headgate.execute.prepared import PreparedEpoch, Written
from headgate.execute.together import MOST_BRANCHES, fits_together, move_together, run_together
from headgate.heartbeat.clock import Clock
from headgate.heartbeat.clocks import LATE
from headgate.heartbeat.manager import Heartbeats
from headgate.log.chunk import Chunk
from headgate.log.journal import Journal
from headgate.log.log import Log
from headgate.observe.spans import Spans
from headgate.observe.trace import SINK, Work
from headgate.observe.watch import Watch
from headgate.schedule.asking import Asking
from headgate.schedule.beside import Beside
from headgate.schedule.choice import Choice, NextEpoch
from headgate.schedule.commit import commit
from headgate.schedule.early import answer_early
from headgate.schedule.group import RunningGroup
from headgate.schedule.horizon import Horizon
from headgate.schedule.profiler import Profiler
from headgate.schedule.query import RunningQuery
from headgate.schedule.scheduler import Scheduler
from headgate.settings import Settings
from headgate.spark.failures import check_alive, concerns_all, failure, raise_all
from headgate.spark.jobs import JOBS
from headgate.spark.session import use_pool
from headgate.ticks import Tick

POOL = "backlog"
"""The pool of Spark's scheduler in which large epochs run, if it has pools: small ones get their share of the cores."""

HAND_SECONDS = 30.0
"""How long `step` and `advance`, called by hand, wait for a sink that does not come back. `run` waits for none."""


@dataclass(slots=True)
class Epoch:
    """What one run of a fragment did."""

    query: str
    after: Tick
    until: Tick
    part: str = "answer"
    rows: int = 0
    """How many it has put out."""


@dataclass(slots=True)
class Turn:
    """One query's turn: its epochs, one after another, until it has got as far as it can."""

    query: RunningQuery
    standing: set[Fragment]
    """Fragments that stood still when the turn began."""

    choices: Iterator[NextEpoch]
    going: bool = True
    chosen: NextEpoch | None = None
    """The epoch that is to run next."""

    prepared: PreparedEpoch | None = None
    """That epoch, ready to run."""

    behind: Fragment | None = None
    """A shared fragment that it would run next. If the turn of another query runs it, this one waits for that."""


class Loop:
    """Runs the queries of an engine, epoch by epoch."""

    def __init__(
        self,
        clock: Clock,
        heartbeats: Heartbeats,
        asking: Asking,
        logs: Mapping[str, Log],
        journal: Journal,
        settings: Callable[[], Settings],
    ) -> None:
        self.clock = clock
        self.asking = asking
        self.horizon = Horizon(clock, heartbeats, asking, journal)
        self.logs = logs
        self.settings = settings
        self.queries: dict[str, RunningQuery] = {}
        self.held: frozenset[str] = frozenset()
        """The logs that forget nothing, because something in quarantine may have to read them when it comes back."""
        self.groups: dict[str, RunningGroup] = {}
        """The groups of queries whose results go out together."""
        self.tell: Callable[[str], None] = lambda text: None
        """Hears of what fails and goes on."""
        self.on_commit: list[Callable[[], None]] = []
        """Called when epochs were committed or early answers given. They return at once."""
        self.on_failure: Callable[[str, str, Exception], None] = lambda kind, name, error: None
        """Called with "query", its name and the error when a query has failed. It returns at once."""
        self.spans: Spans | None = None
        """Gets the heartbeats that are through, if they are exported."""
        self.stopping = False
        self.running = threading.Lock()
        """Held while an epoch runs."""
        self.watch = Watch(lambda: self.settings().failed_after_us, lambda finding: self.tell(str(finding)))
        self.profiler = Profiler(logs)
        """Takes note of what epochs did."""
        self.scheduler = Scheduler(self.profiler, clock, lambda: self.settings().scheduling)
        """Says which of the fragments that are ready goes first."""
        self.patience_s = HAND_SECONDS
        """How long a sink is waited for."""
        self.beside: Beside[Turn, tuple[Written, Work]] | None = None
        """Runs large epochs while small ones go on; None if all wait for each other, as in a run over all input."""
        self._last_beside: RunningQuery | None = None
        self._epochs: list[Epoch] = []
        """What the turn under way has done."""

    # one way through an epoch

    def step(self) -> list[Epoch]:
        """Take every query as far as its inputs are complete, or as far as one epoch goes."""
        self.deliver(pieces=0)  # what a crash or a sink that was down left waiting goes before anything new
        self.horizon.look()
        self._watch_streams()
        try:
            epochs = self.take(dict.fromkeys(self.queries))
        finally:
            self._answer_early()
        self.asking.raise_failed()
        return epochs

    def _answer_early(self) -> None:
        """Give the early answers that are due."""
        asked = [
            one for one in list(self.queries.values()) if one.early_answers is not None and one is not self._away()
        ]
        if not asked:
            return
        name, failures = ", ".join(query.name for query in asked), list[UserError]()
        before = [query.early_answers and query.early_answers.last for query in asked]
        with self.running, self.watch.over(name, asked[0].answer.workspaces.sessions(), self.clock):
            answer_early(asked, self.clock, self.tell)
        now = [query.early_answers and query.early_answers.last for query in asked]
        if any(one is not last for one, last in zip(now, before, strict=True)):
            for listener in self.on_commit:
                listener()
        for query in asked:
            self._deliver_one(query, pieces=1)
            self._complain(query, failures)
        raise_all(failures)

    def next_early_us(self) -> int | None:
        """Return when the next early answer is due; None if none is."""
        known = (query.early_answers for query in list(self.queries.values()) if query is not self._away())
        due = [next_us for early in known if early is not None and (next_us := early.next_us()) is not None]
        return min(due, default=None)

    def take(self, heartbeats: Mapping[str, Tick | None]) -> list[Epoch]:
        """Give each query a turn, up to its heartbeat if one is given, and deliver its results at the end of it.

        Small epochs of all queries run in one Spark statement, then those of the fragments that read them, and so on;
        large ones come last, one by one, or run `beside`. A query that fails holds up no other, whatever it has met
        with: the errors come last.
        """
        self._epochs, failures, delivered = [], list[UserError](), set[str]()
        self._take_from_beside(failures)
        known = ((self.queries.get(name), fixed) for name, fixed in heartbeats.items())
        here = ((query, fixed) for query, fixed in known if query is not None and query is not self._away())
        turns = [self._begin(query, fixed, failures) for query, fixed in here]
        try:
            while any(turn.going for turn in turns):
                taken = {one.chosen.fragment: one for one in turns if one.going and one.chosen is not None}
                for turn in turns:
                    waits = turn.chosen is not None or turn.behind in taken
                    if turn.going and not waits and self._choose(turn, taken, failures):
                        delivered.add(turn.query.name)
                small = [turn for turn in turns if turn.prepared is not None and fits_together(turn.prepared)]
                large = sorted((turn for turn in turns if turn.chosen is not None), key=_priority, reverse=True)
                if small:
                    self._run_small(small, failures)
                elif large and self.beside is not None:
                    self._run_beside(large)
                elif large:
                    self._run_alone(large[0], failures)
        finally:
            try:
                self.deliver(pieces=1, but=delivered)  # whatever one query has met with
            except UserError as error:
                failures.append(error)
        raise_all(failures)
        return self._epochs

    def _begin(self, query: RunningQuery, fixed: Tick | None, failures: list[UserError]) -> Turn:
        """Begin a query's turn: restart what has failed before, if it is time."""
        turn = Turn(query, {fragment for fragment in query.fragments if fragment.failed}, self._choices(query, fixed))
        try:
            self._restart(query, turn.standing)
        except Exception as error:
            self._stop(turn, error, failures)
        return turn

    def _choices(self, query: RunningQuery, fixed: Tick | None) -> Iterator[NextEpoch]:
        """Give the epochs of a turn, one after another: until each answer's fragment has run, or nothing can."""
        for answer in query.answers:
            choice = Choice(query, answer, self.horizon, self.scheduler, self.settings().epoch_rows, fixed)
            for chosen in choice:
                self.horizon.promise(chosen.fragment, chosen.until)
                if choice.heartbeat is not None:
                    self.horizon.trace(query, choice.heartbeat)
                yield chosen

    def _choose(self, turn: Turn, taken: dict[Fragment, Turn], failures: list[UserError]) -> bool:
        """Choose and prepare the next epoch of a turn, or end the turn and deliver; say whether it was delivered.

        `taken` are the fragments that are to run now, each in the turn of one query. The turns of others that share
        it go on when it has run.
        """
        query = turn.query
        try:
            chosen = next(turn.choices, None)
            if chosen is not None and self._may_run(query, chosen.fragment):
                turn.behind = chosen.fragment
                other = taken.get(chosen.fragment)
                if other is not None and other.chosen is not None:
                    if chosen.until <= other.chosen.until:
                        return False
                    other.chosen = other.prepared = None
                turn.chosen, taken[chosen.fragment] = chosen, turn
                with self._standing_still_if_it_fails(chosen.fragment):
                    turn.prepared = chosen.prepare()
                return False
        except Exception as error:
            self._stop(turn, error, failures)
            return False
        turn.going = False
        query.trouble = query.trouble if query.failed else None
        try:
            self._deliver_one(query, pieces=1)
        except UserError as error:
            failures.append(error)
        self._complain(query, failures)
        return True

    def _may_run(self, query: RunningQuery, fragment: Fragment) -> bool:
        """Say whether a fragment still belongs to the query, and does not run beside this turn for another."""
        beside = self.beside.of if self.beside is not None else None
        elsewhere = beside.behind.directory if beside is not None and beside.behind is not None else None
        return fragment in query.fragments and fragment.directory != elsewhere

    def _stop(self, turn: Turn, error: Exception, failures: list[UserError]) -> None:
        """End a turn that an error has met with."""
        turn.going, turn.chosen, turn.prepared = False, None, None
        if self.queries.get(turn.query.name) is turn.query:  # otherwise it was dropped meanwhile
            failures.append(self._failed(turn.query, error, turn.standing))
        self._complain(turn.query, failures)

    def _complain(self, query: RunningQuery, failures: list[UserError]) -> None:
        failures += query.complaints
        query.complaints = []

    def _run_small(self, turns: Sequence[Turn], failures: list[UserError]) -> None:
        """Run small epochs together, and each that is not done by that by a statement of its own."""
        for first in range(0, len(turns), MOST_BRANCHES):
            some = turns[first : first + MOST_BRANCHES]
            self._run_together(some)
            for turn in some:
                if turn.chosen is not None:
                    self._run_alone(turn, failures)

    def _run_together(self, turns: Sequence[Turn]) -> None:
        """Run epochs of several queries in one job and commit them; if that fails, nothing of it counts."""
        epochs = [turn.prepared for turn in turns if turn.prepared is not None]
        name = ", ".join(epoch.fragment.full_name for epoch in epochs)
        with self.running:
            began_us = self.clock.now_us()
            JOBS.taken_us()
            try:
                with self.watch.over(name, epochs[0].fragment.workspaces.sessions(), self.clock):
                    written = run_together(epochs)
                done = [(turn, one) for turn, one in zip(turns, written, strict=True) if one is not None]
                if done:
                    work = Work(JOBS.taken_us(), began_us, self.clock.now_us())
                    self._commit([turn for turn, _ in done], [one for _, one in done], work)
            except Exception as error:
                check_alive(epochs[0].fragment.workspaces.origin, error)

    def _run_alone(self, turn: Turn, failures: list[UserError]) -> None:
        """Run an epoch by a statement of its own, and commit it."""
        chosen, turn.prepared = turn.chosen, None
        assert chosen is not None
        try:
            with self.running:
                began_us = self.clock.now_us()
                JOBS.taken_us()
                with self._watched(chosen.fragment):
                    written = [chosen.run()]
                    self._commit([turn], written, Work(JOBS.taken_us(), began_us, self.clock.now_us()))
        except Exception as error:
            self._stop(turn, error, failures)

    def _run_beside(self, turns: Sequence[Turn]) -> None:
        """Let a large epoch run beside the turns to come, if none does. The other turns end, and are tried again."""
        assert self.beside is not None
        for turn in turns:
            turn.going = False
        if not self.beside.idle:
            return
        turn = next((turn for turn in turns if turn.query is not self._last_beside), turns[0])
        chosen, self._last_beside = turn.chosen, turn.query
        assert chosen is not None
        began_us = self.clock.now_us()

        def run() -> tuple[Written, Work]:
            use_pool(chosen.fragment.workspaces.origin, POOL)
            with self._watched(chosen.fragment):
                return chosen.run(), Work(JOBS.taken_us(), began_us, self.clock.now_us())

        self.beside.begin(turn, run)

    def _take_from_beside(self, failures: list[UserError], wait: bool = False) -> None:
        """Commit the large epoch that has run beside earlier turns, if it is done."""
        done = self.beside.taken(wait) if self.beside is not None else None
        if done is None:
            return
        turn, result = done
        if self.queries.get(turn.query.name) is not turn.query:
            return  # it was dropped meanwhile
        try:
            if isinstance(result, BaseException):
                raise result
            written, work = result
            with self._standing_still_if_it_fails(written.fragment):
                self._commit([turn], [written], work)
        except Exception as error:
            self._stop(turn, error, failures)

    def _away(self) -> RunningQuery | None:
        """Return the query of which a large epoch runs beside this turn."""
        return self.beside.of.query if self.beside is not None and self.beside.of is not None else None

    @contextmanager
    def running_beside(self, wake: Callable[[], None]) -> Iterator[None]:
        """In here, large epochs run in a thread of their own, and small ones do not wait for them."""
        self.beside = Beside(wake)
        failures: list[UserError] = []
        try:
            yield
        finally:
            self._take_from_beside(failures, wait=True)
            self.beside = None
            for error in failures:
                self.tell(error.render())

    def _commit(self, turns: Sequence[Turn], written: Sequence[Written], work: Work) -> None:
        """Commit epochs in one line of the journal, and note what they did for the caller and for the traces."""
        queries, done = [turn.query for turn in turns], list[tuple[Written, int]]()
        for query, one, rows in zip(queries, written, commit(list(zip(queries, written, strict=True))), strict=True):
            fragment = one.fragment
            now_us = self.clock.now_us()
            for reader in self.having(fragment) if fragment.shared else (query,):
                reader.traces.seen(fragment.stop, reader.reached_by(fragment), work.began_us, now_us, rows, work)
            self._epochs.append(Epoch(query.name, one.after, one.until, fragment.part.name, rows))
            if not fragment.should_move_state():  # otherwise its state has yet to be moved
                fragment.back_off.succeeded()
            done.append((one, rows))
        if self.settings().profile == "on":
            self.profiler.committed(done, work, self.clock.now_us())
        for turn in turns:
            turn.chosen = turn.prepared = None
        for listener in self.on_commit:
            listener()

    @contextmanager
    def _watched(self, fragment: Fragment) -> Iterator[None]:
        """In here a fragment works: if it hangs it is interrupted, and if it fails it stands still."""
        watched = self.watch.over(fragment.full_name, fragment.workspaces.sessions(), self.clock)
        with self._standing_still_if_it_fails(fragment), watched:
            yield

    @contextmanager
    def _standing_still_if_it_fails(self, fragment: Fragment) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            fragment.failed |= not concerns_all(error)
            raise

    def take_all(self, heartbeats: Mapping[str, Tick]) -> list[Epoch]:
        """Take every query up to its heartbeat, in as many epochs as it needs. What fails is left out from then on."""
        epochs, failures, left = list[Epoch](), list[UserError](), dict(heartbeats)
        while not self.stopping:
            try:
                self.take(left)
            except UserError as error:
                if concerns_all(error):
                    raise
                failures.append(error)
            left = {
                name: until for name, until in left.items() if name in self.queries and not self.queries[name].failed
            }
            if not self._epochs:
                break
            epochs += self._epochs
            if all(self.queries[name].reached >= until for name, until in left.items()):
                continue  # nothing is left to compute, so nobody needs the state now; the caller tidies
            try:
                self.tidy()
            except UserError as error:
                if concerns_all(error):
                    raise
                failures.append(error)
        raise_all(failures)
        return epochs

    # what fails

    def _failed(self, query: RunningQuery, error: Exception, before: Collection[Fragment]) -> UserError:
        """Leave alone for a while what has failed of a query now, and not before. What concerns all is raised."""
        check_alive(query.answer.workspaces.origin, error)
        failed = failure(error, "query-failed", f'query "{query.name}" failed')
        if concerns_all(failed):
            raise failed from error
        if not any(fragment.failed and fragment not in before for fragment in query.fragments):
            query.answer.failed = True  # it was between two epochs
        for fragment in query.fragments:
            if fragment.failed and fragment not in before:
                fragment.back_off.failed(self.clock.now_us())
                failed = self._told_to_all(query, fragment, failed) if fragment.shared else failed
        query.trouble = failed
        self.on_failure("query", query.name, failed)
        return failed

    def _told_to_all(self, query: RunningQuery, fragment: Fragment, error: UserError) -> UserError:
        """Tell the others that a fragment has failed which they share with a query; return what is told of that one."""
        for other in self.having(fragment):
            if other is not query:
                other.trouble = failed_too(error, fragment.query, other.definition)
                other.complaints.append(other.trouble)
                self.on_failure("query", other.name, other.trouble)
        return failed_too(error, fragment.query, query.definition)

    def _restart(self, query: RunningQuery, standing: set[Fragment]) -> None:
        """Restart fragments that have failed from their last commit, after a while; unless they fail time and again.

        Those that are restarted, successfully or not, are taken out of those that stand.
        """
        for fragment in query.fragments if not query.given_up else ():
            if fragment.failed and fragment.back_off.ready(self.clock.now_us()):
                standing.discard(fragment)
                fragment.restart()
                self.tell(f"{fragment.full_name} is restarted from where it was")

    def _watch_streams(self) -> None:
        """Let the watch see whether the streams that are read go on."""
        if self.settings().failed_after_us is not None:
            self.watch.looked(self.horizon.expected_to_move(self.queries), self.clock.now_us())

    # results

    def deliver(self, pieces: int | None = None, but: Collection[str] = ()) -> None:
        """Hand over what waits for the sinks, except those of some queries; of a large epoch only so many pieces."""
        failures: list[UserError] = []
        for query in list(self.queries.values()):
            if query.name not in but:
                try:
                    self._deliver_one(query, pieces)
                except UserError as error:
                    failures.append(error)
        for group in list(self.groups.values()):
            try:
                group.deliver(self.clock, self.tell, self.patience_s)
            except UserError as error:
                failures.append(error)
        raise_all(failures)

    def _deliver_one(self, query: RunningQuery, pieces: int | None) -> None:
        """Hand over what waits for one sink, in its own thread. An error says that the journal could not note it."""
        began_us = self.clock.now_us()
        try:
            query.courier.deliver(self.clock, self.tell, pieces, self.patience_s)
        finally:
            ended_us = query.outbox.taken_us or self.clock.now_us()  # it may have ended while the loop was busy
            upto = query.outbox.delivered(query.reached)
            through = query.traces.seen(SINK, upto, min(began_us, ended_us), ended_us)
            if through and self.spans is not None:
                answers = {fragment.stop for fragment in query.answers}
                self.spans.through(query.traces, through, query.name, answers, query.stands_for)

    def flushing(self) -> bool:
        """Say whether some sink may take more of what waits in the next turn."""
        couriers = [one.courier for one in self.queries.values()] + [one.courier for one in self.groups.values()]
        return any(courier.can_deliver(self.clock.now_us()) for courier in couriers)

    def finish(self, wait_s: float) -> None:
        """Hand over the rest of what is being flushed, and wait no longer than that for all sinks together."""
        end_s = monotonic() + wait_s
        for query in list(self.queries.values()):
            query.courier.finish(self.clock, self.tell, max(0.0, end_s - monotonic()))
        for group in list(self.groups.values()):
            group.finish(self.clock, self.tell, max(0.0, end_s - monotonic()))

    # files

    def tidy(self) -> None:
        """Move synopses that lag far behind, drop what no query will read again, and merge small files."""
        failures: list[UserError] = []
        with self.running:
            self._move_together()
            away = self._away()
            for query in list(self.queries.values()):
                if query is away:
                    continue
                before = {fragment for fragment in query.fragments if fragment.failed}
                try:
                    self._move_state(query.own)
                    query.tidy()
                except Exception as error:
                    failures.append(self._failed(query, error, before))
            self._tidy_shared(failures)
            for name, log in list(self.logs.items()):
                if away is not None and away.reading(name):
                    continue  # its files must stay as they are
                try:
                    self._tidy_log(name, log)
                except Exception as error:
                    failures.append(failure(error, "log-not-tidied", f'the files of "{name}" could not be merged'))
        raise_all(failures)

    def _tidy_shared(self, failures: list[UserError]) -> None:
        """Tidy what queries share, unless one of them runs beside. The log is read as far as the last reader is."""
        away = self._away()
        kept_as_it_is = [] if away is None else away.fragments
        for fragment in self.shared():
            if fragment in kept_as_it_is or fragment.output is None or fragment.part.log in self.held:
                continue
            before, name = {fragment} if fragment.failed else set[Fragment](), fragment.part.name
            try:
                self._move_state([fragment])
                fragment.output.forget(partial(self._is_read, name))
                fragment.output.compact()
            except Exception as error:
                failures.append(self._failed(self.having(fragment)[0], error, before))

    def _move_together(self) -> None:
        """Move the synopses of all queries that lag far behind and are small. What fails is tried again alone."""
        away = self._away()
        kept_as_it_is = [] if away is None else away.fragments
        known = dict.fromkeys(fragment for query in list(self.queries.values()) for fragment in query.fragments)
        lagging = [one for one in known if one.should_move_state() and not one.failed and one not in kept_as_it_is]
        if not lagging:
            return
        try:
            moves = [move for fragment in lagging if fits_together(move := fragment.prepare_move())]
            name = ", ".join(move.fragment.full_name for move in moves)
            for first in range(0, len(moves), MOST_BRANCHES):
                with self.watch.over(name, moves[0].fragment.workspaces.sessions(), self.clock):
                    move_together(moves[first : first + MOST_BRANCHES])
            for move in moves:
                if not move.fragment.should_move_state():
                    move.fragment.back_off.succeeded()
        except Exception as error:
            check_alive(lagging[0].workspaces.origin, error)

    def _move_state(self, fragments: Iterable[Fragment]) -> None:
        for fragment in fragments:
            if fragment.should_move_state() and not fragment.failed:
                with self._watched(fragment):
                    fragment.move_state()
                fragment.back_off.succeeded()

    def _tidy_log(self, name: str, log: Log) -> None:
        """Drop chunks that no query reads any more. A stream without readers keeps everything for those to come."""
        if name in self.held:
            return
        if not name.startswith(LATE):  # dead letters stay, read or not
            log.forget(lambda chunk: self._needed(name, chunk))
        readers = [reader.inputs for reader in self._readers(name)]
        apart = {reader.position(name).arrived for reader in readers if reader.by_arrival}
        early = [query.early_answers for query in list(self.queries.values()) if query.early_answers is not None]
        log.compact(apart.union(*(one.positions(name) for one in early)))

    def _needed(self, log: str, chunk: Chunk) -> bool:
        readers = self._readers(log)
        if any(query.definition.family and query.definition.family.relation == log for query in self.queries.values()):
            return True  # its rows are the members, which a family that is altered begins with
        return not readers or any(reader.inputs.still_needs(log, chunk) for reader in readers)

    def _is_read(self, log: str, chunk: Chunk) -> bool:
        return any(reader.inputs.still_needs(log, chunk) for reader in self._readers(log))

    def _readers(self, log: str) -> list[Fragment]:
        found = (fragment for query in list(self.queries.values()) for fragment in query.reading(log))
        return list(dict.fromkeys(found))

    def having(self, fragment: Fragment) -> list[RunningQuery]:
        """Return the queries to whose answers a fragment leads."""
        return [query for query in list(self.queries.values()) if fragment in query.fragments]

    def shared(self) -> list[Fragment]:
        """Return the fragments that queries share, each behind those that it reads."""
        return list(dict.fromkeys(one for query in list(self.queries.values()) for one in query.shared))


def _priority(turn: Turn) -> float:
    """Return the priority of the epoch that a turn has chosen; the order of the queries stands where all are equal."""
    assert turn.chosen is not None
    return turn.chosen.priority
