"""Which fragment of a query runs next, and up to which instant.

A fragment waits for the streams of its label: its own, or those of the fragment above it where it would otherwise run
ahead for nothing. It gets no further than the fragments it reads. The order among fragments is that of `selection`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from headgate.execute.fragment import Fragment
from headgate.execute.prepared import PreparedEpoch, Written
from headgate.schedule.horizon import Horizon
from headgate.schedule.query import RunningQuery
from headgate.schedule.scheduler import Scheduler
from headgate.schedule.selection import by_priority, depth_first
from headgate.ticks import UNLIMITED, Tick


@dataclass(frozen=True, slots=True)
class NextEpoch:
    """An epoch that can run now."""

    fragment: Fragment
    until: Tick
    """Up to here its input is complete."""

    arrived: tuple[Tick, int] | None = None
    """For a fragment that reads in order of arrival: up to which timestamp it takes tuples, and about how many."""

    priority: float = 0.0
    """By how much it lets the queues fall, if that is how fragments are scheduled: large epochs with more go first."""

    def prepare(self) -> PreparedEpoch:
        """Prepare it: find out what it reads, and by which program."""
        if self.arrived is None:
            return self.fragment.prepare(self.until)
        upto, most = self.arrived
        return self.fragment.prepare_arrived(upto, self.until, most)

    def run(self) -> Written:
        """Run it: one statement of Spark, whose results are written and do not count yet."""
        if self.arrived is None:
            return self.fragment.run(self.until)
        upto, most = self.arrived
        return self.fragment.run_arrived(upto, self.until, most)


class Choice:
    """Chooses the epochs that lead to an answer of a query, in one turn of the loop."""

    def __init__(
        self,
        query: RunningQuery,
        answer: Fragment,
        horizon: Horizon,
        scheduler: Scheduler,
        epoch_rows: int | None,
        fixed: Tick | None = None,
    ) -> None:
        self.query = query
        self.answer = answer
        self.horizon = horizon
        self.scheduler = scheduler
        self.epoch_rows = epoch_rows
        """About how many rows an epoch takes at the most."""
        self.fixed = fixed
        """If given, all input is taken to be complete up to this instant, whatever the heartbeats say."""
        self.fragments = {one.part.name: one for one in query.leading_to(answer)}
        self._targets: Mapping[str, Tick | None] | None = None
        """How far each part may go by the heartbeats, once they were looked at."""

    def __iter__(self) -> Iterator[NextEpoch]:
        """Give one epoch after another; the caller runs and commits each before it takes the next."""
        candidates = {name: Candidate(self, fragment) for name, fragment in self.fragments.items()}
        reads = {one: [candidates[below.name] for below in one.fragment.part.parts] for one in candidates.values()}
        root = candidates[self.answer.part.name]
        if self.scheduler.scheduling() == "fifo":
            for candidate in depth_first(root, reads):
                yield candidate.next_epoch()
            return
        found = dict[Candidate, float]()

        def priorities() -> Mapping[Candidate, float]:
            below = {one.fragment: [other.fragment for other in several] for one, several in reads.items()}
            by_fragment = self.scheduler.priorities(self.query.name, self.answer, below)
            found.update((one, by_fragment[one.fragment]) for one in reads)
            return found

        for candidate in by_priority(root, reads, priorities, self._look_again):
            yield replace(candidate.next_epoch(), priority=found[candidate])

    def _look_again(self) -> None:
        """Let the heartbeats of now count."""
        self._targets = None

    @property
    def heartbeat(self) -> Tick | None:
        """How far the answer may go."""
        return self.target(self.answer)

    def target(self, fragment: Fragment) -> Tick | None:
        """Return how far a fragment may go by the heartbeats of now."""
        if self.fixed is not None:
            return self.fixed
        if self._targets is None:
            self._targets = self.horizon.of(self.query, self.answer)
        return self._targets[fragment.part.name]

    def ask(self, fragment: Fragment, instant: Tick) -> bool:
        """Ask how far the streams of a fragment are; say whether any moved."""
        moved = self.horizon.ask(fragment, instant)
        if moved:
            self._targets = None
        return moved


class Candidate:
    """A fragment that may run in this turn."""

    def __init__(self, choice: Choice, fragment: Fragment) -> None:
        self.choice = choice
        self.fragment = fragment

    def complete(self) -> Tick | None:
        """Return up to where its input is complete: by the heartbeats, and by the fragments that it reads."""
        target = self.choice.target(self.fragment)
        below = [self.choice.fragments[part.name].after for part in self.fragment.part.parts]
        return None if target is None else min([target, *below])

    def arrival_limit(self) -> Tick | None:
        """Return up to which timestamp it takes tuples in order of arrival; None if it takes none."""
        complete = self.complete()
        if self.choice.fixed is not None:
            return complete
        if self.fragment.inputs.ahead == "everything":
            return UNLIMITED
        return None if complete is None else complete + 1

    def has_input(self) -> bool:
        """Say whether there is an epoch to run. If there is none because nothing happens, advance without one."""
        fragment, inputs = self.fragment, self.fragment.inputs
        if fragment.failed:
            return False
        if inputs.by_arrival:
            upto = self.arrival_limit()
            if upto is not None and inputs.has_work(upto):
                return True
        until = self.complete()
        return until is not None and until > fragment.after and not self._advance_idle(until)

    def _advance_idle(self, until: Tick) -> bool:
        """Advance the fragment without an epoch if nothing happens up to `until`; a sink may want to hear of it though.

        It is looked again after the promise: what comes from then on is late.
        """
        fragment = self.fragment
        if self.choice.query.wants_empty(fragment) or fragment.inputs.has_work(until):
            return False
        self.choice.horizon.promise(fragment, until)
        if fragment.inputs.has_work(until):
            return False
        fragment.advance_idle(until)
        return True

    def can_ask(self) -> bool:
        """Say whether it would help to ask its streams how far they are: something waits for the answer."""
        if self.choice.fixed is not None or self.fragment.failed:
            return False
        return self.choice.horizon.can_ask(self.fragment) and self.fragment.inputs.has_events(UNLIMITED)

    def ask(self) -> bool:
        """Ask its streams how far they are, for the sake of the next instant at which something happens."""
        event = self.fragment.inputs.next_event()
        if event is None:
            return False
        if self.fragment.inputs.by_arrival:
            event -= 1  # a tuple of the first open instant can be taken
        return self.choice.ask(self.fragment, event)

    def next_epoch(self) -> NextEpoch:
        """Return its next epoch: up to where its input is complete, or as far as enough rows go."""
        fragment, complete = self.fragment, self.complete()
        most = self.choice.epoch_rows or fragment.rows_at_once()
        if not fragment.inputs.by_arrival:
            assert complete is not None
            return NextEpoch(fragment, fragment.inputs.epoch_end(complete, most))
        upto = self.arrival_limit()
        assert upto is not None
        if fragment.inputs.ahead == "an instant":
            upto = fragment.inputs.arrival_end(upto, most)
        until = fragment.after if complete is None else max(fragment.after, complete)
        return NextEpoch(fragment, until, (upto, most))
