"""A query that waits: for which instant it waits, and when it would be released."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from headgate.heartbeat.arrivals import NEVER
from headgate.heartbeat.enabling import last_beat_us
from headgate.heartbeat.model import TimeModel
from headgate.heartbeat.stream_clock import StreamClock
from headgate.heartbeat.waiting import Standing
from headgate.scope import Scopes
from headgate.ticks import Tick, TimeDomain

FOREVER_US = 10**17
"""What has not happened after so long never does: three thousand years."""


@dataclass(frozen=True, slots=True)
class Held:
    """A query that waits for the heartbeat of some streams to reach an instant."""

    model: TimeModel
    names: Sequence[str]
    """The streams that it reads."""

    goal: Tick
    """The instant that it waits for."""

    now_us: int
    standings: Mapping[str, Standing]
    scopes: Scopes
    """The sources that it can see."""

    @property
    def clocks(self) -> list[StreamClock]:
        """The clocks of its streams."""
        return [self.model.clocks[name] for name in self.names]

    @property
    def domain(self) -> TimeDomain:
        """What its instants are."""
        return next((clock.domain for clock in self.clocks if clock.domain is not None), TimeDomain.INTEGER)

    def behind(self) -> list[str]:
        """The streams that are not complete up to the goal: of those that hold the others back, or of all, less those
        that were promised to be; whichever are fewer.
        """
        incomplete = [name for name, standing in self.standings.items() if self._is_short(standing.complete)]
        holding = {*self.model.completeness.holding_back(self.standings)}
        counting = [name for name in incomplete if name in holding]
        promised = {name: self.model.clocks[name].promises.limit(self.scopes.get(name)) for name in incomplete}
        every = [name for name in incomplete if self._is_short(promised[name])]
        return counting if len(counting) <= len(every) else every

    def holder(self) -> StreamClock | None:
        """The stream that is complete least far."""
        known = {name: NEVER if (found := self.standings[name].complete) is None else found for name in self.behind()}
        return self.model.clocks[min(known, key=lambda name: known[name])] if known else None

    def _is_short(self, complete: Tick | None) -> bool:
        return complete is None or complete < self.goal

    def released(
        self,
        at_us: int,
        silent_us: int | None = None,
        answers: Mapping[str, Tick] | None = None,
        by: TimeModel | None = None,
    ) -> bool:
        """True if it is released at an instant, if nothing comes until then; `by` is a copy of the model in which
        something was tried.
        """
        model = self.model if by is None else by
        reached = model.completeness.foretell(
            self.names, at_us, at_us if silent_us is None else silent_us, answers, self.scopes
        )
        return reached is not None and reached >= self.goal

    def first(self, released: Callable[[int], bool]) -> int | None:
        """The first instant from now on at which it is released, by a test that stays true once it is; None: never."""
        if released(self.now_us):
            return self.now_us
        before_us, after_us = self.now_us, self.now_us + FOREVER_US
        if not released(after_us):
            return None
        while after_us - before_us > 1:
            middle_us = (before_us + after_us) // 2
            before_us, after_us = (before_us, middle_us) if released(middle_us) else (middle_us, after_us)
        return after_us

    def answers(self, at_us: int) -> dict[str, Tick]:
        """What the clock will say by then, by stream, if all that is there has been read."""
        found = {}
        for name in self.names:
            enabling = self.model.declarations.enabling(name)
            asked_us = last_beat_us(at_us, enabling.every_us) if enabling.how == "every" else at_us
            answer = self.model.enabling.answer(name, asked_us) if enabling.how != "none" else None
            if answer is not None:
                found[name] = answer
        return found


def held_back(model: TimeModel, names: Sequence[str], now_us: int, scopes: Scopes) -> Held | None:
    """A query over these streams that waits for its first tuple to be complete; None if it waits for nothing but its
    turn.
    """
    reached = model.completeness.foretell(names, now_us, now_us, scopes=scopes)
    largest: list[int] = []
    for clock in (model.clocks[name] for name in names):
        seen = clock.table.members(scopes.get(clock.name), model.clocks.generator)
        largest += [clock.largest] if clock.largest is not None and seen is None else []
        for number in clock.table.cohorts.values():
            cohort = model.clocks.generator.cohorts[number]
            sent = cohort.largest[: cohort.size] if seen is None else cohort.largest[: cohort.size][seen[number]]
            sent = sent[sent > (NEVER if reached is None else reached)]
            largest += [int(sent.min())] if len(sent) else []
    beyond = [tick for tick in largest if reached is None or tick > reached]
    if largest and not beyond:
        return None
    goal = min(beyond) if beyond else NEVER // 2 + 1 if reached is None else reached + 1
    return Held(model, names, goal, now_us, model.completeness.standings(names, now_us, now_us, {}, scopes), scopes)
