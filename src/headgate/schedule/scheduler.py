"""Orders the fragments of a query by what the profile knows of them, and takes note when the order changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import mean

from headgate.execute.fragment import MEASURED_ROWS, Fragment
from headgate.heartbeat.clock import Clock
from headgate.observe.profile import Figures
from headgate.schedule.priorities import Cost, priorities
from headgate.schedule.profiler import Profiler
from headgate.settings import Scheduling


class Scheduler:
    """Says which fragments of a query go first."""

    def __init__(self, profiler: Profiler, clock: Clock, scheduling: Callable[[], Scheduling]) -> None:
        self.profiler = profiler
        self.clock = clock
        self.scheduling = scheduling
        self._orders: dict[str, tuple[str, ...]] = {}
        """By query: its fragments in the order that was last taken note of."""

    def priorities(
        self, query: str, answer: Fragment, reads: Mapping[Fragment, Sequence[Fragment]]
    ) -> dict[Fragment, float]:
        """Return by how many rows a microsecond each fragment lets the queues fall, by itself or in its block."""
        how, now_us = self.scheduling(), self.clock.now_us()
        looked = {one: self.profiler.of(one, now_us) for one in reads}
        known = {one: each for one, each in looked.items() if each is not None and each.rows_in >= MEASURED_ROWS}
        costs = {one: _cost(one is answer, known.get(one), _usual(known.values())) for one in reads}
        found = priorities(how, answer, reads, costs)
        if len(known) == len(reads) > 1:
            self._note(query, how, found, costs, now_us)
        return found

    def forget(self, query: str) -> None:
        """Drop what is known of a query that is gone."""
        self._orders.pop(query, None)

    def _note(
        self, query: str, how: Scheduling, found: Mapping[Fragment, float], costs: Mapping[Fragment, Cost], now_us: int
    ) -> None:
        """Take note of the order of a query's fragments, if it is another one than before."""
        order = sorted(found, key=lambda one: -found[one])
        names = tuple(one.part.name for one in order)
        if self._orders.get(query) == names:
            return
        before = self._orders.get(query)
        self._orders[query] = names
        was = f", before that {', '.join(before)}" if before else ""
        by = "; ".join(
            f"{one.part.name}: {costs[one].selectivity:.3g} rows wait on for one taken, {costs[one].time:.0f} us a row"
            for one in order
        )
        adaptations = self.profiler.profile.adaptations
        adaptations.note(now_us, "scheduling", query, f"{how} runs first {', '.join(names)}{was}", by)


def _usual(figures: Collection[Figures]) -> float:
    """Return how long fragments take for a row on average."""
    return mean([one.us_per_row or 0.0 for one in figures] or [0.0]) or 1.0


def _cost(is_answer: bool, figures: Figures | None, usual: float) -> Cost:
    """Return what a fragment does to a row. One that has read too few is taken to pass all of them on, in the usual
    time.
    """
    passed = 1.0 if figures is None else figures.selectivity or 0.0
    return Cost(0.0 if is_answer else passed, usual if figures is None else figures.us_per_row or usual)
