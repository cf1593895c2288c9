"""The fragments of one query for one turn of the loop: what each can take by the heartbeats of now, and what taking it
does.

A fragment waits for the streams of its label: its own, or those of the fragment above it where it would otherwise run
ahead for nothing. It gets no further than the fragments it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headgate.execute.epoch_end import cut
from headgate.execute.executor import Executor
from headgate.ticks import UNLIMITED, Tick

if TYPE_CHECKING:
    from headgate.schedule.loop import Loop
    from headgate.schedule.query import RunningQuery


class Sources:
    """What the streams of a fragment come from."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def ask(self) -> bool:
        """Nobody is asked for nothing: there is an instant at which something happens that the answers would
        complete.
        """
        stage, turn = self.stage, self.stage.turn
        due = stage.executor.due()
        if due is None:
            return False
        due -= stage.by_arrival  # a tuple of the first open instant can be taken
        moved = turn.loop.ask(stage.fragment.part, due)
        turn.targets = None if moved else turn.targets
        return moved


class Turn:
    """What holds in this turn for all fragments that lead to an answer; with `fixed`, that instant instead of the
    heartbeats.
    """

    def __init__(self, loop: Loop, query: RunningQuery, answer: Executor, fixed: Tick | None = None) -> None:
        self.loop = loop
        self.query = query
        self.answer = answer
        self.fixed = fixed
        self.targets: Mapping[str, Tick | None] | None = None
        self.stages = {executor.fragment.part.name: Stage(self, executor) for executor in query.leading_to(answer)}

    @property
    def root(self) -> Stage:
        return self.stages[self.answer.fragment.part.name]

    def target(self, part: str) -> Tick | None:
        """How far a part may go by the heartbeats: no less far than whoever reads it."""
        if self.fixed is not None:
            return self.fixed
        if self.targets is None:
            self.targets = self.loop.targets(self.query, self.answer)
        return self.targets[part]


class Stage:
    def __init__(self, turn: Turn, executor: Executor) -> None:
        self.turn = turn
        self.executor = executor
        self.fragment = executor.fragment
        self.sources = Sources(self)

    @property
    def reader(self) -> Stage | None:
        name = self.fragment.part.name
        stages = self.turn.stages.values()
        return next((stage for stage in stages if any(below.name == name for below in stage.fragment.part.parts)), None)

    def operators(self) -> Sequence[Stage]:
        return [self.turn.stages[below.name] for below in self.fragment.part.parts]

    def origins(self) -> Sequence[Sources]:
        """Nobody is asked unless something waits for the answer."""
        if self.turn.fixed is not None or self.fragment.failed:
            return []
        worth = self.turn.loop.asking.worth_asking(self.fragment.part.streams) and self.executor.happens(UNLIMITED)
        return [self.sources] if worth else []

    @property
    def by_arrival(self) -> bool:
        return self.fragment.ahead != "nothing"

    def available(self) -> Tick | None:
        """Up to where its inputs are complete."""
        target = self.turn.target(self.fragment.part.name)
        below = [stage.fragment.after for stage in self.operators()]
        return None if target is None else min([target, *below])

    def upto(self) -> Tick | None:
        """By arrival: what is stamped up to here can be taken."""
        complete = self.available()
        if self.turn.fixed is not None:
            return complete
        if self.fragment.ahead == "everything":
            return UNLIMITED
        return None if complete is None else complete + 1

    def more(self) -> bool:
        if self.fragment.failed:
            return False
        if self.by_arrival:
            upto = self.upto()
            if upto is not None and self.executor.waits(upto):
                return True
        until = self.available()
        return until is not None and until > self.fragment.after and not self._passes(until)

    def _passes(self, until: Tick) -> bool:
        """Whether nothing happens up to there, so that no epoch is needed to be complete; but a sink may want to hear
        of it.

        It is looked again after the heartbeat was given: what comes from then on is late.
        """
        happens = self.executor.waits if self.by_arrival else self.executor.happens
        if self.turn.query.tells_empty(self.executor) or happens(until):
            return False
        self.turn.loop.give(self.fragment.part, until)
        if happens(until):
            return False
        self.executor.passed(until)
        return True

    def run(self) -> bool:
        fragment, loop, query = self.fragment, self.turn.loop, self.turn.query
        after, complete = fragment.after, self.available()
        upto = self.upto() if self.by_arrival else None
        until = after if complete is None else max(after, complete) if self.by_arrival else self.end(complete)
        loop.give(fragment.part, until)
        loop.sent(query, self.turn.target(self.turn.root.fragment.part.name))
        with loop.running, loop.epoch(query, self.executor) as epoch:
            if upto is not None:
                epoch.rows, until = query.take_arrived(self.executor, upto, until, loop.settings().epoch_rows)
            else:
                epoch.rows = query.take(self.executor, until)
            epoch.after, epoch.until = after, until
        return True

    def end(self, complete: Tick) -> Tick:
        """Where its next epoch ends: at the heartbeat, or where there are enough rows before it."""
        after, start = self.fragment.after, self.fragment.start
        after = after if start is None else max(after, min(start, complete))  # nothing of before is read
        logs = self.executor.logs
        waiting = [chunk for log in self.executor.wide.logs() for chunk in logs[log].overlapping(after, complete)]
        return cut(waiting, after, complete, self.turn.loop.settings().epoch_rows)
